// std::complex in a kernel (Mandelbrot)
#include <cstdio>
#include <complex>
__global__ void k(int* o) { std::complex<float> c(-.5f, threadIdx.x * .02f), z = 0; int i = 0; while (i < 100 && z.real() * z.real() + z.imag() * z.imag() < 4) { z = z * z + c; i++; } o[threadIdx.x] = i; }
int main() { int *o, h[64]; cudaMalloc(&o, 256); k<<<1, 64>>>(o); cudaMemcpy(h, o, 256, cudaMemcpyDeviceToHost); printf("%d %d\n", h[0], h[60]); cudaFree(o); }
