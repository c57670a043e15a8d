// min(int, unsigned) compares as unsigned in CUDA; abs of unsigned difference
#include <cstdio>
__global__ void k(int a, unsigned b, long long c, int* o) { o[0] = min(a, b); o[1] = max(a, b); o[2] = (int)min(c, (long long)a); o[3] = (int)max(-1.5f, 2.0); }
int main() { int *o, h[4]; cudaMalloc(&o, 16); k<<<1, 1>>>(-1, 1u, -5, o); cudaMemcpy(h, o, 16, cudaMemcpyDeviceToHost); printf("%d %d %d %d (1 -1 -5 2)\n", h[0], h[1], h[2], h[3]); cudaFree(o); }
