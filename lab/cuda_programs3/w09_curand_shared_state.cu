// all threads draw from one state
#include <cstdio>
#include <curand_kernel.h>
__global__ void init(curandState* s) { curand_init(1, 0, 0, s); }
__global__ void draw(curandState* s, float* o) { int i = blockIdx.x * blockDim.x + threadIdx.x; o[i] = curand_uniform(s); }
int main() { curandState* s; float *o, h[128]; cudaMalloc(&s, sizeof *s); cudaMalloc(&o, 512); init<<<1, 1>>>(s); draw<<<2, 64>>>(s, o);
  cudaMemcpy(h, o, 512, cudaMemcpyDeviceToHost); printf("%d\n", h[0] < 1); cudaFree(s); cudaFree(o); }
