// normalises by the last element, in place, over several blocks: the last thread overwrites what the others read
#include <cstdio>
__global__ void norm(float* a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] = a[i] / a[n - 1]; }
int main() { const int n = 1024; float* a; cudaMallocManaged(&a, n * 4); for (int i = 0; i < n; i++) a[i] = i + 1; norm<<<4, 256>>>(a, n); cudaDeviceSynchronize(); printf("%g\n", a[0]); cudaFree(a); }
