// Chapter 11, rung 5, deep: two stages are on their way while one is computed.
//
// A thread block of four warps owns Br = 16 rows, the height of an mma, of the queries of one kv head, and one part of
// the keys. Keys come in stages of four tiles of Bc. Shared memory has room for three stages. For each stage:
//
//   0. the copies of the stage after the next one start
//
// and for its tile of the stage each warp has
//
//   1. S = Q K^T                              16 x Bc, in registers
//   2. x = scale log2(e) S - m                -inf where hidden; if no x > headroom (a warp vote), that is all;
//                                             otherwise m rises until the largest is `start`, and l and O follow
//   3. P = 2^x   l = l + rowsum P   O = O + P V
//
// with an m, l and O of its own. At the end the block merges the four of them, in the order of the warps, and O / l and
// m + log2(l) go to the workspace. The kernel in merge.cu makes one O and LSE of the parts.
//
// What changed since 4_narrow: shared memory is a ring of `stages` stages.
//   - A block waits for the copies that it started two stages ago, not for those of the stage before. A multiprocessor
//     has two blocks of 96 KB where it had three; but 128 KB are on their way to them, and not 96 KB.
//   - Q goes from memory to registers: with it in shared memory a block would take 100 KB, more than some GPUs have.
//
// Expected limit: memory, for tiles of 16 rows.
#include <cmath>
#include <cstdint>

#include "attention/dispatch.h"
#include "attention/key_parts.h"
#include "attention/padded.h"
#include "device/cp_async.h"
#include "device/forward_tile.h"
#include "device/lazy_softmax.h"
#include "device/ldmatrix.h"
#include "device/math.h"
#include "device/mma.h"
#include "device/numeric.h"
#include "device/swizzle.h"
#include "device/watch.h"

namespace split_kv {
namespace {

using attention::ForwardArgs;
using attention::Problem;
using forward_tile::copy_tile;
using key_parts::group_rows;
using key_parts::merge;
using key_parts::number_of_parts;
using key_parts::Parts;
using lazy_softmax::headroom;  // the threshold of rescaling
using lazy_softmax::start;     // x of the row maximum when m is set
using swizzled_tile::page_row;
using swizzled_tile::position;
using swizzled_tile::right_of;  // the XOR swizzle, 16 columns a step

constexpr int warps = 4, threads = 32 * warps;
constexpr int Br = 16;     // rows of a thread block, and of each of its warps
constexpr int blocks = 2;  // per multiprocessor: 96 KB each
constexpr int stages = 3;  // in shared memory

template <int D>
struct Shape {
  static constexpr int Bc = 2048 / D;       // keys in a warp's tile: 16 or 32
  static constexpr int stage = warps * Bc;  // keys per barrier
  static constexpr int pitch = D + 8;       // of O in shared memory: eight rows in banks of their own
};

template <class T, int D>
__global__ void __launch_bounds__(threads, blocks) forward(Problem p, int parts,
                                                           const T* q,        // [B, H, Nq, D]
                                                           const T* k,        // [B, Hkv, Nk, D]
                                                           const T* v,        // [B, Hkv, Nk, D]
                                                           float* o_parts,    // [B, H, Nq, parts, D]
                                                           float* lse_parts)  // [B, H, Nq, parts], base 2
{
  constexpr int Bc = Shape<D>::Bc, stage = Shape<D>::stage, pitch = Shape<D>::pitch;
  T* kv_smem = dynamic_shared<T>();  // [stages][K and V][stage][D]

  const int rows = group_rows(p), row_tiles = (rows + Br - 1) / Br;
  const int part = blockIdx.x % parts, tile = blockIdx.x / parts;
  const int kv_head = tile / row_tiles, r0 = tile % row_tiles * Br;
  const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);  // of lane 0, so the compiler knows that all agree
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const unsigned q_row = kv_head * rows + r0, kv_row = kv_head * p.seq_k;  // the first, over all heads
  // Keys that any row of the tile sees, and that all of them see.
  const int i0 = r0 % p.seq_q;
  const int most = p.visible_keys(min(i0 + Br, p.seq_q) - 1), least = p.visible_keys(i0 + Br > p.seq_q ? 0 : i0);
  const int64_t all = (most + stage - 1) / stage;  // stages of keys
  const int begin = int(all * part / parts) * stage, end = min(int(all * (part + 1) / parts) * stage, most);
  const float scale_log2 = p.scale * log2_e;

  // Starts copying the keys from j on to place `place` of the ring, a stage of them, unless the part ends before.
  const auto copy_stage = [&](int place, int j) {
    T* to = kv_smem + place * 2 * stage * D;
    if (j < end) {
      copy_tile<D, stage>(to, k + size_t(kv_row + j) * D, end - j);
      copy_tile<D, stage>(to + stage * D, v + size_t(kv_row + j) * D, end - j);
    }
    cp_async_commit();
  };
  for (int i = 0; i < stages - 1; i++) copy_stage(i, begin + i * stage);

  // The row of a 16 x 16 block whose address this lane gives to ldmatrix (drawn in device/swizzle.h).
  const int qv_lane = position<16>(lane % 16, lane / 16);                   // Q and V: down, then right
  const int k_lane = position<16>(lane / 16 * 8 + lane % 8, lane / 8 % 2);  // K: right, then down

  uint32_t q_reg[D / 16][4];  // A fragments
#pragma unroll
  for (int step = 0; step < D / 16; step++)
    for (int r = 0; r < 4; r++) {
      const int row = r % 2 * 8 + g, column = 16 * step + r / 2 * 8 + 2 * t;
      q_reg[step][r] = r0 + row < rows ? *reinterpret_cast<const uint32_t*>(q + size_t(q_row + row) * D + column) : 0;
    }

  float o_reg[D / 8][4] = {};
  // Of rows 8 h + g: m, and -l, which is inf until m is set. l only over this lane's columns, until the end.
  float m[2] = {}, minus_l[2] = {INFINITY, INFINITY};

  int place = 0;  // of the stage in the ring
#pragma unroll 1
  for (int j0 = begin; j0 < end; j0 += stage) {
    cp_async_wait<stages - 2>();
    __syncthreads();  // this stage is in shared memory, and everyone is done with the stage before
    const T* k_smem = kv_smem + place * 2 * stage * D + warp * Bc * page_row;  // this warp's tile
    copy_stage(place == 0 ? stages - 1 : place - 1, j0 + (stages - 1) * stage);
    place = place == stages - 1 ? 0 : place + 1;

    watch_step("1. S = Q K^T");
    float s_reg[Bc / 8][4] = {};
#pragma unroll
    for (int step = 0; step < D / 16; step++) {
#pragma unroll
      for (int n = 0; n < Bc / 16; n++) {
        uint32_t k_reg[4];  // K^T of 16 keys: two B fragments
        ldmatrix_x4(k_reg, k_smem + right_of<stage>(k_lane, step) + n * 16 * page_row);
        mma_m16n8k16<T>(s_reg[2 * n], q_reg[step], k_reg);
        mma_m16n8k16<T>(s_reg[2 * n + 1], q_reg[step], k_reg + 2);
      }
    }

    const int first = j0 + warp * Bc;  // the tile's first key
    const Watched scores = {q_row, first, rows - r0, end - first};
    watch("S", scores, s_reg, p.scale);

    watch_step("2. x = S - m; m rises only if it must, then O *= correction");
    // x, in place of S, and the largest of all x and -l. -l is inf while a row has no m, and below 0 later. From
    // 0 up, floats are in the order of their bits, and the largest of three integers is a single instruction of sm_90.
    int largest[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
      largest[h] = __float_as_int(minus_l[h]);
      for (int n = 0; n < Bc / 8; n++) {
        float* x = s_reg[n] + 2 * h;
        for (int c = 0; c < 2; c++) x[c] = fmaf(x[c], scale_log2, -m[h]);
        largest[h] = max(max(largest[h], __float_as_int(x[0])), __float_as_int(x[1]));
      }
    }
    const bool above =
        __any_sync(0xffffffff, max(largest[0], largest[1]) > __float_as_int(headroom));  // hidden ones too
    if (first + Bc > least) {  // across the diagonal, or the end of the keys
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const int r = r0 + 8 * h + g, i = r % p.seq_q;
        const int visible = p.visible_keys(i) - first - 2 * t;
        for (int n = 0; n < Bc / 8; n++)
          for (int c = 0; c < 2; c++)
            if (8 * n + c >= visible) s_reg[n][2 * h + c] = -INFINITY;
      }
    }
    if (above) {
#pragma unroll
      for (int h = 0; h < 2; h++) {
        float top = -INFINITY;  // the row maximum
        for (int n = 0; n < Bc / 8; n++) top = fmaxf(top, fmaxf(s_reg[n][2 * h], s_reg[n][2 * h + 1]));
        top = quad_max(top);
        const bool sets = minus_l[h] > 0 && top > -INFINITY;  // m for the first time, up or down
        const float rise = sets || top > headroom ? top - start : 0;
        const float correction = rise > 0 ? exp2_approx(-rise) : 1;
        m[h] += rise;
        minus_l[h] = sets ? 0 : minus_l[h] * correction;
        for (int n = 0; n < Bc / 8; n++)
          for (int c = 0; c < 2; c++) s_reg[n][2 * h + c] -= rise;
        for (int n = 0; n < D / 8; n++)
          for (int c = 0; c < 2; c++) o_reg[n][2 * h + c] *= correction;
      }
    }

    watch_step("3. P, and O += P V");
    // 16 keys at a time: two C fragments of S, side by side, are an A fragment of P
#pragma unroll
    for (int step = 0; step < Bc / 16; step++) {
      uint32_t p_reg[4];
      for (int r = 0; r < 4; r++) {
        const float* x = s_reg[2 * step + r / 2] + r % 2 * 2;
        const float p0 = exp2_approx(x[0]), p1 = exp2_approx(x[1]);
        minus_l[r % 2] -= p0 + p1;
        p_reg[r] = pack2<T>(p0, p1);
        watch_pair("P", scores, 0, step, r, p0, p1);
      }
#pragma unroll
      for (int n = 0; n < D / 16; n++) {
        uint32_t v_reg[4];  // V of 16 columns: two B fragments
        ldmatrix_x4_trans(v_reg, k_smem + stage * D + right_of<stage>(qv_lane, n) + step * 16 * page_row);
        mma_m16n8k16<T>(o_reg[2 * n], p_reg, v_reg);
        mma_m16n8k16<T>(o_reg[2 * n + 1], p_reg, v_reg + 2);
      }
    }
  }
  __syncthreads();  // everyone is done with K and V, whose place step 4 takes

  watch_step("4. O, m and l of the warps merged");
  // O, m and l of the four warps
  float* o_smem = reinterpret_cast<float*>(kv_smem);  // [warps][Br][pitch]
  float* m_smem = o_smem + warps * Br * pitch;        // [warps][Br]
  float* l_smem = m_smem + warps * Br;                // [warps][Br]
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int row = warp * Br + 8 * h + g;
    const float minus_sum = quad_sum(minus_l[h]);
    if (t == 0) {
      m_smem[row] = minus_sum > 0 ? -INFINITY : m[h];  // the warp has shown the row no key
      l_smem[row] = minus_sum > 0 ? 0 : -minus_sum;
    }
    for (int n = 0; n < D / 8; n++)
      *reinterpret_cast<float2*>(o_smem + row * pitch + 8 * n + 2 * t) =
          make_float2(o_reg[n][2 * h], o_reg[n][2 * h + 1]);
  }
  __syncthreads();  // they are in shared memory
  for (int i = threadIdx.x; i < Br * D / 4; i += threads) {
    const int row = i / (D / 4), column = i % (D / 4) * 4;
    if (r0 + row >= rows) break;
    float top = -INFINITY, l = 0, o[4] = {};
    for (int w = 0; w < warps; w++) top = fmaxf(top, m_smem[w * Br + row]);
    for (int w = 0; w < warps; w++) {
      const float weight = l_smem[w * Br + row] == 0 ? 0 : exp2_approx(m_smem[w * Br + row] - top);
      l += weight * l_smem[w * Br + row];
      for (int c = 0; c < 4; c++) o[c] += weight * o_smem[(w * Br + row) * pitch + column + c];
    }
    const float inverse = l == 0 ? 0 : 1 / l;  // l = 0: the row sees no key of this part
    const size_t to = size_t(q_row + row) * parts + part;
    *reinterpret_cast<float4*>(o_parts + to * D + column) =
        make_float4(o[0] * inverse, o[1] * inverse, o[2] * inverse, o[3] * inverse);
    if (column == 0) lse_parts[to] = top + log2_approx(l);
  }
}

unsigned tiles(const Problem& p) { return unsigned(p.batch) * p.kv_heads * ceil_div(group_rows(p), Br); }

// As many parts as give every multiprocessor all thread blocks that it can have at a time, and no more than stages.
template <int D>
int parts(const Problem& p) {
  return number_of_parts(tiles(p), blocks, ceil_div(p.seq_k, Shape<D>::stage));
}

size_t workspace_bytes(const Problem& p) { return Parts::bytes(p, p.head_dim == 64 ? parts<64>(p) : parts<128>(p)); }

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    const auto [q, k, v, o] = attention::tensors_of<T>(args);
    const int n = parts<D>(p);
    const Parts made(p, n, args.workspace);
    const size_t shared_bytes = 2 * stages * Shape<D>::stage * D * sizeof(T);
    launch(forward<T, D>, {tiles(p) * n, threads, shared_bytes, stream}, p, n, q, k, v, made.o, made.lse);
    merge(p, n, made, args, stream);
  });
}

constexpr attention::Forward unpadded = {attention::head_dim_not_8_to_128, workspace_bytes, run, true};

}  // namespace

extern const attention::Rung deep;
constinit const attention::Rung deep = {
    .name = "deep",
    .idea = "a ring of stages in shared memory: more bytes are on their way from memory while others are computed",
    .forward = attention::padded<unpadded>};

}  // namespace split_kv
