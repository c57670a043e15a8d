// a device generator writes to host memory
#include <cstdio>
#include <curand.h>
int main() { float h[64] = {}; curandGenerator_t g; curandCreateGenerator(&g, CURAND_RNG_PSEUDO_DEFAULT); curandStatus_t s = curandGenerateUniform(g, h, 64); cudaDeviceSynchronize(); printf("%d %d\n", s, h[0] > 0); curandDestroyGenerator(g); }
