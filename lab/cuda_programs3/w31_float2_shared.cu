// a float2 read from an odd place in shared memory
#include <cstdio>
__global__ void k(float* o) { __shared__ float s[66]; s[threadIdx.x] = threadIdx.x; s[threadIdx.x + 33] = 1; __syncthreads(); float2 v = *reinterpret_cast<float2*>(&s[threadIdx.x + 1]); o[threadIdx.x] = v.x + v.y; }
int main() { float *o, r[32]; cudaMalloc(&o, 128); k<<<1, 32>>>(o); cudaMemcpy(r, o, 128, cudaMemcpyDeviceToHost); printf("%g\n", r[0]); cudaFree(o); }
