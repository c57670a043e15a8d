// Does the suite that the chapters pass reject kernels that are wrong? Each mutant must fail at least one case, and
// the same kernel without a mistake must pass them all.
#include "tests/mutants/mutants.h"

#include <gtest/gtest.h>

#include "tests/chapter/cases.h"
#include "tests/chapter/on_device.h"

namespace {

using chapter_suite::Case;
using mutants::Mutation;

class Mutants : public chapter_suite::OnDevice {};

// What the suite has against a kernel; the first thing only. Empty if nothing.
std::string rejection(const attention::Forward& pass) {
  for (const Case& c : chapter_suite::cases()) {
    try {
      if (const std::string wrong = chapter_suite::solve(pass, c); !wrong.empty()) return name(c) + ": " + wrong;
    } catch (const CudaError& error) {  // the engine saw the mistake itself
      return name(c) + ": " + error.what();
    }
  }
  return "";
}

TEST_F(Mutants, TheKernelWithoutAMistakePasses) { EXPECT_EQ(rejection(mutants::forward(Mutation::none)), ""); }

#define KILLED(mutation)                                                        \
  TEST_F(Mutants, mutation) {                                                   \
    const std::string why = rejection(mutants::forward(Mutation::mutation));    \
    EXPECT_NE(why, "") << "the suite lets this wrong kernel pass";              \
    RecordProperty("rejected_because", why);                                    \
    std::printf("%s\n", why.c_str());                                           \
  }
KILLED(no_rescale)
KILLED(wrong_scale)
KILLED(dropped_tail)
KILLED(dropped_last_key)
KILLED(mask_off_by_one)
KILLED(mask_top_left)
KILLED(mean_of_v)
KILLED(wrong_kv_head)
KILLED(lse_in_log2)
KILLED(no_max)
KILLED(nan_for_empty_rows)
KILLED(writes_past_end)

// Without its barrier a kernel may be right by luck in one order of threads, not in all of them. A GPU chooses its own
// orders, and may well be lucky in all: there, CMakeLists.txt has racecheck look at this test's one launch.
TEST_F(Mutants, missing_barrier) {
  const attention::Forward pass = mutants::forward(Mutation::missing_barrier);
  if (on_gpu) {
    chapter_suite::solve(pass, Case{.problem = {.seq_q = 64, .seq_k = 64}});
    return;
  }
  std::string why;
  chapter_suite::for_every_order([&](const std::string&) {
    if (why.empty()) why = rejection(pass);
  });
  EXPECT_NE(why, "") << "the suite lets this wrong kernel pass";
}

}  // namespace
