// Kernels alone, for a harness.
template <typename T>
__global__ void transpose(T* out, const T* __restrict__ in, int n) {
  __shared__ T tile[32][32];
  const int x = threadIdx.x, y = threadIdx.y;
  tile[y][x] = in[y * n + x];
  __syncthreads();
  out[y * n + x] = tile[x][y];
}

__global__ void scale(float* x, float a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= a;
}
