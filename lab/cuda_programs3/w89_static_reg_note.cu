// device-side malloc heap limit set after a launch; the error is not looked at
#include <cstdio>
__global__ void k(int n) { int* p = (int*)malloc(n * 4); if (p) { p[0] = 1; free(p); } else printf("no memory\n"); }
int main() { k<<<1, 1>>>(10); cudaDeviceSynchronize(); cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20); k<<<1, 1>>>(8 << 20); cudaDeviceSynchronize(); }
