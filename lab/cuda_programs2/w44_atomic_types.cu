// atomics that CUDA does not have: long long addition, size_t, float maximum: nvcc refuses
#include <cstdio>
__global__ void k(const float* a, long long* sum, size_t* cnt, float* best) { int i = threadIdx.x; atomicAdd(sum, (long long)a[i]); atomicAdd(cnt, (size_t)1); atomicMax(best, a[i]); }
int main() { float *a, *b; long long* s; size_t* c; cudaMallocManaged(&a, 128); cudaMallocManaged(&b, 4); cudaMallocManaged(&s, 8); cudaMallocManaged(&c, 8); *s = 0; *c = 0; *b = 0; for (int i = 0; i < 32; i++) a[i] = i; k<<<1, 32>>>(a, s, c, b); cudaDeviceSynchronize(); printf("%lld %zu %g\n", *s, *c, *b); cudaFree(a); cudaFree(b); cudaFree(s); cudaFree(c); }
