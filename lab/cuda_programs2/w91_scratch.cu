// deep copy forgotten: structure on the device, its rows pointer is the host's
#include <cstdio>
#include <cstdlib>
struct M { int n; float* v; };
__global__ void k(M* m, float* o) { o[threadIdx.x] = m->v[threadIdx.x]; }
int main() { M h{32, (float*)malloc(128)}, *d; float* o; for (int i = 0; i < 32; i++) h.v[i] = i; cudaMalloc(&d, sizeof h); cudaMallocManaged(&o, 128); cudaMemcpy(d, &h, sizeof h, cudaMemcpyHostToDevice); k<<<1, 32>>>(d, o); cudaDeviceSynchronize(); printf("%g\n", o[3]); cudaFree(d); cudaFree(o); free(h.v); }
