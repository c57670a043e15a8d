// for (unsigned s = ..; s >= 0; s >>= 1) never ends
#include <cstdio>
__global__ void k(float* a) { __shared__ float s[64]; s[threadIdx.x] = a[threadIdx.x]; __syncthreads(); for (unsigned d = 32; d >= 0; d >>= 1) { if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d]; __syncthreads(); } if (!threadIdx.x) a[0] = s[0]; }
int main() { float h[64] = {1}, *a; cudaMalloc(&a, 256); cudaMemcpy(a, h, 256, cudaMemcpyHostToDevice); k<<<1, 64>>>(a); cudaMemcpy(h, a, 256, cudaMemcpyDeviceToHost); printf("%g\n", h[0]); cudaFree(a); }
