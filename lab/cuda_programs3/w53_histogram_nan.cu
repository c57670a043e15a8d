// a histogram of floats some of which are NaN: bin 0 on a GPU
#include <cstdio>
__global__ void hist(const float* a, int* b, int n) { int i = threadIdx.x; if (i < n) { int k = (int)(a[i] * 10); if (k > 9) k = 9; if (k < 0) k = 0; atomicAdd(&b[k], 1); } }
int main() { float h[64], *a; int *b, r[10]; for (int i = 0; i < 64; i++) h[i] = i == 3 ? 3e9f : i / 64.f; cudaMalloc(&a, 256); cudaMalloc(&b, 40); cudaMemset(b, 0, 40); cudaMemcpy(a, h, 256, cudaMemcpyHostToDevice); hist<<<1, 64>>>(a, b, 64); cudaMemcpy(r, b, 40, cudaMemcpyDeviceToHost); printf("%d %d\n", r[0], r[9]); cudaFree(a); cudaFree(b); }
