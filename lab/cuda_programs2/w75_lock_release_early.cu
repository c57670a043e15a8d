// as w73 with plain memory
#include <cstdio>
__device__ int mutex;
__global__ void k(float* grad, const float* part) { int t = threadIdx.x; if (t == 0) while (atomicCAS(&mutex, 0, 1)) {} __syncthreads(); __threadfence(); grad[t] += part[blockIdx.x * 128 + t]; if (t == 0) { __threadfence(); atomicExch(&mutex, 0); } }
int main() { float *g, *p; cudaMallocManaged(&g, 512); cudaMallocManaged(&p, 8 * 512); for (int i = 0; i < 128; i++) g[i] = 0; for (int i = 0; i < 1024; i++) p[i] = 1; k<<<8, 128>>>(g, p); cudaDeviceSynchronize(); printf("%g\n", g[100]); cudaFree(g); cudaFree(p); }
