// curand state advanced in a local copy that is never stored back: two kernels draw the same numbers (also on a GPU); counts as right
#include <cstdio>
#include <curand_kernel.h>
__global__ void init(curandState* s) { curand_init(7, threadIdx.x, 0, &s[threadIdx.x]); }
__global__ void draw(curandState* s, float* o) { curandState l = s[threadIdx.x]; o[threadIdx.x] = curand_uniform(&l); }
int main() { curandState* s; float *o, a[32], b[32]; cudaMalloc(&s, 32 * sizeof *s); cudaMalloc(&o, 128); init<<<1, 32>>>(s); draw<<<1, 32>>>(s, o); cudaMemcpy(a, o, 128, cudaMemcpyDeviceToHost); draw<<<1, 32>>>(s, o); cudaMemcpy(b, o, 128, cudaMemcpyDeviceToHost); printf("%d\n", a[3] == b[3]); cudaFree(s); cudaFree(o); }
