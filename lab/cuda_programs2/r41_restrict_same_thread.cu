// atomics-free matrix transpose in place by pairs; SGEMM by vectors; both from lectures
#include <cstdio>
__global__ void tr(float* a, int n) { int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y; if (x < y && y < n) { float t = a[y * n + x]; a[y * n + x] = a[x * n + y]; a[x * n + y] = t; } }
template <int T> __global__ void gemm(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int n) { __shared__ float a[T][T + 1], b[T][T]; int x = threadIdx.x, y = threadIdx.y, r = blockIdx.y * T + y, c = blockIdx.x * T + x; float s = 0; for (int k = 0; k < n; k += T) { a[y][x] = r < n && k + x < n ? A[r * n + k + x] : 0; b[y][x] = c < n && k + y < n ? B[(k + y) * n + c] : 0; __syncthreads();
#pragma unroll
 for (int i = 0; i < T; i++) s += a[y][i] * b[i][x]; __syncthreads(); } if (r < n && c < n) C[r * n + c] = s; }
int main() { const int n = 50; float *A, *C; cudaMallocManaged(&A, n * n * 4); cudaMallocManaged(&C, n * n * 4); for (int i = 0; i < n * n; i++) A[i] = i % 7; tr<<<dim3(4, 4), dim3(16, 16)>>>(A, n); gemm<16><<<dim3(4, 4), dim3(16, 16)>>>(A, A, C, n); cudaDeviceSynchronize(); printf("%g\n", C[60]); cudaFree(A); cudaFree(C); }
