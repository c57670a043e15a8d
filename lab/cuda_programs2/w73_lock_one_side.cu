// block-wide critical section: the lock is released by thread 0 before the other threads have written (no __syncthreads)
#include <cstdio>
__device__ int mutex;
__global__ void k(volatile int* sum, int n) {
  int t = threadIdx.x;
  if (t == 0) { while (atomicCAS(&mutex, 0, 1)) {} __threadfence(); }
  __syncthreads();
  if (t < n) sum[t] += blockIdx.x;
  if (t == 0) { __threadfence(); atomicExch(&mutex, 0); }
}
int main() { int* s; cudaMallocManaged(&s, 512); for (int i = 0; i < 128; i++) s[i] = 0; k<<<8, 128>>>(s, 128); cudaDeviceSynchronize(); printf("%d\n", s[100]); cudaFree(s); }
