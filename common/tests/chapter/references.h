// The inputs of a case and the results that kernels should have: made once, and kept in the build directory for every
// rung, chapter and mutant that solves the same case.
#pragma once

#include "harness/tensors.h"
#include "harness/verdict.h"
#include "tests/chapter/cases.h"

namespace chapter_suite {

struct Solved {
  harness::HostTensors inputs;
  harness::Reference reference;
};

constexpr uint64_t seed = 7;  // of all inputs

// The inputs of the case, and its reference; with `backward`, the gradients too. The result is valid until a hundred
// other cases have been asked for. Throws std::runtime_error if the file that should hold it holds something else.
const Solved& solved(const Case& c, bool backward);

// The same, kept in that directory; made there if it is missing.
Solved solved_in(const std::string& directory, const Case& c, bool backward);

}  // namespace chapter_suite
