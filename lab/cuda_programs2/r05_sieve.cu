// sieve: a thread for each candidate up to sqrt(n); composite[] set by many; reads are only hints
#include <cstdio>
__global__ void sieve(char* composite, int n, int root) { int p = 2 + blockIdx.x * blockDim.x + threadIdx.x; if (p > root || composite[p]) return; for (int m = p * p; m <= n; m += p) composite[m] = 1; }
int main() { const int n = 10000; char* c; cudaMallocManaged(&c, n + 1); cudaMemset(c, 0, n + 1); sieve<<<4, 32>>>(c, n, 100); cudaDeviceSynchronize(); int k = 0; for (int i = 2; i <= n; i++) k += !c[i]; printf("%d\n", k); cudaFree(c); }
