// memory used after cudaDeviceReset
#include <cstdio>
__global__ void k(float* a) { a[threadIdx.x] = 1; }
int main() { float *a, h[32]; cudaMalloc(&a, 128); k<<<1, 32>>>(a); cudaDeviceSynchronize(); cudaDeviceReset(); cudaError_t e = cudaMemcpy(h, a, 128, cudaMemcpyDeviceToHost); printf("%s\n", cudaGetErrorString(e)); }
