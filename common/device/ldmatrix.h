// ldmatrix: a warp loads 8x8 matrices of 16-bit elements from shared memory, straight into the fragments of
// device/mma.h. PTX ISA, "ldmatrix". Compute capability 7.5 and later.
//
// Each lane passes the address of one row of 8 elements (16 bytes, 16-byte aligned): lanes 0-7 the rows of matrix 0,
// lanes 8-15 of matrix 1, and so on; x2 ignores the addresses of lanes 16-31. Register r[m] of lane (g, t), g = lane >>
// 2 and t = lane & 3, becomes of matrix m
//
//   plain: row g, columns 2t and 2t + 1          trans: rows 2t and 2t + 1 of column g
//
// lower half first. So, with tiles in shared memory as rows of D elements:
//
//   A = Q or P [16, 16]: x4 over its quarters; matrices 0..3 = (rows 0-7 | rows 8-15) of columns 0-7, then of 8-15
//   B = K^T [16, 8] from K [8, 16]: x2, matrices 0 and 1 = columns 0-7 and 8-15 of K
//   B = V [16, 8] as it lies: x2_trans, matrices 0 and 1 = rows 0-7 and 8-15 of V
//
// and x4 or x4_trans bring two such B fragments at once. Every lane of the warp calls them together.
#pragma once

#include <cstdint>

#include "device/cuda.h"
#include "device/shared_address.h"

#ifdef WORKBOOK_SIMT
struct LdmatrixOperands {
  uint32_t* r;
  const uint16_t* row;
};

// For all lanes of a warp, from their operands.
template <int MATRICES, bool TRANS>
void ldmatrix_of_lanes(void* const lanes[32], unsigned) {
  for (int m = 0; m < MATRICES; m++) {
    const auto element = [&](int i, int j) { return static_cast<const LdmatrixOperands*>(lanes[8 * m + i])->row[j]; };
    for (int lane = 0; lane < 32; lane++) {
      const int g = lane >> 2, t = lane & 3;
      const uint32_t low = TRANS ? element(2 * t, g) : element(g, 2 * t);
      const uint32_t high = TRANS ? element(2 * t + 1, g) : element(g, 2 * t + 1);
      static_cast<LdmatrixOperands*>(lanes[lane])->r[m] = low | high << 16;
    }
  }
}

template <int MATRICES, bool TRANS>
__device__ inline void ldmatrix_on_cpu(const char* name, uint32_t* r, const void* row) {
  LdmatrixOperands operands = {r, static_cast<const uint16_t*>(row)};
  if (simt::lane() < 8 * MATRICES) simt::ldmatrix_row(row);
  simt::registers_written(r, MATRICES);
  simt::warp_collective(name, 0xffffffff, &operands, ldmatrix_of_lanes<MATRICES, TRANS>);
}
#endif

// Four matrices into r[4].
__device__ inline void ldmatrix_x4(uint32_t* r, const void* row) {
#ifdef WORKBOOK_SIMT
  ldmatrix_on_cpu<4, false>("ldmatrix.x4", r, row);
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
#endif
}

// Four matrices, each transposed, into r[4].
__device__ inline void ldmatrix_x4_trans(uint32_t* r, const void* row) {
#ifdef WORKBOOK_SIMT
  ldmatrix_on_cpu<4, true>("ldmatrix.x4.trans", r, row);
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
#endif
}

// Two matrices into r[2].
__device__ inline void ldmatrix_x2(uint32_t* r, const void* row) {
#ifdef WORKBOOK_SIMT
  ldmatrix_on_cpu<2, false>("ldmatrix.x2", r, row);
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(row))
               : "memory");
#endif
}

// Two matrices, each transposed, into r[2].
__device__ inline void ldmatrix_x2_trans(uint32_t* r, const void* row) {
#ifdef WORKBOOK_SIMT
  ldmatrix_on_cpu<2, true>("ldmatrix.x2.trans", r, row);
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(row))
               : "memory");
#endif
}
