// keys claimed by atomicCAS, values written plainly by the owner, read by the next kernel
#include <cstdio>
__global__ void insert(int* key, int* val, int n, int cap) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; int k = i * 31 + 1; int s = k % cap; while (atomicCAS(&key[s], -1, k) != -1) s = (s + 1) % cap; val[s] = i; }
__global__ void find(const int* key, const int* val, int* o, int n, int cap) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; int k = i * 31 + 1; int s = k % cap; while (key[s] != k) s = (s + 1) % cap; o[i] = val[s]; }
int main() { int n = 700, cap = 1024; int *k, *v, *o, h[700]; cudaMalloc(&k, cap * 4); cudaMalloc(&v, cap * 4); cudaMalloc(&o, n * 4); cudaMemset(k, 0xff, cap * 4); insert<<<6, 128>>>(k, v, n, cap); find<<<6, 128>>>(k, v, o, n, cap); cudaMemcpy(h, o, n * 4, cudaMemcpyDeviceToHost); bool ok = true; for (int i = 0; i < n; i++) ok &= h[i] == i; printf("%d\n", ok); cudaFree(k); cudaFree(v); cudaFree(o); }
