// an integer division by zero: no trap on a GPU
#include <cstdio>
__global__ void avg(const int* s, const int* c, int* o) { o[threadIdx.x] = s[threadIdx.x] / c[threadIdx.x]; }
int main() { int h[4] = {8, 6, 4, 2}, n[4] = {2, 0, 1, 1}; int *a, *b, *o; cudaMalloc(&a, 16); cudaMalloc(&b, 16); cudaMalloc(&o, 16); cudaMemcpy(a, h, 16, cudaMemcpyHostToDevice); cudaMemcpy(b, n, 16, cudaMemcpyHostToDevice);
  avg<<<1, 4>>>(a, b, o); cudaMemcpy(h, o, 16, cudaMemcpyDeviceToHost); printf("%d %d\n", h[0], h[3]); cudaFree(a); cudaFree(b); cudaFree(o); }
