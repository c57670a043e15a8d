#include <cstdio>
__global__ void sieve(bool* prime, int n) { int p = blockIdx.x * blockDim.x + threadIdx.x + 2; if (p * p <= n) for (int m = 2 * p; m <= n; m += p) prime[m] = false; }
__global__ void init(bool* prime, int n) { int p = blockIdx.x * blockDim.x + threadIdx.x; if (p <= n) prime[p] = p > 1; }
int main() { const int n = 10000; bool* c; cudaMallocManaged(&c, n + 1); init<<<79, 128>>>(c, n); sieve<<<1, 128>>>(c, n); cudaDeviceSynchronize(); int k = 0; for (int i = 2; i <= n; i++) k += c[i]; printf("%d\n", k); cudaFree(c); }
