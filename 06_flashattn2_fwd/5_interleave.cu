// Chapter 06, rung 5, interleave: the exponentials of 16 keys stand right before their products with V.
//
// A thread block of four warps owns Br = 128 query rows of one head. Each warp carries 32 of them from Q to O,
// alone: two blocks b = 0, 1 of 16, the height of an mma. For each tile of Bc = 64 keys:
//
//   0. the copy of the next K and V to the other half of shared memory starts
//   1. S = scale log2(e) Q K^T                            32 x Bc a warp, in registers
//   2. m' = max(m, rowmax S)   x = S - m'   l = l 2^(m - m')   O = O 2^(m - m')
//   3. P = 2^x   l = l + rowsum P   O = O + P V           16 keys at a time, P straight from the registers of S
//
// and at the end O / l and LSE = ln(2) (m + log2(l)).
//
// What changed since 4_rows32: P = 2^x and its sum have moved into the loop over V. Exponentials and matrix products
// have units of their own, but a warp keeps both busy only if its instructions for them are mixed, and the compiler
// mixes instructions only where no branch stands between them. In 4_rows32 all exponentials of a tile are in step 2,
// of which the compiler makes two branches, with a mask and without. Now they stand beside the products P V.
//
// Expected limit: the same softmax. No instruction is saved.
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
constexpr int Br = 32 * warps;  // query rows of a thread block, 32 to a warp: two blocks of 16, the height of an mma
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
__global__ void __launch_bounds__(threads, 2) forward(Problem p,
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
  copy_tile<D, Bc>(kv_smem, k + kv_head, p.seq_k);
  copy_tile<D, Bc>(kv_smem + Bc * D, v + kv_head, p.seq_k);
  cp_async_commit();

  // The row of a 16 x 16 block whose address this lane gives to ldmatrix (drawn in device/swizzle.h).
  const int qv_lane = position<16>(lane % 16, lane / 16);                   // Q and V: down, then right
  const int k_lane = position<16>(lane / 16 * 8 + lane % 8, lane / 8 % 2);  // K: right, then down

  const int q_lane = warp * 32 * 64 + qv_lane;

  float o_reg[2][D / 8][4] = {};
  float m[2][2], l[2][2] = {};  // of rows 16 b + 8 h + g; l only over this lane's columns, until the end
  for (int b = 0; b < 2; b++)
    for (int h = 0; h < 2; h++) m[b][h] = -INFINITY;
  const Watched state = {int64_t(head) * p.seq_q + i0 + warp * 32, 0, p.seq_q - i0 - warp * 32, D};

#pragma unroll 1
  for (int j0 = 0, buffer = 0; j0 < p.seq_k; j0 += Bc, buffer ^= 1) {
    cp_async_wait<0>();
    __syncthreads();  // this tile (and Q) is in shared memory, and everyone is done with the one before
    if (const int next = j0 + Bc; next < p.seq_k) {
      T* to = kv_smem + (buffer ^ 1) * 2 * Bc * D;
      copy_tile<D, Bc>(to, k + kv_head + size_t(next) * D, p.seq_k - next);
      copy_tile<D, Bc>(to + Bc * D, v + kv_head + size_t(next) * D, p.seq_k - next);
      cp_async_commit();
    }
    const T* k_smem = kv_smem + buffer * 2 * Bc * D;
    const T* v_smem = k_smem + Bc * D;

    watch_step("1. S = Q K^T");
    float s_reg[2][Bc / 8][4] = {};
#pragma unroll
    for (int step = 0; step < D / 16; step++) {
      uint32_t q_reg[2][4];  // A fragments of the warp's 32 rows
      for (int b = 0; b < 2; b++) ldmatrix_x4(q_reg[b], q_smem + right_of<Br>(q_lane, step) + b * 16 * 64);
#pragma unroll
      for (int n = 0; n < Bc / 16; n++) {
        uint32_t k_reg[4];  // K^T of 16 keys: two B fragments
        ldmatrix_x4(k_reg, k_smem + right_of<Bc>(k_lane, step) + n * 16 * 64);
        for (int b = 0; b < 2; b++) {
          mma_m16n8k16<T>(s_reg[b][2 * n], q_reg[b], k_reg);
          mma_m16n8k16<T>(s_reg[b][2 * n + 1], q_reg[b], k_reg + 2);
        }
      }
    }

    const Watched scores = {state.row, j0, state.rows, p.seq_k - j0};
    watch("S", scores, s_reg, p.scale);

    watch_step("2. m and l; O *= correction");  // x in place of S
#pragma unroll
    for (int b = 0; b < 2; b++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const int visible =
            p.visible_keys(i0 + warp * 32 + 16 * b + 8 * h + g) - j0 - 2 * t;  // from this lane's first column on
        // `top`: the row's largest x in this lane's columns.
        float top = -INFINITY;
        for (int n = 0; n < Bc / 8; n++)
          for (int c = 0; c < 2; c++) {
            float& x = s_reg[b][n][2 * h + c];
            x = 8 * n + c < visible ? x * scale_log2 : -INFINITY;
            top = fmaxf(top, x);
          }
        const float m_new = fmaxf(m[b][h], quad_max(top));
        const float m_safe = m_new == -INFINITY ? 0 : m_new;  // no key seen yet: keeps -inf - -inf = NaN out of exp2
        const float correction = exp2_approx(m[b][h] - m_safe);
        watch("correction", state, 16 * b + 8 * h + g, 0, correction);
        m[b][h] = m_new;
        l[b][h] *= correction;
        for (int n = 0; n < Bc / 8; n++)
          for (int c = 0; c < 2; c++) s_reg[b][n][2 * h + c] -= m_safe;
        for (int n = 0; n < D / 8; n++)
          for (int c = 0; c < 2; c++) o_reg[b][n][2 * h + c] *= correction;
      }

    watch_step("3. P, and O += P V");
    // 16 keys at a time: two C fragments of S, side by side, are an A fragment of P
#pragma unroll
    for (int step = 0; step < Bc / 16; step++) {
      uint32_t p_reg[2][4];
      for (int b = 0; b < 2; b++)
        for (int r = 0; r < 4; r++) {
          const float* x = s_reg[b][2 * step + r / 2] + r % 2 * 2;
          const float p0 = exp2_approx(x[0]), p1 = exp2_approx(x[1]);
          l[b][r % 2] += p0 + p1;
          p_reg[b][r] = pack2<T>(p0, p1);
          watch_pair("P", scores, b, step, r, p0, p1);
        }
#pragma unroll
      for (int n = 0; n < D / 16; n++) {
        uint32_t v_reg[4];  // V of 16 columns: two B fragments
        ldmatrix_x4_trans(v_reg, v_smem + right_of<Bc>(qv_lane, n) + step * 16 * 64);
        for (int b = 0; b < 2; b++) {
          mma_m16n8k16<T>(o_reg[b][2 * n], p_reg[b], v_reg);
          mma_m16n8k16<T>(o_reg[b][2 * n + 1], p_reg[b], v_reg + 2);
        }
      }
    }
    watch_rows("m base 2", state, m);
    watch_row_shares("l", state, l);
    watch("O", state, o_reg);
  }

  watch_step("O / l and LSE");
  // Each quad of lanes writes 16 bytes of a row at a time.
#pragma unroll
  for (int b = 0; b < 2; b++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int i = i0 + warp * 32 + 16 * b + 8 * h + g;
      const float l_row = quad_sum(l[b][h]);
      if (i >= p.seq_q) continue;
      const float inverse = l_row > 0 ? 1 / l_row : 0;  // l = 0: the row sees no key
      if (t == 0) lse[size_t(head) * p.seq_q + i] = (m[b][h] + log2_approx(l_row)) * ln_2;
      for (int n = 0; n < D / 8; n++)
        *reinterpret_cast<uint32_t*>(o + q_head + size_t(i) * D + n * 8 + 2 * t) =
            pack2<T>(o_reg[b][n][2 * h] * inverse, o_reg[b][n][2 * h + 1] * inverse);
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

extern const attention::Rung interleave;
constinit const attention::Rung interleave = {
    .name = "interleave",
    .idea = "the exponentials of 16 keys stand right before their products with V",
    .forward = attention::padded<unpadded>};

}  // namespace flashattn2_fwd
