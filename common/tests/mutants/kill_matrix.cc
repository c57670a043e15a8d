// Which kind of test kills which mutant: every one against every other, for ./workbook dev mutants.
//
//   kill_matrix list            the mutants and this build's kinds of tests, as JSON
//   kill_matrix run MUTANT..    what each kind has against them, a line each: "mutant kind: what"; all if none is named
//   kill_matrix launch MUTANT   its kernels on small problems, whatever comes of it: for compute-sanitizer to look at
#include <algorithm>
#include <cstdio>
#include <iomanip>
#include <iostream>
#include <string_view>

#include "tests/chapter/kinds.h"
#include "tests/chapter/references.h"
#include "tests/mutants/mutants.h"

namespace {

using chapter_suite::Kind;
using mutants::Mutant;

void list() {
  const auto print = [](const char* key, const auto& all, auto&& described) {
    std::cout << "\"" << key << "\": {";
    const char* comma = "";
    for (const auto& one : all) {
      std::cout << comma << "\n  " << std::quoted(one.name) << ": " << std::quoted(described(one));
      comma = ",";
    }
    std::cout << "}";
  };
  std::cout << "{";
  print("mutants", mutants::on_this_device(), [](const Mutant& mutant) { return mutant.mistake; });
  std::cout << ",\n";
  print("kinds", chapter_suite::kinds(), [](const Kind& kind) { return kind.looks_for; });
  std::cout << "}\n";
}

void run(const Mutant& mutant) {
  for (const Kind& kind : chapter_suite::kinds()) {
    const std::string wrong =
        mutant.forward ? kind.against(mutant.forward, mutant.rope) : kind.against(mutant.backward, mutant.rope);
    if (!wrong.empty())
      std::cout << mutant.name << " " << kind.name << ": " << wrong.substr(0, wrong.find('\n')) << "\n";
  }
  std::cout << mutant.name << std::endl;
}

void launch(const Mutant& mutant) {
  for (chapter_suite::Case c : chapter_suite::small_cases()) {
    c.problem.rope = mutant.rope;
    const chapter_suite::Solved& question = chapter_suite::solved(c, !mutant.forward);
    // Without guards, and with a workspace that nobody has filled, so that the sanitizers see where it is left.
    if (mutant.forward)
      run_forward(mutant.forward, c.problem, question.inputs, question.reference, 0);
    else
      run_backward(mutant.backward, c.problem, question.inputs, question.reference, 0);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "list") {
    list();
    return 0;
  }
  const std::vector<std::string_view> named(argv + std::min(argc, 2), argv + argc);
  for (const std::string_view name : named)
    if (std::none_of(mutants::all().begin(), mutants::all().end(), [&](const Mutant& m) { return m.name == name; })) {
      std::fprintf(stderr, "kill_matrix: no mutant is called %s; kill_matrix list names them\n", name.data());
      return 2;
    }
  if (what != "run" && what != "launch") {
    std::fprintf(stderr, "kill_matrix: the first word must be list, run or launch\n");
    return 2;
  }
  for (const Mutant& mutant : mutants::on_this_device())
    if (named.empty() || std::find(named.begin(), named.end(), mutant.name) != named.end())
      what == "run" ? run(mutant) : launch(mutant);
  return 0;
}
