#pragma once

constexpr int TILE = 32;

// A block copies a tile of `in` to shared memory by rows and writes it to `out` by columns. PADDING columns that nobody
// uses put the elements of a column into different banks.
template <int PADDING>
__global__ void transpose(float* out, const float* in, int n) {
  __shared__ float tile[TILE][TILE + PADDING];
  const int x = blockIdx.x * TILE, y = blockIdx.y * TILE;
  tile[threadIdx.y][threadIdx.x] = in[(y + threadIdx.y) * n + x + threadIdx.x];
  __syncthreads();
  out[(x + threadIdx.y) * n + y + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
