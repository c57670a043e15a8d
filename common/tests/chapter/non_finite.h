// NaN and infinities among the inputs, and where they may be found afterwards.
#pragma once

#include <string>
#include <vector>

#include "attention/chapter.h"
#include "tests/chapter/cases.h"

namespace chapter_suite {

std::vector<Case> cases_for_non_finite();  // four kv heads each, of one or two query heads

// One element of K of one kv head is NaN, or infinite; of V of another one, of Q of a third, of dO of a fourth. What is
// wrong with the results, in a line; empty if nothing is:
//
//   - A result that depends on the element by the formula, whose sums are over the keys that a query sees, is NaN or
//     infinite as well. Nothing makes a number of it.
//   - All other results are right. Rows that see the element through a P or dS of 0 alone, because the mask hides it,
//     are the exception: 0 * NaN is NaN, and where a product meets hidden keys (as tensor cores do on the diagonal, and
//     PyTorch everywhere) these may be NaN or right.
std::string wrong_non_finite(const attention::Forward& pass, const Case& c);
std::string wrong_non_finite(const attention::Backward& pass, const Case& c);

}  // namespace chapter_suite
