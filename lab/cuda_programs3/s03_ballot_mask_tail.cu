// the mask of those lanes that take part, from a vote before the branch
#include <cstdio>
__global__ void sum(const int* a, int* o, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; unsigned m = __ballot_sync(0xffffffff, i < n); if (i < n) { int v = a[i]; for (int d = 16; d; d /= 2) { int w = __shfl_down_sync(m, v, d); int src = threadIdx.x % 32 + d; if (src < 32 && (m >> src & 1)) v += w; } if (threadIdx.x % 32 == 0) atomicAdd(o, v); } }
int main() { int n = 100, h[100]; for (int& x : h) x = 1; int *a, *o, r; cudaMalloc(&a, sizeof h); cudaMalloc(&o, 4); cudaMemset(o, 0, 4); cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice); sum<<<1, 128>>>(a, o, n); cudaMemcpy(&r, o, 4, cudaMemcpyDeviceToHost); printf("%d\n", r); cudaFree(a); cudaFree(o); }
