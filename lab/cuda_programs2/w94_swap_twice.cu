// in a block: thread 0 changes a value and changes it back without a barrier; the others read it meanwhile
#include <cstdio>
__global__ void k(float* a, float* o) { int t = threadIdx.x; if (t == 0) { float old = a[0]; a[0] = -1e9f; o[0] = a[0] + 1; a[0] = old; } else o[t] = a[0] + t; }
int main() { float *a, *o; cudaMallocManaged(&a, 4); cudaMallocManaged(&o, 512); *a = 5; k<<<1, 128>>>(a, o); cudaDeviceSynchronize(); printf("%g\n", o[100]); cudaFree(a); cudaFree(o); }
