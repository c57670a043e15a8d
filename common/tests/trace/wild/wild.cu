// Twelve kernels in the styles of other people's code, launched once each: what the engine counts of plain CUDA C++
// beside what Nsight Compute counts on a GPU. Nothing of the workbook is included. `wild.sh` profiles them on a GPU.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace cg = cooperative_groups;

#define CHECK(call)                                                                  \
  do {                                                                               \
    const cudaError_t error = (call);                                                \
    if (error != cudaSuccess) {                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
      exit(1);                                                                       \
    }                                                                                \
  } while (0)

// 1. A sum by tiles of a warp, and one atomic addition for each of them.
__global__ void sum_by_tiles(const float* x, float* sum, int n) {
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  float own = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) own += x[i];
  own = cg::reduce(warp, own, cg::plus<float>());
  if (warp.thread_rank() == 0) atomicAdd(sum, own);
}

// 2. A transpose through shared memory whose rows are one element too long.
__global__ void transpose(const float* in, float* out, int n) {
  __shared__ float tile[32][33];
  const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
  __syncthreads();
  const int to_x = blockIdx.y * 32 + threadIdx.x, to_y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(to_y + j) * n + to_x] = tile[threadIdx.x][threadIdx.y + j];
}

// 3. A matrix product, 4 x 4 elements a thread: neighbours in shared memory are read one by one.
__global__ void sgemm(const float* a, const float* b, float* c, int n) {
  __shared__ float as[8][64], bs[8][64];
  const int row = threadIdx.x / 16 * 4, column = threadIdx.x % 16 * 4;
  float sums[4][4] = {};
  for (int k = 0; k < n; k += 8) {
    for (int i = threadIdx.x; i < 512; i += 256) {
      as[i % 8][i / 8] = a[(blockIdx.y * 64 + i / 8) * n + k + i % 8];
      bs[i / 64][i % 64] = b[(k + i / 64) * n + blockIdx.x * 64 + i % 64];
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      float left[4], right[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) left[i] = as[j][row + i];
#pragma unroll
      for (int i = 0; i < 4; ++i) right[i] = bs[j][column + i];
#pragma unroll
      for (int i = 0; i < 16; ++i) sums[i / 4][i % 4] += left[i / 4] * right[i % 4];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 16; ++i)
    c[(blockIdx.y * 64 + row + i / 4) * n + blockIdx.x * 64 + column + i % 4] = sums[i / 4][i % 4];
}

// 4. A histogram in shared memory, added to the one in global memory.
__global__ void histogram(const unsigned char* values, unsigned* counts, int n) {
  __shared__ unsigned own[256];
  own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) atomicAdd(&own[values[i]], 1u);
  __syncthreads();
  atomicAdd(&counts[threadIdx.x], own[threadIdx.x]);
}

// 5. Softmax, a warp for each row, by shuffles.
__global__ void softmax(const float* __restrict__ x, float* __restrict__ y, int columns) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
  float most = -INFINITY, sum = 0;
  for (int i = lane; i < columns; i += 32) most = fmaxf(most, __ldg(x + row * columns + i));
  for (int d = 16; d > 0; d /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, d));
  for (int i = lane; i < columns; i += 32) sum += __expf(__ldg(x + row * columns + i) - most);
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffff, sum, d);
  for (int i = lane; i < columns; i += 32) y[row * columns + i] = __expf(__ldg(x + row * columns + i) - most) / sum;
}

// 6. Vectors that pass the caches by.
__global__ void stream(const float4* x, float4* y, float a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = __ldcs(x + i), w = y[i];
  w.x += a * v.x, w.y += a * v.y, w.z += a * v.z, w.w += a * v.w;
  __stcs(y + i, w);
}

// 7. A stencil: weights in constant memory, a tile with a border in dynamic shared memory.
__constant__ float weights[9];

__global__ void stencil(const float* x, float* y, int n) {
  extern __shared__ float tile[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int j = threadIdx.x; j < blockDim.x + 8; j += blockDim.x) {
    const int from = int(blockIdx.x * blockDim.x) + j - 4;
    tile[j] = from >= 0 && from < n ? x[from] : 0.0f;
  }
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int j = 0; j < 9; ++j) sum += weights[j] * tile[threadIdx.x + j];
  if (i < n) y[i] = sum;
}

// 8. Pairs of halves.
__global__ void axpy_half(const half2* x, half2* y, float a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __hfma2(__float2half2_rn(a), x[i], y[i]);
}

// 9. A running sum of a block (Hillis and Steele), in two buffers.
__global__ void scan(const int* in, int* out) {
  extern __shared__ int buffer[];
  int *from = buffer, *to = buffer + blockDim.x;
  from[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  for (unsigned distance = 1; distance < blockDim.x; distance *= 2) {
    int value = from[threadIdx.x];
    if (threadIdx.x >= distance) value += from[threadIdx.x - distance];
    to[threadIdx.x] = value;
    __syncthreads();
    int* const other = from;
    from = to, to = other;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = from[threadIdx.x];
}

// 10. Tensor cores by inline PTX: C [16, 8] = A [16, 16] B^T, B [8, 16], of each warp.
__global__ void tensor(const half* a, const half* b, float* c) {
  __shared__ __align__(128) half tile[4][24 * 16];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, block = blockIdx.x * 4 + warp;
  half* own = tile[warp];
  for (int i = lane; i < 48; i += 32) {
    const uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(own + 8 * i));
    const half* from = i < 32 ? a + block * 256 + 8 * i : b + block * 128 + 8 * (i - 32);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  }
  asm volatile("cp.async.commit_group;\n" ::: "memory");
  asm volatile("cp.async.wait_group %0;" ::"n"(0) : "memory");
  __syncwarp();
  uint32_t x[4], y[2];
  float z[4] = {0, 0, 0, 0};
  const uint32_t left = static_cast<uint32_t>(__cvta_generic_to_shared(own + lane % 16 * 16 + lane / 16 * 8));
  const uint32_t right = static_cast<uint32_t>(__cvta_generic_to_shared(own + (16 + lane % 8) * 16 + lane / 8 % 2 * 8));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(left));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(y[0]), "=r"(y[1]) : "r"(right));
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
      : "+f"(z[0]), "+f"(z[1]), "+f"(z[2]), "+f"(z[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
  float2* to = reinterpret_cast<float2*>(c + block * 128);
  to[lane] = make_float2(z[0], z[1]);
  to[32 + lane] = make_float2(z[2], z[3]);
}

// 11. The elements that are wanted, side by side: one atomic addition for the lanes that have one.
__global__ void compact(const int* in, int* out, int* count, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int value = in[i];
  if (value % 3 == 0) {
    const cg::coalesced_group some = cg::coalesced_threads();
    int place = 0;
    if (some.thread_rank() == 0) place = atomicAdd(count, static_cast<int>(some.size()));
    out[some.shfl(place, 0) + some.thread_rank()] = value;
  }
}

// 12. Sums of blocks, and of those the sum, in one launch: the whole grid waits in between.
__global__ void sum_of_grid(const float* x, float* sums, int n) {
  __shared__ float part[8];
  const cg::grid_group grid = cg::this_grid();
  float own = 0;
  for (int i = static_cast<int>(grid.thread_rank()); i < n; i += static_cast<int>(grid.size())) own += x[i];
  for (int d = 16; d > 0; d /= 2) own += __shfl_down_sync(0xffffffff, own, d);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = own;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < 8; ++i) own += part[i];
    sums[1 + blockIdx.x] = own;
  }
  grid.sync();
  if (grid.thread_rank() < 32) {
    float all = threadIdx.x < gridDim.x ? sums[1 + threadIdx.x] : 0.0f;
    for (int d = 16; d > 0; d /= 2) all += __shfl_down_sync(0xffffffff, all, d);
    if (threadIdx.x == 0) sums[0] = all;
  }
}

template <class T>
T* filled(size_t count, int modulus) {
  std::vector<T> host(count);
  for (size_t i = 0; i < count; ++i) host[i] = static_cast<T>(static_cast<float>(i * 7919 % modulus));
  T* device;
  CHECK(cudaMalloc(&device, count * sizeof(T)));
  CHECK(cudaMemcpy(device, host.data(), count * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}

void expect(const char* what, double value, double expected) {
  if (value != expected) {
    fprintf(stderr, "%s is %g, expected %g\n", what, value, expected);
    exit(1);
  }
}

template <class T>
T element(const T* x, size_t i) {
  T value;
  CHECK(cudaMemcpy(&value, x + i, sizeof value, cudaMemcpyDeviceToHost));
  return value;
}

int main() {
  const int n = 64 * 1024;
  float *x = filled<float>(n, 5), *y = filled<float>(n, 3), *sums = filled<float>(64, 1);
  int *numbers = filled<int>(n, 101), *others = filled<int>(n, 1), *count = filled<int>(1, 1);
  unsigned char* bytes = filled<unsigned char>(n, 200);
  unsigned* counts = filled<unsigned>(256, 1);
  half *a = filled<half>(64 * 256, 7), *b = filled<half>(64 * 128, 5);
  const float host_weights[9] = {1, 2, 3, 4, 5, 4, 3, 2, 1};
  CHECK(cudaMemcpyToSymbol(weights, host_weights, sizeof host_weights));

  sum_by_tiles<<<16, 256>>>(x, sums, n);
  expect("the sum by tiles", element(sums, 0), 131070);
  transpose<<<dim3(8, 8), dim3(32, 8)>>>(x, y, 256);
  expect("an element of the transpose", element(y, 3), element(x, 3 * 256));
  sgemm<<<dim3(2, 2), 256>>>(x, y, y + 128 * 128, 128);
  histogram<<<8, 256>>>(bytes, counts, n);
  expect("a count", element(counts, 7), 327);
  softmax<<<32, dim3(32, 4)>>>(x, y, 256);
  stream<<<n / 4 / 256, 256>>>(reinterpret_cast<float4*>(x), reinterpret_cast<float4*>(y), 2, n / 4);
  stencil<<<n / 256, 256, (256 + 8) * sizeof(float)>>>(x, y, n);
  axpy_half<<<32, 256>>>(reinterpret_cast<half2*>(a), reinterpret_cast<half2*>(b), 0.5f, 64 * 128 / 2);
  scan<<<n / 256, 256, 2 * 256 * sizeof(int)>>>(numbers, others);
  tensor<<<16, 128>>>(a, b, y);
  compact<<<n / 256, 256>>>(numbers, others, count, n);
  expect("the numbers that are wanted", element(count, 0), 22063);
  const int length = n;
  const float* from = x;
  void* arguments[] = {&from, &sums, const_cast<int*>(&length)};
  CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(sum_of_grid), dim3(16), dim3(256), arguments, 0, nullptr));
  expect("the sum of the grid", element(sums, 0), 131070);
  CHECK(cudaDeviceSynchronize());
  printf("twelve kernels\n");
}
