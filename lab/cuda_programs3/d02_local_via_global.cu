// each thread keeps the address of its private structure in a global array for the next kernel
#include <cstdio>
struct S { int a[4]; };
__global__ void make(S** p) { S s; for (int i = 0; i < 4; i++) s.a[i] = threadIdx.x * 10 + i; p[threadIdx.x] = &s; }
__global__ void use(S** p, int* o) { o[threadIdx.x] = p[threadIdx.x]->a[2]; }
int main() { S** p; int *o, h[32]; cudaMalloc(&p, 256); cudaMalloc(&o, 128); make<<<1, 32>>>(p); use<<<1, 32>>>(p, o); cudaMemcpy(h, o, 128, cudaMemcpyDeviceToHost); printf("%d\n", h[3]); cudaFree(p); cudaFree(o); }
