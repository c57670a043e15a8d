// atomicAdd on size_t, which is unsigned long: no such overload
#include <cstdio>
__global__ void count(size_t* t) { atomicAdd(t, 1); }
int main() { size_t *t, r; cudaMalloc(&t, 8); cudaMemset(t, 0, 8); count<<<2, 64>>>(t); cudaMemcpy(&r, t, 8, cudaMemcpyDeviceToHost); printf("%zu\n", r); cudaFree(t); }
