// __syncthreads_or / _count as a loop condition, bubble (odd-even) sort in one block
#include <cstdio>
__global__ void sort(int* a, int n) { __shared__ int s[128]; int t = threadIdx.x; s[t] = a[t]; __syncthreads(); int swapped; do { swapped = 0; for (int odd = 0; odd < 2; odd++) { int i = 2 * t + odd; if (i + 1 < n && s[i] > s[i + 1]) { int x = s[i]; s[i] = s[i + 1]; s[i + 1] = x; swapped = 1; } __syncthreads(); } } while (__syncthreads_or(swapped)); a[t] = s[t]; }
int main() { int h[128], *a; for (int i = 0; i < 128; i++) h[i] = i * 91 % 131; cudaMalloc(&a, 512); cudaMemcpy(a, h, 512, cudaMemcpyHostToDevice); sort<<<1, 128>>>(a, 128); cudaMemcpy(h, a, 512, cudaMemcpyDeviceToHost); bool ok = true; for (int i = 1; i < 128; i++) ok &= h[i - 1] <= h[i]; printf("%d\n", ok); cudaFree(a); }
