// std::sort and std::vector in a kernel: nvcc refuses
#include <cstdio>
#include <algorithm>
#include <vector>
__global__ void k(int* a) { std::vector<int> v(a, a + 8); std::sort(v.begin(), v.end()); for (int i = 0; i < 8; i++) a[i] = v[i]; }
int main() { int* a; cudaMallocManaged(&a, 256); for (int i = 0; i < 64; i++) a[i] = 64 - i; k<<<1, 1>>>(a); cudaDeviceSynchronize(); printf("%d\n", a[1]); cudaFree(a); }
