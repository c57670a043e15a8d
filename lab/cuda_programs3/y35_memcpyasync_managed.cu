// cudaMemcpyAsync from pinned to managed memory; the host reads at once (no kernel)
#include <cstdio>
int main() { int n = 4096; int *a, *h; cudaMallocManaged(&a, n * 4); cudaMallocHost(&h, n * 4); for (int i = 0; i < n; i++) h[i] = 7; cudaStream_t s; cudaStreamCreate(&s); cudaMemcpyAsync(a, h, n * 4, cudaMemcpyDefault, s); printf("%d\n", a[100]); cudaStreamSynchronize(s); cudaStreamDestroy(s); cudaFree(a); cudaFreeHost(h); }
