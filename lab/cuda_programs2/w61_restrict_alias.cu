// const __restrict__ and called in place: the compiler may read ahead of the writes
#include <cstdio>
__global__ void prefix(const int* __restrict__ in, int* __restrict__ out, int n) { int row = threadIdx.x; const int* p = in + row * n; int* q = out + row * n; for (int j = 1; j < n; j++) q[j] = p[j - 1] + p[j]; }
int main() { const int n = 16; int* a; cudaMallocManaged(&a, 32 * n * 4); for (int i = 0; i < 32 * n; i++) a[i] = 1; prefix<<<1, 32>>>(a, a, n); cudaDeviceSynchronize(); printf("%d\n", a[n - 1]); cudaFree(a); }
