// kernels in two (blocking) streams with one in the default stream between: ordered by the default stream
#include <cstdio>
__global__ void setv(float* a, float v) { a[blockIdx.x * 128 + threadIdx.x] = v; }
__global__ void addv(float* a, float v) { a[blockIdx.x * 128 + threadIdx.x] += v; }
int main() { float *a, h; cudaMalloc(&a, 4096); cudaStream_t s, t; cudaStreamCreate(&s); cudaStreamCreate(&t); setv<<<8, 128, 0, s>>>(a, 1); addv<<<8, 128>>>(a, 2); addv<<<8, 128, 0, t>>>(a, 4); cudaStreamSynchronize(t); cudaMemcpy(&h, a, 4, cudaMemcpyDeviceToHost); printf("%g\n", h); cudaStreamDestroy(s); cudaStreamDestroy(t); cudaFree(a); }
