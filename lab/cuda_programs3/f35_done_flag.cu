// a shared flag that thread 0 may set again before slow warps have looked at it
#include <cstdio>
__global__ void k(float* a, int* steps) { __shared__ bool done; __shared__ float s[128]; int t = threadIdx.x, c = 0; if (t == 0) done = false; s[t] = a[t]; __syncthreads(); while (!done) { float v = s[t] * .5f; s[t] = v; c++; if (t == 0) done = v < 1; __syncthreads(); } a[t] = s[t]; if (t == 0) *steps = c; }
int main() { float h[128], *a; int *s, r; for (auto& x : h) x = 100; cudaMalloc(&a, 512); cudaMalloc(&s, 4); cudaMemcpy(a, h, 512, cudaMemcpyHostToDevice); k<<<1, 128>>>(a, s); cudaMemcpy(&r, s, 4, cudaMemcpyDeviceToHost); printf("%d\n", r); cudaFree(a); cudaFree(s); }
