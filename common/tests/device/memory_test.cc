// cp.async: what has been copied when the wait returns. RoPE's angles: which are read from the tables. Launching what
// has not been compiled for this GPU.
#include <gtest/gtest.h>

#include <numeric>

#include "device/cuda_error.h"
#include "device/launch.h"
#include "kernels.h"
#include "on_device.h"

namespace device_tests {
namespace {

class CpAsync : public OnDevice<> {};

TEST_F(CpAsync, CopiesSixteenBytesOrWritesZeros) {
  Words from(32 * 4);
  std::iota(from.begin(), from.end(), 1u);
  std::vector<int> valid(32);
  for (int lane = 0; lane < 32; lane++) valid[lane] = lane % 3 != 0;
  const Words to = copy_or_zero(from, valid);
  for (int n = 0; n < 32 * 4; n++) ASSERT_EQ(to[n], valid[n / 4] ? from[n] : 0) << "word " << n;
}

TEST_F(CpAsync, GroupsArriveInTheirOrder) {
  Words from(3 * 32 * 4);
  std::iota(from.begin(), from.end(), 1u);
  EXPECT_EQ(copy_in_stages(from), from);
}

class RopeAngles : public OnDevice<> {};

// Of 32 rows of the tables, from 2^25 - 16 on: at head dim 128 the second half begins past element 2^31.
TEST_F(RopeAngles, AreReadFromTheRowOfThePositionHoweverFar) {
  constexpr int first_row = (1 << 25) - 16, rows = 32;
  for (const int head_dim : {64, 128}) {
    const int row = head_dim / 2;
    Floats cos(rows * row), sin(rows * row);
    std::iota(cos.begin(), cos.end(), 1.f);
    std::iota(sin.begin(), sin.end(), 10001.f);
    for (const int sign : {1, -1}) {
      std::vector<int> positions(rows);
      for (int r = 0; r < rows; r++) positions[r] = sign * (first_row + r);
      const Floats read = angles(head_dim, cos, sin, first_row, positions);
      for (int n = 0; n < rows * row; n++) {
        ASSERT_EQ(read[n], cos[n]) << "cosine " << n % row << " of position " << positions[n / row];
        ASSERT_EQ(read[rows * row + n], sign * sin[n]) << "sine " << n % row << " of position " << positions[n / row];
      }
    }
  }
}

TEST(NotCompiledForThisGpu, IsSaidInOneLine) {
  try {
    throw_not_compiled_for_this_gpu(cudaErrorInvalidDeviceFunction, {800, 900});
  } catch (const CudaError& error) {
    const std::string said = error.what();
    EXPECT_EQ(said.find("this GPU has compute capability "), 0u) << said;
    EXPECT_NE(said.find(", and the kernel is compiled for 8.0, 9.0 (CMAKE_CUDA_ARCHITECTURES chooses; "), said.npos)
        << said;
    EXPECT_EQ(said.find('\n'), said.npos) << said;
  }
}

}  // namespace
}  // namespace device_tests
