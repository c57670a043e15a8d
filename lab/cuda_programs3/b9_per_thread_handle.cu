// right: cudaStreamPerThread as a handle
#include <cstdio>
__global__ void k(int* a) { a[threadIdx.x] = threadIdx.x; }
int main() { int *a, h[32]; cudaMalloc(&a, 128); k<<<1, 32, 0, cudaStreamPerThread>>>(a); cudaMemcpyAsync(h, a, 128, cudaMemcpyDeviceToHost, cudaStreamPerThread); cudaStreamSynchronize(cudaStreamPerThread); printf("%d\n", h[5]); cudaFree(a); }
