// cuRAND into managed memory; the host reads without waiting
#include <cstdio>
#include <curand.h>
int main() { const int n = 4096; float* a; cudaMallocManaged(&a, n * 4); curandGenerator_t g; curandCreateGenerator(&g, CURAND_RNG_PSEUDO_DEFAULT); curandGenerateUniform(g, a, n); float s = 0; for (int i = 0; i < n; i++) s += a[i]; printf("%d\n", s > 100); cudaDeviceSynchronize(); curandDestroyGenerator(g); cudaFree(a); }
