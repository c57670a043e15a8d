// two streams read the weights; the second one then updates them, without waiting for the first
#include <cstdio>
__global__ void infer(const float* w, const float* x, float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = w[i] * x[i]; }
__global__ void update(float* w, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) w[i] -= .1f; }
__global__ void fill(float* w, int n, float v) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) w[i] = v; }
int main() { const int n = 1024; float *w, *x, *y, *z; cudaMalloc(&w, n * 4); cudaMalloc(&x, n * 4); cudaMalloc(&y, n * 4); cudaMalloc(&z, n * 4); fill<<<4, 256>>>(w, n, 1); fill<<<4, 256>>>(x, n, 2); cudaDeviceSynchronize(); cudaStream_t a, b; cudaStreamCreate(&a); cudaStreamCreate(&b);
  infer<<<4, 256, 0, a>>>(w, x, y, n); infer<<<4, 256, 0, b>>>(w, x, z, n); update<<<4, 256, 0, b>>>(w, n); cudaDeviceSynchronize(); float h; cudaMemcpy(&h, y, 4, cudaMemcpyDeviceToHost); printf("%g\n", h); cudaStreamDestroy(a); cudaStreamDestroy(b); for (float* p : {w, x, y, z}) cudaFree(p); }
