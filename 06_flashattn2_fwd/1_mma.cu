// Chapter 06, rung 1, mma: tensor cores compute both products, and a warp keeps its rows in registers from Q to O.
//
// A thread block of four warps owns Br = 64 query rows of one head. Each warp carries 16 of them from Q to O, alone.
// For each tile of Bc = 64 keys:
//
//   0. K and V go to shared memory
//   1. S = scale log2(e) Q K^T                            16 x 64 a warp, in registers
//   2. m' = max(m, rowmax S)   P = 2^(S - m')   l = l 2^(m - m') + rowsum P   O = O 2^(m - m')
//   3. O = O + P V                                        P straight from the registers of S
//
// and at the end O / l and LSE = ln(2) (m + log2(l)).
//
// What changed since chapter 05:
//   - mma.m16n8k16 (device/mma.h draws its fragments) does 16 x 8 x 16 multiply-adds in one instruction of a warp.
//   - A row belongs to four lanes of one warp, so its maximum and its sum take two shuffles each. P never leaves the
//     registers, because two C fragments of S side by side are an A fragment of P.
//   - Powers of two instead of e: the scale and log2(e) are one factor, and 2^x is one instruction.
//
// Rows in shared memory are padded by 16 bytes, so the eight rows that a warp reads at once start four banks apart.
// Expected limit: loads from shared memory. A register of a K fragment takes one load, one of V two loads of 16 bits.
#include <cmath>
#include <cstdint>

#include "attention/dispatch.h"
#include "attention/padded.h"
#include "device/math.h"
#include "device/mma.h"
#include "device/numeric.h"
#include "device/watch.h"

namespace flashattn2_fwd {
namespace {

using attention::ForwardArgs;
using attention::Problem;

constexpr int warps = 4, threads = 32 * warps;
constexpr int Br = 16 * warps;  // query rows of a thread block, 16 to a warp: the height of an mma
constexpr int Bc = 64;          // keys in a tile

template <int D>
constexpr int row_stride = D + 8;  // elements between rows in shared memory

// Copies a tile to shared memory; rows that do not exist become zeros.
template <int D, int rows, class T>
__device__ void copy_tile(T* tile,        // [rows][row_stride] in shared memory
                          const T* from,  // [rows_left, D]
                          int rows_left) {
#pragma unroll 4
  for (int i = threadIdx.x; i < rows * D / 8; i += threads) {
    const int row = i / (D / 8), column = i % (D / 8) * 8;
    store_pack8(tile + row * row_stride<D> + column,
                row < rows_left ? load_pack8(from + row * D + column) : Pack8<T>{});
  }
}

// Two neighbours of a row, as one fragment register.
template <class T>
__device__ uint32_t load_pair(const T* x) {
  return *reinterpret_cast<const uint32_t*>(x);
}

// Two neighbours of a column, as one fragment register.
template <int D, class T>
__device__ uint32_t load_column_pair(const T* x) {
  const auto* bits = reinterpret_cast<const uint16_t*>(x);
  return bits[0] | uint32_t(bits[row_stride<D>]) << 16;
}

template <class T, int D>
__global__ void __launch_bounds__(threads) forward(Problem p,
                                                   const T* q,  // [B, H, Nq, D]
                                                   const T* k,  // [B, Hkv, Nk, D]
                                                   const T* v,  // [B, Hkv, Nk, D]
                                                   T* o,        // [B, H, Nq, D]
                                                   float* lse)  // [B, H, Nq]
{
  T* q_smem = dynamic_shared<T>();          // [Br][row_stride]
  T* k_smem = q_smem + Br * row_stride<D>;  // [Bc][row_stride]
  T* v_smem = k_smem + Bc * row_stride<D>;  // [Bc][row_stride]

  const int row_tiles = (p.seq_q + Br - 1) / Br;
  const int head = blockIdx.x / row_tiles, i0 = blockIdx.x % row_tiles * Br;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const size_t q_head = size_t(head) * p.seq_q * D, kv_head = size_t(p.kv_head(head)) * p.seq_k * D;
  const float scale_log2 = p.scale * log2_e;

  copy_tile<D, Br>(q_smem, q + q_head + size_t(i0) * D, p.seq_q - i0);
  __syncthreads();  // Q is in shared memory

  uint32_t q_reg[D / 16][4];  // A fragments of the warp's 16 rows
  // exercise fragments: q_reg[step] is the A fragment (device/mma.h) of columns 16 * step and up of the warp's rows
#pragma unroll
  for (int step = 0; step < D / 16; step++)
    for (int r = 0; r < 4; r++)
      q_reg[step][r] = load_pair(q_smem + (warp * 16 + g + r % 2 * 8) * row_stride<D> + step * 16 + r / 2 * 8 + 2 * t);
  // end fragments | for (int i = 0; i < D / 4; i++) q_reg[i / 4][i % 4] = 0;

  float o_reg[D / 8][4] = {};
  float m[2] = {-INFINITY, -INFINITY},
        l[2] = {};  // of rows g and g + 8; l only over this lane's columns, until the end
  const Watched state = {int64_t(head) * p.seq_q + i0 + warp * 16, 0, p.seq_q - i0 - warp * 16, D};

#pragma unroll 1
  for (int j0 = 0; j0 < p.seq_k; j0 += Bc) {
    __syncthreads();  // everyone is done with the tile before
    copy_tile<D, Bc>(k_smem, k + kv_head + size_t(j0) * D, p.seq_k - j0);
    copy_tile<D, Bc>(v_smem, v + kv_head + size_t(j0) * D, p.seq_k - j0);
    __syncthreads();  // K and V are in shared memory

    watch_step("1. S = Q K^T");
    float s_reg[Bc / 8][4] = {};
#pragma unroll
    for (int step = 0; step < D / 16; step++)
#pragma unroll
      for (int n = 0; n < Bc / 8; n++) {
        const T* k_lane = k_smem + (n * 8 + g) * row_stride<D> + step * 16 + 2 * t;
        const uint32_t k_reg[2] = {load_pair(k_lane), load_pair(k_lane + 8)};  // a B fragment of K^T
        mma_m16n8k16<T>(s_reg[n], q_reg[step], k_reg);
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
      for (int n = 0; n < D / 8; n++) {
        const T* v_lane = v_smem + (step * 16 + 2 * t) * row_stride<D> + n * 8 + g;
        const uint32_t v_reg[2] = {load_column_pair<D>(v_lane), load_column_pair<D>(v_lane + 8 * row_stride<D>)};
        mma_m16n8k16<T>(o_reg[n], p_reg, v_reg);
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
    const size_t shared_bytes = (Br + 2 * Bc) * row_stride<D> * sizeof(T);
    launch(forward<T, D>, {blocks, threads, shared_bytes, stream}, p, q, k, v, o, args.lse);
  });
}

constexpr attention::Forward unpadded = {attention::head_dim_not_8_to_128, attention::no_workspace, run, true};

}  // namespace

extern const attention::Rung mma;
constinit const attention::Rung mma = {.name = "mma",
                                       .idea = "both products on the tensor cores, a row in the registers of one warp",
                                       .forward = attention::padded<unpadded>};

}  // namespace flashattn2_fwd
