// What the judge does on the device: it makes inputs that nobody has seen before, and compares results row by row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/problem.h"

namespace judge {

// Numbers of about normal distribution with this standard deviation, others for each seed.
void make_inputs(void* to, size_t size, attention::DType dtype, float deviation, uint64_t seed);

enum class Row : uint8_t {
  right,
  unwritten,  // still as the outputs were before the launch
  earlier,    // not right, and to the bit what the same row was in an earlier call
  wrong,
};

// Of what lies on the device: other results, even by one bit, have another one, as far as anybody can tell.
struct Digest {
  unsigned long long parts[2];
  bool operator==(const Digest&) const = default;
};
Digest digest(const void* what, size_t bytes, uint64_t seed, const Digest& before = {});

// One direction's results of a problem on the device.
struct Results {
  const void* o;     // [B, H, Nq, D]
  const float* lse;  // [B, H, Nq], null if it is not written
};

// verdicts[i] of each row of O and LSE. `got` may differ from `expected` by some roundings of the storage type.
void compare(const attention::Problem& problem, const Results& got, const Results& expected, Row* verdicts);

// Rows that are wrong and are the same in `earlier` become Row::earlier.
void find_again(const attention::Problem& problem, const void* got, const void* earlier, Row* verdicts);

}  // namespace judge
