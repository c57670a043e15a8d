// Chapter 11: the second kernel of rungs `split` to `warpgroup`. It makes O and LSE from what a first kernel made of
// each part of the keys.
//
// A warp owns a row, or its share of a row's parts: warps that share a row are neighbours in one thread block.
//
//   1. m, l and O as in chapter 05, with a part where a tile of keys was: m = max(m, LSE), and with w = 2^(LSE - m)
//      l = l 2^(m before - m) + w, O likewise        over the warp's share of the parts, in the order of their numbers
//   2. m, l and O of the row's warps become one      in the order of the warps
//
// and at the end O / l and LSE = ln(2) (m + log2(l)). No load of step 1 waits for another, so they are under way
// together. The order does not depend on which thread block came first, so the bits are the same in every run. A part
// that shows a row no key has LSE = -inf, and weighs 0.
//
// It is launched as dependent on the first kernel (chapter 09, rung `overlapped`), so it is on the multiprocessors when
// the last part is written.
//
// Expected limit: latency. It reads 4 D bytes for each part of a row, once.
#include <cmath>
#include <cstdint>

#include "attention/dispatch.h"
#include "attention/key_parts.h"
#include "device/dependent_launch.h"
#include "device/math.h"
#include "device/numeric.h"
#include "device/watch.h"

namespace key_parts {

using attention::ForwardArgs;

namespace {

constexpr int warps = 8, threads = 32 * warps;

template <class T, int D>
__global__ void __launch_bounds__(threads) merge_kernel(unsigned rows, int parts,
                                                        int row_warps,           // that share a row: 1, 2, 4 or 8
                                                        const float* o_parts,    // [rows, parts, D]
                                                        const float* lse_parts,  // [rows, parts], base 2
                                                        T* o,                    // [rows, D]
                                                        float* lse)              // [rows]
{
  constexpr int columns = D / 32;  // of a lane
  __shared__ float o_smem[warps][D];
  __shared__ float m_smem[warps], l_smem[warps];

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, share = warp % row_warps;
  const unsigned row = blockIdx.x * (warps / row_warps) + warp / row_warps;
  const bool exists = row < rows;
  lse_parts += size_t(row) * parts;
  o_parts += size_t(row) * parts * D + lane * columns;
  grid_dependency_wait();  // the parts have been written

  watch_step("O = weighted sum of the parts");
  float m = -INFINITY, l = 0, o_reg[columns] = {};
#pragma unroll 4
  for (int part = share; exists && part < parts; part += row_warps) {
    const float lse_part = lse_parts[part], top = fmaxf(m, lse_part);
    watch("LSE of a part", {row, 0, 1, parts}, 0, part, lse_part * ln_2);
    const float weight = lse_part == -INFINITY ? 0 : exp2_approx(lse_part - top);
    const float correction = m == -INFINITY ? 0 : exp2_approx(m - top);
    l = l * correction + weight;
    for (int c = 0; c < columns; c++) o_reg[c] = o_reg[c] * correction + weight * o_parts[size_t(part) * D + c];
    m = top;
  }

  for (int c = 0; c < columns; c++) o_smem[warp][lane * columns + c] = o_reg[c];
  if (lane == 0) m_smem[warp] = m, l_smem[warp] = l;
  __syncthreads();  // every share is in shared memory
  if (share > 0 || !exists) return;
  float top = -INFINITY;  // the row maximum
  for (int w = warp; w < warp + row_warps; w++) top = fmaxf(top, m_smem[w]);
  l = 0;
  for (int c = 0; c < columns; c++) o_reg[c] = 0;
  for (int w = warp; w < warp + row_warps; w++) {
    const float weight = l_smem[w] == 0 ? 0 : exp2_approx(m_smem[w] - top);
    l += weight * l_smem[w];
    for (int c = 0; c < columns; c++) o_reg[c] += weight * o_smem[w][lane * columns + c];
  }
  const float inverse = l == 0 ? 0 : 1 / l;  // l = 0: the row sees no key
  for (int c = 0; c < columns; c += 2)
    *reinterpret_cast<uint32_t*>(o + size_t(row) * D + lane * columns + c) =
        pack2<T>(o_reg[c] * inverse, o_reg[c + 1] * inverse);
  if (lane == 0) lse[row] = (top + log2_approx(l)) * ln_2;
}

}  // namespace

void merge(const Problem& p, int parts, const Parts& from, const ForwardArgs& args, cudaStream_t stream) {
  int row_warps = 1;
  while (row_warps < warps && 2 * row_warps < parts) row_warps *= 2;  // more parts than warps
  const unsigned rows = unsigned(p.lse_size()), blocks = ceil_div(rows, warps / row_warps);
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    launch_dependent(merge_kernel<T, D>, {blocks, threads, 0, stream}, rows, parts, row_warps, from.o, from.lse,
                     static_cast<T*>(args.o), args.lse);
  });
}

}  // namespace key_parts
