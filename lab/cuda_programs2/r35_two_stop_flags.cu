// verifying: any mismatch sets *bad = 1, any overflow sets it too, from another line; nobody in the kernel reads; sorted check with a plain early look
#include <cstdio>
__global__ void check(const int* a, int n, int* bad) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (*bad) return; if (i + 1 < n && a[i] > a[i + 1]) *bad = 1; if (i < n && a[i] > 1000) *bad = 1; }
int main() { const int n = 2048; int *a, *b; cudaMallocManaged(&a, n * 4); cudaMallocManaged(&b, 4); *b = 0; for (int i = 0; i < n; i++) a[i] = i % 1100; check<<<8, 256>>>(a, n, b); cudaDeviceSynchronize(); printf("%d\n", *b); cudaFree(a); cudaFree(b); }
