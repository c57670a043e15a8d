// all clear their own mark (already clear), then set the mark of where they point to
#include <cstdio>
__global__ void mark(const int* next, int* marked, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  marked[i] = 0;
  __syncthreads();
  marked[next[i]] = 1;
}
int main() {
  const int n = 1024; int *next, *m, h[n]; for (int i = 0; i < n; i++) h[i] = (i * 2) % n;
  cudaMalloc(&next, sizeof h); cudaMalloc(&m, sizeof h); cudaMemcpy(next, h, sizeof h, cudaMemcpyHostToDevice); cudaMemset(m, 0, sizeof h);
  mark<<<n / 128, 128>>>(next, m, n);
  cudaMemcpy(h, m, sizeof h, cudaMemcpyDeviceToHost); int s = 0; for (int x : h) s += x; printf("%d\n", s); cudaFree(next); cudaFree(m);
}
