// in-place Gauss-Jordan with all (i,j): threads of pivot row store the same value they read; guarded by a factor of zero
#include <cstdio>
__global__ void gj(float* A, int n, int k, const float* col) { int j = threadIdx.x, i = blockIdx.x; float f = i == k ? 0.f : col[i] / col[k]; A[i * n + j] -= f * A[k * n + j]; }
__global__ void column(const float* A, int n, int k, float* col) { col[threadIdx.x] = A[threadIdx.x * n + k]; }
int main() { const int n = 32; float *A, *c; cudaMallocManaged(&A, n * n * 4); cudaMallocManaged(&c, n * 4); for (int i = 0; i < n * n; i++) A[i] = i / n == i % n ? 8 : .1f * (i % 5); for (int k = 0; k < n; k++) { column<<<1, n>>>(A, n, k, c); gj<<<n, n>>>(A, n, k, c); } cudaDeviceSynchronize(); printf("%g\n", A[0]); cudaFree(A); cudaFree(c); }
