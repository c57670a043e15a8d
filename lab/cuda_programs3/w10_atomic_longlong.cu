// atomicAdd of long long: CUDA has it for unsigned long long only
#include <cstdio>
__global__ void sum(const int* a, long long* t, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) atomicAdd(t, (long long)a[i]); }
int main() { int n = 256, h[256]; for (int& x : h) x = 3; int* a; long long *t, r; cudaMalloc(&a, sizeof h); cudaMalloc(&t, 8); cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice); cudaMemset(t, 0, 8);
  sum<<<1, 256>>>(a, t, n); cudaMemcpy(&r, t, 8, cudaMemcpyDeviceToHost); printf("%lld\n", r); cudaFree(a); cudaFree(t); }
