// Correct programs that look like mistakes, one a case: nothing may be said of them.
#include <cooperative_groups.h>
#include <cublas_v2.h>
#include <cuda_pipeline.h>

#include <algorithm>
#include <cstdlib>
#include <cuda/atomic>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "case.h"

namespace cg = cooperative_groups;
constexpr int N = 64;

template <class T>
struct Zeros {  // that are freed
  explicit Zeros(int count) : memory(zeros<T>(count)) {}
  ~Zeros() { cudaFree(memory); }
  operator T*() const { return memory; }
  T* memory;
};

static void expect(bool right) {
  if (!right) std::printf("wrong\n"), std::exit(5);
}
template <class T>
static T first(const T* x) {
  T host;
  cudaMemcpy(&host, x, sizeof host, cudaMemcpyDeviceToHost);
  return host;
}

// ---- blocks that tell each other by flags

// The sum of all blocks by the one that comes last, in several styles.
template <int style>
__global__ void sum_by_last(float* partial, unsigned* arrived, float* out) {
  __shared__ bool last;
  if (style == 1) {  // every thread has a part, and fences
    if (threadIdx.x < 2) partial[2 * blockIdx.x + threadIdx.x] = 0.5f;
    __threadfence();
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    if (style != 1) {
      partial[2 * blockIdx.x] = 0.5f;
      partial[2 * blockIdx.x + 1] = 0.5f;
    }
    if (style != 2) __threadfence();
    if (style == 2)  // an atomic that releases and acquires
      last = cuda::atomic_ref<unsigned>(*arrived).fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1;
    else
      last = atomicInc(arrived, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  atomicAdd(out, partial[threadIdx.x]);
  if (threadIdx.x == 0) *arrived = 0;  // for the next launch
}
template <int style>
static void last_block() {
  Zeros<float> partial(N), out(1);
  Zeros<unsigned> arrived(1);
  sum_by_last<style><<<N / 2, N>>>(partial, arrived, out);
  expect(first<float>(out) == N / 2);
}
CASE(last_block_one_thread_fences) { last_block<0>(); }
CASE(last_block_all_threads_fence) { last_block<1>(); }
CASE(last_block_release_and_acquire) { last_block<2>(); }

// A prefix sum in one pass: each block waits for the one before it.
template <bool inclusive_by_atomic>
__global__ void chained_scan(int* out, volatile int* prefix, volatile int* state) {
  __shared__ int before;
  if (threadIdx.x == 0) {
    int sum = 0;
    if (blockIdx.x > 0) {
      while (state[blockIdx.x - 1] == 0) {
      }
      __threadfence();
      sum = prefix[blockIdx.x - 1];
    }
    prefix[blockIdx.x] = sum + blockDim.x;
    __threadfence();
    if (inclusive_by_atomic)
      atomicExch(const_cast<int*>(state) + blockIdx.x, 1);
    else
      state[blockIdx.x] = 1;
    before = sum;
  }
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = before + threadIdx.x;
}
CASE(decoupled_look_back_volatile) {
  Zeros<int> out(8 * N), prefix(8), state(8);
  chained_scan<false><<<8, N>>>(out, prefix, state);
}
CASE(decoupled_look_back_atomic) {
  Zeros<int> out(8 * N), prefix(8), state(8);
  chained_scan<true><<<8, N>>>(out, prefix, state);
}

// With plain data behind the flag, and tickets instead of block numbers.
__global__ void by_ticket(int* data, int* ready, unsigned* tickets) {
  __shared__ unsigned ticket;
  if (threadIdx.x == 0) ticket = atomicAdd(tickets, 1);
  __syncthreads();
  if (threadIdx.x == 0 && ticket > 0)
    while (atomicAdd(&ready[ticket - 1], 0) == 0) {
    }
  __syncthreads();
  data[ticket * N + threadIdx.x] = ticket == 0 ? 1 : data[(ticket - 1) * N + (threadIdx.x + 1) % N] + 1;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(&ready[ticket], 1);
}
CASE(chain_by_tickets) {
  Zeros<int> data(8 * N), ready(8);
  Zeros<unsigned> tickets(1);
  by_ticket<<<8, N>>>(data, ready, tickets);
  expect(first<int>(data + 7 * N) == 8);
}

// Without a barrier of the block: by lanes of one warp; by warps that meet at a barrier of their own; and by warps that
// tell each other by flags in shared memory.
template <bool one_warp>
__global__ void hand_over(int* data, volatile int* flag, int* out) {
  const int n = one_warp ? 32 : 64, i = threadIdx.x;
  if (i >= n) return;
  const auto meet = [] {
    if (one_warp)
      __syncwarp();
    else
      asm volatile("bar.sync 1, 64;" ::: "memory");
  };
  if (blockIdx.x == 0) {
    data[i] = i;
    if (one_warp) __threadfence();
    meet();
    if (i == 0) {
      if (!one_warp) __threadfence();
      *flag = 1;
    }
  } else {
    if (i == 0) {
      while (*flag == 0) {
      }
      __threadfence();
    }
    meet();
    out[i] = data[n - 1 - i];
  }
}
CASE(flag_behind_a_syncwarp) {
  Zeros<int> data(N), flag(1), out(N);
  hand_over<true><<<2, 128>>>(data, flag, out);
}
CASE(flag_behind_a_named_barrier) {
  Zeros<int> data(N), flag(1), out(N);
  hand_over<false><<<2, 128>>>(data, flag, out);
}

__global__ void from_warp_to_warp(int* data, volatile int* flag, int* out) {
  __shared__ volatile int written, seen;
  if (threadIdx.x == 0) written = seen = 0;
  __syncthreads();
  const auto pass_on = [](volatile int* from, volatile int* to) {
    while (from && *from == 0) {
    }
    __threadfence();
    if (to) *to = 1;
  };
  const bool first = blockIdx.x == 0;
  if (threadIdx.x == 0) {
    if (first) *data = 5;
    pass_on(first ? nullptr : flag, first ? &written : &seen);
  } else if (threadIdx.x == 32) {
    pass_on(first ? &written : &seen, first ? flag : nullptr);
    if (!first) *out = *data;
  }
}
CASE(flag_behind_a_flag_in_shared_memory) {
  Zeros<int> data(1), flag(1), out(1);
  from_warp_to_warp<<<2, 64>>>(data, flag, out);
  expect(first<int>(out) == 5);
}

__global__ void under_a_lock_of_the_block(int* lock, float* sums) {
  for (int turn = 0; turn < 20; ++turn) {
    if (threadIdx.x == 0) {
      while (atomicCAS(lock, 0, 1) != 0) {
      }
      __threadfence();
    }
    __syncthreads();
    sums[threadIdx.x] += 1;
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      atomicExch(lock, 0);
    }
  }
}
CASE(sums_under_a_lock_of_the_block) {
  Zeros<int> lock(1);
  Zeros<float> sums(N);
  under_a_lock_of_the_block<<<16, N>>>(lock, sums);
  expect(first<float>(sums) == 320);
}

__global__ void under_a_lock(int* lock, int* counter) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  __threadfence();
  *counter = *counter + 1;
  __threadfence();
  atomicExch(lock, 0);
}
CASE(counter_under_a_lock) {
  Zeros<int> lock(1), counter(1);
  under_a_lock<<<16, 32>>>(lock, counter);
  expect(first<int>(counter) == 16);
}

__global__ void under_a_lock_of_libcu(int* lock, int* counter) {
  cuda::atomic_ref<int, cuda::thread_scope_device> l(*lock);
  while (l.exchange(1, cuda::memory_order_acquire) != 0) {
  }
  *counter += 1;
  l.store(0, cuda::memory_order_release);
}
CASE(lock_that_acquires_and_releases) {
  Zeros<int> lock(1), counter(1);
  under_a_lock_of_libcu<<<16, 1>>>(lock, counter);
  expect(first<int>(counter) == 16);
}

__global__ void by_ptx(int* data, int* flag, int* out) {
  if (blockIdx.x == 0) {
    data[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(1) : "memory");
  } else {
    int seen = 0;
    while (seen == 0) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    out[threadIdx.x] = data[N - 1 - threadIdx.x];
  }
}
CASE(flag_in_ptx) {
  Zeros<int> data(N), flag(1), out(N);
  by_ptx<<<2, N>>>(data, flag, out);
}

// ---- flags in shared memory, between warps

template <bool by_atomic>
__global__ void producer_and_consumer(int* out) {
  __shared__ int data[32];
  __shared__ volatile int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    data[threadIdx.x] = threadIdx.x;
    __threadfence_block();
    __syncwarp();
    if (threadIdx.x == 0) {
      if (by_atomic)
        atomicExch(const_cast<int*>(&flag), 1);
      else
        flag = 1;
    }
  } else {
    while ((by_atomic ? atomicAdd(const_cast<int*>(&flag), 0) : flag) == 0) {
    }
    __threadfence_block();
    out[threadIdx.x - 32] = data[63 - threadIdx.x];
  }
}
CASE(flag_in_shared_memory_volatile) {
  Zeros<int> out(32);
  producer_and_consumer<false><<<1, 64>>>(out);
}
CASE(flag_in_shared_memory_atomic) {
  Zeros<int> out(32);
  producer_and_consumer<true><<<1, 64>>>(out);
}

__global__ void flag_in_global_memory(int* data, volatile int* flag, int* out) {
  if (threadIdx.x < 32) {
    data[threadIdx.x] = threadIdx.x;
    __syncwarp();
    __threadfence();
    if (threadIdx.x == 0) *flag = 1;
  } else {
    while (*flag == 0) {
    }
    __threadfence();
    out[threadIdx.x - 32] = data[63 - threadIdx.x];
  }
}
CASE(flag_between_warps_in_global_memory) {
  Zeros<int> data(32), flag(1), out(32);
  flag_in_global_memory<<<1, 64>>>(data, flag, out);
}

// Lanes of one warp, without a fence: whoever sees the flag late only looks at more.
__global__ void look_until_found(const int* x, volatile int* place, int* looked) {
  int count = 0;
  for (int i = threadIdx.x; i < N && *place < 0; i += 8, ++count)
    if (x[i] == 3) *place = i;
  looked[threadIdx.x] = count;
}
CASE(flag_that_ends_a_search) {
  Zeros<int> x(N), place(1), looked(8);
  cudaMemset(x + N / 2, 3, 1);
  cudaMemset(place, 0xff, sizeof(int));
  look_until_found<<<1, 8>>>(x, place, looked);
  expect(first<int>(place) == N / 2);
}

// ---- the same value, by many threads

__global__ void any_negative(const float* x, bool* found, int* done) {
  if (x[threadIdx.x] < 1) *found = true;
  *done = 1;
}
CASE(all_store_the_same_globally) {
  Zeros<float> x(N);
  Zeros<bool> found(1);
  Zeros<int> done(1);
  any_negative<<<4, N>>>(x, found, done);
}

__global__ void any_in_block(const float* x, int* out) {
  __shared__ bool found;
  __shared__ int size;
  if (threadIdx.x == 0) found = false;
  __syncthreads();
  if (x[threadIdx.x] < 1) found = true;
  size = blockDim.x;
  __syncthreads();
  out[threadIdx.x] = found ? size : 0;
}
CASE(all_store_the_same_in_shared_memory) {
  Zeros<float> x(N);
  Zeros<int> out(N);
  any_in_block<<<4, N>>>(x, out);
}

// ---- barriers of other kinds

__global__ void of_groups(int* out) {
  __shared__ int place[N];
  const cg::thread_block block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<16>(block);
  place[threadIdx.x] = threadIdx.x;
  tile.sync();
  const int left = place[threadIdx.x ^ 1];
  block.sync();
  place[threadIdx.x] = left;
  cg::sync(block);
  out[threadIdx.x] = place[N - 1 - threadIdx.x];
}
CASE(cooperative_groups_in_a_block) {
  Zeros<int> out(N);
  of_groups<<<1, N>>>(out);
}

__global__ void of_the_grid(int* x, int* out) {
  const cg::grid_group grid = cg::this_grid();
  const int i = grid.thread_rank();
  for (int round = 0; round < 3; ++round) {
    x[i] = i + round;
    grid.sync();
    out[i] += x[grid.size() - 1 - i];
    grid.sync();
  }
}
CASE(grid_barrier) {
  Zeros<int> x(4 * N), out(4 * N);
  int *px = x, *pout = out;
  void* arguments[] = {&px, &pout};
  cudaLaunchCooperativeKernel(reinterpret_cast<void*>(of_the_grid), dim3(4), dim3(N), arguments, 0, nullptr);
}

// One block clears what all add to; the others know of it by the grid's barrier, or by a flag.
template <bool by_flag>
__global__ void cleared_by_one_block(int* sum, int* flag) {
  if (threadIdx.x == 0 && blockIdx.x == 0) {
    *sum = 0;
    if (by_flag) {
      __threadfence();
      atomicExch(flag, 1);
    }
  } else if (by_flag && threadIdx.x == 0) {
    while (atomicAdd(flag, 0) == 0) {
    }
    __threadfence();
  }
  if (!by_flag) cg::this_grid().sync();
  if (threadIdx.x == 0) atomicAdd(sum, 1);
}
template <bool by_flag>
static void clear_and_add() {
  Zeros<int> sum(1), flag(1);
  int *psum = sum, *pflag = flag;
  void* arguments[] = {&psum, &pflag};
  for (int i = 0; i < 2; ++i)
    cudaLaunchCooperativeKernel(reinterpret_cast<void*>(cleared_by_one_block<by_flag>), dim3(4), dim3(N), arguments, 0,
                                nullptr);
  expect(first<int>(sum) == 4);
}
CASE(sum_that_is_cleared_before_a_grid_barrier) { clear_and_add<false>(); }
CASE(sum_that_is_cleared_before_a_flag) { clear_and_add<true>(); }

__global__ void named(int* out) {
  __shared__ int place[32];
  if (threadIdx.x < 32) {
    place[threadIdx.x] = threadIdx.x;
    asm volatile("bar.arrive 1, 64;" ::: "memory");
  } else {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    out[threadIdx.x - 32] = place[63 - threadIdx.x];
  }
}
CASE(named_barrier) {
  Zeros<int> out(32);
  named<<<1, 64>>>(out);
}

__global__ void named_in_global_memory(int* place, int* out) {
  if (threadIdx.x < 32) {
    place[threadIdx.x] = threadIdx.x;
    asm volatile("bar.arrive 2, 64;" ::: "memory");
  } else {
    asm volatile("bar.sync 2, 64;" ::: "memory");
    out[threadIdx.x - 32] = place[63 - threadIdx.x];
  }
}
CASE(named_barrier_and_global_memory) {
  Zeros<int> place(32), out(32);
  named_in_global_memory<<<1, 64>>>(place, out);
}

__global__ void some_have_returned(int* out) {
  __shared__ int place[N];
  if (threadIdx.x >= 40) return;
  place[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = place[39 - threadIdx.x];
}
CASE(barrier_after_some_have_returned) {
  Zeros<int> out(N);
  some_have_returned<<<1, N>>>(out);
}

// ---- warps

__global__ void reduce_with_syncwarp(int* out) {
  __shared__ volatile int sums[N];
  const int i = threadIdx.x;
  sums[i] = 1;
  __syncthreads();
  if (i < 32) {
    for (int half = 32; half > 0; half /= 2) {
      const int other = sums[i + half];
      __syncwarp();
      if (i < half) sums[i] += other;
      __syncwarp();
    }
  }
  if (i == 0) *out = sums[0];
}
CASE(warp_reduction_with_syncwarp) {
  Zeros<int> out(1);
  reduce_with_syncwarp<<<1, N>>>(out);
  expect(first<int>(out) == N);
}

__global__ void reduce_globally_with_syncwarp(volatile int* sums) {
  const int i = threadIdx.x;
  sums[i] = 1;
  __syncwarp();
  for (int half = 16; half > 0; half /= 2) {
    if (i < half) sums[i] += sums[i + half];
    __syncwarp();
  }
}
CASE(warp_reduction_in_global_memory_with_syncwarp) {
  Zeros<int> sums(32);
  reduce_globally_with_syncwarp<<<1, 32>>>(sums);
  expect(first<int>(sums) == 32);
}

__global__ void reduce_with_shuffles(int* out) {
  int sum = 1;
  for (int half = 16; half > 0; half /= 2) sum += __shfl_down_sync(0xffffffff, sum, half);
  if (threadIdx.x == 0) atomicAdd(out, sum);
}
CASE(warp_reduction_with_shuffles) {
  Zeros<int> out(1);
  reduce_with_shuffles<<<4, 32>>>(out);
  expect(first<int>(out) == 128);
}

__global__ void aggregated(int* counter, int* out) {
  if (threadIdx.x % 3 != 0) return;
  const cg::coalesced_group active = cg::coalesced_threads();
  int base = 0;
  if (active.thread_rank() == 0) base = atomicAdd(counter, active.size());
  out[active.shfl(base, 0) + active.thread_rank()] = threadIdx.x;
}
CASE(warp_aggregated_atomics) {
  Zeros<int> counter(1), out(N);
  aggregated<<<1, N>>>(counter, out);
  expect(first<int>(counter) == 22);
}

__global__ void own_slot_of_a_warp(int* out) {
  __shared__ int slots[2];
  if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = threadIdx.x;
  __syncwarp();
  out[threadIdx.x] = slots[threadIdx.x / 32];
}
CASE(slot_of_each_warp) {
  Zeros<int> out(N);
  own_slot_of_a_warp<<<1, N>>>(out);
}

// ---- atomics

__global__ void privatised(const unsigned char* in, unsigned* bins) {
  __shared__ unsigned own[16];
  if (threadIdx.x < 16) own[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&own[in[blockIdx.x * blockDim.x + threadIdx.x] % 16], 1u);
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}
CASE(privatised_histogram) {
  Zeros<unsigned char> in(4 * N);
  Zeros<unsigned> bins(16);
  privatised<<<4, N>>>(in, bins);
  expect(first<unsigned>(bins) == 4 * N);
}

__global__ void maximum_by_cas(const float* x, int* bits) {
  int old = atomicAdd(bits, 0);
  while (__int_as_float(old) < x[threadIdx.x]) {
    const int seen = atomicCAS(bits, old, __float_as_int(x[threadIdx.x]));
    if (seen == old) break;
    old = seen;
  }
}
CASE(maximum_by_compare_and_swap) {
  Zeros<float> x(N);
  Zeros<int> bits(1);
  maximum_by_cas<<<4, N>>>(x, bits);
}

__global__ void append(int* list, int* count) {
  if (threadIdx.x % 2) list[atomicAdd(count, 1)] = threadIdx.x;
}
CASE(append_to_a_list) {
  Zeros<int> list(4 * N), count(1);
  append<<<4, N>>>(list, count);
}

__device__ unsigned calls;
__global__ void count_calls() { atomicAdd(&calls, 1u); }
CASE(counter_in_a_variable) {
  count_calls<<<4, N>>>();
  unsigned host = 0;
  cudaMemcpyFromSymbol(&host, calls, sizeof host);
  expect(host == 4 * N);
}

// ---- memory

__global__ void fill_half(float* x) { x[threadIdx.x] = 1; }
__global__ void use_half(float* x) { x[threadIdx.x] += 1; }
CASE(written_by_the_kernel_before) {
  float* x;
  cudaMalloc(&x, N * sizeof(float));
  fill_half<<<1, N / 2>>>(x);
  use_half<<<1, N / 2>>>(x);
  cudaFree(x);
}

struct Padded {
  char small;
  double large;
};
__global__ void make_padded(Padded* x) {
  x[threadIdx.x].small = 1;
  x[threadIdx.x].large = 2;
}
__global__ void copy_padded(Padded* to, const Padded* from) { to[threadIdx.x] = from[threadIdx.x]; }
CASE(padding_is_never_written) {
  Padded *a, *b;
  cudaMalloc(&a, N * sizeof(Padded));
  cudaMalloc(&b, N * sizeof(Padded));
  make_padded<<<1, N>>>(a);
  copy_padded<<<1, N>>>(b, a);
  std::vector<Padded> host(N);
  cudaMemcpy(host.data(), b, N * sizeof(Padded), cudaMemcpyDeviceToHost);
  cudaFree(a);
  cudaFree(b);
}

__global__ void largest(Padded* out) {  // a structure is read as a whole, with what nobody has written
  __shared__ Padded best[N];
  __shared__ int places[N];
  if (threadIdx.x == 0) memset(places, 0, sizeof places);
  best[threadIdx.x].small = 1;
  best[threadIdx.x].large = 2;
  for (int distance = N / 2; distance > 0; distance /= 2) {
    __syncthreads();
    if (threadIdx.x < distance) best[threadIdx.x] = best[threadIdx.x + distance];
  }
  __syncthreads();
  atomicAdd(&places[0], 1);
  if (threadIdx.x == 0) out[0] = best[0];
}
CASE(padding_in_shared_memory) { largest<<<1, N>>>(Zeros<Padded>(1)); }

__global__ void neighbours_bytes(char* x) { x[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x; }
CASE(bytes_beside_each_other) {
  Zeros<char> x(3 * 7);
  neighbours_bytes<<<3, 7>>>(x);
}

__global__ void ping_pong(float* to, const float* from, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = (from[i > 0 ? i - 1 : 0] + from[i < n - 1 ? i + 1 : i]) / 2;
}
CASE(stencil_with_two_buffers) {
  Zeros<float> a(4 * N), b(4 * N);
  for (int i = 0; i < 2; ++i) {
    ping_pong<<<4, N>>>(b, a, 4 * N);
    ping_pong<<<4, N>>>(a, b, 4 * N);
  }
}

CASE(columns_that_are_not_copied) {
  constexpr std::size_t pitch = 512, width = N * sizeof(float);
  float* x;
  std::vector<float> host(2 * N);
  cudaMalloc(&x, 2 * pitch);
  for (int row = 0; row < 2; ++row) fill_half<<<1, N>>>(x + row * pitch / sizeof(float));
  cudaMemcpy2D(host.data(), width, x, pitch, width, 2, cudaMemcpyDeviceToHost);
  expect(host[2 * N - 1] == 1);
  cudaMemcpy(host.data(), x, width, cudaMemcpyDeviceToHost);
  cudaFree(x);
}

__global__ void with_heap(int** lists) {
  int* own = static_cast<int*>(malloc(4 * sizeof(int)));
  own[1] = threadIdx.x;
  lists[threadIdx.x] = own;
  __syncthreads();
  const int other = lists[threadIdx.x ^ 1][1];
  __syncthreads();
  free(own);
  lists[threadIdx.x] = reinterpret_cast<int*>(static_cast<long>(other));
}
CASE(memory_of_the_kernels_own) {
  Zeros<int*> lists(N);
  with_heap<<<1, N>>>(lists);
}

__constant__ int weights[5000];
__device__ int table[5000];
__global__ void look_up(int* out, int i) { out[threadIdx.x] = weights[i + threadIdx.x] + table[i + threadIdx.x]; }
CASE(constants_and_variables) {
  Zeros<int> out(N);
  look_up<<<1, N>>>(out, 4900);
}

__global__ void local_arrays(int* out, int n) {
  int own[16];
  for (int i = 0; i < 16; ++i) own[i] = i * n;
  int* p = own;
  for (int i = 0; i < 16; ++i) out[threadIdx.x] += p[(i + threadIdx.x) % 16];
}
CASE(arrays_of_a_thread) {
  Zeros<int> out(N);
  local_arrays<<<1, N>>>(out, 3);
}

__global__ void copies_ahead(const float4* from, float4* to) {
  __shared__ float4 stage[2][32];
  __pipeline_memcpy_async(&stage[0][threadIdx.x], &from[threadIdx.x], sizeof(float4));
  __pipeline_commit();
  __pipeline_memcpy_async(&stage[1][threadIdx.x], &from[32 + threadIdx.x], sizeof(float4));
  __pipeline_commit();
  __pipeline_wait_prior(1);
  __syncthreads();
  to[threadIdx.x] = stage[0][31 - threadIdx.x];
  __pipeline_wait_prior(0);
  __syncthreads();
  to[32 + threadIdx.x] = stage[1][31 - threadIdx.x];
}
CASE(asynchronous_copies_in_a_kernel) {
  Zeros<float4> from(64), to(64);
  copies_ahead<<<1, 32>>>(from, to);
}

// ---- the host

__global__ void fill(int* x, int value, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = value;
}
__global__ void copy_ints(int* to, const int* from) { to[threadIdx.x] = from[threadIdx.x]; }
__global__ void doubled(int* x) { x[threadIdx.x] *= 2; }

CASE(managed_memory) {
  int* x;
  cudaMallocManaged(&x, N * sizeof(int));
  for (int i = 0; i < N; ++i) x[i] = i;
  fill<<<1, N>>>(x, 7, N / 2);
  cudaDeviceSynchronize();
  expect(x[0] == 7 && x[N - 1] == N - 1);
  x[0] = 1;
  fill<<<1, N>>>(x, 8, N);
  cudaEvent_t event;
  cudaEventCreate(&event);
  cudaEventRecord(event);
  cudaEventSynchronize(event);
  cudaEventDestroy(event);
  expect(x[0] == 8);
  cudaFree(x);
}

CASE(pinned_memory_in_parts) {
  int *x = nullptr, *host;
  cudaMallocHost(&host, 2 * N * sizeof(int));
  cudaMalloc(&x, 2 * N * sizeof(int));
  cudaStream_t streams[2];
  for (auto& stream : streams) cudaStreamCreate(&stream);
  for (int i = 0; i < 2 * N; ++i) host[i] = i;
  for (int s = 0; s < 2; ++s) {
    cudaMemcpyAsync(x + s * N, host + s * N, N * sizeof(int), cudaMemcpyHostToDevice, streams[s]);
    fill<<<1, N, 0, streams[s]>>>(x + s * N, s, N);
    cudaMemcpyAsync(host + s * N, x + s * N, N * sizeof(int), cudaMemcpyDeviceToHost, streams[s]);
  }
  cudaStreamSynchronize(streams[0]);
  expect(host[1] == 0);
  host[2] = 5;
  cudaStreamSynchronize(streams[1]);
  expect(host[N + 1] == 1 && host[2] == 5);
  for (auto& stream : streams) cudaStreamDestroy(stream);
  cudaFree(x);
  cudaFreeHost(host);
}

// The default stream waits for those others, and the host for the event in it.
CASE(pinned_memory_behind_an_event) {
  int* host;
  cudaMallocHost(&host, N * sizeof(int));
  Zeros<int> x(N);
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaEvent_t done;
  cudaEventCreate(&done);
  cudaMemcpyAsync(host, x, N * sizeof(int), cudaMemcpyDeviceToHost, stream);
  cudaEventRecord(done);
  cudaEventSynchronize(done);
  expect(host[3] == 0);
  cudaEventDestroy(done);
  cudaStreamDestroy(stream);
  cudaFreeHost(host);
}

// A system call would not get at a page that is closed.
CASE(files_beside_what_a_kernel_touches) {
  constexpr int half = 64 * N;  // pages
  int* host;
  cudaHostAlloc(&host, 2 * half * sizeof(int), cudaHostAllocMapped);
  for (int i = 0; i < 2 * half; ++i) host[i] = 7;
  std::FILE* const file = std::tmpfile();
  std::setvbuf(file, nullptr, _IONBF, 0);
  fill<<<1, N>>>(host, 1, N);
  expect(std::fwrite(host + half, sizeof(int), half, file) == half);
  std::rewind(file);
  expect(std::fread(host + half, sizeof(int), half, file) == half);
  std::memset(host + N, 0, sizeof(int));
  cudaDeviceSynchronize();
  expect(host[0] == 1 && host[2 * half - 1] == 7);
  std::fclose(file);
  cudaFreeHost(host);
}
CASE(written_to_a_file_beside_a_copy) {
  int* host;
  cudaMallocHost(&host, 2 * N * sizeof(int));
  for (int i = 0; i < 2 * N; ++i) host[i] = 7;
  Zeros<int> x(N);
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  std::FILE* const file = std::tmpfile();
  std::setvbuf(file, nullptr, _IONBF, 0);
  cudaMemcpyAsync(host, x, N * sizeof(int), cudaMemcpyDeviceToHost, stream);
  expect(std::fwrite(host + N, sizeof(int), N, file) == N);
  cudaStreamSynchronize(stream);
  expect(host[0] == 0);
  std::fclose(file);
  cudaStreamDestroy(stream);
  cudaFreeHost(host);
}

CASE(a_stream_for_each_thread_of_the_host) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([t] {
      cudaStream_t stream;
      cudaStreamCreate(&stream);
      for (int i = 0; i < 50; ++i) {
        int *x, *host;
        cudaMalloc(&x, N * sizeof(int));
        cudaMallocHost(&host, N * sizeof(int));
        host[0] = t;
        cudaMemcpyAsync(x, host, sizeof(int), cudaMemcpyHostToDevice, stream);
        fill<<<1, N, 0, stream>>>(x, t + i, N);
        cudaMemcpyAsync(host, x, sizeof(int), cudaMemcpyDeviceToHost, stream);
        cudaStreamSynchronize(stream);
        expect(host[0] == t + i);
        cudaFreeHost(host);
        cudaFree(x);
      }
      cudaStreamDestroy(stream);
    });
  for (std::thread& each : threads) each.join();
}

// What one of them copies, or lets a kernel write, is open to it, whatever the others begin and wait for.
CASE(long_copies_of_several_threads_of_the_host) {
  constexpr int many = 100000;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      const Zeros<int> x(many);
      int* host;
      cudaMallocHost(&host, many * sizeof(int));
      cudaStream_t stream;
      cudaStreamCreate(&stream);
      for (int i = 0; i < many; ++i) host[i] = i;
      for (int i = 0; i < 20; ++i) {
        cudaMemcpyAsync(x, host, many * sizeof(int), cudaMemcpyHostToDevice, stream);
        cudaMemcpyAsync(host, x, many * sizeof(int), cudaMemcpyDeviceToHost, stream);
        cudaStreamSynchronize(stream);
      }
      expect(host[many - 1] == many - 1);
      cudaStreamDestroy(stream);
      cudaFreeHost(host);
    });
  for (std::thread& each : threads) each.join();
}

CASE(mapped_memory_of_several_threads_of_the_host) {
  constexpr int blocks = 20;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      int* x;
      cudaHostAlloc(&x, blocks * N * sizeof(int), cudaHostAllocMapped);
      for (int i = 0; i < blocks * N; ++i) x[i] = 1;
      cudaStream_t stream;
      cudaStreamCreate(&stream);
      for (int i = 0; i < 10; ++i) {
        for (int block = 0; block < blocks; ++block) doubled<<<1, N, 0, stream>>>(x + block * N);
        cudaStreamSynchronize(stream);
        x[0] += 1;
      }
      expect(x[N] == 1024);
      cudaStreamDestroy(stream);
      cudaFreeHost(x);
    });
  for (std::thread& each : threads) each.join();
}

// Two streams read, and the update waits for both.
CASE(updated_when_two_streams_have_read) {
  Zeros<int> x(N), y(N), z(N);
  int* host;
  cudaMallocHost(&host, N * sizeof(int));
  cudaStream_t one, other;
  cudaStreamCreate(&one), cudaStreamCreate(&other);
  cudaEvent_t read;
  cudaEventCreate(&read);
  cudaDeviceSynchronize();
  for (int i = 0; i < 3; ++i) {
    copy_ints<<<1, N, 0, one>>>(y, x);
    cudaMemcpyAsync(host, x, N * sizeof(int), cudaMemcpyDeviceToHost, other);
    copy_ints<<<1, N, 0, other>>>(z, x);
    cudaEventRecord(read, one);
    cudaStreamWaitEvent(other, read, 0);
    doubled<<<1, N, 0, other>>>(x);
    cudaStreamSynchronize(other);
  }
  cudaEventDestroy(read);
  cudaStreamDestroy(one), cudaStreamDestroy(other);
  cudaFreeHost(host);
}

CASE(managed_memory_as_the_host_s_end_of_a_copy) {
  int *x, *y;
  cudaMallocManaged(&x, N * sizeof(int)), cudaMallocManaged(&y, N * sizeof(int));
  const Zeros<int> on_device(N);
  for (int i = 0; i < N; ++i) x[i] = i;
  cudaMemcpy(on_device, x, N * sizeof(int), cudaMemcpyHostToDevice);
  doubled<<<1, N>>>(on_device);
  cudaMemcpy2D(y, 16, on_device, 16, 16, N / 4, cudaMemcpyDeviceToHost);
  expect(y[N - 1] == 2 * N - 2);
  cudaMemcpyAsync(x, y, N * sizeof(int), cudaMemcpyHostToHost);
  cudaDeviceSynchronize();
  expect(x[N - 1] == 2 * N - 2);
  cudaFree(x), cudaFree(y);
}

CASE(streams_in_order_by_an_event) {
  Zeros<int> x(N), y(N);
  cudaStream_t one, other;
  cudaStreamCreate(&one);
  cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  cudaEvent_t done;
  cudaEventCreate(&done);
  cudaDeviceSynchronize();
  fill<<<1, N, 0, one>>>(x, 1, N);
  cudaEventRecord(done, one);
  cudaStreamWaitEvent(other, done, 0);
  copy_ints<<<1, N, 0, other>>>(y, x);
  cudaStreamSynchronize(other);
  expect(first<int>(y) == 1);
  cudaEventDestroy(done);
  cudaStreamDestroy(one);
  cudaStreamDestroy(other);
}

__global__ void add_one(int* sum) { atomicAdd(sum, 1); }
CASE(sum_of_two_streams_behind_its_clearing) {
  Zeros<int> sum(1);
  cudaStream_t one, other;
  cudaStreamCreate(&one), cudaStreamCreate(&other);
  cudaEvent_t cleared;
  cudaEventCreate(&cleared);
  cudaDeviceSynchronize();
  for (int i = 0; i < 3; ++i) {
    cudaMemsetAsync(sum, 0, sizeof(int), one);
    cudaEventRecord(cleared, one);
    add_one<<<2, N, 0, one>>>(sum);
    cudaStreamWaitEvent(other, cleared, 0);
    add_one<<<2, N, 0, other>>>(sum);
    cudaStreamSynchronize(one);
    cudaStreamSynchronize(other);
  }
  expect(first<int>(sum) == 4 * N);
  cudaEventDestroy(cleared);
  cudaStreamDestroy(one), cudaStreamDestroy(other);
}

CASE(default_stream_waits_for_others) {
  Zeros<int> x(N), y(N);
  cudaStream_t one;
  cudaStreamCreate(&one);
  fill<<<1, N, 0, one>>>(x, 1, N);
  copy_ints<<<1, N>>>(y, x);
  fill<<<1, N, 0, one>>>(y, 2, N);
  cudaDeviceSynchronize();
  expect(first<int>(y) == 2);
  cudaStreamDestroy(one);
}

CASE(streams_on_parts_of_one_buffer) {
  Zeros<int> x(4 * N);
  cudaStream_t streams[4];
  for (auto& stream : streams) cudaStreamCreate(&stream);
  for (int s = 0; s < 4; ++s) fill<<<1, N, 0, streams[s]>>>(x + s * N, s, N);
  cudaDeviceSynchronize();
  for (auto& stream : streams) cudaStreamDestroy(stream);
}

__global__ void tell(int n) { std::printf("%d\n", n); }
__global__ void tell_nothing(int n) {
  if (n < 0) std::printf("%d\n", n);
}
CASE(printed_and_awaited) {
  tell<<<1, 1>>>(3);
  cudaDeviceSynchronize();
  tell_nothing<<<1, 1>>>(3);
  std::exit(0);
}

CASE(failure_that_is_looked_at) {
  int* x = nullptr;
  if (cudaMalloc(&x, std::size_t(1) << 60) == cudaSuccess) expect(false);
  cudaFree(reinterpret_cast<void*>(8));  // looked at in the next line
  if (cudaGetLastError() == cudaSuccess) expect(false);
}

CASE(registered_host_memory) {
  std::vector<int> host(N, 3);
  Zeros<int> y(N);
  cudaHostRegister(host.data(), N * sizeof(int), cudaHostRegisterDefault);
  int* x = nullptr;
  cudaHostGetDevicePointer(&x, host.data(), 0);
  copy_ints<<<1, N>>>(y, x);
  cudaDeviceSynchronize();
  cudaHostUnregister(host.data());
  expect(first<int>(y) == 3);
}

CASE(pinned_memory_in_a_kernel) {
  int *host, *x;
  cudaHostAlloc(&host, N * sizeof(int), cudaHostAllocMapped);
  for (int i = 0; i < N; ++i) host[i] = 4;
  cudaHostGetDevicePointer(&x, host, 0);
  Zeros<int> y(N);
  copy_ints<<<1, N>>>(y, x);
  expect(first<int>(y) == 4);
  cudaFreeHost(host);
}

__global__ void much_dynamic(int* x) {
  extern __shared__ int large_part[];
  large_part[threadIdx.x] = 1;
  __syncthreads();
  x[threadIdx.x] = large_part[threadIdx.x ^ 1];
}
CASE(shared_memory_that_was_opted_into) {
  Zeros<int> x(N);
  cudaFuncSetAttribute(much_dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 * 1024);
  much_dynamic<<<1, N, 64 * 1024>>>(x);
}

CASE(freed_by_the_reset) {
  int* x = zeros<int>(N);
  fill<<<1, N>>>(x, 1, N);
  cudaDeviceReset();
}

CASE(made_anew_after_a_reset) {
  for (int part = 0; part < 2; ++part) {
    int* x = zeros<int>(N);
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    fill<<<1, N, 0, stream>>>(x, 1, N);
    cudaStreamSynchronize(stream);
    expect(first(x) == 1);
    cudaDeviceReset();
  }
}

// ---- clusters

// Every block has a part of the histogram. The size of a cluster is the template's.
template <int blocks>
__global__ void __cluster_dims__(blocks, 1, 1) histogram_of_clusters(int* out, const int* in) {
  __shared__ int part[N];
  cg::cluster_group cluster = cg::this_cluster();
  part[threadIdx.x] = 0;
  cluster.sync();
  for (int i = cluster.thread_rank(); i < 4 * N; i += cluster.num_threads())
    atomicAdd(cluster.map_shared_rank(part, in[i] % blocks) + in[i] / blocks % N, 1);
  cluster.sync();
  atomicAdd(out + cluster.block_rank() * N + threadIdx.x, part[threadIdx.x]);
}
CASE(histogram_in_each_others_shared_memory) {
  Zeros<int> out(4 * N), in(4 * N);
  histogram_of_clusters<4><<<8, N>>>(out, in);
  expect(first<int>(out) == 2 * 4 * N);
  histogram_of_clusters<2><<<dim3(2, 3), N>>>(out, in);
  expect(first<int>(out) == 5 * 4 * N);
}

// Blocks of a cluster read what others wrote to global memory before the cluster's barrier.
__global__ void global_within_clusters(int* x, int* out) {
  cg::cluster_group cluster = cg::this_cluster();
  const int own = blockIdx.x * blockDim.x + threadIdx.x;
  x[own] = own;
  __syncthreads();
  auto token = cluster.barrier_arrive();
  cluster.barrier_wait(std::move(token));
  out[own] = x[own ^ blockDim.x];
}
CASE(global_memory_and_the_barrier_of_a_cluster) {
  Zeros<int> x(4 * N), out(4 * N);
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 2;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = 4;
  config.blockDim = N;
  config.attrs = &attribute;
  config.numAttrs = 1;
  expect(cudaLaunchKernelEx(&config, global_within_clusters, (int*)x, (int*)out) == cudaSuccess);
  expect(first<int>(out) == N);
}

// A mailbox in PTX: block 1 writes into block 0's shared memory, in pieces and by a bulk copy, and tells its mbarrier.
__global__ void __cluster_dims__(2) mail_in_ptx(int* out) {
  __shared__ alignas(16) int mail[2 * N];
  __shared__ alignas(8) unsigned long long come;
  unsigned rank, blocks, to, to_come;
  asm("mov.u32 %0, %%cluster_ctarank;\n mov.u32 %1, %%cluster_nctarank;" : "=r"(rank), "=r"(blocks));
  const unsigned own = (unsigned)__cvta_generic_to_shared(mail), own_come = (unsigned)__cvta_generic_to_shared(&come);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(own_come), "r"(N + 1));
    asm volatile("fence.mbarrier_init.release.cluster;");
  }
  mail[threadIdx.x] = mail[N + threadIdx.x] = threadIdx.x;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("barrier.cluster.arrive.release.aligned;\n barrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (rank == blocks - 1) {
    asm("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(to) : "r"(own));
    asm("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(to_come) : "r"(own_come));
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(to + 4 * threadIdx.x), "r"(threadIdx.x + 5) : "memory");
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(to_come) : "memory");
    if (threadIdx.x == 0)
      asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                       to + 4 * N),
                   "r"(own + 4 * N), "r"(4 * N), "r"(to_come)
                   : "memory");
  } else {
    if (threadIdx.x == 0)
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(own_come), "r"(4 * N) : "memory");
    asm volatile(
        "{\n .reg .pred p;\n again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0;\n @!p bra "
        "again;\n}" ::"r"(own_come)
        : "memory");
    out[threadIdx.x] = mail[threadIdx.x] + mail[N + threadIdx.x];
  }
  asm volatile("barrier.cluster.arrive.release;\n barrier.cluster.wait.acquire;" ::: "memory");
}
CASE(mail_between_blocks_in_ptx) {
  Zeros<int> out(N);
  mail_in_ptx<<<2, N>>>(out);
  expect(first<int>(out) == 5);
}

// ---- shared variables beside each other

// A tile's rows as one, its elements as vectors, and a pointer past the end of another variable that nobody reads by.
__global__ void rows_as_one(float4* out) {
  __shared__ float before[N + 1];
  __shared__ float tile[8][8];
  __shared__ struct {
    char flag;
    double value;
  } pair;
  before[threadIdx.x] = (&tile[0][0])[threadIdx.x] = threadIdx.x;
  if (threadIdx.x == 0) pair = {1, 2.0}, before[N] = 0;
  __syncthreads();
  float sum = 0;
  for (const float* p = before + threadIdx.x; p != before + N + 1; ++p) sum += *p;
  if (threadIdx.x < N / 4) out[threadIdx.x] = reinterpret_cast<float4*>(tile)[threadIdx.x];
  if (sum < 0 || pair.flag != 1 || tile[0][threadIdx.x] < 0) out[0].x = pair.value;
}
CASE(rows_of_a_tile_as_one) {
  Zeros<float4> out(N / 4);
  rows_as_one<<<1, N>>>(out);
  expect(first<float4>(out).y == 1);
}

// Device variables of every kind, the constants that device code shares with the host, and a registered host variable.
__device__ int plain[16], given[3] = {1, 2, 3};
namespace {
__constant__ float quarters[4] = {1, 2, 3, 4};
__device__ volatile int flag;
}  // namespace
namespace outer::inner {
static __device__ double many[N];
__managed__ int managed[4];
}  // namespace outer::inner
__device__ const int primes[] = {2, 3, 5, 7};
template <class T>
__constant__ T of_type[4];
__device__ int count;
struct Counter {
  int own;
  __device__ int next() { return atomicAdd(&count, 1); }
};
__device__ Counter counter;
__device__ struct {
  int n;
  float v[3];
} unnamed;
extern __device__ int later;
__device__ int* address;
constexpr int size = 1;
const double pi = 3.14;
static int registered = 7;

__device__ int times_called() {
  static int calls = 0;
  return atomicAdd(&calls, 1);
}
__device__ int letter(int i) {
  static const char* const words[] = {"a", "b"};
  return words[i % 2][0];
}
__global__ void every_variable(int* out, int** host) {
  static __device__ int own[N];
  const int i = threadIdx.x;
  atomicAdd(&plain[i % 16], 1);
  own[i] = i;
  outer::inner::many[i] = i;
  if (i == 0) {
    flag = unnamed.n = counter.own = later = outer::inner::managed[3] = 1;
    unnamed.v[2] = 2;
    address = plain;
    counter.next();
  }
  __syncthreads();
  out[i] = times_called() + letter(i) + own[i] + int(outer::inner::many[i]) + **host;
  float sum = given[i % 3] + quarters[i % 4] + flag + primes[i % 4] + of_type<float>[i % 4];
  sum += unnamed.n + later + size + pi + **host;
  out[i] = sum;
}
__device__ int later = 5;
CASE(device_variables_of_every_kind) {
  const float ones[4] = {1, 1, 1, 1};
  cudaMemcpyToSymbol(of_type<float>, ones, sizeof ones);
  int* mapped;
  cudaHostRegister(&registered, sizeof registered, 0);
  cudaHostGetDevicePointer(&mapped, &registered, 0);
  Zeros<int> out(N);
  Zeros<int*> host(1);
  cudaMemcpy(host, &mapped, sizeof mapped, cudaMemcpyHostToDevice);
  every_variable<<<1, N>>>(out, host);
  expect(first<int>(out) == 19);
  cudaHostUnregister(&registered);
}

// The host's own variables of the same names: one that no kernel uses, two that are copied from and to the device's;
// and addresses of device variables that kernels have given.
struct Node {
  int value;
  Node* next;
};
__device__ Node nodes[4], *head;
__device__ int *of_the_host, *of_both, came;
__global__ void use_both(int* of_the_host) {
  of_the_host[threadIdx.x] = of_both[threadIdx.x] = threadIdx.x;
  atomicAdd(&came, 1);
  if (threadIdx.x != 0) return;
  for (int i = 0; i < 4; ++i) nodes[i] = {i, i < 3 ? &nodes[i + 1] : nullptr};
  head = nodes;
}
CASE(variables_of_the_host_with_a_device_variable_s_name) {
  cudaMalloc(&of_the_host, N * sizeof(int));
  cudaMalloc(&of_both, N * sizeof(int));
  cudaMemcpyToSymbol(of_both, &of_both, sizeof of_both);
  use_both<<<1, N>>>(of_the_host);
  cudaMemcpyFromSymbol(&came, came, sizeof came);
  expect(came == N && first(of_both) == 0);
  Node* at;
  cudaMemcpyFromSymbol(&at, head, sizeof at);
  int sum = 0;
  for (; at != nullptr; at = first(&at->next)) sum += first(&at->value);
  expect(sum == 6);
  void* address;
  cudaGetSymbolAddress(&address, nodes);
  cudaMemset(address, 0, sizeof nodes);
  cudaFree(of_the_host);
  cudaFree(of_both);
}

// Device variables, and functions, by names that are another thing's on the host, or in kernels.
__device__ int shared_counter, table_of_the_device[N];
__managed__ int managed_table[N];
__global__ void add_to(int* counter, const int* table) { atomicAdd(counter, table[threadIdx.x]); }
static void add_on_the_host_s_way(int* shared_counter, const int* table_of_the_device) {
  add_to<<<1, N>>>(shared_counter, table_of_the_device);
}
CASE(device_variables_by_their_addresses) {
  void *counter, *table;
  cudaGetSymbolAddress(&counter, shared_counter), cudaGetSymbolAddress(&table, table_of_the_device);
  add_to<<<1, N>>>(static_cast<int*>(counter), static_cast<int*>(table));
  add_to<<<1, N>>>(static_cast<int*>(counter), managed_table);
  Zeros<int> own_counter(1), own_table(N);
  add_on_the_host_s_way(own_counter, own_table);
  add_to<<<1, 32>>>(&own_counter.memory[0], &own_table.memory[1]);
}

using Function = int (*)(int);
__device__ int square(int x) { return x * x; }
__host__ __device__ int doubled_by(int x, Function f = square) { return f(x) * 2; }
struct Layer {
  Function function = square;
};
struct Scaled {
  Function function;
  int scale;
  __host__ __device__ Scaled(int scale) : function(square), scale(scale) {}
};
__device__ Layer layer_of_the_device;
__global__ void apply_all(int* out) {
  const Scaled scaled(2);
  *out = Layer().function(2) + layer_of_the_device.function(3) + scaled.scale * scaled.function(4) + doubled_by(5);
}
CASE(functions_that_kernels_take_where_the_host_could) {
  Zeros<int> out(1);
  apply_all<<<1, 1>>>(out);
  expect(first<int>(out) == 4 + 9 + 32 + 50);
}

// Arguments that host code converts and copies, and operators of both sides that are declared and defined apart.
struct Vector {
  float x, y;
  __host__ __device__ Vector operator+(Vector other) const;
  Vector& operator=(const Vector&) = default;
  bool near(Vector other) const { return std::abs(x - other.x) + std::abs(y - other.y) < 1e-6f; }
};
Vector Vector::operator+(Vector other) const { return {x + other.x, y + other.y}; }
__host__ __device__ Vector operator*(float factor, Vector v);
Vector operator*(float factor, Vector v) { return {factor * v.x, factor * v.y}; }
struct Scale {
  Scale(float by) : by(by) {}
  Scale(const Scale& other) : by(other.by) {}
  ~Scale() {}
  operator float() const { return by; }
  __device__ Vector operator()(Vector v) const { return by * v; }
  float by;
};
template <class T>
__global__ void step_by(T* p, const T* v, Scale scale, float more = 1) {
  p[threadIdx.x] = p[threadIdx.x] + more * scale(v[threadIdx.x]);
}
CASE(operators_of_both_sides) {
  Zeros<Vector> p(N), v(N);
  step_by<<<1, N>>>(p.memory, v.memory, Scale(2));
  step_by<Vector><<<1, N>>>(p.memory, v.memory, 2.5f, Scale(3));
  expect(first<Vector>(p).near(first<Vector>(v) + 2.f * Vector{0, 0}));
}

// A graph of two streams that wait for each other's events, launched in a third one.
__global__ void one_more(float* to, const float* from) { to[threadIdx.x] = from[threadIdx.x] + 1; }
CASE(graph_of_two_streams) {
  float *a = zeros<float>(32), *b = zeros<float>(32), *c = zeros<float>(32);
  cudaStream_t first, second, third;
  for (cudaStream_t* each : {&first, &second, &third}) cudaStreamCreateWithFlags(each, cudaStreamNonBlocking);
  cudaEvent_t fork, join;
  cudaEventCreate(&fork), cudaEventCreate(&join);
  cudaDeviceSynchronize();
  cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal);
  one_more<<<1, 32, 0, first>>>(b, a);
  cudaEventRecord(fork, first), cudaStreamWaitEvent(second, fork);
  one_more<<<1, 32, 0, second>>>(c, b);
  cudaEventRecord(join, second), cudaEventRecord(fork, second), cudaStreamWaitEvent(first, join);
  one_more<<<1, 32, 0, first>>>(a, c);
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  expect(cudaStreamEndCapture(first, &graph) == cudaSuccess);  // the last record in the second stream is no node
  std::size_t nodes = 0;
  cudaGraphGetNodes(graph, nullptr, &nodes);
  assert(nodes == 3);
  cudaGraphInstantiate(&executable, graph, 0);
  for (int i = 0; i < 3; ++i) cudaGraphLaunch(executable, third);
  one_more<<<1, 32, 0, third>>>(b, a);
  cudaStreamSynchronize(third);
  cudaGraphExecDestroy(executable), cudaGraphDestroy(graph);
  cudaFree(a), cudaFree(b), cudaFree(c);
}

// ---- memory in its stream, memory of the host, memory of a kernel's own

CASE(memory_in_the_order_of_streams) {
  cudaStream_t one, other;
  cudaStreamCreate(&one), cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  cudaEvent_t there, done;
  cudaEventCreate(&there), cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
  for (int i = 0; i < 2; ++i) {
    int* x;
    cudaMallocAsync(&x, N * sizeof(int), one);
    cudaMemsetAsync(x, 1, N * sizeof(int), one);
    cudaEventRecord(there, one), cudaStreamWaitEvent(other, there, 0);
    doubled<<<1, N, 0, other>>>(x);
    cudaEventRecord(done, other), cudaStreamWaitEvent(one, done, 0);
    cudaFreeAsync(x, one);
  }
  cudaStreamDestroy(one), cudaStreamDestroy(other);
  cudaEventDestroy(there), cudaEventDestroy(done);
}

CASE(mapped_memory_that_is_awaited) {
  int *host, *x;
  cudaHostAlloc(&host, N * sizeof(int), cudaHostAllocMapped);
  cudaHostGetDevicePointer(&x, host, 0);
  for (int i = 0; i < N; ++i) host[i] = i;
  doubled<<<1, N / 2>>>(x);
  host[N - 1] = 3;  // of which the kernel has nothing
  cudaDeviceSynchronize();
  expect(host[5] == 10);
  cudaStream_t one, other;
  cudaStreamCreate(&one), cudaStreamCreate(&other);
  cudaEvent_t done;
  cudaEventCreate(&done);
  doubled<<<1, N, 0, one>>>(x);
  cudaEventRecord(done, one), cudaStreamWaitEvent(other, done, 0);
  cudaStreamSynchronize(other);
  expect(host[5] == 20);
  cudaFreeHost(host);
  cudaStreamDestroy(one), cudaStreamDestroy(other);
  cudaEventDestroy(done);
}

__global__ void answers(volatile int* there, int* result) {
  *result = 42;
  __threadfence_system();
  *there = 1;
}
CASE(host_that_looks_at_a_flag) {
  int* shared;
  cudaHostAlloc(&shared, 2 * sizeof(int), cudaHostAllocMapped);
  shared[0] = 0;
  answers<<<1, 1>>>(shared, shared + 1);
  while (*const_cast<volatile int*>(shared) == 0) {
  }
  expect(shared[1] == 42);
  cudaDeviceSynchronize();
  cudaFreeHost(shared);
}

CASE(time_between_events) {
  const Zeros<int> x(N);
  int host[N];
  cudaEvent_t start, stop;
  cudaEventCreate(&start), cudaEventCreate(&stop);
  float milliseconds = -1;
  cudaEventRecord(start);
  doubled<<<1, N>>>(x);
  cudaEventRecord(stop);
  cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);  // which waits for the event, too
  expect(cudaEventElapsedTime(&milliseconds, start, stop) == cudaSuccess && milliseconds >= 0);
  doubled<<<1, N>>>(x);
  cudaEventRecord(stop);
  cudaMemcpyAsync(host, x, sizeof host, cudaMemcpyDeviceToHost);  // into pageable memory: it returns when it is done
  expect(cudaEventElapsedTime(&milliseconds, start, stop) == cudaSuccess);
  cudaEventRecord(stop);
  while (cudaEventQuery(stop) == cudaErrorNotReady) {
  }
  expect(cudaEventElapsedTime(&milliseconds, start, stop) == cudaSuccess);
  cudaEventDestroy(start), cudaEventDestroy(stop);
}

CASE(allocation_in_a_relaxed_capture) {
  const Zeros<int> x(N);
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
  int* more;
  cudaMalloc(&more, N * sizeof(int));
  cudaMemsetAsync(more, 0, N * sizeof(int), stream);
  doubled<<<1, N, 0, stream>>>(more);
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  expect(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphLaunch(executable, stream);
  cudaStreamSynchronize(stream);
  cudaGraphExecDestroy(executable), cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  cudaFree(more);
}

struct Shape {
  __device__ virtual ~Shape() {}
  __device__ virtual int corners() const = 0;
};
struct Square : Shape {
  int sides[4] = {1, 1, 1, 1};
  __device__ int corners() const override { return sides[0] * 4; }
};
struct Link {
  int value;
  Link* next;
  __device__ Link(int value, Link* next) : value(value), next(next) {}
  __device__ ~Link() { value = 0; }
};
struct Owner {  // of memory that it asks for before its body
  int *one, *three, *by_malloc, *of_both = new int(1);
  __device__ explicit Owner(int n)
      : one{new int(n)}, three(new int[3]{n, n, n}), by_malloc(static_cast<int*>(malloc(sizeof(int)))) {
    int* const value = new int(n);
    *by_malloc = *value;
    delete value;
  }
  Owner() : one(new int), three(new int[3]), by_malloc(static_cast<int*>(malloc(sizeof(int)))) {}  // the host's
  __host__ __device__ ~Owner() {
    delete one;
    delete[] three;
    free(by_malloc);
    delete of_both;
  }
};
template <class T, int n>
__device__ T two_of() {
  return n;
}
template <class... Values>
__device__ void print_all(Values... values) {
  printf("%s %s %d\n", values...);
  printf("is 50%% of %d, as %.1f of %d\n", two_of<int, 4>(), 2.0f, two_of<int, 4>());
}
__device__ char pool_memory[64];
__device__ int pool_used;
namespace pool {  // functions that only have the library's names
__device__ void* malloc(int bytes) { return pool_memory + atomicAdd(&pool_used, bytes); }
__device__ void* two(int bytes) { return malloc(2 * bytes); }
}  // namespace pool
struct Pooled {
  int value;
  __device__ explicit Pooled(int n) : value(n) {}
  __device__ void* operator new(size_t bytes) { return pool::malloc(int(bytes)); }
  __device__ void operator delete(void*) { free(1); }
  __device__ static void free(int objects) { atomicAdd(&pool_used, -4 * objects); }
};
struct Deeper : Pooled {
  __device__ Deeper() : Pooled(5) {}
  __device__ ~Deeper();
};
__device__ Deeper::~Deeper() { free(0); }
__global__ void from_a_pool(int* sum) {
  int* const two = static_cast<int*>(pool::two(sizeof(int)));
  two[1] = 3;
  const Pooled* const one = new Pooled(4);
  const Deeper* const deeper = new Deeper;
  Pooled** const pointers = new Pooled*[2];
  Pooled* const elsewhere = ::new Pooled(6);
  pointers[1] = elsewhere;
  *sum = two[1] + one->value + deeper->value + pointers[1]->value + pool_used;
  delete one;
  delete deeper;
  elsewhere->~Pooled();
  ::free(elsewhere);
  delete[] pointers;
}
__global__ void memory_of_its_own(int* sums, bool quiet) {
  Link* list = nullptr;
  for (int i = 0; i < 10; ++i) list = new Link(i, list);
  int sum = 0;
  while (list != nullptr) {
    Link* const next = list->next;
    sum += list->value;
    delete list;
    list = next;
  }
  float4* const pairs = new float4[3];
  pairs[2] = make_float4(1, 2, 3, 4);
  sum += int(pairs[2].w);
  delete[] pairs;
  int* const zeros = new int[5]();
  sum += zeros[4];
  delete[] zeros;
  Link* const two = new Link[2]{{1, nullptr}, {2, nullptr}};
  sum += two[1].value;
  delete[] two;
  char* const text = static_cast<char*>(malloc(4));
  text[0] = 'o', text[1] = 'k', text[2] = 0;
  if (!quiet) print_all(text, "here", int(two_of<int, 2>()));
  free(text);
  const Shape* const shape = new Square;
  sum += shape->corners();
  delete shape;
  const Owner owner(2);
  sum += *owner.one + owner.three[2] + *owner.by_malloc + *owner.of_both;
  sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
// More than the heap holds, in pieces of one size and then of another.
__global__ void pieces(int bytes, bool keep, int* sum) {
  char* const mine = static_cast<char*>(malloc(bytes));
  if (mine == nullptr) return;
  mine[0] = mine[bytes - 1] = 1;
  atomicAdd(sum, mine[0]);
  if (!keep) free(mine);
}
CASE(kernels_that_allocate_what_others_freed) {
  const Zeros<int> got(1);
  cudaDeviceSetLimit(cudaLimitMallocHeapSize, 1 << 16);
  for (int bytes : {2048, 16, 1500, 3000}) pieces<<<1, 256>>>(bytes, false, got);
  pieces<<<1, 256>>>(16, true, got);
  expect(first<int>(got) == 5 * 256);
}

CASE(kernel_that_allocates) {
  const Zeros<int> sums(2 * N);
  memory_of_its_own<<<2, N>>>(sums, true);
  memory_of_its_own<<<1, 1>>>(sums, false);
  expect(first<int>(sums) == 45 + 4 + 2 + 4 + 7);
  from_a_pool<<<1, 1>>>(sums);
  expect(first<int>(sums) == 3 + 4 + 5 + 6 + 16);
  int used;
  cudaMemcpyFromSymbol(&used, pool_used, sizeof used);
  expect(used == 8);
  const Owner owner;
  expect(*owner.of_both == 1);
}

// ---- streams of their own, and the default stream

__global__ void count_threads(int* counter) { atomicAdd(counter, 1); }
CASE(one_counter_of_two_streams) {
  const Zeros<int> counter(1);
  cudaStream_t one, other;
  cudaStreamCreate(&one), cudaStreamCreate(&other);
  count_threads<<<2, N, 0, one>>>(counter);
  count_threads<<<2, N, 0, other>>>(counter);
  expect(first<int>(counter) == 4 * N);  // the default stream waits for both
  cudaStreamDestroy(one), cudaStreamDestroy(other);
}

// The data in one block of pinned memory, and the flag that tells of it in another one.
CASE(host_that_looks_at_a_flag_beside_the_data) {
  int *flag, *data;
  cudaHostAlloc(&flag, sizeof(int), cudaHostAllocMapped);
  cudaHostAlloc(&data, 1024 * sizeof(int), cudaHostAllocMapped);
  *flag = 0;
  answers<<<1, 1>>>(flag, data);
  while (*const_cast<volatile int*>(flag) == 0) {
  }
  expect(data[0] == 42);
  cudaDeviceSynchronize();
  cudaFreeHost(flag), cudaFreeHost(data);
}

__device__ int of_the_device[N];
__global__ void twice_of_the_device() { of_the_device[threadIdx.x] *= 2; }
CASE(copies_in_the_stream_of_their_kernels) {
  const Zeros<int> x(N), y(N);
  int* host;
  cudaMallocHost(&host, N * sizeof(int));
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaMemset(host, 1, N * sizeof(int));  // pinned memory is the device's, too
  expect(host[3] == 0x01010101);
  cudaMemset2DAsync(x, 64, 0, 32, 4, stream);
  cudaMemcpyToSymbolAsync(of_the_device, host, sizeof of_the_device, 0, cudaMemcpyHostToDevice, stream);
  doubled<<<1, N, 0, stream>>>(x);
  twice_of_the_device<<<1, N, 0, stream>>>();
  cudaMemcpyFromSymbolAsync(host, of_the_device, sizeof of_the_device, 0, cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  expect(host[5] == 0x02020202);
  cudaMemcpy2DAsync(host, 64, x, 64, 64, 4, cudaMemcpyDeviceToHost, stream);
  cudaMemsetAsync(host, 0, 4, stream);
  cudaStreamSynchronize(stream);
  expect(host[0] == 0 && host[N - 1] == 0);
  cudaMemcpy(x, host, N * sizeof(int), cudaMemcpyHostToDevice);  // it is done when the call returns
  doubled<<<1, N, 0, stream>>>(x);
  cudaStreamSynchronize(stream);
  cudaMemcpy(y, x, N * sizeof(int), cudaMemcpyDeviceToDevice);
  cudaStreamSynchronize(0);
  doubled<<<1, N, 0, stream>>>(x);
  cudaEvent_t event;
  cudaEventCreate(&event);
  cudaEventRecord(event, stream), cudaStreamWaitEvent(0, event, 0);
  expect(first<int>(x) == 0);
  cudaEventDestroy(event);
  cudaStreamDestroy(stream);
  cudaFreeHost(host);
}

// From one stream to another, by way of pinned memory, in parts of odd lengths; each time an event is between.
CASE(pinned_memory_from_stream_to_stream) {
  constexpr int part = 13;
  const Zeros<char> x(4 * part), y(4 * part);
  for (int round = 0; round < 2; ++round) {
    char* host;
    cudaMallocHost(&host, 4 * part);  // the second time as a rule where it was the first time
    cudaStream_t one, other;
    cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking), cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaEvent_t there;
    cudaEventCreate(&there);
    cudaMemset(x, 7 + round, 4 * part);
    cudaDeviceSynchronize();
    for (int i = 0; i < 4; ++i) {
      cudaMemcpyAsync(host + i * part, x + i * part, part, cudaMemcpyDeviceToHost, one);
      cudaEventRecord(there, one);
      cudaStreamWaitEvent(other, there, 0);
      cudaMemcpyAsync(y + i * part, host + i * part, part, cudaMemcpyHostToDevice, other);
    }
    cudaStreamSynchronize(other);
    expect(first<char>(y) == 7 + round && host[4 * part - 1] == 7 + round);
    cudaMemcpyAsync(x, host, 4 * part, cudaMemcpyHostToDevice, one);  // who frees the memory waits for it
    cudaEventDestroy(there);
    cudaStreamDestroy(one), cudaStreamDestroy(other);
    cudaFreeHost(host);
  }
}

// What the device knows pinned memory by is taken for memory of the device by a copy, too.
CASE(copies_by_the_device_s_address_of_pinned_memory) {
  int *host, *mapped, result[N];
  cudaHostAlloc(&host, N * sizeof(int), cudaHostAllocMapped);
  cudaHostGetDevicePointer(&mapped, host, 0);
  for (int i = 0; i < N; ++i) host[i] = i;
  doubled<<<1, N>>>(mapped);
  expect(cudaMemcpy(result, mapped, sizeof result, cudaMemcpyDeviceToHost) == cudaSuccess);
  expect(result[N - 1] == 2 * N - 2);
  expect(cudaMemcpy(mapped, result, sizeof result / 2, cudaMemcpyHostToDevice) == cudaSuccess);
  expect(host[N - 1] == 2 * N - 2);
  cudaFreeHost(host);
}

// Both streams count by atomic functions, and look at how far they are.
__global__ void count_and_look(int* counter, volatile int* seen) {
  atomicAdd_system(counter, 1);
  *seen = *const_cast<volatile int*>(counter);
}
CASE(pinned_counter_of_two_streams) {
  int* counters;
  cudaHostAlloc(&counters, 2 * sizeof(int), cudaHostAllocMapped);
  counters[0] = counters[1] = 0;
  cudaStream_t one, other;
  cudaStreamCreate(&one), cudaStreamCreate(&other);
  count_and_look<<<2, N, 0, one>>>(counters, counters + 1);
  count_and_look<<<2, N, 0, other>>>(counters, counters + 1);
  cudaDeviceSynchronize();
  expect(counters[0] == 4 * N);
  cudaStreamDestroy(one), cudaStreamDestroy(other);
  cudaFreeHost(counters);
}

// The host waits for a kernel by looking at its flag, and then gives its results to another stream.
CASE(flag_that_tells_the_host_of_what_comes_next) {
  int *flag, *data;
  cudaHostAlloc(&flag, sizeof(int), cudaHostAllocMapped), cudaHostAlloc(&data, sizeof(int), cudaHostAllocMapped);
  *flag = *data = 0;
  const Zeros<int> x(1);
  cudaStream_t one, other;
  cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking), cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  cudaDeviceSynchronize();
  answers<<<1, 1, 0, one>>>(flag, data);
  while (*const_cast<volatile int*>(flag) == 0) {
  }
  cudaMemcpyAsync(x, data, sizeof(int), cudaMemcpyHostToDevice, other);
  doubled<<<1, 1, 0, other>>>(x);
  cudaDeviceSynchronize();
  expect(first<int>(x) == 84);
  int* managed;
  cudaMallocManaged(&managed, sizeof(int)), *managed = 0;
  answers<<<1, 1, 0, one>>>(managed, x);
  while (*const_cast<volatile int*>(managed) == 0) {
  }
  doubled<<<1, 1, 0, other>>>(x);
  cudaDeviceSynchronize();
  expect(first<int>(x) == 84);
  cudaStreamDestroy(one), cudaStreamDestroy(other);
  cudaFreeHost(flag), cudaFreeHost(data), cudaFree(managed);
}

// It is rewritten when the kernels that read it, each in a stream of its own, have done so, and read again afterwards.
__constant__ int factors_of_streams[N];
__global__ void multiplied(int* x) { x[threadIdx.x] *= factors_of_streams[threadIdx.x]; }
CASE(constants_rewritten_between_kernels) {
  const Zeros<int> x(4 * N);
  int* host;
  cudaMallocHost(&host, N * sizeof(int));
  cudaStream_t streams[4], copies;
  for (cudaStream_t& stream : streams) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking);
  cudaEvent_t done;
  cudaEventCreate(&done);
  fill<<<4, N>>>(x, 1, 4 * N);
  cudaDeviceSynchronize();
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < N; ++i) host[i] = 2 + round;
    cudaMemcpyToSymbolAsync(factors_of_streams, host, sizeof factors_of_streams, 0, cudaMemcpyHostToDevice, copies);
    cudaEventRecord(done, copies);
    for (int i = 0; i < 4; ++i) {
      cudaStreamWaitEvent(streams[i], done, 0);
      multiplied<<<1, N, 0, streams[i]>>>(x + i * N);
    }
    for (cudaStream_t stream : streams) cudaEventRecord(done, stream), cudaStreamWaitEvent(copies, done, 0);
    cudaEventRecord(done, copies), cudaEventSynchronize(done);
  }
  const int last[N] = {5};
  multiplied<<<1, N, 0, streams[0]>>>(x);
  cudaStreamSynchronize(streams[0]);
  cudaMemcpyToSymbol(factors_of_streams, last, sizeof last);
  multiplied<<<1, N, 0, streams[1]>>>(x);
  cudaDeviceSynchronize();
  expect(first<int>(x) == 2 * 3 * 3 * 5);
  for (cudaStream_t stream : streams) cudaStreamDestroy(stream);
  cudaStreamDestroy(copies);
  cudaEventDestroy(done);
  cudaFreeHost(host);
}

// An event of the default stream, and a wait in it, are work of that stream, which comes between those of the streams
// that block.
CASE(event_of_the_default_stream_between_two_others) {
  const Zeros<int> x(N);
  cudaStream_t one, other;
  cudaStreamCreate(&one), cudaStreamCreate(&other);
  cudaEvent_t between;
  cudaEventCreate(&between);
  doubled<<<1, N, 0, one>>>(x);
  cudaEventRecord(between);
  doubled<<<1, N, 0, other>>>(x);
  cudaStreamWaitEvent(0, between, 0);
  doubled<<<1, N, 0, one>>>(x);
  cudaDeviceSynchronize();
  cudaEventDestroy(between);
  cudaStreamDestroy(one), cudaStreamDestroy(other);
}

// Two graphs, captured in a stream that is no more when they are launched, each with a copy that is waited for.
CASE(graphs_one_after_the_other) {
  const Zeros<int> x(N);
  int* host;
  cudaMallocHost(&host, N * sizeof(int));
  cudaStream_t captured, one, other;
  for (cudaStream_t* each : {&captured, &one, &other}) cudaStreamCreateWithFlags(each, cudaStreamNonBlocking);
  cudaDeviceSynchronize();
  cudaGraph_t graph, its;
  cudaGraphExec_t doubles, copies;
  cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal);
  doubled<<<1, N, 0, captured>>>(x);
  cudaStreamCaptureStatus status;
  unsigned long long id = 0;
  expect(cudaStreamGetCaptureInfo(captured, &status, &id, &its) == cudaSuccess);
  cudaStreamEndCapture(captured, &graph);
  expect(status == cudaStreamCaptureStatusActive && id != 0 && its == graph);
  cudaGraphInstantiate(&doubles, graph, 0), cudaGraphDestroy(graph);
  cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal);
  cudaMemcpyAsync(host, x, N * sizeof(int), cudaMemcpyDeviceToHost, captured);
  cudaStreamEndCapture(captured, &graph);
  cudaGraphInstantiate(&copies, graph, 0), cudaGraphDestroy(graph);
  cudaStreamDestroy(captured);
  cudaEvent_t done;
  cudaEventCreate(&done);
  cudaGraphLaunch(doubles, one), cudaGraphLaunch(doubles, other);  // of one graph, the second comes after the first
  cudaEventRecord(done, other), cudaStreamWaitEvent(one, done, 0);
  for (int i = 0; i < 2; ++i) {
    cudaGraphLaunch(copies, one);
    cudaStreamSynchronize(one);
    expect(host[7] == 0);
  }
  cudaGraphExecDestroy(doubles), cudaGraphExecDestroy(copies);
  cudaEventDestroy(done);
  cudaStreamDestroy(one), cudaStreamDestroy(other);
  cudaFreeHost(host);
}

// Each stream has its half of a managed block, and memory that only the host uses is there all the time.
CASE(managed_memory_of_two_streams) {
  int *x, *own;
  cudaMallocManaged(&x, 2 * N * sizeof(int));
  cudaMallocManaged(&own, sizeof(int));
  cudaStream_t one, other;
  cudaStreamCreate(&one), cudaStreamCreate(&other);
  for (int i = 0; i < 2 * N; ++i) x[i] = i;
  for (int i = 0; i < 2; ++i) {
    doubled<<<1, N, 0, one>>>(x);
    doubled<<<1, N, 0, other>>>(x + N);
    *own = i;
    cudaStreamSynchronize(one);
    expect(x[1] == 2 << i);
    x[0] = *own;
    cudaStreamSynchronize(other);
    expect(x[N] == 2 * N << i);
  }
  cudaStreamDestroy(one), cudaStreamDestroy(other);
  cudaFree(x), cudaFree(own);
}

__global__ void answers_and_counts(int* counter, volatile int* there, int* result) {
  atomicAdd_system(counter, 1);
  *result = 42;
  __threadfence_system();
  *there = 1;
}
CASE(host_that_counts_and_looks_at_a_managed_flag) {
  int *counter, *flag, *result;
  for (int** each : {&counter, &flag, &result}) cudaMallocManaged(each, sizeof(int)), ** each = 0;
  answers_and_counts<<<1, 1>>>(counter, flag, result);
  __sync_fetch_and_add(counter, 1);
  while (*const_cast<volatile int*>(flag) == 0) {
  }
  expect(*result == 42);
  cudaDeviceSynchronize();
  expect(*counter == 2);
  for (int* each : {counter, flag, result}) cudaFree(each);
}

static void add_first(void* pair) { static_cast<int*>(pair)[1] += static_cast<int*>(pair)[0]; }
CASE(functions_of_the_host_in_their_stream) {
  const Zeros<int> x(N), y(N);
  int *host, *managed;
  cudaMallocHost(&host, 2 * sizeof(int));
  cudaMallocManaged(&managed, N * sizeof(int));
  host[0] = host[1] = 0;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  doubled<<<1, N, 0, stream>>>(managed);
  cudaLaunchHostFunc(stream, add_first, managed);
  cudaMemcpyAsync(host, x, sizeof(int), cudaMemcpyDeviceToHost, stream);
  cudaLaunchHostFunc(stream, add_first, host);
  cudaStreamSynchronize(stream);
  // Two nodes that clear, one that copies after both, and one of the host after that.
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaGraphNode_t clears[2], copies, calls;
  cudaGraphCreate(&graph, 0);
  const cudaMemsetParams first_of[2] = {{x, 0, 3, 4, 1, 1}, {y, 0, 3, 4, N, 1}};
  const cudaHostNodeParams function = {add_first, host};
  for (int i : {0, 1}) cudaGraphAddMemsetNode(&clears[i], graph, nullptr, 0, &first_of[i]);
  cudaGraphAddMemcpyNode1D(&copies, graph, clears, 2, host, x, sizeof(int), cudaMemcpyDefault);
  cudaGraphAddHostNode(&calls, graph, &copies, 1, &function);
  cudaGraphInstantiate(&executable, graph, 0);
  for (int i = 0; i < 2; ++i) cudaGraphLaunch(executable, stream);
  cudaStreamSynchronize(stream);
  expect(host[1] == 6);
  cudaGraphExecDestroy(executable), cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  cudaFreeHost(host), cudaFree(managed);
}

CASE(graph_that_allocates) {
  int *x, *host;
  cudaMallocHost(&host, N * sizeof(int));
  cudaStream_t captured, stream;
  cudaStreamCreate(&captured), cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal);
  cudaMallocAsync(&x, N * sizeof(int), captured);
  cudaMemsetAsync(x, 1, N * sizeof(int), captured);
  doubled<<<1, N, 0, captured>>>(x);
  cudaMemcpyAsync(host, x, N * sizeof(int), cudaMemcpyDeviceToHost, captured);
  cudaFreeAsync(x, captured);
  cudaStreamEndCapture(captured, &graph);
  cudaGraphInstantiate(&executable, graph, 0);
  for (int i = 0; i < 2; ++i) cudaGraphLaunch(executable, stream);
  cudaStreamSynchronize(stream);
  expect(host[N - 1] == 0x02020202);
  cudaGraphExecDestroy(executable), cudaGraphDestroy(graph);
  cudaStreamDestroy(captured), cudaStreamDestroy(stream);
  cudaFreeHost(host);
}

// ---- a look before an atomic update, in shared memory

__global__ void least_and_stack(int* out, const int* in) {
  __shared__ int least, top, stack[2 * N];
  if (threadIdx.x == 0) least = 1 << 30, top = 0;
  __syncthreads();
  const int own = in[threadIdx.x] + 3;
  if (own < least) atomicMin(&least, own);
  if (top < 2 * N) stack[atomicAdd(&top, 1)] = own;
  __syncthreads();
  if (threadIdx.x == 0) *out = least + stack[top - 1];
}
CASE(look_before_an_atomic_update) {
  const Zeros<int> out(1), in(N);
  least_and_stack<<<1, N>>>(out, in);
  expect(first<int>(out) == 6);
}

// ---- a look at what other threads set to one value

__global__ void next_level(const int* first, const int* edges, int* level, int now, int* changed) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (level[v] != now) return;
  for (int e = first[v]; e < first[v + 1]; ++e)
    if (level[edges[e]] == -1) {
      level[edges[e]] = now + 1;
      *changed = 1;
    }
}
CASE(all_store_the_same_level) {
  int first_edges[N + 1], edges[3 * N], changed = 1, now = 0;
  for (int v = 0; v <= N; ++v) first_edges[v] = 3 * v;
  for (int e = 0; e < 3 * N; ++e) edges[e] = (e / 3 * 2 + e % 3 + 1) % N;
  const Zeros<int> starts(N + 1), ends(3 * N), level(N), goes_on(1);
  cudaMemcpy(starts, first_edges, sizeof first_edges, cudaMemcpyHostToDevice);
  cudaMemcpy(ends, edges, sizeof edges, cudaMemcpyHostToDevice);
  cudaMemset(level + 1, -1, (N - 1) * sizeof(int));
  for (; changed != 0; ++now) {
    cudaMemset(goes_on, 0, sizeof(int));
    next_level<<<2, N / 2>>>(starts, ends, level, now, goes_on);
    changed = first<int>(goes_on);
  }
  expect(now == 6);
}

__global__ void sieve(char* composite, int n) {
  const int i = threadIdx.x + 2;
  if (i * i > n || composite[i]) return;
  for (int j = i * i; j <= n; j += i) composite[j] = 1;
}
CASE(all_store_the_same_in_a_sieve) {
  const Zeros<char> composite(401);
  sieve<<<1, 32>>>(composite, 400);
  expect(first<char>(composite + 391) == 1 && first<char>(composite + 397) == 0);
}

__global__ void look_for(const int* x, int what, int* found) {
  if (*found) return;
  if (x[blockIdx.x * blockDim.x + threadIdx.x] == what) *found = 1;
}
CASE(stops_when_another_has_found_it) {
  const Zeros<int> x(N), found(1);
  cudaMemset(x + 5, 1, sizeof(int));
  look_for<<<2, N / 2>>>(x, 0x01010101, found);
  expect(first<int>(found) == 1);
}

// Whose writer has not looked at it.
__global__ void any_above(const int* x, int n, int limit, int* found) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    if (x[i] > limit) {
      *found = 1;
      break;
    }
    if (*found) break;
  }
}
__global__ void in_order(const int* x, int n, bool* yes) {
  const int i = threadIdx.x;
  if (x[i] > x[i + 1])
    *yes = false;
  else if (*yes && i > 0 && x[i - 1] > x[i])
    *yes = false;
}
CASE(flag_at_which_its_writer_has_not_looked) {
  int numbers[N];
  for (int i = 0; i < N; ++i) numbers[i] = i == 20 ? 1000 : i;
  const Zeros<int> x(N), found(1);
  const Zeros<bool> yes(1);
  cudaMemcpy(x, numbers, sizeof numbers, cudaMemcpyHostToDevice);
  cudaMemset(yes, 1, 1);
  any_above<<<2, 8>>>(x, N, 900, found);
  in_order<<<1, N - 1>>>(x, N, yes);
  expect(first<int>(found) == 1 && !first<bool>(yes));
}

// ---- stores of what was there already

__global__ void shortest_by(int* distance, int k) {
  const int x = threadIdx.x, y = blockIdx.x;
  distance[y * 16 + x] = min(distance[y * 16 + x], distance[y * 16 + k] + distance[k * 16 + x]);
}
__global__ void reached_by(int* reached, int k) {
  const int x = threadIdx.x, y = blockIdx.x;
  if (reached[y * 16 + k] && reached[k * 16 + x]) reached[y * 16 + x] = 1;
}
__global__ void shortest_of_a_tile(int* distance) {
  __shared__ int tile[16][16];
  const int x = threadIdx.x, y = threadIdx.y;
  tile[y][x] = distance[y * 16 + x];
  __syncthreads();
  for (int k = 0; k < 16; ++k) {
    tile[y][x] = min(tile[y][x], tile[y][k] + tile[k][x]);
    __syncthreads();
  }
  distance[y * 16 + x] = tile[y][x];
}
__global__ void shortest_in_one_block(int* distance) {
  const int x = threadIdx.x, y = threadIdx.y;
  for (int k = 0; k < 16; ++k) {
    distance[y * 16 + x] = min(distance[y * 16 + x], distance[y * 16 + k] + distance[k * 16 + x]);
    __syncthreads();
  }
}
struct Distances {  // from each of 16 places to the next, and none elsewhere
  Distances() {
    for (int i = 0; i < 256; ++i) of[i] = i / 16 == i % 16 ? 0 : (i / 16 + 1) % 16 == i % 16 ? 1 : 1000;
  }
  int of[256];
};
CASE(stores_what_was_there_in_paths) {
  const Distances distances;
  const Zeros<int> x(256), reached(256);
  cudaMemcpy(x, distances.of, sizeof distances, cudaMemcpyHostToDevice);
  int once[256];
  for (int i = 0; i < 256; ++i) once[i] = distances.of[i] == 1;
  cudaMemcpy(reached, once, sizeof once, cudaMemcpyHostToDevice);
  for (int k = 0; k < 16; ++k) {
    shortest_by<<<16, 16>>>(x, k);
    reached_by<<<16, 16>>>(reached, k);
  }
  expect(first<int>(x + 15) == 15 && first<int>(reached + 15) == 1);
}
CASE(stores_what_was_there_in_a_tile) {
  const Distances distances;
  const Zeros<int> x(256);
  cudaMemcpy(x, distances.of, sizeof distances, cudaMemcpyHostToDevice);
  shortest_of_a_tile<<<1, dim3(16, 16)>>>(x);
  expect(first<int>(x + 15) == 15);
  cudaMemcpy(x, distances.of, sizeof distances, cudaMemcpyHostToDevice);
  shortest_in_one_block<<<1, dim3(16, 16)>>>(x);
  expect(first<int>(x + 15) == 15);
}

__global__ void store_again(int* x, int* out) {
  if (x[threadIdx.x]) x[threadIdx.x] = 1;
  out[threadIdx.x] = x[N - 1];
}
CASE(stores_what_was_there_as_a_number) {
  int ones[N];
  for (int& one : ones) one = 1;
  const Zeros<int> x(N), out(N);
  cudaMemcpy(x, ones, sizeof ones, cudaMemcpyHostToDevice);
  store_again<<<1, N>>>(x, out);
  expect(first<int>(out) == 1);
}

// ---- what shuffles get from lanes that are not there, and nobody uses

__global__ void sum_of_warps(float* out, const float* in) {
  float sum = in[threadIdx.x];
  if (threadIdx.x < 8)
    for (int step = 4; step > 0; step /= 2) sum += __shfl_down_sync(0xff, sum, step);
  if (threadIdx.x == 0) *out = sum;
}
CASE(second_stage_of_a_reduction) {
  const Zeros<float> in(32), out(1);
  sum_of_warps<<<1, 32>>>(out, in);
  expect(first<float>(out) == 0);
}

__global__ void first_of_each(int* out) {
  if (threadIdx.x == 5) return;
  const int v = __shfl_down_sync(0xffffffff, int(threadIdx.x), 1);
  out[threadIdx.x] = threadIdx.x == 4 || threadIdx.x == 31 ? -1 : v;
}
CASE(lane_that_has_returned_and_is_not_asked) {
  const Zeros<int> out(32);
  first_of_each<<<1, 32>>>(out);
  expect(first<int>(out + 4) == -1 && first<int>(out + 6) == 7);
}

// ---- managed memory that the kernel does not use, or only reads

__global__ void fill_half(int* x) { x[threadIdx.x] = 3; }
__global__ void add_all(int* to, const int* from) { to[threadIdx.x] += from[threadIdx.x]; }
CASE(managed_memory_beside_a_kernel) {
  int *x, *y;
  cudaMallocManaged(&x, 8192 * sizeof(int)), cudaMallocManaged(&y, N * sizeof(int));
  fill_half<<<1, N>>>(x);
  for (int i = 0; i < N; ++i) y[i] = x[4096 + i] = i;
  cudaDeviceSynchronize();
  expect(x[N - 1] == 3 && y[3] == 3);
  add_all<<<1, N>>>(y, x);
  expect(x[0] == 3);  // which the kernel reads, too
  cudaDeviceSynchronize();
  cudaFree(x), cudaFree(y);
}

struct Counters {
  int all, own[3];
};
__global__ void count_up(Counters& counters, int by) { counters.own[threadIdx.x] += by, atomicAdd(&counters.all, by); }
CASE(reference_to_managed_memory) {
  Counters* counters;
  cudaMallocManaged(&counters, sizeof *counters);
  *counters = {1, {2, 3, 4}};
  count_up<<<1, 3>>>(*counters, 2);
  cudaDeviceSynchronize();
  expect(counters->all == 7 && counters->own[2] == 6);
  cudaFree(counters);
}

// ---- functions and objects of the device

using Function = int (*)(int);
__device__ int negative(int x) { return -x; }
__host__ __device__ int next(int x) { return x + 1; }
__device__ Function chosen = negative, all_functions[] = {negative, next};
__global__ void call(int* x, Function f) { x[threadIdx.x] = f(x[threadIdx.x] + 1); }
template <Function f>
__global__ void call_that(int* x) {
  x[threadIdx.x] = f(x[threadIdx.x]);
}
template <class F>
__global__ void call_any(int* x, F f) {
  x[threadIdx.x] = f(x[threadIdx.x]);
}
CASE(address_of_a_device_function_from_the_device) {
  const Zeros<int> x(N);
  Function f, two[2];
  cudaMemcpyFromSymbol(&f, chosen, sizeof f);
  cudaMemcpyFromSymbol(two, all_functions, sizeof two);
  call<<<1, N>>>(x, f);
  expect(f == two[0] && first<int>(x) == -1);
  call<<<1, N>>>(x, two[1]);
  call_that<negative><<<1, N>>>(x);
  call_that<next><<<1, N>>>(x);
  call_any<<<1, N>>>(x.memory, f);
  Function of_the_host = next;
  int negative = of_the_host(2), squares[] = {negative, next(negative)};
  expect(first<int>(x) == 0 && squares[1] == 4);
}

struct Animal {
  __host__ __device__ Animal(int legs) : legs(legs) {}
  __host__ __device__ virtual ~Animal() {}
  __host__ __device__ virtual int count() const { return legs; }
  int legs;
};
struct Pair : Animal {
  __host__ __device__ Pair(int legs) : Animal(legs) {}
  __host__ __device__ int count() const override { return 2 * legs; }
};
__global__ void make_animals(Animal** all, char* place) {
  all[0] = new Animal(4);
  all[1] = new (place) Pair(2);
}
__global__ void count_legs(Animal** all, int* out) { *out = all[0]->count() + all[1]->count(); }
__global__ void legs_of(const Animal* all, int* out) { *out = all[0].legs + all[1].legs; }
__global__ void count_one(const Animal* animal, int* out) { *out = animal->count(); }
__global__ void delete_animals(Animal** all) { delete all[0]; }
CASE(objects_that_a_kernel_has_made) {
  const Zeros<Animal*> all(2);
  const Zeros<char> place(sizeof(Pair)), copied(sizeof(Pair));
  const Zeros<int> out(1);
  make_animals<<<1, 1>>>(all, place);
  count_legs<<<1, 1>>>(all, out);
  expect(first<int>(out) == 8);
  char host[sizeof(Pair)];  // by way of the host it stays what it is
  cudaMemcpy(host, place, sizeof host, cudaMemcpyDeviceToHost);
  cudaMemcpy(copied, host, sizeof host, cudaMemcpyHostToDevice);
  count_one<<<1, 1>>>(reinterpret_cast<Animal*>(static_cast<char*>(copied)), out);
  expect(first<int>(out) == 4);
  cudaMemcpy(place, copied, sizeof host, cudaMemcpyDeviceToDevice);
  count_one<<<1, 1>>>(reinterpret_cast<Animal*>(static_cast<char*>(place)), out);
  delete_animals<<<1, 1>>>(all);
}
CASE(objects_of_the_host_without_a_virtual_call) {
  const Animal two[] = {Animal(4), Animal(2)};
  const Zeros<char> copied(sizeof two);
  const Zeros<int> out(1);
  cudaMemcpy(copied, two, sizeof two, cudaMemcpyHostToDevice);
  legs_of<<<1, 1>>>(reinterpret_cast<Animal*>(static_cast<char*>(copied)), out);
  const Pair both(3);
  expect(first<int>(out) == 6 && static_cast<const Animal&>(both).count() == 6);
}

CASE(objects_of_the_host_where_a_kernel_had_made_some) {
  void* place;
  cudaMallocManaged(&place, 2 * sizeof(Pair));
  Animal** const all = zeros<Animal*>(2);
  make_animals<<<1, 1>>>(all, static_cast<char*>(place));
  cudaDeviceSynchronize();
  const Animal* const own = new (place) Pair(3);
  expect(own->count() == 6);
  cudaFree(place);
  cudaFree(all);
}

// ---- functions that host code calls by their addresses

__host__ __device__ int cubed(int x) { return x * x * x; }
__host__ __device__ bool nearer(int a, int b) { return std::abs(a) < std::abs(b); }
int with_one_more(int x) { return x + 1; }
template <class T, T (*F)(T)>
__global__ void apply(T* x) {
  x[threadIdx.x] = F(x[threadIdx.x]);
}
CASE(functions_by_their_addresses_on_the_host) {
  const struct {
    const char* name;
    int (*function)(int);
  } table[] = {{"cubed", cubed}, {"with one more", with_one_more}, {"square", [](int x) { return x * x; }}};
  int sum = 0;
  for (const auto& each : table) sum += each.function(2);
  std::vector<int> numbers = {3, -1, 2};
  std::sort(numbers.begin(), numbers.end(), nearer);
  const Zeros<int> x(N);
  cudaMemset(x, 1, 4);
  apply<int, cubed><<<1, N>>>(x);
  expect(sum == 8 + 3 + 4 && numbers[0] == -1 && table[0].function == cubed && cubed(2) == 8);
}

__global__ void doubled_in_place(int* x) { x[threadIdx.x] = 2 * __ldg(&x[threadIdx.x]); }
CASE(read_only_load_before_the_store) {
  const Zeros<int> x(N);
  doubled_in_place<<<1, N>>>(x);
  doubled_in_place<<<1, N>>>(x);
}

// ---- numbers that do not fit, and other things that a GPU does well

__global__ void cast_all(const double* x, int* whole, unsigned* natural, unsigned char* byte) {
  const int i = threadIdx.x;
  const float v = x[i];
  whole[i] = (int)v + 0 * int(-x[i]);
  natural[i] = static_cast<unsigned>(2 * v);
  byte[i] = (unsigned char)(v - 1);
}
CASE(casts_of_numbers_without_room) {
  double values[] = {-3.5, 1e20, -1e20, std::nan(""), 100};
  constexpr int n = 5;
  double* x;
  int *whole, wholes[n];
  unsigned *natural, naturals[n];
  unsigned char *byte, bytes[n];
  cudaMalloc(&x, sizeof values), cudaMalloc(&whole, sizeof wholes), cudaMalloc(&natural, sizeof naturals);
  cudaMalloc(&byte, sizeof bytes);
  cudaMemcpy(x, values, sizeof values, cudaMemcpyHostToDevice);
  cast_all<<<1, n>>>(x, whole, natural, byte);
  cudaMemcpy(wholes, whole, sizeof wholes, cudaMemcpyDeviceToHost);
  cudaMemcpy(naturals, natural, sizeof naturals, cudaMemcpyDeviceToHost);
  cudaMemcpy(bytes, byte, sizeof bytes, cudaMemcpyDeviceToHost);
  const int in_whole[n] = {-3, INT_MAX, INT_MIN, 0, 100};
  const unsigned in_natural[n] = {0, UINT_MAX, 0, 0, 200};
  const unsigned char in_bytes[n] = {0, 255, 0, 0, 99};
  for (int i = 0; i < n; ++i)
    expect(wholes[i] == in_whole[i] && naturals[i] == in_natural[i] && bytes[i] == in_bytes[i]);
  cudaFree(x), cudaFree(whole), cudaFree(natural), cudaFree(byte);
}

__global__ void bins_of(const float* x, int* bins) {
  const int bin = (int)(8 * x[threadIdx.x]);  // NaN is 0
  atomicAdd(&bins[bin > 7 ? 7 : bin], 1);
}
CASE(index_that_was_no_number) {
  float values[N] = {}, *x;
  values[3] = 0.0f / 0.0f;
  values[4] = 1 / 0.0f;
  cudaMalloc(&x, sizeof values);
  cudaMemcpy(x, values, sizeof values, cudaMemcpyHostToDevice);
  const Zeros<int> bins(8);
  bins_of<<<1, N>>>(x, bins);
  expect(first<int>(bins) == N - 1 && first(bins + 7) == 1);
  cudaFree(x);
}

__global__ void clear_by_exchanges(float* x) {
  __shared__ int count;
  if (threadIdx.x == 0) atomicExch(&count, 0);
  atomicExch(&x[threadIdx.x], 0);
  __syncthreads();
  atomicAdd(&count, 1);
  __syncthreads();
  if (threadIdx.x == 0) x[0] = count;
}
CASE(memory_cleared_by_exchanges) {
  float* x;
  cudaMalloc(&x, N * sizeof(float));
  clear_by_exchanges<<<1, N>>>(x);
  expect(first(x) == N);
  cudaFree(x);
}

CASE(managed_memory_beside_a_copy_of_other_memory) {
  int *x, *y;
  cudaMallocManaged(&x, N * sizeof(int)), cudaMallocManaged(&y, 2 * N * sizeof(int));
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaMemsetAsync(x, 0, N * sizeof(int), stream);
  cudaMemsetAsync(y, 0, N * sizeof(int), stream);
  y[N] = 3;  // behind what is cleared
  cudaStreamSynchronize(stream);
  x[0] = y[N];
  cudaMemset(x, 0, N * sizeof(int));  // waits
  expect(x[0] == 0);
  cudaMemcpy(y + N, y, N * sizeof(int), cudaMemcpyDefault);
  cudaMemcpy2D(y + 1, 8, y, 8, 4, N, cudaMemcpyDefault);  // columns beside each other
  expect(y[1] == 0);
  cudaStreamDestroy(stream);
  cudaFree(x), cudaFree(y);
}

CASE(products_of_parts_of_one_matrix) {
  constexpr int n = 8, half = n / 2;
  const Zeros<float> x(n * n);
  cublasHandle_t handle;
  cublasCreate(&handle);
  const float one = 1;
  cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, half, half, half, &one, x + half, n, x + half, n, &one,
              x + half * (n + 1), n);
  cublasSgemv(handle, CUBLAS_OP_N, half, half, &one, x, n, x, n, &one, x + 1, n);
  float *norm, host;
  cudaMallocManaged(&norm, sizeof *norm);
  cublasSnrm2(handle, n, x, 1, norm), cublasSnrm2(handle, n, x, 1, &host);
  expect(*norm == 0 && host == 0);
  cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE);
  cublasSscal(handle, n, norm, x, 1);
  cudaDeviceSynchronize();
  cublasDestroy(handle);
  cudaFree(norm);
}

__global__ void counters_of_blocks(int* x) {
  atomicAdd_block(&x[blockIdx.x], 1);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(&x[2], atomicMax_block(&x[blockIdx.x], 0));
}
CASE(counters_of_one_block_each) {
  const Zeros<int> x(3);
  counters_of_blocks<<<2, N>>>(x);
  expect(first(x + 2) == 2 * N);
}

// ---- atomic types, and fences with an order

__global__ void fences_with_orders(int* data, cuda::atomic<int, cuda::thread_scope_device>* flag, int* out) {
  if (blockIdx.x == 0) {
    *data = 42;
    cuda::atomic_thread_fence(cuda::memory_order_acq_rel, cuda::thread_scope_device);
    flag->store(1, cuda::memory_order_relaxed);
  } else if (flag->load(cuda::memory_order_relaxed) == 1) {
    cuda::atomic_thread_fence(cuda::memory_order_acq_rel, cuda::thread_scope_device);
    *out = *data;
  }
}
CASE(fences_that_acquire_and_release) {
  const Zeros<int> x(2);
  const Zeros<cuda::atomic<int, cuda::thread_scope_device>> flag(1);
  fences_with_orders<<<2, 1>>>(x, flag, x + 1);
  expect(first(x + 1) == 42 || first(x + 1) == 0);
}

using OfBlock = cuda::atomic<int, cuda::thread_scope_block>;
__global__ void atomic_types_of_blocks(OfBlock* of_each, int* x) {
  __shared__ OfBlock count;
  OfBlock& own = of_each[blockIdx.x];
  if (threadIdx.x == 0) count.store(0);
  __syncthreads();
  count.fetch_add(1, cuda::memory_order_relaxed), own += 2, ++own, own--;
  cuda::atomic_ref<int, cuda::thread_scope_block> most(x[blockIdx.x]);
  most.fetch_max(int(threadIdx.x));
  int old = N - 1;
  __syncthreads();
  if (threadIdx.x == 0 && most.compare_exchange_strong(old, count)) most = most + own.load();
}
CASE(atomic_types_of_one_block_each) {
  const Zeros<int> x(2);
  const Zeros<OfBlock> of_each(2);
  atomic_types_of_blocks<<<2, N>>>(of_each, x);
  expect(first(x + 1) == 3 * N);
}

// ---- objects in shared memory, whose constructors do not run

struct Point {
  float x, y;
  __host__ __device__ Point() : x(0), y(0) {}
  __host__ __device__ Point(float x, float y) : x(x), y(y) {}
};
template <class T>
__global__ void sum_of_points(float* out) {
  __shared__ T tile[N], centre, *first_point;
  tile[threadIdx.x] = T(threadIdx.x, blockIdx.x);
  __syncthreads();
  if (threadIdx.x == 0) centre = tile[N / 2], first_point = tile;
  __syncthreads();
  T sum;
  for (const T& each : tile) sum.x += each.x - centre.x, sum.y += each.y;
  if (threadIdx.x == 0) out[blockIdx.x] = sum.x + sum.y + first_point->x;
}
CASE(shared_objects_with_constructors) {
  const Zeros<float> x(8);
  sum_of_points<Point><<<8, N>>>(x);
  expect(first(x + 7) == 6 * N + N / 2);
}

// ---- values of a template's arguments

enum class Mode { add, subtract };
__global__ void in_mode(int* x, Mode mode, bool twice, const int* by) {
  const int step = (mode == Mode::add ? 1 : -1) * (twice ? 2 : 1);
  x[threadIdx.x] += step * *by;
}
template <Mode mode, bool twice, auto step>
static void run_in_mode(int* x) {
  Zeros<int> by(1);
  fill<<<1, 1>>>(by, step, 1);
  in_mode<<<1, N>>>(x, mode, twice, by);
}
CASE(values_of_template_arguments) {
  const Zeros<int> x(N);
  run_in_mode<Mode::subtract, true, 3>(x);
  expect(first(x + 0) == -6);
}

int main(int argc, char** argv) { return main_of_cases(argc, argv); }
