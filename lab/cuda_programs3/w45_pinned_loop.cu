// a loop that writes its pinned scalar again while the copy of the iteration before may go on
#include <cstdio>
__global__ void add(int* t, const int* v) { *t += *v; }
int main() { int *h, *v, *t; cudaMallocHost(&h, 4); cudaMalloc(&v, 4); cudaMalloc(&t, 4); cudaMemset(t, 0, 4); cudaStream_t s; cudaStreamCreate(&s);
  for (int i = 0; i < 5; i++) { *h = i; cudaMemcpyAsync(v, h, 4, cudaMemcpyHostToDevice, s); add<<<1, 1, 0, s>>>(t, v); } cudaStreamSynchronize(s); int r; cudaMemcpy(&r, t, 4, cudaMemcpyDeviceToHost); printf("%d\n", r); cudaStreamDestroy(s); cudaFreeHost(h); cudaFree(v); cudaFree(t); }
