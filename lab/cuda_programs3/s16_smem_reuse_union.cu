// the same dynamic shared memory as ints and then as floats, with a barrier between
#include <cstdio>
__global__ void k(float* o) { extern __shared__ char raw[]; int* c = (int*)raw; float* f = (float*)raw; int t = threadIdx.x; c[t] = t; __syncthreads(); int v = c[blockDim.x - 1 - t]; __syncthreads(); f[t] = v * .5f; __syncthreads(); o[t] = f[(t + 1) % blockDim.x]; }
int main() { float *o, h[64]; cudaMalloc(&o, 256); k<<<1, 64, 256>>>(o); cudaMemcpy(h, o, 256, cudaMemcpyDeviceToHost); printf("%g\n", h[0]); cudaFree(o); }
