// distances: source is set to 0 by a plain store of every block's thread 0 (0 already), while atomicMin lowers others; bins of the next step cleared (zero already) while read
#include <cstdio>
__global__ void step(int* cur, int* next, int n, int off) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; int v = cur[i]; cur[i] = 0; if (v) atomicAdd(&next[(i + off) % n], v); if (v) atomicAdd(&cur[(i + off) % n], 0); }
int main() { const int n = 256; int *a, *b; cudaMallocManaged(&a, n * 4); cudaMallocManaged(&b, n * 4); for (int i = 0; i < n; i++) a[i] = b[i] = 0; a[3] = 1; for (int s = 0; s < 4; s++) { step<<<4, 64>>>(a, b, n, 70); int* t = a; a = b; b = t; } cudaDeviceSynchronize(); printf("%d\n", a[(3 + 280) % n]); cudaFree(a); cudaFree(b); }
