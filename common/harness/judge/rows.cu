#include <algorithm>
#include <cmath>

#include "device/launch.h"
#include "device/math.h"
#include "device/numeric.h"
#include "harness/device_buffer.h"
#include "harness/judge/rows.h"

namespace judge {
namespace {

using attention::DType;
using attention::Problem;

constexpr int threads = 256, warps = threads / 32;

// splitmix64 (Steele, Lea and Flood 2014): 64 bits that look random, of any number.
__device__ uint64_t bits_of(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

template <class T>
__global__ void inputs(T* to, size_t size, float deviation, uint64_t seed) {
  const size_t i = size_t(blockIdx.x) * threads + threadIdx.x;
  if (i >= size) return;
  const uint64_t bits = bits_of(seed ^ bits_of(i));
  float sum = 0;  // of four numbers between -1/2 and 1/2, each with a variance of 1/12
  for (int part = 0; part < 4; part++) sum += float(bits >> 16 * part & 0xffff) / 65536 - 0.5f;
  to[i] = from_float<T>(sum * deviation * sqrtf(3));
}

// A warp for each row.
template <class T>
__global__ void compare_rows(size_t rows, int D,
                             const T* got,               // [rows, D]
                             const float* got_lse,       // [rows]
                             const T* expected,          // [rows, D]
                             const float* expected_lse,  // [rows]
                             float tolerance, Row* verdicts) {
  const size_t row = size_t(blockIdx.x) * warps + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  float largest = 0, error = 0;  // of the lane's elements
  bool nan = false, number = false;
  for (int d = lane; d < D; d += 32) {
    const float x = to_float(got[row * D + d]), y = to_float(expected[row * D + d]);
    nan = nan || x != x;
    number = number || x == x;
    largest = fmaxf(largest, fabsf(y));
    error = fmaxf(error, fabsf(x - y));  // fmaxf takes the number where one is NaN
  }
  largest = warp_max(largest), error = warp_max(error);
  const bool any_nan = __any_sync(0xffffffff, nan), any_number = __any_sync(0xffffffff, number);
  if (lane != 0) return;
  bool right = !any_nan && error <= tolerance * largest + 1e-6f;
  if (got_lse)
    right = right && (got_lse[row] == expected_lse[row] || fabsf(got_lse[row] - expected_lse[row]) <= tolerance);
  verdicts[row] = right ? Row::right : any_number ? Row::wrong : Row::unwritten;
}

// A thread for each row.
__global__ void find_rows(size_t rows, int row_words,
                          const uint32_t* got,      // [rows, row_words]
                          const uint32_t* earlier,  // [rows, row_words]
                          Row* verdicts) {
  const size_t row = size_t(blockIdx.x) * threads + threadIdx.x;
  if (row >= rows || verdicts[row] != Row::wrong) return;
  for (int i = 0; i < row_words; i++)
    if (got[row * row_words + i] != earlier[row * row_words + i]) return;
  verdicts[row] = Row::earlier;
}

// Adds up what each word becomes at its place, in some blocks that stride over all of them.
__global__ void add_up(const uint32_t* words, size_t size, uint64_t seed, Digest* sums) {
  unsigned long long first = 0, second = 0;
  for (size_t i = size_t(blockIdx.x) * threads + threadIdx.x; i < size; i += size_t(gridDim.x) * threads) {
    const uint64_t bits = bits_of(seed ^ bits_of(uint64_t(i) << 32 | words[i]));
    first += bits, second += bits_of(bits);
  }
  atomicAdd(&sums->parts[0], first);
  atomicAdd(&sums->parts[1], second);
}

unsigned blocks(size_t size, int of) { return unsigned((size + of - 1) / of); }

}  // namespace

void make_inputs(void* to, size_t size, DType dtype, float deviation, uint64_t seed) {
  if (dtype == DType::fp16)
    launch(inputs<__half>, {blocks(size, threads), threads}, static_cast<__half*>(to), size, deviation, seed);
  else
    launch(inputs<__nv_bfloat16>, {blocks(size, threads), threads}, static_cast<__nv_bfloat16*>(to), size, deviation,
           seed);
}

Digest digest(const void* what, size_t bytes, uint64_t seed, const Digest& before) {
  const harness::DeviceBuffer sums(sizeof before);
  Digest found = {};
  check(cudaMemcpy(sums.data(), &before, sizeof before, cudaMemcpyHostToDevice));
  launch(add_up, {std::min(blocks(bytes / 4, threads), 1024u), threads}, static_cast<const uint32_t*>(what), bytes / 4,
         seed, static_cast<Digest*>(sums.data()));
  check(cudaMemcpy(&found, sums.data(), sizeof found, cudaMemcpyDeviceToHost));
  return found;
}

void compare(const Problem& p, const Results& got, const Results& expected, Row* verdicts) {
  const size_t rows = p.lse_size();
  const auto compare_as = [&]<class T>(T, float tolerance) {
    launch(compare_rows<T>, {blocks(rows, warps), threads}, rows, p.head_dim, static_cast<const T*>(got.o), got.lse,
           static_cast<const T*>(expected.o), expected.lse, tolerance, verdicts);
  };
  p.dtype == DType::fp16 ? compare_as(__half(), 0x1p-7f) : compare_as(__nv_bfloat16(), 0x1p-4f);
}

void find_again(const Problem& p, const void* got, const void* earlier, Row* verdicts) {
  launch(find_rows, {blocks(p.lse_size(), threads), threads}, p.lse_size(), p.head_dim / 2,
         static_cast<const uint32_t*>(got), static_cast<const uint32_t*>(earlier), verdicts);
}

}  // namespace judge
