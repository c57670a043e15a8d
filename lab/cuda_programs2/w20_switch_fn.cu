// host picks a device function with ?: / switch and passes it
#include <cstdio>
typedef float (*op_t)(float, float);
__device__ float add(float a, float b) { return a + b; }
__device__ float mul(float a, float b) { return a * b; }
op_t pick(char c) { switch (c) { case '+': return add; default: return mul; } }
__global__ void zip(float* a, const float* b, op_t f, int n) { int i = threadIdx.x; if (i < n) a[i] = f(a[i], b[i]); }
int main(int argc, char**) {
  const int n = 64; float *a, *b; cudaMallocManaged(&a, n * 4); cudaMallocManaged(&b, n * 4); for (int i = 0; i < n; i++) a[i] = b[i] = i;
  zip<<<1, n>>>(a, b, pick(argc > 1 ? '*' : '+'), n); cudaDeviceSynchronize(); printf("%g\n", a[5]); cudaFree(a); cudaFree(b);
}
