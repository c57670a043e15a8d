// The tensor core's matrix product with sums in fp16: C[16, 8] += A[16, 16] B[16, 8], fp16 in, fp16 out. PTX ISA,
// "Matrix Fragments for mma.m16n8k16 with floating point type". Compute capability 8.0 and later.
//
// A and B are the fragments of device/mma.h. C is half as large: c0 of lane (g, t) holds columns 2t and 2t + 1 of row
// g, c1 those of row g + 8. No chapter uses it; common/microbenchmarks/accumulate.cu shows why.
#pragma once

#include <cstdint>

#include "device/cuda.h"
#include "device/mma.h"
#include "device/numeric.h"

// c[2] += a[4] b[2]. Every lane of the warp calls it together. The engine adds sixteen products and C in fp32 and
// rounds once; PTX does not say how often a tensor core rounds on the way.
__device__ inline void mma_m16n8k16_half(uint32_t* c, const uint32_t* a, const uint32_t* b) {
#ifdef WORKBOOK_SIMT
  const float2 row_g = unpack2<__half>(c[0]), row_g8 = unpack2<__half>(c[1]);
  float sums[4] = {row_g.x, row_g.y, row_g8.x, row_g8.y};
  mma_m16n8k16<__half>(sums, a, b);
  c[0] = pack2<__half>(sums[0], sums[1]);
  c[1] = pack2<__half>(sums[2], sums[3]);
#else
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
               : "+r"(c[0]), "+r"(c[1])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}
