// cudaMemsetAsync of managed memory; the host reads at once
#include <cstdio>
int main() { int n = 4096; int* a; cudaMallocManaged(&a, n * 4); cudaStream_t s; cudaStreamCreate(&s); cudaMemsetAsync(a, 0, n * 4, s); int t = 0; for (int i = 0; i < n; i++) t += a[i]; printf("%d\n", t); cudaStreamSynchronize(s); cudaStreamDestroy(s); cudaFree(a); }
