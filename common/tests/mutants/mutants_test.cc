// Does the suite that the chapters pass reject kernels that are wrong? Each mutant must fail at least one case, and
// the same kernels without a mistake must pass them all.
#include "tests/mutants/mutants.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "tests/chapter/cases.h"
#include "tests/chapter/on_device.h"

namespace {

using chapter_suite::Case;
using mutants::BackwardMutation;
using mutants::Mutation;

// What the suite has against a pass; the first thing only. Empty if nothing.
template <class Args>
std::string rejection(const attention::Pass<Args>& pass, bool rope = false) {
  for (const Case& c : chapter_suite::cases(rope))
    if (const std::string wrong = solve(pass, c); !wrong.empty()) return name(c) + ": " + wrong;
  return "";
}

// Chapters that write no LSE are judged by O alone. So are the mutants, unless LSE is what is wrong.
attention::Forward judged_by_o(Mutation mutation) {
  attention::Forward pass = mutants::forward(mutation);
  pass.writes_lse = false;
  return pass;
}

template <class Args>
void expect_rejected(const attention::Pass<Args>& pass, bool rope = false) {
  const std::string why = rejection(pass, rope);
  EXPECT_NE(why, "") << "the suite lets this wrong kernel pass";
  std::printf("%s\n", why.c_str());
}

class Mutants : public chapter_suite::OnDevice {};

TEST_F(Mutants, TheForwardWithoutAMistakePasses) {
  const attention::Forward right = mutants::forward(Mutation::none);
  EXPECT_EQ(rejection(right), "");
  EXPECT_EQ(differs_from_run_to_run(right, chapter_suite::ragged(), 1), "");
}
TEST_F(Mutants, no_rescale) { expect_rejected(judged_by_o(Mutation::no_rescale)); }
TEST_F(Mutants, wrong_scale) { expect_rejected(judged_by_o(Mutation::wrong_scale)); }
TEST_F(Mutants, dropped_tail) { expect_rejected(judged_by_o(Mutation::dropped_tail)); }
TEST_F(Mutants, dropped_last_key) { expect_rejected(judged_by_o(Mutation::dropped_last_key)); }
TEST_F(Mutants, mask_off_by_one) { expect_rejected(judged_by_o(Mutation::mask_off_by_one)); }
TEST_F(Mutants, mask_top_left) { expect_rejected(judged_by_o(Mutation::mask_top_left)); }
TEST_F(Mutants, stop_one_tile_short) { expect_rejected(judged_by_o(Mutation::stop_one_tile_short)); }
TEST_F(Mutants, stop_top_left) { expect_rejected(judged_by_o(Mutation::stop_top_left)); }
TEST_F(Mutants, stop_at_first_row) { expect_rejected(judged_by_o(Mutation::stop_at_first_row)); }
TEST_F(Mutants, diagonal_unmasked) { expect_rejected(judged_by_o(Mutation::diagonal_unmasked)); }
TEST_F(Mutants, mean_of_v) { expect_rejected(judged_by_o(Mutation::mean_of_v)); }
TEST_F(Mutants, wrong_kv_head) { expect_rejected(judged_by_o(Mutation::wrong_kv_head)); }
TEST_F(Mutants, no_max) { expect_rejected(judged_by_o(Mutation::no_max)); }
TEST_F(Mutants, small_weights) { expect_rejected(judged_by_o(Mutation::small_weights)); }
TEST_F(Mutants, small_weights_with_rope) { expect_rejected(judged_by_o(Mutation::small_weights), true); }
TEST_F(Mutants, nan_for_empty_rows) { expect_rejected(judged_by_o(Mutation::nan_for_empty_rows)); }
TEST_F(Mutants, writes_past_end) { expect_rejected(judged_by_o(Mutation::writes_past_end)); }
TEST_F(Mutants, TheForwardWithRopeWithoutAMistakePasses) {
  EXPECT_EQ(rejection(mutants::forward(Mutation::none), true), "");
}
TEST_F(Mutants, rope_neighbours) { expect_rejected(judged_by_o(Mutation::rope_neighbours), true); }
TEST_F(Mutants, rope_table_by_head) { expect_rejected(judged_by_o(Mutation::rope_table_by_head), true); }
TEST_F(Mutants, rope_query_from_zero) { expect_rejected(judged_by_o(Mutation::rope_query_from_zero), true); }
TEST_F(Mutants, rope_no_negative_angle) { expect_rejected(judged_by_o(Mutation::rope_no_negative_angle), true); }
TEST_F(Mutants, rope_keys_only) { expect_rejected(judged_by_o(Mutation::rope_keys_only), true); }
TEST_F(Mutants, rope_position_in_tile) { expect_rejected(judged_by_o(Mutation::rope_position_in_tile), true); }
TEST_F(Mutants, lse_in_log2) { expect_rejected(mutants::forward(Mutation::lse_in_log2)); }

// A chapter that refuses what every chapter must take has not passed.
TEST_F(Mutants, refuses_everything) {
  attention::Forward pass = mutants::forward(Mutation::none);
  pass.unsupported = [](const attention::Problem&) { return std::string("not today"); };
  expect_rejected(pass);
}

// Without its barrier a kernel may be right by luck in one order of threads, not in all of them. A GPU chooses its own
// orders, and may well be lucky in all: there, CMakeLists.txt has racecheck look at these tests' few launches.
template <class Args>
void expect_rejected_in_some_order(const attention::Pass<Args>& pass) {
  const Case two_tiles = {.problem = {.seq_q = 64, .seq_k = 64}};
  std::string why;
  chapter_suite::for_every_order([&](const std::string& order) {
    if (const std::string wrong = solve(pass, two_tiles); !wrong.empty()) why = order + ": " + wrong;
  });
  if (on_gpu) return;
  EXPECT_NE(why, "") << "the suite lets this wrong kernel pass";
  std::printf("%s\n", why.c_str());
}

TEST_F(Mutants, missing_barrier) { expect_rejected_in_some_order(judged_by_o(Mutation::missing_barrier)); }
TEST_F(Mutants, missing_reuse_barrier) { expect_rejected_in_some_order(judged_by_o(Mutation::missing_reuse_barrier)); }

// Never wrong, only different. A GPU may well add in the same order each time.
TEST_F(Mutants, sum_in_any_order) {
  const attention::Forward pass = mutants::forward(Mutation::sum_in_any_order);
  EXPECT_EQ(solve(pass, chapter_suite::ragged()), "");
  const std::string difference = differs_from_run_to_run(pass, chapter_suite::ragged(), 5);
  if (on_gpu) return;
  EXPECT_NE(difference, "") << "the suite calls this kernel deterministic";
  std::printf("%s\n", difference.c_str());
}

TEST_F(Mutants, TheBackwardWithoutAMistakePasses) {
  const attention::Backward right = mutants::backward(BackwardMutation::none);
  EXPECT_EQ(rejection(right), "");
  EXPECT_EQ(differs_from_run_to_run(right, chapter_suite::ragged(), 1), "");
}
TEST_F(Mutants, no_row_sum) { expect_rejected(mutants::backward(BackwardMutation::no_row_sum)); }
TEST_F(Mutants, no_lse) { expect_rejected(mutants::backward(BackwardMutation::no_lse)); }
TEST_F(Mutants, missing_transpose) { expect_rejected(mutants::backward(BackwardMutation::missing_transpose)); }
TEST_F(Mutants, unscaled_dk) { expect_rejected(mutants::backward(BackwardMutation::unscaled_dk)); }
TEST_F(Mutants, one_head_of_group) { expect_rejected(mutants::backward(BackwardMutation::one_head_of_group)); }
TEST_F(Mutants, mask_forgotten) { expect_rejected(mutants::backward(BackwardMutation::mask_forgotten)); }
TEST_F(Mutants, mask_wrong_side) { expect_rejected(mutants::backward(BackwardMutation::mask_wrong_side)); }
TEST_F(Mutants, unmasked_tail) { expect_rejected(mutants::backward(BackwardMutation::unmasked_tail)); }
TEST_F(Mutants, late_start) { expect_rejected(mutants::backward(BackwardMutation::late_start)); }
TEST_F(Mutants, top_left_start) { expect_rejected(mutants::backward(BackwardMutation::top_left_start)); }
TEST_F(Mutants, dropped_last_query) { expect_rejected(mutants::backward(BackwardMutation::dropped_last_query)); }
TEST_F(Mutants, inf_times_zero) { expect_rejected(mutants::backward(BackwardMutation::inf_times_zero)); }
TEST_F(Mutants, unwritten_dq) { expect_rejected(mutants::backward(BackwardMutation::unwritten_dq)); }
TEST_F(Mutants, small_workspace) { expect_rejected(mutants::backward(BackwardMutation::small_workspace)); }
TEST_F(Mutants, TheBackwardWithRopeWithoutAMistakePasses) {
  EXPECT_EQ(rejection(mutants::backward(BackwardMutation::none), true), "");
}
TEST_F(Mutants, rope_not_back) { expect_rejected(mutants::backward(BackwardMutation::rope_not_back), true); }
TEST_F(Mutants, rope_forward) { expect_rejected(mutants::backward(BackwardMutation::rope_forward), true); }
TEST_F(Mutants, rope_back_from_zero) { expect_rejected(mutants::backward(BackwardMutation::rope_back_from_zero), true); }
TEST_F(Mutants, rope_back_in_group) { expect_rejected(mutants::backward(BackwardMutation::rope_back_in_group), true); }
TEST_F(Mutants, backward_missing_barrier) {
  expect_rejected_in_some_order(mutants::backward(BackwardMutation::missing_barrier));
}
TEST_F(Mutants, backward_missing_reuse_barrier) {
  expect_rejected_in_some_order(mutants::backward(BackwardMutation::missing_reuse_barrier));
}

}  // namespace
