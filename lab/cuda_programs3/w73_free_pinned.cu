// pinned memory given back by free()
#include <cstdio>
#include <cstdlib>
int main() { float *h, *d; cudaMallocHost(&h, 4096); cudaMalloc(&d, 4096); for (int i = 0; i < 1024; i++) h[i] = i; cudaMemcpy(d, h, 4096, cudaMemcpyHostToDevice); cudaFree(d); free(h); puts("done"); }
