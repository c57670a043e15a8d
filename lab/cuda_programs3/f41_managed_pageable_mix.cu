// an array of pointers to rows in host memory given to a kernel (int**), rows in device memory
#include <cstdio>
__global__ void k(int** rows, int* o) { o[threadIdx.x] = rows[threadIdx.x][0]; }
int main() { int* h[4]; for (int i = 0; i < 4; i++) { cudaMalloc(&h[i], 16); cudaMemset(h[i], 0, 16); } int *o, r[4]; cudaMalloc(&o, 16); k<<<1, 4>>>(h, o); cudaMemcpy(r, o, 16, cudaMemcpyDeviceToHost); printf("%d\n", r[0]); for (int* p : h) cudaFree(p); cudaFree(o); }
