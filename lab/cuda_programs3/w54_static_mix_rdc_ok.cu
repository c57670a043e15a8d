// __device__ function declared, defined with other attributes: host version only
#include <cstdio>
#include <algorithm>
__global__ void k(int* a, int n) { if (threadIdx.x == 0) std::sort(a, a + n); }
int main() { int h[4] = {3, 1, 2, 0}, *a; cudaMalloc(&a, 16); cudaMemcpy(a, h, 16, cudaMemcpyHostToDevice); k<<<1, 32>>>(a, 4); cudaMemcpy(h, a, 16, cudaMemcpyDeviceToHost); printf("%d\n", h[0]); cudaFree(a); }
