// A kernel for each mistake that the engine promises to find in plain CUDA; the first argument of the program says
// which.
#include <cstdio>
#include <cstdlib>

constexpr int N = 64;

__global__ void race(float* out) {
  __shared__ float last;
  last = out[threadIdx.x] + threadIdx.x;  // race
  __syncthreads();
  out[threadIdx.x] = last;
}

__global__ void missing_barrier(float* out) {
  __shared__ float tile[N];
  tile[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  tile[threadIdx.x] += 1;
  out[threadIdx.x] = tile[N - 1 - threadIdx.x];  // missing barrier
}

__global__ void out_of_bounds(float* out) {
  out[threadIdx.x + 64] = 1;  // out of bounds
}

__global__ void uninitialised(float* out) {
  extern __shared__ float tile[];
  if (threadIdx.x < 32) tile[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];  // uninitialised
}

__global__ void misaligned(float* out) {
  *reinterpret_cast<float4*>(out + 1) = make_float4(1, 2, 3, 4);  // misaligned
}

__global__ void divergent(float* out) {
  if (threadIdx.x < 32)
    __syncthreads();  // divergent
  else
    __syncthreads();
  out[threadIdx.x] = 0;
}

int main(int argc, char** argv) {
  const char which = argc > 1 ? argv[1][0] : '?';
  float* out;
  if (cudaMalloc(&out, N * sizeof(float)) != cudaSuccess) return 3;
  cudaMemset(out, 0, N * sizeof(float));
  switch (which) {
    case 'r':
      race<<<1, N>>>(out);
      break;
    case 'b':
      missing_barrier<<<1, N>>>(out);
      break;
    case 'o':
      out_of_bounds<<<1, N>>>(out);
      break;
    case 'u':
      uninitialised<<<1, N, N * sizeof(float)>>>(out);
      break;
    case 'm':
      misaligned<<<1, 1>>>(out);
      break;
    case 'd':
      divergent<<<1, N>>>(out);
      break;
    default:
      std::printf("which?\n");
      return 4;
  }
  cudaDeviceSynchronize();
  return 0;  // whatever happened: programs seldom ask
}
