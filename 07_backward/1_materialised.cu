// Chapter 07, rung 1: the gradients straight from the equations, with S, P, dP and dS in global memory.
//
// The forward is S = scale Q K^T, P = softmax(S), O = P V. Every line of it, from the last to the first, gives the
// gradients of its operands:
//
//   1. S  = scale Q K^T                          a 64 x 64 tile of the result per thread block
//   2. dP = dO V^T                               likewise
//   3. P  = exp(S - LSE)                         over S; a row per warp
//      dS = P (dP - rowsum(P dP))                over dP; the products are element by element
//   4. dV = P^T dO
//   5. dQ = scale dS K
//   6. dK = scale dS^T Q
//
// Five products, all by one kernel: a transpose only changes which neighbour lies next in memory. The query heads that
// share a kv head lie one after the other, so to the products they are simply more rows of Q, dO, S and dP, and the
// sums over these heads in dK and dV come by themselves.
//
// A product walks along its inner dimension 16 at a time: the block copies a chunk of both factors to shared memory,
// then every thread adds that chunk's share to 4 x 4 elements that it keeps in registers.
//
// Expected limit: for each pair of a query and a key, S and P cross global memory five times, dP and dS six times, 4
// bytes each. At long sequences they do not fit at all.
//
// watch() shows S, P, dP and dS to ./workbook walk. On a GPU it compiles to nothing.
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "attention/dispatch.h"
#include "device/math.h"
#include "device/numeric.h"
#include "device/watch.h"

namespace backward {
namespace {

using attention::BackwardArgs;
using attention::Problem;

constexpr int tile = 64;      // rows and columns of the result that a thread block owns
constexpr int depth = 16;     // of the inner dimension in shared memory at a time
constexpr int threads = 256;  // 16 x 16, each with 4 x 4 elements of the result
constexpr int pad = 4;        // floats after each row in shared memory: eight rows start at banks 0, 4, .. 28
constexpr int warps = 4;      // of a thread block of the row-wise kernel

__device__ float to_float(float x) { return x; }
using ::to_float;

// One matrix for every kv head, one after the other.
template <class T>
struct Matrices {
  const T* data;
  int rows, columns;
  bool transposed = false;  // in memory: [columns, rows]

  __device__ float at(int head, int row, int column) const {
    if (row >= rows || column >= columns) return 0;
    const int64_t before = int64_t(head) * rows * columns;
    return to_float(data[before + (transposed ? int64_t(column) * rows + row : int64_t(row) * columns + column)]);
  }
};

// An element of a chunk: its place along the inner dimension of the product, and along the other one.
struct Place {
  int inner, outer;
};

// C = scale A B for every kv head.
template <class A, class B, class C>
__global__ void __launch_bounds__(threads) product(Matrices<A> a,  // [B * Hkv, rows, inner]
                                                   Matrices<B> b,  // [B * Hkv, inner, columns]
                                                   C* c,           // [B * Hkv, rows, columns]
                                                   float scale) {
  alignas(16) __shared__ float a_smem[depth][tile + pad];  // A^T: a row has what one step of the inner dimension needs
  alignas(16) __shared__ float b_smem[depth][tile + pad];
  const int down = (a.rows + tile - 1) / tile, across = (b.columns + tile - 1) / tile;
  const int head = blockIdx.x / across / down;
  const int row0 = int(blockIdx.x / across % down) * tile, column0 = int(blockIdx.x % across) * tile;
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;

  watch_step("C = scale * A B");
  float sum[4][4] = {};
  for (int n0 = 0; n0 < a.columns; n0 += depth) {
    __syncthreads();  // everyone is done with the chunk that is overwritten now
    for (int x = threadIdx.x; x < depth * tile; x += threads) {
      // Neighbouring lanes take neighbours in memory: 32 along the outer dimension, or 4 rows of 8 along the inner one.
      const Place along_outer = {x / tile, x % tile};
      const Place along_inner = {x / 32 % 2 * 8 + x % 8, x / 64 * 4 + x / 8 % 4};
      const auto [a_n, a_row] = a.transposed ? along_outer : along_inner;
      const auto [b_n, b_column] = b.transposed ? along_inner : along_outer;
      a_smem[a_n][a_row] = a.at(head, row0 + a_row, n0 + a_n);
      b_smem[b_n][b_column] = b.at(head, n0 + b_n, column0 + b_column);
    }
    __syncthreads();  // the chunk is complete
    for (int n = 0; n < depth; ++n) {
      const float4 a4 = *reinterpret_cast<const float4*>(&a_smem[n][4 * ty]);
      const float4 b4 = *reinterpret_cast<const float4*>(&b_smem[n][4 * tx]);
      const float a_reg[4] = {a4.x, a4.y, a4.z, a4.w}, b_reg[4] = {b4.x, b4.y, b4.z, b4.w};
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) sum[i][j] += a_reg[i] * b_reg[j];
    }
  }

  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      const int row = row0 + 4 * ty + i, column = column0 + 4 * tx + j;
      if (row >= a.rows || column >= b.columns) continue;
      C& to = c[(int64_t(head) * a.rows + row) * b.columns + column];
      if constexpr (std::is_same_v<C, float>)
        to = scale * sum[i][j];
      else
        to = from_float<C>(scale * sum[i][j]);
    }
}

// P over S and dS over dP, a row per warp. A hidden key has P = 0, and so dS = 0.
__global__ void __launch_bounds__(warps * 32) softmax_backward(Problem p,
                                                               const float* lse,  // [B, H, Nq]
                                                               float* s_p,        // [B, H, Nq, Nk]
                                                               float* dp_ds)      // [B, H, Nq, Nk]
{
  const int64_t row = int64_t(blockIdx.x) * warps + threadIdx.x / 32;
  if (row >= int64_t(p.batch) * p.heads * p.seq_q) return;
  const int lane = threadIdx.x % 32, visible = p.visible_keys(int(row % p.seq_q));
  s_p += row * p.seq_k;
  dp_ds += row * p.seq_k;

  const Watched watched = {row, 0, 1, p.seq_k};
  for (int j = lane; j < p.seq_k; j += 32) {
    watch("S", watched, 0, j, s_p + j);
    watch("dP", watched, 0, j, dp_ds + j);
  }

  watch_step("P = exp(S - LSE), dS = P (dP - delta)");
  // exercise ds: make P of S, and dS of P and dP, in their places
  float sum = 0;  // of P dP
  for (int j = lane; j < p.seq_k; j += 32) {
    s_p[j] = j < visible ? expf(s_p[j] - lse[row]) : 0;
    sum += s_p[j] * dp_ds[j];
  }
  sum = warp_sum(sum);
  for (int j = lane; j < p.seq_k; j += 32) dp_ds[j] = s_p[j] * (dp_ds[j] - sum);
  // end ds |

  for (int j = lane; j < p.seq_k; j += 32) {
    watch("P", watched, 0, j, s_p + j);
    watch("dS", watched, 0, j, dp_ds + j);
  }
}

template <class A, class B, class C>
void launch_product(const Problem& p, Matrices<A> a, Matrices<B> b, C* c, float scale, cudaStream_t stream) {
  const int64_t down = (a.rows + tile - 1) / tile, across = (b.columns + tile - 1) / tile;
  launch(product<A, B, C>, {dim3(unsigned(int64_t(p.batch) * p.kv_heads * down * across)), dim3(threads), 0, stream}, a,
         b, c, scale);
}

// Elements of S.
size_t scores_size(const Problem& p) { return p.lse_size() * p.seq_k; }

void run(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  attention::by_dtype(p, [&]<class T>() {
    const auto [q, k, v, o, d_o, dq, dk, dv] = attention::tensors_of<T>(args);
    const int rows = p.heads / p.kv_heads * p.seq_q;  // of the query heads that share a kv head
    float* const s = static_cast<float*>(args.workspace);
    float* const dp = s + scores_size(p);
    const Matrices<T> q_rows = {q, rows, p.head_dim}, do_rows = {d_o, rows, p.head_dim},
                      k_rows = {k, p.seq_k, p.head_dim};
    const Matrices<T> k_transposed = {k, p.head_dim, p.seq_k, true}, v_transposed = {v, p.head_dim, p.seq_k, true};

    launch_product(p, q_rows, k_transposed, s, p.scale, stream);
    launch_product(p, do_rows, v_transposed, dp, 1, stream);
    const unsigned row_blocks = unsigned(ceil_div(p.lse_size(), warps));
    launch(softmax_backward, {row_blocks, warps * 32, 0, stream}, p, args.lse, s, dp);

    const float *p_data = s, *ds = dp;
    const Matrices<float> p_transposed = {p_data, p.seq_k, rows, true}, ds_transposed = {ds, p.seq_k, rows, true};
    const Matrices<float> ds_rows = {ds, rows, p.seq_k};
    launch_product(p, p_transposed, do_rows, dv, 1, stream);
    launch_product(p, ds_rows, k_rows, dq, p.scale, stream);
    launch_product(p, ds_transposed, q_rows, dk, p.scale, stream);
  });
}

}  // namespace

extern const attention::Rung materialised;
constinit const attention::Rung materialised = {
    .name = "materialised",
    .idea = "five products straight from the equations, with S, P, dP and dS in global memory",
    .backward = {attention::head_dim_not_8_to_256, [](const Problem& p) { return 2 * scores_size(p) * sizeof(float); },
                 run}};

}  // namespace backward
