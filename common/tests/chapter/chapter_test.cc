// The shared suite: every rung of the_chapter() on every case, on the SIMT engine or on the GPU.
#include <gtest/gtest.h>

#include "attention/chapter.h"
#include "tests/chapter/cases.h"
#include "tests/chapter/little_shared_memory.h"
#include "tests/chapter/on_device.h"

const attention::Chapter& the_chapter();  // generated for each chapter: common/cmake/the_chapter.cc.in

namespace chapter_suite {
namespace {

using attention::Rung;

// Calls test(pass, its name) for every direction of every rung.
template <class Test>
void for_every_pass(Test&& test) {
  for (const Rung& rung : the_chapter().rungs) {
    if (rung.forward) test(rung.forward, std::string(rung.name) + " forward");
    if (rung.backward) test(rung.backward, std::string(rung.name) + " backward");
  }
}

class Chapter : public OnDevice {};

Case of_the_chapter(Case c) {
  c.problem.rope = the_chapter().rope;
  return c;
}

Case small(int head_dim = 64) { return of_the_chapter(ragged(head_dim)); }

const std::vector<Case>& all_cases() {
  static const std::vector<Case> all = cases(the_chapter().rope);
  return all;
}

// A group of cases at a time: CTest starts a process for each test.
class Cases : public OnDevice, public testing::WithParamInterface<int> {};
constexpr int groups = 8;

TEST_P(Cases, AgreeWithTheReference) {
  for (size_t i = size_t(GetParam()); i < all_cases().size(); i += groups) {
    // The engine stops at every access beyond a tensor without guards: there, guards for every fourth case will do.
    const bool with_guards = on_gpu || i / groups % 4 == 0;
    for_every_pass([&](const auto& pass, const std::string& title) {
      EXPECT_EQ(solve(pass, all_cases()[i], with_guards), "") << title << ", " << name(all_cases()[i]);
    });
  }
}
INSTANTIATE_TEST_SUITE_P(Group, Cases, testing::Range(0, groups));

TEST_F(Chapter, IsBitwiseEqualFromRunToRunIfItSaysSo) {
  const int times = on_gpu ? 25 : 3;  // in each order: 50 runs on a GPU, 24 on the engine, over both head dims
  for_every_pass([&](const auto& pass, const std::string& title) {
    for (const int head_dim : {64, 128}) {
      const std::string difference = differs_from_run_to_run(pass, of_the_chapter(many_tiles(head_dim)), times);
      if (pass.deterministic) {
        EXPECT_EQ(difference, "") << title << ", D = " << head_dim;
      } else if (!on_gpu) {  // a GPU may be lucky
        EXPECT_NE(difference, "") << title << ", D = " << head_dim;
      }
    }
  });
}

// What a launch leaves in the workspace, sums and counters of thread blocks among it, is nothing to the next one.
TEST_F(Chapter, IsRightOnceMoreInTheSameWorkspace) {
  for_every_pass([](const auto& pass, const std::string& title) {
    for (const int head_dim : {64, 128}) EXPECT_EQ(solve(twice(pass), small(head_dim)), "") << title;
  });
}

// A rung may be quicker without, but not the one that is run unless another is asked for.
TEST_F(Chapter, ItsResultIsDeterministic) {
  const Rung& result = the_chapter().rungs.back();
  EXPECT_TRUE(result.forward.deterministic && result.backward.deterministic);
}

// Blocks, warps and threads in other orders: a kernel that needs luck, or a barrier that is not there, fails.
TEST_F(Chapter, NeedsNoParticularOrderOfThreads) {
  for_every_order([](const std::string& order) {
    for_every_pass([&](const auto& pass, const std::string& title) {
      for (const int head_dim : {64, 128}) EXPECT_EQ(solve(pass, small(head_dim)), "") << title << ", order " << order;
    });
  });
}

// Where the tiles of a bigger device do not fit.
TEST_F(Chapter, DoesWithLittleSharedMemory) {
  const LittleSharedMemory little;
  for_every_order([](const std::string& order) {
    for_every_pass([&](const auto& pass, const std::string& title) {
      for (const int head_dim : {64, 128}) EXPECT_EQ(solve(pass, small(head_dim)), "") << title << ", order " << order;
    });
  });
  for_every_pass([](const auto& pass, const std::string& title) {
    if (pass.deterministic) {
      EXPECT_EQ(differs_from_run_to_run(pass, of_the_chapter(many_tiles(128)), 2), "") << title;
    }
  });
}

// RoPE sees distances alone: if every query and every key stands 1000 positions further on, O is the same.
TEST_F(Chapter, SeesNoDifferenceIfAllPositionsMove) {
  if (!the_chapter().rope) return;  // there are no positions
  const Case c = small();
  const auto inputs = harness::make_inputs(c.problem, c.inputs, 7);
  const harness::Reference reference(c.problem, inputs, false);
  for (const Rung& rung : the_chapter().rungs) {
    if (!rung.forward) continue;
    harness::DeviceTensors device(c.problem, inputs, rung.forward.workspace_bytes(c.problem), false);
    device.upload_rope(c.problem, 1000);
    rung.forward.run(c.problem, device.forward_args(), nullptr);
    check(cudaDeviceSynchronize());
    std::vector<uint16_t> o(c.problem.q_size());
    device.o.download(o.data());
    EXPECT_EQ(reference.check_forward(harness::from_storage(o, c.problem.dtype), {}).first_wrong(), "") << rung.name;
  }
}

TEST_F(Chapter, RefusesWhatItDoesNotSupport) {
  for_every_pass([](const auto& pass, const std::string& title) {
    for (const int head_dim : {60, 12, 264, 1024}) {
      const std::string why = pass.unsupported(ragged(head_dim).problem);
      EXPECT_NE(why.find(std::to_string(head_dim)), std::string::npos) << title << " says: " << why;
      EXPECT_EQ(why.find('\n'), std::string::npos) << title << " says: " << why;
    }
  });
}

TEST_F(Chapter, HasANameAnIdeaAndRungs) {
  EXPECT_FALSE(the_chapter().name.empty());
  EXPECT_FALSE(the_chapter().idea.empty());
  ASSERT_FALSE(the_chapter().rungs.empty());
  for (const Rung& rung : the_chapter().rungs) {
    EXPECT_STRNE(rung.name, "");
    EXPECT_STRNE(rung.idea, "");
    EXPECT_TRUE(rung.forward || rung.backward) << rung.name;
  }
}

// The forward of another chapter that this one's backwards start from: any number of keys, rows that see none.
TEST_F(Chapter, ItsBackwardsGoOnFromTheForwardThatItNames) {
  const Rung* const forward = the_chapter().starts_from;
  if (!forward) return;
  ASSERT_TRUE(forward->forward && forward->forward.writes_lse) << forward->name;
  Case empty_rows = small(128);
  empty_rows.problem.seq_k = 70;
  empty_rows.problem.dtype = attention::DType::bf16;
  for (const Case& c : {small(), empty_rows}) {
    const auto inputs = harness::make_inputs(c.problem, c.inputs, 7);
    const harness::Reference reference(c.problem, inputs, true, forward_result(forward->forward, c.problem, inputs));
    for (const Rung& rung : the_chapter().rungs)
      if (rung.backward) {
        const harness::Verdict verdict = run_backward(rung.backward, c.problem, inputs, reference, 0);
        EXPECT_TRUE(verdict.passed()) << rung.name << ", " << name(c) << ": " << verdict.first_wrong();
      }
  }
}

// The first rung may write its matrices of N x N down, as the equations have them.
TEST_F(Chapter, ItsLaterBackwardsTakeMemoryLinearInN) {
  const auto& rungs = the_chapter().rungs;
  for (size_t i = 1; i < rungs.size(); i++)
    for (const int head_dim : {64, 128}) {
      if (!rungs[i].backward) continue;
      attention::Problem p = ragged(head_dim).problem;
      p.seq_q = p.seq_k = 4096;
      const size_t bytes = rungs[i].backward.workspace_bytes(p);
      p.seq_q = p.seq_k = 4 * 4096;
      EXPECT_LE(rungs[i].backward.workspace_bytes(p), 4 * bytes) << rungs[i].name;
    }
}

TEST_F(Chapter, CanBeCapturedInACudaGraph) {
  if (!on_gpu) GTEST_SKIP() << "needs a GPU: the SIMT engine has no graphs";
  for_every_pass([](const auto& pass, const std::string& title) {
    EXPECT_EQ(solve_in_a_graph(pass, small()), "") << title;
  });
}

}  // namespace
}  // namespace chapter_suite
