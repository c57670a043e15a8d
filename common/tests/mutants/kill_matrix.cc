// Which case of which kind of test kills which mutant: every one against every other, for ./workbook dev mutants.
//
//   kill_matrix list            the mutants, and this build's kinds of tests with their cases, as JSON
//   kill_matrix run MUTANT..    what each case has against them, a line each: "mutant kind case: what"; all if none is
//   named kill_matrix launch MUTANT   its kernels on small problems, whatever comes of it: for compute-sanitizer to
//   look at
#include <algorithm>
#include <cstdio>
#include <iomanip>
#include <iostream>
#include <string_view>

#include "tests/chapter/kinds.h"
#include "tests/chapter/references.h"
#include "tests/mutants/mutants.h"

namespace {

using chapter_suite::Case;
using chapter_suite::Kind;
using mutants::Mutant;

// {"name": what print() makes of it, ...}
template <class All, class Print>
void print_object(const All& all, Print&& print) {
  std::cout << "{";
  const char* comma = "";
  for (const auto& one : all) {
    std::cout << comma << "\n";
    print(one);
    comma = ",";
  }
  std::cout << "}";
}

void list() {
  std::cout << "{\"mutants\": ";
  print_object(mutants::on_this_device(), [](const Mutant& mutant) {
    std::cout << std::quoted(mutant.name) << ": " << std::quoted(mutant.mistake);
  });
  std::cout << ",\n\"kinds\": ";
  print_object(chapter_suite::kinds(), [](const Kind& kind) {
    std::cout << std::quoted(kind.name) << ": {\"looks_for\": " << std::quoted(kind.looks_for) << ", \"cases\": ";
    print_object(kind.cases,
                 [](const Case& c) { std::cout << std::quoted(name(c)) << ": " << std::quoted(c.because); });
    std::cout << "}";
  });
  std::cout << "}\n";
}

void run(const Mutant& mutant) {
  for (const Kind& kind : chapter_suite::kinds())
    for (const Case& c : kind.cases) {
      const std::string wrong =
          mutant.forward ? kind.against(mutant.forward, mutant.rope, c) : kind.against(mutant.backward, mutant.rope, c);
      if (!wrong.empty())
        std::cout << mutant.name << " " << kind.name << " " << name(c) << ": " << wrong.substr(0, wrong.find('\n'))
                  << "\n";
    }
  std::cout << mutant.name << std::endl;
}

void launch(const Mutant& mutant) {
  for (Case c : chapter_suite::small_cases()) {
    c.problem.rope = mutant.rope;
    const auto refused = [&](const auto& pass) { return !attention::unsupported(pass, c.problem).empty(); };
    if (mutant.forward ? refused(mutant.forward) : refused(mutant.backward)) continue;
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
