// dynamic parallelism: the parent uses the child's result without any wait
// FLAGS: -rdc=true
#include <cstdio>
__global__ void child(int* a) { a[threadIdx.x] = threadIdx.x; }
__global__ void parent(int* a, int* sum) { child<<<1, 32>>>(a); int s = 0; for (int i = 0; i < 32; i++) s += a[i]; *sum = s; }
int main() { int *a, *s; cudaMallocManaged(&a, 128); cudaMallocManaged(&s, 4); for (int i = 0; i < 32; i++) a[i] = 0; parent<<<1, 1>>>(a, s); cudaDeviceSynchronize(); printf("%d\n", *s); cudaFree(a); cudaFree(s); }
