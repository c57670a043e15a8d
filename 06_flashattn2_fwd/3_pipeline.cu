// Chapter 06, rung 3, pipeline: the next tile is copied while this one is multiplied.
//
// A thread block of four warps owns Br = 64 query rows of one head. Each warp carries 16 of them from Q to O, alone.
// For each tile of Bc = 64 keys:
//
//   0. the copy of the next K and V to the other half of shared memory starts
//   1. S = scale log2(e) Q K^T                            16 x 64 a warp, in registers
//   2. m' = max(m, rowmax S)   P = 2^(S - m')   l = l 2^(m - m') + rowsum P   O = O 2^(m - m')
//   3. O = O + P V                                        P straight from the registers of S
//
// and at the end O / l and LSE = ln(2) (m + log2(l)).
//
// What changed since 2_swizzle: cp.async copies from global to shared memory, past the registers, while the thread goes
// on. K and V have two buffers, and so a tile takes one barrier and not two. (The swizzle is the same, but from here on
// it comes from device/swizzle.h.)
//
// Expected limit: shared memory. Each warp reads all of K and V for just 16 rows.
#include <cmath>
#include <cstdint>

#include "attention/dispatch.h"
#include "attention/padded.h"
#include "device/cp_async.h"
#include "device/ldmatrix.h"
#include "device/math.h"
#include "device/mma.h"
#include "device/numeric.h"
#include "device/swizzle.h"
#include "device/watch.h"

namespace flashattn2_fwd {
namespace {

using attention::ForwardArgs;
using attention::Problem;
using swizzled_tile::position;
using swizzled_tile::right_of;  // the XOR swizzle, 16 columns a step

constexpr int warps = 4, threads = 32 * warps;
constexpr int Br = 16 * warps;  // query rows of a thread block, 16 to a warp: the height of an mma
constexpr int Bc = 64;          // keys in a tile

// Starts copying a tile to shared memory; rows that do not exist become zeros.
template <int D, int rows, class T>
__device__ void copy_tile(T* tile,        // [rows][D] in shared memory, swizzled
                          const T* from,  // [rows_left, D]
                          int rows_left) {
  constexpr int rows_per_copy = threads / (D / 8);  // that the thread block copies at a time
  const int row = threadIdx.x / (D / 8), chunk = threadIdx.x % (D / 8);
#pragma unroll
  for (int i = 0; i < rows; i += rows_per_copy)
    cp_async_16_or_zero(tile + position<rows>(row, chunk) + i * 64, from + (row + i) * D + chunk * 8,
                        row + i < rows_left);
}

template <class T, int D>
__global__ void __launch_bounds__(threads) forward(Problem p,
                                                   const T* q,  // [B, H, Nq, D]
                                                   const T* k,  // [B, Hkv, Nk, D]
                                                   const T* v,  // [B, Hkv, Nk, D]
                                                   T* o,        // [B, H, Nq, D]
                                                   float* lse)  // [B, H, Nq]
{
  T* q_smem = dynamic_shared<T>();  // [Br][D]
  T* kv_smem = q_smem + Br * D;     // [2 buffers][K and V][Bc][D]

  const int row_tiles = (p.seq_q + Br - 1) / Br;
  const int head = blockIdx.x / row_tiles, i0 = blockIdx.x % row_tiles * Br;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const size_t q_head = size_t(head) * p.seq_q * D, kv_head = size_t(p.kv_head(head)) * p.seq_k * D;
  const float scale_log2 = p.scale * log2_e;

  copy_tile<D, Br>(q_smem, q + q_head + size_t(i0) * D, p.seq_q - i0);
  cp_async_commit();
  copy_tile<D, Bc>(kv_smem, k + kv_head, p.seq_k);
  copy_tile<D, Bc>(kv_smem + Bc * D, v + kv_head, p.seq_k);
  cp_async_commit();
  cp_async_wait<1>();
  __syncthreads();  // Q is in shared memory: all threads' copies have arrived

  // The row of a 16 x 16 block whose address this lane gives to ldmatrix (drawn in device/swizzle.h).
  const int qv_lane = position<16>(lane % 16, lane / 16);                   // Q and V: down, then right
  const int k_lane = position<16>(lane / 16 * 8 + lane % 8, lane / 8 % 2);  // K: right, then down

  uint32_t q_reg[D / 16][4];  // A fragments of the warp's 16 rows
#pragma unroll
  for (int step = 0; step < D / 16; step++)
    ldmatrix_x4(q_reg[step], q_smem + right_of<Br>(qv_lane, step) + warp * 16 * 64);

  float o_reg[D / 8][4] = {};
  float m[2] = {-INFINITY, -INFINITY},
        l[2] = {};  // of rows g and g + 8; l only over this lane's columns, until the end
  const Watched state = {int64_t(head) * p.seq_q + i0 + warp * 16, 0, p.seq_q - i0 - warp * 16, D};

#pragma unroll 1
  for (int j0 = 0, buffer = 0; j0 < p.seq_k; j0 += Bc, buffer ^= 1) {
    // exercise pipeline: wait for this tile, then start copying the next one, if there is one, to the other buffer
    cp_async_wait<0>();
    __syncthreads();  // this tile is in shared memory, and everyone is done with the one that is overwritten now
    if (const int next = j0 + Bc; next < p.seq_k) {
      T* to = kv_smem + (buffer ^ 1) * 2 * Bc * D;
      copy_tile<D, Bc>(to, k + kv_head + size_t(next) * D, p.seq_k - next);
      copy_tile<D, Bc>(to + Bc * D, v + kv_head + size_t(next) * D, p.seq_k - next);
      cp_async_commit();
    }
    // end pipeline |
    const T* k_smem = kv_smem + buffer * 2 * Bc * D;
    const T* v_smem = k_smem + Bc * D;

    watch_step("1. S = Q K^T");
    float s_reg[Bc / 8][4] = {};
#pragma unroll
    for (int step = 0; step < D / 16; step++)
#pragma unroll
      for (int n = 0; n < Bc / 16; n++) {
        uint32_t k_reg[4];  // K^T of 16 keys: two B fragments
        ldmatrix_x4(k_reg, k_smem + right_of<Bc>(k_lane, step) + n * 16 * 64);
        mma_m16n8k16<T>(s_reg[2 * n], q_reg[step], k_reg);
        mma_m16n8k16<T>(s_reg[2 * n + 1], q_reg[step], k_reg + 2);
      }

    const Watched scores = {state.row, j0, state.rows, p.seq_k - j0};
    watch("S", scores, s_reg, p.scale);

    watch_step("2. m, l and P; O *= correction");  // P in place of S
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int visible = p.visible_keys(i0 + warp * 16 + 8 * h + g) - j0 - 2 * t;  // from this lane's first column on
      // `top`: the row's largest x in this lane's columns.
      float top = -INFINITY;
      for (int n = 0; n < Bc / 8; n++)
        for (int c = 0; c < 2; c++) {
          float& x = s_reg[n][2 * h + c];
          x = 8 * n + c < visible ? x * scale_log2 : -INFINITY;
          top = fmaxf(top, x);
        }
      const float m_new = fmaxf(m[h], quad_max(top));
      const float m_safe = m_new == -INFINITY ? 0 : m_new;  // no key seen yet: keeps -inf - -inf = NaN out of exp2
      const float correction = exp2_approx(m[h] - m_safe);
      watch("correction", state, 8 * h + g, 0, correction);
      m[h] = m_new;
      l[h] *= correction;
      for (int n = 0; n < Bc / 8; n++)
        for (int c = 0; c < 2; c++) {
          float& x = s_reg[n][2 * h + c];
          x = exp2_approx(x - m_safe);
          l[h] += x;
        }
      for (int n = 0; n < D / 8; n++)
        for (int c = 0; c < 2; c++) o_reg[n][2 * h + c] *= correction;
    }
    watch("P", scores, s_reg);

    watch_step("3. O += P V");
    // 16 keys at a time: two C fragments of S, side by side, are an A fragment of P
#pragma unroll
    for (int step = 0; step < Bc / 16; step++) {
      uint32_t p_reg[4];
      for (int r = 0; r < 4; r++) {
        const float* x = s_reg[2 * step + r / 2] + r % 2 * 2;
        p_reg[r] = pack2<T>(x[0], x[1]);
      }
#pragma unroll
      for (int n = 0; n < D / 16; n++) {
        uint32_t v_reg[4];  // V of 16 columns: two B fragments
        ldmatrix_x4_trans(v_reg, v_smem + right_of<Bc>(qv_lane, n) + step * 16 * 64);
        mma_m16n8k16<T>(o_reg[2 * n], p_reg, v_reg);
        mma_m16n8k16<T>(o_reg[2 * n + 1], p_reg, v_reg + 2);
      }
    }
    watch_rows("m base 2", state, m);
    watch_row_shares("l", state, l);
    watch("O", state, o_reg);
  }

  watch_step("O / l and LSE");
  // Each quad of lanes writes 16 bytes of a row at a time.
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int i = i0 + warp * 16 + 8 * h + g;
    const float l_row = quad_sum(l[h]);
    if (i >= p.seq_q) continue;
    const float inverse = l_row > 0 ? 1 / l_row : 0;  // l = 0: the row sees no key
    if (t == 0) lse[size_t(head) * p.seq_q + i] = (m[h] + log2_approx(l_row)) * ln_2;
    for (int n = 0; n < D / 8; n++)
      *reinterpret_cast<uint32_t*>(o + q_head + size_t(i) * D + n * 8 + 2 * t) =
          pack2<T>(o_reg[n][2 * h] * inverse, o_reg[n][2 * h + 1] * inverse);
  }
}

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    const auto [q, k, v, o] = attention::tensors_of<T>(args);
    const unsigned blocks = unsigned(p.batch) * p.heads * ceil_div(p.seq_q, Br);
    const size_t shared_bytes = (Br + 4 * Bc) * D * sizeof(T);
    launch(forward<T, D>, {blocks, threads, shared_bytes, stream}, p, q, k, v, o, args.lse);
  });
}

constexpr attention::Forward unpadded = {attention::head_dim_not_8_to_128, attention::no_workspace, run, true};

}  // namespace

extern const attention::Rung pipeline;
constinit const attention::Rung pipeline = {
    .name = "pipeline",
    .idea = "cp.async copies the next tile of K and V while this one is computed on",
    .forward = attention::padded<unpadded>};

}  // namespace flashattn2_fwd
