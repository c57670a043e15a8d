// a particle's cell from a coordinate that became NaN: cell 0 on a GPU, an access far away here
#include <cstdio>
__global__ void bin(const float* x, int* cells, int n, float h) { int i = threadIdx.x; int c = (int)floorf(x[i] / h); c = max(0, min(c, 15)); atomicAdd(&cells[c], 1); }
int main() { float x[32]; for (int i = 0; i < 32; i++) x[i] = i * .5f; x[4] = 3e38f * 10.f; float* d; int *c, r[16]; cudaMalloc(&d, 128); cudaMalloc(&c, 64); cudaMemset(c, 0, 64); cudaMemcpy(d, x, 128, cudaMemcpyHostToDevice); bin<<<1, 32>>>(d, c, 32, 1.f); cudaMemcpy(r, c, 64, cudaMemcpyDeviceToHost); printf("%d %d (2 3 on a GPU)\n", r[0], r[15]); cudaFree(d); cudaFree(c); }
