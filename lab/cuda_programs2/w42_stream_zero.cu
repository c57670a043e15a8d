// two streams, no order: one "zeroes" gradients that are zero by chance, the other copies them out
#include <cstdio>
__global__ void decay(float* g, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) g[i] *= .9f; }
int main() { const int n = 1024; float *g, *h; cudaMalloc(&g, n * 4); cudaMallocHost(&h, n * 4); cudaMemset(g, 0, n * 4); cudaDeviceSynchronize(); cudaStream_t a, b; cudaStreamCreate(&a); cudaStreamCreate(&b); decay<<<4, 256, 0, a>>>(g, n); cudaMemcpyAsync(h, g, n * 4, cudaMemcpyDeviceToHost, b); cudaDeviceSynchronize(); printf("%g\n", h[3]); cudaStreamDestroy(a); cudaStreamDestroy(b); cudaFree(g); cudaFreeHost(h); }
