// __attribute__((packed)): nvcc 
#include <cstdio>
struct __attribute__((packed)) Rec { char tag; int id; double w; };
__global__ void k(const Rec* f, double* o) { o[threadIdx.x] = f[threadIdx.x].id + f[threadIdx.x].w; }
int main() { Rec h[32]; for (int i = 0; i < 32; i++) h[i] = {1, i, .5}; Rec* f; double *o, r[32]; cudaMalloc(&f, sizeof h); cudaMalloc(&o, 256); cudaMemcpy(f, h, sizeof h, cudaMemcpyHostToDevice);
  k<<<1, 32>>>(f, o); cudaMemcpy(r, o, 256, cudaMemcpyDeviceToHost); printf("%g\n", r[5]); cudaFree(f); cudaFree(o); }
