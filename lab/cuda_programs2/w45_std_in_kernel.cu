// std::max and std::swap in a kernel: nvcc refuses without --expt-relaxed-constexpr
#include <cstdio>
#include <algorithm>
__global__ void k(int* a) { int i = threadIdx.x * 2; if (a[i] > a[i + 1]) std::swap(a[i], a[i + 1]); a[i] = std::max(a[i], 3); }
int main() { int* a; cudaMallocManaged(&a, 256); for (int i = 0; i < 64; i++) a[i] = 64 - i; k<<<1, 32>>>(a); cudaDeviceSynchronize(); printf("%d\n", a[1]); cudaFree(a); }
