// a pointer to a local variable is given to a child kernel (-rdc=true): illegal
#include <cstdio>
__global__ void child(int* p, int* o) { p[threadIdx.x] = threadIdx.x; o[threadIdx.x] = p[threadIdx.x] + 1; }
__global__ void parent(int* o) { int tmp[32]; child<<<1, 32>>>(tmp, o); }
int main() { int *o, h[32]; cudaMalloc(&o, 128); parent<<<1, 1>>>(o); cudaMemcpy(h, o, 128, cudaMemcpyDeviceToHost); printf("%d\n", h[2]); cudaFree(o); }
