// The kinds of tests that every pass of every chapter goes through: each looks for mistakes that the others let pass.
// chapter_test.cc runs them over the chapters, mutants/ over kernels that are wrong on purpose.
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

  // What this kind of test has against a pass: the first thing, in a line; empty if nothing. With RoPE, or without.
  std::function<std::string(const attention::Forward&, bool rope)> against_forward;
  std::function<std::string(const attention::Backward&, bool rope)> against_backward;

  std::string against(const attention::Forward& pass, bool rope) const;
  std::string against(const attention::Backward& pass, bool rope) const;
};

inline void PrintTo(const Kind& kind, std::ostream* to) { *to << kind.looks_for; }  // for GoogleTest

// Those that this build can do: on the engine, on the engine that traces, or on a GPU.
const std::vector<Kind>& kinds();

}  // namespace chapter_suite
