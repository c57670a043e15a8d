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
  static constexpr size_t shared_bytes = (2 * Bc * D + 4 * Br * D + 2 * Bc * 64) * 2 + 4 * Br * sizeof(float);
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
#pragma unroll
  for (int i = 0; i < rows; i += rows_per_copy)
    cp_async_16_or_zero(tile + position<rows>(row, chunk) + i * 64, from + (row + i) * D + chunk * 8,
                        row + i < rows_left);
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

// A fragments to a tile of 64 columns.
template <class T, int chunk>
__device__ void store_fragments(T* rows, const uint32_t (&a)[2][chunk / 16][4], int column_chunk) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int b = 0; b < 2; b++)
    for (int step = 0; step < chunk / 16; step++)
      for (int r = 0; r < 4; r++)
        *reinterpret_cast<uint32_t*>(rows + position<16>(g, column_chunk + 2 * step + r / 2) + (16 * b + 8 * (r % 2)) * 64 + 2 * t) = a[b][step][r];
}

// D / 8 lanes per query row, 8 elements each.
template <class T, class S>
__global__ void prepare(Problem p, const T* o, const float* lse, const T* d_o, float* stats, float* dq_sum) {
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
  for (int half = 0; half < 2; half++)
    reinterpret_cast<float4*>(dq_sum)[size_t(thread) * 2 + half] = make_float4(0, 0, 0, 0);
}

template <class T, class S>
__global__ void __launch_bounds__(S::threads, S::blocks)
    gradients(Problem p, const T* q, const T* k, const T* v, const T* d_o, const float* stats, float* dq_sum, T* dk, T* dv) {
  constexpr int D = S::D, Bc = S::Bc, Br = S::Br, chunk = S::chunk;
  T* k_smem = dynamic_shared<T>();   // [Bc][D]
  T* v_smem = k_smem + Bc * D;       // [Bc][D]
  T* q_smem = v_smem + Bc * D;       // [2 stages][Q and dO][Br][D]
  T* ds_smem = q_smem + 4 * Br * D;  // [2][Bc][64]
  float* stats_smem = reinterpret_cast<float*>(ds_smem + 2 * Bc * 64);  // [2 stages][2][Br]

  const int kv_tiles = tiles(p.seq_k, Bc), q_tiles = tiles(p.seq_q, Br);
  const int kv_head = blockIdx.x / kv_tiles, j0 = blockIdx.x % kv_tiles * Bc;
  const int group = p.heads / p.kv_heads;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int key_warp = warp % (Bc / 32);
  const bool has_p = !S::paired || warp < Bc / 32, has_ds = !S::paired || !has_p;
  const size_t kv_row = size_t(kv_head) * p.seq_k + j0;
  const float scale_log2 = p.scale * 1.44269504f;

  const auto copy_stage = [&](int tile) {
    const int i0 = tile % q_tiles * Br;
    const size_t row = size_t(kv_head * group + tile / q_tiles) * p.seq_q + i0;
    copy_tile<D, Br, S::threads>(q_smem + tile % 2 * 2 * Br * D, q + row * D, p.seq_q - i0);
    copy_tile<D, Br, S::threads>(q_smem + (tile % 2 * 2 + 1) * Br * D, d_o + row * D, p.seq_q - i0);
    if (threadIdx.x < 2 * Br / 4)
      cp_async_16(stats_smem + tile % 2 * 2 * Br + threadIdx.x * 4,
                  stats + (size_t(kv_head) * group * q_tiles + tile) * 2 * Br + threadIdx.x * 4);
  };
  const auto add_dq = [&](int tile) {
    constexpr int across = D / 32;
    const T* ds = ds_smem + tile % 2 * Bc * 64;
    const int wq = warp / across, wd = warp % across;
    float dq_reg[2][4][4] = {};
#pragma unroll
    for (int step = 0; step < Bc / 16; step++) {
      uint32_t x[2][4];
      for (int b = 0; b < 2; b++)
        ldmatrix_x4_trans(x[b], ds + right_of<Bc>(right_then_down(), 2 * wq + b) + step * 16 * 64);
#pragma unroll
      for (int n = 0; n < 2; n++) {
        uint32_t y[4];
        ldmatrix_x4_trans(y, k_smem + right_of<Bc>(down_then_right(), 2 * wd + n) + step * 16 * 64);
        for (int b = 0; b < 2; b++) {
          mma_m16n8k16<T>(dq_reg[b][2 * n], x[b], y);
          mma_m16n8k16<T>(dq_reg[b][2 * n + 1], x[b], y + 2);
        }
      }
    }
    float* to = dq_sum + ((size_t(kv_head) * group * q_tiles + tile) * S::warps + warp) * 1024 + lane * 4;
#pragma unroll
    for (int b = 0; b < 2; b++)
      for (int n = 0; n < 4; n++) atomic_add_4(to + (b * 4 + n) * 128, dq_reg[b][n]);
  };

  copy_tile<D, Bc, S::threads>(k_smem, k + kv_row * D, p.seq_k - j0);
  copy_tile<D, Bc, S::threads>(v_smem, v + kv_row * D, p.seq_k - j0);
  copy_stage(0);
  cp_async_commit();

  float sum[S::paired ? 1 : 2][2][D / 8][4] = {};
  float(&dv_reg)[2][D / 8][4] = sum[0];
  float(&dk_reg)[2][D / 8][4] = sum[S::paired ? 0 : 1];

  const auto p_of = [&](float(&x)[2][chunk / 8][4], const float* lse, int i0) {
    const bool masked = j0 + Bc > p.visible_keys(i0);
#pragma unroll
    for (int n = 0; n < chunk / 8; n++) {
      const float2 l = *reinterpret_cast<const float2*>(lse + 8 * n + 2 * t);
      for (int b = 0; b < 2; b++)
        for (int r = 0; r < 4; r++) x[b][n][r] = fmaf(x[b][n][r], scale_log2, r % 2 ? -l.y : -l.x);
    }
    if (masked) {
#pragma unroll
      for (int n = 0; n < chunk / 8; n++)
        for (int c = 0; c < 2; c++) {
          const int visible = p.visible_keys(i0 + 8 * n + 2 * t + c) - j0 - key_warp * 32 - g;
          for (int b = 0; b < 2; b++)
            for (int h = 0; h < 2; h++)
              if (16 * b + 8 * h >= visible) x[b][n][2 * h + c] = -INFINITY;
        }
    }
#pragma unroll
    for (int b = 0; b < 2; b++)
      for (int n = 0; n < chunk / 8; n++)
        for (int r = 0; r < 4; r++) x[b][n][r] = exp2_approx(x[b][n][r]);
  };

  const int tile_count = group * q_tiles;
#pragma unroll 1
  for (int tile = 0; tile < tile_count; tile++) {
    cp_async_wait<0>();
    __syncthreads();
    if (tile + 1 < tile_count) copy_stage(tile + 1);
    cp_async_commit();
    const T* q_tile = q_smem + tile % 2 * 2 * Br * D;
    const T* do_tile = q_tile + Br * D;
    const float* lse = stats_smem + tile % 2 * 2 * Br;
    const float* row_sum = lse + Br;
    T* ds = ds_smem + tile % 2 * Bc * 64 + key_warp * 32 * 64;
    const int i0 = tile % q_tiles * Br;

    if (tile > 0) add_dq(tile - 1);
    if constexpr (S::paired) {
      if (has_p) {
        float x[2][chunk / 8][4];
        multiply_by_transpose<S>(x, k_smem + key_warp * 32 * 64, q_tile);
        p_of(x, lse, i0);
        uint32_t p_reg[2][chunk / 16][4];
        pack<T, chunk>(p_reg, x);
        store_fragments<T, chunk>(ds, p_reg, 0);
        named_barrier_arrive(1 + key_warp, 64);
        add_product<S>(dv_reg, p_reg, do_tile);
      } else {
        float x[2][chunk / 8][4];
        multiply_by_transpose<S>(x, v_smem + key_warp * 32 * 64, do_tile);
        named_barrier_sync(1 + key_warp, 64);
        uint32_t ds_reg[2][chunk / 16][4];
#pragma unroll
        for (int step = 0; step < chunk / 16; step++)
          for (int b = 0; b < 2; b++) {
            uint32_t p_reg[4];
            ldmatrix_x4(p_reg, ds + right_of<Bc>(down_then_right(), step) + b * 16 * 64);
            for (int r = 0; r < 4; r++) {
              const float2 pp = unpack2<T>(p_reg[r]);
              const float2 d = *reinterpret_cast<const float2*>(row_sum + 16 * step + r / 2 * 8 + 2 * t);
              const float* dp = x[b][2 * step + r / 2] + r % 2 * 2;
              ds_reg[b][step][r] = pack2<T>(pp.x * (dp[0] - d.x), pp.y * (dp[1] - d.y));
            }
          }
        __syncwarp();
        store_fragments<T, chunk>(ds, ds_reg, 0);
        add_product<S>(dk_reg, ds_reg, q_tile);
      }
    } else {
#pragma unroll
      for (int c = 0; c < Br / chunk; c++) {
        float x[2][chunk / 8][4], dp[2][chunk / 8][4];
        multiply_by_transpose<S>(x, k_smem + key_warp * 32 * 64, q_tile + c * chunk * 64);
        multiply_by_transpose<S>(dp, v_smem + key_warp * 32 * 64, do_tile + c * chunk * 64);
        p_of(x, lse + c * chunk, i0 + c * chunk);
        uint32_t a[2][chunk / 16][4];
        pack<T, chunk>(a, x);
        add_product<S>(dv_reg, a, do_tile + c * chunk * 64);
#pragma unroll
        for (int n = 0; n < chunk / 8; n++) {
          const float2 d = *reinterpret_cast<const float2*>(row_sum + c * chunk + 8 * n + 2 * t);
          for (int b = 0; b < 2; b++)
            for (int r = 0; r < 4; r++) x[b][n][r] *= dp[b][n][r] - (r % 2 ? d.y : d.x);
        }
        pack<T, chunk>(a, x);
        store_fragments<T, chunk>(ds, a, c * chunk / 8);
        add_product<S>(dk_reg, a, q_tile + c * chunk * 64);
      }
    }
  }
  __syncthreads();
  add_dq(tile_count - 1);
  __syncthreads();

  const auto store_rows = [&](T* out, T* smem, const float(&x)[2][D / 8][4], float scale) {
    T* rows = smem + key_warp * 32 * 64;
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
      if (j0 + key_warp * 32 + row < p.seq_k)
        store_pack8(out + (kv_row + key_warp * 32 + row) * D + c * 8, load_pack8(rows + position<Bc>(row, c)));
    }
  };
  if (has_p) store_rows(dv, v_smem, dv_reg, 1);
  if (has_ds) store_rows(dk, k_smem, dk_reg, p.scale);
}

template <class T, class S>
__global__ void convert(Problem p, const float* dq_sum, T* dq) {
  constexpr int D = S::D, Br = S::Br, across = D / 32;
  const unsigned thread = blockIdx.x * S::threads + threadIdx.x;
  const int g = thread % 8, n = thread / 8 % 4, b = thread / 32 % 2, warp = thread / 64 % S::warps;
  const unsigned tile = thread / 64 / S::warps, q_tiles = tiles(p.seq_q, Br);
  const unsigned head = tile / q_tiles;
  const int i = tile % q_tiles * Br + warp / across * 32 + b * 16 + g;
  Pack8<T> low, high;
  for (int t = 0; t < 4; t++) {
    const float4 c = reinterpret_cast<const float4*>(dq_sum)[size_t(thread) * 4 + t];
    low.x[2 * t] = from_float<T>(c.x * p.scale);
    low.x[2 * t + 1] = from_float<T>(c.y * p.scale);
    high.x[2 * t] = from_float<T>(c.z * p.scale);
    high.x[2 * t + 1] = from_float<T>(c.w * p.scale);
  }
  T* to = dq + (size_t(head) * p.seq_q + i) * D + warp % across * 32 + n * 8;
  if (i < p.seq_q) store_pack8(to, low);
  if (i + 8 < p.seq_q) store_pack8(to + 8 * D, high);
}

template <class T, class S>
void launch_backward(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  const T *q = static_cast<const T*>(args.q), *k = static_cast<const T*>(args.k), *v = static_cast<const T*>(args.v);
  const T *o = static_cast<const T*>(args.o), *d_o = static_cast<const T*>(args.d_o);
  const unsigned q_tiles = unsigned(p.batch) * p.heads * tiles(p.seq_q, S::Br);
  const unsigned blocks = unsigned(p.batch) * p.kv_heads * tiles(p.seq_k, S::Bc);
  float* dq_sum = static_cast<float*>(args.workspace);
  float* stats = dq_sum + size_t(q_tiles) * S::Br * S::D;
  launch(prepare<T, S>, {q_tiles * (S::Br * S::D / 8 / S::threads), S::threads, 0, stream}, p, o, args.lse, d_o, stats, dq_sum);
  launch(gradients<T, S>, {blocks, S::threads, S::shared_bytes, stream}, p, q, k, v, d_o, stats, dq_sum,
         static_cast<T*>(args.dk), static_cast<T*>(args.dv));
  launch(convert<T, S>, {q_tiles * (S::Br * S::D / 16 / S::threads), S::threads, 0, stream}, p, dq_sum, static_cast<T*>(args.dq));
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
  return size_t(p.batch) * p.heads * tiles(p.seq_q, 64) * 64 * (p.head_dim + 2) * sizeof(float);
}

}  // namespace

extern const attention::Rung atomic;
constinit const attention::Rung atomic = {
    .name = "atomic",
    .idea = "one loop and five products: dQ is added up in memory",
    .backward = {attention::head_dim_not_64_or_128, workspace_bytes, run}};

}  // namespace backward
