// brute force: plain int flag in device memory, while (!*done) loop with stride; one solution
#include <cstdio>
__global__ void crack(unsigned target, int* done, unsigned* answer) { unsigned x = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x; while (!*done && x < 100000u) { unsigned h = x * 2654435761u; h ^= h >> 15; if (h == target) { *answer = x; *done = 1; return; } x += step; } }
int main() { unsigned s = 43210, t = s * 2654435761u; t ^= t >> 15; int* d; unsigned* a; cudaMallocManaged(&d, 4); cudaMallocManaged(&a, 4); *d = 0; *a = 0; crack<<<8, 64>>>(t, d, a); cudaDeviceSynchronize(); printf("%u\n", *a); cudaFree(d); cudaFree(a); }
