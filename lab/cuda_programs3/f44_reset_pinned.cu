// right: results are copied, then cudaDeviceReset between two independent parts, everything allocated again
#include <cstdio>
__global__ void k(int* a, int v) { a[threadIdx.x] = v; }
int part(int v) { int *a, r; cudaMalloc(&a, 128); k<<<1, 32>>>(a, v); cudaMemcpy(&r, a, 4, cudaMemcpyDeviceToHost); cudaFree(a); return r; }
int main() { int x = part(1); cudaDeviceReset(); printf("%d\n", x + part(2)); }
