// last-block sum of per-thread partial sums: no __syncthreads() before the fence and the counter
#include <cstdio>
__device__ unsigned done;
__global__ void k(const float* a, float* part, float* out) {
  __shared__ bool last; __syncthreads(); int t = threadIdx.x, i = blockIdx.x * 64 + t;
  part[i] = a[i] * a[i];
  if (t == 0) { __threadfence(); last = atomicAdd(&done, 1) == gridDim.x - 1; }
  __syncthreads();
  if (last) { float s = 0; for (int b = 0; b < gridDim.x; b++) s += part[b * 64 + t]; atomicAdd(out, s); }
}
int main() { float *a, *p, *o; cudaMallocManaged(&a, 4096); cudaMalloc(&p, 4096); cudaMallocManaged(&o, 4); *o = 0; for (int i = 0; i < 1024; i++) a[i] = 1; k<<<16, 64>>>(a, p, o); cudaDeviceSynchronize(); printf("%g\n", *o); cudaFree(a); cudaFree(p); cudaFree(o); }
