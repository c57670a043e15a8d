// doubles behind an odd number of ints in dynamic shared memory
#include <cstdio>
__global__ void k(double* o, int n) { extern __shared__ char raw[]; int* c = (int*)raw; double* d = (double*)(c + n); if (threadIdx.x < n) c[threadIdx.x] = threadIdx.x; d[threadIdx.x] = 2; __syncthreads(); o[threadIdx.x] = d[threadIdx.x] + c[threadIdx.x % n]; }
int main() { double *o, h[32]; cudaMalloc(&o, 256); k<<<1, 32, 33 * 4 + 256>>>(o, 31); cudaMemcpy(h, o, 256, cudaMemcpyDeviceToHost); printf("%g\n", h[3]); cudaFree(o); }
