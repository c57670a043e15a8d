// Chapter 05, rung 2, tiles: the memory that is free now holds tiles of K and V again, for 64 query rows.
//
// A thread block owns Br = 64 query rows of one head (32 where the head dim is above 128): Q in shared memory, O, m and
// l in registers. For each tile of Bc = 64 keys:
//
//   1. S = scale * Q K^T        a Br x 64 tile, in registers, as in chapter 03
//   2. m' = max(m, rowmax S)    P = exp(S - m')    l = l exp(m - m') + rowsum P    O = O exp(m - m')
//   3. O = O + P V              P goes through shared memory, from the threads that made it to those that need it
//
// and at the end O / l and LSE = m + log(l).
//
// What changed since 1_online: which thread computes which elements, in every step. K and V come through shared memory
// in the tiles of 04/1_fused, and each serves 64 rows and not eight. A thread owns 8 x 4 scores in registers, so only P
// needs shared memory. 16 threads share a row, and each has a copy of its m. O stays in registers from tile to tile,
// and a thread corrects what it owns. watch() stands where the numbers are now.
//
//   128 threads, tx = 0..15 across, ty = 0..7 down: the owner of rows ty, ty + 8, .. makes, of these rows,
//   the scores of keys tx, tx + 16, ..    and the columns 4 tx .. 4 tx + 3 of O (and 64 further on, and ..)
//
// No bank conflicts: rows are padded as in chapter 03. Expected limit: multiply-adds in fp32, which tensor cores do
// faster.
#include <cmath>
#include <cstdint>

#include "attention/dispatch.h"
#include "device/fp32_tile.h"
#include "device/math.h"
#include "device/numeric.h"
#include "device/watch.h"

namespace online_softmax {
namespace {

using attention::ForwardArgs;
using attention::Problem;
using namespace fp32_tile;

constexpr int threads = 128;   // 16 x 8
constexpr int Bc = 64;         // keys in a tile
constexpr int cols = Bc / 16;  // keys of a tile that a thread owns
constexpr int depth = 32;      // of the head dim of a K tile in shared memory at a time
constexpr int pad = 4;         // floats after each row in shared memory: rows start 4 banks apart, as in chapter 03
constexpr int p_pad = 16;      // the same for P, where a warp stores 16 floats to each of two rows: 16 banks apart

// Query rows per thread block. Registers and the 64 KiB of shared memory of a Turing GPU set it: at head dim 256, O and
// Q of 64 rows would take 128 registers a thread and 65 KiB.
constexpr int rows_per_block(int head_dim) { return head_dim <= 128 ? 64 : 32; }

// Shared memory in floats: Q [Br][D + pad], P [Br][Bc + p_pad], a chunk of K [Bc][depth + pad] or of V. HeadDim is
// the head dim rounded up to 64, 128 or 256: the elements that are missing are zeros.
template <int HeadDim>
struct Layout {
  static constexpr int Br = rows_per_block(HeadDim);
  static constexpr int v_keys = Bc * depth / HeadDim;  // keys in a chunk of V: as many elements as a chunk of K
  static constexpr int q = 0;
  static constexpr int p = q + Br * (HeadDim + pad);
  static constexpr int kv = p + Br * (Bc + p_pad);
  static constexpr int size = kv + Bc * (depth + pad);
  static_assert(v_keys * (HeadDim + pad) <= Bc * (depth + pad));
};

// Four multiply-adds, one after the other. (sum += a.x * b.x + .. would be a multiplication, three multiply-adds and
// an addition.)
__device__ void add_products(float& sum, float4 a, float4 b) {
  sum += a.x * b.x;
  sum += a.y * b.y;
  sum += a.z * b.z;
  sum += a.w * b.w;
}

// Over the 16 threads that own the same rows: half a warp.
// exercise reduction: the maximum, and the sum, of what these 16 threads give; all of them get it
__device__ float row_max(float x) {
  for (int distance = 8; distance > 0; distance /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, distance));
  return x;
}
__device__ float row_sum(float x) {
  for (int distance = 8; distance > 0; distance /= 2) x += __shfl_xor_sync(0xffffffff, x, distance);
  return x;
}
// end reduction | __device__ float row_max(float x) { return x; } __device__ float row_sum(float x) { return x; }

template <class T, int HeadDim>
__global__ void __launch_bounds__(threads) attention_forward(Problem p,
                                                             const T* q,  // [B, H, Nq, D]
                                                             const T* k,  // [B, Hkv, Nk, D]
                                                             const T* v,  // [B, Hkv, Nk, D]
                                                             T* o,        // [B, H, Nq, D]
                                                             float* lse)  // [B, H, Nq]
{
  using Smem = Layout<HeadDim>;
  constexpr int Br = Smem::Br, v_keys = Smem::v_keys;
  constexpr int rows = Br / 8;            // that a thread owns
  constexpr int o_blocks = HeadDim / 64;  // of four columns of O that a thread owns
  float* smem = dynamic_shared<float>();
  float* q_smem = smem + Smem::q;    // [Br][HeadDim + pad]
  float* p_smem = smem + Smem::p;    // [Br][Bc + p_pad]
  float* kv_smem = smem + Smem::kv;  // [Bc][depth + pad] or [v_keys][HeadDim + pad]

  const int row_tiles = (p.seq_q + Br - 1) / Br;
  const int head = blockIdx.x / row_tiles, i0 = int(blockIdx.x % row_tiles) * Br;
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const int64_t first_row = int64_t(head) * p.seq_q + i0;  // of Q, O and LSE
  const T* k_head = k + int64_t(p.kv_head(head)) * p.seq_k * p.head_dim;
  const T* v_head = v + int64_t(p.kv_head(head)) * p.seq_k * p.head_dim;

  float4 o_reg[rows][o_blocks] = {};
  float m[rows], l[rows] = {};  // l only over this thread's own keys, until the end
  for (int r = 0; r < rows; ++r) m[r] = -INFINITY;
  const Watched state = {first_row, 0, p.seq_q - i0, p.head_dim};

  stage<Br, HeadDim, pad, threads>(q_smem, q + first_row * p.head_dim, p.head_dim, p.seq_q - i0, p.head_dim);

  for (int j0 = 0; j0 < p.seq_k; j0 += Bc) {
    const Watched scores = {first_row, j0, p.seq_q - i0, p.seq_k - j0};

    watch_step("1. S = Q K^T");
    float s[rows][cols] = {};
    for (int d0 = 0; d0 < HeadDim; d0 += depth) {
      __syncthreads();  // everyone is done with the chunk of K or V that is overwritten now, and with P
      stage<Bc, depth, pad, threads>(kv_smem, k_head + int64_t(j0) * p.head_dim + d0, p.head_dim, p.seq_k - j0,
                                     p.head_dim - d0);
      __syncthreads();  // the chunk of K is complete, and so is Q
      for (int d = 0; d < depth; d += 4) {
        float4 k_reg[cols];
        for (int n = 0; n < cols; ++n) k_reg[n] = load_float4(kv_smem + (tx + 16 * n) * (depth + pad) + d);
        for (int r = 0; r < rows; ++r) {
          const float4 q_reg = load_float4(q_smem + (ty + 8 * r) * (HeadDim + pad) + d0 + d);
          for (int n = 0; n < cols; ++n) add_products(s[r][n], q_reg, k_reg[n]);
        }
      }
    }

    watch_step("2. m, l and P; O *= correction");
    for (int r = 0; r < rows; ++r) {
      const int visible = p.visible_keys(i0 + ty + 8 * r);
      float m_tile = -INFINITY;
      for (int n = 0; n < cols; ++n) {
        s[r][n] = j0 + tx + 16 * n < visible ? p.scale * s[r][n] : -INFINITY;
        m_tile = fmaxf(m_tile, s[r][n]);
      }
      const float m_new = fmaxf(m[r], row_max(m_tile));
      const float m_safe = m_new == -INFINITY ? 0 : m_new;  // no key seen yet: keeps -inf - -inf = NaN out of exp
      const float correction = expf(m[r] - m_safe);
      m[r] = m_new;
      l[r] *= correction;
      for (int n = 0; n < cols; ++n) {
        const float p_new = expf(s[r][n] - m_safe);
        l[r] += p_new;
        p_smem[(ty + 8 * r) * (Bc + p_pad) + tx + 16 * n] = p_new;
        watch("S", scores, ty + 8 * r, tx + 16 * n, s[r][n]);
        watch("P", scores, ty + 8 * r, tx + 16 * n, p_new);
      }
      watch("m", state, ty + 8 * r, 0, m[r]);
      watch("correction", state, ty + 8 * r, 0, correction);
      watch_share("l", state, ty + 8 * r, 0, l[r]);
      for (int b = 0; b < o_blocks; ++b) {
        o_reg[r][b].x *= correction;
        o_reg[r][b].y *= correction;
        o_reg[r][b].z *= correction;
        o_reg[r][b].w *= correction;
      }
    }

    watch_step("3. O += P V");
    for (int c0 = 0; c0 < Bc; c0 += v_keys) {
      __syncthreads();  // everyone is done with the chunk of K or V that is overwritten now
      stage<v_keys, HeadDim, pad, threads>(kv_smem, v_head + int64_t(j0 + c0) * p.head_dim, p.head_dim,
                                           p.seq_k - j0 - c0, p.head_dim);
      __syncthreads();  // the chunk of V is complete, and so is P
      for (int c = 0; c < v_keys; c += 4) {
        float4 p_reg[rows];
        for (int r = 0; r < rows; ++r) p_reg[r] = load_float4(p_smem + (ty + 8 * r) * (Bc + p_pad) + c0 + c);
        for (int b = 0; b < o_blocks; ++b) {
          float4 v_reg[4];
          for (int n = 0; n < 4; ++n) v_reg[n] = load_float4(kv_smem + (c + n) * (HeadDim + pad) + 64 * b + 4 * tx);
          for (int r = 0; r < rows; ++r) {
            const float4 x = p_reg[r];
            add_products(o_reg[r][b].x, x, {v_reg[0].x, v_reg[1].x, v_reg[2].x, v_reg[3].x});
            add_products(o_reg[r][b].y, x, {v_reg[0].y, v_reg[1].y, v_reg[2].y, v_reg[3].y});
            add_products(o_reg[r][b].z, x, {v_reg[0].z, v_reg[1].z, v_reg[2].z, v_reg[3].z});
            add_products(o_reg[r][b].w, x, {v_reg[0].w, v_reg[1].w, v_reg[2].w, v_reg[3].w});
          }
        }
      }
    }
    for (int r = 0; r < rows; ++r)
      for (int b = 0; b < o_blocks; ++b) watch("O", state, ty + 8 * r, 64 * b + 4 * tx, o_reg[r][b]);
  }

  watch_step("O / l and LSE");
#pragma unroll  // a loop would index o_reg, and then the compiler may keep it in slow local memory
  for (int r = 0; r < rows; ++r) {
    const float l_row = row_sum(l[r]);
    const int i = ty + 8 * r;
    if (i0 + i >= p.seq_q) continue;
    const float scale = l_row == 0 ? 0 : 1 / l_row;  // l = 0: the row sees no key
    if (tx == 0) lse[first_row + i] = l_row == 0 ? -INFINITY : m[r] + logf(l_row);
    for (int b = 0; b < o_blocks; ++b) {
      const int d = 64 * b + 4 * tx;
      const float4 x = o_reg[r][b];
      if (d < p.head_dim)
        store_rounded(o + (first_row + i) * p.head_dim + d,
                      make_float4(x.x * scale, x.y * scale, x.z * scale, x.w * scale));
    }
  }
}

void forward(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128, 256>(p, [&]<class T, int HeadDim>() {
    using Smem = Layout<HeadDim>;
    const auto [q, k, v, o] = attention::tensors_of<T>(args);
    const unsigned blocks = unsigned(p.batch) * p.heads * ceil_div(p.seq_q, Smem::Br);
    launch(attention_forward<T, HeadDim>, {blocks, threads, Smem::size * sizeof(float), stream}, p, q, k, v, o,
           args.lse);
  });
}

}  // namespace

extern const attention::Rung tiles;
constinit const attention::Rung tiles = {
    .name = "tiles",
    .idea = "64 query rows and tiles of 64 keys in the memory that is free now; O, m and l in registers",
    .forward = {attention::head_dim_not_8_to_256, attention::no_workspace, forward, true}};

}  // namespace online_softmax
