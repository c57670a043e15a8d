#include "sharding.h"

#include <algorithm>
#include <cstdint>

namespace split_kv::parallel {
namespace {

using attention::Mask;
using attention::Problem;

// Where part i of n rows begins, if they are cut into `parts` that differ by one row at most.
int cut(int n, int parts, int i) { return int(int64_t(n) * i / parts); }

Rows even_share(int n, int ranks, int rank) {
  const int first = cut(n, ranks, rank);
  return {first, cut(n, ranks, rank + 1) - first};
}

}  // namespace

std::vector<Shard> shards_of(const Problem& p, int ranks, Order order) {
  const int square = p.mask == Mask::causal ? std::min(p.seq_q, p.seq_k) : 0;
  const int blind = p.seq_q - square, prefix = p.seq_k - square;
  std::vector<Shard> shards(ranks);
  int front = 0, back = square;  // where the next front piece begins, and where the last back piece began
  for (int rank = 0; rank < ranks; rank++) {
    const Rows both = even_share(square, ranks, rank);
    const int in_front = both.count / 2, in_back = both.count - in_front;
    back -= in_back;
    const bool balanced = order == Order::balanced;
    const Rows pieces[] = {{balanced ? front : both.first, in_front},
                           {balanced ? back : both.first + in_front, in_back}};
    front += in_front;
    shards[rank].queries.run[0] = even_share(blind, ranks, rank);
    shards[rank].keys.run[0] = even_share(prefix, ranks, rank);
    for (int i = 0; i < 2; i++) {
      shards[rank].queries.run[i + 1] = {blind + pieces[i].first, pieces[i].count};
      shards[rank].keys.run[i + 1] = {prefix + pieces[i].first, pieces[i].count};
    }
  }
  return shards;
}

std::vector<Step> ring_steps(const Problem& p, const std::vector<Shard>& shards, int rank, Order order) {
  const int ranks = int(shards.size());
  const Shard& own = shards[rank];
  const int all = own.queries.count(), blind = own.queries.run[0].count, in_front = own.queries.run[1].count;
  std::vector<Step> steps(ranks);
  for (int s = 0; s < ranks; s++) {
    const int owner = steps[s].owner = (rank - s + ranks) % ranks;
    const int prefix = shards[owner].keys.run[0].count, keys = shards[owner].keys.count();
    std::vector<Part>& parts = steps[s].parts;
    if (s == 0)  // its rows stand in the order of the sequence, so that their mask is the usual one
      parts = {{0, all, keys, p.mask}};
    else if (p.mask == Mask::none)
      parts = {{0, all, keys}};
    else if (owner < rank)  // in_order: all of its keys came before; balanced: all but its back
      parts = {{blind, all - blind, order == Order::in_order ? keys : prefix + shards[owner].keys.run[1].count}};
    else if (order == Order::in_order)
      parts = {{blind, all - blind, prefix}};
    else  // its front and its back lie between this rank's front and back
      parts = {{blind, in_front, prefix}, {blind + in_front, all - blind - in_front, keys}};
    std::erase_if(parts, [](const Part& part) { return part.queries == 0 || part.keys == 0; });
  }
  return steps;
}

Problem problem_of(const Problem& whole, const Part& part) {
  Problem p = whole;
  p.seq_q = part.queries;
  p.seq_k = part.keys;
  p.mask = part.mask;
  return p;
}

double scores(const Part& part) {
  const double all = double(part.queries) * part.keys;
  if (part.mask == Mask::none) return all;
  const double square = std::min(part.queries, part.keys);
  return square * square / 2 + (part.keys > part.queries ? all - square * square : 0);
}

}  // namespace split_kv::parallel
