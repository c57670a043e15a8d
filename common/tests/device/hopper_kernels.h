// Kernels around the wrappers for compute capability 9.0, as plain functions from inputs to outputs. See kernels.h.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels.h"

namespace device_tests {

bool hopper_present();

using Halves = std::vector<uint16_t>;

// A tensor of 16-bit numbers, the innermost dimension first, and boxes of it whose rows are 64 of them, or 32.
struct Boxes {
  std::vector<int> sizes;
  std::vector<int> box;
};

// The bytes of shared memory, as 16-bit numbers, after tensor_load of the box at these coordinates.
Halves load_box(const Boxes& boxes, const Halves& tensor, const std::vector<int>& at);

// The tensor, after tensor_store of shared memory with this content to the box at these coordinates.
Halves store_box(const Boxes& boxes, const Halves& tensor, const std::vector<int>& at, const Halves& shared);

// `to` + 2 * `from` (as many), made of one bulk_load, one bulk_store and two bulk_adds.
Floats bulk_copies(const Floats& from, const Floats& to);

// What a consumer warp read that a producer thread sent through a ring of two buffers of 32 numbers: [rounds][32].
Words through_a_ring(const Words& from);

// The same by two blocks of a cluster, each of which sends half of the 32 numbers to both: what the two read, and what
// each then found in the other's memory: [2][2][rounds][32].
Words through_clusters(const Words& from);

// For each lane of a warp, whether elect_one() chose it; and the same in a second call.
std::vector<int> elected();

// The sums over `threads` / 128 warpgroups of the numbers of their threads, after the first gave registers to the
// others.
std::vector<int> with_other_registers();

// D [64, N] of a product of a warpgroup: A [64, 16] B [16, N], and D as it was before if `accumulate`. A and B are
// given to it as part of larger matrices of NaN: `step` is which 16 of their 64 of k. `plain` has no swizzle: rows of
// 16 bytes, and the next 8 of k behind all rows.
enum class From { k_major, mn_major, registers, plain };
struct ProductCase {
  DType dtype;
  int columns;
  From a, b;
};
const std::vector<ProductCase>& product_cases();
Floats product(const ProductCase& of, const Halves& a, const Halves& b, const Floats& d, bool accumulate, int step);

// Q [64, D] K^T [64, D] and that times V [64, D], as a flash kernel makes them: tiles by tensor_load, two groups of
// products, the second with A in registers, rounded. D = 128, fp16.
struct TwoProducts {
  Floats first;   // [64, 64]
  Floats second;  // [64, 128]
};
TwoProducts two_products(const Halves& q, const Halves& k, const Halves& v);

}  // namespace device_tests
