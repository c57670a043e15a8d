// cudaMalloc into a __device__ pointer by its name: the host's shadow gets the address, the kernel's stays null
#include <cstdio>
__device__ float* data;
__global__ void k() { data[threadIdx.x] = threadIdx.x; }
__global__ void g(float* o) { o[threadIdx.x] = data[threadIdx.x]; }
int main() { cudaMalloc((void**)&data, 128); k<<<1, 32>>>(); float *o, h[32]; cudaMalloc(&o, 128); g<<<1, 32>>>(o); cudaMemcpy(h, o, 128, cudaMemcpyDeviceToHost); printf("%g\n", h[5]); cudaFree(o); cudaFree(data); }
