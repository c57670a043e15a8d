// the minimum is set by cudaMemcpyAsync from pinned memory in stream a; kernels in a and b update it atomically; b does not wait
#include <cstdio>
#include <climits>
__global__ void mini(const int* a, int n, int* m) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) atomicMin(m, a[i]); }
int main() { const int n = 512; int *x, *m, *h; cudaMallocHost(&h, 4); *h = INT_MAX; cudaMalloc(&x, n * 4); cudaMalloc(&m, 4); cudaMemset(x, 1, n * 4); cudaDeviceSynchronize(); cudaStream_t a, b; cudaStreamCreate(&a); cudaStreamCreate(&b); cudaMemcpyAsync(m, h, 4, cudaMemcpyHostToDevice, a); mini<<<1, 256, 0, a>>>(x, n / 2, m); mini<<<1, 256, 0, b>>>(x + 256, n / 2, m); cudaDeviceSynchronize(); int r; cudaMemcpy(&r, m, 4, cudaMemcpyDeviceToHost); printf("%d\n", r); cudaStreamDestroy(a); cudaStreamDestroy(b); cudaFree(x); cudaFree(m); cudaFreeHost(h); }
