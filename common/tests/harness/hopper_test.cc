// On which GPUs do the kernels of chapter 10 run? All of its rungs ask attention::not_for_hopper, which asks this.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "attention/problem.h"

namespace harness {
namespace {

constexpr int on_an_h100 = 227 * 1024;

TEST(NotHopper, AcceptsTheH100AndTheH200) { EXPECT_EQ(attention::not_hopper(9, 0, on_an_h100), ""); }

TEST(NotHopper, RefusesEveryOtherGpuInOneLineThatNamesIt) {
  for (const auto& [major, minor] : {std::pair{7, 5}, {8, 0}, {8, 6}, {8, 9}, {10, 0}, {12, 0}}) {
    const std::string why = attention::not_hopper(major, minor, on_an_h100),
                      name = std::to_string(major) + "." + std::to_string(minor);
    EXPECT_EQ(why.find("this GPU has compute capability " + name + ": supported is 9.0"), 0u) << why;
    EXPECT_EQ(why.find('\n'), std::string::npos);
  }
}

TEST(NotHopper, RefusesLittleSharedMemory) {
  EXPECT_EQ(attention::not_hopper(9, 0, 99 * 1024).find("a thread block can have 101376 bytes"), 0u);
}

}  // namespace
}  // namespace harness
