// Tests that run kernels, on the SIMT engine or on a GPU.
#pragma once

#include <gtest/gtest.h>

#include "device/cuda.h"
#include "tests/gpu_required.h"

namespace chapter_suite {

// Where there is neither the engine nor a GPU its tests are skipped, which tests/main.cc counts, or fail. (They have
// to fail here: CTest takes a skipped test for one that is all right, whatever the program's exit status.)
class OnDevice : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0) return;
    if (gpu_required()) FAIL() << "REQUIRE_GPU=1, and there is no GPU";
    GTEST_SKIP() << "needs a GPU";
  }
};

}  // namespace chapter_suite
