// n = 0: a grid of 0 blocks; with and without a look
#include <cstdio>
__global__ void k(float* a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] = 1; }
int main() { float* a; cudaMalloc(&a, 4); int n = 0; k<<<(n + 255) / 256, 256>>>(a, n); cudaDeviceSynchronize(); cudaFree(a); puts("done"); }
