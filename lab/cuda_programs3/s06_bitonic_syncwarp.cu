// bitonic sort in shared memory: __syncwarp where partners are in one warp, __syncthreads elsewhere
#include <cstdio>
__global__ void sort(int* a) { __shared__ int s[256]; int t = threadIdx.x; s[t] = a[t]; __syncthreads();
  for (int k = 2; k <= 256; k *= 2) for (int j = k / 2; j; j /= 2) { int p = t ^ j; if (p > t) { bool up = !(t & k); int x = s[t], y = s[p]; if ((x > y) == up) { s[t] = y; s[p] = x; } } if (j > 16) __syncthreads(); else if (j == 1) __syncthreads(); else __syncwarp(); } a[t] = s[t]; }
int main() { int h[256], *a; for (int i = 0; i < 256; i++) h[i] = i * 7919 % 1009; cudaMalloc(&a, sizeof h); cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice); sort<<<1, 256>>>(a); cudaMemcpy(h, a, sizeof h, cudaMemcpyDeviceToHost); bool ok = true; for (int i = 1; i < 256; i++) ok &= h[i - 1] <= h[i]; printf("%d\n", ok); cudaFree(a); }
