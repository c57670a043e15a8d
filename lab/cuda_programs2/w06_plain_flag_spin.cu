// blocks wait for a plain flag (no volatile): nvcc hoists the load
#include <cstdio>
__global__ void k(int* ready, int* out) {
  if (blockIdx.x == 0) { if (threadIdx.x == 0) { out[0] = 7; __threadfence(); *ready = 1; } return; }
  if (threadIdx.x == 0) { while (*ready == 0) {} __threadfence(); out[blockIdx.x] = blockIdx.x; }
}
int main() {
  int *r, *o, h[4]; cudaMalloc(&r, 4); cudaMalloc(&o, 16); cudaMemset(r, 0, 4);
  k<<<4, 32>>>(r, o); cudaMemcpy(h, o, 16, cudaMemcpyDeviceToHost); printf("%d %d\n", h[0], h[3]); cudaFree(r); cudaFree(o);
}
