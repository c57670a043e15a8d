// transitive closure, bool matrix, one launch for each k; stores only where new
#include <cstdio>
__global__ void step(bool* r, int n, int k) { int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y; if (j < n && r[i * n + k] && r[k * n + j]) r[i * n + j] = true; }
__global__ void step_or(bool* r, int n, int k) { int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y; if (j < n) r[i * n + j] = r[i * n + j] || (r[i * n + k] && r[k * n + j]); }
int main() { const int n = 48; bool* r; cudaMallocManaged(&r, n * n); for (int v = 0; v < 2; v++) { memset(r, 0, n * n); for (int i = 0; i + 1 < n; i++) r[i * n + i + 1] = true;
  for (int k = 0; k < n; k++) if (v) step_or<<<dim3(2, n), 32>>>(r, n, k); else step<<<dim3(2, n), 32>>>(r, n, k); cudaDeviceSynchronize(); int c = 0; for (int i = 0; i < n * n; i++) c += r[i]; printf("%d\n", c); } cudaFree(r); }
