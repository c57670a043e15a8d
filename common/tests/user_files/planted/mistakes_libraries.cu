// Mistakes with what CUDA's libraries give to kernels, one a case. planted_test.py has the words that have to be said.
#include <cooperative_groups.h>
#include <cublas_v2.h>
#include <curand.h>
#include <mma.h>

#include <cub/cub.cuh>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/functional>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <utility>

#include "case.h"

namespace cg = cooperative_groups;
namespace wmma = nvcuda::wmma;
using Barrier = cuda::barrier<cuda::thread_scope_block>;
constexpr int N = 128;

// ---- CUB

__global__ void twice_in_one_storage(const int* in, int* out) {
  using Reduce = cub::BlockReduce<int, N>;
  __shared__ typename Reduce::TempStorage storage;
  const int sum = Reduce(storage).Sum(in[threadIdx.x]);
  const int most = Reduce(storage).Reduce(in[threadIdx.x], cuda::maximum<>());  // cub_storage_without_a_barrier
  if (threadIdx.x == 0) out[0] = sum + most;
}
CASE(cub_storage_without_a_barrier) { twice_in_one_storage<<<1, N>>>(zeros<int>(N), zeros<int>(1)); }

CASE(cub_too_many_items) {
  const int* const in = zeros<int>(100);
  int* const out = zeros<int>(1);
  std::size_t bytes = 0;
  cub::DeviceReduce::Sum(nullptr, bytes, in, out, 101);
  cub::DeviceReduce::Sum(zeros<char>(int(bytes)), bytes, in, out, 101);
}

CASE(cub_result_on_the_host) {
  int result = 0;
  std::size_t bytes = 0;
  cub::DeviceReduce::Sum(nullptr, bytes, zeros<int>(100), &result, 100);
  cub::DeviceReduce::Sum(zeros<char>(int(bytes)), bytes, zeros<int>(100), &result, 100);
}

// ---- barriers

template <int mistake>
__global__ void copies(const float* in, float* out) {
  __shared__ Barrier filled;
  __shared__ float tile[N];
  const auto block = cg::this_thread_block();
  if (mistake != 0 && block.thread_rank() == 0) init(&filled, block.size() + (mistake == 1));
  block.sync();
  for (int i = 0; i < 2; ++i) {
    if (mistake == 0) filled.arrive_and_wait();                        // barrier_without_init
    cuda::memcpy_async(block, tile, in + i * N, sizeof tile, filled);  // barrier_tile_filled_too_early
    auto phase = filled.arrive();
    float x = 0;
    if (mistake == 2) x = tile[N - 1 - threadIdx.x];  // barrier_not_waited_for
    filled.wait(std::move(phase));                    // barrier_expects_too_many
    if (mistake != 2) x = tile[N - 1 - threadIdx.x];
    out[i * N + threadIdx.x] = x;
    if (mistake != 3) block.sync();
  }
}
CASE(barrier_without_init) { copies<0><<<1, N>>>(zeros<float>(2 * N), zeros<float>(2 * N)); }
CASE(barrier_expects_too_many) { copies<1><<<1, N>>>(zeros<float>(2 * N), zeros<float>(2 * N)); }
CASE(barrier_not_waited_for) { copies<2><<<1, N>>>(zeros<float>(2 * N), zeros<float>(2 * N)); }
CASE(barrier_tile_filled_too_early) { copies<3><<<1, N>>>(zeros<float>(2 * N), zeros<float>(2 * N)); }

// ---- pipelines

template <bool waits, bool releases>
__global__ void staged(const float* in, float* out) {
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  __shared__ float tile[2][N];
  const auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  for (int i = 0; i < 4; ++i) {
    pipe.producer_acquire();  // pipeline_never_released
    cuda::memcpy_async(block, tile[i % 2], in + i * N, sizeof tile[0], pipe);
    pipe.producer_commit();
    if (waits) pipe.consumer_wait();
    if (!releases && i > 0) continue;
    out[i * N + threadIdx.x] = tile[i % 2][threadIdx.x ^ 1];  // pipeline_not_waited_for
    if (releases) pipe.consumer_release();
  }
}
CASE(pipeline_not_waited_for) { staged<false, true><<<1, N>>>(zeros<float>(4 * N), zeros<float>(4 * N)); }
CASE(pipeline_never_released) { staged<true, false><<<1, N>>>(zeros<float>(4 * N), zeros<float>(4 * N)); }

// ---- cuBLAS

CASE(matrix_that_nobody_wrote) {
  float *a, one = 1, *const b = zeros<float>(4 * 4), *const c = zeros<float>(4 * 4);
  cudaMalloc(&a, 4 * 4 * sizeof(float));
  cublasHandle_t handle;
  cublasCreate(&handle);
  cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, a, 4, b, 4, &one, c, 4);  // matrix_that_nobody_wrote
}

struct Blas {
  Blas() { cublasCreate(&handle); }
  operator cublasHandle_t() const { return handle; }
  cublasHandle_t handle;
};
constexpr auto as_it_is = CUBLAS_OP_N;

CASE(number_on_the_host) {
  Blas blas;
  float two = 2, *const x = zeros<float>(N);
  cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE);
  cublasSscal(blas, N, &two, x, 1);  // number_on_the_host
}
CASE(result_on_the_device) {
  Blas blas;
  float *const x = zeros<float>(N), *const norm = zeros<float>(1);
  cublasSnrm2(blas, N, x, 1, norm);  // result_on_the_device
}
CASE(pointers_on_the_host) {
  Blas blas;
  const float one = 1, *in[] = {zeros<float>(16)};
  float* out[] = {zeros<float>(16)};
  cublasSgemmBatched(blas, as_it_is, as_it_is, 4, 4, 4, &one, in, 4, in, 4, &one, out, 4, 1);  // pointers_on_the_host
}
CASE(product_in_place) {
  Blas blas;
  const float one = 1, zero = 0;
  float *const a = zeros<float>(16), *const b = zeros<float>(16);
  cublasSgemm(blas, as_it_is, as_it_is, 4, 4, 4, &one, a, 4, b, 4, &zero, a, 4);  // product_in_place
}
CASE(product_without_a_handle) {
  float two = 2;
  cublasSscal(nullptr, N, &two, zeros<float>(N), 1);
}
CASE(managed_and_multiplied) {
  Blas blas;
  float two = 2, *x;
  cudaMallocManaged(&x, N * sizeof(float));
  cublasSscal(blas, N, &two, x, 1);
  std::printf("%g\n", x[3]);  // managed_and_multiplied
}
CASE(managed_and_still_read) {
  Blas blas;
  float one = 1, *x, *const y = zeros<float>(N);
  cudaMallocManaged(&x, N * sizeof(float));
  cublasSaxpy(blas, N, &one, x, 1, y, 1);
  x[3] = 5;  // managed_and_still_read
}

// ---- cuRAND

CASE(odd_number_of_normals) {
  curandGenerator_t generator;
  curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT);
  curandGenerateUniform(generator, zeros<float>(1001), 1001);
  curandGenerateNormal(generator, zeros<float>(1001), 1001, 0, 1);  // odd_number_of_normals
}

// ---- atomic types of one block

__device__ cuda::atomic<int, cuda::thread_scope_block> hits;
__global__ void counted_by_one_block() {
  hits.fetch_add(1, cuda::memory_order_relaxed);  // atomic_type_of_one_block_for_all
}
CASE(atomic_type_of_one_block_for_all) { counted_by_one_block<<<2, N>>>(); }

__global__ void told_by_one_block(int* flag, int* out) {
  const cuda::atomic_ref<int, cuda::thread_scope_block> ready(*flag);
  if (blockIdx.x == 0)
    ready.store(1, cuda::memory_order_release);
  else
    *out = ready.load(cuda::memory_order_acquire);  // flag_of_one_block_for_another
}
CASE(flag_of_one_block_for_another) { told_by_one_block<<<2, 1>>>(zeros<int>(1), zeros<int>(1)); }

// ---- others

__global__ void taken_for_ever() {
  __shared__ cuda::binary_semaphore<cuda::thread_scope_block> one;
  if (threadIdx.x == 0) new (&one) cuda::binary_semaphore<cuda::thread_scope_block>(1);
  __syncthreads();
  one.acquire();  // semaphore_never_released
}
CASE(semaphore_never_released) { taken_for_ever<<<1, 2>>>(); }

__global__ void half_a_tile(int* out) {
  const auto tile = cg::tiled_partition<64>(cg::this_thread_block());
  if (tile.thread_rank() < 32) tile.sync();  // tile_barrier_in_a_branch
  out[threadIdx.x] = 1;
}
CASE(tile_barrier_in_a_branch) { half_a_tile<<<1, N>>>(zeros<int>(N)); }

// ---- asynchronous copies from beyond an allocation

__global__ void group_copies(const int* x, int* out) {
  __shared__ int part[N];
  const auto block = cg::this_thread_block();
  cg::memcpy_async(block, part, x, sizeof part);  // group_copy_beyond
  cg::wait(block);
  out[threadIdx.x] = part[threadIdx.x];
}
CASE(group_copy_beyond) { group_copies<<<1, N>>>(zeros<int>(N - 1), zeros<int>(N)); }

__global__ void barrier_copies(const int* x, int* out) {
  __shared__ int part[N];
  __shared__ Barrier arrived;
  if (threadIdx.x == 0) init(&arrived, N);
  __syncthreads();
  cuda::memcpy_async(cg::this_thread_block(), part, x, sizeof part, arrived);  // barrier_copy_beyond
  arrived.arrive_and_wait();
  out[threadIdx.x] = part[threadIdx.x];
}
CASE(barrier_copy_beyond) { barrier_copies<<<1, N>>>(zeros<int>(N - 2), zeros<int>(N)); }

__global__ void pipeline_copies(const char* x, char* out) {
  __shared__ char part[4 * N], first[4 * N];
  auto pipe = cuda::make_pipeline();
  const auto four = cuda::aligned_size_t<4>(4);
  pipe.producer_acquire();
  cuda::memcpy_async(first + 4 * threadIdx.x, x, four, pipe);
  cuda::memcpy_async(part + 4 * threadIdx.x, x + 4 * threadIdx.x, four, pipe);  // pipeline_copy_beyond
  pipe.producer_commit();
  pipe.consumer_wait();
  out[threadIdx.x] = part[4 * threadIdx.x] + first[4 * threadIdx.x];
}
CASE(pipeline_copy_beyond) { pipeline_copies<<<1, N>>>(zeros<char>(4 * N - 1), zeros<char>(N)); }

// ---- matrices with a pitch of their own

__global__ void product_of_tiles(const half* a, float* out) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
  wmma::load_matrix_sync(left, a, 17);  // tile_with_an_odd_pitch
  out[threadIdx.x] = left.x[0];
}
CASE(tile_with_an_odd_pitch) { product_of_tiles<<<1, 32>>>(zeros<half>(16 * 17), zeros<float>(32)); }

int main(int argc, char** argv) { return main_of_cases(argc, argv); }
