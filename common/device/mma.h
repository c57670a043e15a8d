// The tensor core's matrix product of one warp: C[16, 8] += A[16, 16] B[16, 8], fp16 or bf16 in, fp32 out.
// PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type". Compute capability 8.0 and later.
//
// A fragment is the share of a matrix that one lane holds. With PTX's names
//
//   groupID = lane >> 2 (0..7)      threadID_in_group = lane & 3 (0..3), below g and t
//
// lane (g, t) holds, where a register of A or B is a pair of neighbours (lower half first) and one of C a float:
//
//        A [16, 16] row g or g + 8         B [16, 8] column g               C [16, 8] row g or g + 8
//
//           2t,2t+1   2t+8,2t+9                      g                                2t,2t+1
//         +---------+---------+           2t,  +-----------+                        +-----------+
//     g   |   a0    |   a2    |           2t+1 |    b0     |                    g   |  c0, c1   |
//         +---------+---------+                +-----------+                        +-----------+
//   g + 8 |   a1    |   a3    |           2t+8,|    b1     |                  g + 8 |  c2, c3   |
//         +---------+---------+           2t+9 +-----------+                        +-----------+
//
// (PTX counts elements, a0..a7 and b0..b3; here a0..a3 and b0, b1 are the registers that hold two of them.) Two things
// follow that FlashAttention relies on. A row of C is spread over the four lanes of a group, so a row's maximum and
// sum are quad_max and quad_sum (device/math.h). And two C fragments side by side, packed to pairs, are an A fragment:
// P needs no shared memory between S = Q K^T and O = P V.
#pragma once

#include <cstdint>
#include <type_traits>

#include "device/cuda.h"
#include "device/numeric.h"

#ifdef WORKBOOK_SIMT
struct MmaOperands {
  float* c;
  const uint32_t* a;
  const uint32_t* b;
};

// For all lanes of a warp, from their operands.
template <class T>
void mma_on_cpu(void* const lanes[32], unsigned) {
  simt::matrix_product(2 * 16 * 8 * 16);
  using Four = float __attribute__((vector_size(4 * sizeof(float))));  // a register: sums need not go through memory
  float A[16][16];
  Four B[16][2], C[16][2];
  for (int lane = 0; lane < 32; lane++) {
    const auto& [c, a, b] = *static_cast<const MmaOperands*>(lanes[lane]);
    const int g = lane >> 2, t = lane & 3;
    for (int r = 0; r < 4; r++) {
      const float2 pair = unpack2<T>(a[r]);
      const int row = g + 8 * (r & 1), column = 2 * t + 8 * (r >> 1);
      A[row][column] = pair.x;
      A[row][column + 1] = pair.y;
      C[g + 8 * (r >> 1)][t / 2][2 * t % 4 + (r & 1)] = c[r];
    }
    for (int r = 0; r < 2; r++) {
      const float2 pair = unpack2<T>(b[r]);
      B[2 * t + 8 * r][g / 4][g % 4] = pair.x;
      B[2 * t + 8 * r + 1][g / 4][g % 4] = pair.y;
    }
  }
  for (int row = 0; row < 16; row++) {
    Four left = C[row][0], right = C[row][1];
    for (int k = 0; k < 16; k++) {
      left += A[row][k] * B[k][0];
      right += A[row][k] * B[k][1];
    }
    C[row][0] = left;
    C[row][1] = right;
  }
  for (int lane = 0; lane < 32; lane++) {
    const int g = lane >> 2, t = lane & 3;
    for (int r = 0; r < 4; r++)
      static_cast<MmaOperands*>(lanes[lane])->c[r] = C[g + 8 * (r >> 1)][t / 2][2 * t % 4 + (r & 1)];
  }
}
#endif

// c[4] += a[4] b[2], T = __half or __nv_bfloat16. Every lane of the warp calls it together.
template <class T>
__device__ inline void mma_m16n8k16(float* c, const uint32_t* a, const uint32_t* b) {
  static_assert(std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>);
#ifdef WORKBOOK_SIMT
  MmaOperands operands = {c, a, b};
  simt::registers_read(a, 4);
  simt::registers_read(b, 2);
  simt::registers_read(c, 4);
  simt::registers_written(c, 4);
  simt::warp_collective("mma.m16n8k16", 0xffffffff, &operands, mma_on_cpu<T>);
#else
  if constexpr (std::is_same_v<T, __half>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
#endif
}
