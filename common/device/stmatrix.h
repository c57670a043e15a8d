// stmatrix: a warp stores 8x8 matrices of 16-bit elements to shared memory, straight from the fragments of
// device/mma.h: ldmatrix the other way round. PTX ISA, "stmatrix". One instruction from compute capability 9.0 on;
// before, each lane asks the others for the addresses of its row.
//
// Addresses as for ldmatrix (device/ldmatrix.h): lanes 0-7 pass those of the rows of matrix 0, lanes 8-15 of matrix 1,
// and so on, 16-byte aligned. Register r[m] of lane (g, t) is columns 2t and 2t + 1 of row g of matrix m. Every lane of
// the warp calls it together.
#pragma once

#include <cstdint>

#include "device/cuda.h"
#include "device/shared_address.h"

// Four matrices from r[4].
__device__ inline void stmatrix_x4(void* row, const uint32_t* r) {
#if !defined(WORKBOOK_SIMT) && __CUDA_ARCH__ >= 900
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)), "r"(r[0]),
               "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
#else
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  for (int m = 0; m < 4; m++) {
    const uint64_t address = __shfl_sync(0xffffffff, reinterpret_cast<uint64_t>(row), 8 * m + g);
    reinterpret_cast<uint32_t*>(address)[t] = r[m];
  }
#endif
}

// The same with each matrix transposed: register r[m] of lane (g, t) is column g of rows 2t and 2t + 1 of matrix m.
__device__ inline void stmatrix_x4_trans(void* row, const uint32_t* r) {
#if !defined(WORKBOOK_SIMT) && __CUDA_ARCH__ >= 900
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
#else
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  uint32_t transposed[4];
  for (int m = 0; m < 4; m++) {
    const uint32_t even = __shfl_sync(0xffffffff, r[m], 4 * (2 * t) + g / 2);
    const uint32_t odd = __shfl_sync(0xffffffff, r[m], 4 * (2 * t + 1) + g / 2);
    transposed[m] = (even >> 16 * (g % 2) & 0xffff) | odd >> 16 * (g % 2) << 16;
  }
  stmatrix_x4(row, transposed);
#endif
}
