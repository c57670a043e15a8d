// From 16 bits to eight with a scale for each tile: fp8_tile rows of one head of Q, K or V. A block reads its tile once
// and keeps it in registers while it looks for the largest element. So one launch does what took three, and nothing is
// read twice. While a block rounds a tile, its next one comes to shared memory. A scale is a power of two
// (device/fp8.h).
//
// V is transposed, its keys in the order of quantize.h. Q and K can be rotated: a row is multiplied by a Hadamard
// matrix of signs, which leaves q k^T as it is but for a factor D, and spreads an outlier over all D elements. A quad
// of lanes has a row, and of each 32 elements a lane has eight: three steps of the fast transform are among these, two
// are between the lanes of the quad, and the others between the eights of a lane.
//
// Tensors that are e4m3 already are taken as they lie, but for V (from_e4m3.h).
#pragma once

#include "device/bulk_copy.h"
#include "device/limits.h"
#include "device/mbarrier.h"
#include "device/ring.h"
#include "quantize.h"

namespace fp8 {

using attention::fp8_tile;

// What a launch has in its workspace.
struct EightBitTiles {
  int* taken;                  // by the attention, of its list of tiles: none
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
  next(t.taken, 1);
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

// How a tile is rounded: by so many threads, on a multiprocessor with so many blocks. (Without NDEBUG a thread needs
// one register more, to count how long it has waited.)
template <int D>
constexpr int round_threads = D == 256 ? 512 : 256;
#ifdef NDEBUG
template <int D>
constexpr int round_blocks = 256 / D;
#else
template <int D>
constexpr int round_blocks = D == 64 ? 3 : 256 / D;
#endif

// Two tiles of 16 bits: one is rounded while the next one comes.
template <class T, int D>
struct Incoming {
  T rows[2][fp8_tile * D];
  Mbarrier full[2];
};

// Eight elements, or zeros.
template <class T>
__device__ __forceinline__ void load_eight(float* x, const T* from, bool is_there) {
  uint4 eight = {};
  if (is_there) eight = *reinterpret_cast<const uint4*>(from);
  const uint32_t pairs[] = {eight.x, eight.y, eight.z, eight.w};
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const float2 pair = unpack2<T>(pairs[i]);
    x[2 * i] = pair.x, x[2 * i + 1] = pair.y;
  }
}

// A tile's scale, of which each thread has some elements. What is not finite has no say in it, and becomes NaN: only
// then is the largest of all infinite, and only then are infinities looked for.
template <int threads, int a, int b>
__device__ __forceinline__ float scale_of_elements(float (&x)[a][b]) {
  const auto largest = [&] {
    float largest = 0;
#pragma unroll
    for (int i = 0; i < a; i++)
#pragma unroll
      for (int e = 0; e < b; e++) largest = fmaxf(largest, fabsf(x[i][e]));  // never NaN
    __syncthreads();  // the other warps have read those of the call before
    return block_max<threads>(largest);
  };
  float of_tile = largest();
  if (of_tile == INFINITY) {
#pragma unroll
    for (int i = 0; i < a; i++)
#pragma unroll
      for (int e = 0; e < b; e++)
        if (fabsf(x[i][e]) == INFINITY) x[i][e] = NAN;
    of_tile = largest();
  }
  return tile_scale(of_tile);
}

// x[8 i + e] is element 32 i + 8 t + e of a row, which the quad of lanes t has.
template <int D>
__device__ __forceinline__ void rotate(float (&x)[D / 4]) {
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < D / 32; i++) {
    const uint32_t signs = hadamard_signs(i) >> 8 * t;
#pragma unroll
    for (int e = 0; e < 8; e++)
      x[8 * i + e] = __uint_as_float(__float_as_uint(x[8 * i + e]) ^ (signs << (31 - e) & 0x80000000));
  }
#pragma unroll
  for (int step = 0; step < hadamard_steps<D>; step++) {
    const int distance = hadamard_distance<D>(step);
    const int near = distance < 8 ? distance : distance / 4;  // in x; of the two steps between lanes it is not needed
    const float own_sign = t & distance / 8 ? -1.f : 1.f;
#pragma unroll
    for (int i = 0; i < D / 4; i++)
      if (distance == 8 || distance == 16)
        x[i] = fmaf(own_sign, x[i], __shfl_xor_sync(0xffffffff, x[i], distance / 8));
      else if (!(i & near))
        hadamard_step(x[i], x[i + near]);
  }
}

// A tile of Q or K, of which `rows` are there.
template <class T, int D, bool rotated>
__device__ void round_tile(const T* from, int rows, e4m3* to, float* scale) {
  constexpr int quads = round_threads<D> / 4;
  const int t = threadIdx.x % 4;
  float x[fp8_tile / quads][D / 4];
#pragma unroll
  for (int r = 0; r < fp8_tile / quads; r++) {
    const int row = threadIdx.x / 4 + r * quads;
#pragma unroll
    for (int i = 0; i < D / 32; i++) {
      load_eight(x[r] + 8 * i, from + row * D + 32 * i + 8 * t, row < rows);
    }
    if constexpr (rotated) rotate<D>(x[r]);
  }
  const float of_tile = scale_of_elements<round_threads<D>>(x), inverse = 1 / of_tile;
  if (threadIdx.x == 0) *scale = of_tile;
#pragma unroll
  for (int r = 0; r < fp8_tile / quads; r++) {
    const int row = threadIdx.x / 4 + r * quads;
    if (row >= rows) continue;
#pragma unroll
    for (int i = 0; i < D / 32; i++) {
      const auto four = [&](int e) {
        const float* const at = x[r] + 8 * i + e;
        return pack4<e4m3>(at[0] * inverse, at[1] * inverse, at[2] * inverse, at[3] * inverse);
      };
      *reinterpret_cast<uint2*>(to + size_t(row) * D + 32 * i + 8 * t) = make_uint2(four(0), four(4));
    }
  }
}

// A tile of V, transposed as transpose_v does.
template <class T, int D>
__device__ void transpose_tile(const T* from, int rows, e4m3* to, int keys, float* exponent) {
  constexpr int columns = round_threads<D> / 32 * 8;  // of all warps at a time
  const int lane = threadIdx.x % 32, first_column = threadIdx.x / 32 * 8;
  const int first_key = lane / 4 * 16 + lane % 4 * 2;
  float of_key[D / columns * 4][8];
#pragma unroll
  for (int c = 0; c < D / columns; c++)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int key = first_key + i / 2 * 8 + i % 2;
      load_eight(of_key[4 * c + i], from + key * D + first_column + c * columns, key < rows);
    }
  const float of_tile = scale_of_elements<round_threads<D>>(of_key), inverse = 1 / of_tile;
  if (threadIdx.x == 0) *exponent = float(ilogbf(of_tile));
#pragma unroll
  for (int c = 0; c < D / columns; c++)
#pragma unroll
    for (int e = 0; e < 8; e++) {
      const auto at = [&](int i) { return of_key[4 * c + i][e] * inverse; };
      e4m3* const row = to + size_t(first_column + c * columns + e) * keys;
      *reinterpret_cast<uint32_t*>(row + 4 * lane) = pack4<e4m3>(at(0), at(1), at(2), at(3));
    }
}

// The tiles of Q, then those of K, then those of V. A block takes every gridDim.x-th.
template <class T, int D, bool rotated>
__global__ void __launch_bounds__(round_threads<D>, round_blocks<D>)
    round_tiles(const T* q, const T* k, const T* v, Problem p, EightBitTiles to) {
  Incoming<T, D>& smem = *dynamic_shared<Incoming<T, D>, tile_alignment>();
  const int of_q = p.batch * p.heads * to.q_tiles, of_k = p.batch * p.kv_heads * to.k_tiles, all = of_q + 2 * of_k;
  struct Source {
    const T* tensor;
    int tile, head, row, rows;  // of the tensor, and of what follows
  };
  const auto source = [&](int tile) {
    const bool is_q = tile < of_q, is_v = tile >= of_q + of_k;
    tile -= is_q ? 0 : is_v ? of_q + of_k : of_q;
    const int tiles = is_q ? to.q_tiles : to.k_tiles, row = tile % tiles * fp8_tile;
    return Source{is_q ? q : is_v ? v : k, tile, tile / tiles, row, (is_q ? p.seq_q : p.seq_k) - row};
  };
  // One thread
  const auto start = [&](int tile, int place) {
    const Source from = source(tile);
    const int seq = from.row + from.rows, bytes = min(from.rows, fp8_tile) * D * int(sizeof(T));
    mbarrier_arrive_expect_tx(&smem.full[place], bytes);
    bulk_load(smem.rows[place], from.tensor + (size_t(from.head) * seq + from.row) * D, bytes, &smem.full[place]);
  };
  if (threadIdx.x == 0) {
    if (blockIdx.x == 0) *to.taken = 0;
    for (Mbarrier& full : smem.full) mbarrier_init(&full, 1);
    fence_mbarrier_init();
    start(blockIdx.x, 0);
  }
  __syncthreads();  // the mbarriers are there
  Ring<2> ring;
#pragma unroll 1
  for (int tile = blockIdx.x; tile < all; tile += gridDim.x, ring.advance()) {
    // The other place has been read: block_max() lies between
    const int next = tile + int(gridDim.x);
    if (threadIdx.x == 0 && next < all) start(next, ring.place ^ 1);
    mbarrier_wait(&smem.full[ring.place], ring.parity);
    const T* const rows = smem.rows[ring.place];
    const Source from = source(tile);
    if (tile >= of_q + of_k) {
      transpose_tile<T, D>(rows, from.rows, to.v + size_t(from.head) * D * to.keys + from.row, to.keys,
                           to.v_exponents + from.tile);
    } else {
      const bool is_q = tile < of_q;
      const size_t begin = (size_t(from.head) * (from.row + from.rows) + from.row) * D;
      round_tile<T, D, rotated>(rows, from.rows, (is_q ? to.q : to.k) + begin,
                                (is_q ? to.q_scales : to.k_scales) + from.tile);
    }
  }
}

template <class T, int D, bool rotated>
void quantize_tiles(const Problem& p, const attention::ForwardTensors<T>& from, const EightBitTiles& to,
                    cudaStream_t stream) {
  const int tiles = p.batch * p.heads * to.q_tiles + 2 * p.batch * p.kv_heads * to.k_tiles;
  const unsigned blocks = std::min(tiles, multiprocessors() * round_blocks<D>);
  launch(round_tiles<T, D, rotated>, {blocks, round_threads<D>, sizeof(Incoming<T, D>), stream}, from.q, from.k, from.v,
         p, to);
}

}  // namespace fp8
