// The kernels of two exercises: a row's keys are divided into ranges, one thread block for each, and what they find is
// merged.
//
//   1. partial   O and LSE of a query row over one range of keys    a warp per row, four rows a thread block
//   2. merge     O and LSE of the row over all keys                 a warp per row
//
// A range is attention over fewer keys: its O is divided by its own sum already, and its LSE says how large that sum
// was. In phase 1 lane j of a warp has key j of a tile of 32 keys in shared memory. In each step of the dot product the
// 32 lanes read one word of 32 rows. place() sees to it that these words lie in 32 banks.
//
// What changed since chapter 05's kernels: a row's keys are divided among thread blocks. So a single query with many
// keys keeps more than one multiprocessor busy.
//
// Expected limit: the dot products, one multiply-add for each read of shared memory.
#include <cmath>
#include <cstdint>

#include "attention/chapter.h"
#include "attention/padded.h"
#include "device/math.h"
#include "device/numeric.h"
#include "device/watch.h"

namespace split {

using attention::DType;
using attention::ForwardArgs;
using attention::Problem;

constexpr int parts = 4;                  // ranges of keys
constexpr int Br = 4, threads = 32 * Br;  // query rows of a thread block, one to a warp
constexpr int Bc = 32;                    // keys in a tile, one to a lane

// Where word `word` (two numbers, 4 bytes) of row `row` lies in a tile [Bc][D / 2] of shared memory.
template <int D>
__device__ int place(int row, int word) {
  // exercise banks: the same word of 32 rows lies in 32 different banks, and so do 32 neighbouring words of a row
  return row * (D / 2) + (word ^ row);
  // end banks | return row * (D / 2) + word;
}

template <class T, int D>
__global__ void __launch_bounds__(threads) partial(Problem p,
                                                   const T* q,        // [B, H, Nq, D]
                                                   const T* k,        // [B, Hkv, Nk, D]
                                                   const T* v,        // [B, Hkv, Nk, D]
                                                   float* o_parts,    // [parts, B, H, Nq, D]
                                                   float* lse_parts)  // [parts, B, H, Nq]
{
  uint32_t* k_smem = dynamic_shared<uint32_t>();  // [Bc][D / 2], each word where place() says
  const int row_tiles = (p.seq_q + Br - 1) / Br, range = (p.seq_k + parts - 1) / parts;
  const int part = blockIdx.x % parts, head = blockIdx.x / parts / row_tiles;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int i = blockIdx.x / parts % row_tiles * Br + warp;
  const int begin = part * range, end = min(begin + range, p.seq_k);
  const int visible = i < p.seq_q ? p.visible_keys(i) : 0;
  const int64_t row = int64_t(head) * p.seq_q + i, kv_row = int64_t(p.kv_head(head)) * p.seq_k;  // over all heads
  const T* q_row = q + (i < p.seq_q ? row : 0) * D;

  float m = -INFINITY, l = 0;
  float o_reg[D / 32] = {};  // columns lane, lane + 32, ..
  for (int j0 = begin; j0 < end; j0 += Bc) {
    __syncthreads();  // everyone is done with the tile before
    for (int n = threadIdx.x; n < Bc * D / 2; n += threads) {
      const int j = n / (D / 2), word = n % (D / 2);
      const T* from = k + (kv_row + j0 + j) * D + 2 * word;
      k_smem[place<D>(j, word)] = j0 + j < end ? *reinterpret_cast<const uint32_t*>(from) : 0;
    }
    __syncthreads();  // the tile is in shared memory

    watch_step("1. S = Q K^T");
    float s = 0;
    for (int word = 0; word < D / 2; ++word) {
      const uint32_t pair = k_smem[place<D>(lane, word)];
      const T* numbers = reinterpret_cast<const T*>(&pair);
      s += to_float(q_row[2 * word]) * to_float(numbers[0]) + to_float(q_row[2 * word + 1]) * to_float(numbers[1]);
    }
    const int j = j0 + lane;
    s = j < end && j < visible ? p.scale * s : -INFINITY;
    watch_step("2. m, l and P; O *= correction");
    const float m_new = fmaxf(m, warp_max(s));
    const float m_safe = m_new == -INFINITY ? 0 : m_new;  // no key seen yet: keeps -inf - -inf = NaN out of exp
    const float correction = expf(m - m_safe), weight = expf(s - m_safe);
    m = m_new;
    l = l * correction + warp_sum(weight);
    for (float& x : o_reg) x *= correction;
    watch_step("3. O += P V");
    for (int n = 0; n < Bc && j0 + n < end; ++n) {
      const float weight_n = __shfl_sync(0xffffffff, weight, n);
      const T* v_row = v + (kv_row + j0 + n) * D;
      for (int c = 0; c < D / 32; ++c) o_reg[c] += weight_n * to_float(v_row[lane + 32 * c]);
    }
  }
  watch_step("O / l and LSE of this part");
  if (i >= p.seq_q) return;
  const int64_t part_row = int64_t(part) * p.batch * p.heads * p.seq_q + row;
  for (int c = 0; c < D / 32; ++c) o_parts[part_row * D + lane + 32 * c] = l == 0 ? 0 : o_reg[c] / l;
  if (lane == 0) lse_parts[part_row] = l == 0 ? -INFINITY : m + logf(l);
}

template <class T, int D>
__global__ void __launch_bounds__(threads) merge(Problem p,
                                                 const float* o_parts,    // [parts, B, H, Nq, D]
                                                 const float* lse_parts,  // [parts, B, H, Nq]
                                                 T* o,                    // [B, H, Nq, D]
                                                 float* lse)              // [B, H, Nq]
{
  const int64_t rows = int64_t(p.batch) * p.heads * p.seq_q, row = int64_t(blockIdx.x) * Br + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  watch_step("O = weighted sum of the parts");
  // exercise merge: O and LSE of this row over all keys, from those of its ranges (LSE = -inf: it sees none of them)
  float top = -INFINITY;
  for (int part = 0; part < parts; ++part) top = fmaxf(top, lse_parts[part * rows + row]);
  const float top_safe = top == -INFINITY ? 0 : top;
  float sum = 0;
  for (int part = 0; part < parts; ++part) sum += expf(lse_parts[part * rows + row] - top_safe);
  for (int d = lane; d < D; d += 32) {
    float x = 0;
    for (int part = 0; part < parts; ++part)
      x += expf(lse_parts[part * rows + row] - top_safe) * o_parts[(part * rows + row) * D + d];
    o[row * D + d] = from_float<T>(sum == 0 ? 0 : x / sum);
  }
  if (lane == 0) lse[row] = top_safe + logf(sum);
  // end merge | for (int d = lane; d < D; d += 32) o[row * D + d] = from_float<T>(o_parts[row * D + d]);
}

template <class T, int D>
void launch_forward(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  float* o_parts = static_cast<float*>(args.workspace);
  float* lse_parts = o_parts + parts * p.q_size();
  const unsigned row_tiles = (p.seq_q + Br - 1) / Br, blocks = unsigned(p.batch) * p.heads * row_tiles * parts;
  launch(partial<T, D>, {blocks, threads, Bc * D * sizeof(T), stream}, p, static_cast<const T*>(args.q),
         static_cast<const T*>(args.k), static_cast<const T*>(args.v), o_parts, lse_parts);
  launch(merge<T, D>, {unsigned((p.lse_size() + Br - 1) / Br), threads, 0, stream}, p, o_parts, lse_parts,
         static_cast<T*>(args.o), args.lse);
}

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  if (p.dtype == DType::fp16)
    (p.head_dim == 64 ? launch_forward<__half, 64> : launch_forward<__half, 128>)(p, args, stream);
  else
    (p.head_dim == 64 ? launch_forward<__nv_bfloat16, 64> : launch_forward<__nv_bfloat16, 128>)(p, args, stream);
}

size_t workspace_bytes(const Problem& p) { return parts * (p.q_size() + p.lse_size()) * sizeof(float); }

constexpr attention::Forward unpadded = {attention::head_dim_not_8_to_128, workspace_bytes, run, true};

extern const attention::Chapter chapter;
const attention::Chapter chapter = {
    .name = "split",
    .idea = "ranges of keys, each for itself, and a merge of their O by their LSE",
    .rungs = {{.name = "split",
               .idea = "ranges of keys, each for itself, and a merge of their O by their LSE",
               .forward = attention::padded<unpadded>}}};

}  // namespace split
