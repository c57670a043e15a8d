// Game of life in place, with a still pattern (a block), then a blinker in a separate run of the same kernel with one thread
#include <cstdio>
__global__ void life(unsigned char* g, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
  int n = 0; for (int j = -1; j <= 1; j++) for (int i = -1; i <= 1; i++) if (i || j) n += g[(y + j) * w + x + i];
  g[y * w + x] = n == 3 || (n == 2 && g[y * w + x]);
}
int main() {
  const int w = 32; unsigned char *g; cudaMallocManaged(&g, w * w); memset(g, 0, w * w);
  g[5 * w + 5] = g[5 * w + 6] = g[6 * w + 5] = g[6 * w + 6] = 1;
  life<<<dim3(2, 2), dim3(16, 16)>>>(g, w, w); cudaDeviceSynchronize(); printf("%d\n", g[5 * w + 5]); cudaFree(g);
}
