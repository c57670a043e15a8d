// bar.sync 1 with 64 threads, but three warps come
#include <cstdio>
__global__ void k(int* o) { __shared__ int s[96]; int t = threadIdx.x; s[t] = t; asm volatile("bar.sync 1, 64;" ::: "memory"); o[t] = s[95 - t]; }
int main() { int* o; cudaMallocManaged(&o, 96 * 4); k<<<1, 96>>>(o); cudaDeviceSynchronize(); printf("%d\n", o[3]); cudaFree(o); }
