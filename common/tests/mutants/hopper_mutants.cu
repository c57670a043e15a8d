// Wrong kernels of Hopper's instructions: chapter 10's warpspec, as small as it can be, in clusters of two. The engine
// runs them, and no GPU does: there some would hang, and others would be right by luck.
//
// A thread block owns 64 query rows of a head, and its cluster 128. Warps 0 to 3 multiply; a thread of warp 4 copies Q,
// and half of K and V, through two places, for both blocks. O leaves by a bulk copy, from Q's place.
#include "attention/padded.h"
#include "device/bulk_copy.h"
#include "device/cluster.h"
#include "device/launch.h"
#include "device/lazy_softmax.h"
#include "device/math.h"
#include "device/mbarrier.h"
#include "device/named_barrier.h"
#include "device/proxy_fence.h"
#include "device/swizzled_tile.h"
#include "device/tensor_map.h"
#include "device/wgmma.h"
#include "tests/mutants/mutants.h"

namespace mutants {
namespace {

using attention::ForwardArgs;
using attention::Problem;

constexpr int rows = 64, Bc = 64, places = 2, cluster = 2;

template <class T, int D>
struct Shared {
  T q[rows * D];  // later O
  T k[places][Bc * D], v[places][Bc * D];
  Mbarrier q_full, full[places], empty[places];
};

template <class T, int D>
__device__ void load(Shared<T, D>& smem, const TensorMap& q_map, const TensorMap& k_map, const TensorMap& v_map,
                     const Problem& p, int head, int i0, int tiles, int rank, HopperMutation mutation) {
  constexpr int kv_bytes = 2 * Bc * D * sizeof(T);
  mbarrier_arrive_expect_tx(&smem.q_full, rows * D * sizeof(T));
  tensor_load(smem.q, q_map, &smem.q_full, 0, i0, 0, head);
  for (int j = 0; j < tiles; j++) {
    const int place = j % places;
    if (mutation != HopperMutation::filled_at_once) mbarrier_wait(&smem.empty[place], (j / places + 1) % 2);
    mbarrier_arrive_expect_tx(&smem.full[place],
                              mutation == HopperMutation::bytes_of_k_alone ? kv_bytes / 2 : kv_bytes);
    const uint16_t blocks = mutation == HopperMutation::copied_to_one ? 1 << rank : 3;
    for (int page = 0; page < D / 64; page++) {
      const int half = (page * Bc + rank * Bc / 2) * 64, key = j * Bc + rank * Bc / 2;
      tensor_load_multicast(smem.k[place] + half, k_map, &smem.full[place], blocks, 0, key, page, p.kv_head(head));
      tensor_load_multicast(smem.v[place] + half, v_map, &smem.full[place], blocks, 0, key, page, p.kv_head(head));
    }
  }
}

template <class T, int D>
__device__ void attend(Shared<T, D>& smem, const TensorMap& o_map, const Problem& p, int head, int i0, int tiles,
                       int rank, HopperMutation mutation, float* lse) {
  const int lane = threadIdx.x % 32, g = lane / 4, warp_row = threadIdx.x / 32 * 16;
  float s_reg[1][Bc / 8][4], o_reg[1][D / 8][4] = {};
  uint32_t p_reg[1][Bc / 16][4];
  lazy_softmax::Rows<1> state;
  // This warp no longer needs the place, which both blocks fill.
  const auto release = [&](Mbarrier& empty) {
    const int own_alone = mutation == HopperMutation::told_one_block,
              own_twice = mutation == HopperMutation::told_twice;
    if (lane < (own_alone ? 1 : cluster)) mbarrier_arrive_cluster_read(&empty, own_alone || own_twice ? rank : lane);
  };
  mbarrier_wait(&smem.q_full, 0);
  for (int j = 0; j < tiles; j++) {
    const int place = j % places, phase = j / places;
    mbarrier_wait(&smem.full[place], (phase + (mutation == HopperMutation::phase_before)) % 2);
    wgmma_fence();
    for (int step = 0; step < D / 16; step++)
      wgmma<T>(s_reg[0], wgmma_advance(wgmma_descriptor(smem.q), step / 4 * rows * 128 + step % 4 * 32),
               wgmma_advance(wgmma_descriptor(smem.k[place]), step / 4 * Bc * 128 + step % 4 * 32), step > 0);
    wgmma_commit();
    wgmma_wait<0>(s_reg);
    const bool above = lazy_softmax::subtract_max(s_reg, state, p.scale * 1.44269504f);  // log2(e)
    lazy_softmax::hide(s_reg, [&](int i) { return p.visible_keys(i0 + warp_row + i) - j * Bc; });
    if (above) lazy_softmax::raise(s_reg, o_reg, state);
    lazy_softmax::exponentiate<T>(p_reg, s_reg, state);
    wgmma_fence();
    const int page = (mutation == HopperMutation::page_of_v ? D - 8 : Bc) * 128;
    for (int step = 0; step < Bc / 16; step++)
      wgmma<T, Major::mn>(o_reg[0], p_reg[0][step],
                          wgmma_advance(wgmma_descriptor(smem.v[place], page), step * 16 * 128), true);
    wgmma_commit();
    if (mutation == HopperMutation::refilled_too_early) release(smem.empty[place]);
    wgmma_wait<0>(o_reg);
    if (mutation != HopperMutation::refilled_too_early) release(smem.empty[place]);
  }
  for (int h = 0; h < 2; h++) {
    const int row = i0 + warp_row + 8 * h + g;
    const float l = state.l(0, h), inverse = l > 0 ? 1 / l : 0;
    if (lane % 4 == 0 && row < p.seq_q)
      lse[size_t(head) * p.seq_q + row] = (state.m[0][h] + log2_approx(l)) * 0.693147181f;  // ln(2)
    for (int n = 0; n < D / 8; n++)
      for (int c = 0; c < 2; c++) o_reg[0][n][2 * h + c] *= inverse;
  }
  uint32_t o_half[1][D / 16][4];
  swizzled_tile::round_fragments<T, D>(o_half, o_reg);
  swizzled_tile::store_fragments<rows, D>(smem.q + warp_row * 64, o_half, 0);
  if (mutation != HopperMutation::missing_proxy_fence) fence_proxy_async();
  named_barrier_sync(1, 128);  // O is in shared memory
  if (threadIdx.x > 0 || i0 >= p.seq_q) return;
  tensor_store(o_map, smem.q, 0, i0, 0, head);
  bulk_commit();
  bulk_wait_read<0>();
}

// Of a head, a multiple of the cluster: the last one may have no rows.
__host__ __device__ int row_tiles(const Problem& p) {
  return (p.seq_q + cluster * rows - 1) / (cluster * rows) * cluster;
}

template <class T, int D>
__global__ void __launch_bounds__(160)
    hopper_forward(const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map,
                   const __grid_constant__ TensorMap v_map, const __grid_constant__ TensorMap o_map, Problem p,
                   HopperMutation mutation, float* lse) {
  Shared<T, D>& smem = *dynamic_shared<Shared<T, D>, 1024>();
  if (threadIdx.x == 0) {
    mbarrier_init(&smem.q_full, 1);
    for (int i = 0; i < places; i++) {
      mbarrier_init(&smem.full[i], 1);
      mbarrier_init(&smem.empty[i], 4 * (mutation == HopperMutation::told_one_block ? 1 : cluster));  // warps
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  if (mutation != HopperMutation::begins_alone) cluster_sync();  // the mbarriers of both blocks are there
  const int rank = cluster_rank(), head = blockIdx.x / row_tiles(p), i0 = blockIdx.x % row_tiles(p) * rows;
  const int tiles = max(1, (p.visible_keys(i0 + (cluster - rank) * rows - 1) + Bc - 1) / Bc);  // of both blocks
  if (threadIdx.x < 128)
    attend(smem, o_map, p, head, i0, tiles, rank, mutation, lse);
  else if (threadIdx.x == 128)
    load(smem, q_map, k_map, v_map, p, head, i0, tiles, rank, mutation);
  if (mutation != HopperMutation::ends_alone) cluster_sync();  // nobody copies to this block or arrives there any more
}

template <class T, int D>
void launch_forward(const Problem& p, const ForwardArgs& args, HopperMutation mutation, cudaStream_t stream) {
  const int heads = p.batch * p.heads, kv_heads = p.batch * p.kv_heads;
  const auto rows_of = [&](const void* data) { return tile_map<D>(static_cast<const T*>(data), heads, p.seq_q, rows); };
  const auto half_of = [&](const void* data) {
    return tile_map<D>(static_cast<const T*>(data), kv_heads, p.seq_k, Bc / 2, D, 1);
  };
  launch_clusters(hopper_forward<T, D>, cluster, {unsigned(heads * row_tiles(p)), 160, sizeof(Shared<T, D>), stream},
                  rows_of(args.q), half_of(args.k), half_of(args.v), rows_of(args.o), p, mutation, args.lse);
}

template <HopperMutation mutation>
void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  const auto run_as = [&]<class T>(T) {
    (p.head_dim == 64 ? launch_forward<T, 64> : launch_forward<T, 128>)(p, args, mutation, stream);
  };
  if (p.dtype == attention::DType::fp16)
    run_as(__half());
  else
    run_as(__nv_bfloat16());
}

template <HopperMutation mutation>
constexpr attention::Forward unpadded = {attention::not_for_hopper, [](const Problem&) { return size_t(0); },
                                         run<mutation>, true};

template <size_t... mutation>
auto make_all(std::index_sequence<mutation...>) {
  return std::array{attention::padded<unpadded<HopperMutation(mutation)>>...};
}

}  // namespace

attention::Forward forward(HopperMutation mutation) {
  static const auto forwards = make_all(std::make_index_sequence<size_t(HopperMutation::count)>());
  return forwards[size_t(mutation)];
}

}  // namespace mutants
