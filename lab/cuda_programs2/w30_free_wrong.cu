// managed memory freed with free(), pinned with delete[]: heap corruption
#include <cstdio>
#include <cstdlib>
__global__ void k(int* a) { a[threadIdx.x] *= 2; }
int main() {
  int *a; cudaMallocManaged(&a, 128); for (int i = 0; i < 32; i++) a[i] = i;
  k<<<1, 32>>>(a); cudaDeviceSynchronize(); printf("%d\n", a[3]); free(a);
}
