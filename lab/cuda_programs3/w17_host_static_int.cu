// a static variable of the host used by the kernel (nvcc: undefined in device code)
#include <cstdio>
#include <cstdlib>
static int width = 8;
__global__ void k(int* o) { o[threadIdx.x] = threadIdx.x * width; }
int main(int c, char** v) { if (c > 1) width = atoi(v[1]); int *o, r[4]; cudaMalloc(&o, 16); k<<<1, 4>>>(o); cudaMemcpy(r, o, 16, cudaMemcpyDeviceToHost); printf("%d\n", r[3]); cudaFree(o); }
