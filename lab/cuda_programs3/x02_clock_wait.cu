// right: busy waiting by clock64 and __nanosleep, globaltimer
#include <cstdio>
__global__ void k(int* o) { long long t = clock64(); while (clock64() - t < 100000) __nanosleep(100); unsigned long long g; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(g)); o[threadIdx.x] = g != 0; }
int main() { int *o, h[32]; cudaMalloc(&o, 128); k<<<1, 32>>>(o); cudaMemcpy(h, o, 128, cudaMemcpyDeviceToHost); printf("%d\n", h[3]); cudaFree(o); }
