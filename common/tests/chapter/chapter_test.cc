// The shared suite: every rung of the_chapter() goes through every kind of test, on the SIMT engine or on the GPU.
#include "attention/chapter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "harness/kernel_process.h"
#include "tests/chapter/cases.h"
#include "tests/chapter/kinds.h"
#include "tests/chapter/on_device.h"
#include "tests/chapter/references.h"

const attention::Chapter& the_chapter();  // generated for each chapter: common/cmake/the_chapter.cc.in
bool has_bf16();

namespace chapter_suite {
namespace {

using attention::Rung;

// Calls test(pass, its name, its share) for every direction of every rung; for one of them if WORKBOOK_PASS names it,
// as in "online forward": ./workbook check asks for the one that an exercise is about. If it is "last", for the last
// forward and the last backward, in one case of five, each chapter in the ones after those of the chapter before it;
// if it is "most", for the others, too, in one case of ten, each rung in the ones after those of the rung before it.
struct Share {
  size_t first = 0, each = 1;
};
template <class Test>
void for_every_pass(Test&& test) {
  const char* const value = std::getenv("WORKBOOK_PASS");
  const std::string only = value ? value : "";
  const auto& rungs = the_chapter().rungs;
  const auto last = [&](auto direction) -> const Rung* {
    const auto found =
        std::find_if(rungs.rbegin(), rungs.rend(), [&](const Rung& rung) { return bool(rung.*direction); });
    return found == rungs.rend() ? nullptr : &*found;
  };
  bool found = false;
  const auto tried = [&](const Rung& rung, auto direction, const std::string& title) {
    const auto& pass = rung.*direction;
    const bool is_last = &rung == last(direction), some = only == "last" || only == "most";
    if (!pass || !(only.empty() || title == only || only == "most" || (only == "last" && is_last))) return;
    found = true;
    const size_t of_chapter = size_t(std::atoi(the_chapter().name.c_str()));
    test(harness::in_kernel_process(pass), title,
         !some     ? Share{}
         : is_last ? Share{of_chapter, 5}
                   : Share{size_t(&rung - rungs.data()), 10});
  };
  for (const Rung& rung : rungs) {
    tried(rung, &Rung::forward, std::string(rung.name) + " forward");
    tried(rung, &Rung::backward, std::string(rung.name) + " backward");
  }
  if (!found && !only.empty()) ADD_FAILURE() << "there is no " << only << " in this chapter";
}

// Without bf16 in fp16, and without the inputs that only bf16 can hold.
Case of_the_chapter(Case c) {
  c.problem.rope = the_chapter().rope;
  if (has_bf16()) return c;
  using harness::InputKind;
  if (c.inputs == InputKind::overflow || c.inputs == InputKind::apart) c.inputs = InputKind::spread;
  c.problem.dtype = attention::DType::fp16;
  return c;
}

class Rungs : public OnDevice, public testing::WithParamInterface<Kind> {};

// A kind of test at a time: CTest starts a process for each.
TEST_P(Rungs, Pass) {
  for_every_pass([](const auto& pass, const std::string& title, Share share) {
    Kind kind = GetParam();
    std::vector<Case> cases;
    const size_t each = std::min(share.each, kind.cases.size());  // one at least
    for (size_t i = share.first % each; i < kind.cases.size(); i += each)
      cases.push_back(of_the_chapter(kind.cases[i]));
    kind.cases = std::move(cases);
    EXPECT_EQ(kind.against(pass, the_chapter().rope), "") << title;
  });
}

// All, but for those about extras that no rung takes, or about eight bits.
std::vector<Kind> kinds_of_the_chapter() {
  unsigned taken = attention::no_extras;
  bool eight_bits = false;
  for (const Rung& rung : the_chapter().rungs) {
    taken |= rung.forward.takes | rung.backward.takes;
    eight_bits |= rung.forward.eight_bits != attention::sixteen_bits;
  }
  std::vector<Kind> some;
  for (const Kind& kind : kinds())
    if (const attention::Problem& p = kind.cases[0].problem;
        attention::extras_unsupported(p, taken).empty() && (eight_bits || !p.eight_bits))
      some.push_back(kind);
  return some;
}
INSTANTIATE_TEST_SUITE_P(All, Rungs, testing::ValuesIn(kinds_of_the_chapter()),
                         [](const auto& info) { return info.param.name; });

class Chapter : public OnDevice {};

// Other rungs may give up determinism for speed; the one that runs by default may not.
TEST_F(Chapter, ItsResultIsDeterministic) {
  const Rung& result = the_chapter().rungs.back();
  EXPECT_TRUE(result.forward.deterministic && result.backward.deterministic);
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

// Where the chapter names a rung of another chapter whose forward goes before its backwards: do they fit together, with
// ragged tiles and with rows that see no key?
TEST_F(Chapter, ItsBackwardsTakeItsForwardsResults) {
  const Rung* const forward = the_chapter().starts_from;
  if (!forward) return;
  ASSERT_TRUE(forward->forward && forward->forward.writes_lse) << forward->name;
  const Case ordinary = of_the_chapter(ragged());
  Case empty_rows = ragged(128);
  empty_rows.problem.seq_k = 70;
  empty_rows.problem.dtype = attention::DType::bf16;
  for (const Case& c : {ordinary, of_the_chapter(empty_rows)}) {
    const auto& inputs = solved(c, false).inputs;
    const harness::Reference reference(c.problem, inputs, true, forward_result(forward->forward, c.problem, inputs));
    for (const Rung& rung : the_chapter().rungs)
      if (rung.backward) {
        const harness::Verdict verdict = run_backward(rung.backward, c.problem, inputs, reference, 0);
        EXPECT_TRUE(verdict.passed()) << rung.name << ", " << name(c) << ": " << verdict.first_wrong();
      }
  }
}

// The first rung is exempt: it may store the N x N matrices of the equations.
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

}  // namespace
}  // namespace chapter_suite
