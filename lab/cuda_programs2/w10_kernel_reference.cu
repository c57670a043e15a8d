// a kernel that takes a reference: nvcc refuses
#include <cstdio>
struct Params { int n; float s; };
__global__ void k(float* a, const Params& p) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < p.n) a[i] *= p.s; }
int main() {
  const int n = 256; float* a; cudaMallocManaged(&a, n * 4); for (int i = 0; i < n; i++) a[i] = i;
  Params p{n, 2.f}; k<<<1, 256>>>(a, p); cudaDeviceSynchronize(); printf("%g\n", a[100]); cudaFree(a);
}
