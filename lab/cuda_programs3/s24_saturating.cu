// right on a GPU: relies on saturation, as PTX and the programming guide's intrinsics define it
#include <cstdio>
__global__ void k(const float* a, int* o) { int v = __float2int_rn(a[threadIdx.x]); o[threadIdx.x] = v == 2147483647; }
int main() { float h[4] = {1e10f, 1, 1e20f, 3}; float* a; int *o, r[4]; cudaMalloc(&a, 16); cudaMalloc(&o, 16); cudaMemcpy(a, h, 16, cudaMemcpyHostToDevice); k<<<1, 4>>>(a, o); cudaMemcpy(r, o, 16, cudaMemcpyDeviceToHost); printf("%d %d %d %d (1 0 1 0)\n", r[0], r[1], r[2], r[3]); cudaFree(a); cudaFree(o); }
