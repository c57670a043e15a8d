// Mistakes of kernels, one a case. The line that has to be named ends with the case's name, as a comment.
#include <cooperative_groups.h>

#include <new>

#include "case.h"
#include "steps.h"

constexpr int N = 64;

// ---- shared memory

__global__ void transpose(float* out, const float* in) {
  __shared__ float tile[8][8];
  tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 8 + threadIdx.x];
  out[threadIdx.x * 8 + threadIdx.y] = tile[threadIdx.x][threadIdx.y];  // missing_barrier
}
CASE(missing_barrier) { transpose<<<1, dim3(8, 8)>>>(zeros<float>(N), zeros<float>(N)); }

__global__ void reduce_in_tree(float* out, const float* in) {
  __shared__ float sums[N];
  sums[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  for (int half = N / 2; half > 0; half /= 2)
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];  // barrier_missing_in_loop
  if (threadIdx.x == 0) *out = sums[0];
}
CASE(barrier_missing_in_loop) { reduce_in_tree<<<1, N>>>(zeros<float>(1), zeros<float>(N)); }

__global__ void tiles(float* out, const float* in) {
  __shared__ float tile[N];
  for (int t = 0; t < 4; ++t) {
    tile[threadIdx.x] = in[t * N + threadIdx.x];  // barrier_missing_at_end_of_loop
    __syncthreads();
    out[threadIdx.x] += tile[N - 1 - threadIdx.x];
  }
}
CASE(barrier_missing_at_end_of_loop) { tiles<<<1, N>>>(zeros<float>(N), zeros<float>(4 * N)); }

__global__ void last_writer(int* out) {
  __shared__ int last;
  last = threadIdx.x;  // all_write_one_place
  __syncthreads();
  out[threadIdx.x] = last;
}
CASE(all_write_one_place) { last_writer<<<1, N>>>(zeros<int>(N)); }

__global__ void shared_counter(int* out) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  count++;  // shared_counter
  __syncthreads();
  if (threadIdx.x == 0) *out = count;
}
CASE(shared_counter) { shared_counter<<<1, N>>>(zeros<int>(1)); }

__global__ void shared_histogram(int* out, const int* in) {
  __shared__ int bins[8];
  if (threadIdx.x < 8) bins[threadIdx.x] = 0;
  atomicAdd(&bins[in[threadIdx.x] % 8], 1);  // histogram_before_it_is_cleared
  __syncthreads();
  if (threadIdx.x < 8) out[threadIdx.x] = bins[threadIdx.x];
}
CASE(histogram_before_it_is_cleared) { shared_histogram<<<1, N>>>(zeros<int>(8), zeros<int>(N)); }

__global__ void halves(float* out, const float* in) {
  extern __shared__ float part[];
  if (threadIdx.x < N / 2) part[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = part[threadIdx.x];  // uninitialised_shared
}
CASE(uninitialised_shared) { halves<<<1, N, N * sizeof(float)>>>(zeros<float>(N), zeros<float>(N)); }

__global__ void accumulate(float* out) {
  __shared__ float sum;
  atomicAdd(&sum, 1.0f);  // uninitialised_accumulator
  __syncthreads();
  *out = sum;
}
CASE(uninitialised_accumulator) { accumulate<<<1, N>>>(zeros<float>(1)); }

__global__ void total_of_block(int* out) {
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  atomicAdd(&total, 1);
  if (threadIdx.x == 0) *out = total;  // total_read_without_a_barrier
}
CASE(total_read_without_a_barrier) { total_of_block<<<1, N>>>(zeros<int>(1)); }

__global__ void bins_of_block(int* out, const int* in) {
  __shared__ int bins[8];
  if (threadIdx.x < 8) bins[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&bins[in[threadIdx.x] % 8], 1);
  if (threadIdx.x < 8) atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);  // bins_added_up_without_a_barrier
}
CASE(bins_added_up_without_a_barrier) { bins_of_block<<<1, N>>>(zeros<int>(8), zeros<int>(N)); }

__global__ void beyond_dynamic(float* out) {
  extern __shared__ float part[];
  part[threadIdx.x + 1] = 1;  // dynamic_shared_too_small
  __syncthreads();
  out[threadIdx.x] = part[threadIdx.x + 1];
}
CASE(dynamic_shared_too_small) { beyond_dynamic<<<1, N, N * sizeof(float)>>>(zeros<float>(N)); }

CASE(dynamic_shared_forgotten) { halves<<<1, N>>>(zeros<float>(N), zeros<float>(N)); }

__global__ void odd_dynamic(char* out) {
  extern __shared__ char bytes[];
  bytes[threadIdx.x] = 1;  // one_byte_too_many_in_dynamic_shared
  __syncthreads();
  out[threadIdx.x] = bytes[threadIdx.x];
}
CASE(one_byte_too_many_in_dynamic_shared) { odd_dynamic<<<1, 38, 37>>>(zeros<char>(38)); }

__global__ void shifted(int* out, int by) {
  __shared__ int before[N];
  __shared__ int place[N];
  before[threadIdx.x] = place[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (by > 0) out[threadIdx.x] = place[int(threadIdx.x) + by] + before[0];  // static_shared_too_small
  if (by < 0) out[threadIdx.x] = place[int(threadIdx.x) + by] + before[0];  // before_static_shared
}
CASE(static_shared_too_small) { shifted<<<1, N>>>(zeros<int>(N), 1); }
CASE(before_static_shared) { shifted<<<1, N>>>(zeros<int>(N), -1); }

__global__ void block_wider_than_its_tile(float* out) {
  __shared__ float tile[8][8];
  tile[threadIdx.y][threadIdx.x * 2] = threadIdx.x;  // block_wider_than_its_tile
  __syncthreads();
  out[threadIdx.y * 8 + threadIdx.x] = tile[threadIdx.y][threadIdx.x];
}
CASE(block_wider_than_its_tile) { block_wider_than_its_tile<<<1, dim3(1, 9)>>>(zeros<float>(72)); }

__global__ void more_values_than_bins(int* out) {
  __shared__ int bins[8];
  if (threadIdx.x < 8) bins[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&bins[threadIdx.x % 9], 1);  // more_values_than_bins
  __syncthreads();
  if (threadIdx.x < 8) out[threadIdx.x] = bins[threadIdx.x];
}
CASE(more_values_than_bins) { more_values_than_bins<<<1, N>>>(zeros<int>(8)); }

__global__ void last_vector(float4* out) {
  __shared__ float row[N + 1];
  row[threadIdx.x] = threadIdx.x;
  if (threadIdx.x == 0) row[N] = 0;
  __syncthreads();
  if (threadIdx.x < N / 4 + 1)
    out[threadIdx.x] = reinterpret_cast<float4*>(row)[threadIdx.x];  // vector_half_beyond_static_shared
}
CASE(vector_half_beyond_static_shared) { last_vector<<<1, N>>>(zeros<float4>(N)); }

// ---- warps

__device__ void last_warp(volatile float* sums, int i) {
  sums[i] += sums[i + 32];  // warp_synchronous_tail
  sums[i] += sums[i + 16];
  sums[i] += sums[i + 8];
  sums[i] += sums[i + 4];
  sums[i] += sums[i + 2];
  sums[i] += sums[i + 1];
}
__global__ void reduce_old(float* out, const float* in) {
  __shared__ float sums[N];
  sums[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 32) last_warp(sums, threadIdx.x);
  if (threadIdx.x == 0) *out = sums[0];
}
CASE(warp_synchronous_tail) { reduce_old<<<1, N>>>(zeros<float>(1), zeros<float>(N)); }

__global__ void neighbour_in_warp(int* out) {
  __shared__ int place[32];
  place[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = place[threadIdx.x ^ 1];  // warp_synchronous_exchange
}
CASE(warp_synchronous_exchange) { neighbour_in_warp<<<1, 32>>>(zeros<int>(32)); }

__global__ void reduce_old_globally(volatile int* sums) {
  for (int step = 32; step > 0; step /= 2)
    sums[threadIdx.x] += sums[threadIdx.x + step];  // warp_synchronous_in_global_memory
}
CASE(warp_synchronous_in_global_memory) { reduce_old_globally<<<1, 32>>>(zeros<int>(64)); }

__global__ void shuffle_among_some(int* out) {
  int v = threadIdx.x;
  if (threadIdx.x < 16)
    v = __shfl_down_sync(0xffffffff, v, 8);  // shuffle_with_wrong_mask
  else
    __syncwarp(0xffffffff);
  out[threadIdx.x] = v;
}
CASE(shuffle_with_wrong_mask) { shuffle_among_some<<<1, 32>>>(zeros<int>(32)); }

__global__ void shuffle_from_nobody(int* out) {
  int v = threadIdx.x;
  if (threadIdx.x < 16) v = __shfl_sync(0x0000ffff, v, 20);  // shuffle_from_an_absent_lane
  out[threadIdx.x] = v;
}
CASE(shuffle_from_an_absent_lane) { shuffle_from_nobody<<<1, 32>>>(zeros<int>(32)); }

// ---- barriers

__global__ void two_barriers(int* out) {
  if (threadIdx.x % 2 == 0) {
    out[threadIdx.x] = 1;
    __syncthreads();  // barriers_in_two_branches
  } else {
    out[threadIdx.x] = 2;
    __syncthreads();
  }
}
CASE(barriers_in_two_branches) { two_barriers<<<1, N>>>(zeros<int>(N)); }

#define BARRIER_IN_EITHER(condition) \
  if (condition) {                   \
    __syncthreads();                 \
    ++n;                             \
  } else {                           \
    --n;                             \
    __syncthreads();                 \
  }
__global__ void barriers_of_a_macro(int* out) {
  int n = 0;
  BARRIER_IN_EITHER(threadIdx.x < 32)  // barriers_on_one_line
  out[threadIdx.x] = n;
}
CASE(barriers_on_one_line) { barriers_of_a_macro<<<1, N>>>(zeros<int>(N)); }

__global__ void barrier_in_branch(int* out) {
  __shared__ int place[N];
  if (threadIdx.x < N / 2) {
    place[threadIdx.x] = 1;
    __syncthreads();  // barrier_in_a_branch
  }
  for (int i = 0; i < 2; ++i) {
    __syncthreads();
    out[threadIdx.x] = i;
  }
}
CASE(barrier_in_a_branch) { barrier_in_branch<<<1, N>>>(zeros<int>(N)); }

__global__ void barrier_in_loop(int* out) {
  for (int i = 0; i < int(threadIdx.x / 32) + 1; ++i) __syncthreads();
  if (threadIdx.x < 32) __syncthreads();  // loops_of_different_lengths
  out[threadIdx.x] = 1;
}
CASE(loops_of_different_lengths) { barrier_in_loop<<<1, 2 * N>>>(zeros<int>(2 * N)); }

__global__ void returns_early(int* out) {
  if (threadIdx.x == 5) return;
  const int v = __shfl_sync(0xffffffff, 1, 5);  // lane_that_has_returned
  out[threadIdx.x] = v;
}
CASE(lane_that_has_returned) { returns_early<<<1, 32>>>(zeros<int>(N)); }

__global__ void grid_sync_alone(int* out) {
  cooperative_groups::this_grid().sync();  // grid_sync_without_cooperation
  out[threadIdx.x] = 1;
}
CASE(grid_sync_without_cooperation) { grid_sync_alone<<<2, 32>>>(zeros<int>(N)); }

// ---- global memory: out of bounds

__global__ void one_too_many(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) x[i] = 1;  // off_by_one
}
CASE(off_by_one) { one_too_many<<<2, N>>>(zeros<float>(100), 100); }

__global__ void differences(int* out, const int* x) {
  out[threadIdx.x] = neighbour_of(x, threadIdx.x) - x[threadIdx.x];
}
CASE(beyond_in_a_header) { differences<<<1, N>>>(zeros<int>(N), zeros<int>(N)); }

__global__ void no_guard(float* x) { x[blockIdx.x * blockDim.x + threadIdx.x] = 1; }  // no_guard
CASE(no_guard) { no_guard<<<4, 32>>>(zeros<float>(100)); }

__global__ void stencil(float* out, const float* in) {
  const int i = threadIdx.x;
  out[i] = in[i - 1] + in[i + 1];  // before_the_start
}
CASE(before_the_start) { stencil<<<1, N>>>(zeros<float>(N), zeros<float>(N)); }

__global__ void bytes_beyond(char* x) { x[threadIdx.x] = 1; }  // one_byte_too_many
CASE(one_byte_too_many) { bytes_beyond<<<1, 38>>>(zeros<char>(37)); }

__global__ void wide(float4* x) { x[threadIdx.x] = make_float4(0, 0, 0, 0); }  // wide_store_beyond
CASE(wide_store_beyond) { wide<<<1, 3>>>(reinterpret_cast<float4*>(zeros<float>(10))); }

__global__ void through_null(int* x) { x[threadIdx.x] = 1; }  // null_pointer
CASE(null_pointer) { through_null<<<1, 1>>>(nullptr); }

__global__ void after_free(int* x) { x[threadIdx.x] = 1; }  // after_it_was_freed
CASE(after_it_was_freed) {
  int* x = zeros<int>(N);
  cudaFree(x);
  after_free<<<1, N>>>(x);
}

__global__ void misaligned(float* x) { *reinterpret_cast<float2*>(x + 1) = make_float2(1, 2); }  // misaligned
CASE(misaligned) { misaligned<<<1, 1>>>(zeros<float>(N)); }

__global__ void copy_elements(char* to, const char* from) {
  memcpy(to + 12 * threadIdx.x, from + 12 * threadIdx.x, 12);  // bytes_copied_beyond
}
CASE(bytes_copied_beyond) { copy_elements<<<1, N>>>(zeros<char>(12 * N), zeros<char>(12 * (N - 1))); }

__global__ void atomic_beyond(int* bins) { atomicAdd(&bins[threadIdx.x], 1); }  // atomic_beyond
CASE(atomic_beyond) { atomic_beyond<<<1, 11>>>(zeros<int>(10)); }

// ---- global memory: unwritten

__global__ void add_to(float* x) { x[threadIdx.x] += 1; }  // never_cleared
CASE(never_cleared) {
  float* x;
  cudaMalloc(&x, N * sizeof(float));
  add_to<<<1, N>>>(x);
}

__global__ void half_copied(float* out, const float* in) { out[threadIdx.x] = in[threadIdx.x]; }  // copied_too_little
CASE(copied_too_little) {
  float host[N] = {}, *in;
  cudaMalloc(&in, sizeof host);
  cudaMemcpy(in, host, N, cudaMemcpyHostToDevice);  // bytes, not elements
  half_copied<<<1, N>>>(zeros<float>(N), in);
}

__global__ void copies(float* out, const float* in) { out[threadIdx.x] = in[threadIdx.x]; }  // copy_of_nothing
CASE(copy_of_nothing) {
  float *a, *b;
  cudaMalloc(&a, N * sizeof(float));
  cudaMalloc(&b, N * sizeof(float));
  cudaMemcpy(b, a, N * sizeof(float), cudaMemcpyDeviceToDevice);
  copies<<<1, N>>>(zeros<float>(N), b);
}

// ---- global memory: races

__global__ void count(int* counter) { (*counter)++; }  // counter_of_blocks
CASE(counter_of_blocks) { count<<<4, 1>>>(zeros<int>(1)); }

// In the order in which the engine runs them, no addition is lost.
__global__ void sum_that_is_cleared(int* sum) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *sum = 0;
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(sum, 1);  // sum_that_one_block_clears
}
CASE(sum_that_one_block_clears) { sum_that_is_cleared<<<4, N>>>(zeros<int>(1)); }

__global__ void count_in_block(int* counter) { *counter = *counter + 1; }  // counter_of_threads
CASE(counter_of_threads) { count_in_block<<<1, N>>>(zeros<int>(1)); }

__global__ void count_for_the_host(int* counter) { *counter += 1; }  // counter_in_pinned_memory
CASE(counter_in_pinned_memory) {
  int* counter;
  cudaHostAlloc(&counter, sizeof(int), cudaHostAllocMapped);
  *counter = 0;
  count_for_the_host<<<4, 1>>>(counter);
}

__global__ void histogram(int* bins, const unsigned char* in) {
  bins[in[blockIdx.x * blockDim.x + threadIdx.x]] += 1;  // histogram_without_atomics
}
CASE(histogram_without_atomics) { histogram<<<4, 8>>>(zeros<int>(256), zeros<unsigned char>(32)); }

__global__ void smooth(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1) x[i] = (x[i - 1] + x[i + 1]) / 2;  // in_place_stencil
}
CASE(in_place_stencil) { smooth<<<4, N>>>(zeros<float>(4 * N), 4 * N); }

__global__ void blocks_share_an_element(int* out) { out[blockIdx.x / 2] = blockIdx.x; }  // two_blocks_write_one_element
CASE(two_blocks_write_one_element) { blocks_share_an_element<<<4, 1>>>(zeros<int>(2)); }

__global__ void sum_by_last(float* partial, int* arrived, float* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = 1;
    last = atomicAdd(arrived, 1) == int(gridDim.x) - 1;
  }
  __syncthreads();
  if (last) atomicAdd(out, partial[threadIdx.x]);  // last_block_without_a_fence
}
CASE(last_block_without_a_fence) { sum_by_last<<<8, 8>>>(zeros<float>(8), zeros<int>(1), zeros<float>(1)); }

// The fence is that of thread 0, and no barrier lies before it.
__global__ void rows_by_last(float* partial, int* arrived, float* out) {
  __shared__ bool last;
  partial[blockIdx.x * blockDim.x + threadIdx.x] = 1;
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(arrived, 1) == int(gridDim.x) - 1;
  }
  __syncthreads();
  if (!last) return;
  float sum = 0;
  for (int b = 0; b < gridDim.x; ++b) sum += partial[b * blockDim.x + threadIdx.x];  // last_block_without_a_barrier
  out[threadIdx.x] = sum;
}
CASE(last_block_without_a_barrier) { rows_by_last<<<40, N>>>(zeros<float>(40 * N), zeros<int>(1), zeros<float>(N)); }

template <bool before, bool behind>
__device__ void hand_over(int* data, volatile int* flag) {
  if (blockIdx.x == 0) {
    data[threadIdx.x] = threadIdx.x;
    if (before) __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      *flag = 1;
    }
  } else {
    if (threadIdx.x == 0) {
      while (*flag == 0) {
      }
      __threadfence();
    }
    if (behind) __syncthreads();
  }
}
__global__ void told_too_early(int* data, volatile int* flag, int* out) {
  hand_over<false, true>(data, flag);
  if (blockIdx.x == 1) out[threadIdx.x] = data[N - 1 - threadIdx.x];  // flag_without_a_barrier
}
CASE(flag_without_a_barrier) { told_too_early<<<2, N>>>(zeros<int>(N), zeros<int>(1), zeros<int>(N)); }

__global__ void only_one_has_waited(int* data, volatile int* flag, int* out) {
  hand_over<true, false>(data, flag);
  if (blockIdx.x == 1) out[threadIdx.x] = data[N - 1 - threadIdx.x];  // flag_that_one_thread_has_waited_for
}
CASE(flag_that_one_thread_has_waited_for) {
  only_one_has_waited<<<2, N>>>(zeros<int>(N), zeros<int>(1), zeros<int>(N));
}

__global__ void unlocked_too_early(int* lock, float* sums) {
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
  }
  __syncthreads();
  sums[threadIdx.x] += blockIdx.x;  // lock_released_without_a_barrier
  if (threadIdx.x == 0) {
    __threadfence();
    atomicExch(lock, 0);
  }
}
CASE(lock_released_without_a_barrier) { unlocked_too_early<<<8, N>>>(zeros<int>(1), zeros<float>(N)); }

__global__ void through_global(int* scratch, int* out) {
  scratch[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = scratch[N - 1 - threadIdx.x];  // global_scratch_without_a_barrier
}
CASE(global_scratch_without_a_barrier) { through_global<<<1, N>>>(zeros<int>(N), zeros<int>(N)); }

__global__ void plain_beside_atomic(int* sum, int* out) {
  atomicAdd(sum, 1);
  if (threadIdx.x == 0) out[blockIdx.x] = *sum;  // plain_read_of_an_atomic_counter
}
CASE(plain_read_of_an_atomic_counter) { plain_beside_atomic<<<4, 32>>>(zeros<int>(1), zeros<int>(4)); }

// A flag that tells the other blocks what to do, and not only when to stop.
__global__ void busy_for_a_while(int* busy, int* out) {
  if (blockIdx.x != 0) {
    out[blockIdx.x] = *busy == 1 ? 1 : -1;  // flag_that_is_lowered_again
    return;
  }
  if (threadIdx.x == 0) *busy = 1;
  __syncthreads();
  out[0] = 1;
  __syncthreads();
  if (threadIdx.x == 0) *busy = 0;
}
CASE(flag_that_is_lowered_again) { busy_for_a_while<<<4, 1>>>(zeros<int>(1), zeros<int>(4)); }

__global__ void bytes_of_neighbours(unsigned char* out) {
  out[(blockIdx.x * 3 + threadIdx.x) / 2] = blockIdx.x;  // bytes_that_overlap
}
CASE(bytes_that_overlap) { bytes_of_neighbours<<<3, 4>>>(zeros<unsigned char>(16)); }

__device__ int total;
__global__ void count_in_variable() { total++; }  // counter_in_a_device_variable
CASE(counter_in_a_device_variable) { count_in_variable<<<4, 1>>>(); }

__device__ int total_from_one(1);
__global__ void count_from_one() { total_from_one++; }  // counter_in_an_initialised_variable
CASE(counter_in_an_initialised_variable) { count_from_one<<<4, 1>>>(); }

// ---- device variables

__device__ int bins[16];
__constant__ float weights[] = {0.25f, 0.5f, 0.25f};
__global__ void more_than_there_are(float* out, int which) {
  const int i = int(threadIdx.x) - 1;
  if (which == 0) atomicAdd(&bins[threadIdx.x], 1);         // device_variable_too_small
  if (which == 1) out[threadIdx.x] = weights[threadIdx.x];  // constant_table_too_small
  if (which == 2) out[threadIdx.x] = weights[i];            // before_a_constant_table
}
CASE(device_variable_too_small) { more_than_there_are<<<1, N>>>(zeros<float>(N), 0); }
CASE(constant_table_too_small) { more_than_there_are<<<1, N>>>(zeros<float>(N), 1); }
CASE(before_a_constant_table) { more_than_there_are<<<1, N>>>(zeros<float>(N), 2); }

// ---- what else a kernel can do wrong

__global__ void asserts(int n) { assert(n > 5); }  // assertion

CASE(assertion) { asserts<<<1, 1>>>(3); }
__global__ void shifted(unsigned* x, int bits) {
  x[threadIdx.x] = x[threadIdx.x] << bits;  // shift_by_all_bits
}
CASE(shift_by_all_bits) { shifted<<<1, N>>>(zeros<unsigned>(N), 32); }

__global__ void divided(int* x, int by) {
  x[threadIdx.x] = int(threadIdx.x) / by;  // division_by_zero
}
CASE(division_by_zero) { divided<<<1, N>>>(zeros<int>(N), 0); }

CASE(too_many_threads) {
  through_null<<<1, 2048>>>(zeros<int>(1));  // too_many_threads
}
__global__ void __launch_bounds__(N / 2) bounded(int* x) { x[threadIdx.x] = 1; }  // more_threads_than_its_bounds
CASE(more_threads_than_its_bounds) { bounded<<<1, N>>>(zeros<int>(N)); }
CASE(block_of_no_threads) {
  through_null<<<1, 0>>>(zeros<int>(1));  // block_of_no_threads
}

// ---- clusters

namespace cg = cooperative_groups;
__global__ void __cluster_dims__(2) too_early(int* out) {
  __shared__ int own[N];
  own[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = cg::this_cluster().map_shared_rank(own, 1)[threadIdx.x];  // read_before_a_block_has_started
  cg::this_cluster().sync();
}
CASE(read_before_a_block_has_started) { too_early<<<2, N>>>(zeros<int>(N)); }

__global__ void __cluster_dims__(2) leaves(int* out) {
  __shared__ int own[N];
  own[threadIdx.x] = threadIdx.x;
  cg::this_cluster().sync();
  if (cg::this_cluster().block_rank() == 0)
    out[threadIdx.x] = cg::this_cluster().map_shared_rank(own, 1)[threadIdx.x];  // block_that_leaves_too_early
}
CASE(block_that_leaves_too_early) { leaves<<<2, N>>>(zeros<int>(N)); }

__global__ void __cluster_dims__(2) neighbours(int* out) {
  __shared__ int own[N];
  cg::cluster_group cluster = cg::this_cluster();
  own[threadIdx.x] = 0;
  cluster.sync();
  cluster.map_shared_rank(own, cluster.block_rank() ^ 1)[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = own[threadIdx.x];  // barrier_of_the_block_and_not_of_the_cluster
  cluster.sync();
}
CASE(barrier_of_the_block_and_not_of_the_cluster) { neighbours<<<2, N>>>(zeros<int>(N)); }

__global__ void __cluster_dims__(2) one_cell(int* out) {
  out[0] += 1;  // blocks_of_a_cluster_add_to_one_element
}
CASE(blocks_of_a_cluster_add_to_one_element) { one_cell<<<2, 1>>>(zeros<int>(1)); }

CASE(cluster_that_the_grid_is_no_multiple_of) {
  leaves<<<3, N>>>(zeros<int>(N));  // cluster_that_the_grid_is_no_multiple_of
}

// ---- what kernels allocate, and print

struct Node {
  int value[3];
};
__global__ void of_its_own(int* out, int which) {
  int* const five = static_cast<int*>(malloc(5 * sizeof(int)));
  Node* const nodes = new Node[2];
  for (int i = 0; i < 5; ++i) five[i] = i;
  nodes[0].value[0] = nodes[1].value[2] = 1;
  if (which == 0) five[five[4] + 1] = 1;  // beyond_its_own_malloc
  if (which == 1) nodes[2].value[0] = 1;  // beyond_its_own_new
  if (which == 2) five[-1] = 1;           // before_its_own_malloc
  delete[] nodes;
  if (which == 3) *out = nodes[0].value[0];  // after_its_own_delete
  free(five);
  if (which == 4) free(five);  // freed_twice_by_a_kernel
}
CASE(beyond_its_own_malloc) { of_its_own<<<1, 1>>>(zeros<int>(1), 0); }
CASE(beyond_its_own_new) { of_its_own<<<1, 1>>>(zeros<int>(1), 1); }
CASE(before_its_own_malloc) { of_its_own<<<1, 1>>>(zeros<int>(1), 2); }
CASE(after_its_own_delete) { of_its_own<<<1, 1>>>(zeros<int>(1), 3); }
CASE(freed_twice_by_a_kernel) { of_its_own<<<1, 1>>>(zeros<int>(1), 4); }

__global__ void asks_for_much(int which) {
  char* const much = static_cast<char*>(malloc(16 << 20));  // as a GPU's heap is 8 MB unless the host says more
  much[which] = 1;                                          // malloc_that_failed
}
CASE(malloc_that_failed) { asks_for_much<<<1, 1>>>(0); }

__global__ void prints_text(const char* text) {
  printf("%d %s\n", 1, text);  // text_of_the_host
}
CASE(text_of_the_host) { prints_text<<<1, 1>>>(strdup("mine")); }

// ---- memory that a kernel only reads, and values that nobody has

__global__ void reads_its_own(int* x, int* y) {
  x[threadIdx.x] = 1;
  __syncthreads();
  y[threadIdx.x] = __ldg(&x[threadIdx.x ^ 1]);  // read_only_load_of_what_is_written
}
CASE(read_only_load_of_what_is_written) { reads_its_own<<<1, N>>>(zeros<int>(N), zeros<int>(N)); }

__constant__ int settings[4];
__global__ void sets_a_constant() {
  settings[threadIdx.x] = 1;  // constant_written_by_a_kernel
}
CASE(constant_written_by_a_kernel) { sets_a_constant<<<1, 4>>>(); }

__global__ void sum_of_too_many(float* out, const float* in) {
  float sum = in[threadIdx.x];
  if (threadIdx.x < 8)
    for (int step = 8; step > 0; step /= 2) sum += __shfl_down_sync(0xff, sum, step);
  if (threadIdx.x == 0) *out = sum;  // undefined_value_in_a_sum
}
CASE(undefined_value_in_a_sum) { sum_of_too_many<<<1, 32>>>(zeros<float>(1), zeros<float>(32)); }

// ---- functions that the host has given a kernel

using Function = int (*)(int);
__device__ int square(int x) { return x * x; }
__host__ __device__ int cube(int x) { return x * x * x; }
__global__ void apply(int* x, Function f) {
  x[threadIdx.x] = f(x[threadIdx.x]);  // address_of_a_device_function
}
CASE(address_of_a_device_function) {
  Function f = square;
  apply<<<1, N>>>(zeros<int>(N), f);
}

__constant__ Function chosen;
__global__ void apply_chosen(int* x) {
  x[threadIdx.x] = chosen(x[threadIdx.x]);  // table_of_device_functions
}
Function functions[] = {square, nullptr};
CASE(table_of_device_functions) {
  cudaMemcpyToSymbol(chosen, &functions[0], sizeof chosen);
  apply_chosen<<<1, N>>>(zeros<int>(N));
}

struct Layer {
  int size = N;
  Function function = square;
};
struct ScaledLayer {
  Function function;
  int scale;
  ScaledLayer() : function(square), scale(2) {}
};
__global__ void apply_member(int* x, Layer layer) {
  x[threadIdx.x] = layer.function(x[threadIdx.x]);  // function_that_a_member_begins_with
}
CASE(function_that_a_member_begins_with) { apply_member<<<1, N>>>(zeros<int>(N), Layer()); }
__global__ void apply_scaled(int* x, ScaledLayer layer) {
  x[threadIdx.x] = layer.scale * layer.function(x[threadIdx.x]);  // function_in_a_constructor_s_list
}
CASE(function_in_a_constructor_s_list) { apply_scaled<<<1, N>>>(zeros<int>(N), ScaledLayer()); }
__global__ void apply_given(int* x, Function f) {
  x[threadIdx.x] = f(x[threadIdx.x]);  // function_as_a_default_argument
}
static void apply_to_zeros(Function f = square) { apply_given<<<1, N>>>(zeros<int>(N), f); }
CASE(function_as_a_default_argument) { apply_to_zeros(); }
__global__ void apply_the_template_s(int* x, Function f) {
  x[threadIdx.x] = f(x[threadIdx.x]);  // function_as_a_template_argument_of_the_host
}
template <Function f>
static void apply_to_more_zeros() {
  apply_the_template_s<<<1, N>>>(zeros<int>(N), f);
}
CASE(function_as_a_template_argument_of_the_host) { apply_to_more_zeros<square>(); }

struct Pair {
  int a, b;
  int sum() const { return a + b; }  // member_of_the_host
};
Pair operator-(Pair x) { return {-x.a, -x.b}; }  // operator_of_the_host
__global__ void negated(Pair* x) { x[threadIdx.x] = -x[threadIdx.x]; }
CASE(operator_of_the_host) { negated<<<1, N>>>(zeros<Pair>(N)); }
__global__ void sums_of_pairs(int* out, const Pair* x) { out[threadIdx.x] = x[threadIdx.x].sum(); }
CASE(member_of_the_host) { sums_of_pairs<<<1, N>>>(zeros<int>(N), zeros<Pair>(N)); }

struct Span {
  int first, last;
  Span(int from, int count) : first(from), last(from + count - 1) {}  // constructor_of_the_host
};
__global__ void ends_of_spans(int* out) { out[threadIdx.x] = Span(threadIdx.x, 4).last; }
CASE(constructor_of_the_host) { ends_of_spans<<<1, N>>>(zeros<int>(N)); }

template <class F>
__global__ void apply_any(int* x, F f) {
  x[threadIdx.x] = f(x[threadIdx.x]);  // function_of_both_sides_as_an_argument
}
CASE(function_of_both_sides_as_an_argument) { apply_any<<<1, N>>>(zeros<int>(N), cube); }

__global__ void apply_none(int* x, Function f) {
  x[threadIdx.x] = f(x[threadIdx.x]);  // null_pointer_to_a_function
}
CASE(null_pointer_to_a_function) { apply_none<<<1, N>>>(zeros<int>(N), functions[1]); }

struct Shape {
  __host__ __device__ explicit Shape(float side) : side(side) {}
  __host__ __device__ virtual float area() const = 0;
  float side;
};
struct Square : Shape {
  using Shape::Shape;
  __host__ __device__ float area() const override { return side * side; }
};
__global__ void area_of(const Shape* shape, float* out) {
  *out = shape->area();  // object_of_the_host
}
CASE(object_of_the_host) {
  const Square square(3);
  void* copied;
  cudaMalloc(&copied, sizeof square);
  cudaMemcpy(copied, &square, sizeof square, cudaMemcpyHostToDevice);
  area_of<<<1, 1>>>(static_cast<Shape*>(copied), zeros<float>(1));
}

struct Drawing {
  int count = 2;
  Square squares[2] = {Square(2), Square(3)};
};
__global__ void areas_in(Drawing drawing, float* out) {
  const Shape* const shape = &drawing.squares[threadIdx.x % drawing.count];
  out[threadIdx.x] = shape->area();  // objects_of_the_host_in_an_argument
}
CASE(objects_of_the_host_in_an_argument) { areas_in<<<1, N>>>(Drawing(), zeros<float>(N)); }

__global__ void areas_of(Shape** shapes, float* out) {
  out[threadIdx.x] = shapes[threadIdx.x]->area();  // managed_objects_of_the_host
}
CASE(managed_objects_of_the_host) {
  Square* squares;
  Shape** shapes;
  cudaMallocManaged(&squares, 2 * sizeof(Square)), cudaMallocManaged(&shapes, 2 * sizeof(Shape*));
  for (int i = 0; i < 2; ++i) shapes[i] = new (&squares[i]) Square(2);
  areas_of<<<1, 2>>>(shapes, zeros<float>(2));
}

struct Named {
  const char* name;
  Function function;
};
const Named named[] = {{"square", square}, {"cube", cube}};
__global__ void apply_named(int* x, Named one) {
  x[threadIdx.x] = one.function(x[threadIdx.x]);  // table_of_named_functions
}
CASE(table_of_named_functions) { apply_named<<<1, N>>>(zeros<int>(N), named[0]); }

__global__ void apply_both(int* x, Named one) {
  x[threadIdx.x] = one.function(x[threadIdx.x]);  // function_of_both_sides_in_a_structure
}
CASE(function_of_both_sides_in_a_structure) { apply_both<<<1, N>>>(zeros<int>(N), named[1]); }

int one_more(int x) { return x + 1; }
__global__ void apply_to_all(int* x, Function f) {
  x[threadIdx.x] = f(x[threadIdx.x]);  // function_of_the_host
}
CASE(function_of_the_host) { apply_to_all<<<1, N>>>(zeros<int>(N), one_more); }

struct Steps {
  static int back(int x) { return x - 1; }
};
__global__ void apply_step(int* x, const Function* step) {
  x[threadIdx.x] = (*step)(x[threadIdx.x]);  // static_member_of_the_host
}
CASE(static_member_of_the_host) {
  Function* step;
  cudaMallocManaged(&step, sizeof *step);
  *step = &Steps::back;
  apply_step<<<1, N>>>(zeros<int>(N), step);
}

__global__ void apply_lambda(int* x, Function f) {
  x[threadIdx.x] = f(x[threadIdx.x]);  // lambda_of_the_host
}
CASE(lambda_of_the_host) {
  apply_lambda<<<1, N>>>(zeros<int>(N), [](int x) { return x + 1; });
}

// ---- stores that change nothing, and some that do

__global__ void shortest_in_a_tile(int* distance) {
  __shared__ int tile[8][8];
  const int x = threadIdx.x, y = threadIdx.y;
  tile[y][x] = distance[y * 8 + x];
  __syncthreads();
  for (int k = 0; k < 8; ++k) tile[y][x] = min(tile[y][x], tile[y][k] + tile[k][x]);  // steps_without_a_barrier
  distance[y * 8 + x] = tile[y][x];
}
CASE(steps_without_a_barrier) {
  int distance[64], *x = zeros<int>(64);
  for (int i = 0; i < 64; ++i) distance[i] = i / 8 == i % 8 ? 0 : i * 7 % 50 + 1;
  cudaMemcpy(x, distance, sizeof distance, cudaMemcpyHostToDevice);
  shortest_in_a_tile<<<1, dim3(8, 8)>>>(x);
}

__global__ void shortest_at_once(int* distance) {
  const int x = threadIdx.x, y = threadIdx.y;
  for (int k = 0; k < 8; ++k)
    distance[y * 8 + x] = min(distance[y * 8 + x], distance[y * 8 + k] + distance[k * 8 + x]);  // steps_in_one_launch
}
CASE(steps_in_one_launch) {
  int distance[64], *x = zeros<int>(64);
  for (int i = 0; i < 64; ++i) distance[i] = i / 8 == i % 8 ? 0 : i * 7 % 50 + 1;
  cudaMemcpy(x, distance, sizeof distance, cudaMemcpyHostToDevice);
  shortest_at_once<<<1, dim3(8, 8)>>>(x);
}

__global__ void first_of_all(int* x, int* out) {
  if (threadIdx.x == 0) *x = -1;
  out[threadIdx.x] = *x + threadIdx.x;  // number_for_the_others
}
CASE(number_for_the_others) {
  int* x;  // the number is what the engine fills new memory with
  cudaMalloc(&x, sizeof *x);
  first_of_all<<<1, N>>>(x, zeros<int>(N));
}

__global__ void read_freed(const int* in, int* out) {
  out[threadIdx.x] = in[threadIdx.x];  // pinned_memory_that_was_freed
}
CASE(pinned_memory_that_was_freed) {
  int* in;
  cudaHostAlloc(&in, N * sizeof(int), cudaHostAllocMapped);
  cudaFreeHost(in);
  read_freed<<<1, N>>>(in, zeros<int>(N));
}

// ---- numbers, and whose variables they are

__global__ void sharpened(unsigned char* out, const float* in) {
  out[threadIdx.x] = 2 * in[threadIdx.x] - 100;  // number_without_room
}
CASE(number_without_room) { sharpened<<<1, N>>>(zeros<unsigned char>(N), zeros<float>(N)); }

__global__ void largest(int* counts, int n) {
  auto* const best = reinterpret_cast<unsigned long long*>(counts + n);
  atomicMax(best, threadIdx.x);  // misaligned_atomic
}
CASE(misaligned_atomic) { largest<<<1, N>>>(zeros<int>(8), 5); }

__global__ void sum_of_all(int* out) {
  __shared__ const int* places[N];
  int own = threadIdx.x;
  places[threadIdx.x] = &own;
  __syncthreads();
  int sum = 0;
  for (int i = 0; i < N; ++i) sum += *places[i];  // variable_of_another_thread
  __syncthreads();
  out[threadIdx.x] = sum;
}
CASE(variable_of_another_thread) { sum_of_all<<<1, N>>>(zeros<int>(N)); }

__global__ void counted_alone(int* out) {
  int count = 0;
  for (int i = 0; i < 3; ++i) atomicAdd(&count, i);  // atomic_on_its_own_variable
  out[threadIdx.x] = count;
}
CASE(atomic_on_its_own_variable) { counted_alone<<<1, N>>>(zeros<int>(N)); }

__global__ void reversed_by_ldg(int* x) {
  __shared__ int tile[N];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = __ldg(&tile[N - 1 - threadIdx.x]);  // read_only_load_of_shared_memory
}
CASE(read_only_load_of_shared_memory) { reversed_by_ldg<<<1, N>>>(zeros<int>(N)); }

struct Sum {
  float value;
  __device__ Sum() : value(0) {}
};
__global__ void sum_of_objects(float* x) {
  __shared__ Sum sum;                     // whose constructor does not run
  atomicAdd(&sum.value, x[threadIdx.x]);  // shared_object_that_nobody_made
  __syncthreads();
  x[threadIdx.x] = sum.value;
}
CASE(shared_object_that_nobody_made) { sum_of_objects<<<1, N>>>(zeros<float>(N)); }

__global__ void sums_of_24(int* x) {
  x[threadIdx.x] += __shfl_down_sync(0xffffffff, x[threadIdx.x], 12, 24);  // shuffle_of_24_lanes
}
CASE(shuffle_of_24_lanes) { sums_of_24<<<1, N>>>(zeros<int>(N)); }

int ten_times(int x) { return 10 * x; }  // function_of_the_host_behind_one_of_both
__host__ __device__ int eleven_times(int x) { return ten_times(x) + x; }
__global__ void apply_both(int* x) { x[threadIdx.x] = eleven_times(x[threadIdx.x]); }
CASE(function_of_the_host_behind_one_of_both) { apply_both<<<1, N>>>(zeros<int>(N)); }

__global__ void child(int* x) { *x = 1; }
__global__ void parent_that_waits(int* out) {
  int result = 0;
  child<<<1, 1>>>(&result);
  *out = result;
}
CASE(variable_given_to_a_child) { parent_that_waits<<<1, 1>>>(zeros<int>(1)); }

__global__ void parent_of_many(int* x) { child<<<1, 1>>>(x + threadIdx.x); }
CASE(more_children_than_may_wait) {
  cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 8);
  parent_of_many<<<1, N>>>(zeros<int>(N));
}

__global__ void counted_by_block(int* x) {
  atomicAdd_block(x, 1);  // counter_of_one_block_for_all
}
CASE(counter_of_one_block_for_all) { counted_by_block<<<2, N>>>(zeros<int>(1)); }

int main(int argc, char** argv) { return main_of_cases(argc, argv); }
