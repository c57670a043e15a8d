// The kinds of tests that every pass of every chapter goes through: each looks for mistakes that the others let pass.
// chapter_test.cc runs them over the chapters, mutants/ over kernels that are wrong on purpose. A kind has cases. Each
// is there for a mutant that no other case of the kind rejects, or for what the chapters' tiles have and a mutant's
// have not.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "attention/chapter.h"
#include "tests/chapter/cases.h"

namespace chapter_suite {

struct Kind {
  const char* name;
  const char* looks_for;
  std::vector<Case> cases;  // every one with its reason

  // What is wrong with how a pass takes a case, in a line; empty if nothing is.
  std::function<std::string(const attention::Forward&, const Case&)> wrong_with_forward;
  std::function<std::string(const attention::Backward&, const Case&)> wrong_with_backward;

  // What this kind has against a pass, with RoPE or without: in one case, or in the first case that it has something
  // against.
  std::string against(const attention::Forward& pass, bool rope, const Case& c) const;
  std::string against(const attention::Backward& pass, bool rope, const Case& c) const;
  std::string against(const attention::Forward& pass, bool rope) const;
  std::string against(const attention::Backward& pass, bool rope) const;
};

inline void PrintTo(const Kind& kind, std::ostream* to) { *to << kind.looks_for; }  // for GoogleTest

// Those that this build can do: on the engine, on the engine that traces, or on a GPU.
const std::vector<Kind>& kinds();

}  // namespace chapter_suite
