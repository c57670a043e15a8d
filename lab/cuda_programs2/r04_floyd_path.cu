// Floyd-Warshall with predecessors; min() form stores always
#include <cstdio>
#include <algorithm>
__global__ void fw(int* d, int n, int k) { int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y; if (i < n && j < n) d[i * n + j] = min(d[i * n + j], d[i * n + k] + d[k * n + j]); }
__global__ void fwp(int* d, int* p, int n, int k) { int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y; if (i < n && j < n) { int c = d[i * n + k] + d[k * n + j]; if (c < d[i * n + j]) { d[i * n + j] = c; p[i * n + j] = p[k * n + j]; } } }
int main() { const int n = 40; int *d, *p; cudaMallocManaged(&d, n * n * 4); cudaMallocManaged(&p, n * n * 4);
  for (int v = 0; v < 2; v++) { for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) { d[i * n + j] = i == j ? 0 : (i * 7 + j * 13) % 10 < 3 ? (i + j) % 17 + 1 : 1000000; p[i * n + j] = i; }
    for (int k = 0; k < n; k++) if (v) fwp<<<dim3(3, 3), dim3(16, 16)>>>(d, p, n, k); else fw<<<dim3(3, 3), dim3(16, 16)>>>(d, n, k); cudaDeviceSynchronize(); long s = 0; for (int i = 0; i < n * n; i++) s += d[i]; printf("%ld\n", s); }
  cudaFree(d); cudaFree(p); }
