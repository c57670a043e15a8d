// __any_sync with the full mask in a loop that lanes leave at different times
#include <cstdio>
__global__ void k(const int* a, int* o) { int n = a[threadIdx.x], c = 0; for (int i = 0; i < n; i++) if (__any_sync(0xffffffff, i == 3)) c++; o[threadIdx.x] = c + __shfl_sync(0xffffffff, n, 0); }
int main() { int h[32]; for (int i = 0; i < 32; i++) h[i] = i % 7; int *a, *o; cudaMalloc(&a, 128); cudaMalloc(&o, 128); cudaMemcpy(a, h, 128, cudaMemcpyHostToDevice); k<<<1, 32>>>(a, o); cudaMemcpy(h, o, 128, cudaMemcpyDeviceToHost); printf("%d\n", h[6]); cudaFree(a); cudaFree(o); }
