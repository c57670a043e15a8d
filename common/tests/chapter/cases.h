// The problems every chapter is put through, and what it means to solve one. chapter_test.cc runs them over the
// chapters, mutants_test.cc over kernels that are wrong on purpose.
#pragma once

#include <string>
#include <vector>

#include "attention/chapter.h"
#include "harness/tensors.h"

namespace chapter_suite {

struct Case {
  attention::Problem problem;
  harness::InputKind inputs = harness::InputKind::spread;
};

std::string name(const Case& c);  // letters, digits and underscores

// Chosen so that every value of every axis (lengths around tile edges, equal and unequal, masks, dtypes, head dims,
// grouped heads, kinds of input) occurs, and the pairs that matter meet.
std::vector<Case> cases();

// Solves the case once and compares with the reference: an empty string, or what is wrong. Memory around the tensors
// must survive, and outputs start as NaN. Unsupported problems pass if the refusal says something.
std::string solve(const attention::Forward& pass, const Case& c);
std::string solve(const attention::Backward& pass, const Case& c);

// The outputs of `times` runs on the same inputs: empty, or which run differed in at least one bit from the first.
std::string differs_from_run_to_run(const attention::Forward& pass, const Case& c, int times);
std::string differs_from_run_to_run(const attention::Backward& pass, const Case& c, int times);

}  // namespace chapter_suite
