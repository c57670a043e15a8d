// grid-stride loop with a full-mask shuffle inside, n no multiple of 32
#include <cstdio>
__global__ void k(const int* a, int n, int* o) { int s = 0; for (int i = threadIdx.x; i < n; i += 32) { int v = a[i]; for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d); if (threadIdx.x == 0) s += v; } if (threadIdx.x == 0) *o = s; }
int main() { int *a, *o; cudaMallocManaged(&a, 400); cudaMallocManaged(&o, 4); for (int i = 0; i < 100; i++) a[i] = 1; k<<<1, 32>>>(a, 80, o); cudaDeviceSynchronize(); printf("%d\n", *o); cudaFree(a); cudaFree(o); }
