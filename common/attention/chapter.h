// What a chapter tells the rest of the workbook about itself.
//
// Every chapter directory ends in one `const attention::Chapter chapter`, inside a namespace named after the
// directory (05_online_softmax: namespace online_softmax). The programs, tests, benchmarks and tools work from
// that alone: adding a chapter is adding a directory.
#pragma once

#include <string>
#include <vector>

#include "attention/rung.h"

namespace attention {

struct Chapter {
  std::string name;         // the directory: "05_online_softmax"
  std::string idea;         // the one idea, in a sentence
  std::vector<Rung> rungs;  // at least one; the last is the chapter's result
  // Another chapter's rung, whose forward made the O and LSE that the backwards start from; else they are the
  // reference's.
  const Rung* starts_from = nullptr;
  // One more rung, small enough to be looked at step by step. It runs only if it is named, and is never timed.
  const Rung* example = nullptr;
  bool rope = false;  // it solves problems with RoPE, and no others; all other chapters solve those without
  // If no chapter is named, the last one that supports the problem runs. `false` excludes this chapter, which is made
  // for few problems and is slower at the others that it supports; it still runs where its result chooses one of its
  // own rungs (Pass::chooses), and for problems with extras that it takes.
  bool general = true;
};

}  // namespace attention
