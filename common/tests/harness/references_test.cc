// Are the answers that are kept those of the case that asks for them?
#include "tests/chapter/references.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace {

using attention::DType;
using attention::Mask;
using chapter_suite::Case;
using chapter_suite::make;
using chapter_suite::solved_in;

class References : public testing::Test {
 protected:
  References() : directory_(std::filesystem::temp_directory_path() / ("references." + std::to_string(getpid()))) {}
  ~References() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path file(const Case& c, bool backward) {
    return directory_ / (name(c) + (backward ? "_backward" : "_forward"));
  }
  void expect_refused(const Case& c, const std::string& why) {
    try {
      solved_in(directory_, c, false);
      ADD_FAILURE() << "was taken for the reference of " << name(c);
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    }
  }

  const std::filesystem::path directory_;
  const Case one_ = make({1, 2, 1, 5, 9, 64}, DType::fp16, Mask::causal);
};

TEST_F(References, WhatIsReadIsWhatWasMade) {
  for (const bool backward : {false, true}) {
    const auto made = solved_in(directory_, one_, backward), read = solved_in(directory_, one_, backward);
    ASSERT_TRUE(std::filesystem::exists(file(one_, backward)));
    EXPECT_EQ(read.inputs.q, made.inputs.q);
    EXPECT_EQ(read.inputs.d_o, made.inputs.d_o);
    EXPECT_EQ(read.reference.o(), made.reference.o());
    EXPECT_EQ(read.reference.lse(), made.reference.lse());
    const auto verdict = [&](const auto& solved) {
      const std::vector<float> zeros(one_.problem.q_size()), kv_zeros(one_.problem.kv_size());
      return backward ? solved.reference.check_backward(zeros, kv_zeros, kv_zeros)
                      : solved.reference.check_forward(zeros, {});
    };
    EXPECT_EQ(verdict(read).first_wrong(), verdict(made).first_wrong());
    EXPECT_EQ(verdict(read).worst().tolerance, verdict(made).worst().tolerance);
  }
}

// Whatever two cases differ in.
TEST_F(References, OfAnotherCaseIsRefused) {
  solved_in(directory_, one_, false);
  std::vector<Case> others(7, one_);
  others[0].problem.seq_k = 10;
  others[1].problem.head_dim = 128;
  others[2].problem.dtype = DType::bf16;
  others[3].problem.mask = Mask::none;
  others[4].problem.rope = true;
  others[5].inputs = harness::InputKind::loud;
  others[6].problem.scale = 0.126f;
  for (const Case& other : others) {
    std::filesystem::copy_file(file(one_, false), file(other, false),
                               std::filesystem::copy_options::overwrite_existing);
    expect_refused(other, "of another case");
  }
  std::filesystem::copy_file(file(one_, false), file(one_, true));
  EXPECT_THROW(solved_in(directory_, one_, true), std::runtime_error) << "a forward's, for a backward";
}

TEST_F(References, ThatIsNotWholeIsRefused) {
  solved_in(directory_, one_, false);
  std::filesystem::resize_file(file(one_, false), std::filesystem::file_size(file(one_, false)) - 100);
  expect_refused(one_, "too early");
}

TEST_F(References, IsMadeWhereNothingCanBeKept) {
  std::ofstream(directory_) << "a file where the directory should be";
  EXPECT_EQ(solved_in(directory_, one_, false).inputs.q.size(), one_.problem.q_size());
}

}  // namespace
