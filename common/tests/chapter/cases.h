// The problems that the suite gives to every pass, and what it means to solve one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attention/chapter.h"
#include "harness/tensors.h"

namespace chapter_suite {

struct Case {
  attention::Problem problem;
  harness::InputKind inputs = harness::InputKind::spread;
  const char* because = "";  // why a kind of test has it

  Case for_(const char* reason) const { return {problem, inputs, reason}; }
};

std::string name(const Case& c);  // letters, digits and underscores

struct Sizes {
  int batch, heads, kv_heads, seq_q, seq_k, head_dim;
};

Case make(const Sizes& sizes, attention::DType dtype, attention::Mask mask,
          harness::InputKind inputs = harness::InputKind::spread);

// One case for tests that are about something else: three tiles, ragged, causal, grouped heads.
Case ragged(int head_dim = 64);

// One where a row meets four blocks of 128 keys: two numbers can be added in either order, more cannot. On a GPU, which
// runs many blocks at a time, rather more of everything.
Case many_tiles(int head_dim = 64);

// A few that are quick where every access is looked at.
std::vector<Case> small_cases();
std::vector<Case> cases_for_checks();  // those, and two that fill every buffer of tiles again

// What every pass must be able to do: head dims that are multiples of 8 up to 128, and 512 keys (more may not fit
// where score rows are kept in shared memory), with the extras that it takes; with a V that has its own head dim, 192
// and 128, where the score is a plain one and blocks have as much shared memory as an A100's.
bool must_be_supported(const attention::Problem& problem, unsigned taken = attention::no_extras);

// Solves the case and compares with the reference: an empty string, or what is wrong, be it a number, a failed launch
// or memory written to around the tensors. Outputs start as NaN. A problem may be refused unless must_be_supported.
// With a guard, so many bytes around every tensor can be read and written, and are looked at; without, the engine stops
// at most accesses beyond a tensor, though not at those a little before it.
constexpr size_t usual_guard = on_gpu ? 256 : 0;
enum class Judged { elements, elements_and_norms };  // the largest error of an element; and the norm of all of them
std::string solve(const attention::Forward& pass, const Case& c, size_t guard = usual_guard,
                  Judged judged = Judged::elements);
std::string solve(const attention::Backward& pass, const Case& c, size_t guard = usual_guard,
                  Judged judged = Judged::elements);

// The bits of everything that the pass writes, in each of some launches. All have the same workspace: what one leaves
// there, counters of thread blocks among it, must be nothing to the next.
std::vector<std::vector<uint16_t>> outputs(const attention::Forward& pass, const Case& c, int launches);
std::vector<std::vector<uint16_t>> outputs(const attention::Backward& pass, const Case& c, int launches);

}  // namespace chapter_suite
