// a pointer to shared memory (or to a local array) is kept in global memory and used by the next kernel
#include <cstdio>
__device__ float* cache; __device__ float* mine;
__global__ void a() { __shared__ float s[32]; float l[4] = {1, 2, 3, 4}; s[threadIdx.x] = threadIdx.x; if (threadIdx.x == 0) { cache = s; mine = l; } __syncthreads(); }
__global__ void b(float* o) { o[threadIdx.x] = mine[threadIdx.x % 4]; }
__global__ void c(float* o) { o[threadIdx.x] = cache[threadIdx.x]; }
int main() { float *o, h[32]; cudaMalloc(&o, 128); a<<<1, 32>>>(); b<<<1, 32>>>(o); cudaMemcpy(h, o, 128, cudaMemcpyDeviceToHost); printf("%g\n", h[2]); c<<<1, 32>>>(o); cudaMemcpy(h, o, 128, cudaMemcpyDeviceToHost); printf("%g\n", h[2]); cudaFree(o); }
