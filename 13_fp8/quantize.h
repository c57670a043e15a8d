// From 16 bits to eight: each of Q, K and V becomes e4m3 (device/fp8.h) and one scale, in two or three launches before
// the attention. A scale is the tensor's largest element in magnitude / 448, so that the largest becomes 448 and
// nothing is above it. What is not finite has no say in the scale, and becomes NaN.
//
// Q and K stay as they are, [.., N, D]. V has to be transposed, here or later, since the tensor core wants both of its
// matrices with rows along the index that it sums over, and for O = P V these are the keys. Within each 16 keys it also
// takes them in another order, the one in which a lane's registers hold P after S = Q K^T: place 4 t + 2 c + e has key
// 8 c + 2 t + e.
//
//   key        0  1  8  9 |  2  3 10 11 |  4  5 12 13 |  6  7 14 15
//   lane % 4       0      |      1      |      2      |      3
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "attention/dispatch.h"
#include "device/fp8.h"
#include "device/launch.h"
#include "device/math.h"
#include "device/numeric.h"

namespace fp8 {

using attention::Problem;
using e4m3 = __nv_fp8_e4m3;

constexpr int key_tile = 128;  // a row of the transposed V is that many keys long, or a multiple of it

// What a launch has in its workspace.
struct EightBits {
  static constexpr int parts = 256;  // of each tensor at most, for its largest element; and threads of a block

  int* taken;      // by the attention, of its list of tiles: none
  int used;        // parts
  float* largest;  // [3][parts], of Q, K and V
  float* scales;   // [3]
  e4m3* q;         // [B, H, Nq, D]
  e4m3* k;         // [B, Hkv, Nk, D]
  e4m3* v;         // [B, Hkv, D, keys], or [B, Hkv, Nk, D] if it is transposed later
  int keys;        // Nk, rounded up to whole tiles; of the rest V is zero
};

// Where they begin: places are multiples of 256 bytes, as those of allocations are.
struct Places {
  size_t largest, scales, q, k, v, end;
};
inline Places places(const Problem& p) {
  const auto after = [](size_t begin, size_t bytes) { return (begin + bytes + 255) / 256 * 256; };
  Places at;
  at.largest = after(0, sizeof(int));
  at.scales = after(at.largest, 3 * EightBits::parts * sizeof(float));
  at.q = after(at.scales, 3 * sizeof(float));
  at.k = after(at.q, p.q_size());
  at.v = after(at.k, p.kv_size());
  at.end = after(at.v, p.kv_size() / p.seq_k * size_t(ceil_div(p.seq_k, key_tile)) * key_tile);
  return at;
}
inline size_t workspace_bytes(const Problem& p) { return places(p).end; }
inline EightBits in_workspace(const Problem& p, void* workspace) {
  char* const begin = static_cast<char*>(workspace);
  const Places at = places(p);
  const size_t eights = std::max(p.q_size(), p.kv_size()) / 8;
  return {reinterpret_cast<int*>(begin),
          int(std::min(size_t(EightBits::parts), ceil_div(eights, EightBits::parts))),
          reinterpret_cast<float*>(begin + at.largest),
          reinterpret_cast<float*>(begin + at.scales),
          reinterpret_cast<e4m3*>(begin + at.q),
          reinterpret_cast<e4m3*>(begin + at.k),
          reinterpret_cast<e4m3*>(begin + at.v),
          ceil_div(p.seq_k, key_tile) * key_tile};
}

// The largest over all threads of a block. Every thread gets it.
template <int threads = EightBits::parts>
__device__ float block_max(float x) {
  __shared__ float of_warp[threads / 32];
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, step));
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = x;
  __syncthreads();  // all warps' largest are there
#pragma unroll
  for (int warp = 0; warp < threads / 32; warp++) x = fmaxf(x, of_warp[warp]);
  return x;
}

// Block (i, tensor): the largest element of the i-th part. Elements are dealt out in eights.
template <class T>
__global__ void __launch_bounds__(EightBits::parts)
    find_largest(const T* q, const T* k, const T* v,  // Q, K and V, of so many elements
                 size_t q_size, size_t kv_size, EightBits to) {
  const T* const x = blockIdx.y == 0 ? q : blockIdx.y == 1 ? k : v;
  const size_t size = blockIdx.y == 0 ? q_size : kv_size;
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) *to.taken = 0;
  float largest = 0;
  for (size_t i = (size_t(blockIdx.x) * blockDim.x + threadIdx.x) * 8; i < size;
       i += size_t(gridDim.x) * blockDim.x * 8) {
    const Pack8<T> eight = load_pack8(x + i);
    for (int e = 0; e < 8; e++) {
      const float magnitude = fabsf(to_float(eight.x[e]));
      largest = fmaxf(largest, magnitude < INFINITY ? magnitude : 0);
    }
  }
  largest = block_max(largest);
  if (threadIdx.x == 0) to.largest[blockIdx.y * EightBits::parts + blockIdx.x] = largest;
}

// What a tensor's elements are multiplied by. One block leaves the scale, its inverse, for the attention.
__device__ inline float inverse_scale(const EightBits& to, int tensor, bool leave) {
  const float of_part = int(threadIdx.x) < to.used ? to.largest[tensor * EightBits::parts + threadIdx.x] : 0;
  const float largest = fmaxf(block_max(of_part), smallest_divisor);
  if (leave && threadIdx.x == 0) to.scales[tensor] = largest / largest_e4m3;
  return largest_e4m3 / largest;
}

__device__ inline float scaled(float x, float inverse) { return fabsf(x) < INFINITY ? x * inverse : NAN; }

// Block (i, tensor): a share of the elements of Q, K or V.
template <class T>
__global__ void __launch_bounds__(EightBits::parts)
    round_rows(const T* q, const T* k, const T* v, size_t q_size, size_t kv_size, EightBits to) {
  const int tensor = blockIdx.y;
  const T* const x = tensor == 0 ? q : tensor == 1 ? k : v;
  e4m3* const rounded = tensor == 0 ? to.q : tensor == 1 ? to.k : to.v;
  const size_t size = tensor == 0 ? q_size : kv_size;
  const float inverse = inverse_scale(to, tensor, blockIdx.x == 0);
  for (size_t i = (size_t(blockIdx.x) * blockDim.x + threadIdx.x) * 8; i < size;
       i += size_t(gridDim.x) * blockDim.x * 8) {
    const Pack8<T> eight = load_pack8(x + i);
    const auto at = [&](int e) { return scaled(to_float(eight.x[e]), inverse); };
    *reinterpret_cast<uint2*>(rounded + i) =
        make_uint2(pack4<e4m3>(at(0), at(1), at(2), at(3)), pack4<e4m3>(at(4), at(5), at(6), at(7)));
  }
}

// A block: key_tile keys of V, of one kv head, transposed in registers. A warp takes eight columns, and a lane of it
// the four keys that become one register of the transposed rows: it loads 16 bytes of each key, and stores four bytes
// in each of the eight rows, beside those of the other lanes.
template <class T, int D>
__global__ void __launch_bounds__(EightBits::parts) transpose_v(const T* v,  // [B * Hkv, Nk, D]
                                                                int seq_k, EightBits to) {
  const float inverse = inverse_scale(to, 2, blockIdx.x == 0);
  const int tiles = to.keys / key_tile, head = blockIdx.x / tiles, j0 = blockIdx.x % tiles * key_tile;
  const int lane = threadIdx.x % 32;
  const int first_key = j0 + lane / 4 * 16 + lane % 4 * 2;  // the others are 1, 8 and 9 further on
  for (int column = threadIdx.x / 32 * 8; column < D; column += EightBits::parts / 32 * 8) {
    Pack8<T> of_key[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int key = first_key + i / 2 * 8 + i % 2;
      of_key[i] = {};
      if (key < seq_k) of_key[i] = load_pack8(v + (size_t(head) * seq_k + key) * D + column);
    }
#pragma unroll
    for (int e = 0; e < 8; e++) {
      const auto at = [&](int i) { return scaled(to_float(of_key[i].x[e]), inverse); };
      e4m3* const row = to.v + (size_t(head) * D + column + e) * to.keys + j0;
      *reinterpret_cast<uint32_t*>(row + 4 * lane) = pack4<e4m3>(at(0), at(1), at(2), at(3));
    }
  }
}

// Who transposes V: a kernel before the attention; the attention, each tile on its way (2_inside.cu); or a kernel the
// first heads, and the attention the others, beside its products (from_e4m3.h).
enum class V { transposed, rows, alongside };

// All launches.
template <class T, int D, V form>
void quantize(const Problem& p, const attention::ForwardTensors<T>& from, const EightBits& to, cudaStream_t stream) {
  launch(find_largest<T>, {{unsigned(to.used), 3}, EightBits::parts, 0, stream}, from.q, from.k, from.v, p.q_size(),
         p.kv_size(), to);
  launch(round_rows<T>, {{unsigned(to.used), form == V::rows ? 3u : 2u}, EightBits::parts, 0, stream}, from.q, from.k,
         from.v, p.q_size(), p.kv_size(), to);
  if constexpr (form == V::transposed)
    launch(transpose_v<T, D>,
           {unsigned(to.keys / key_tile) * unsigned(p.batch * p.kv_heads), EightBits::parts, 0, stream}, from.v,
           p.seq_k, to);
}

}  // namespace fp8
