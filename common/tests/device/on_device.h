// A test that runs kernels: skipped where there is neither a GPU nor the engine.
#pragma once

#include <gtest/gtest.h>

#include "kernels.h"

namespace device_tests {

template <class Fixture = testing::Test>
class OnDevice : public Fixture {
 protected:
  void SetUp() override {
    if (!device_present()) GTEST_SKIP() << "no GPU here";
  }
};

}  // namespace device_tests
