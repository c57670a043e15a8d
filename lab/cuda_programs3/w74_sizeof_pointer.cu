// sizeof of a pointer: eight bytes go to the device
#include <cstdio>
#include <cstdlib>
__global__ void k(const int* a, int* o) { o[threadIdx.x] = a[threadIdx.x] + 1; }
int main() { int n = 64; int *h = (int*)malloc(n * 4), *a, *o; for (int i = 0; i < n; i++) h[i] = i; cudaMalloc(&a, n * 4); cudaMalloc(&o, n * 4); cudaMemcpy(a, h, sizeof(h), cudaMemcpyHostToDevice); k<<<1, 64>>>(a, o); cudaMemcpy(h, o, n * 4, cudaMemcpyDeviceToHost); printf("%d %d\n", h[1], h[5]); cudaFree(a); cudaFree(o); free(h); }
