// From 16 bits to eight with a scale for each tile: fp8_tile rows of one head of Q, K or V. A block reads its tile once
// and keeps it in registers while it looks for the largest element. So one launch does what took three, and nothing is
// read twice. A scale is a power of two (device/fp8.h).
//
// V is transposed, its keys in the order of quantize.h. Q and K can be rotated: a row is multiplied by a Hadamard
// matrix of signs, which leaves q k^T as it is but for a factor D, and spreads an outlier over all D elements. A quad
// of lanes has a row, and of each 32 elements a lane has eight: three steps of the fast transform are among these, two
// are between the lanes of the quad, and the others between the eights of a lane.
//
// Tensors that are e4m3 already are taken as they lie, but for V: the last kernel transposes it.
#pragma once

#include "quantize.h"

namespace fp8 {

using attention::fp8_tile;

// What a launch has in its workspace.
struct EightBitTiles {
  float *q_scales, *k_scales;  // [B, H, q_tiles], [B, Hkv, k_tiles]
  float* v_exponents;          // [B, Hkv, k_tiles], log2 of the scales
  e4m3* q;                     // [B, H, Nq, D]
  e4m3* k;                     // [B, Hkv, Nk, D]
  e4m3* v;                     // [B, Hkv, D, keys]
  int q_tiles, k_tiles, keys;  // tiles of a head; keys of them all: of those behind Nk V is zero
};

// Q and K have a place there unless they are e4m3 already.
inline EightBitTiles tiles_in_workspace(const Problem& p, void* workspace, bool of_e4m3, size_t* bytes = nullptr) {
  EightBitTiles t;
  t.q_tiles = ceil_div(p.seq_q, fp8_tile), t.k_tiles = ceil_div(p.seq_k, fp8_tile), t.keys = t.k_tiles * fp8_tile;
  char* at = static_cast<char*>(workspace);
  const auto next = [&](auto*& pointer, size_t count) {
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(at);
    at += (count * sizeof *pointer + 255) / 256 * 256;  // places are multiples of 256 bytes, as allocations are
  };
  const size_t heads = size_t(p.batch) * p.heads, kv_heads = size_t(p.batch) * p.kv_heads;
  next(t.q_scales, heads * t.q_tiles);
  next(t.k_scales, kv_heads * t.k_tiles);
  next(t.v_exponents, kv_heads * t.k_tiles);
  next(t.q, of_e4m3 ? 0 : p.q_size());
  next(t.k, of_e4m3 ? 0 : p.kv_size());
  next(t.v, kv_heads * t.keys * p.head_dim);
  if (bytes) *bytes = size_t(at - static_cast<char*>(workspace));
  return t;
}
template <bool of_e4m3>
size_t tiles_workspace_bytes(const Problem& p) {
  size_t bytes;
  tiles_in_workspace(p, nullptr, of_e4m3, &bytes);
  return bytes;
}

__device__ inline float finite_magnitude(float x) { return fabsf(x) < INFINITY ? fabsf(x) : 0; }

// x[i][e] is element 32 i + 8 t + e of a row, which the quad of lanes t has.
template <int D>
__device__ __forceinline__ void rotate(float (&x)[D / 32][8]) {
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < D / 32; i++) {
    const uint32_t signs = hadamard_signs(i) >> 8 * t;
#pragma unroll
    for (int e = 0; e < 8; e++) x[i][e] = __uint_as_float(__float_as_uint(x[i][e]) ^ (signs << (31 - e) & 0x80000000));
  }
#pragma unroll
  for (int step = 0; step < hadamard_steps<D>; step++) {
    const int distance = hadamard_distance<D>(step);
#pragma unroll
    for (int i = 0; i < D / 32; i++)
#pragma unroll
      for (int e = 0; e < 8; e++)
        if (distance < 8) {
          if (!(e & distance)) hadamard_step(x[i][e], x[i][e + distance]);
        } else if (distance >= 32) {
          if (!(i & distance / 32)) hadamard_step(x[i][e], x[i + distance / 32][e]);
        } else {
          const float other = __shfl_xor_sync(0xffffffff, x[i][e], distance / 8);
          x[i][e] = t & distance / 8 ? other - x[i][e] : x[i][e] + other;
        }
  }
}

// A tile of Q or K, of which `rows` are there.
template <class T, int D, bool rotated>
__device__ void round_tile(const T* from, int rows, e4m3* to, float* scale) {
  constexpr int quads = EightBits::parts / 4;
  const int t = threadIdx.x % 4;
  float x[fp8_tile / quads][D / 32][8];
  float largest = 0;
#pragma unroll
  for (int r = 0; r < fp8_tile / quads; r++) {
    const int row = threadIdx.x / 4 + r * quads;
#pragma unroll
    for (int i = 0; i < D / 32; i++) {
      Pack8<T> eight = {};
      if (row < rows) eight = load_pack8(from + size_t(row) * D + 32 * i + 8 * t);
#pragma unroll
      for (int e = 0; e < 8; e++) x[r][i][e] = to_float(eight.x[e]);
    }
    if constexpr (rotated) rotate<D>(x[r]);
#pragma unroll
    for (int i = 0; i < D / 32; i++)
#pragma unroll
      for (int e = 0; e < 8; e++) largest = fmaxf(largest, finite_magnitude(x[r][i][e]));
  }
  const float of_tile = tile_scale(block_max(largest)), inverse = 1 / of_tile;
  if (threadIdx.x == 0) *scale = of_tile;
#pragma unroll
  for (int r = 0; r < fp8_tile / quads; r++) {
    const int row = threadIdx.x / 4 + r * quads;
    if (row >= rows) continue;
#pragma unroll
    for (int i = 0; i < D / 32; i++) {
      const auto at = [&](int e) { return scaled(x[r][i][e], inverse); };
      *reinterpret_cast<uint2*>(to + size_t(row) * D + 32 * i + 8 * t) =
          make_uint2(pack4<e4m3>(at(0), at(1), at(2), at(3)), pack4<e4m3>(at(4), at(5), at(6), at(7)));
    }
  }
}

// A tile of V, transposed as transpose_v does.
template <class T, int D>
__device__ void transpose_tile(const T* from, int rows, e4m3* to, int keys, float* exponent) {
  constexpr int columns = EightBits::parts / 32 * 8;  // of all warps at a time
  const int lane = threadIdx.x % 32, first_column = threadIdx.x / 32 * 8;
  const int first_key = lane / 4 * 16 + lane % 4 * 2;
  Pack8<T> of_key[D / columns][4];
  float largest = 0;
#pragma unroll
  for (int c = 0; c < D / columns; c++)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int key = first_key + i / 2 * 8 + i % 2;
      of_key[c][i] = {};
      if (key < rows) of_key[c][i] = load_pack8(from + size_t(key) * D + first_column + c * columns);
#pragma unroll
      for (int e = 0; e < 8; e++) largest = fmaxf(largest, finite_magnitude(to_float(of_key[c][i].x[e])));
    }
  const float of_tile = tile_scale(block_max(largest)), inverse = 1 / of_tile;
  if (threadIdx.x == 0) *exponent = float(ilogbf(of_tile));
#pragma unroll
  for (int c = 0; c < D / columns; c++)
#pragma unroll
    for (int e = 0; e < 8; e++) {
      const auto at = [&](int i) { return scaled(to_float(of_key[c][i].x[e]), inverse); };
      e4m3* const row = to + size_t(first_column + c * columns + e) * keys;
      *reinterpret_cast<uint32_t*>(row + 4 * lane) = pack4<e4m3>(at(0), at(1), at(2), at(3));
    }
}

// A block for each tile: those of Q, then those of K, then those of V.
template <class T, int D, bool rotated>
__global__ void __launch_bounds__(EightBits::parts)
    round_tiles(const T* q, const T* k, const T* v, Problem p, EightBitTiles to) {
  const int of_q = p.batch * p.heads * to.q_tiles, of_k = p.batch * p.kv_heads * to.k_tiles;
  int tile = blockIdx.x;
  if (tile < of_q) {
    const int head = tile / to.q_tiles, row = tile % to.q_tiles * fp8_tile;
    const size_t begin = (size_t(head) * p.seq_q + row) * D;
    round_tile<T, D, rotated>(q + begin, p.seq_q - row, to.q + begin, to.q_scales + tile);
    return;
  }
  const bool is_v = tile >= of_q + of_k;
  tile -= is_v ? of_q + of_k : of_q;
  const int head = tile / to.k_tiles, key = tile % to.k_tiles * fp8_tile;
  const size_t begin = (size_t(head) * p.seq_k + key) * D;
  if (is_v)
    transpose_tile<T, D>(v + begin, p.seq_k - key, to.v + size_t(head) * D * to.keys + key, to.keys,
                         to.v_exponents + tile);
  else
    round_tile<T, D, rotated>(k + begin, p.seq_k - key, to.k + begin, to.k_scales + tile);
}

// What is no scale becomes NaN, and all that depends on it.
__device__ inline float checked_scale(const float* scales, int i, bool of_tiles) {
  const float scale = scales[of_tiles ? i : 0];
  return scale > 0 && scale < INFINITY ? scale : NAN;
}

// The bytes of four words, transposed: byte j of word i becomes byte i of word j.
__device__ inline void transpose_bytes(uint32_t (&words)[4]) {
  const uint32_t low01 = __byte_perm(words[0], words[1], 0x5140), high01 = __byte_perm(words[0], words[1], 0x7362);
  const uint32_t low23 = __byte_perm(words[2], words[3], 0x5140), high23 = __byte_perm(words[2], words[3], 0x7362);
  words[0] = __byte_perm(low01, low23, 0x5410), words[1] = __byte_perm(low01, low23, 0x7632);
  words[2] = __byte_perm(high01, high23, 0x5410), words[3] = __byte_perm(high01, high23, 0x7632);
}

// Of tensors that are e4m3 already. A block for each tile of V, which it transposes as transpose_v does, and then one
// for each head of Q. They leave the scales of their tiles, and those of K, as the attention wants them.
template <int D>
__global__ void __launch_bounds__(EightBits::parts)
    take_tiles(const e4m3* v,  // [B * Hkv, Nk, D]
               attention::ScalesOfE4m3 scales, Problem p, EightBitTiles to) {
  const int tile = blockIdx.x, of_v = p.batch * p.kv_heads * to.k_tiles;
  if (tile >= of_v) {
    const int first = (tile - of_v) * to.q_tiles;
    for (int i = first + threadIdx.x; i < first + to.q_tiles; i += blockDim.x)
      to.q_scales[i] = checked_scale(scales.q, i, scales.of_tiles);
    return;
  }
  if (threadIdx.x == 0) {
    to.k_scales[tile] = checked_scale(scales.k, tile, scales.of_tiles);
    to.v_exponents[tile] = log2f(checked_scale(scales.v, tile, scales.of_tiles));
  }
  const int head = tile / to.k_tiles, j0 = tile % to.k_tiles * fp8_tile, lane = threadIdx.x % 32;
  const int first_key = j0 + lane / 4 * 16 + lane % 4 * 2;
  for (int column = threadIdx.x / 32 * 8; column < D; column += EightBits::parts / 32 * 8) {
    uint32_t four[2][4];  // of eight columns: the first four of each key, and the others
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int key = first_key + i / 2 * 8 + i % 2;
      uint2 eight = {0, 0};
      if (key < p.seq_k) eight = *reinterpret_cast<const uint2*>(v + (size_t(head) * p.seq_k + key) * D + column);
      four[0][i] = eight.x, four[1][i] = eight.y;
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
      transpose_bytes(four[half]);
#pragma unroll
      for (int e = 0; e < 4; e++) {
        e4m3* const row = to.v + (size_t(head) * D + column + 4 * half + e) * to.keys + j0;
        *reinterpret_cast<uint32_t*>(row + 4 * lane) = four[half][e];
      }
    }
  }
}

template <class T, int D, bool rotated>
void quantize_tiles(const Problem& p, const attention::ForwardTensors<T>& from, const EightBitTiles& to,
                    cudaStream_t stream) {
  const unsigned tiles = unsigned(p.batch * p.heads) * to.q_tiles + 2 * unsigned(p.batch * p.kv_heads) * to.k_tiles;
  launch(round_tiles<T, D, rotated>, {tiles, EightBits::parts, 0, stream}, from.q, from.k, from.v, p, to);
}

}  // namespace fp8
