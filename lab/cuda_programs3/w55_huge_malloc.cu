// 1 TB is asked for; nobody looks at the error; the kernel uses it
#include <cstdio>
__global__ void k(char* a) { a[threadIdx.x] = 1; }
int main() { char* a = nullptr; cudaMalloc(&a, 1ull << 40); k<<<1, 32>>>(a); printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize())); cudaFree(a); }
