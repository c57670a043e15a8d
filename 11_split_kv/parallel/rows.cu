// A thread has eight elements of a row (copy_rows: 4 or 16 bytes of it), and the next ones a grid further on. These
// kernels are limited by DRAM: each reads and writes every row once, which takes a few percent of the time of the part
// that made it.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "device/numeric.h"
#include "harness/device_buffer.h"
#include "rows.h"

namespace split_kv::parallel {
namespace {

using attention::DType;
using attention::Problem;

constexpr int threads = 256;

dim3 grid_for(size_t items) { return dim3(unsigned(std::clamp<size_t>((items + threads - 1) / threads, 1, 1 << 14))); }

template <class Unit>
__global__ void copy(const Unit* from,  // [matrices, from_rows, units]
                     Unit* to,          // [matrices, to_rows, units]
                     RowCopy c, int units) {
  const size_t row_units = size_t(c.count) * units, all = row_units * c.matrices;
  for (size_t i = size_t(blockIdx.x) * threads + threadIdx.x; i < all; i += size_t(gridDim.x) * threads) {
    const size_t matrix = i / row_units, rest = i % row_units;
    to[(matrix * c.to_rows + c.to_first) * units + rest] = from[(matrix * c.from_rows + c.first) * units + rest];
  }
}

struct Eight {
  float x[8];
};

template <class T>
__device__ Eight load8(const T* from) {
  const Pack8<T> pack = load_pack8(from);
  Eight eight;
  for (int i = 0; i < 8; i++) eight.x[i] = to_float(pack.x[i]);
  return eight;
}
template <>
__device__ Eight load8<float>(const float* from) {
  Eight eight;
  *reinterpret_cast<float4*>(eight.x) = *reinterpret_cast<const float4*>(from);
  *reinterpret_cast<float4*>(eight.x + 4) = *reinterpret_cast<const float4*>(from + 4);
  return eight;
}

template <class T>
__device__ void store8(T* to, const Eight& eight) {
  Pack8<T> pack;
  for (int i = 0; i < 8; i++) pack.x[i] = from_float<T>(eight.x[i]);
  store_pack8(to, pack);
}
template <>
__device__ void store8<float>(float* to, const Eight& eight) {
  *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(eight.x);
  *reinterpret_cast<float4*>(to + 4) = *reinterpret_cast<const float4*>(eight.x + 4);
}

// A row has D / 8 chunks of eight elements, and a lane for each. `lanes` is the next power of two: lanes without a
// chunk fill the row up, so that no row lies in two warps. Then all lanes of a row have read its LSE before one writes
// it.
template <class To, class Part>
__global__ void merge_rows(Join j,
                           float* lse,             // [matrices, rows]
                           const float* part_lse,  // [matrices, count]
                           int chunks, int lanes) {
  const int rows = j.until - j.from;
  const size_t all = size_t(j.matrices) * rows * lanes;
  const size_t rounds = (all + size_t(gridDim.x) * threads - 1) / (size_t(gridDim.x) * threads);
  for (size_t round = 0; round < rounds; round++) {
    const size_t i = (round * gridDim.x + blockIdx.x) * threads + threadIdx.x;
    const int chunk = int(i % lanes);
    const bool has_row = i < all, has_chunk = has_row && chunk < chunks;
    const size_t index = has_row ? i / lanes : 0;
    const size_t matrix = index / rows, row = j.from + index % rows;
    const size_t whole = matrix * j.rows + row, in_part = matrix * j.count + (row - j.first);
    const float one_lse = j.fresh || !has_row ? -INFINITY : lse[whole], other_lse = part_lse[in_part];
    const float largest = fmaxf(one_lse, other_lse);
    const float weight = largest == -INFINITY ? 0 : expf(one_lse - largest);
    const float part_weight = largest == -INFINITY ? 0 : expf(other_lse - largest);
    const float total = weight + part_weight;
    __syncwarp();  // every lane of the row has read its LSE
    if (has_chunk) {
      To* const to = static_cast<To*>(j.to) + (whole * chunks + chunk) * 8;
      const Eight one = j.fresh ? Eight{} : load8(to);
      const Eight other = load8(static_cast<const Part*>(j.part) + (in_part * chunks + chunk) * 8);
      Eight both;
      for (int e = 0; e < 8; e++)
        both.x[e] = largest == -INFINITY ? 0 : (weight * one.x[e] + part_weight * other.x[e]) / total;
      store8(to, both);
      if (chunk == 0) lse[whole] = largest == -INFINITY ? -INFINITY : largest + logf(total);
    }
  }
}

template <class To, class Part>
__global__ void add_rows(Join j, int chunks) {
  const int rows = j.until - j.from;
  const size_t all = size_t(j.matrices) * rows * chunks;
  for (size_t i = size_t(blockIdx.x) * threads + threadIdx.x; i < all; i += size_t(gridDim.x) * threads) {
    const size_t index = i / chunks, chunk = i % chunks;
    const size_t matrix = index / rows, row = j.from + index % rows;
    To* const to = static_cast<To*>(j.to) + ((matrix * j.rows + row) * chunks + chunk) * 8;
    Eight sum = j.fresh ? Eight{} : load8(to);
    if (j.part) {
      const size_t in_part = matrix * j.count + (row - j.first);
      const Eight part = load8(static_cast<const Part*>(j.part) + (in_part * chunks + chunk) * 8);
      for (int e = 0; e < 8; e++) sum.x[e] += part.x[e];
    }
    store8(to, sum);
  }
}

__global__ void nothing() {}

// Where row `row` of a rank's tensor stands in the whole sequence.
__device__ int whole_row(const Runs& runs, int row) {
  int run = 0;
  while (row >= runs.run[run].count) row -= runs.run[run++].count;
  return runs.run[run].first + row;
}

// Bits that look independent for neighbouring numbers: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
// Generators" (2014), the finalizer of SplitMix64.
__device__ uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

template <class T>
__global__ void random(RandomRows r, int D) {
  const int rows = r.runs.count();
  const size_t all = size_t(r.matrices) * rows * D;
  for (size_t i = size_t(blockIdx.x) * threads + threadIdx.x; i < all; i += size_t(gridDim.x) * threads) {
    const size_t matrix = i / D / rows, row = whole_row(r.runs, int(i / D % rows));
    const uint64_t bits = mixed((matrix * r.all_rows + row) * D + i % D + (uint64_t(r.seed) << 48));
    int sum = 0;  // of four numbers from 0 to 65535: its variance is 4 / 12 of 65536^2
    for (int n = 0; n < 4; n++) sum += int(bits >> (16 * n) & 0xffff);
    static_cast<T*>(r.to)[i] = from_float<T>(r.deviation * (float(sum) / 65536 - 2) * 1.7320508f);
  }
}

// Sums of squares, one pair for each thread.
template <class T>
__global__ void squares(Comparable c, int D, double* sums) {
  const int rows = c.runs.count();
  const size_t all = size_t(c.matrices) * rows * D;
  double difference = 0, of_whole = 0;
  const size_t first = size_t(blockIdx.x) * threads + threadIdx.x;
  for (size_t i = first; i < all; i += size_t(gridDim.x) * threads) {
    const size_t matrix = i / D / rows, row = whole_row(c.runs, int(i / D % rows));
    const float whole = to_float(static_cast<const T*>(c.whole)[(matrix * c.all_rows + row) * D + i % D]);
    const float own = to_float(static_cast<const T*>(c.own)[i]);
    difference += double(own - whole) * (own - whole);
    of_whole += double(whole) * whole;
  }
  sums[2 * first] = difference;
  sums[2 * first + 1] = of_whole;
}

// Calls use(To{}, Part{}) with the two types, of which one at least is the problem's.
template <class Use>
void with_types(const Join& j, const Problem& p, Use&& use) {
  const auto with = [&]<class T>(T type) {
    if (j.to_fp32)
      use(float{}, type);
    else if (j.part_fp32)
      use(type, float{});
    else
      use(type, type);
  };
  if (j.until <= j.from) return;
  if (p.dtype == DType::fp16)
    with(__half{});
  else
    with(__nv_bfloat16{});
}

dim3 grid_for(const Join& j, int of_a_row) { return grid_for(size_t(j.matrices) * (j.until - j.from) * of_a_row); }

}  // namespace

void pause(cudaStream_t stream) { launch(nothing, {1, 1, 0, stream}); }

void random_rows(const RandomRows& r, const Problem& p, cudaStream_t stream) {
  const size_t all = size_t(r.matrices) * r.runs.count() * p.head_dim;
  launch(p.dtype == DType::fp16 ? random<__half> : random<__nv_bfloat16>, {grid_for(all), threads, 0, stream}, r,
         p.head_dim);
}

double relative_distance(const Comparable& c, const Problem& p) {
  constexpr int blocks = 256;
  const harness::DeviceBuffer sums(size_t(2) * blocks * threads * sizeof(double));
  launch(p.dtype == DType::fp16 ? squares<__half> : squares<__nv_bfloat16>, {blocks, threads}, c, p.head_dim,
         static_cast<double*>(sums.data()));
  std::vector<double> each(size_t(2) * blocks * threads);
  check(cudaMemcpy(each.data(), sums.data(), sums.bytes(), cudaMemcpyDeviceToHost));
  double difference = 0, of_whole = 0;
  for (size_t i = 0; i < each.size(); i += 2) difference += each[i], of_whole += each[i + 1];
  return std::sqrt(difference / of_whole);
}

void copy_rows(const RowCopy& c, cudaStream_t stream) {
  if (c.count == 0) return;
  const auto copy_as = [&]<class Unit>(Unit) {
    const int units = c.row_bytes / int(sizeof(Unit));
    launch(copy<Unit>, {grid_for(size_t(c.matrices) * c.count * units), threads, 0, stream},
           static_cast<const Unit*>(c.from), static_cast<Unit*>(c.to), c, units);
  };
  if (c.row_bytes % int(sizeof(uint4)) == 0)
    copy_as(uint4{});
  else
    copy_as(float{});
}

void merge(const Join& j, float* lse, const float* part_lse, const Problem& p, cudaStream_t stream) {
  const int chunks = p.head_dim / 8, lanes = int(std::bit_ceil(unsigned(chunks)));
  with_types(j, p, [&]<class To, class Part>(To, Part) {
    launch(merge_rows<To, Part>, {grid_for(j, lanes), threads, 0, stream}, j, lse, part_lse, chunks, lanes);
  });
}

void add(const Join& j, const Problem& p, cudaStream_t stream) {
  const int chunks = p.head_dim / 8;
  with_types(j, p, [&]<class To, class Part>(To, Part) {
    launch(add_rows<To, Part>, {grid_for(j, chunks), threads, 0, stream}, j, chunks);
  });
}

}  // namespace split_kv::parallel
