// curand_init only for the first half of the states
#include <cstdio>
#include <curand_kernel.h>
__global__ void init(curandState* s, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n / 2) curand_init(1, i, 0, s + i); }
__global__ void pi(curandState* s, int n, int* in) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; curandState l = s[i]; int c = 0; for (int k = 0; k < 20; k++) { float x = curand_uniform(&l), y = curand_uniform(&l); c += x * x + y * y < 1; } s[i] = l; atomicAdd(in, c); }
int main() { const int n = 256; curandState* s; int* c; cudaMalloc(&s, n * sizeof *s); cudaMallocManaged(&c, 4); *c = 0; init<<<2, 128>>>(s, n); pi<<<2, 128>>>(s, n, c); cudaDeviceSynchronize(); printf("%g\n", 4. * *c / n / 20); cudaFree(s); cudaFree(c); }
