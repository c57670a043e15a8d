// host fetches the device function's address (cudaMemcpyFromSymbol) and calls it "to verify"
#include <cstdio>
typedef float (*op)(float);
__device__ float relu(float x) { return x > 0 ? x : 0; }
__device__ op d_op = relu;
__global__ void k(float* a, op f) { a[threadIdx.x] = f(a[threadIdx.x]); }
int main() {
  op h; cudaMemcpyFromSymbol(&h, d_op, sizeof h); float* a; cudaMallocManaged(&a, 128); for (int i = 0; i < 32; i++) a[i] = i - 16;
  k<<<1, 32>>>(a, h); cudaDeviceSynchronize(); printf("%g expected %g\n", a[20], h(4.f)); cudaFree(a);
}
