// What several ranks need beside attention itself: rows copied out of a tensor, parts merged, and gradients added up.
// Everything is only enqueued on the stream.
#pragma once

#include <cstdint>

#include "attention/problem.h"
#include "sharding.h"

namespace split_kv::parallel {

// Rows `first` .. first + count of `from` [matrices, from_rows, row_bytes] become rows to_first .. of `to`
// [matrices, to_rows, row_bytes]. row_bytes is a multiple of 4.
struct RowCopy {
  const void* from;
  int from_rows, first;
  void* to;
  int to_rows, to_first;
  int count, matrices, row_bytes;
};
void copy_rows(const RowCopy& copy, cudaStream_t stream);

// Rows of a tensor, and what is joined to them: a part that has the `count` rows from `first` on. Only rows
// `from` .. `until` of the tensor are joined.
struct Join {
  void* to;  // [matrices, rows, D]
  bool to_fp32;
  const void* part;  // [matrices, count, D]
  bool part_fp32;
  int matrices, rows, first, count, from, until;
  bool fresh = false;  // `to` holds nothing yet, and becomes the part
};

// Attention over some keys and attention over others make attention over both:
//
//   LSE = log(e^LSE1 + e^LSE2)      O = (e^LSE1 O1 + e^LSE2 O2) / e^LSE
void merge(const Join& join,
           float* lse,             // [matrices, rows], of `to` before, and then of the result
           const float* part_lse,  // [matrices, count]
           const attention::Problem& problem, cudaStream_t stream);

// to += part: of gradients, which are sums over the parts. Without a part, `to` becomes 0.
void add(const Join& join, const attention::Problem& problem, cudaStream_t stream);

// A launch that does nothing: what follows on the stream comes some microseconds later.
void pause(cudaStream_t stream);

// Numbers that depend only on where a row stands in the whole sequence: about normal, with this deviation.
struct RandomRows {
  void* to;  // [matrices, the rows of `runs`, D]
  int matrices, all_rows;
  Runs runs;
  uint32_t seed;
  float deviation;
};
void random_rows(const RandomRows& random, const attention::Problem& problem, cudaStream_t stream);

// |own - whole| / |whole| over the rows of `runs`. Waits for the result.
struct Comparable {
  const void* own;    // [matrices, the rows of `runs`, D]
  const void* whole;  // [matrices, all_rows, D]
  int matrices, all_rows;
  Runs runs;
};
double relative_distance(const Comparable& two, const attention::Problem& problem);

}  // namespace split_kv::parallel
