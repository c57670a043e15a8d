// a float in (0, 1] scaled to 32 bits: 2^32 becomes 4294967295 on a GPU
#include <cstdio>
__global__ void k(const float* a, unsigned* o) { o[threadIdx.x] = (unsigned)(a[threadIdx.x] * 4294967296.0f); }
int main() { float h[4] = {.5f, 1.f, .25f, 2.f}, *a; unsigned *o, r[4]; cudaMalloc(&a, 16); cudaMalloc(&o, 16); cudaMemcpy(a, h, 16, cudaMemcpyHostToDevice); k<<<1, 4>>>(a, o); cudaMemcpy(r, o, 16, cudaMemcpyDeviceToHost); printf("%u %u %u (2147483648 4294967295 4294967295)\n", r[0], r[1], r[3]); cudaFree(a); cudaFree(o); }
