// Chapter 11: the second kernel of rungs `split` to the last. It makes O and LSE of what a first kernel made of parts
// of the keys.
//
// A warp owns a row, or its share of a row's parts: warps that share a row are neighbours in one thread block.
//
//   1. M = max of the parts' LSE                     each warp of the row for itself
//   2. w = 2^(LSE of the part - M)   l = sum of w    over the warp's share of the parts, in the order of their numbers
//      O = sum of w (O of the part)
//   3. l and O of the row's warps, added up          in the order of the warps
//
// and at the end O / l and LSE = ln(2) (M + log2(l)). The order does not depend on which thread block came first, so
// the bits are the same in every run. A part that shows a row no key has LSE = -inf, and weighs 0.
//
// It is launched as dependent on the first kernel (chapter 09, rung `overlapped`), so it is on the multiprocessors when
// the last part is.
//
// Expected limit: latency. It reads 4 D bytes of a part and a row, once.
#include <cmath>
#include <cstdint>

#include "attention/rung.h"
#include "device/dependent_launch.h"
#include "device/math.h"
#include "device/numeric.h"
namespace key_parts {

using attention::ForwardArgs;
using attention::Problem;

namespace {

using attention::DType;

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
  __shared__ float l_smem[warps];

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, share = warp % row_warps;
  const unsigned row = blockIdx.x * (warps / row_warps) + warp / row_warps;
  const bool exists = row < rows;
  lse_parts += size_t(row) * parts;
  o_parts += size_t(row) * parts * D + lane * columns;
  grid_dependency_wait();  // the parts have been written

  float top = -INFINITY, l = 0, o_reg[columns] = {};
  for (int part = lane; exists && part < parts; part += 32) top = fmaxf(top, lse_parts[part]);
  top = warp_max(top);
#pragma unroll 4
  for (int part = share; exists && part < parts; part += row_warps) {
    const float weight = lse_parts[part] == -INFINITY ? 0 : exp2_approx(lse_parts[part] - top);
    l += weight;
    for (int c = 0; c < columns; c++) o_reg[c] += weight * o_parts[size_t(part) * D + c];
  }

  for (int c = 0; c < columns; c++) o_smem[warp][lane * columns + c] = o_reg[c];
  if (lane == 0) l_smem[warp] = l;
  __syncthreads();  // every share is in shared memory
  if (share > 0 || !exists) return;
  for (int other = warp + 1; other < warp + row_warps; other++) {
    l += l_smem[other];
    for (int c = 0; c < columns; c++) o_reg[c] += o_smem[other][lane * columns + c];
  }
  const float inverse = l == 0 ? 0 : 1 / l;  // l = 0: the row sees no key
  for (int c = 0; c < columns; c += 2)
    *reinterpret_cast<uint32_t*>(o + size_t(row) * D + lane * columns + c) =
        pack2<T>(o_reg[c] * inverse, o_reg[c + 1] * inverse);
  if (lane == 0) lse[row] = (top + log2_approx(l)) * 0.693147181f;  // ln(2)
}

template <class T>
void launch_merge(const Problem& p, int parts, const float* o_parts, const float* lse_parts, const ForwardArgs& args,
                  cudaStream_t stream) {
  int row_warps = 1;
  while (row_warps < warps && 2 * row_warps < parts) row_warps *= 2;  // with two parts at least for each
  const unsigned rows = unsigned(p.lse_size()), rows_per_block = warps / row_warps;
  launch_dependent(p.head_dim == 64 ? merge_kernel<T, 64> : merge_kernel<T, 128>,
                   {(rows + rows_per_block - 1) / rows_per_block, threads, 0, stream}, rows, parts, row_warps, o_parts,
                   lse_parts, static_cast<T*>(args.o), args.lse);
}

}  // namespace

// args.o and args.lse from so many parts of each row. Each first kernel declares it.
void merge(const Problem& p, int parts, const float* o_parts, const float* lse_parts, const ForwardArgs& args,
           cudaStream_t stream) {
  (p.dtype == DType::fp16 ? launch_merge<__half> : launch_merge<__nv_bfloat16>)(p, parts, o_parts, lse_parts, args,
                                                                                stream);
}

}  // namespace key_parts
