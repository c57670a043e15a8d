// Barriers, pipelines, latches, semaphores, atomics and tiles of several warps: each case is right, and nothing may be
// said of it.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <cstdio>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cuda/std/array>
#include <cuda/std/complex>
#include <cuda/std/tuple>
#include <utility>
#include <vector>

namespace cg = cooperative_groups;
using Barrier = cuda::barrier<cuda::thread_scope_block>;
constexpr int threads = 128, tiles = 5, n = threads * tiles;

static int wrong = 0;
#define EXPECT(condition) \
  if (!(condition)) std::printf("line %d: not %s\n", __LINE__, #condition), ++wrong

// Each kernel reverses every tile of `threads` numbers and adds `plus`.
__global__ void by_barrier(const float* in, float* out, float plus) {
  __shared__ Barrier filled, read;
  __shared__ float tile[threads];
  const auto block = cg::this_thread_block();
  if (block.thread_rank() == 0) {
    init(&filled, block.size());
    init(&read, block.size());
  }
  block.sync();
  for (int i = 0; i < tiles; ++i) {
    cuda::memcpy_async(block, tile, in + i * threads, cuda::aligned_size_t<16>(sizeof tile), filled);
    filled.arrive_and_wait();
    out[i * threads + threadIdx.x] = tile[threads - 1 - threadIdx.x] + plus;
    read.wait(read.arrive());
  }
}

__global__ void by_pipeline(const float* in, float* out, float plus) {
  constexpr int stages = 2;
  __shared__ float tile[stages][threads];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
  const auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  for (int i = 0, filled = 0; i < tiles; ++i) {
    for (; filled < tiles && filled < i + stages; ++filled) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, tile[filled % stages], in + filled * threads, sizeof tile[0], pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    out[i * threads + threadIdx.x] = tile[i % stages][threads - 1 - threadIdx.x] + plus;
    pipe.consumer_release();
  }
}

// One warp copies, the others calculate.
__global__ void by_roles(const float* in, float* out, float plus) {
  constexpr int stages = 3;
  __shared__ float tile[stages][threads];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
  const auto block = cg::this_thread_block();
  const bool copies = block.thread_rank() < 32;
  auto pipe =
      cuda::make_pipeline(block, &state, copies ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
  if (copies) {
    for (int i = 0; i < tiles; ++i) {
      pipe.producer_acquire();
      cuda::memcpy_async(cg::tiled_partition<32>(block), tile[i % stages], in + i * threads, sizeof tile[0], pipe);
      pipe.producer_commit();
    }
  } else {
    for (int i = 0; i < tiles; ++i) {
      const int own = block.thread_rank() - 32;
      pipe.consumer_wait();
      out[i * threads + own] = tile[i % stages][threads - 1 - own] + plus;
      pipe.consumer_release();
    }
  }
}

// The classical ring of two buffers and four barriers.
__global__ void by_ring(const float* in, float* out, float plus) {
  __shared__ Barrier free[2], filled[2];
  __shared__ float tile[2][threads];
  const int half = blockDim.x / 2, own = threadIdx.x % half;
  if (threadIdx.x < 4) init((threadIdx.x < 2 ? free : filled) + threadIdx.x % 2, blockDim.x);
  __syncthreads();
  if (threadIdx.x < half) {
    for (int i = 0; i < tiles; ++i) {
      free[i % 2].arrive_and_wait();
      tile[i % 2][own] = in[i * threads + own];
      (void)filled[i % 2].arrive();
    }
  } else {
    (void)free[0].arrive();
    (void)free[1].arrive();
    for (int i = 0; i < tiles; ++i) {
      filled[i % 2].arrive_and_wait();
      out[i * threads + own] = tile[i % 2][threads - 1 - own] + plus;
      if (i + 2 < tiles) (void)free[i % 2].arrive();
    }
  }
}

// Threads leave one after the other; the rest go on.
__global__ void those_that_stay(int* rounds) {
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  for (unsigned i = 0; i < threadIdx.x % 4; ++i) {
    barrier.arrive_and_wait();
    atomicAdd(&rounds[i], 1);
  }
  barrier.arrive_and_drop();
}

__global__ void by_latch(int* out) {
  using Latch = cuda::latch<cuda::thread_scope_block>;
  __shared__ alignas(Latch) char memory[sizeof(Latch)];
  Latch& latch = *reinterpret_cast<Latch*>(memory);
  __shared__ int values[threads];
  if (threadIdx.x == 0) new (memory) Latch(blockDim.x);
  __syncthreads();
  values[threadIdx.x] = threadIdx.x;
  latch.arrive_and_wait();
  out[threadIdx.x] = values[threadIdx.x ^ 77];
}

__global__ void by_semaphore(int* counter, int* most) {
  __shared__ cuda::counting_semaphore<cuda::thread_scope_block, 2> two;
  __shared__ int inside;
  if (threadIdx.x == 0) {
    new (&two) cuda::counting_semaphore<cuda::thread_scope_block, 2>(2);
    inside = 0;
  }
  __syncthreads();
  two.acquire();
  atomicMax(most, atomicAdd(&inside, 1) + 1);
  __nanosleep(10);
  atomicAdd(counter, 1);
  atomicSub(&inside, 1);
  two.release();
}

__device__ cuda::binary_semaphore<cuda::thread_scope_device> lock{1};
__global__ void locked(int* counter) {
  if (threadIdx.x != 0) return;
  lock.acquire();
  *counter = *counter + 1;
  lock.release();
}

__device__ cuda::counting_semaphore<cuda::thread_scope_device, 1> gate(1);
__device__ cuda::atomic<int, cuda::thread_scope_device> holder(0);
__global__ void gated(int* counter) {
  if (threadIdx.x != 0) return;
  gate.acquire();
  *counter = *counter + 1;
  gate.release();
  for (int none = 0; !holder.compare_exchange_strong(none, 1, cuda::memory_order_acquire);) none = 0;
  counter[1] = counter[1] + 1;
  holder.store(0, cuda::memory_order_release);
}

__global__ void atomics(int* x, float* y) {
  cuda::atomic_ref<int, cuda::thread_scope_device> counter(x[0]), most(x[1]), least(x[2]);
  counter.fetch_add(1, cuda::memory_order_relaxed);
  most.fetch_max(int(threadIdx.x));
  least.fetch_min(int(threadIdx.x));
  cuda::std::array<float, 2> parts{1, 2};
  const cuda::std::complex<float> z(parts[0], parts[1]), square = z * z;
  const auto both = cuda::std::make_tuple(square.real(), square.imag());
  y[threadIdx.x] = cuda::std::get<0>(both) + 10 * cuda::std::get<1>(both);
}

template <unsigned size>
__global__ void tile_of_warps(int* out) {
  __shared__ int values[256];
  const auto tile = cg::tiled_partition<size>(cg::this_thread_block());
  values[threadIdx.x] = threadIdx.x;
  tile.sync();
  const int neighbour = values[tile.meta_group_rank() * size + (tile.thread_rank() + 1) % size];
  const int sum = cg::reduce(tile, neighbour, cg::plus<int>());
  const int most = cg::reduce(tile, neighbour, cg::greater<int>());
  const int before = cg::exclusive_scan(tile, 1), until = cg::inclusive_scan(tile, 2, cg::plus<int>());
  const int third = tile.shfl(int(threadIdx.x), 3);
  const bool votes = tile.any(tile.thread_rank() == 5) && !tile.all(tile.thread_rank() != 5) && tile.all(true);
  int* const own = out + 6 * threadIdx.x;
  own[0] = sum, own[1] = most, own[2] = before, own[3] = until, own[4] = third, own[5] = votes;
}
template <unsigned size>
static void test_tile(int* d_out) {
  tile_of_warps<size><<<1, 256>>>(d_out);
  std::vector<int> out(6 * 256);
  cudaMemcpy(out.data(), d_out, out.size() * sizeof(int), cudaMemcpyDeviceToHost);
  for (int t = 0; t < 256; ++t) {
    const int rank = t % size, first = t - rank, count = size, *const own = &out[6 * t];
    EXPECT(own[0] == count * first + count * (count - 1) / 2 && own[1] == first + count - 1);
    EXPECT(own[2] == rank && own[3] == 2 * (rank + 1) && own[4] == first + 3 && own[5] == 1);
  }
}

int main() {
  std::vector<float> in(n), out(n);
  for (int i = 0; i < n; ++i) in[i] = float(i);
  float *d_in, *d_out;
  int* d_ints;
  cudaMalloc(&d_in, n * sizeof(float));
  cudaMalloc(&d_out, n * sizeof(float));
  cudaMalloc(&d_ints, 6 * 256 * sizeof(int));
  cudaMemcpy(d_in, in.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  const auto reversed = [&](float plus) {
    cudaMemcpy(out.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; ++i)
      if (out[i] != in[i / threads * threads + threads - 1 - i % threads] + plus) return false;
    return true;
  };
  by_barrier<<<1, threads>>>(d_in, d_out, 1);
  EXPECT(reversed(1));
  by_pipeline<<<1, threads>>>(d_in, d_out, 2);
  EXPECT(reversed(2));
  by_roles<<<1, 32 + threads>>>(d_in, d_out, 3);
  EXPECT(reversed(3));
  by_ring<<<1, 2 * threads>>>(d_in, d_out, 4);
  EXPECT(reversed(4));

  std::vector<int> ints(threads);
  const auto get = [&] { cudaMemcpy(ints.data(), d_ints, threads * sizeof(int), cudaMemcpyDeviceToHost); };
  const auto clear = [&] { cudaMemset(d_ints, 0, threads * sizeof(int)); };
  clear();
  those_that_stay<<<1, 64>>>(d_ints);
  get();
  EXPECT(ints[0] == 48 && ints[1] == 32 && ints[2] == 16);
  by_latch<<<1, threads>>>(d_ints);
  get();
  for (int i = 0; i < threads; ++i) EXPECT(ints[i] == (i ^ 77));
  clear();
  by_semaphore<<<2, 64>>>(d_ints, d_ints + 1);
  get();
  EXPECT(ints[0] == 128 && ints[1] >= 1 && ints[1] <= 2);
  clear();
  locked<<<20, 32>>>(d_ints);
  get();
  EXPECT(ints[0] == 20);
  clear();
  gated<<<20, 32>>>(d_ints);
  get();
  EXPECT(ints[0] == 20 && ints[1] == 20);
  clear();
  atomics<<<2, 64>>>(d_ints, d_out);
  get();
  cudaMemcpy(out.data(), d_out, sizeof(float), cudaMemcpyDeviceToHost);
  EXPECT(ints[0] == 128 && ints[1] == 63 && ints[2] == 0 && out[0] == -3 + 10 * 4);
  test_tile<32>(d_ints);
  test_tile<64>(d_ints);
  test_tile<256>(d_ints);
  cudaFree(d_in);
  cudaFree(d_out);
  cudaFree(d_ints);
  return wrong != 0;
}
