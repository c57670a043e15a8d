// draft
#include <cmath>
#include <cstdint>

#include "attention/chapter.h"
#include "device/atomic_add.h"
#include "device/cp_async.h"
#include "device/ldmatrix.h"
#include "device/math.h"
#include "device/mma.h"
#include "device/named_barrier.h"
#include "device/numeric.h"
#include "device/semaphore.h"
#include "device/stmatrix.h"

#ifndef GH
#define GH 8
#endif
#ifndef EARLY
#define EARLY 0
#endif
namespace backward {
namespace {

using attention::BackwardArgs;
using attention::DType;
using attention::Problem;

template <int D_, int Bc_, int Br_, int blocks_>
struct Shape {
  static constexpr int D = D_;
  static constexpr int Bc = Bc_;                                   // keys of a thread block, 32 to a warp or a pair of warps
  static constexpr int Br = Br_;                                   // queries in a tile
  static constexpr int blocks = blocks_;                           // per multiprocessor
  static constexpr int warps = Br / 32 * (D / 32);                 // each makes a patch of 32 x 32 of a tile of dQ
  static constexpr int threads = 32 * warps;
  static constexpr bool paired = warps == 2 * (Bc / 32);           // two warps share 32 keys
  static constexpr int chunk = paired ? Br : 32;                   // queries at a time
  static_assert(paired || warps == Bc / 32);
  static constexpr int block_barrier = 15;
  static constexpr size_t shared_bytes = (2 * Bc * D + 4 * Br * D + 2 * Bc * 64) * 2 + 4 * Br * sizeof(float) + 2 * sizeof(int);
};

__host__ __device__ int tiles(int rows, int tile_rows) { return (rows + tile_rows - 1) / tile_rows; }

// A tile of `rows` rows in shared memory: D / 64 pages, each [rows][64], a row of 128 bytes across all 32 banks. Chunk
// c (16 bytes) of row r lies in place c ^ (r % 8), so that eight rows of one chunk (ldmatrix), and eight chunks of one
// row (cp.async), are in different banks.
template <int rows>
__device__ int position(int row, int chunk) {
  return (chunk / 8 * rows + row) * 64 + (chunk ^ row) % 8 * 8;
}

// 16 * step columns to the right of a position of chunk 0 or 1.
template <int rows>
__device__ int right_of(int position, int step) {
  return (position ^ 16 * (step % 4)) + step / 4 * rows * 64;
}

__device__ int down_then_right() { return position<16>(threadIdx.x % 16, threadIdx.x / 16 % 2); }
__device__ int right_then_down() {
  return position<16>(threadIdx.x / 16 % 2 * 8 + threadIdx.x % 8, threadIdx.x / 8 % 2);
}

template <int D, int rows, int threads, class T>
__device__ void copy_tile(T* tile, const T* from, int rows_left) {
  constexpr int rows_per_copy = threads / (D / 8);
  const int row = threadIdx.x / (D / 8), chunk = threadIdx.x % (D / 8);
  tile += position<rows>(row, chunk);
  from += row * D + chunk * 8;
#pragma unroll
  for (int i = 0; i < rows; i += rows_per_copy)
    cp_async_16_or_zero(tile + i * 64, from + i * D, row + i < rows_left);
}

// product [32, chunk] = rows [32, D] tile^T [D, chunk]
template <class S, class T>
__device__ void multiply_by_transpose(float (&product)[2][S::chunk / 8][4], const T* rows, const T* tile) {
#pragma unroll
  for (int b = 0; b < 2; b++)
    for (int n = 0; n < S::chunk / 8; n++)
      for (int r = 0; r < 4; r++) product[b][n][r] = 0;
#pragma unroll
  for (int step = 0; step < S::D / 16; step++) {
    uint32_t x[2][4];
    for (int b = 0; b < 2; b++) ldmatrix_x4(x[b], rows + right_of<S::Bc>(down_then_right(), step) + b * 16 * 64);
#pragma unroll
    for (int n = 0; n < S::chunk / 16; n++) {
      uint32_t y[4];
      ldmatrix_x4(y, tile + right_of<S::Br>(right_then_down(), step) + n * 16 * 64);
      for (int b = 0; b < 2; b++) {
        mma_m16n8k16<T>(product[b][2 * n], x[b], y);
        mma_m16n8k16<T>(product[b][2 * n + 1], x[b], y + 2);
      }
    }
  }
}

// sum [32, D] += x [32, chunk] tile [chunk, D]
template <class S, class T>
__device__ void add_product(float (&sum)[2][S::D / 8][4], const uint32_t (&x)[2][S::chunk / 16][4], const T* tile) {
#pragma unroll
  for (int step = 0; step < S::chunk / 16; step++)
#pragma unroll
    for (int n = 0; n < S::D / 16; n++) {
      uint32_t y[4];
      ldmatrix_x4_trans(y, tile + right_of<S::Br>(down_then_right(), n) + step * 16 * 64);
      for (int b = 0; b < 2; b++) {
        mma_m16n8k16<T>(sum[b][2 * n], x[b][step], y);
        mma_m16n8k16<T>(sum[b][2 * n + 1], x[b][step], y + 2);
      }
    }
}

// Two C fragments side by side are an A fragment.
template <class T, int chunk>
__device__ void pack(uint32_t (&a)[2][chunk / 16][4], const float (&x)[2][chunk / 8][4]) {
#pragma unroll
  for (int b = 0; b < 2; b++)
    for (int step = 0; step < chunk / 16; step++)
      for (int r = 0; r < 4; r++) {
        const float* pair = x[b][2 * step + r / 2] + r % 2 * 2;
        a[b][step][r] = pack2<T>(pair[0], pair[1]);
      }
}

// A fragments of [32, chunk] to a tile of 64 columns, and back.
template <class T, int chunk>
__device__ void store_fragments(T* rows, const uint32_t (&x)[2][chunk / 16][4], int step0) {
#pragma unroll
  for (int step = 0; step < chunk / 16; step++)
    for (int b = 0; b < 2; b++)
      stmatrix_x4(rows + right_of<64>(down_then_right(), step0 + step) + b * 16 * 64, x[b][step]);
}

// D / 8 lanes per query row, 8 elements each.
template <class T, class S>
__global__ void prepare(Problem p, const T* o, const float* lse, const T* d_o, float* stats, int* turns) {
  constexpr int D = S::D, Br = S::Br, lanes = D / 8;
  const unsigned thread = blockIdx.x * S::threads + threadIdx.x, row = thread / lanes, lane = thread % lanes;
  const unsigned tile = row / Br, q_tiles = tiles(p.seq_q, Br), head = tile / q_tiles, i = tile % q_tiles * Br + row % Br;
  float lse_log2 = INFINITY, sum = 0;
  if (i < unsigned(p.seq_q)) {
    const size_t q_row = size_t(head) * p.seq_q + i;
    const Pack8<T> o_pack = load_pack8(o + q_row * D + lane * 8), d_o_pack = load_pack8(d_o + q_row * D + lane * 8);
    for (int d = 0; d < 8; d++) sum += to_float(o_pack.x[d]) * to_float(d_o_pack.x[d]);
    if (lse[q_row] > -INFINITY) lse_log2 = lse[q_row] * 1.44269504f;  // log2(e)
  }
  for (int distance = lanes / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffff, sum, distance);
  if (lane == 0) {
    stats[size_t(tile) * 2 * Br + row % Br] = lse_log2;
    stats[size_t(tile) * 2 * Br + Br + row % Br] = sum;
  }
  if (thread <= gridDim.x * S::threads / (Br * D / 8) * S::warps) turns[thread] = 0;
}

template <class T>
struct Tensors {
  const T* q;          // [B, H, Nq, D]
  const T* k;          // [B, Hkv, Nk, D]
  const T* v;          // [B, Hkv, Nk, D]
  const T* d_o;        // [B, H, Nq, D]
  const float* stats;  // [B * H * tiles][2][Br]
  float* dq_sum;       // [B * H * tiles][warps][8][32][4]
  T* dq;               // [B, H, Nq, D]
  T* dk;               // [B, Hkv, Nk, D]
  T* dv;               // [B, Hkv, Nk, D]
  int* turns;          // [B * H * tiles][warps]
  int* tickets;
  int kv_heads;        // of the whole batch
  int kv_tiles;        // of a kv head
  int head_tiles;      // of queries, of a query head
  int q_tiles;         // of the query heads that read a kv head, together
  int q_rows;          // likewise
};

template <class S, class T>
__device__ void make_dq(float (&dq_reg)[2][4][4], const T* ds, const T* k) {
  constexpr int Bc = S::Bc, across = S::D / 32;
  const int warp = threadIdx.x / 32, wq = warp / across, wd = warp % across;
#pragma unroll
  for (int b = 0; b < 2; b++)
    for (int n = 0; n < 4; n++)
      for (int r = 0; r < 4; r++) dq_reg[b][n][r] = 0;
#pragma unroll
  for (int step = 0; step < Bc / 16; step++) {
    uint32_t x[2][4];
    for (int b = 0; b < 2; b++)
      ldmatrix_x4_trans(x[b], ds + right_of<Bc>(right_then_down(), 2 * wq + b) + step * 16 * 64);
#pragma unroll
    for (int n = 0; n < 2; n++) {
      uint32_t y[4];
      ldmatrix_x4_trans(y, k + right_of<Bc>(down_then_right(), 2 * wd + n) + step * 16 * 64);
      for (int b = 0; b < 2; b++) {
        mma_m16n8k16<T>(dq_reg[b][2 * n], x[b], y);
        mma_m16n8k16<T>(dq_reg[b][2 * n + 1], x[b], y + 2);
      }
    }
  }
}

template <class S, class T>
__device__ void add_dq(const Problem& p, const Tensors<T>& tensors, const float (&dq_reg)[2][4][4], int kv_head, int kv_tile, int tile) {
  constexpr int Br = S::Br, D = S::D, across = D / 32;
  const int warp = threadIdx.x / 32, wq = warp / across, wd = warp % across;
  float4* sum = reinterpret_cast<float4*>(tensors.dq_sum) + (size_t(kv_head * tensors.q_tiles + tile) * S::warps + warp) * 256 + threadIdx.x % 32;
  if (kv_tile == tensors.kv_tiles - 1) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int i0 = tile % tensors.head_tiles * Br + wq * 32 + g;
    T* out = tensors.dq + (size_t(kv_head) * tensors.q_rows + tile / tensors.head_tiles * p.seq_q + i0) * D + wd * 32 + 2 * t;
#pragma unroll
    for (int b = 0; b < 2; b++)
      for (int n = 0; n < 4; n++) {
        const float* own = dq_reg[b][n];
        const float4 c = kv_tile == 0 ? make_float4(0, 0, 0, 0) : sum[(b * 4 + n) * 32];
        if (i0 + 16 * b < p.seq_q)
          *reinterpret_cast<uint32_t*>(out + 16 * b * D + 8 * n) = pack2<T>((c.x + own[0]) * p.scale, (c.y + own[1]) * p.scale);
        if (i0 + 16 * b + 8 < p.seq_q)
          *reinterpret_cast<uint32_t*>(out + (16 * b + 8) * D + 8 * n) = pack2<T>((c.z + own[2]) * p.scale, (c.w + own[3]) * p.scale);
      }
  } else if (kv_tile == 0) {
#pragma unroll
    for (int b = 0; b < 2; b++)
      for (int n = 0; n < 4; n++) sum[(b * 4 + n) * 32] = make_float4(dq_reg[b][n][0], dq_reg[b][n][1], dq_reg[b][n][2], dq_reg[b][n][3]);
  } else {
#pragma unroll
    for (int b = 0; b < 2; b++)
      for (int n = 0; n < 4; n++) atomic_add_4(reinterpret_cast<float*>(sum + (b * 4 + n) * 32), dq_reg[b][n]);
  }
}

template <class S, class T>
__device__ void store_rows(T* out, T* rows, const float (&x)[2][S::D / 8][4], float scale, int rows_left) {
  constexpr int D = S::D, Bc = S::Bc;
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int b = 0; b < 2; b++)
    for (int h = 0; h < 2; h++)
      for (int n = 0; n < D / 8; n++)
        *reinterpret_cast<uint32_t*>(rows + position<Bc>(g, n) + (16 * b + 8 * h) * 64 + 2 * t) =
            pack2<T>(x[b][n][2 * h] * scale, x[b][n][2 * h + 1] * scale);
  __syncwarp();
#pragma unroll
  for (int i = lane; i < 32 * D / 8; i += 32) {
    const int row = i / (D / 8), c = i % (D / 8);
    if (row < rows_left) store_pack8(out + row * D + c * 8, load_pack8(rows + position<Bc>(row, c)));
  }
}

template <class T, class S, bool has_p, bool has_ds>
__device__ void work(const Problem& p, const Tensors<T>& tensors) {
  constexpr int D = S::D, Bc = S::Bc, Br = S::Br, chunk = S::chunk;
  constexpr bool paired = S::paired;
  T* k_smem = dynamic_shared<T>();   // [Bc][D]
  T* v_smem = k_smem + Bc * D;       // [Bc][D]
  T* q_smem = v_smem + Bc * D;       // [2 stages][Q and dO][Br][D]
  T* ds_smem = q_smem + 4 * Br * D;  // [2][Bc][64]
  float* stats_smem = reinterpret_cast<float*>(ds_smem + 2 * Bc * 64);  // [2 stages][2][Br]

  int* place_smem = reinterpret_cast<int*>(stats_smem + 4 * Br);  // kv head and tile
  if (threadIdx.x == 0) {
    const int ticket = atomicAdd(tensors.tickets, 1), round = ticket / (GH * tensors.kv_tiles);
    const int heads = min(GH, tensors.kv_heads - round * GH), in_round = ticket - round * GH * tensors.kv_tiles;
    place_smem[0] = round * GH + in_round % heads;
    place_smem[1] = in_round / heads;
  }
  __syncthreads();
  const int kv_head = place_smem[0], kv_tile = place_smem[1], j0 = kv_tile * Bc;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int own = warp % (Bc / 32) * 32;  // of the block's keys, the first of this warp
  const unsigned kv_row = kv_head * p.seq_k + j0;
  const float scale_log2 = p.scale * 1.44269504f;
  const unsigned first_tile = kv_head * tensors.q_tiles;

  const auto copy_stage = [&](int tile, int i0, unsigned row) {
    if (tile < tensors.q_tiles) {
      T* to = q_smem + tile % 2 * 2 * Br * D;
      copy_tile<D, Br, S::threads>(to, tensors.q + size_t(row) * D, p.seq_q - i0);
      copy_tile<D, Br, S::threads>(to + Br * D, tensors.d_o + size_t(row) * D, p.seq_q - i0);
      if (threadIdx.x < 2 * Br / 4)
        cp_async_16(stats_smem + tile % 2 * 2 * Br + threadIdx.x * 4,
                    tensors.stats + size_t(first_tile + tile) * 2 * Br + threadIdx.x * 4);
    }
    cp_async_commit();
  };
  int i0 = 0;                                    // the tile's first query, in its head
  unsigned q_row = kv_head * tensors.q_rows;    // and over all heads
  copy_tile<D, Bc, S::threads>(k_smem, tensors.k + size_t(kv_row) * D, p.seq_k - j0);
  copy_tile<D, Bc, S::threads>(v_smem, tensors.v + size_t(kv_row) * D, p.seq_k - j0);
  copy_stage(0, i0, q_row);

  float dv_reg[2][D / 8][4], dk_reg[2][D / 8][4];
#pragma unroll
  for (int b = 0; b < 2; b++)
    for (int n = 0; n < D / 8; n++)
      for (int r = 0; r < 4; r++) dv_reg[b][n][r] = dk_reg[b][n][r] = 0;

  int* turns = tensors.turns + warp;
  int seen = 0;
  const auto pass_turn = [&](int tile) {
    __syncwarp();
    if (lane == 0) {
#if !EARLY
      if (tile < tensors.q_tiles) seen = peek_turn(turns + (size_t(first_tile) + tile) * S::warps);
#endif
      fence();
      if (tile > 0) set_turn(turns + (size_t(first_tile) + tile - 1) * S::warps, kv_tile + 1);
    }
  };
  const auto take_turn = [&](int tile) {
    if (lane == 0 && seen != kv_tile) wait_for_turn(turns + (size_t(first_tile) + tile) * S::warps, kv_tile);
    __syncwarp();
  };

#pragma unroll 1
  for (int tile = 0; tile < tensors.q_tiles; tile++) {
    const bool last_of_head = i0 + Br >= p.seq_q;
    const int i0_next = last_of_head ? 0 : i0 + Br;
    q_row += last_of_head ? p.seq_q - i0 : Br;
    cp_async_wait<0>();
    named_barrier_sync(S::block_barrier, S::threads);
    if (has_ds && tile > 0) pass_turn(tile - 1);
    copy_stage(tile + 1, i0_next, q_row);
    const T* q_tile = q_smem + tile % 2 * 2 * Br * D;
    const T* do_tile = q_tile + Br * D;
    const float* lse = stats_smem + tile % 2 * 2 * Br;
    const float* row_sum = lse + Br;
    T* ds = ds_smem + tile % 2 * Bc * 64 + own * 64;
    const auto add_dq_before = [&] {
      if (tile > 0) {
        float dq_reg[2][4][4];
        make_dq<S>(dq_reg, ds_smem + (tile + 1) % 2 * Bc * 64, k_smem);
        take_turn(tile - 1);
        add_dq<S>(p, tensors, dq_reg, kv_head, kv_tile, tile - 1);
      }
    };

    if (has_ds) add_dq_before();
#pragma unroll
    for (int c = 0; c < Br; c += chunk) {
      float x[2][chunk / 8][4];
      uint32_t x_reg[2][chunk / 16][4];
      if (has_p) {
        multiply_by_transpose<S>(x, k_smem + own * 64, q_tile + c * 64);
#pragma unroll
        for (int n = 0; n < chunk / 8; n++) {
          const float2 l = *reinterpret_cast<const float2*>(lse + c + 8 * n + 2 * t);
          for (int b = 0; b < 2; b++)
            for (int r = 0; r < 4; r++) x[b][n][r] = fmaf(x[b][n][r], scale_log2, r % 2 ? -l.y : -l.x);
        }
        if (j0 + Bc > p.visible_keys(i0 + c)) {
#pragma unroll
          for (int n = 0; n < chunk / 8; n++)
            for (int e = 0; e < 2; e++) {
              const int visible = p.visible_keys(i0 + c + 8 * n + 2 * t + e) - j0 - own - g;
              for (int b = 0; b < 2; b++)
                for (int h = 0; h < 2; h++)
                  if (16 * b + 8 * h >= visible) x[b][n][2 * h + e] = -INFINITY;
            }
        }
#pragma unroll
        for (int b = 0; b < 2; b++)
          for (int n = 0; n < chunk / 8; n++)
            for (int r = 0; r < 4; r++) x[b][n][r] = exp2_approx(x[b][n][r]);
        pack<T, chunk>(x_reg, x);
        if (paired) {
          store_fragments<T, chunk>(ds, x_reg, 0);
          named_barrier_arrive(1 + own / 32, 64);
        }
#if EARLY
        if (!has_ds && tile > 0 && lane == 0) seen = peek_turn(turns + (size_t(first_tile) + tile - 1) * S::warps);
#endif
        add_product<S>(dv_reg, x_reg, do_tile + c * 64);
      }
      if (has_ds) {
        multiply_by_transpose<S>(x, v_smem + own * 64, do_tile + c * 64);
        if (paired) named_barrier_sync(1 + own / 32, 64);
#pragma unroll
        for (int step = 0; step < chunk / 16; step++) {
          if (paired)
            for (int b = 0; b < 2; b++)
              ldmatrix_x4(x_reg[b][step], ds + right_of<64>(down_then_right(), step) + b * 16 * 64);
          for (int r = 0; r < 4; r++) {
            const float2 d = *reinterpret_cast<const float2*>(row_sum + c + 16 * step + r / 2 * 8 + 2 * t);
            for (int b = 0; b < 2; b++) {
              const float2 p_pair = unpack2<T>(x_reg[b][step][r]);
              const float* dp = x[b][2 * step + r / 2] + r % 2 * 2;
              x_reg[b][step][r] = pack2<T>(p_pair.x * (dp[0] - d.x), p_pair.y * (dp[1] - d.y));
            }
          }
        }
        if (paired) __syncwarp();
        store_fragments<T, chunk>(ds, x_reg, c / 16);
        add_product<S>(dk_reg, x_reg, q_tile + c * 64);
      }
    }
    if (!has_ds && tile > 0) pass_turn(tile - 1);
    if (!has_ds) add_dq_before();
#if EARLY
    if (has_ds && lane == 0) seen = peek_turn(turns + (size_t(first_tile) + tile) * S::warps);
#endif
    i0 = i0_next;
  }
  named_barrier_sync(S::block_barrier, S::threads);
  float dq_reg[2][4][4];
#if EARLY
  if (lane == 0) seen = peek_turn(turns + (size_t(first_tile) + tensors.q_tiles - 1) * S::warps);
#endif
  pass_turn(tensors.q_tiles - 1);
  make_dq<S>(dq_reg, ds_smem + (tensors.q_tiles + 1) % 2 * Bc * 64, k_smem);
  take_turn(tensors.q_tiles - 1);
  add_dq<S>(p, tensors, dq_reg, kv_head, kv_tile, tensors.q_tiles - 1);
  pass_turn(tensors.q_tiles);
  named_barrier_sync(S::block_barrier, S::threads);
  const size_t out = size_t(kv_row + own) * D;
  if (has_p) store_rows<S>(tensors.dv + out, v_smem + own * 64, dv_reg, 1, p.seq_k - j0 - own);
  if (has_ds) store_rows<S>(tensors.dk + out, k_smem + own * 64, dk_reg, p.scale, p.seq_k - j0 - own);
}

template <class T, class S>
__global__ void __launch_bounds__(S::threads, S::blocks) gradients(Problem p, Tensors<T> tensors) {
  if constexpr (!S::paired)
    work<T, S, true, true>(p, tensors);
  else if (threadIdx.x < S::threads / 2)
    work<T, S, true, false>(p, tensors);
  else
    work<T, S, false, true>(p, tensors);
}

template <class T, class S>
void launch_backward(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  const T *q = static_cast<const T*>(args.q), *k = static_cast<const T*>(args.k), *v = static_cast<const T*>(args.v);
  const T *o = static_cast<const T*>(args.o), *d_o = static_cast<const T*>(args.d_o);
  const unsigned q_tiles = unsigned(p.batch) * p.heads * tiles(p.seq_q, S::Br);
  const unsigned blocks = unsigned(p.batch) * p.kv_heads * tiles(p.seq_k, S::Bc);
  float* dq_sum = static_cast<float*>(args.workspace);
  float* stats = dq_sum + size_t(q_tiles) * S::Br * S::D;
  int* turns = reinterpret_cast<int*>(stats + size_t(q_tiles) * 2 * S::Br);
  const int head_tiles = tiles(p.seq_q, S::Br), group = p.heads / p.kv_heads;
  const Tensors<T> tensors = {.q = q, .k = k, .v = v, .d_o = d_o, .stats = stats, .dq_sum = dq_sum, .dq = static_cast<T*>(args.dq),
     .dk = static_cast<T*>(args.dk), .dv = static_cast<T*>(args.dv), .turns = turns, .tickets = turns + size_t(q_tiles) * S::warps,
     .kv_heads = p.batch * p.kv_heads, .kv_tiles = tiles(p.seq_k, S::Bc), .head_tiles = head_tiles, .q_tiles = group * head_tiles, .q_rows = group * p.seq_q};
  launch(prepare<T, S>, {q_tiles * (S::Br * S::D / 8 / S::threads), S::threads, 0, stream}, p, o, args.lse, d_o, stats, turns);
  launch(gradients<T, S>, {blocks, S::threads, S::shared_bytes, stream}, p, tensors);
}

using Shape64 = Shape<64, 128, 64, 2>;
using Shape128 = Shape<128, 128, 64, 1>;

void run(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  if (p.dtype == DType::fp16)
    (p.head_dim == 64 ? launch_backward<__half, Shape64> : launch_backward<__half, Shape128>)(p, args, stream);
  else
    (p.head_dim == 64 ? launch_backward<__nv_bfloat16, Shape64> : launch_backward<__nv_bfloat16, Shape128>)(p, args, stream);
}

size_t workspace_bytes(const Problem& p) {
  return size_t(p.batch) * p.heads * tiles(p.seq_q, 64) * (64 * (p.head_dim + 2) * sizeof(float) + 8 * sizeof(int)) + sizeof(int);
}

}  // namespace

extern const attention::Rung final_rung;
constinit const attention::Rung final_rung = {
    .name = "final",
    .idea = "dQ is added up in order: the same bits every time",
    .backward = {attention::head_dim_not_64_or_128, workspace_bytes, run}};

}  // namespace backward
