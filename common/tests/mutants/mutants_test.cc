// Do the tests that the chapters pass reject kernels that are wrong? The table in README.md says which kind of test
// rejects which of them; here is checked that it says so of every mutant and every kind, and that it is still true:
// that a kind which the table names rejects the mutant and, in the slow tier, that all of them do and, of the mutant
// which a kind is there for, no other.
#include "tests/mutants/mutants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/chapter/kinds.h"
#include "tests/chapter/on_device.h"
#include "tests/mutants/kill_table.h"

namespace {

using chapter_suite::Kind;
using mutants::KillTable;
using mutants::Mutant;

const KillTable& table_of(const std::string& device) {
  static const KillTable engine = mutants::read_kill_table(KILL_MATRIX, "engine");
  static const KillTable gpu = mutants::read_kill_table(KILL_MATRIX, "gpu");
  return device == "gpu" ? gpu : engine;
}

// The kinds that there are on each device, whatever this build is for.
std::vector<std::string> kinds_on(const std::string& device) {
  std::vector<std::string> kinds = {"lengths",  "inputs",     "norms",       "weights",       "heads",  "rounds",
                                    "few_keys", "head_dims",  "scale",       "non_finite",    "repeat", "little_memory",
                                    "moved",    "eight_bits", "windows",     "scores",        "sinks",  "views",
                                    "packed",   "blocks",     "wrong_lists", "wrong_lengths", "extras", "refusals"};
  const std::vector<std::string> others =
      device == "gpu" ? std::vector<std::string>{"long", "graph", "memcheck", "racecheck", "synccheck", "initcheck"}
                      : std::vector<std::string>{"again", "orders", "trace"};
  kinds.insert(kinds.end(), others.begin(), others.end());
  return kinds;
}

const char* const remedy = "./workbook dev mutants --write makes the table anew";

// The first mutant of the table that only this kind rejects: what the kind is for.
std::string reason_for(const std::string& kind, const KillTable& table) {
  const auto found = std::find_if(table.mutants.begin(), table.mutants.end(), [&](const std::string& mutant) {
    return table.killers.contains(mutant) && table.killers.at(mutant) == std::vector{kind};
  });
  return found == table.mutants.end() ? "" : *found;
}

class KillMatrix : public testing::TestWithParam<const char*> {};

TEST_P(KillMatrix, HasALineForEveryMutant) {
  std::vector<std::string> names;
  for (const Mutant& mutant : mutants::all())
    if (GetParam() == std::string("gpu") ? !mutant.needs_the_engine : !mutant.needs_a_gpu) names.push_back(mutant.name);
  EXPECT_EQ(table_of(GetParam()).mutants, names) << remedy;
}

TEST_P(KillMatrix, HasALineForEveryKindAndNoOther) {
  const KillTable& table = table_of(GetParam());
  const std::vector<std::string> kinds = kinds_on(GetParam());
  EXPECT_EQ(table.kinds, kinds) << remedy;
  for (const auto& [mutant, killers] : table.killers)
    for (const std::string& killer : killers)
      EXPECT_NE(std::find(kinds.begin(), kinds.end(), killer), kinds.end()) << mutant << " is rejected by " << killer;
}

TEST_P(KillMatrix, NoMutantLives) {
  const KillTable& table = table_of(GetParam());
  for (const std::string& mutant : table.mutants)
    EXPECT_TRUE(table.killers.contains(mutant)) << mutant << " is rejected by no kind of test: one is missing";
}

// Else it can go, or the mutant is missing that shows what it is for.
TEST_P(KillMatrix, EveryKindKillsWhatNoOtherDoes) {
  const KillTable& table = table_of(GetParam());
  EXPECT_FALSE(table.kinds.empty()) << remedy;
  for (const std::string& kind : table.kinds)
    EXPECT_NE(reason_for(kind, table), "")
        << kind << " kills nothing that another kind does not: it is superfluous, or a mutant is missing";
}
INSTANTIATE_TEST_SUITE_P(On, KillMatrix, testing::Values("engine", "gpu"), [](const auto& info) { return info.param; });

TEST(Kinds, AreThoseOfTheTable) {
  const std::vector<std::string> kinds = kinds_on(on_gpu ? "gpu" : "engine");
  for (const Kind& kind : chapter_suite::kinds())
    EXPECT_NE(std::find(kinds.begin(), kinds.end(), kind.name), kinds.end()) << kind.name;
}

TEST(Kinds, SayWhyTheyHaveEachCase) {
  for (const Kind& kind : chapter_suite::kinds()) {
    EXPECT_FALSE(kind.cases.empty()) << kind.name;
    std::set<std::string> names;
    for (const chapter_suite::Case& c : kind.cases) {
      EXPECT_STRNE(c.because, "") << kind.name << ", " << name(c);
      EXPECT_TRUE(names.insert(name(c)).second) << kind.name << " has " << name(c) << " twice";
    }
  }
}

std::string against(const Kind& kind, const Mutant& mutant) {
  return mutant.forward ? kind.against(mutant.forward, mutant.rope) : kind.against(mutant.backward, mutant.rope);
}

// The kinds of this build that the table names for the mutant, in its order. (On a GPU, none if sanitizers alone find
// it.)
std::vector<Kind> killers_of(const Mutant& mutant) {
  std::vector<Kind> named;
  const KillTable& table = table_of(on_gpu ? "gpu" : "engine");
  if (!table.killers.contains(mutant.name)) return named;
  for (const std::string& killer : table.killers.at(mutant.name))
    for (const Kind& kind : chapter_suite::kinds())
      if (kind.name == killer) named.push_back(kind);
  return named;
}

std::vector<Mutant> with_a_killer_here() {
  std::vector<Mutant> found = mutants::on_this_device();
  std::erase_if(found, [](const Mutant& mutant) { return killers_of(mutant).empty(); });
  return found;
}

class Mutants : public chapter_suite::OnDevice, public testing::WithParamInterface<Mutant> {};

// By the first kind of its line; a GPU may be lucky where threads race, and another one has to do.
TEST_P(Mutants, AreRejected) {
  const std::vector<Kind> killers = killers_of(GetParam());
  const auto end = on_gpu ? killers.end() : killers.begin() + 1;
  EXPECT_TRUE(std::any_of(killers.begin(), end, [](const Kind& kind) { return against(kind, GetParam()) != ""; }))
      << killers[0].name << (on_gpu ? " and all other kinds let" : " lets")
      << " this wrong kernel pass: " << GetParam().mistake;
}
INSTANTIATE_TEST_SUITE_P(All, Mutants, testing::ValuesIn(with_a_killer_here()),
                         [](const auto& info) { return info.param.name; });

class WholeLine : public Mutants {};

// By all kinds of its line; and the mutant that a kind is there for, by no other. Not on a GPU, where luck may have a
// say.
TEST_P(WholeLine, IsWhatTheTableSays) {
  const KillTable& table = table_of("engine");
  const std::vector<std::string>& killers = table.killers.at(GetParam().name);
  const bool by_no_other = reason_for(killers[0], table) == GetParam().name;
  for (const Kind& kind : chapter_suite::kinds()) {
    if (std::find(killers.begin(), killers.end(), kind.name) != killers.end())
      EXPECT_NE(against(kind, GetParam()), "") << kind.name << " lets this wrong kernel pass: " << GetParam().mistake;
    else if (by_no_other)
      EXPECT_EQ(against(kind, GetParam()), "") << kind.name << " rejects what only " << killers[0] << " should reject";
  }
}
#ifdef WORKBOOK_SIMT
INSTANTIATE_TEST_SUITE_P(Slow, WholeLine, testing::ValuesIn(mutants::on_this_device()),
                         [](const auto& info) { return info.param.name; });
#endif
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(WholeLine);

// The same kernels without a mistake.
constexpr unsigned every_extra = attention::views | attention::window | attention::softcap | attention::alibi |
                                 attention::sink | attention::own_v | attention::packed | attention::blocks;
const Mutant right_ones[] = {
    {"forward", "", false, false, false, mutants::forward(mutants::Mutation::none)},
    {"forward_with_rope", "", true, false, false, mutants::forward(mutants::Mutation::none)},
    {"backward", "", false, false, false, {}, mutants::backward(mutants::BackwardMutation::none)},
    {"backward_with_rope", "", true, false, false, {}, mutants::backward(mutants::BackwardMutation::none)},
    {"forward_with_extras", "", false, false, false, mutants::forward(mutants::ExtraMutation::none, every_extra)},
    {"backward_with_extras", "", false, false, false, {}, mutants::backward(mutants::ExtraMutation::none, every_extra)},
    {"forward_in_eight_bits", "", false, false, false, mutants::forward(mutants::Fp8Mutation::none)},
#ifdef WORKBOOK_SIMT
    {"hopper", "", false, false, true, mutants::forward(mutants::HopperMutation::none)},
#endif
};

class RightKernels : public chapter_suite::OnDevice, public testing::WithParamInterface<Mutant> {};

TEST_P(RightKernels, Pass) {
  for (const Kind& kind : chapter_suite::kinds()) EXPECT_EQ(against(kind, GetParam()), "") << kind.name;
}
INSTANTIATE_TEST_SUITE_P(All, RightKernels, testing::ValuesIn(right_ones),
                         [](const auto& info) { return info.param.name; });

}  // namespace
