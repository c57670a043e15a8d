// CUB's inclusive sum shifted by one in one array; DeviceSelect in place
#include <cstdio>
#include <cub/cub.cuh>
int main() { const int n = 1024; int h[n]; for (int& x : h) x = 1; int* d; cudaMalloc(&d, sizeof h + 4); cudaMemset(d, 0, sizeof h + 4); cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice); void* t = nullptr; size_t b = 0; cub::DeviceScan::ExclusiveSum(t, b, d, d + 1, n); cudaMalloc(&t, b); cub::DeviceScan::ExclusiveSum(t, b, d, d + 1, n); cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost); printf("%d %d\n", h[1], h[1000]); cudaFree(d); cudaFree(t); }
