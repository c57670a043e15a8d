// The shared suite: every rung of the_chapter() on every case, on the SIMT engine or on the GPU.
#include <gtest/gtest.h>

#include "attention/chapter.h"
#include "tests/chapter/cases.h"
#include "tests/chapter/on_device.h"

const attention::Chapter& the_chapter();  // generated for each chapter: common/cmake/the_chapter.cc.in

namespace chapter_suite {
namespace {

using attention::Mask;
using attention::Problem;
using attention::Rung;

class Chapter : public OnDevice {};

const std::vector<Case>& all_cases() {
  static const std::vector<Case> all = cases();
  return all;
}

// A group of cases at a time: CTest starts a process for each test.
class Cases : public OnDevice, public testing::WithParamInterface<int> {};
constexpr int groups = 8;

TEST_P(Cases, AgreeWithTheReference) {
  for (size_t i = size_t(GetParam()); i < all_cases().size(); i += groups)
    for (const Rung& rung : the_chapter().rungs) {
      if (rung.forward) {
        EXPECT_EQ(solve(rung.forward, all_cases()[i]), "") << rung.name << " forward, " << name(all_cases()[i]);
      }
      if (rung.backward) {
        EXPECT_EQ(solve(rung.backward, all_cases()[i]), "") << rung.name << " backward, " << name(all_cases()[i]);
      }
    }
}
INSTANTIATE_TEST_SUITE_P(Group, Cases, testing::Range(0, groups));

// Three tiles, ragged, causal, grouped heads.
Case ragged(int head_dim = 64) {
  Case c;
  c.problem = {1, 2, 1, 150, 170, head_dim, attention::DType::fp16, Mask::causal, attention::default_scale(head_dim)};
  return c;
}

TEST_F(Chapter, IsBitwiseEqualFromRunToRun) {
  for (const Rung& rung : the_chapter().rungs) {
    if (rung.forward) {
      EXPECT_EQ(differs_from_run_to_run(rung.forward, ragged(), 5), "") << rung.name;
    }
    if (rung.backward) {
      EXPECT_EQ(differs_from_run_to_run(rung.backward, ragged(), 20), "") << rung.name;
    }
  }
}

// Blocks, warps and threads in other orders: a kernel that needs luck, or a barrier that is not there, fails.
TEST_F(Chapter, NeedsNoParticularOrderOfThreads) {
  for_every_order([&](const std::string& order) {
    for (const Rung& rung : the_chapter().rungs)
      for (const int head_dim : {64, 128}) {
        if (rung.forward) {
          EXPECT_EQ(solve(rung.forward, ragged(head_dim)), "") << rung.name << ", order " << order;
        }
        if (rung.backward) {
          EXPECT_EQ(solve(rung.backward, ragged(head_dim)), "") << rung.name << ", order " << order;
        }
      }
  });
}

TEST_F(Chapter, RefusesWhatItDoesNotSupport) {
  for (const Rung& rung : the_chapter().rungs)
    for (const int head_dim : {60, 12, 264, 1024}) {
      Problem p = ragged().problem;
      p.head_dim = head_dim;
      const std::string why = rung.forward ? rung.forward.unsupported(p) : rung.backward.unsupported(p);
      EXPECT_NE(why.find(std::to_string(head_dim)), std::string::npos) << rung.name << " says: " << why;
      EXPECT_EQ(why.find('\n'), std::string::npos) << rung.name << " says: " << why;
    }
}

TEST_F(Chapter, SupportsHeadDims64And128) {
  for (const Rung& rung : the_chapter().rungs)
    for (const int head_dim : {64, 128}) {
      if (rung.forward) {
        EXPECT_EQ(rung.forward.unsupported(ragged(head_dim).problem), "") << rung.name;
      }
      if (rung.backward) {
        EXPECT_EQ(rung.backward.unsupported(ragged(head_dim).problem), "") << rung.name;
      }
    }
}

TEST_F(Chapter, HasANameAnIdeaAndRungs) {
  EXPECT_FALSE(the_chapter().name.empty());
  EXPECT_FALSE(the_chapter().idea.empty());
  ASSERT_FALSE(the_chapter().rungs.empty());
  for (const Rung& rung : the_chapter().rungs) {
    EXPECT_FALSE(rung.name.empty());
    EXPECT_FALSE(rung.idea.empty());
    EXPECT_TRUE(rung.forward || rung.backward) << rung.name;
  }
}

TEST_F(Chapter, CanBeCapturedInACudaGraph) {
  for (const Rung& rung : the_chapter().rungs)
    if (rung.forward) {
      EXPECT_EQ(solve_in_a_graph(rung.forward, ragged()), "") << rung.name;
    }
}

}  // namespace
}  // namespace chapter_suite
