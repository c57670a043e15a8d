// CUB's sum into managed memory; the host reads without waiting
#include <cstdio>
#include <cub/cub.cuh>
int main() { const int n = 4096; int *a, *o; void* t = nullptr; size_t bytes = 0; cudaMallocManaged(&a, n * 4); cudaMallocManaged(&o, 4); for (int i = 0; i < n; i++) a[i] = 1; cub::DeviceReduce::Sum(t, bytes, a, o, n); cudaMalloc(&t, bytes); cub::DeviceReduce::Sum(t, bytes, a, o, n); printf("%d\n", *o); cudaDeviceSynchronize(); cudaFree(a); cudaFree(o); cudaFree(t); }
