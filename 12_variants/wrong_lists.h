// What becomes of results if lists that only the device knows are none, of packed sequences or of a block mask: NaN.
#pragma once

#include "extras.h"

namespace variants {

// All that a pass writes: up to three tensors of 16-bit numbers, and fp32 ones.
struct Results {
  struct Tensor {
    View<uint16_t> data;
    int heads, all_heads, rows, columns;  // heads of a batch, and of all
  };
  Tensor tensors[3];
  float* numbers;
  int64_t count;

  // By `threads` threads, of which this one has the number `thread`.
  __device__ void become_nan(int64_t thread, int64_t threads) const {
    constexpr unsigned nan = 0xffffffff;  // of fp32, and twice of fp16 or bf16
    for (const Tensor& to : tensors) {
      const int pieces = to.columns / 8;
      for (int64_t i = thread; i < int64_t(to.rows) * to.all_heads * pieces; i += threads) {
        const int row = i / pieces / to.all_heads, head = i / pieces % to.all_heads;
        *reinterpret_cast<uint4*>(to.data.at_row(to.data.of_head(head, to.heads) + i % pieces, row)) =
            make_uint4(nan, nan, nan, nan);
      }
    }
    for (int64_t i = thread; i < count; i += threads) numbers[i] = __uint_as_float(nan);
  }
};

// What else a small kernel writes, for a forward that counts tiles.
struct Count {
  int* at = nullptr;
  int taken = 0;
};

}  // namespace variants
