// Chapter 08, head dims above 128, forward: one more tile shape, in a kernel of its own.
//
// A thread block of four warps owns Br = 64 query rows of one head, each warp 16 of them alone, from Q to O. Keys come
// in tiles of Bc = 32, double buffered, up to the last one that a row of the block sees. For each tile:
//
//   S = Q K^T                                 16 x 32 a warp, in registers
//   x = scale log2(e) S - m, P = 2^x, l       as in 3_balanced, by device/lazy_softmax.h
//   O = O + P V
//
// and at the end O / l and LSE = ln(2) (m + log2(l)). Blocks with the last rows start first.
//
// Tensors lie as their strides say, for chapter 12, which has no kernels of its own for these head dims.
//
// What differs from 3_balanced: at D = 256, 16 rows of O take the 128 registers that 32 rows take at D = 128. So a warp
// has one block of 16 rows, and each fragment of K and V serves one mma instead of two.
//
// Expected limit: shared memory. Each load of K or V from it is enough for only two mma.
#include <cmath>
#include <cstdint>

#include "attention/dispatch.h"
#include "attention/view.h"
#include "device/lazy_softmax.h"
#include "device/math.h"
#include "device/swizzled_tile.h"
#include "device/watch.h"

namespace causal_earlystop {
namespace {

using attention::ForwardArgs;
using attention::Problem;
using attention::View;
using namespace swizzled_tile;

constexpr int D = 256;
constexpr int warps = 4, threads = 32 * warps;
constexpr int Br = 16 * warps, Bc = 32;  // 96 KB: two thread blocks per multiprocessor

template <class T>
__global__ void __launch_bounds__(threads, 2) forward(Problem p,
                                                      View<const T> q,  // [B, H, Nq, D]
                                                      View<const T> k,  // [B, Hkv, Nk, D]
                                                      View<const T> v,  // [B, Hkv, Nk, D]
                                                      View<T> o,        // [B, H, Nq, D]
                                                      float* lse)       // [B, H, Nq]
{
  T* q_smem = dynamic_shared<T>();  // [Br][D]
  T* kv_smem = q_smem + Br * D;     // [2 stages][K and V][Bc][D]

  const unsigned heads = p.batch * p.heads, row_tiles = (p.seq_q + Br - 1) / Br;
  const int head = blockIdx.x % heads, i0 = (row_tiles - 1 - blockIdx.x / heads) * Br;
  const int warp_row = threadIdx.x / 32 * 16, first_row = i0 + warp_row;
  const int keys = p.visible_keys(i0 + Br - 1);  // that any row of the block sees: the last one sees most
  const int warp_first = p.visible_keys(first_row), warp_last = p.visible_keys(first_row + 15);
  const size_t q_row = size_t(head) * p.seq_q;  // in LSE
  const unsigned of_k = k.of_head(p.kv_head(head), p.kv_heads), of_v = v.of_head(p.kv_head(head), p.kv_heads);

  const auto copy_stage = [&](int j0) {
    T* to = kv_smem + j0 / Bc % 2 * 2 * Bc * D;
    attention::copy_rows<Bc, D, Bc, threads>(to, k, of_k, j0, keys);
    attention::copy_rows<Bc, D, Bc, threads>(to + Bc * D, v, of_v, j0, keys);
  };
  attention::copy_rows<Br, D, Br, threads>(q_smem, q, q.of_head(head, p.heads), i0, p.seq_q);
  if (keys > 0) copy_stage(0);
  cp_async_commit();

  float o_reg[1][D / 8][4] = {};
  lazy_softmax::Rows<1> rows;
  const Watched state = {int64_t(q_row) + first_row, 0, p.seq_q - first_row, D};
#pragma unroll 1
  for (int j0 = 0; j0 < keys; j0 += Bc) {
    cp_async_wait<0>();
    __syncthreads();  // this stage (and Q) is in shared memory, and everyone is done with the stage before
    if (j0 + Bc < keys) copy_stage(j0 + Bc);
    cp_async_commit();
    if (j0 >= warp_last) continue;  // a tile that only other warps have to compute
    const T* k_tile = kv_smem + j0 / Bc % 2 * 2 * Bc * D;
    const T* v_tile = k_tile + Bc * D;

    float s_reg[1][Bc / 8][4];
    uint32_t p_reg[1][Bc / 16][4];
    const Watched scores = {state.row, j0, state.rows, p.seq_k - j0};
    watch_step("S = Q K^T");
    multiply_by_transpose<Br, Bc, D, Bc>(s_reg, q_smem + warp_row * page_row, k_tile);
    watch("S", scores, s_reg, p.scale);
    watch_step("x = S - m; m rises only if it must; P = 2^x");
    const bool above = lazy_softmax::subtract_max(s_reg, rows, p.scale * log2_e);
    if (j0 + Bc > warp_first)  // across the diagonal, or the end of the keys
      lazy_softmax::hide(s_reg, [&](int i) { return p.visible_keys(first_row + i) - j0; });
    if (above) lazy_softmax::raise(s_reg, o_reg, rows, state);
    lazy_softmax::exponentiate<T>(p_reg, s_reg, rows, scores);
    watch_step("O += P V");
    add_product<Bc, D, Bc>(o_reg, p_reg, v_tile);
    watch_rows(state, rows, o_reg);
  }
  cp_async_wait<0>();  // no copy may outlive the thread block
  __syncthreads();     // all threads' copies of Q have arrived, also if there are no keys: O takes Q's place

  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int row = first_row + 8 * h + lane / 4;
    const float l = rows.l(0, h), inverse = l > 0 ? 1 / l : 0;  // l = 0: the row sees no key
    if (lane % 4 == 0 && row < p.seq_q) lse[q_row + row] = (rows.m[0][h] + log2_approx(l)) * ln_2;
#pragma unroll
    for (int n = 0; n < D / 8; n++)
      for (int c = 0; c < 2; c++) o_reg[0][n][2 * h + c] *= inverse;
  }
  store_rows<Br, D>(o.at_row(o.of_head(head, p.heads), first_row), q_smem + warp_row * page_row, o_reg, 1,
                    p.seq_q - first_row, o.stride());
}

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype(p, [&]<class T>() {
    const auto [q, k, v, o] = attention::views_of<T>(p, args);
    const unsigned blocks = unsigned(p.batch) * p.heads * ceil_div(p.seq_q, Br);
    launch(forward<T>, {blocks, threads, (Br + 4 * Bc) * D * sizeof(T), stream}, p, q, k, v, o, args.lse);
  });
}

}  // namespace

extern const attention::Forward wide_forward;
constinit const attention::Forward wide_forward = {.unsupported = attention::head_dim_not_8_to_256,
                                                   .workspace_bytes = attention::no_workspace,
                                                   .run = run,
                                                   .writes_lse = true,
                                                   .takes = attention::views};

}  // namespace causal_earlystop
