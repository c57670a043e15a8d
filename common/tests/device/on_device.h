// A test that runs kernels: skipped where there is neither a GPU nor the engine, or failed if a GPU is required.
#pragma once

#include <gtest/gtest.h>

#include "device/cuda.h"
#include "tests/gpu_required.h"

namespace device_tests {

inline bool device_present() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

template <class Fixture = testing::Test>
class OnDevice : public Fixture {
 protected:
  void SetUp() override {
    if (device_present()) return;
    if (gpu_required()) FAIL() << "REQUIRE_GPU=1, and there is no GPU";
    GTEST_SKIP() << "needs a GPU";
  }
};

}  // namespace device_tests
