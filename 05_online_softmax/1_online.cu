// Chapter 05, rung 1, online: keys come in tiles, and what has been summed up is corrected when the maximum rises.
//
// A thread block of 16 warps owns Br = 8 query rows of one head. For each tile of Bc = 1024 keys (512 on a GPU
// whose blocks have 64 KiB of shared memory):
//
//   1. S = scale * Q K^T        Br x Bc scores, in shared memory; the keys are divided among the warps
//   2. m' = max(m, rowmax S)    P = exp(S - m')    c = exp(m - m')    l = c l + rowsum P      a warp per row
//   3. O = c O + P V            the keys are divided again; O lies in shared memory as well
//
// and at the end O / l and LSE = m + log(l).
//
// What changed since 04/3_unrolled: a loop over tiles stands around the three phases, and the block keeps the scores of
// one tile only. A row's m and l stay with its warp from tile to tile, and O [Br, D] is multiplied by c before a tile's
// share is added. So eight rows fit for every Nk, and their number is a constant.
// watch() shows S, P, m, l, c and O to ./workbook walk. On a GPU it compiles to nothing.
//
// Expected limit: Br, as before. Each element of K and V serves eight rows, and now every tile ends with a sum over
// the warps.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "attention/dispatch.h"
#include "device/fp32_tile.h"
#include "device/limits.h"
#include "device/math.h"
#include "device/numeric.h"
#include "device/watch.h"

namespace online_softmax {
namespace {

using attention::ForwardArgs;
using attention::Problem;
using fp32_tile::store_floats;

constexpr int warps = 16;  // per thread block: often only one block fits on an SM, so it brings many
constexpr int threads = warps * 32;
constexpr int lanes_per_key = 8;  // 8 lanes x 16 bytes: the 128-byte cache line
constexpr int groups = 4;         // of eight lanes, in a warp
constexpr int keys = 4;           // neighbours that a group takes at a time
constexpr int slice = 64;         // of the head dim that one load of a warp covers: lanes_per_key x 8
constexpr int Br = 8;             // query rows of a thread block: one for each lane of a key
constexpr int pad = 4;            // floats after each score row

// Floats from one row of scores to the next. Phase 1 stores 16 bytes to each of eight rows at once: rows that start
// four banks apart keep that free of conflicts.
__host__ __device__ constexpr int64_t row_stride(int Bc) { return Bc + pad; }

// Bytes of shared memory: scores of a tile, every warp's share of a slice of O, O, and l and c of every row.
constexpr int64_t shared_bytes(int Bc, int head_dim) {
  return Br * (row_stride(Bc) + warps * slice + head_dim + 2) * int64_t(sizeof(float));
}

// Eight numbers of K or V, or zeros where there are none.
template <class T>
__device__ Pack8<T> load_or_zeros(const T* from, bool there) {
  uint4 bits = {};
  if (there) bits = *reinterpret_cast<const uint4*>(from);
  Pack8<T> pack;
  memcpy(&pack, &bits, sizeof(pack));
  return pack;
}

// Every lane has its part of n sums. Adds up the parts of `lanes` lanes, `spacing` apart, and deals the totals out to
// them: lane g of these gets the totals from number g * n / lanes on as x[0], x[1], .. (with n < lanes, several get the
// same one). In every step a lane keeps half of its sums and sends the others to a lane that keeps these. For eight
// sums over eight lanes that takes 4 + 2 + 1 shuffles, where adding up every sum on every lane takes 8 x 3.
template <int lanes, int n>
__device__ void sum_and_deal(float* x, int spacing) {
  const int distance = lanes / 2 * spacing;
  const bool upper = threadIdx.x & distance;
  if constexpr (n == 1) x[0] += __shfl_xor_sync(0xffffffff, x[0], distance);
  for (int i = 0; i < n / 2; ++i) {
    const float kept = upper ? x[i + n / 2] : x[i], given = upper ? x[i] : x[i + n / 2];
    x[i] = kept + __shfl_xor_sync(0xffffffff, given, distance);
  }
  if constexpr (lanes > 2) sum_and_deal<lanes / 2, (n + 1) / 2>(x, spacing);
}

template <class T>
__global__ void __launch_bounds__(threads, 1) attention_forward(Problem p, int Bc,
                                                                const T* q,  // [B, H, Nq, D]
                                                                const T* k,  // [B, Hkv, Nk, D]
                                                                const T* v,  // [B, Hkv, Nk, D]
                                                                T* o,        // [B, H, Nq, D]
                                                                float* lse)  // [B, H, Nq]
{
  const int64_t s_stride = row_stride(Bc);
  float* s_smem = dynamic_shared<float>();          // [Br][s_stride] of which Bc are used: S, later P
  float* share_smem = s_smem + Br * s_stride;       // [warps][Br][slice]
  float* o_smem = share_smem + warps * Br * slice;  // [Br][D]
  float* l_smem = o_smem + Br * p.head_dim;         // [Br]
  float* c_smem = l_smem + Br;                      // [Br]

  const int row_tiles = (p.seq_q + Br - 1) / Br;
  const int head = blockIdx.x / row_tiles, i0 = int(blockIdx.x % row_tiles) * Br;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int piece = lane % lanes_per_key * 8;  // the eight elements of a slice that this lane takes
  const int group = lane / lanes_per_key;
  const int first_key = (warp * groups + group) * keys;
  constexpr int key_step = warps * groups * keys;

  const T* q_head = q + int64_t(head) * p.seq_q * p.head_dim;
  const T* k_head = k + int64_t(p.kv_head(head)) * p.seq_k * p.head_dim;
  const T* v_head = v + int64_t(p.kv_head(head)) * p.seq_k * p.head_dim;
  T* o_head = o + int64_t(head) * p.seq_q * p.head_dim;
  float m = -INFINITY, l = 0;  // of this warp's row, in phase 2
  const Watched state = {int64_t(head) * p.seq_q + i0, 0, p.seq_q - i0, p.head_dim};

  for (int j0 = 0; j0 < p.seq_k; j0 += Bc) {
    const int tile_end = p.seq_k - j0 < Bc ? p.seq_k - j0 : Bc;  // keys count from j0
    const Watched scores = {int64_t(head) * p.seq_q + i0, j0, p.seq_q - i0, tile_end};

    watch_step("1. S = Q K^T");
    // One slice of the head dim after the other. Each score belongs to one lane: no barrier between slices.
    for (int d0 = 0; d0 < p.head_dim; d0 += slice) {
      const int d = d0 + piece;
      float q_reg[Br][8] = {};
      for (int r = 0; r < Br; ++r)
        if (i0 + r < p.seq_q && d < p.head_dim) {
          const Pack8<T> q8 = load_pack8(q_head + int64_t(i0 + r) * p.head_dim + d);
          for (int e = 0; e < 8; ++e) q_reg[r][e] = p.scale * to_float(q8.x[e]);
        }

      // All lanes take every step, with or without a key: the shuffles need them.
      for (int j = first_key; j - group * keys < tile_end; j += key_step) {
        const T* k_row = k_head + int64_t(j0 + j) * p.head_dim + d;
        Pack8<T> k8[keys];
        for (int n = 0; n < keys; ++n, k_row += p.head_dim)
          k8[n] = load_or_zeros(k_row, j + n < tile_end && d < p.head_dim);
        float sum[Br * keys] = {};
        for (int n = 0; n < keys; ++n)
          for (int e = 0; e < 8; ++e)
            for (int r = 0; r < Br; ++r) sum[r * keys + n] += q_reg[r][e] * to_float(k8[n].x[e]);
        sum_and_deal<lanes_per_key, Br * keys>(sum, 1);  // the scores of row lane % lanes_per_key
        if (j < tile_end) {
          float* s = s_smem + lane % lanes_per_key * s_stride + j;
          for (int n = 0; n < keys; ++n)
            if (d0 > 0) sum[n] += s[n];
          store_floats<keys>(s, sum);
        }
      }
    }
    __syncthreads();  // phase 2 reads scores that other warps wrote

    watch_step("2. m, l, P and the correction");
    if (warp < Br) {
      float* s_row = s_smem + warp * s_stride;
      for (int j = lane; j < tile_end; j += 32) watch("S", scores, warp, j, s_row + j);
      const int visible = (i0 + warp < p.seq_q ? p.visible_keys(i0 + warp) : 0) - j0;
      float m_new = m;
      for (int j = lane; j < visible && j < Bc; j += 32) m_new = fmaxf(m_new, s_row[j]);
      m_new = warp_max(m_new);
      const float m_safe = m_new == -INFINITY ? 0 : m_new;  // no key seen yet: keeps -inf - -inf = NaN out of exp
      // exercise rescale: make P of S, and bring l up to date; phase 3 multiplies O by the correction
      const float correction = expf(m - m_safe);
      m = m_new;
      float l_tile = 0;
      for (int j = lane; j - lane < tile_end; j += 32) {  // after the last key, up to a multiple of 32, P is 0
        s_row[j] = j < visible ? expf(s_row[j] - m_safe) : 0;
        l_tile += s_row[j];
      }
      l = l * correction + warp_sum(l_tile);
      // end rescale | const float correction = 1;
      if (lane == 0) {
        l_smem[warp] = l;
        c_smem[warp] = correction;
      }
      watch("m", state, warp, 0, m);
      watch("correction", state, warp, 0, correction);
      watch("l", state, warp, 0, l);
      for (int j = lane; j < tile_end; j += 32) watch("P", scores, warp, j, s_row + j);
    }
    __syncthreads();  // phase 3 reads P, l and c of all rows

    watch_step("3. O = O * correction + P V");
    // Slice by slice.
    for (int d0 = 0; d0 < p.head_dim; d0 += slice) {
      const int d = d0 + piece;
      float o_reg[Br * 8] = {};  // [Br][8], over this lane's keys
      if (d < p.head_dim)
        for (int j = first_key; j < tile_end; j += key_step) {
          const T* v_row = v_head + int64_t(j0 + j) * p.head_dim + d;
          Pack8<T> v8[keys];
          for (int n = 0; n < keys; ++n, v_row += p.head_dim) v8[n] = load_or_zeros(v_row, j + n < tile_end);
          for (int r = 0; r < Br; ++r) {
            const float4 x = *reinterpret_cast<const float4*>(s_smem + r * s_stride + j);
            for (int e = 0; e < 8; ++e) {
              o_reg[r * 8 + e] += x.x * to_float(v8[0].x[e]);
              o_reg[r * 8 + e] += x.y * to_float(v8[1].x[e]);
              o_reg[r * 8 + e] += x.z * to_float(v8[2].x[e]);
              o_reg[r * 8 + e] += x.w * to_float(v8[3].x[e]);
            }
          }
        }
      sum_and_deal<groups, Br * 8>(o_reg, lanes_per_key);
      constexpr int dealt = Br * 8 / groups, of_a_row = dealt < 8 ? dealt : 8;
      for (int x = 0; x < dealt; x += of_a_row) {
        const int r = (group * dealt + x) / 8, e = (group * dealt + x) % 8;
        store_floats<of_a_row>(share_smem + (warp * Br + r) * slice + piece + e, o_reg + x);
      }
      __syncthreads();  // every warp's share is there, and every warp is done with S

      for (int x = threadIdx.x; x < Br * slice; x += threads) {
        const int r = x / slice, column = d0 + x % slice;
        if (i0 + r >= p.seq_q || column >= p.head_dim) continue;
        float* o_sum = o_smem + r * p.head_dim + column;  // always the same thread's
        float sum = j0 > 0 ? c_smem[r] * *o_sum : 0;
        for (int w = 0; w < warps; ++w) sum += share_smem[w * Br * slice + x];
        *o_sum = sum;
        watch("O", state, r, column, sum);
        if (j0 + Bc < p.seq_k) continue;
        const float l_row = l_smem[r];  // 0 if the row sees no key
        o_head[int64_t(i0 + r) * p.head_dim + column] = from_float<T>(l_row == 0 ? 0 : sum / l_row);
      }
      __syncthreads();  // shares and c have been read before they are overwritten
    }
  }
  // exercise lse: write LSE = log(sum of exp(S)) of the block's rows, each once; a row that sees no key has -inf
  if (lane == 0 && warp < Br && i0 + warp < p.seq_q)
    lse[int64_t(head) * p.seq_q + i0 + warp] = l == 0 ? -INFINITY : m + logf(l);
  // end lse |
}

void forward(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  const int Bc = shared_bytes(1024, p.head_dim) <= int64_t(largest_shared_memory()) ? 1024 : 512;
  const unsigned blocks = unsigned(p.batch) * p.heads * ceil_div(p.seq_q, Br);
  attention::by_dtype(p, [&]<class T>() {
    const auto [q, k, v, o] = attention::tensors_of<T>(args);
    launch(attention_forward<T>, {blocks, threads, size_t(shared_bytes(Bc, p.head_dim)), stream}, p, Bc, q, k, v, o,
           args.lse);
  });
}

}  // namespace

extern const attention::Rung online;
constinit const attention::Rung online = {
    .name = "online",
    .idea = "scores of one tile only: running m and l correct the softmax, and O, tile by tile; writes LSE",
    .forward = {attention::head_dim_not_8_to_256, attention::no_workspace, forward, true}};

}  // namespace online_softmax
