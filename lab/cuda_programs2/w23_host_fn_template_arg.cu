// a host function as the template argument of a kernel
#include <cstdio>
float half_of(float x) { return x / 2; }
template <float (*F)(float)> __global__ void map(float* a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] = F(a[i]); }
int main() {
  const int n = 64; float* a; cudaMallocManaged(&a, n * 4); for (int i = 0; i < n; i++) a[i] = i;
  map<half_of><<<1, n>>>(a, n); cudaDeviceSynchronize(); printf("%g\n", a[5]); cudaFree(a);
}
