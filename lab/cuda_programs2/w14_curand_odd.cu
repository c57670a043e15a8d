// curandGenerateNormal with an odd count fails on a GPU (CURAND_STATUS_LENGTH_NOT_MULTIPLE); nobody looks
#include <cstdio>
#include <curand.h>
int main() {
  const int n = 1001; float* d; float h[n]; cudaMalloc(&d, n * 4); cudaMemset(d, 0, n * 4);
  curandGenerator_t g; curandCreateGenerator(&g, CURAND_RNG_PSEUDO_DEFAULT); curandSetPseudoRandomGeneratorSeed(g, 1234ULL);
  curandGenerateNormal(g, d, n, 0.f, 1.f);
  cudaMemcpy(h, d, n * 4, cudaMemcpyDeviceToHost); double s = 0; for (float x : h) s += x * x; printf("var %g\n", s / n);
  curandDestroyGenerator(g); cudaFree(d);
}
