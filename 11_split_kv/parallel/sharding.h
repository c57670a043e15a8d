// How a long sequence is sharded: which rows each rank holds, and which of the other ranks' keys its queries meet.
//
// Without a mask every rank holds one run of queries and one of keys. Under the causal mask the last query sees all
// keys and the first sees one, so a rank holds two pieces, one near the front and one as near the end. With four ranks:
//
//   queries and keys   | 0 | 1 | 2 | 3 | 3 | 2 | 1 | 0 |
//
// The mask is aligned bottom-right (attention/problem.h). If there are more keys than queries, the first keys are seen
// by every query: the prefix. If there are more queries than keys, the first queries see nothing: they are blind. Both
// are dealt evenly, before the pieces, so a rank's rows are a prefix or blind rows, then its front, then its back.
#pragma once

#include <vector>

#include "attention/problem.h"

namespace split_kv::parallel {

enum class Order {
  balanced,  // a piece from the front and one from the back
  in_order,  // both pieces side by side: the later a rank's rows, the more keys they see
};

struct Rows {
  int first = 0;  // in the whole sequence
  int count = 0;
};

struct Runs {
  Rows run[3];

  __host__ __device__ int count() const { return run[0].count + run[1].count + run[2].count; }
  const Rows* begin() const { return run; }
  const Rows* end() const { return run + 3; }
};

// The rows of one rank, in the order in which they stand in its tensors.
struct Shard {
  Runs queries;  // blind, front, back
  Runs keys;     // prefix, front, back
};

std::vector<Shard> shards_of(const attention::Problem& whole, int ranks, Order order);

// Some of a rank's queries and the first `keys` keys of one rank: a problem of its own, whose mask is causal only where
// a rank meets its own keys.
struct Part {
  int first_query = 0;  // in the rank's tensors
  int queries = 0;
  int keys = 0;
  attention::Mask mask = attention::Mask::none;
};

// What a rank computes with the keys of `owner`. The first step of a rank meets its own keys, and has all of its
// queries in one part; a later one may have none.
struct Step {
  int owner = 0;
  std::vector<Part> parts;
};

// The steps of a rank in a ring: the keys come from the rank before, which had them a step earlier.
std::vector<Step> ring_steps(const attention::Problem& whole, const std::vector<Shard>& shards, int rank, Order order);

// The part as a problem for the kernels of one GPU.
attention::Problem problem_of(const attention::Problem& whole, const Part& part);

// Scores that a part computes: a causal mask leaves half of its square.
double scores(const Part& part);

}  // namespace split_kv::parallel
