// cp.async: what has been copied when the wait returns.
#include <gtest/gtest.h>

#include <numeric>

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

}  // namespace
}  // namespace device_tests
