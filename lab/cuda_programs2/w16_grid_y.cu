// a grid of 70000 rows in y: 65535 is the most
#include <cstdio>
__global__ void k(int* a, int rows) { int r = blockIdx.y; if (threadIdx.x == 0 && r < rows) a[r] = r; }
int main() {
  const int rows = 70000; int* a; cudaMalloc(&a, rows * 4); cudaMemset(a, 0, rows * 4); int* h = new int[rows];
  k<<<dim3(1, rows), 32>>>(a, rows);
  cudaMemcpy(h, a, rows * 4, cudaMemcpyDeviceToHost); printf("%d\n", h[69999]); cudaFree(a); delete[] h;
}
