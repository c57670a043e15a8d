// the distance's logarithm as a bin: -inf to int is INT_MIN on both, NaN is 0 on a GPU; the bin of NaN out of bounds on an x86 only
#include <cstdio>
__global__ void k(const float* a, int* b) { int i = threadIdx.x; float v = a[i] / a[(i + 1) % 32] ; int bin = (int)v; if (bin < 16) atomicAdd(&b[bin], 1); }
int main() { float h[32]; for (int i = 0; i < 32; i++) h[i] = i < 2 ? 0 : i; float* a; int *b, r[16]; cudaMalloc(&a, 128); cudaMalloc(&b, 64); cudaMemset(b, 0, 64); cudaMemcpy(a, h, 128, cudaMemcpyHostToDevice); k<<<1, 32>>>(a, b); cudaMemcpy(r, b, 64, cudaMemcpyDeviceToHost); printf("%d\n", r[0]); cudaFree(a); cudaFree(b); }
