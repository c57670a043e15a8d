// GoogleTest's main. Where there is no GPU, tests that need one are skipped, and CTest would call that a success: the
// last line says how many did not run. With REQUIRE_GPU=1 in the environment they fail instead: see gpu_required().
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdio>

int main(int argc, char** argv) {
  // Memory of a case is the next one's: the system would have to clear again what goes back to it in between.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // as much as all versions of glibc take
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  testing::InitGoogleTest(&argc, argv);
  const int status = RUN_ALL_TESTS();
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  const int skipped = tests.skipped_test_count();
  if (skipped > 0) std::printf("NOT RUN: %d tests, for want of a GPU\n", skipped);
  return status;
}
