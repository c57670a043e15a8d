// a lambda of the host, not __device__, given to a kernel: nvcc refuses
#include <cstdio>
template <class F> __global__ void each(int n, F f) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) f(i); }
int main() { int* a; cudaMallocManaged(&a, 256); int m = 3; each<<<1, 64>>>(64, [=](int i) { a[i] = i * m; }); cudaDeviceSynchronize(); printf("%d\n", a[5]); cudaFree(a); }
