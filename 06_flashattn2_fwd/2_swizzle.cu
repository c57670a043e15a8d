// Chapter 06, rung 2, swizzle: ldmatrix loads fragments, from tiles that have no bank conflicts and no padding.
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
// What changed since 1_mma: one ldmatrix.x4 replaces four or eight loads. It loads four 8 x 8 matrices as fragments,
// transposed if asked, which is what V needs. It reads eight rows of 16 bytes at a time, so the same 16 bytes of eight
// neighbouring rows must lie in different banks. position() puts them there.
//
// Expected limit: waiting. All warps wait for a tile, compute with it, and wait for the next.
#include <cmath>
#include <cstdint>

#include "attention/dispatch.h"
#include "attention/padded.h"
#include "device/ldmatrix.h"
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

// A tile of `rows` rows in shared memory: D / 64 pages, each [rows][64], a row of 128 bytes across all 32 banks. Chunk
// c (16 bytes) of row r lies in place c ^ (r % 8), so that the same chunk of eight rows (ldmatrix), and eight chunks
// of one row (the copy), are in different banks.
template <int rows>
__device__ int position(int row, int chunk) {
  return (chunk / 8 * rows + row) * 64 + (chunk ^ row) % 8 * 8;
}

// 16 * step columns to the right of a position of chunk 0 or 1: an xor with a constant, and a constant to add.
template <int rows>
__device__ int right_of(int position, int step) {
  return (position ^ 16 * (step % 4)) + step / 4 * rows * 64;
}

// Copies a tile to shared memory; rows that do not exist become zeros.
template <int D, int rows, class T>
__device__ void copy_tile(T* tile,        // [rows][D] in shared memory, as above
                          const T* from,  // [rows_left, D]
                          int rows_left) {
#pragma unroll 4
  for (int i = threadIdx.x; i < rows * D / 8; i += threads) {
    const int row = i / (D / 8), chunk = i % (D / 8);
    store_pack8(tile + position<rows>(row, chunk),
                row < rows_left ? load_pack8(from + row * D + chunk * 8) : Pack8<T>{});
  }
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
  T* k_smem = q_smem + Br * D;      // [Bc][D]
  T* v_smem = k_smem + Bc * D;      // [Bc][D]

  const int row_tiles = (p.seq_q + Br - 1) / Br;
  const int head = blockIdx.x / row_tiles, i0 = blockIdx.x % row_tiles * Br;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const size_t q_head = size_t(head) * p.seq_q * D, kv_head = size_t(p.kv_head(head)) * p.seq_k * D;
  const float scale_log2 = p.scale * log2_e;

  copy_tile<D, Br>(q_smem, q + q_head + size_t(i0) * D, p.seq_q - i0);
  __syncthreads();  // Q is in shared memory

  // The row of a 16 x 16 block whose address this lane gives to ldmatrix. Matrices of Q and V go down, then right;
  // those of K right, then down.
  const int qv_lane = position<16>(lane % 16, lane / 16);
  const int k_lane = position<16>(lane / 16 * 8 + lane % 8, lane / 8 % 2);

  uint32_t q_reg[D / 16][4];  // A fragments of the warp's 16 rows
#pragma unroll
  for (int step = 0; step < D / 16; step++)
    ldmatrix_x4(q_reg[step], q_smem + right_of<Br>(qv_lane, step) + warp * 16 * 64);

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
    const size_t shared_bytes = (Br + 2 * Bc) * D * sizeof(T);
    launch(forward<T, D>, {blocks, threads, shared_bytes, stream}, p, q, k, v, o, args.lse);
  });
}

constexpr attention::Forward unpadded = {attention::head_dim_not_8_to_128, attention::no_workspace, run, true};

}  // namespace

extern const attention::Rung swizzle;
constinit const attention::Rung swizzle = {
    .name = "swizzle",
    .idea = "fragments by ldmatrix, from shared memory whose 16-byte chunks are swizzled against bank conflicts",
    .forward = attention::padded<unpadded>};

}  // namespace flashattn2_fwd
