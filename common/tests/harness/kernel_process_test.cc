// What a kernel cannot see from a process of its own, and what comes back from there.
#include "tests/chapter/kernel_process.h"

#include <gtest/gtest.h>

#include <cstring>

#include "device/cuda.h"
#include "device/cuda_error.h"
#include "tests/chapter/cases.h"
#include "tests/chapter/references.h"

namespace {

using attention::Forward;
using attention::ForwardArgs;
using attention::Problem;
using chapter_suite::Case;

// What a submission would have to find: the reference of the process that judges it.
const harness::Reference* known = nullptr;

// "Computes" by reading the reference.
void read_the_reference(const Problem& p, const ForwardArgs& args, cudaStream_t) {
  const std::vector<double> o = known ? known->o() : std::vector<double>(p.q_size(), 0);
  const auto bits = harness::to_storage({o.begin(), o.end()}, p.dtype);
  std::memcpy(args.o, bits.data(), bits.size() * 2);
}

void fail(const Problem&, const ForwardArgs&, cudaStream_t) { throw CudaError(cudaErrorIllegalAddress, "as it said"); }

void end(const Problem&, const ForwardArgs&, cudaStream_t) { abort(); }

Forward pass_of(void (*run)(const Problem&, const ForwardArgs&, cudaStream_t)) {
  return {[](const Problem&) { return std::string(); }, [](const Problem&) { return size_t(0); }, run};
}

// Everything in a process that is forked for it, so that no other test is kept from its kernels.
TEST(KernelProcessDeathTest, AKernelSeesNothingThatIsMadeAfterwards) {
  const Case c = chapter_suite::make({1, 2, 1, 5, 9, 64}, attention::DType::fp16, attention::Mask::none);
  const auto in_its_process = [&] {
    chapter_suite::start_kernel_process();
    known = &chapter_suite::solved(c, false).reference;
    const Forward reads = pass_of(read_the_reference);
    if (const std::string here = solve(reads, c); !here.empty()) return "here it must be right: " + here;
    if (const std::string there = solve(chapter_suite::in_kernel_process(reads), c);
        there.find("o[b=0, h=0, i=0, d=0] is 0,") != 0)
      return "there it must be wrong: " + there;
    if (const std::string error = solve(chapter_suite::in_kernel_process(pass_of(fail)), c); error != "as it said")
      return "its error is lost: " + error;
    return std::string("all is well");
  };
  EXPECT_EXIT(
      {
        std::fputs(in_its_process().c_str(), stderr);
        exit(0);
      },
      testing::ExitedWithCode(0), "^all is well");
  EXPECT_EXIT(
      {
        chapter_suite::start_kernel_process();
        solve(chapter_suite::in_kernel_process(pass_of(end)), c);
      },
      testing::KilledBySignal(SIGABRT), "");
}

}  // namespace
