// producer warps and consumer warps with bar.sync / bar.arrive 1..4 (PTX)
#include <cstdio>
__device__ void sync(int id) { asm volatile("bar.sync %0, 128;" :: "r"(id) : "memory"); }
__device__ void arrive(int id) { asm volatile("bar.arrive %0, 128;" :: "r"(id) : "memory"); }
__global__ void k(const int* in, int* out, int n) { __shared__ int buf[2][64]; int t = threadIdx.x;
  if (t < 64) { for (int s = 0; s < n; s++) { if (s >= 2) sync(3 + (s & 1)); buf[s & 1][t] = in[s * 64 + t]; __threadfence_block(); arrive(1 + (s & 1)); } }
  else { t -= 64; int v = 0; for (int s = 0; s < n; s++) { sync(1 + (s & 1)); v += buf[s & 1][63 - t]; if (s + 2 < n) arrive(3 + (s & 1)); } out[t] = v; } }
int main() { const int n = 7; int *a, *o; cudaMallocManaged(&a, n * 256); cudaMallocManaged(&o, 256); for (int i = 0; i < n * 64; i++) a[i] = i; k<<<1, 128>>>(a, o, n); cudaDeviceSynchronize(); printf("%d\n", o[0]); cudaFree(a); cudaFree(o); }
