// kernel parameter modified through a const_cast in a __constant__-like parameter: a private copy (right)
#include <cstdio>
struct P { int n; float* o; };
__global__ void k(P p) { p.n += threadIdx.x; p.o[threadIdx.x] = p.n; }
int main() { P p{5, nullptr}; cudaMalloc(&p.o, 128); k<<<1, 32>>>(p); float h[32]; cudaMemcpy(h, p.o, 128, cudaMemcpyDeviceToHost); printf("%g %d\n", h[3], p.n); cudaFree(p.o); }
