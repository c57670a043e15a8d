// the programming guide's threadFenceReduction, its __syncthreads() before the fence forgotten: all threads store partial sums
#include <cstdio>
__device__ unsigned count = 0;
__global__ void rows(const float* a, int n, float* part, float* out) {
  __shared__ bool last; int t = threadIdx.x; float s = 0;
  for (int i = blockIdx.x * n; i < (blockIdx.x + 1) * n; i++) s += a[i * blockDim.x + t];
  part[blockIdx.x * blockDim.x + t] = s;
  if (t == 0) { __threadfence(); last = atomicInc(&count, gridDim.x) == gridDim.x - 1; }
  __syncthreads();
  if (last) { s = 0; for (int b = 0; b < gridDim.x; b++) s += part[b * blockDim.x + t]; out[t] = s; if (t == 0) count = 0; }
}
int main() { const int n = 8, T = 128, B = 6; float *a, *p, *o; cudaMallocManaged(&a, n * T * B * 4); cudaMalloc(&p, T * B * 4); cudaMallocManaged(&o, T * 4); for (int i = 0; i < n * T * B; i++) a[i] = 1; rows<<<B, T>>>(a, n, p, o); cudaDeviceSynchronize(); printf("%g\n", o[100]); cudaFree(a); cudaFree(p); cudaFree(o); }
