// a constexpr function of the file's own, without __device__
#include <cstdio>
constexpr int square(int x) { return x * x; }
__global__ void k(int* o) { o[threadIdx.x] = square(threadIdx.x); }
int main() { int *o, h[32]; cudaMalloc(&o, 128); k<<<1, 32>>>(o); cudaMemcpy(h, o, 128, cudaMemcpyDeviceToHost); printf("%d\n", h[5]); cudaFree(o); }
