// Promises of a kernel, for GoogleTest: they hold, or say at which line they do not. Of traced kernels
// (simt_trace_executable).
//
//   const simt::Traced traced([&] { transpose<<<grid, block>>>(out, in, n); });
//   EXPECT_TRUE(simt::no_mistakes(traced));
//   EXPECT_TRUE(simt::no_bank_conflicts(traced));
//   EXPECT_TRUE(simt::sectors_a_request_at_most(traced, 4));
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "simt/cuda.h"
#include "simt/engine/error.h"
#include "simt/engine/pace.h"
#include "simt/trace/counts.h"

#ifndef SIMT_TRACED
#error "simt/front/testing.h is for traced kernels: simt_trace_executable(..), not simt_add_executable(..)"
#endif

namespace simt {

// The launches of a call, counted, and the mistakes in them.
class Traced {
 public:
  template <class Call>
  explicit Traced(const Call& call) {
    const std::size_t before = failed_launches().size();
    trace_begin();
    call();
    launches_ = trace_end();
    mistakes_ = failed_launches();
    mistakes_.erase(mistakes_.begin(), mistakes_.begin() + before);
    breaks(cudaSuccess);  // the next test starts as if there had been no mistake
  }

  const std::vector<LaunchCounts>& launches() const { return launches_; }  // those without a mistake
  const std::vector<std::string>& mistakes() const { return mistakes_; }

 private:
  std::vector<LaunchCounts> launches_;
  std::vector<std::string> mistakes_;
};

// No race, no read of what was not written, no access out of bounds, no deadlock: what the engine finds.
inline testing::AssertionResult no_mistakes(const Traced& traced) {
  testing::AssertionResult found = testing::AssertionFailure();
  for (const std::string& mistake : traced.mistakes()) found << mistake << "\n";
  if (!traced.mistakes().empty()) return found;
  if (traced.launches().empty()) return testing::AssertionFailure() << "no kernel was launched";
  return testing::AssertionSuccess();
}

// True if `allows(op, counts)` is of every line of every launch; else the lines of which it is not, with
// `words(counts)`.
template <class Allows, class Words>
testing::AssertionResult every_line(const Traced& traced, const Allows& allows, const Words& words) {
  if (testing::AssertionResult result = no_mistakes(traced); !result) return result;
  testing::AssertionResult wrong = testing::AssertionFailure();
  bool all = true;
  for (const LaunchCounts& launch : traced.launches())
    for (const LineCounts& line : launch.lines) {
      if (allows(line.op, line.counts)) continue;
      all = false;
      wrong << launch.kernel << ", " << line.line << ": " << words(line.counts) << " (" << name(line.op) << ")\n";
    }
  return all ? testing::AssertionSuccess() : wrong;
}

inline testing::AssertionResult no_bank_conflicts(const Traced& traced) {
  return every_line(
      traced, [](Op op, const Counts& counts) { return is_global(op) || counts.units == counts.ideal; },
      [](const Counts& counts) {
        return std::to_string(counts.units - counts.ideal) + " bank conflicts in " + std::to_string(counts.requests) +
               " requests";
      });
}

// Of global memory. A request of 32 neighbouring floats takes 4 sectors of 32 bytes; one of 32 neighbouring float4, 16.
inline testing::AssertionResult sectors_a_request_at_most(const Traced& traced, double most) {
  return every_line(
      traced,
      [most](Op op, const Counts& counts) {
        return !is_global(op) || double(counts.units) <= most * double(counts.requests);
      },
      [](const Counts& counts) {
        return std::to_string(double(counts.units) / double(counts.requests)) + " sectors a request";
      });
}

}  // namespace simt
