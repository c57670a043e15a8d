#include <cstdio>
typedef int (*fn)(int);
__device__ int twice(int x) { return 2 * x; }
__device__ int square(int x) { return x * x; }
struct Ops { static fn table[2]; };
fn Ops::table[2] = {twice, square};
__constant__ fn d_table[2];
__global__ void k(int* a) { int i = threadIdx.x; a[i] = d_table[i & 1](i); }
int main() {
  int* a; cudaMallocManaged(&a, 128); cudaMemcpyToSymbol(d_table, Ops::table, sizeof Ops::table);
  k<<<1, 32>>>(a); cudaDeviceSynchronize(); printf("%d\n", a[5]); cudaFree(a);
}
