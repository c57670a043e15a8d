// as w89, with the error shown
#include <cstdio>
__global__ void k(int n) { int* p = (int*)malloc((size_t)n * 4); if (p) { p[0] = 1; free(p); printf("ok\n"); } else printf("no memory\n"); }
int main() { k<<<1, 1>>>(10); cudaDeviceSynchronize(); cudaError_t e = cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20); printf("%s\n", cudaGetErrorName(e)); k<<<1, 1>>>(8 << 20); cudaDeviceSynchronize(); }
