// Chapter 04, rung 1, fused: chapter 03's three kernels become three phases of one, and S never leaves the chip.
//
// A thread block owns Br = 64, 32, 16 or 8 query rows of one head, and keeps their whole score rows [Br, Nk] in shared
// memory:
//
//   1. S = scale * Q K^T     tile after tile of Br x 64, as in chapter 03
//   2. P = exp(S - m), l     a warp per row, now in shared memory; hidden keys get P = 0
//   3. O = P V / l           64 columns of O at a time, as in chapter 03; P is in shared memory already
//
//   128 threads, tx = 0..15 across, ty = 0..7 down.   S: rows ty, ty + 8, ..   keys    tx, tx + 16, ..
//                                                     O: rows ty, ty + 8, ..   columns 4 tx .. 4 tx + 3
//
// What changed since chapter 03: three launches became three phases, with barriers between them. S and P stay in shared
// memory, and phase 3 reads P there. The division by l waits until the end: one for each element of O. A block has as
// many rows as fit, 64 for a short sequence, and a thread owns an eighth of them.
//
// Bank conflicts: none. Tiles are padded as in chapter 03, and score rows start 16 banks apart: half of a warp stores
// 16 scores of one row, and the other half 16 of the next.
//
// Expected limit: shared memory. Score rows fill it, so a multiprocessor has one block of four warps, and no other warp
// to run while they wait. The longer the sequence, the fewer rows fit, and the fewer use each piece of K and V.
#include <cmath>
#include <cstdint>
#include <string>

#include "attention/dispatch.h"
#include "device/fp32_tile.h"
#include "device/limits.h"
#include "device/math.h"
#include "device/numeric.h"
#include "device/watch.h"

namespace fusion {
namespace {

using attention::ForwardArgs;
using attention::Problem;
using namespace fp32_tile;

constexpr int tile = 64;      // keys of a tile of S, and columns of a tile of O
constexpr int depth = 32;     // of the inner dimension in shared memory at a time
constexpr int threads = 128;  // 16 x 8
constexpr int warps = threads / 32;
constexpr int cols = 4;    // of the result that a thread owns
constexpr int pad = 4;     // floats after each row in shared memory: rows start 4 banks apart, as in chapter 03
constexpr int s_pad = 16;  // the same for score rows: 16 banks apart

// Floats from one row of scores to the next: whole chunks of keys, and the padding.
__host__ __device__ constexpr int64_t row_stride(int64_t seq_k) { return (seq_k + depth - 1) / depth * depth + s_pad; }

// Bytes of shared memory for Br query rows: their scores, a chunk of Q and of K (or of V, which is smaller), and l.
constexpr int64_t shared_bytes(int Br, int64_t seq_k) {
  return (Br * (row_stride(seq_k) + 1) + (Br + tile) * (depth + pad)) * int64_t(sizeof(float));
}

template <class T, int rows>  // rows: of the result that a thread owns
__global__ void __launch_bounds__(threads) attention_forward(Problem p,
                                                             const T* q,  // [B, H, Nq, D]
                                                             const T* k,  // [B, Hkv, Nk, D]
                                                             const T* v,  // [B, Hkv, Nk, D]
                                                             T* o)        // [B, H, Nq, D]
{
  constexpr int Br = 8 * rows;
  const int64_t s_stride = row_stride(p.seq_k);
  float* s_smem = dynamic_shared<float>();        // [Br][s_stride] of which Nk are used: S, later P
  float* q_smem = s_smem + Br * s_stride;         // [Br][depth + pad]
  float* k_smem = q_smem + Br * (depth + pad);    // [tile][depth + pad]
  float* v_smem = q_smem;                         // [depth][tile + pad]: a chunk of V, in place of Q and K
  float* l_smem = k_smem + tile * (depth + pad);  // [Br]

  const int row_tiles = (p.seq_q + Br - 1) / Br;
  const int head = blockIdx.x / row_tiles, i0 = int(blockIdx.x % row_tiles) * Br;
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int64_t first_row = int64_t(head) * p.seq_q + i0;  // of Q and O
  const T* q_tile = q + first_row * p.head_dim;
  const T* k_head = k + int64_t(p.kv_head(head)) * p.seq_k * p.head_dim;
  const T* v_head = v + int64_t(p.kv_head(head)) * p.seq_k * p.head_dim;
  const Watched watched = {first_row, 0, p.seq_q - i0, p.seq_k};

  watch_step("1. S = Q K^T");
  for (int j0 = 0; j0 < p.seq_k; j0 += tile) {
    float sum[rows][cols] = {};
    for (int d0 = 0; d0 < p.head_dim; d0 += depth) {
      __syncthreads();  // everyone is done with the chunk that is overwritten now
      stage<Br, depth, pad, threads>(q_smem, q_tile + d0, p.head_dim, p.seq_q - i0, p.head_dim - d0);
      stage<tile, depth, pad, threads>(k_smem, k_head + int64_t(j0) * p.head_dim + d0, p.head_dim, p.seq_k - j0,
                                       p.head_dim - d0);
      __syncthreads();  // the chunk is complete
      for (int d = 0; d < depth; d += 4) {
        float4 k_reg[cols];
        for (int n = 0; n < cols; ++n) k_reg[n] = load_float4(k_smem + (tx + 16 * n) * (depth + pad) + d);
        for (int m = 0; m < rows; ++m) {
          const float4 q_reg = load_float4(q_smem + (ty + 8 * m) * (depth + pad) + d);
          for (int n = 0; n < cols; ++n)
            sum[m][n] += q_reg.x * k_reg[n].x + q_reg.y * k_reg[n].y + q_reg.z * k_reg[n].z + q_reg.w * k_reg[n].w;
        }
      }
    }
    for (int m = 0; m < rows; ++m)
      for (int n = 0; n < cols; ++n)
        if (const int j = j0 + tx + 16 * n; j < p.seq_k) {
          s_smem[(ty + 8 * m) * s_stride + j] = p.scale * sum[m][n];
          watch("S", watched, ty + 8 * m, j, p.scale * sum[m][n]);
        }
  }
  __syncthreads();  // phase 2 reads scores that other warps wrote

  watch_step("2. P = exp(S - m), and l");
  // After the last key, up to a whole chunk, P is 0.
  for (int r = warp; r < Br; r += warps) {
    float* s_row = s_smem + r * s_stride;
    const int visible = i0 + r < p.seq_q ? p.visible_keys(i0 + r) : 0;
    float m = -INFINITY;  // subtracted from every score, so that exp cannot overflow
    for (int j = lane; j < visible; j += 32) m = fmaxf(m, s_row[j]);
    m = warp_max(m);
    float l = 0;
    for (int j = lane; j < s_stride - s_pad; j += 32) {
      s_row[j] = j < visible ? expf(s_row[j] - m) : 0;
      l += s_row[j];
      watch("P", watched, r, j, s_row + j);
    }
    l = warp_sum(l);
    if (lane == 0) l_smem[r] = l;
    watch("m", watched, r, 0, m);
    watch("l", watched, r, 0, l);
  }

  watch_step("3. O = P V");
  // 64 columns at a time
  for (int d0 = 0; d0 < p.head_dim; d0 += tile) {
    float4 sum[rows] = {};
    for (int j0 = 0; j0 < p.seq_k; j0 += depth) {
      __syncthreads();  // everyone is done with the chunk that is overwritten now
      stage<depth, tile, pad, threads>(v_smem, v_head + int64_t(j0) * p.head_dim + d0, p.head_dim, p.seq_k - j0,
                                       p.head_dim - d0);
      __syncthreads();  // the chunk is complete, and so are P and l
      for (int j = 0; j < depth; j += 4) {
        float4 v_reg[4];
        for (int n = 0; n < 4; ++n) v_reg[n] = load_float4(v_smem + (j + n) * (tile + pad) + 4 * tx);
        for (int m = 0; m < rows; ++m) {
          const float4 p_reg = load_float4(s_smem + (ty + 8 * m) * s_stride + j0 + j);
          sum[m].x += p_reg.x * v_reg[0].x + p_reg.y * v_reg[1].x + p_reg.z * v_reg[2].x + p_reg.w * v_reg[3].x;
          sum[m].y += p_reg.x * v_reg[0].y + p_reg.y * v_reg[1].y + p_reg.z * v_reg[2].y + p_reg.w * v_reg[3].y;
          sum[m].z += p_reg.x * v_reg[0].z + p_reg.y * v_reg[1].z + p_reg.z * v_reg[2].z + p_reg.w * v_reg[3].z;
          sum[m].w += p_reg.x * v_reg[0].w + p_reg.y * v_reg[1].w + p_reg.z * v_reg[2].w + p_reg.w * v_reg[3].w;
        }
      }
    }
    for (int m = 0; m < rows; ++m) {
      const int i = ty + 8 * m, d = d0 + 4 * tx;
      if (i0 + i >= p.seq_q || d >= p.head_dim) continue;
      const float l = l_smem[i], scale = l == 0 ? 0 : 1 / l;  // l = 0: the row sees no key
      store_rounded(o + (first_row + i) * p.head_dim + d,
                    make_float4(sum[m].x * scale, sum[m].y * scale, sum[m].z * scale, sum[m].w * scale));
    }
  }
}

template <class T, int rows>
void launch_with_rows(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  constexpr int Br = 8 * rows;
  if constexpr (rows > 1)
    if (shared_bytes(Br, p.seq_k) > int64_t(largest_shared_memory()))
      return launch_with_rows<T, rows / 2>(p, args, stream);
  const auto [q, k, v, o] = attention::tensors_of<T>(args);
  const unsigned blocks = unsigned(p.batch) * p.heads * ceil_div(p.seq_q, Br);
  launch(attention_forward<T, rows>, {blocks, threads, size_t(shared_bytes(Br, p.seq_k)), stream}, p, q, k, v, o);
}

void forward(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype(p, [&]<class T>() { launch_with_rows<T, 8>(p, args, stream); });
}

std::string unsupported(const Problem& p) {
  if (std::string why = attention::head_dim_not_8_to_256(p); !why.empty()) return why;
  const int64_t limit = int64_t(largest_shared_memory());
  if (shared_bytes(8, p.seq_k) <= limit) return "";
  const int64_t longest = (limit - shared_bytes(8, 0)) / int64_t(8 * sizeof(float)) / depth * depth;
  return "seq-k is " + std::to_string(p.seq_k) + ": eight rows of scores have to fit into shared memory, and the " +
         std::to_string(limit) + " bytes that a thread block of this device can have hold up to " +
         std::to_string(longest) + " keys";
}

}  // namespace

extern const attention::Rung fused;
constinit const attention::Rung fused = {
    .name = "fused",
    .idea = "chapter 03's tiles, with up to 64 whole score rows in shared memory: one kernel with three phases",
    .forward = {unsupported, attention::no_workspace, forward}};

}  // namespace fusion
