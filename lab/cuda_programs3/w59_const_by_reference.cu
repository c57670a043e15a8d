// a const of the host bound to a reference in device code (its address is taken): nvcc: undefined in device code
#include <cstdio>
const float EPS = 1e-3f;
template <class T> __host__ __device__ const T& bigger(const T& a, const T& b) { return a < b ? b : a; }
__global__ void k(float* o) { o[threadIdx.x] = bigger(threadIdx.x * 1e-4f, EPS); }
int main() { float *o, h[32]; cudaMalloc(&o, 128); k<<<1, 32>>>(o); cudaMemcpy(h, o, 128, cudaMemcpyDeviceToHost); printf("%g\n", h[5]); cudaFree(o); }
