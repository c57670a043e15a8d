// GoogleTest's main. Where there is no GPU, tests that need one are skipped, and CTest would call that a success: the
// last line says how many did not run, and with REQUIRE_GPU=1 in the environment it is a failure.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int status = RUN_ALL_TESTS();
  const int skipped = testing::UnitTest::GetInstance()->skipped_test_count();
  if (skipped == 0) return status;
  std::printf("NOT RUN: %d tests, for want of a GPU\n", skipped);
  const char* require = std::getenv("REQUIRE_GPU");
  return require && std::string(require) == "1" ? 1 : status;
}
