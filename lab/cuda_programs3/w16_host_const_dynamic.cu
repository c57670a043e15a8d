// a const of the host whose value is computed when the program starts
#include <cstdio>
#include <cmath>
const float SCALE = std::sqrt(atof("2.0"));
__global__ void k(float* o) { o[threadIdx.x] = threadIdx.x * SCALE; }
int main() { float *o, r[4]; cudaMalloc(&o, 16); k<<<1, 4>>>(o); cudaMemcpy(r, o, 16, cudaMemcpyDeviceToHost); printf("%g\n", r[3]); cudaFree(o); }
