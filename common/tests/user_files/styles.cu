// CUDA as it is written elsewhere: every way of launching and of declaring that simt-compile has to know. Its output is
// known.
#include <cstdio>
#include <vector>

#include "styles.cuh"

#define CHECK(call)                                   \
  do {                                                \
    const cudaError_t error = (call);                 \
    if (error != cudaSuccess) {                       \
      std::printf("%s\n", cudaGetErrorString(error)); \
      return 1;                                       \
    }                                                 \
  } while (0)
#define LAUNCH(kernel, grid, block, ...) kernel<<<grid, block, 128>>>(__VA_ARGS__)
#define KERNEL __global__ void __launch_bounds__(256)

__constant__ float c_factor[2], c_offset;
__device__ int d_count = 3;
static __device__ __align__(16) float d_table[2][2] = {{1, 2}, {3, 4}};
__managed__ int m_total;
extern __shared__ float dynamic_outside[];

__device__ __forceinline__ float affine(float x) { return c_factor[1] * x + c_offset; }
__device__ float declared_first(float x);
__device__ int odd(int x);
__device__ int even(int x) { return x == 0 ? 1 : odd(x - 1); }  // neither can become part of the kernel
__device__ int odd(int x) { return x == 0 ? 0 : even(x - 1); }
__host__ __device__ inline int both(int x) { return x < 2 ? 1 : x * both(x - 1); }

KERNEL apply(float* __restrict__ x, size_t n, const float* unused) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = affine(x[i]) + declared_first(0) + d_table[1][1] * (unused == nullptr);
  atomicAdd(&d_count, 1);
  if (i == 0) m_total = both(4) + even(3);
}

template <typename T, int WIDTH = 32, class... Rest>
__global__ void mirror(T* out, const T* in, Rest... rest) {
  extern __shared__ __align__(16) unsigned char raw[];
  static __shared__ T tile[WIDTH][1];
  T* mine = reinterpret_cast<T*>(raw);
  mine[threadIdx.x] = in[threadIdx.x];
  tile[threadIdx.x][0] = T(sizeof...(rest));
  __syncthreads();
  out[threadIdx.x] = mine[WIDTH - 1 - threadIdx.x] + tile[(threadIdx.x + 1) % WIDTH][0];
}

template <class F>
__global__ void for_each(int n, F f) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) f(i);
}

__global__ void overloaded(float* x) { x[threadIdx.x] += 1; }
__global__ void overloaded(float* x, int by) { x[threadIdx.x] += by; }

namespace one {
namespace two {
extern "C" __global__ void through_outside(float* x) {
  dynamic_outside[threadIdx.x] = x[threadIdx.x];
  __syncwarp();
  x[threadIdx.x] = dynamic_outside[threadIdx.x ^ 1];
}
}  // namespace two
}  // namespace one

__device__ float declared_first(float x) { return x + 0.5f; }

template <class T>
__device__ T d_weights[2];

__global__ void weigh(float* x) {
  static __device__ int calls = 0;
  atomicAdd(&calls, 1);
  const int i = threadIdx.x;
  x[i] += d_weights<float>[i % 2];
}

template <class T>
struct Runner {
  T* x;
  void go() const { mirror<T><<<dim3(1), dim3{32}, 32 * sizeof(T)>>>(x, x); }
};

int main() {
  float* x;
  CHECK(cudaMalloc(&x, 32 * sizeof(float)));
  std::vector<float> host(32);
  for (int i = 0; i < 32; ++i) host[i] = i;
  CHECK(cudaMemcpy(x, host.data(), 32 * sizeof(float), cudaMemcpyHostToDevice));
  const float factor[2] = {0, 2}, offset = 1;
  CHECK(cudaMemcpyToSymbol(c_factor, factor, sizeof factor));
  CHECK(cudaMemcpyToSymbol(c_offset, &offset, sizeof offset));

  apply<<<(32 + 15) / 16, 16, 0, 0>>>(x, 32, NULL);
  mirror<float, 32><<<1, 32, 128>>>(x, x, 1, 2.0);
  Runner<float>{x}.go();
  LAUNCH((mirror<float, 32, int>), 1, 32, x, x, 7);
  const auto add = [=] __device__(int i) { x[i] += 1; };
  for_each<<<1, 32>>>(32, add);
  for_each<<<1, 8>>>(32, [x] __device__(int i) { x[i] *= 2; });
  overloaded<<<1, 32>>>(x);
  overloaded<<<1, 32>>>(x, 2);
  one::two::through_outside<<<1, 32, 32 * sizeof(float)>>>(x);
  void (*pointer)(float*) = one::two::through_outside;
  if (x != nullptr) pointer<<<1, 32, 32 * sizeof(float)>>>(x);
  twice_from_header(x);
  CHECK(cudaMemcpyToSymbol(d_weights<float>, factor, sizeof factor));
  weigh<<<1, 32>>>(x);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());

  CHECK(cudaMemcpy(host.data(), x, 32 * sizeof(float), cudaMemcpyDeviceToHost));
  int count;
  CHECK(cudaMemcpyFromSymbol(&count, d_count, sizeof count));
  std::printf("%g %g %g, %d, %d\n", host[0], host[1], host[31], count, m_total);
}
