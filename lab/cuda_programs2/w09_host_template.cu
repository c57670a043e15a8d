#include <cstdio>
template <class T> T clamp_to(T x, T lo, T hi) { return x < lo ? lo : x > hi ? hi : x; }
namespace util { inline int round_up(int a, int b) { return (a + b - 1) / b * b; } }
__global__ void k(float* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = clamp_to(a[i], 0.f, 1.f) + util::round_up(i, 4);
}
int main() {
  const int n = 256; float* a; cudaMallocManaged(&a, n * 4); for (int i = 0; i < n; i++) a[i] = i * 0.1f;
  k<<<util::round_up(n, 128) / 128, 128>>>(a, n); cudaDeviceSynchronize(); printf("%g\n", a[100]); cudaFree(a);
}
