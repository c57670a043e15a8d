// long double in a kernel is double on a GPU (nvcc warns)
#include <cstdio>
__global__ void k(double* o) { long double x = 1.0L; long double e = 1e-18L; x += e; o[0] = (double)((x - 1.0L) * 1e18L); o[1] = sizeof(long double); }
int main() { double *o, h[2]; cudaMalloc(&o, 16); k<<<1, 1>>>(o); cudaMemcpy(h, o, 16, cudaMemcpyDeviceToHost); printf("%g %g\n", h[0], h[1]); cudaFree(o); }
