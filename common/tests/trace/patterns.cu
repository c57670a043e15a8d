// One warp, one access pattern, one launch each: what the engine believes about banks, sectors and cp.async, in the
// smallest form that Nsight Compute can be asked about. `./workbook dev verify` compares the two.
#include <cstdio>
#include <string>
#include <vector>

#include "device/cp_async.h"
#include "device/cuda_error.h"
#include "device/launch.h"
#include "device/trace.h"

namespace patterns {

// Which element a lane accesses. Negative: none.
enum Pattern {
  one,                 // all the same
  each,                // its own, consecutive
  pairs,               // neighbours share: 0 0 1 1 ..
  halves_repeat,       // 0 1 .. 15 0 1 .. 15
  quarters_repeat,     // 0 1 .. 7, four times
  per_half,            // 0 .. 0 1 .. 1
  per_quarter,         // 0 (8 times) 1 2 3
  alternating,         // 0 1 0 1 ..
  fours,               // 0 0 0 0 1 1 1 1 ..
  far,                 // 8 apart: of 16 bytes, all in the same banks
  quarters_own_banks,  // a quarter's lanes far apart, each quarter in banks of its own
  far_pairs,           // neighbours share, pairs far apart
  first_quarter,       // only lanes 0 to 7, consecutive
  even_lanes,          // only every other lane, its own
  half_shared,         // 0 .. 15, then 16 for all others
  pattern_count
};

__device__ int element(Pattern pattern, int lane) {
  switch (pattern) {
    case one:
      return 0;
    case each:
      return lane;
    case pairs:
      return lane / 2;
    case halves_repeat:
      return lane % 16;
    case quarters_repeat:
      return lane % 8;
    case per_half:
      return lane / 16;
    case per_quarter:
      return lane / 8;
    case alternating:
      return lane % 2;
    case fours:
      return lane / 4;
    case far:
      return lane * 8;
    case quarters_own_banks:
      return lane % 8 * 8 + lane / 8;
    case far_pairs:
      return lane / 2 * 8;
    case first_quarter:
      return lane < 8 ? lane : -1;
    case even_lanes:
      return lane % 2 == 0 ? lane : -1;
    case half_shared:
      return lane < 16 ? lane : 16;
    default:
      return -1;
  }
}

__device__ float sum(float x) { return x; }
__device__ float sum(float2 x) { return x.x + x.y; }
__device__ float sum(float4 x) { return x.x + x.y + x.z + x.w; }

template <class T, Pattern pattern>
__global__ void load_shared(float* out) {
  alignas(16) __shared__ T memory[256];
  for (int i = threadIdx.x; i < int(256 * sizeof(T) / 4); i += 32) reinterpret_cast<float*>(memory)[i] = 1;
  __syncthreads();
  const int i = element(pattern, threadIdx.x);
  if (i >= 0) out[threadIdx.x] = sum(memory[i]);
}

template <class T, Pattern pattern>
__global__ void store_shared(float* out) {
  alignas(16) __shared__ T memory[256];
  const int i = element(pattern, threadIdx.x);
  T value = {};
  if (i >= 0) memory[i] = value;
  __syncthreads();
  if (i >= 0) out[threadIdx.x] = reinterpret_cast<const float*>(memory + i)[0];
}

// 16 bytes a lane from global to shared memory: of `row_lanes` lanes, a row of memory `stride` bytes from the next.
template <int row_lanes, int stride, int lanes>
__global__ void copy_async(const char* from, float* out) {
  alignas(128) __shared__ float4 memory[32];
  const int lane = threadIdx.x;
  cp_async_16_or_zero(memory + lane, from + lane / row_lanes * stride + lane % row_lanes * 16, lane < lanes);
  cp_async_commit();
  cp_async_wait<0>();
  __syncthreads();
  out[lane] = reinterpret_cast<const float*>(memory)[lane];
}

// The same, as chapter 09's fused kernel copies: four lanes take half a row of 128 bytes, the next four that of the row
// 5 below; in shared memory the 16-byte chunks of a row are swizzled. Lanes whose copy is not valid store zeros.
__device__ void copy_halves(const char* from, float* out, bool valid) {
  alignas(128) __shared__ float4 memory[32 * 8];
  const int lane = threadIdx.x, row = lane / 4 * 5 % 32, chunk = lane % 4;
  float4* const to = memory + row * 8 + (chunk ^ row) % 8;
  cp_async_16_or_zero(to, from + row * 128 + chunk * 16, valid);
  cp_async_commit();
  cp_async_wait<0>();
  __syncthreads();
  out[lane] = to->x;
}

template <int lanes>
__global__ void copy_halves_async(const char* from, float* out) {
  copy_halves(from, out, int(threadIdx.x) < lanes);
}

// Twice the same copy of all lanes, but for the predicate of its one LDGSTS: nvcc negates it where lanes below a bound
// are valid (`!P0`), and does not where those from a bound on are (`P0`). For what Nsight Compute makes of that.
template <int negated>
__global__ void copy_halves_async_predicate(const char* from, float* out, int bound) {
  copy_halves(from, out, negated ? int(threadIdx.x) < bound : int(threadIdx.x) >= bound);
}

template <class T, Pattern pattern>
void loads(float* out) {
  launch(load_shared<T, pattern>, {1, 32}, out);
}

template <class T, int... all>
void every_load(float* out, std::integer_sequence<int, all...>) {
  (loads<T, Pattern(all)>(out), ...);
}

template <class T>
void stores(float* out) {  // two lanes may not store to one place
  launch(store_shared<T, each>, {1, 32}, out);
  launch(store_shared<T, far>, {1, 32}, out);
  launch(store_shared<T, quarters_own_banks>, {1, 32}, out);
  launch(store_shared<T, first_quarter>, {1, 32}, out);
  launch(store_shared<T, even_lanes>, {1, 32}, out);
}

void run() {
  float* out;
  char* from;
  check(cudaMalloc(&out, 32 * sizeof(float)));
  check(cudaMalloc(&from, 1 << 20));
  every_load<float>(out, std::make_integer_sequence<int, pattern_count>());
  every_load<float2>(out, std::make_integer_sequence<int, pattern_count>());
  every_load<float4>(out, std::make_integer_sequence<int, pattern_count>());
  stores<float>(out);
  stores<float2>(out);
  stores<float4>(out);
  launch(copy_async<32, 512, 32>, {1, 32}, from, out);
  launch(copy_async<8, 128, 32>, {1, 32}, from, out);
  launch(copy_async<8, 4096, 32>, {1, 32}, from, out);
  launch(copy_async<2, 4096, 32>, {1, 32}, from, out);
  launch(copy_async<1, 4096, 32>, {1, 32}, from, out);
  launch(copy_async<32, 512, 16>, {1, 32}, from, out);
  launch(copy_async<32, 512, 0>, {1, 32}, from, out);
  launch(copy_async<2, 4096, 0>, {1, 32}, from, out);
  launch(copy_halves_async<32>, {1, 32}, from, out);
  launch(copy_halves_async<16>, {1, 32}, from, out);
  launch(copy_halves_async<0>, {1, 32}, from, out);
  launch(copy_halves_async_predicate<1>, {1, 32}, from, out, 32);
  launch(copy_halves_async_predicate<0>, {1, 32}, from, out, 0);
  check(cudaDeviceSynchronize());
  cudaFree(out);
  cudaFree(from);
}

}  // namespace patterns

int main() {
  try {
    if (!can_trace()) {
      patterns::run();
      return 0;
    }
    const std::string launches = traced(patterns::run);
    std::printf(
        "{\"chapter\": \"patterns\", \"problem\": \"\", \"direction\": \"forward\", \"flops\": 0, \"rungs\": "
        "[{\"rung\": \"patterns\", "
        "\"launches\": %s}]}\n",
        launches.c_str());
  } catch (const CudaError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
