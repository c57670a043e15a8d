// What several warps or thread blocks do together: stores of a whole warp, barriers of some warps, sums and turns of
// blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "attention/schedule.h"
#include "kernels.h"
#include "on_device.h"

namespace device_tests {
namespace {

class Together : public OnDevice<> {};

// PTX ISA, stmatrix: as ldmatrix. Register m of lane (g, t) is columns 2t and 2t + 1 of row g of matrix m, or with
// trans rows 2t and 2t + 1 of column g.
TEST_F(Together, StmatrixStoresTheRowsOfFourMatrices) {
  Words fragments(32 * 4);
  for (uint32_t n = 0; n < fragments.size(); n++) fragments[n] = (2 * n) | (2 * n + 1) << 16;
  std::vector<int> rows(32);
  for (int lane = 0; lane < 32; lane++) rows[lane] = lane * 11 % 32;  // all of them, in no simple order
  const auto tile = stmatrix(false, fragments, rows), transposed = stmatrix(true, fragments, rows);
  for (int lane = 0; lane < 32; lane++)
    for (int m = 0; m < 4; m++)
      for (int half = 0; half < 2; half++) {
        const int g = lane >> 2, t = lane & 3, element = 2 * (lane * 4 + m) + half;
        ASSERT_EQ(tile[rows[8 * m + g] * 8 + 2 * t + half], element) << "lane " << lane << ", matrix " << m;
        ASSERT_EQ(transposed[rows[8 * m + 2 * t + half] * 8 + g], element) << "lane " << lane << ", matrix " << m;
      }
}

TEST_F(Together, AdditionsOfAllBlocksArrive) {
  Floats x(32 * 4);
  for (size_t n = 0; n < x.size(); n++) x[n] = float(n * n % 37);  // small integers: any order gives the same sum
  constexpr int blocks = 200;
  const Floats sums = add_from_blocks(blocks, x);
  for (int n = 0; n < 8 * 4; n++) {
    float expected = 0;
    for (int lane = n / 4; lane < 32; lane += 8) expected += blocks * x[lane * 4 + n % 4];
    ASSERT_EQ(sums[n], expected) << "sum " << n / 4 << ", element " << n % 4;
  }
}

TEST_F(Together, NamedBarriersPassSharedMemoryFromWarpToWarp) {
  constexpr int rounds = 20;
  for (const bool writer_waits : {false, true}) {
    const std::vector<int> read = pass_to_partner(rounds, writer_waits);
    for (int n = 0; n < rounds * 64; n++) ASSERT_EQ(read[n], 100 * (n / 64) + n % 64) << "round " << n / 64;
  }
}

TEST_F(Together, DependentLaunchesSeeWhatTheOneBeforeWrote) {
  constexpr int launches = 301, blocks = 200;
  const std::vector<int> ring = go_round(launches, blocks);
  for (int i = 0; i < blocks * 32; i++)
    ASSERT_EQ(ring[i], (i + launches * 32) % (blocks * 32) + launches) << "element " << i;
}

TEST_F(Together, BlocksTakeTurns) {
  constexpr int blocks = 500;
  for (const bool peek : {false, true}) {
    const std::vector<int> list = take_turns(blocks, peek);
    for (int block = 0; block < blocks; block++)
      for (int lane = 0; lane < 32; lane++)
        ASSERT_EQ(list[block * 32 + lane], (lane + block) % 32 + block) << "block " << block << ", lane " << lane;
  }
}

TEST_F(Together, BlocksOfACooperativeLaunchWaitForOneAnother) {
  constexpr int rounds = 7, blocks = 130;
  const std::vector<int> list = pass_in_a_circle(rounds, blocks);
  for (int n = 0; n < blocks * 32; n++)
    ASSERT_EQ(list[n], (n % 32 + rounds) % 32 + rounds) << "block " << n / 32 << ", lane " << n % 32;
}

// attention/schedule.h: the heads of a round one after another, the last round being a smaller one, and of each the
// longest tile first, which without a mask is any.
TEST_F(Together, ListsHaveEveryTileOnceRoundByRound) {
  attention::Problem p;
  p.batch = 1, p.heads = p.kv_heads = 7, p.seq_q = p.seq_k = 150, p.head_dim = 64;
  for (const bool causal : {false, true}) {
    p.mask = causal ? attention::Mask::causal : attention::Mask::none;
    std::vector<int> expected;
    for (int first = 0; first < 7; first += 3)
      for (int tile = 0; tile < 3; tile++)
        for (int head = first; head < std::min(first + 3, 7); head++)
          expected.insert(expected.end(), {head, 64 * (causal ? 2 - tile : tile)});
    EXPECT_EQ(tiles_in_order(p, 3), expected);
  }
}

// The same file: at long N few heads at a time, so that what they read stays in the L2 cache.
TEST(Rounds, HaveHeadsWhoseKAndVTogetherHaveRoomInTheCache) {
  const auto round = [](int heads, int kv_heads, int seq, int head_dim, bool causal = false) {
    attention::Problem p;
    p.batch = 1, p.heads = heads, p.kv_heads = kv_heads, p.seq_q = p.seq_k = seq, p.head_dim = head_dim;
    if (causal) p.mask = attention::Mask::causal;
    return attention::heads_that_run_together(p);
  };
  EXPECT_EQ(round(64, 64, 8192, 64), 8);         // 2 MB each
  EXPECT_EQ(round(16, 16, 16384, 128), 2);       // 8 MB
  EXPECT_EQ(round(64, 8, 32768, 128), 8);        // that share 16 MB
  EXPECT_EQ(round(8, 8, 1 << 20, 128), 1);       // one at least
  EXPECT_EQ(round(8, 8, 8192, 64), 8);           // all of them
  EXPECT_EQ(round(256, 256, 2048, 64), 32);      // not more than 32 of 0.5 MB
  EXPECT_EQ(round(16, 16, 4096, 192), 4);        // fewer of wide heads
  EXPECT_EQ(round(12, 12, 16384, 256), 1);       // 16 MB
  EXPECT_EQ(round(1024, 1024, 256, 64), 128);    // short ones: 8 MB
  EXPECT_EQ(round(32, 8, 4096, 192, true), 32);  // under the mask all of them, if that is 24 MB
  EXPECT_EQ(round(32, 8, 4096, 192), 8);         // not four rounds of 10, the last one of 2
  EXPECT_EQ(round(28, 28, 8192, 64), 7);         // not four of 8, the last one of 4
  EXPECT_EQ(round(25, 25, 8192, 128), 5);        // not seven of 4, the last one of 1
}

}  // namespace
}  // namespace device_tests
