// a helper allocates into its own copy of the pointer
#include <cstdio>
void allocate(float* p, int n) { cudaMalloc(&p, n * sizeof(float)); }
__global__ void k(float* a) { a[threadIdx.x] = 1; }
int main() { float* d = nullptr; allocate(d, 32); k<<<1, 32>>>(d); float h[32] = {}; cudaMemcpy(h, d, 128, cudaMemcpyDeviceToHost); printf("%g\n", h[0]); }
