// Chapter 10, rung 29, columns, backward: LSE and delta are columns of the products.
//
//   prepare_columns  a few lanes per query: log2(e) LSE and delta = rowsum(dO o O), and further columns of Q and dO,
//                    made of them; zeros in dQ for rows that see no key
//   gradients        a thread block owns Bc = 128 rows of K and V and its share of their gradients, as in deferred
//   sum_shares       adds up the shares of dK and dV, where there are several (attention/backward_shares.h)
//
// What changed since deferred: P = 2^(c S - LSE) and dS = P o (dP - delta) need two numbers of each query, and the
// fragments of S^T and dP^T have all queries of a tile in every thread. So each thread loaded all of them from shared
// memory, which is the limit: 512 of 3328 clocks of a tile at D = 64. But S - LSE / c is a product, too, if Q has a
// further column -LSE / c, and K one of ones; and so is dP - delta, with a column of dO and one of V. The accumulators
// then begin with -LSE / c and -delta, and nobody loads them.
//
// 16 bits are not enough for LSE, so each number becomes three columns, parts 0 to 2: x = 2^15 x0 + 2^4 x1 + 2^-4 x2,
// where x0 is x / 2^15 rounded, x1 is made of what is left, and x2 of what is left then. K and V have the factors in
// these columns, the same in each row, so they are a fragment of A that a thread makes itself. Of Q and dO a row has
// the three of LSE, the three of delta, and two zeros: 16 bytes, without a swizzle. An instruction takes 16 columns:
// the second eight are the first ones again, with factors of 0.
//
// 0 times infinity is NaN, and would reach what it must not, since both products read all of a row. So what a column
// cannot hold (infinities, NaN, and what is larger than 2^31) is 0 there. A tile that has any such number says so, and
// its threads subtract those as before, from what prepare_columns has left in global memory.
//
// In bf16 dS is held 2^12 times as large, as P is, until dQ and dK leave: the subtraction of delta, which took the
// factor out for nothing, is gone. In fp16, where dS could overflow, a multiplication takes it out.
//
// Predicted, over prompt, H200, bf16, N = 8192, no mask, launch by launch and back to back: 1.08 and 1.075 at D = 64,
// as a trial had it, 1.04 and 1.03 at D = 128; half of that in fp16. Measured: backward.md.
#include <cstdint>

#include "attention/backward_shares.h"
#include "attention/backward_workspace.h"
#include "attention/padded.h"
#include "attention/schedule.h"
#include "device/bulk_copy.h"
#include "device/dependent_launch.h"
#include "device/dq_in_turn.h"
#include "device/elect.h"
#include "device/further_columns.h"
#include "device/mbarrier.h"
#include "device/named_barrier.h"
#include "device/numeric.h"
#include "device/proxy_fence.h"
#include "device/ring.h"
#include "device/setmaxnreg.h"
#include "device/swizzled_tile.h"
#include "device/tensor_map.h"
#include "device/warpgroup_backward.h"
#include "device/watch.h"

namespace hopper {

extern const attention::Backward wide_backward;  // for D = 192 and 256

using attention::BackwardArgs;
using attention::Problem;

size_t workspace_of_shared(const Problem& p);

namespace {

using attention::KeyTile;
using attention::QueryOrder;
using namespace warpgroup_backward;

constexpr int consumers = 2, threads = warpgroup_threads * (consumers + 1);
constexpr int Bc = wgmma_rows * consumers;  // keys of a thread block, wgmma_rows to a consumer

constexpr int part_size = 64 * 64;  // a consumer's part of a tile of dQ: 64 columns of 64 queries

// 65536 registers are 168 for each of 384 threads, in multiples of 8: 24 + 2 * 240 = 3 * 168.
constexpr int producer_registers = 24, consumer_registers = 240;

template <int D_>
struct Shape {
  static constexpr int D = D_, Bc = hopper::Bc;
  static constexpr int Br = 128 * 64 / D;                 // queries of a tile: S^T and dP^T take Br / 2 registers each
  static constexpr int threads = 256, parts = consumers;  // of prepare_turns; parts of a tile of dQ, 64 x 64 each
};

template <class T, int D>
using Columns = FurtherColumns<T, Shape<D>::Br>;

template <class T, int D>
struct Shared {
  static constexpr int Br = Shape<D>::Br;
  Columns<T, D> columns;  // of one tile: they are read in its first products
  int ticket;
  Mbarrier kv_full, full[2], empty[2], columns_full, columns_empty, ds_full[2], ds_empty[2], dq_full[2][consumers],
      dq_ready[2][consumers];
  alignas(tile_alignment) T k[Bc * D];  // each tile in D / 64 pages of 128 bytes a row, swizzled
  T v[Bc * D];
  T q[2][Br * D], d_o[2][Br * D];     // two tiles, as all that follows
  T ds[2][Br * Bc];                   // dS in two pages, each for the keys of one consumer
  float dq[2][consumers][part_size];  // fragments of dQ^T
};
static_assert(sizeof(Shared<__half, 64>) <= 227 * 1024);  // what a thread block can have

// Starts the copies of a block. One thread.
template <class T, int D, class Order>
__device__ __forceinline__ void load(Shared<T, D>& smem, const TensorMap& q_map, const TensorMap& k_map,
                                     const TensorMap& v_map, const TensorMap& d_o_map, const Columns<T, D>* columns,
                                     KeyTile work, Order order, int kv_head) {
  constexpr int Br = Shape<D>::Br;
  mbarrier_arrive_expect_tx(&smem.kv_full, 2 * Bc * D * sizeof(T));
  tensor_load(smem.k, k_map, &smem.kv_full, 0, work.j0, 0, kv_head);
  tensor_load(smem.v, v_map, &smem.kv_full, 0, work.j0, 0, kv_head);
  Ring<2> ring;
  Ring<1> own;  // of the columns
#pragma unroll 1
  for (int head = work.first_head; head < work.first_head + work.heads; head++)
#pragma unroll 1
    for (int step = work.head_tiles - 1; step >= work.start; step--, ring.advance(), own.advance()) {
      const int i = order.tile(step);
      mbarrier_wait(&smem.empty[ring.place], ring.parity ^ 1);
      Mbarrier* full = &smem.full[ring.place];
      mbarrier_arrive_expect_tx(full, 2 * Br * D * sizeof(T));
      tensor_load(smem.q[ring.place], q_map, full, 0, i * Br, 0, head);
      tensor_load(smem.d_o[ring.place], d_o_map, full, 0, i * Br, 0, head);
      mbarrier_wait(&smem.columns_empty, own.parity ^ 1);
      mbarrier_arrive_expect_tx(&smem.columns_full, sizeof(Columns<T, D>));
      bulk_load(&smem.columns, columns + size_t(head) * work.head_tiles + i, sizeof(Columns<T, D>), &smem.columns_full);
    }
}

// 2^12 P^T in the place of S^T - LSE / c. `lse` is null, unless the columns have left out some LSE.
template <int queries, class VisibleKeys>
__device__ __forceinline__ void make_p_of_columns(float (&x)[1][queries / 8][4], float scale_log2, const float* lse,
                                                  VisibleKeys visible_keys) {
#pragma unroll
  for (int n = 0; n < queries / 8; n++)
    for (int r = 0; r < 4; r++) x[0][n][r] *= scale_log2;
  if (lse) subtract_left_out<queries>(x, lse, scale_log2, 1);
#pragma unroll
  for (int n = 0; n < queries / 8; n++)
    for (int r = 0; r < 4; r++) x[0][n][r] = exp2_approx(x[0][n][r]);
  hide_p<queries>(x, visible_keys);
}

// A consumer's 64 keys.
template <class T, int D, class Order>
__device__ __forceinline__ void differentiate(Shared<T, D>& smem, const Problem& p, KeyTile work, Order order,
                                              int shares, const float* stats, float* parts, T* dk, T* dv) {
  constexpr int Br = Shape<D>::Br;
  const int consumer = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0), lane = threadIdx.x % 32;
  const int warp_key = __shfl_sync(0xffffffff, threadIdx.x / 32, 0) * 16;  // the first of the warp's 16 keys
  const Watched kv_rows = {int64_t(work.kv_head / shares) * p.seq_k + work.j0 + warp_key, 0,
                           p.seq_k - work.j0 - warp_key, D};
  const T *k_rows = smem.k + consumer * wgmma_rows * page_row, *v_rows = smem.v + consumer * wgmma_rows * page_row;
  // Of dQ^T, at D = 128 each consumer makes 64 of the columns of all queries, at D = 64 all columns of 64 queries.
  const T* k_columns = smem.k + (D == 128 ? consumer * Bc * page_row : 0);
  const int first_query = D == 128 ? 0 : consumer * 64;

  const float scale = p.scale / ds_factor<T>;  // of dQ and dK
  // A tile of queries: the nth that this block comes by. It and the one before it are in the two places of shared
  // memory.
  struct Place {
    int n, head, step;
    __device__ int place() const { return n % 2; }
    __device__ int parity() const { return n / 2 % 2; }
  };
  const auto after = [&](Place at) -> Place {
    return at.step > work.start ? Place{at.n + 1, at.head, at.step - 1}
                                : Place{at.n + 1, at.head + 1, work.head_tiles - 1};
  };
  const auto before = [&](Place at) -> Place {
    return at.step < work.head_tiles - 1 ? Place{at.n - 1, at.head, at.step + 1}
                                         : Place{at.n - 1, at.head - 1, work.start};
  };
  const auto exists = [&](const Place& at) { return at.head < work.first_head + work.heads; };

  float dv_reg[1][D / 8][4] = {}, dk_reg[1][D / 8][4] = {};

  // 1. and 2.: P^T and dS^T of a tile, as A of dV and dK.
  const auto weigh = [&](const Place& at, uint32_t(&p_half)[1][Br / 16][4], uint32_t(&ds_half)[1][Br / 16][4]) {
    const int i = order.tile(at.step), place = at.place();
    const Watched tile = {int64_t(at.head) * p.seq_q + i * Br, work.j0 + warp_key, p.seq_q - i * Br,
                          p.seq_k - work.j0 - warp_key};

    watch_step("1. S = Q K^T, dP = dO V^T");  // transposed
    float p_reg[1][Br / 8][4], ds_reg[1][Br / 8][4];
    mbarrier_wait(&smem.full[place], at.parity());
    mbarrier_wait(&smem.columns_full, at.n % 2);
    start_s_and_dp<Bc, D, Br>(p_reg, ds_reg, k_rows, v_rows, smem.q[place], smem.d_o[place], smem.columns);
    const bool any_left_out = smem.columns.any_left_out();
    const auto of_tile = [&] { return stats + (size_t(at.head) * work.head_tiles + i) * 2 * Br; };

    watch_step("2. P = exp(S - LSE), dS = P (dP - delta)");  // transposed; dS to shared memory, too
    wgmma_wait<1>(p_reg);
    const auto visible = [&](int row) { return p.visible_keys(i * Br + row) - work.j0 - warp_key; };
    const float* const lse = any_left_out ? of_tile() : nullptr;
    make_p_of_columns<Br>(p_reg, p.scale * log2_e, lse, visible);  // beside a product, in machine code too
    swizzled_tile::round_fragments<T, Br>(p_half, p_reg);
    watch_transpose("P", tile, p_reg, 1 / p_factor);
    wgmma_wait<0>(ds_reg);
    __syncwarp();  // all lanes have read whether anything is left out
    if (lane == 0) mbarrier_arrive(&smem.columns_empty);
    make_ds_of_columns<T, Br>(ds_reg, p_reg, any_left_out ? of_tile() + Br : nullptr);
    watch_transpose("dS", tile, ds_reg, 1 / ds_factor<T>);
    swizzled_tile::round_fragments<T, Br>(ds_half, ds_reg);
    mbarrier_wait(&smem.ds_empty[place], at.parity() ^ 1);
    swizzled_tile::store_transpose<Br, Br>(smem.ds[place] + consumer * Br * page_row, ds_half, threadIdx.x / 32 % 4);
    fence_proxy_async();
    __syncwarp();  // the warp's part of dS is in shared memory
    if (lane == 0) mbarrier_arrive(&smem.ds_full[place]);
  };

  // 3.: the products that need these. dQ is of another tile.
  const auto start_dq_of = [&](const Place& at, float(&dq_reg)[1][8][4]) {
    mbarrier_wait(&smem.ds_full[at.place()], at.parity());
    wgmma_fence();
    start_dq<Bc, Br>(dq_reg, k_columns, smem.ds[at.place()] + first_query * page_row);
  };
  const auto start_dv_and_dk = [&](const Place& at, const uint32_t(&p_half)[1][Br / 16][4],
                                   const uint32_t(&ds_half)[1][Br / 16][4]) {
    start_sum<D, Br>(dv_reg, p_half, smem.d_o[at.place()]);
    start_sum<D, Br>(dk_reg, ds_half, smem.q[at.place()]);
  };
  const auto end_dv_and_dk = [&](const Place& at) {
    wgmma_wait<0>(dv_reg, dk_reg);
    watch("dV", kv_rows, dv_reg, 1 / p_factor);
    watch("dK", kv_rows, dk_reg, scale);
    if (lane == 0) mbarrier_arrive(&smem.empty[at.place()]);
  };

  // dQ of a tile, to where another warp takes it from.
  const auto hand_over = [&](const Place& at, float(&dq_reg)[1][8][4]) {
    const int i = order.tile(at.step), place = at.place();
    const int64_t q_row = int64_t(at.head) * p.seq_q + i * Br;
    watch_transpose("dQ", {q_row + first_query, warp_key % D, p.seq_q - i * Br - first_query, 16}, dq_reg, scale);
    mbarrier_wait(&smem.dq_ready[place][consumer], at.parity());
    float4* dq = reinterpret_cast<float4*>(smem.dq[place][consumer]) + threadIdx.x % warpgroup_threads;
    if (order.template is_last<Br>(p, i)) {
      if (order.turn(i) > 0) {
#pragma unroll
        for (int n = 0; n < 8; n++) {
          const float4 others = dq[n * warpgroup_threads];
          dq_reg[0][n][0] += others.x, dq_reg[0][n][1] += others.y;
          dq_reg[0][n][2] += others.z, dq_reg[0][n][3] += others.w;
        }
        named_barrier_sync(2 + consumer,
                           warpgroup_threads);  // the consumer has read the sum, and dQ may take its place
      }
#pragma unroll
      for (int n = 0; n < 8; n++)
        for (int r = 0; r < 4; r++) dq_reg[0][n][r] *= scale;
      uint32_t dq_half[1][4][4];
      swizzled_tile::round_fragments<T, 64>(dq_half, dq_reg);
      swizzled_tile::store_transpose<64, 64>(reinterpret_cast<T*>(smem.dq[place][consumer]), dq_half,
                                             threadIdx.x / 32 % 4);
    } else {
#pragma unroll
      for (int n = 0; n < 8; n++)
        dq[n * warpgroup_threads] = make_float4(dq_reg[0][n][0], dq_reg[0][n][1], dq_reg[0][n][2], dq_reg[0][n][3]);
    }
    fence_proxy_async();
    __syncwarp();  // the warp's part of dQ is in shared memory
    if (lane == 0) mbarrier_arrive(&smem.dq_full[place][consumer]);
  };

  mbarrier_wait(&smem.kv_full, 0);
  if (work.start < work.head_tiles) {
    Place at = {0, work.first_head, work.head_tiles - 1};
    float dq_reg[1][8][4];
#pragma unroll 1
    for (; exists(at); at = after(at)) {
      uint32_t p_half[1][Br / 16][4], ds_half[1][Br / 16][4];
      weigh(at, p_half, ds_half);
      watch_step("3. dQ += dS K of the tile before, dV += P^T dO, dK += dS^T Q");
      if (at.n > 0) {
        start_dq_of(before(at), dq_reg);
        start_dv_and_dk(at, p_half, ds_half);
        wgmma_wait<2>(dq_reg);
        if (lane == 0) mbarrier_arrive(&smem.ds_empty[before(at).place()]);
        hand_over(before(at), dq_reg);
      } else {
        wgmma_fence();
        start_dv_and_dk(at, p_half, ds_half);
      }
      end_dv_and_dk(at);
    }
    watch_step("4. dQ += dS K of the last tile");
    start_dq_of(before(at), dq_reg);
    wgmma_wait<0>(dq_reg);
    hand_over(before(at), dq_reg);
  }

  named_barrier_sync(1, warpgroup_threads * consumers);  // everyone is done with K and V
  const int rows_left = p.seq_k - work.j0 - warp_key;
  const size_t row = size_t(work.kv_head) * p.seq_k + work.j0 + warp_key;  // over all shares
  if (shares == 1) {
    swizzled_tile::store_rows<Bc, D>(dv + row * D, smem.v + warp_key * page_row, dv_reg, 1 / p_factor, rows_left);
    swizzled_tile::store_rows<Bc, D>(dk + row * D, smem.k + warp_key * page_row, dk_reg, scale, rows_left);
  } else {
    const size_t size = size_t(p.batch) * p.kv_heads * shares * p.seq_k * D;  // of all shares of dV
    store_fp32<D>(parts + row * D, dv_reg, 1 / p_factor, rows_left);
    store_fp32<D>(parts + size + row * D, dk_reg, scale, rows_left);
  }
}

// prepare_turns() of device/backward_tile.h, and the columns.
template <class T, int D>
__global__ void prepare_columns(Problem p,
                                const T* o,              // [B, H, Nq, D]
                                const float* lse,        // [B, H, Nq]
                                const T* d_o,            // [B, H, Nq, D]
                                float* stats,            // [B * H * tiles][2][Br]
                                Columns<T, D>* columns,  // [B * H * tiles]
                                int* turns,              // [B * H * tiles][consumers]
                                int* tickets,
                                T* dq)  // [B, H, Nq, D]
{
  using S = Shape<D>;
  const PreparedRow own = prepare_row_and_turns<T, S>(p, o, lse, d_o, stats, turns, tickets, dq);
  const bool exists = own.i < unsigned(p.seq_q);  // else its Q and dO are 0, and so is all that a finite P makes of it
  store_columns(columns[own.tile], own.row, own.lane == 0, exists ? -own.statistics.lse / (p.scale * log2_e) : 0,
                -own.statistics.row_sum * p_factor);
}

template <class T, int D, bool cyclic>
__global__ void __launch_bounds__(threads, 1)
    gradients(const __grid_constant__ TensorMap q_map,    // of Q [B * H, D / 64, Nq, 64], in boxes of Br rows
              const __grid_constant__ TensorMap k_map,    // of K [B * Hkv, D / 64, Nk, 64], in boxes of Bc rows
              const __grid_constant__ TensorMap v_map,    // of V, likewise
              const __grid_constant__ TensorMap d_o_map,  // of dO, as of Q
              const __grid_constant__ TensorMap dq_map,   // of dQ, likewise, in boxes of 64 rows
              Problem p, int shares, int round_heads,
              const float* stats,            // [B * H * tiles][2][Br], of LSE, then of delta
              const Columns<T, D>* columns,  // [B * H * tiles]: the same
              float* dq_sum,  // [B * H * tiles][consumers][8][128][4]: fragments of dQ^T of their threads
              int* turns,     // [B * H * tiles][consumers]: the turn that may add to dq_sum
              int* tickets,   // drawn so far
              float* parts,   // [2][B, Hkv, shares, Nk, D], of dV, then of dK, if there are several shares
              T* dk,          // [B, Hkv, Nk, D]
              T* dv)          // [B, Hkv, Nk, D]
{
  Shared<T, D>& smem = *dynamic_shared<Shared<T, D>, tile_alignment>();
  if (threadIdx.x == 0) {
    mbarrier_init(&smem.kv_full, 1);
    mbarrier_init(&smem.columns_full, 1);
    mbarrier_init(&smem.columns_empty, 4 * consumers);  // their warps
    for (int i = 0; i < 2; i++) {
      mbarrier_init(&smem.full[i], 1);
      for (Mbarrier* all : {&smem.empty[i], &smem.ds_full[i], &smem.ds_empty[i]})
        mbarrier_init(all, 4 * consumers);  // their warps
      for (int consumer = 0; consumer < consumers; consumer++) {
        mbarrier_init(&smem.dq_full[i][consumer], 4);
        mbarrier_init(&smem.dq_ready[i][consumer], 1);
      }
    }
    fence_mbarrier_init();
  }
  grid_dependency_wait();  // what the kernel before this one has written is in global memory
  if (threadIdx.x == 0) smem.ticket = atomicAdd(tickets, 1);
  __syncthreads();  // the mbarriers are there, and the ticket

  // Its `kv_head` is counted over all shares.
  const KeyTile work = attention::key_tile<Bc, Shape<D>::Br>(attention::with_shares(p, shares), round_heads,
                                                             __shfl_sync(0xffffffff, smem.ticket, 0));
  const QueryOrder<Bc, cyclic> order(p, work);
  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / warpgroup_threads, 0);
  if (warpgroup == consumers) {
    setmaxnreg_dec<producer_registers>();
    const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32 % 4, 0);
    if (warp == consumers && elect_one())
      load(smem, q_map, k_map, v_map, d_o_map, columns, work, order, work.kv_head / shares);
    else if (warp < consumers && elect_one())
      add_dq<Shape<D>>(smem, dq_map, p, dq_sum, turns, work, order, warp);
  } else {
    setmaxnreg_inc<consumer_registers>();
    differentiate(smem, p, work, order, shares, stats, parts, dk, dv);
  }
}

template <int D>
constexpr size_t columns_bytes = sizeof(Columns<__half, D>);

// Where the columns begin in the workspace: behind that of shared.
size_t before_columns(const Problem& p) {
  constexpr size_t alignment = 16;
  return (workspace_of_shared(p) + alignment - 1) / alignment * alignment;
}

template <int D>
size_t bytes_with_columns(const Problem& p) {
  return before_columns(p) + attention::BackwardTiles<Shape<D>>(p).q_tiles * columns_bytes<D>;
}

size_t workspace_bytes(const Problem& p) {
  return p.head_dim == 64 ? bytes_with_columns<64>(p) : bytes_with_columns<128>(p);
}

void run(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    using S = Shape<D>;
    const int heads = p.batch * p.heads, kv_heads = p.batch * p.kv_heads, shares = attention::backward_shares<S>(p);
    const auto [q, k, v, o, d_o, dq, dk, dv] = attention::tensors_of<T>(args);
    const attention::BackwardTiles<S> tiles(p);
    const auto [dq_sum, stats, turns, tickets] = attention::BackwardWorkspace::of(args.workspace, tiles, consumers);
    float* const parts = attention::parts_of_shares<S>(p, args.workspace, consumers);
    auto* const columns = reinterpret_cast<Columns<T, D>*>(static_cast<char*>(args.workspace) + before_columns(p));
    const TensorMap q_map = tile_map<D>(q, heads, p.seq_q, S::Br), d_o_map = tile_map<D>(d_o, heads, p.seq_q, S::Br);
    const TensorMap k_map = tile_map<D>(k, kv_heads, p.seq_k, Bc), v_map = tile_map<D>(v, kv_heads, p.seq_k, Bc);
    const TensorMap dq_map = tile_map<D>(dq, heads, p.seq_q, 64, D, 1);
    launch(prepare_columns<T, D>, {tiles.row_blocks, S::threads, 0, stream}, p, o, args.lse, d_o, stats, columns, turns,
           tickets, dq);
    const unsigned blocks = tiles.key_blocks * shares;
    const bool together = p.mask == attention::Mask::none && blocks <= unsigned(multiprocessors());
    launch_grid(together ? gradients<T, D, true> : gradients<T, D, false>,
                {blocks, threads, sizeof(Shared<T, D>), stream}, together ? Blocks::together : Blocks::dependent, q_map,
                k_map, v_map, d_o_map, dq_map, p, shares,
                attention::kv_heads_that_share_the_l2(attention::with_shares(p, shares)), stats, columns, dq_sum, turns,
                tickets, parts, dk, dv);
    attention::launch_sum_shares<T, D>(p, shares, Blocks::dependent, stream, parts, dk, dv);
  });
}

}  // namespace

bool columns_pay(const Problem& p) {
  const auto with_head_dim = [&]<int D>() {
    using S = Shape<D>;
    const int shares = attention::backward_shares<S>(p), queries = p.heads / p.kv_heads / shares * p.seq_q;
    const bool at_a_time = attention::BackwardTiles<S>(p).key_blocks * shares <= unsigned(multiprocessors());
    if (p.mask == attention::Mask::none) return queries >= (at_a_time ? 4096 : 1024);
    return queries >= (D == 64 ? 4096 : 2048);
  };
  return p.head_dim <= 64 ? with_head_dim.template operator()<64>() : with_head_dim.template operator()<128>();
}

namespace {

constexpr attention::Backward unpadded = {
    .unsupported = attention::not_for_hopper_to_256, .workspace_bytes = workspace_bytes, .run = run};

}  // namespace

extern const attention::Backward columns_backward;
constinit const attention::Backward columns_backward =
    attention::padded<unpadded, attention::next_64_128_192_256, wide_backward>;

}  // namespace hopper
