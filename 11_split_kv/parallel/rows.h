// What several ranks need beside attention itself: rows copied out of a tensor, parts merged, and gradients added up.
// Everything is only enqueued on the stream.
#pragma once

#include <cstdint>

#include "attention/problem.h"
#include "dealing.h"

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

// Attention over some keys and attention over others make attention over both:
//
//   LSE = log(e^LSE1 + e^LSE2)      O = (e^LSE1 O1 + e^LSE2 O2) / e^LSE
//
// A tensor that a part belongs to has `rows` rows in each of `matrices` heads, and the part has the `count` rows from
// `first` on. O1 is in `o` (fp16 or bf16) when a row meets its second part, else in `sum` (fp32); the result goes to
// `o` after the last part, else to `sum`. Rows `from` .. `until` of the tensor alone are merged.
struct Merge {
  void* o;                // [matrices, rows, D]
  float* sum;             // [matrices, rows, D]
  float* lse;             // [matrices, rows], of O1, and then of the result
  const void* part;       // [matrices, count, D]
  const float* part_lse;  // [matrices, count]
  int matrices, rows, first, count, from, until;
  bool second, last;
};
void merge(const Merge& merge, const attention::Problem& problem, cudaStream_t stream);

// to = from + part on the same rows: of gradients, which are sums over the parts. `to` and `from` are [matrices, rows,
// D], each fp32 or the problem's type. One of `from` and `part` may be missing.
struct Addition {
  const void* from;
  bool from_fp32;
  void* to;
  bool to_fp32;
  const void* part;  // [matrices, count, D]
  int matrices, rows, first, count, from_row, until;
};
void add(const Addition& addition, const attention::Problem& problem, cudaStream_t stream);

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
