// Chapter 07, rung 2: no N x N memory. P is made once more wherever it is needed, from Q, K and the saved LSE.
//
//   1. delta = rowsum(dO O)        a row of dO and O per warp; equal to rowsum(P dP), and needs neither P nor dP
//   2. dK and dV                   a thread block owns Bc keys and their rows of dK and dV, in registers. For each tile
//                                  of Br queries:
//        P  = exp(scale Q K^T - LSE)      dP = dO V^T      dS = P (dP - delta)    (as their transposes)
//        dV = dV + P^T dO                 dK = dK + dS^T Q
//   3. dQ                          a thread block owns Br queries and their rows of dQ. For each tile of Bc keys:
//        P and dS once more               dQ = dQ + dS K
//
// and at the end dK and dQ are scaled.
//
// What changed since 1_materialised: S, P, dP and dS exist only as tiles, P and dS in shared memory and the others in
// registers. The price: the two products that make them are done twice, so there are seven products instead of five.
// Nobody but its owner adds to a row, so there are no atomics, and the result is the same from run to run.
//
// The query heads that share a kv head lie one after the other and are simply more queries to step 2, as before.
//
//   128 threads, tx = 0..15 across, ty = 0..7 down: in both kernels a thread has the rows ty, ty + 8, .. of the block.
//   For these rows it makes P and dS with the streaming rows tx and tx + 16, and columns 4 tx .. 4 tx + 3 of the
//   gradients (and those 64 further on)
//
// Expected limit: shared memory. Four tiles leave room for 32 rows each, so that a thread has 4 x 2 results of S and
// dP: loading the factors of a product takes a warp longer than multiplying them.
#include <cmath>
#include <cstdint>
#include <string>

#include "attention/dispatch.h"
#include "device/fp32_tile.h"
#include "device/math.h"
#include "device/numeric.h"
#include "device/watch.h"

namespace backward {
namespace {

using attention::BackwardArgs;
using attention::Problem;
using fp32_tile::load_float4;
using fp32_tile::store_rounded;

constexpr int threads = 128;    // 16 x 8
constexpr int blocks = 2;       // per multiprocessor, as many as 228 KB hold at D = 128: up to 255 registers a thread
constexpr int tile = 32;        // Br and Bc: at D = 128, 78 KB of shared memory, where an RTX 30 or 40 has 99 KB
constexpr int rows = tile / 8;  // of the block that a thread owns
constexpr int streaming = tile / 16;  // rows of the other tile that a thread multiplies with its own
constexpr int pad = 4;                // floats after each row: eight rows start at banks 0, 4, .. 28
constexpr int weight_pad = 16;        // the same for P and dS, where a warp stores 16 floats to each of two rows

// Shared memory in floats: two tiles that stay, two that stream past, then dS and, in step 2, P. HeadDim is the head
// dim rounded up to 64 or 128: the elements that are missing are zeros.
template <int HeadDim>
constexpr int rows_size = (HeadDim + pad) * tile;
constexpr int weights_size = (tile + weight_pad) * tile;

// Copies a tile of rows to shared memory as fp32, with zeros for what lies outside of them.
template <int HeadDim, class T>
__device__ void stage(float* to,      // [tile][HeadDim + pad]
                      const T* from,  // [rows_left, head_dim]
                      int head_dim, int64_t rows_left) {
  // Eight neighbouring lanes take the same 16 bytes of eight rows: conflict-free stores, whole sectors loaded.
  for (int pack = threadIdx.x; pack < tile * HeadDim / 8; pack += threads) {
    const int row = pack / HeadDim * 8 + pack % 8, column = pack % HeadDim / 8 * 8;
    Pack8<T> x = {};
    if (row < rows_left && column < head_dim) x = load_pack8(from + int64_t(row) * head_dim + column);
    float* out = to + row * (HeadDim + pad) + column;
    *reinterpret_cast<float4*>(out) =
        make_float4(to_float(x.x[0]), to_float(x.x[1]), to_float(x.x[2]), to_float(x.x[3]));
    *reinterpret_cast<float4*>(out + 4) =
        make_float4(to_float(x.x[4]), to_float(x.x[5]), to_float(x.x[6]), to_float(x.x[7]));
  }
}

// A B^T, of this thread's rows: row ty + 8 r of A times row tx + 16 n of B.
template <int HeadDim>
__device__ void multiply_rows(float (&product)[rows][streaming],
                              const float* a,  // [tile][HeadDim + pad]
                              const float* b)  // [tile][HeadDim + pad]
{
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  for (int d = 0; d < HeadDim; d += 4) {
    float4 b_reg[streaming];
    for (int n = 0; n < streaming; ++n) b_reg[n] = load_float4(b + (tx + 16 * n) * (HeadDim + pad) + d);
    for (int r = 0; r < rows; ++r) {
      const float4 a_reg = load_float4(a + (ty + 8 * r) * (HeadDim + pad) + d);
      for (int n = 0; n < streaming; ++n)
        product[r][n] += a_reg.x * b_reg[n].x + a_reg.y * b_reg[n].y + a_reg.z * b_reg[n].z + a_reg.w * b_reg[n].w;
    }
  }
}

// sum += W B, of this thread's rows and columns.
template <int HeadDim>
__device__ void add_weighted_rows(float4 (&sum)[rows][HeadDim / 64],
                                  const float* weights,  // [tile][tile + weight_pad]
                                  const float* b)        // [tile][HeadDim + pad]
{
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  for (int c = 0; c < tile; c += 4) {
    float4 w[rows];
    for (int r = 0; r < rows; ++r) w[r] = load_float4(weights + (ty + 8 * r) * (tile + weight_pad) + c);
    for (int block = 0; block < HeadDim / 64; ++block) {
      float4 b_reg[4];
      for (int n = 0; n < 4; ++n) b_reg[n] = load_float4(b + (c + n) * (HeadDim + pad) + 64 * block + 4 * tx);
      for (int r = 0; r < rows; ++r) {
        sum[r][block].x += w[r].x * b_reg[0].x + w[r].y * b_reg[1].x + w[r].z * b_reg[2].x + w[r].w * b_reg[3].x;
        sum[r][block].y += w[r].x * b_reg[0].y + w[r].y * b_reg[1].y + w[r].z * b_reg[2].y + w[r].w * b_reg[3].y;
        sum[r][block].z += w[r].x * b_reg[0].z + w[r].y * b_reg[1].z + w[r].z * b_reg[2].z + w[r].w * b_reg[3].z;
        sum[r][block].w += w[r].x * b_reg[0].w + w[r].y * b_reg[1].w + w[r].z * b_reg[2].w + w[r].w * b_reg[3].w;
      }
    }
  }
}

// Writes this thread's part of the block's rows.
template <int HeadDim, class T>
__device__ void store_rows(T* to,  // [rows_left, head_dim]
                           const float4 (&sum)[rows][HeadDim / 64], float scale, int head_dim, int64_t rows_left) {
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll  // or else the compiler may keep `sum`, which it would then have to index, in slow local memory
  for (int r = 0; r < rows; ++r)
#pragma unroll
    for (int block = 0; block < HeadDim / 64; ++block) {
      const int row = ty + 8 * r, d = 64 * block + 4 * tx;
      const float4 x = sum[r][block];
      if (row < rows_left && d < head_dim)
        store_rounded(to + int64_t(row) * head_dim + d,
                      make_float4(scale * x.x, scale * x.y, scale * x.z, scale * x.w));
    }
}

// Shows this thread's part of a gradient.
template <int HeadDim>
__device__ void watch_gradient(const char* name, Watched at, const float4 (&sum)[rows][HeadDim / 64], float scale) {
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  for (int r = 0; r < rows; ++r)
    for (int block = 0; block < HeadDim / 64; ++block)
      watch(name, at, ty + 8 * r, 64 * block + 4 * tx, sum[r][block], scale);
}

// delta, a row per warp.
template <class T>
__global__ void __launch_bounds__(threads) row_dots(Problem p,
                                                    const T* d_o,  // [B, H, Nq, D]
                                                    const T* o,    // [B, H, Nq, D]
                                                    float* dots)   // [B, H, Nq], delta
{
  const int64_t row = int64_t(blockIdx.x) * (threads / 32) + threadIdx.x / 32;
  if (row >= int64_t(p.batch) * p.heads * p.seq_q) return;
  const int lane = threadIdx.x % 32;
  watch_step("delta = rowsum(dO O)");
  // exercise rowsum: the row's delta, in lane 0 at least
  float sum = 0;
  for (int d = lane; d < p.head_dim; d += 32)
    sum += to_float(d_o[row * p.head_dim + d]) * to_float(o[row * p.head_dim + d]);
  sum = warp_sum(sum);
  // end rowsum | float sum = 0;
  if (lane == 0) dots[row] = sum;
}

template <class T, int HeadDim>
__global__ void __launch_bounds__(threads, blocks) kv_gradients(Problem p,
                                                                const T* q,         // [B, H, Nq, D]
                                                                const T* k,         // [B, Hkv, Nk, D]
                                                                const T* v,         // [B, Hkv, Nk, D]
                                                                const T* d_o,       // [B, H, Nq, D]
                                                                const float* lse,   // [B, H, Nq]
                                                                const float* dots,  // [B, H, Nq], delta
                                                                T* dk,              // [B, Hkv, Nk, D]
                                                                T* dv)              // [B, Hkv, Nk, D]
{
  float* k_smem = dynamic_shared<float>();        // [tile][HeadDim + pad]
  float* v_smem = k_smem + rows_size<HeadDim>;    // [tile][HeadDim + pad]
  float* q_smem = v_smem + rows_size<HeadDim>;    // [tile][HeadDim + pad]
  float* do_smem = q_smem + rows_size<HeadDim>;   // [tile][HeadDim + pad]
  float* ds_smem = do_smem + rows_size<HeadDim>;  // dS^T [tile][tile + weight_pad]
  float* p_smem = ds_smem + weights_size;         // P^T  [tile][tile + weight_pad]

  const int key_tiles = (p.seq_k + tile - 1) / tile;
  const int kv_head = blockIdx.x / key_tiles, j0 = int(blockIdx.x % key_tiles) * tile;
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const int64_t first_key = int64_t(kv_head) * p.seq_k + j0;        // over all heads
  const int64_t queries = int64_t(p.heads / p.kv_heads) * p.seq_q;  // of all heads that share the kv head
  const int64_t first_query = kv_head * queries;                    // over all heads

  stage<HeadDim>(k_smem, k + first_key * p.head_dim, p.head_dim, p.seq_k - j0);
  stage<HeadDim>(v_smem, v + first_key * p.head_dim, p.head_dim, p.seq_k - j0);

  float4 dk_reg[rows][HeadDim / 64] = {}, dv_reg[rows][HeadDim / 64] = {};
  const Watched keys = {first_key, 0, p.seq_k - j0, p.head_dim};
  for (int64_t i0 = 0; i0 < queries; i0 += tile) {
    __syncthreads();  // everyone is done with the tiles that are overwritten now
    stage<HeadDim>(q_smem, q + (first_query + i0) * p.head_dim, p.head_dim, queries - i0);
    stage<HeadDim>(do_smem, d_o + (first_query + i0) * p.head_dim, p.head_dim, queries - i0);
    __syncthreads();  // Q and dO are complete, and so are K and V

    watch_step("S = Q K^T, dP = dO V^T");
    float s[rows][streaming] = {}, dp[rows][streaming] = {};
    multiply_rows<HeadDim>(s, k_smem, q_smem);
    multiply_rows<HeadDim>(dp, v_smem, do_smem);
    const Watched pairs = {first_query + i0, j0, int(queries - i0), p.seq_k - j0};  // this tile's
    for (int r = 0; r < rows; ++r)
      for (int n = 0; n < streaming; ++n) watch("dP", pairs, tx + 16 * n, ty + 8 * r, dp[r][n]);
    watch_step("P = exp(S - LSE), dS = P (dP - delta); dV += P^T dO, dK += dS^T Q");
    // exercise dkdv: make P^T and dS^T of this tile, 0 where a query does not see a key, and add its share to dV and dK
    for (int n = 0; n < streaming; ++n) {
      const int64_t i = i0 + tx + 16 * n;  // the query
      const int visible = i < queries ? p.visible_keys(int(i % p.seq_q)) : 0;
      const float lse_i = visible > 0 ? lse[first_query + i] : 0, dot = visible > 0 ? dots[first_query + i] : 0;
      for (int r = 0; r < rows; ++r) {
        const float p_ij = j0 + ty + 8 * r < visible ? expf(p.scale * s[r][n] - lse_i) : 0;
        p_smem[(ty + 8 * r) * (tile + weight_pad) + tx + 16 * n] = p_ij;
        ds_smem[(ty + 8 * r) * (tile + weight_pad) + tx + 16 * n] = p_ij * (dp[r][n] - dot);
      }
    }
    __syncthreads();  // P and dS are complete

    add_weighted_rows<HeadDim>(dv_reg, p_smem, do_smem);
    add_weighted_rows<HeadDim>(dk_reg, ds_smem, q_smem);
    // end dkdv |
    for (int r = 0; r < rows; ++r)
      for (int n = 0; n < streaming; ++n) {
        const int at = (ty + 8 * r) * (tile + weight_pad) + tx + 16 * n;
        watch("P", pairs, tx + 16 * n, ty + 8 * r, p_smem + at);
        watch("dS", pairs, tx + 16 * n, ty + 8 * r, ds_smem + at);
      }
    watch_gradient<HeadDim>("dV", keys, dv_reg, 1);
    watch_gradient<HeadDim>("dK", keys, dk_reg, p.scale);
  }
  store_rows<HeadDim>(dk + first_key * p.head_dim, dk_reg, p.scale, p.head_dim, p.seq_k - j0);
  store_rows<HeadDim>(dv + first_key * p.head_dim, dv_reg, 1, p.head_dim, p.seq_k - j0);
}

template <class T, int HeadDim>
__global__ void __launch_bounds__(threads, blocks) q_gradient(Problem p,
                                                              const T* q,         // [B, H, Nq, D]
                                                              const T* k,         // [B, Hkv, Nk, D]
                                                              const T* v,         // [B, Hkv, Nk, D]
                                                              const T* d_o,       // [B, H, Nq, D]
                                                              const float* lse,   // [B, H, Nq]
                                                              const float* dots,  // [B, H, Nq], delta
                                                              T* dq)              // [B, H, Nq, D]
{
  float* q_smem = dynamic_shared<float>();       // [tile][HeadDim + pad]
  float* do_smem = q_smem + rows_size<HeadDim>;  // [tile][HeadDim + pad]
  float* k_smem = do_smem + rows_size<HeadDim>;  // [tile][HeadDim + pad]
  float* v_smem = k_smem + rows_size<HeadDim>;   // [tile][HeadDim + pad]
  float* ds_smem = v_smem + rows_size<HeadDim>;  // dS [tile][tile + weight_pad]

  const int query_tiles = (p.seq_q + tile - 1) / tile;
  const int head = blockIdx.x / query_tiles, i0 = int(blockIdx.x % query_tiles) * tile;
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const int64_t first_query = int64_t(head) * p.seq_q + i0;      // over all heads
  const int64_t first_key = int64_t(p.kv_head(head)) * p.seq_k;  // over all heads

  stage<HeadDim>(q_smem, q + first_query * p.head_dim, p.head_dim, p.seq_q - i0);
  stage<HeadDim>(do_smem, d_o + first_query * p.head_dim, p.head_dim, p.seq_q - i0);
  int visible[rows];
  float lse_reg[rows], dot[rows];
  for (int r = 0; r < rows; ++r) {
    const int i = i0 + ty + 8 * r;
    visible[r] = i < p.seq_q ? p.visible_keys(i) : 0;
    lse_reg[r] = visible[r] > 0 ? lse[first_query + ty + 8 * r] : 0;
    dot[r] = visible[r] > 0 ? dots[first_query + ty + 8 * r] : 0;
  }

  float4 dq_reg[rows][HeadDim / 64] = {};
  for (int j0 = 0; j0 < p.seq_k; j0 += tile) {
    __syncthreads();  // everyone is done with the tiles that are overwritten now
    stage<HeadDim>(k_smem, k + (first_key + j0) * p.head_dim, p.head_dim, p.seq_k - j0);
    stage<HeadDim>(v_smem, v + (first_key + j0) * p.head_dim, p.head_dim, p.seq_k - j0);
    __syncthreads();  // K and V are complete, and so are Q and dO

    watch_step("S = Q K^T, dP = dO V^T, dS = P (dP - delta)");
    float s[rows][streaming] = {}, dp[rows][streaming] = {};
    multiply_rows<HeadDim>(s, q_smem, k_smem);
    multiply_rows<HeadDim>(dp, do_smem, v_smem);
    const Watched pairs = {first_query, j0, p.seq_q - i0, p.seq_k - j0};  // this tile's
    for (int r = 0; r < rows; ++r)
      for (int n = 0; n < streaming; ++n) {
        const float p_ij = j0 + tx + 16 * n < visible[r] ? expf(p.scale * s[r][n] - lse_reg[r]) : 0;
        ds_smem[(ty + 8 * r) * (tile + weight_pad) + tx + 16 * n] = p_ij * (dp[r][n] - dot[r]);
        watch("P", pairs, ty + 8 * r, tx + 16 * n, p_ij);
        watch("dP", pairs, ty + 8 * r, tx + 16 * n, dp[r][n]);
        watch("dS", pairs, ty + 8 * r, tx + 16 * n, p_ij * (dp[r][n] - dot[r]));
      }
    __syncthreads();  // dS is complete

    watch_step("dQ += dS K");
    add_weighted_rows<HeadDim>(dq_reg, ds_smem, k_smem);
    watch_gradient<HeadDim>("dQ", {first_query, 0, p.seq_q - i0, p.head_dim}, dq_reg, p.scale);
  }
  store_rows<HeadDim>(dq + first_query * p.head_dim, dq_reg, p.scale, p.head_dim, p.seq_q - i0);
}

void run(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int HeadDim>() {
    const auto [q, k, v, o, d_o, dq, dk, dv] = attention::tensors_of<T>(args);
    float* const dots = static_cast<float*>(args.workspace);
    const unsigned row_blocks = unsigned(ceil_div(p.lse_size(), threads / 32));
    const unsigned kv_blocks = unsigned(p.batch) * p.kv_heads * ceil_div(p.seq_k, tile);
    const unsigned q_blocks = unsigned(p.batch) * p.heads * ceil_div(p.seq_q, tile);
    constexpr size_t q_shared = (4 * rows_size<HeadDim> + weights_size) * sizeof(float);
    constexpr size_t kv_shared = q_shared + weights_size * sizeof(float);

    launch(row_dots<T>, {row_blocks, threads, 0, stream}, p, d_o, o, dots);
    launch(kv_gradients<T, HeadDim>, {kv_blocks, threads, kv_shared, stream}, p, q, k, v, d_o, args.lse, dots, dk, dv);
    launch(q_gradient<T, HeadDim>, {q_blocks, threads, q_shared, stream}, p, q, k, v, d_o, args.lse, dots, dq);
  });
}

}  // namespace

extern const attention::Rung recompute;
constinit const attention::Rung recompute = {
    .name = "recompute",
    .idea =
        "no N x N memory: P again from the saved LSE, delta = rowsum(dO O), and every row of a gradient has one owner",
    .backward = {attention::head_dim_not_8_to_128, [](const Problem& p) { return p.lse_size() * sizeof(float); }, run}};

}  // namespace backward
