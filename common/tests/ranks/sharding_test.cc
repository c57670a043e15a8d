// How rows are sharded, and the steps of the ring, without any rank: is every query paired with every key that it sees,
// once?
#include "parallel/sharding.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace split_kv::parallel {
namespace {

using attention::Mask;
using attention::Problem;

Problem problem(int queries, int keys, Mask mask) {
  Problem p;
  p.seq_q = queries;
  p.seq_k = keys;
  p.mask = mask;
  return p;
}

std::vector<int> rows_of(const Runs& runs) {
  std::vector<int> rows;
  for (const Rows& run : runs)
    for (int i = 0; i < run.count; i++) rows.push_back(run.first + i);
  return rows;
}

// How often each pair is computed, by all ranks together.
std::vector<int> pairs(const Problem& p, int ranks, Order order) {
  const std::vector<Shard> shards = shards_of(p, ranks, order);
  std::vector<int> times(size_t(p.seq_q) * p.seq_k);
  for (int rank = 0; rank < ranks; rank++) {
    const std::vector<int> queries = rows_of(shards[rank].queries);
    for (const Step& step : ring_steps(p, shards, rank, order)) {
      const std::vector<int> keys = rows_of(shards[step.owner].keys);
      for (const Part& part : step.parts)
        for (int i = 0; i < part.queries; i++)
          for (int j = 0; j < problem_of(p, part).visible_keys(i); j++)
            times[size_t(queries[part.first_query + i]) * p.seq_k + keys[j]]++;
    }
  }
  return times;
}

TEST(Sharding, every_query_meets_every_key_that_it_sees_once) {
  for (const int ranks : {1, 2, 3, 4, 7})
    for (const auto& [queries, keys] : {std::pair(7, 7), {16, 16}, {61, 61}, {20, 53}, {53, 20}, {7, 100}, {100, 7}})
      for (const Mask mask : {Mask::none, Mask::causal})
        for (const Order order : {Order::balanced, Order::in_order}) {
          const Problem p = problem(queries, keys, mask);
          std::vector<int> expected(size_t(queries) * keys);
          for (int i = 0; i < queries; i++) std::fill_n(expected.begin() + size_t(i) * keys, p.visible_keys(i), 1);
          EXPECT_EQ(pairs(p, ranks, order), expected) << ranks << " ranks, " << label(p);
        }
}

TEST(Sharding, every_row_belongs_to_one_rank_and_no_rank_is_without) {
  for (const int ranks : {1, 2, 3, 5, 8})
    for (const auto& [queries, keys] : {std::pair(8, 8), {9, 30}, {31, 8}, {64, 64}})
      for (const Order order : {Order::balanced, Order::in_order}) {
        std::vector<int> times_q(queries), times_k(keys);
        for (const Shard& shard : shards_of(problem(queries, keys, Mask::causal), ranks, order)) {
          for (const int row : rows_of(shard.queries)) times_q[row]++;
          for (const int row : rows_of(shard.keys)) times_k[row]++;
          EXPECT_TRUE(std::ranges::is_sorted(rows_of(shard.queries)));
          EXPECT_GT(shard.queries.count(), 0);
          EXPECT_GT(shard.keys.count(), 0);
        }
        EXPECT_EQ(times_q, std::vector<int>(queries, 1));
        EXPECT_EQ(times_k, std::vector<int>(keys, 1));
      }
}

double most_scores_over_mean(const Problem& p, int ranks, Order order, bool steps_apart) {
  const std::vector<Shard> shards = shards_of(p, ranks, order);
  double most = 0, all = 0;
  std::vector<double> slowest(ranks);
  for (int rank = 0; rank < ranks; rank++) {
    double of_rank = 0;
    const std::vector<Step> steps = ring_steps(p, shards, rank, order);
    for (size_t s = 0; s < steps.size(); s++) {
      double of_step = 0;
      for (const Part& part : steps[s].parts) of_step += scores(part);
      slowest[s] = std::max(slowest[s], of_step);
      of_rank += of_step;
    }
    most = std::max(most, of_rank);
    all += of_rank;
  }
  if (steps_apart) {
    most = 0;
    for (const double step : slowest) most += step;
  }
  return most / (all / ranks);
}

TEST(Sharding, causal_work_is_even_also_in_each_step) {
  const Problem p = problem(4096, 4096, Mask::causal);
  for (const int ranks : {2, 4, 8}) {
    EXPECT_NEAR(most_scores_over_mean(p, ranks, Order::balanced, true), 1, 1e-9);
    // The last rank in order computes 2 P - 1 of P^2 halves of squares.
    EXPECT_NEAR(most_scores_over_mean(p, ranks, Order::in_order, false), (2.0 * ranks - 1) / ranks, 1e-9);
  }
  EXPECT_LT(most_scores_over_mean(problem(1024, 4096, Mask::causal), 4, Order::balanced, false), 1.001);
}

}  // namespace
}  // namespace split_kv::parallel
