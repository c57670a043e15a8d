// What small kernels write to results, beside the lists that they make or look at: NaN everywhere if what only the
// device knows, where packed sequences begin or a block mask, is wrong; and if somebody asks for them, zeros in rows
// that are of no sequence.
#pragma once

#include "extras.h"

namespace variants {

// All that a pass writes: up to three tensors of 16-bit numbers, and fp32 ones.
struct Results {
  struct Tensor {
    View<uint16_t> data;
    int heads, all_heads, rows, columns;  // heads of a batch, and of all
    const int* end = nullptr;             // where the rows begin that become zeros, if there are such
  };
  Tensor tensors[3];
  struct Numbers {  // [heads, rows]
    float* data;
    int64_t heads, rows;
    const int* end = nullptr;
  };
  Numbers numbers;

  // By `threads` threads, of which this one has the number `thread`.
  __device__ void become_nan(int64_t thread, int64_t threads) const {  // of fp32, and twice of fp16 or bf16
    fill(
        0xffffffff, [](const auto&) { return 0; }, thread, threads);
  }
  __device__ void zero_rest(int64_t thread, int64_t threads) const {
    fill(
        0, [](const auto& to) { return to.end ? *to.end : to.rows; }, thread, threads);
  }

 private:
  template <class First>
  __device__ void fill(unsigned with, First first_of, int64_t thread, int64_t threads) const {
    for (const Tensor& to : tensors) {
      const int first = first_of(to), pieces = to.columns / 8;
      for (int64_t i = thread; i < int64_t(to.rows - first) * to.all_heads * pieces; i += threads) {
        const int row = first + i / pieces / to.all_heads, head = i / pieces % to.all_heads;
        *reinterpret_cast<uint4*>(to.data.at_row(to.data.of_head(head, to.heads) + i % pieces, row)) =
            make_uint4(with, with, with, with);
      }
    }
    const int64_t first = first_of(numbers), rest = numbers.rows - first;
    for (int64_t i = thread; i < numbers.heads * rest; i += threads)
      numbers.data[i / rest * numbers.rows + first + i % rest] = __uint_as_float(with);
  }
};

// What else a small kernel writes, for a forward that counts tiles.
struct Count {
  int* at = nullptr;
  int taken = 0;
};

}  // namespace variants
