// Chapter 10, head dims above 128, backward: one gradient a kernel.
//
//   row_stats      a warp per query row: log2(e) LSE and D = rowsum(dO o O)
//   differentiate  once for each gradient: a thread block owns 128 rows of it, and of A and B; C and E pass by in tiles
//                  of 64 rows. Of a gradient of keys: of all query heads that read them, in each from the diagonal on
//
// A block is a producer, one thread that copies, and two consumers, warpgroups with 64 of the rows each:
//
//                                                        dQ           dK           dV
//                                       A, B             Q, dO        K, V         K
//                                       C, E             K, V         Q, dO        Q, dO
//   1. S = A C^T, dP = B E^T            64 x 64                                    S alone
//   2. P = 2^(S - LSE)                  while dP is multiplied, in registers
//      dS = P o (dP - D)                                                           not dS
//   3. the gradient's rows +=           64 x 256         dS K         dS Q         P dO
//
// (S, P, dP and dS are transposed where rows are keys.) What differs from 16_ordered_backward: at D = 256 a gradient of
// 64 rows takes 128 registers of a thread, so there is room for one. S is computed three times and dP twice: eight
// products where the equations have five. Every gradient has one owner, nothing is added up in memory, and the result
// is the same bits in every run. Rows of A and B fill so much of the shared memory that C has two places and E one.
//
// Expected limit: tensor cores, which have three fifths more to do than they should.
#include <cmath>
#include <cstdint>

#include "attention/dispatch.h"
#include "device/backward_tile.h"
#include "device/bulk_copy.h"
#include "device/elect.h"
#include "device/math.h"
#include "device/mbarrier.h"
#include "device/ring.h"
#include "device/setmaxnreg.h"
#include "device/swizzled_tile.h"
#include "device/tensor_map.h"
#include "device/warpgroup_tile.h"
#include "device/watch.h"

namespace hopper {
namespace {

using attention::BackwardArgs;
using attention::Problem;
using namespace backward_tile;
using namespace warpgroup_tile;

constexpr int D = 256;
constexpr int consumers = 2, threads = warpgroup_threads * (consumers + 1);
constexpr int own = 64 * consumers, passing = 64;  // rows of a block, and of a tile that passes by; 225 KB

// 65536 registers are 168 for each of 384 threads, in multiples of 8: 24 + 2 * 240 = 3 * 168.
constexpr int producer_registers = 24, consumer_registers = 240;

enum class Gradient { dq, dk, dv };

struct Statistics {  // for prepare_row()
  static constexpr int D = hopper::D, Br = passing, threads = 256;
};

template <class T>
struct Shared {
  T a[own * D], b[own * D];             // each tile in D / 64 pages of 128 bytes a row, swizzled; a later the gradient
  T c[2][passing * D], e[passing * D];  // c in two places
  float stats[2][2 * passing];          // LSE, then D, of the queries in c
  Mbarrier own_full, c_full[2], c_empty[2], e_full, e_empty;
};

// What a thread block works on: rows of a head, and tiles `start` to `end` - 1 of the heads that pass by.
struct Work {
  int head, row, first_head, heads, start, end;
};

// The longest first: the first keys of all heads, or the last queries.
template <Gradient gradient>
__device__ Work work_of_block(const Problem& p) {
  if (gradient == Gradient::dq) {
    const int heads = p.batch * p.heads, head = blockIdx.x % heads;
    const int row = (ceil_div(p.seq_q, own) - 1 - int(blockIdx.x / heads)) * own;
    return {head, row, p.kv_head(head), 1, 0, ceil_div(p.visible_keys(row + own - 1), passing)};
  }
  const int kv_heads = p.batch * p.kv_heads, head = blockIdx.x % kv_heads, row = blockIdx.x / kv_heads * own;
  const int group = p.heads / p.kv_heads;
  return {head, row, head * group, group, p.first_query(row) / passing, ceil_div(p.seq_q, passing)};
}

// Starts the copies of a block. One thread.
template <class T, Gradient gradient>
__device__ __forceinline__ void load(Shared<T>& smem, const TensorMap& a_map, const TensorMap& b_map,
                                     const TensorMap& c_map, const TensorMap& e_map, const Problem& p,
                                     const float* stats, Work work) {
  constexpr bool of_keys = gradient != Gradient::dq, has_b = gradient != Gradient::dv;
  constexpr int own_bytes = own * D * sizeof(T), tile_bytes = passing * D * sizeof(T);
  constexpr int stats_bytes = of_keys ? 2 * passing * sizeof(float) : 0;
  mbarrier_arrive_expect_tx(&smem.own_full, (has_b ? 2 : 1) * own_bytes);
  tensor_load(smem.a, a_map, &smem.own_full, 0, work.row, 0, work.head);
  if (has_b) tensor_load(smem.b, b_map, &smem.own_full, 0, work.row, 0, work.head);
  Ring<2> c;
  Ring<1> e;
#pragma unroll 1
  for (int head = work.first_head; head < work.first_head + work.heads; head++)
#pragma unroll 1
    for (int i = work.start; i < work.end; i++, c.advance(), e.advance()) {
      Mbarrier* c_full = &smem.c_full[c.place];
      mbarrier_wait(&smem.c_empty[c.place], c.parity ^ 1);
      mbarrier_arrive_expect_tx(c_full, tile_bytes + stats_bytes);
      tensor_load(smem.c[c.place], c_map, c_full, 0, i * passing, 0, head);
      if (of_keys)
        bulk_load(smem.stats[c.place], stats + (size_t(head) * ceil_div(p.seq_q, passing) + i) * 2 * passing,
                  stats_bytes, c_full);
      mbarrier_wait(&smem.e_empty, e.parity ^ 1);
      mbarrier_arrive_expect_tx(&smem.e_full, tile_bytes);
      tensor_load(smem.e, e_map, &smem.e_full, 0, i * passing, 0, head);
    }
}

// A consumer's 64 rows.
template <class T, Gradient gradient>
__device__ __forceinline__ void differentiate_rows(Shared<T>& smem, const Problem& p, const float* stats, Work work,
                                                   T* out) {
  constexpr bool of_keys = gradient != Gradient::dq, has_b = gradient != Gradient::dv;
  const int consumer = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0), lane = threadIdx.x % 32;
  const int g = lane / 4, t = lane % 4;
  const int warp_row = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) * 16;  // the first of the warp's 16 rows
  const int first_row = work.row + warp_row, rows = of_keys ? p.seq_k : p.seq_q;
  const T *a_rows = smem.a + consumer * wgmma_rows * page_row, *b_rows = smem.b + consumer * wgmma_rows * page_row;
  const float scale_log2 = p.scale * log2_e;
  // This warp no longer needs the buffer that the mbarrier guards.
  const auto release = [&](Mbarrier& empty) {
    if (lane == 0) mbarrier_arrive(&empty);
  };

  float lse[2] = {}, row_sum[2] = {};  // of rows 8 h + g, if they are queries
  if (!of_keys) {
    const float* of_tile = stats + (size_t(work.head) * ceil_div(p.seq_q, passing) + first_row / passing) * 2 * passing;
    for (int h = 0; h < 2; h++)
      if (first_row + 8 * h + g < p.seq_q) {
        lse[h] = of_tile[first_row % passing + 8 * h + g];
        row_sum[h] = of_tile[passing + first_row % passing + 8 * h + g];
      }
  }

  float sum_reg[1][D / 8][4] = {};
  Ring<2> c;
  Ring<1> e;
  mbarrier_wait(&smem.own_full, 0);
#pragma unroll 1
  for (int head = work.first_head; head < work.first_head + work.heads; head++)
#pragma unroll 1
    for (int i = work.start; i < work.end; i++, c.advance(), e.advance()) {
      const T* c_rows = smem.c[c.place];
      float p_reg[1][passing / 8][4], ds_reg[1][passing / 8][4];
      uint32_t x_reg[1][passing / 16][4];  // P or dS, as A fragments

      // 1. S and dP
      mbarrier_wait(&smem.c_full[c.place], c.parity);
      mbarrier_wait(&smem.e_full, e.parity);
      wgmma_fence();
      start_product<own, D, passing>(p_reg, a_rows, c_rows);
      if constexpr (has_b) start_product<own, D, passing>(ds_reg, b_rows, smem.e);
      wgmma_wait<has_b ? 1 : 0>(p_reg);

      // 2. P and dS
      if constexpr (of_keys) {
        make_p<passing>(p_reg, p.scale, smem.stats[c.place],
                        [&](int query) { return p.visible_keys(i * passing + query) - first_row; });
      } else {
#pragma unroll
        for (int h = 0; h < 2; h++) {
          const int visible = p.visible_keys(first_row + 8 * h + g) - i * passing - 2 * t;
#pragma unroll
          for (int n = 0; n < passing / 8; n++)
            for (int k = 0; k < 2; k++) {
              const float x = fmaf(p_reg[0][n][2 * h + k], scale_log2, -lse[h]);
              p_reg[0][n][2 * h + k] = exp2_approx(8 * n + k >= visible ? -INFINITY : x);
            }
        }
      }
      if constexpr (has_b) {
        wgmma_wait<0>(ds_reg);
        release(smem.e_empty);
        if constexpr (of_keys) {
          make_ds<passing>(ds_reg, fragments_of(p_reg), smem.stats[c.place] + passing);
        } else {
#pragma unroll
          for (int n = 0; n < passing / 8; n++)
            for (int r = 0; r < 4; r++)
              ds_reg[0][n][r] = p_reg[0][n][r] * fmaf(ds_reg[0][n][r], 1 / p_factor, -row_sum[r / 2]);
        }
        swizzled_tile::round_fragments<T, passing>(x_reg, ds_reg);
      } else {
        swizzled_tile::round_fragments<T, passing>(x_reg, p_reg);
      }

      // 3. the gradient
      wgmma_fence();
      start_sum<D, passing>(sum_reg, x_reg, has_b ? c_rows : smem.e);
      wgmma_wait<0>(sum_reg);
      release(smem.c_empty[c.place]);
      if constexpr (!has_b) release(smem.e_empty);
    }

  const float factor = gradient == Gradient::dv ? 1 / p_factor : p.scale;
  const char* name = gradient == Gradient::dq ? "dQ" : gradient == Gradient::dk ? "dK" : "dV";
  const size_t row = size_t(work.head) * rows + first_row;
  watch(name, {int64_t(row), 0, rows - first_row, D}, sum_reg, factor);
  swizzled_tile::store_rows<own, D>(out + row * D, smem.a + warp_row * page_row, sum_reg, factor, rows - first_row);
}

template <class T, Gradient gradient>
__global__ void __launch_bounds__(threads, 1) differentiate(
    const __grid_constant__ TensorMap a_map,  // of A [B * (H or Hkv), D / 64, N, 64], in boxes of `own` rows
    const __grid_constant__ TensorMap b_map,  // of B, likewise; of dV, it is not used
    const __grid_constant__ TensorMap c_map,  // of C, in boxes of `passing` rows
    const __grid_constant__ TensorMap e_map,  // of E, likewise
    Problem p,
    const float* stats,  // [B * H * tiles][2][passing], of LSE, then of D
    T* out)              // the gradient, as A
{
  Shared<T>& smem = *dynamic_shared<Shared<T>, tile_alignment>();
  if (threadIdx.x == 0) {
    mbarrier_init(&smem.own_full, 1);
    for (int i = 0; i < 2; i++) {
      mbarrier_init(&smem.c_full[i], 1);
      mbarrier_init(&smem.c_empty[i], 4 * consumers);  // their warps
    }
    mbarrier_init(&smem.e_full, 1);
    mbarrier_init(&smem.e_empty, 4 * consumers);
    fence_mbarrier_init();
  }
  __syncthreads();  // the mbarriers are there

  const Work work = work_of_block<gradient>(p);
  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0);
  if (warpgroup == consumers) {
    setmaxnreg_dec<producer_registers>();
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32 % 4, 0);
    if (warp == 0 && elect_one()) load<T, gradient>(smem, a_map, b_map, c_map, e_map, p, stats, work);
  } else {
    setmaxnreg_inc<consumer_registers>();
    differentiate_rows<T, gradient>(smem, p, stats, work, out);
  }
}

template <class T>
__global__ void row_stats(Problem p,
                          const T* o,        // [B, H, Nq, D]
                          const float* lse,  // [B, H, Nq]
                          const T* d_o,      // [B, H, Nq, D]
                          float* stats)      // [B * H * tiles][2][passing]
{
  prepare_row<T, Statistics>(p, o, lse, d_o, stats);
}

void run(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  attention::by_dtype(p, [&]<class T>() {
    const int heads = p.batch * p.heads, kv_heads = p.batch * p.kv_heads;
    const auto [q, k, v, o, d_o, dq, dk, dv] = attention::tensors_of<T>(args);
    float* stats = static_cast<float*>(args.workspace);
    const unsigned stats_blocks = unsigned(heads) * ceil_div(p.seq_q, passing) * (passing * 32 / Statistics::threads);
    const unsigned q_blocks = unsigned(heads) * ceil_div(p.seq_q, own);
    const unsigned kv_blocks = unsigned(kv_heads) * ceil_div(p.seq_k, own);
    const auto of_queries = [&](const T* data, int box_rows) { return tile_map<D>(data, heads, p.seq_q, box_rows); };
    const auto of_keys = [&](const T* data, int box_rows) { return tile_map<D>(data, kv_heads, p.seq_k, box_rows); };
    const TensorMap k_own = of_keys(k, own), v_own = of_keys(v, own);
    const TensorMap q_passing = of_queries(q, passing), d_o_passing = of_queries(d_o, passing);

    launch(row_stats<T>, {stats_blocks, Statistics::threads, 0, stream}, p, o, args.lse, d_o, stats);
    launch(differentiate<T, Gradient::dv>, {kv_blocks, threads, sizeof(Shared<T>), stream}, k_own, v_own, q_passing,
           d_o_passing, p, stats, dv);
    launch(differentiate<T, Gradient::dk>, {kv_blocks, threads, sizeof(Shared<T>), stream}, k_own, v_own, q_passing,
           d_o_passing, p, stats, dk);
    launch(differentiate<T, Gradient::dq>, {q_blocks, threads, sizeof(Shared<T>), stream}, of_queries(q, own),
           of_queries(d_o, own), of_keys(k, passing), of_keys(v, passing), p, stats, dq);
  });
}

size_t workspace_bytes(const Problem& p) {
  return size_t(p.batch) * p.heads * ceil_div(p.seq_q, passing) * 2 * passing * sizeof(float);
}

}  // namespace

extern const attention::Backward wide_backward;
constinit const attention::Backward wide_backward = {
    .unsupported = attention::not_for_hopper_to_256, .workspace_bytes = workspace_bytes, .run = run};

}  // namespace hopper
