// right on a GPU: NaN to int is 0 there, so it cannot leave the table
#include <cstdio>
__global__ void k(const float* a, int* b, int n) { int i = threadIdx.x; int bin = (int)(a[i] * 8); bin = bin > 7 ? 7 : bin; atomicAdd(&b[bin], 1); }
int main() { float h[32]; for (int i = 0; i < 32; i++) h[i] = i / 32.f; h[5] = 0.f / 0.f; float* a; int *b, r[8]; cudaMalloc(&a, 128); cudaMalloc(&b, 32); cudaMemset(b, 0, 32); cudaMemcpy(a, h, 128, cudaMemcpyHostToDevice); k<<<1, 32>>>(a, b, 32); cudaMemcpy(r, b, 32, cudaMemcpyDeviceToHost); printf("%d\n", r[0]); cudaFree(a); cudaFree(b); }
