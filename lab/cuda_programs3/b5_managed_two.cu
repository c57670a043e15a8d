// right: the host fills one managed array while a kernel uses another (concurrent access), looked at before
#include <cstdio>
__global__ void k(float* a, int n) { int i = blockIdx.x * 256 + threadIdx.x; if (i < n) a[i] *= 2; }
int main() { int c = 0; cudaDeviceGetAttribute(&c, cudaDevAttrConcurrentManagedAccess, 0); const int n = 1 << 14; float *a, *b; cudaMallocManaged(&a, n * 4); cudaMallocManaged(&b, n * 4); for (int i = 0; i < n; i++) a[i] = 1; k<<<n / 256, 256>>>(a, n); if (!c) cudaDeviceSynchronize(); for (int i = 0; i < n; i++) b[i] = 3; k<<<n / 256, 256>>>(b, n); cudaDeviceSynchronize(); printf("%g %g\n", a[3], b[4]); cudaFree(a); cudaFree(b); }
