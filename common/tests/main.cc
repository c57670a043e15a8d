// GoogleTest's main. Where there is no GPU, tests that need one are skipped, and CTest would call that a success: the
// last line says how many did not run. With REQUIRE_GPU=1 in the environment they fail instead: see gpu_required().
//
// ./workbook grade is told how many tests have passed, and how many have failed.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "harness/grader_channel.h"

// Called if the program has it. Whoever is not to see the secret, nor anything that is made later, gets a process of
// its own here.
void before_all_tests() __attribute__((weak));

int main(int argc, char** argv) {
  if (before_all_tests) before_all_tests();
  const judge::GraderChannel grader;
  testing::InitGoogleTest(&argc, argv);
  const int status = RUN_ALL_TESTS();
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  const int skipped = tests.skipped_test_count();
  if (skipped > 0) std::printf("NOT RUN: %d tests, for want of a GPU\n", skipped);
  if (grader.is_open())
    grader.send(" " + std::to_string(tests.successful_test_count()) + " " + std::to_string(tests.failed_test_count()));
  return status;
}
