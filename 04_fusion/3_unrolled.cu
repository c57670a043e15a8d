// Chapter 04, rung 3, unrolled: a lane takes four keys at a time, so that four loads are under way together.
//
// A thread block of 16 warps owns Br = 8, 4, 2 or 1 query rows of one head, and keeps their whole score rows [Br, Nk]
// in shared memory:
//
//   1. S = scale * Q K^T     the keys are divided among the warps; a piece of K is loaded once and used for all Br rows
//   2. P = exp(S - m), l     a warp per row; hidden keys get P = 0, and so do places up to a multiple of 32
//   3. O = P V / l           the keys are divided again; the warps' sums are added up at the end
//
// What changed since 2_streamed: eight lanes take four neighbouring keys, where they took one. In phase 1 the sums of
// all four are added up together, and the four scores of a row are stored by one instruction. In phase 3 the four P of
// a row are read by one. So P must exist, as 0, up to a multiple of four keys, and K and V after the last key are read
// as zeros.
//
// Expected limit: Br. Shared memory bounds Br * Nk. So a longer sequence leaves fewer rows in a block, each element of
// K and V is used fewer times, and where not even one row fits, the kernel cannot run.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>

#include "attention/dispatch.h"
#include "device/fp32_tile.h"
#include "device/limits.h"
#include "device/math.h"
#include "device/numeric.h"
#include "device/watch.h"

namespace fusion {
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
constexpr int pad = 4;            // floats after each score row

// Floats from one row of scores to the next. Phase 1 stores 16 bytes to each of eight rows at once: rows that start
// four banks apart keep that free of conflicts.
__host__ __device__ constexpr int64_t row_stride(int64_t seq_k) { return (seq_k + 31) / 32 * 32 + pad; }

// Bytes of shared memory for Br query rows: their scores, every warp's share of a slice of their O, and their l.
constexpr int64_t shared_bytes(int Br, int64_t seq_k) {
  return Br * (row_stride(seq_k) + warps * slice + 1) * int64_t(sizeof(float));
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

template <class T, int Br>
__global__ void __launch_bounds__(threads, 1) attention_forward(Problem p,
                                                                const T* q,  // [B, H, Nq, D]
                                                                const T* k,  // [B, Hkv, Nk, D]
                                                                const T* v,  // [B, Hkv, Nk, D]
                                                                T* o)        // [B, H, Nq, D]
{
  const int64_t s_stride = row_stride(p.seq_k);
  float* s_smem = dynamic_shared<float>();      // [Br][s_stride] of which Nk are used: S, later P
  float* o_smem = s_smem + Br * s_stride;       // [warps][Br][slice]
  float* l_smem = o_smem + warps * Br * slice;  // [Br]

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
  const Watched watched = {int64_t(head) * p.seq_q + i0, 0, p.seq_q - i0, p.seq_k};

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
    for (int j = first_key; j - group * keys < p.seq_k; j += key_step) {
      const T* k_row = k_head + int64_t(j) * p.head_dim + d;
      Pack8<T> k8[keys];
      for (int n = 0; n < keys; ++n, k_row += p.head_dim)
        k8[n] = load_or_zeros(k_row, j + n < p.seq_k && d < p.head_dim);
      float sum[Br * keys] = {};
      for (int n = 0; n < keys; ++n)
        for (int e = 0; e < 8; ++e)
          for (int r = 0; r < Br; ++r) sum[r * keys + n] += q_reg[r][e] * to_float(k8[n].x[e]);
      sum_and_deal<lanes_per_key, Br * keys>(sum, 1);
      constexpr int dealt = Br > 1 ? Br * keys / lanes_per_key : 1;
      const int x =
          lane % lanes_per_key * Br * keys / lanes_per_key;        // the first of the totals that this lane was dealt
      if (lane * Br * keys % lanes_per_key == 0 && j < p.seq_k) {  // the first of the lanes that have them
        float* s = s_smem + x / keys * s_stride + j + x % keys;
        for (int y = 0; y < dealt; ++y)
          if (d0 > 0) sum[y] += s[y];
        store_floats<dealt>(s, sum);
        for (int y = 0; y < dealt; ++y)
          watch("S", watched, x / keys, j + x % keys + y, sum[y]);  // complete after the last slice
      }
    }
  }
  __syncthreads();  // phase 2 reads scores that other warps wrote

  watch_step("2. P = exp(S - m), and l");
  for (int r = warp; r < Br; r += warps) {
    float* s_row = s_smem + r * s_stride;
    const int visible = i0 + r < p.seq_q ? p.visible_keys(i0 + r) : 0;
    float m = -INFINITY;  // subtracted from every score, so that exp cannot overflow
    for (int j = lane; j < visible; j += 32) m = fmaxf(m, s_row[j]);
    m = warp_max(m);
    float l = 0;
    for (int j = lane; j < s_stride - pad; j += 32) {
      s_row[j] = j < visible ? expf(s_row[j] - m) : 0;
      l += s_row[j];
      watch("P", watched, r, j, s_row + j);
    }
    l = warp_sum(l);
    if (lane == 0) l_smem[r] = l;
    watch("m", watched, r, 0, m);
    watch("l", watched, r, 0, l);
  }
  __syncthreads();  // phase 3 reads P and l of all rows

  watch_step("3. O = P V");
  // Slice by slice.
  for (int d0 = 0; d0 < p.head_dim; d0 += slice) {
    const int d = d0 + piece;
    float o_reg[Br * 8] = {};  // [Br][8], over this lane's keys
    if (d < p.head_dim)
      for (int j = first_key; j < p.seq_k; j += key_step) {
        const T* v_row = v_head + int64_t(j) * p.head_dim + d;
        Pack8<T> v8[keys];
        for (int n = 0; n < keys; ++n, v_row += p.head_dim) v8[n] = load_or_zeros(v_row, j + n < p.seq_k);
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
      store_floats<of_a_row>(o_smem + (warp * Br + r) * slice + piece + e, o_reg + x);
    }
    __syncthreads();  // every warp's share is there

    for (int x = threadIdx.x; x < Br * slice; x += threads) {
      const int r = x / slice, column = d0 + x % slice;
      if (i0 + r >= p.seq_q || column >= p.head_dim) continue;
      float sum = 0;
      for (int w = 0; w < warps; ++w) sum += o_smem[w * Br * slice + x];
      const float l = l_smem[r];  // 0 if the row sees no key
      o_head[int64_t(i0 + r) * p.head_dim + column] = from_float<T>(l == 0 ? 0 : sum / l);
    }
    __syncthreads();  // the shares have been read before the next slice overwrites them
  }
}

template <class T, int Br>
void launch_with_rows(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  if constexpr (Br > 1)
    if (shared_bytes(Br, p.seq_k) > int64_t(largest_shared_memory()))
      return launch_with_rows<T, Br / 2>(p, args, stream);
  const auto [q, k, v, o] = attention::tensors_of<T>(args);
  const unsigned blocks = unsigned(p.batch) * p.heads * ceil_div(p.seq_q, Br);
  launch(attention_forward<T, Br>, {blocks, threads, size_t(shared_bytes(Br, p.seq_k)), stream}, p, q, k, v, o);
}

void forward(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  // Eight rows at most: one for each lane of a key, and Br * 8 sums have to fit into the registers of a thread.
  attention::by_dtype(p, [&]<class T>() { launch_with_rows<T, 8>(p, args, stream); });
}

std::string unsupported(const Problem& p) {
  if (std::string why = attention::head_dim_not_8_to_256(p); !why.empty()) return why;
  const int64_t limit = int64_t(largest_shared_memory());
  if (shared_bytes(1, p.seq_k) <= limit) return "";
  const int64_t longest = (limit - shared_bytes(1, 0)) / int64_t(sizeof(float)) / 32 * 32;
  return "seq-k is " + std::to_string(p.seq_k) + ": a row of scores has to fit into shared memory, and the " +
         std::to_string(limit) + " bytes that a thread block of this device can have hold up to " +
         std::to_string(longest) + " keys";
}

}  // namespace

extern const attention::Rung unrolled;
constinit const attention::Rung unrolled = {
    .name = "unrolled",
    .idea = "four keys at a time: four loads under way together, 16-byte accesses to the score rows",
    .forward = {unsupported, attention::no_workspace, forward}};

}  // namespace fusion
