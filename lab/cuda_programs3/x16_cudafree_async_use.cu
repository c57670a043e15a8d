// the stream's memory is freed by cudaFreeAsync before the kernel that uses it is launched
#include <cstdio>
__global__ void k(int* a) { a[threadIdx.x] = 1; }
int main() { cudaStream_t s; cudaStreamCreate(&s); int* a; cudaMallocAsync(&a, 128, s); cudaFreeAsync(a, s); k<<<1, 32, 0, s>>>(a); printf("%s\n", cudaGetErrorString(cudaStreamSynchronize(s))); cudaStreamDestroy(s); }
