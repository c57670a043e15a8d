// tables of device functions in device and constant memory, copied to the host and back; host has its own table of the host's versions
#include <cstdio>
typedef float (*op)(float, float);
__host__ __device__ float add(float a, float b) { return a + b; }
__host__ __device__ float mul(float a, float b) { return a * b; }
__device__ float mod(float a, float b) { return fmodf(a, b); }
__device__ op table[] = {add, mul, mod};
__constant__ op chosen;
static op host_table[] = {add, mul};
template <op F> __global__ void fixed(float* a) { a[threadIdx.x] = F(a[threadIdx.x], 2.f); }
__global__ void k(float* a, int which) { a[threadIdx.x] = table[which](a[threadIdx.x], 3.f); }
__global__ void c(float* a) { a[threadIdx.x] = chosen(a[threadIdx.x], 5.f); }
int main() { float* a; cudaMallocManaged(&a, 128); float want = 7; for (int i = 0; i < 32; i++) a[i] = 7; op h[3]; cudaMemcpyFromSymbol(h, table, sizeof h); cudaMemcpyToSymbol(chosen, &h[2], sizeof(op));
  for (int w = 0; w < 2; w++) { k<<<1, 32>>>(a, w); want = host_table[w](want, 3.f); } c<<<1, 32>>>(a); want = fmodf(want, 5.f); fixed<add><<<1, 32>>>(a); want = add(want, 2.f); cudaDeviceSynchronize(); printf("%g %g\n", a[3], want); cudaFree(a); }
