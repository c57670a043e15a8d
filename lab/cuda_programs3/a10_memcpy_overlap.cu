// cudaMemcpy within one array, by one element: source and destination overlap
#include <cstdio>
int main() { const int n = 4096; static int h[n]; for (int i = 0; i < n; i++) h[i] = i; int* d; cudaMalloc(&d, sizeof h); cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice); cudaMemcpy(d + 1, d, (n - 1) * 4, cudaMemcpyDeviceToDevice); cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost); printf("%d %d\n", h[1], h[4000]); cudaFree(d); }
