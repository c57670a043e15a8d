// single-pass scan, decoupled look-back: 64-bit words of state and value, volatile, warp-wide window
#include <cstdio>
__device__ unsigned next_tile;
__global__ void scan(const int* in, int* out, int n, volatile unsigned long long* st) {
  __shared__ int s[256]; __shared__ unsigned tile; __shared__ int prefix;
  int t = threadIdx.x;
  if (t == 0) tile = atomicAdd(&next_tile, 1);
  __syncthreads();
  int i = tile * 256 + t; s[t] = i < n ? in[i] : 0; __syncthreads();
  for (int d = 1; d < 256; d *= 2) { int v = t >= d ? s[t - d] : 0; __syncthreads(); s[t] += v; __syncthreads(); }
  if (t < 32) {
    if (t == 0) st[tile] = (tile == 0 ? 2ull << 32 : 1ull << 32) | (unsigned)s[255];
    int p = 0, look = (int)tile - 1 - t; bool done = tile == 0;
    while (!done) {
      unsigned long long w = 2ull << 32;
      if (look >= 0) do w = st[look]; while (w >> 32 == 0);
      unsigned full = __ballot_sync(~0u, w >> 32 == 2);
      int lane = full ? __ffs(full) - 1 : 31; int v = t <= lane ? (int)(unsigned)w : 0;
      for (int o = 16; o; o /= 2) v += __shfl_down_sync(~0u, v, o);
      p += v; done = full != 0; look -= 32;
    }
    if (t == 0) { prefix = p; if (tile) st[tile] = 2ull << 32 | (unsigned)(p + s[255]); }
  }
  __syncthreads();
  if (i < n) out[i] = s[t] + prefix;
}
int main() {
  const int n = 20000, tiles = (n + 255) / 256; int* h = new int[n]; for (int i = 0; i < n; i++) h[i] = i % 4;
  int *a, *o; unsigned long long* st; cudaMalloc(&a, n * 4); cudaMalloc(&o, n * 4); cudaMalloc(&st, tiles * 8); cudaMemset(st, 0, tiles * 8);
  cudaMemcpy(a, h, n * 4, cudaMemcpyHostToDevice); scan<<<tiles, 256>>>(a, o, n, st); cudaMemcpy(h, o, n * 4, cudaMemcpyDeviceToHost);
  printf("%d\n", h[n - 1]); cudaFree(a); cudaFree(o); cudaFree(st); delete[] h;
}
