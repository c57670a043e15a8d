// CUB's radix sort with one array for keys in and out
#include <cstdio>
#include <cub/cub.cuh>
int main() { const int n = 4096; static int h[n]; for (int i = 0; i < n; i++) h[i] = i * 7919 % 4099; int* d; cudaMalloc(&d, sizeof h); cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice); void* t = nullptr; size_t b = 0; cub::DeviceRadixSort::SortKeys(t, b, d, d, n); cudaMalloc(&t, b); cub::DeviceRadixSort::SortKeys(t, b, d, d, n); cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost); printf("%d %d\n", h[0], h[1]); cudaFree(d); cudaFree(t); }
