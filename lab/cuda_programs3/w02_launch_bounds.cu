// launched with more threads than __launch_bounds__ allows: a GPU refuses the launch; nobody looks
#include <cstdio>
__global__ void __launch_bounds__(128) fill(float* a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] = i; }
int main() { int n = 1024; float *d, h[1024] = {}; cudaMalloc(&d, sizeof h); cudaMemset(d, 0, sizeof h); fill<<<4, 256>>>(d, n);
  cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost); printf("%g\n", h[1023]); cudaFree(d); }
