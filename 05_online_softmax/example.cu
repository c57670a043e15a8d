// Chapter 05, example: tiles of 4 x 4, small enough to follow every number (./workbook walk 05/example). It is no rung
// of the ladder and is never timed.
//
// A thread block of 4 x 4 threads owns Br = 4 query rows of one head. Blocks go through the heads first: with B = 4,
// H = 2 and N = 8, block 11 has rows 4 to 7 of batch 1, head 1, which are rows 28 to 31 of [B, H, N, D]. For each tile
// of Bc = 4 keys, up to the last key that a row of the block sees:
//
//   1. S = scale * Q K^T        one score a thread: of row ty and key tx
//   2. m' = max(m, rowmax S)    P = exp(S - m')    l = l exp(m - m') + rowsum P    O = O exp(m - m')
//   3. O = O + P V              columns tx, tx + 4, .. of row ty
//
// and at the end O / l and LSE = m + log(l).
//
// It differs from the rungs in its size, and in that each of the four threads of a row computes the row's sums for
// itself. Under the causal mask block 11 has a tile below the diagonal, keys 0 to 3, and one on it, keys 4 to 7. Blocks
// 0 to 7 have only the one on the diagonal: the loop ends early, as in chapter 08.
#include <cmath>
#include <cstdint>

#include "attention/dispatch.h"
#include "device/numeric.h"
#include "device/watch.h"

namespace online_softmax {
namespace {

using attention::ForwardArgs;
using attention::Problem;

constexpr int Br = 4, Bc = 4;

// Copies four rows, widened; zeros take the place of rows that do not exist.
template <class T>
__device__ void stage(float* to,      // [4][D]
                      const T* from,  // [rows_left, D]
                      int rows_left, int head_dim) {
  for (int x = threadIdx.y * Bc + threadIdx.x; x < 4 * head_dim; x += Br * Bc)
    to[x] = x / head_dim < rows_left ? to_float(from[x]) : 0;
}

template <class T>
__global__ void __launch_bounds__(Br* Bc) attention_forward(Problem p,
                                                            const T* q,  // [B, H, Nq, D]
                                                            const T* k,  // [B, Hkv, Nk, D]
                                                            const T* v,  // [B, Hkv, Nk, D]
                                                            T* o,        // [B, H, Nq, D]
                                                            float* lse)  // [B, H, Nq]
{
  const int D = p.head_dim;
  float* q_smem = dynamic_shared<float>();  // [Br][D]
  float* k_smem = q_smem + Br * D;          // [Bc][D]
  float* v_smem = k_smem + Bc * D;          // [Bc][D]
  float* o_smem = v_smem + Bc * D;          // [Br][D]
  float* s_smem = o_smem + Br * D;          // [Br][Bc]

  const int heads = p.batch * p.heads;
  const int head = blockIdx.x % heads, i0 = blockIdx.x / heads * Br;
  const int tx = threadIdx.x, ty = threadIdx.y, visible = p.visible_keys(i0 + ty);
  const int64_t first_row = int64_t(head) * p.seq_q + i0;
  const T* k_head = k + int64_t(p.kv_head(head)) * p.seq_k * D;
  const T* v_head = v + int64_t(p.kv_head(head)) * p.seq_k * D;
  const int keys = p.visible_keys(i0 + Br - 1);  // that any row of the block sees
  const Watched state = {first_row, 0, p.seq_q - i0, D};

  float m = -INFINITY, l = 0;  // of row ty; each of its four threads has a copy
  stage(q_smem, q + first_row * D, p.seq_q - i0, D);
  for (int d = tx; d < D; d += Bc) o_smem[ty * D + d] = 0;  // always this thread's

  for (int j0 = 0; j0 < keys; j0 += Bc) {
    const Watched scores = {first_row, j0, p.seq_q - i0, p.seq_k - j0};
    __syncthreads();  // everyone is done with the tile before
    stage(k_smem, k_head + int64_t(j0) * D, p.seq_k - j0, D);
    stage(v_smem, v_head + int64_t(j0) * D, p.seq_k - j0, D);
    __syncthreads();  // the tile is in shared memory, and so is Q

    watch_step("1. S = Q K^T");
    float s = 0;
    for (int d = 0; d < D; ++d) s += q_smem[ty * D + d] * k_smem[tx * D + d];
    s = j0 + tx < visible ? p.scale * s : -INFINITY;
    watch("S", scores, ty, tx, s);
    s_smem[ty * Bc + tx] = s;
    __syncthreads();  // the row's scores are there

    watch_step("2. m and l; O *= correction");
    float m_new = m;
    for (int c = 0; c < Bc; ++c) m_new = fmaxf(m_new, s_smem[ty * Bc + c]);
    const float m_safe = m_new == -INFINITY ? 0 : m_new;  // no key seen yet: keeps -inf - -inf = NaN out of exp
    const float correction = expf(m - m_safe);
    m = m_new;
    l *= correction;
    for (int d = tx; d < D; d += Bc) o_smem[ty * D + d] *= correction;

    watch_step("3. P, and O += P V");
    for (int c = 0; c < Bc; ++c) {
      const float p_new = expf(s_smem[ty * Bc + c] - m_safe);
      watch("P", scores, ty, c, p_new);
      l += p_new;
      for (int d = tx; d < D; d += Bc) o_smem[ty * D + d] += p_new * v_smem[c * D + d];
    }
    watch("m", state, ty, 0, m);
    watch("correction", state, ty, 0, correction);
    watch("l", state, ty, 0, l);
    for (int d = tx; d < D; d += Bc) watch("O", state, ty, d, o_smem + ty * D + d);
  }

  watch_step("O / l and LSE");
  if (i0 + ty >= p.seq_q) return;
  if (tx == 0) lse[first_row + ty] = l == 0 ? -INFINITY : m + logf(l);
  for (int d = tx; d < D; d += Bc)
    o[(first_row + ty) * D + d] = from_float<T>(l == 0 ? 0 : o_smem[ty * D + d] / l);  // l = 0: the row sees no key
}

void forward(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype(p, [&]<class T>() {
    const auto [q, k, v, o] = attention::tensors_of<T>(args);
    const unsigned blocks = unsigned(p.batch) * p.heads * ceil_div(p.seq_q, Br);
    const size_t shared_bytes = ((2 * Br + 2 * Bc) * p.head_dim + Br * Bc) * sizeof(float);
    launch(attention_forward<T>, {blocks, dim3(Bc, Br), shared_bytes, stream}, p, q, k, v, o, args.lse);
  });
}

}  // namespace

extern const attention::Rung example;
constinit const attention::Rung example = {
    .name = "example",
    .idea = "tiles of 4 x 4, to follow every number",
    .forward = {attention::head_dim_not_8_to_256, attention::no_workspace, forward, true}};

}  // namespace online_softmax
