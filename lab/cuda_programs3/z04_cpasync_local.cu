// a kernel keeps its parameter structure's address in shared memory for the other threads; local arrays passed through atomicExch lists
#include <cstdio>
struct Work { int lo, hi; };
__global__ void k(int* o, int n) { __shared__ Work* w; Work mine{(int)threadIdx.x * 10, (int)threadIdx.x * 10 + 5}; if (threadIdx.x == blockDim.x - 1) w = &mine; __syncthreads(); o[threadIdx.x] = w->lo; __syncthreads(); }
int main() { int *o, h[64]; cudaMalloc(&o, 256); k<<<1, 64>>>(o, 1); cudaMemcpy(h, o, 256, cudaMemcpyDeviceToHost); printf("%d %d (0 630 on a GPU)\n", h[0], h[63]); cudaFree(o); }
