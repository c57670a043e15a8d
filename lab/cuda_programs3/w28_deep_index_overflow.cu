// row * width in int overflows (46341^2 > 2^31)
#include <cstdio>
__global__ void k(unsigned char* a, int width, int rows) { int row = blockIdx.x * 1024 + threadIdx.x; if (row < rows && row > rows - 3) a[row * width] = 1; }
int main() { int rows = 66000, width = 40000; unsigned char* a; if (cudaMalloc(&a, (size_t)rows * width) != cudaSuccess) return puts("no memory"), 1; k<<<65, 1024>>>(a, width, rows); cudaError_t e = cudaDeviceSynchronize(); printf("%s\n", cudaGetErrorString(e)); cudaFree(a); }
