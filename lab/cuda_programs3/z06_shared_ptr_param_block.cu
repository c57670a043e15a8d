// generic pointers that are local in one branch and shared in the other (right)
#include <cstdio>
__device__ int sum(const int* p, int n) { int s = 0; for (int i = 0; i < n; i++) s += p[i]; return s; }
__global__ void k(int* o) { __shared__ int s[8]; int l[8]; if (threadIdx.x < 8) s[threadIdx.x] = threadIdx.x; for (int i = 0; i < 8; i++) l[i] = threadIdx.x; __syncthreads(); o[threadIdx.x] = sum(threadIdx.x % 2 ? s : l, 8); }
int main() { int *o, h[32]; cudaMalloc(&o, 128); k<<<1, 32>>>(o); cudaMemcpy(h, o, 128, cudaMemcpyDeviceToHost); printf("%d %d\n", h[2], h[3]); cudaFree(o); }
