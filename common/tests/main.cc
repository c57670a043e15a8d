// GoogleTest's main. Where there is no GPU, tests that need one are skipped, and CTest would call that a success: the
// last line says how many did not run. With REQUIRE_GPU=1 in the environment they fail instead: see gpu_required().
#include <gtest/gtest.h>

#include <cstdio>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int status = RUN_ALL_TESTS();
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  const int skipped = tests.skipped_test_count();
  if (skipped > 0) std::printf("NOT RUN: %d tests, for want of a GPU\n", skipped);
  return status;
}
