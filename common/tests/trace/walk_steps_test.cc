// Steps of kernels whose warps wait for one another at mbarriers, small enough to be drawn by hand.
#include "device/bulk_copy.h"
#include "device/mbarrier.h"
#include "device/named_barrier.h"
#include "device/watch.h"
#include "simt/trace/counts.h"
#include "simt/trace/walk.h"
#include "tests/simt/support.h"

namespace {

using simt::Step;

constexpr int row_floats = 64, row_bytes = 4 * row_floats;

// Warp 8 fetches a row after the other to one place. Warps 0 and 4 read 32 floats each, meet, and write them.
__global__ void relay(const float* from, float* to, int rows) {
  float* row = dynamic_shared<float, 128>();
  auto* full = reinterpret_cast<Mbarrier*>(row + row_floats);
  Mbarrier* empty = full + 1;
  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);
    mbarrier_init(empty, 2);
    fence_mbarrier_init();
  }
  __syncthreads();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = 0; i < rows && warp == 8 && lane == 0; i++) {
    mbarrier_wait(empty, (i + 1) % 2);
    mbarrier_arrive_expect_tx(full, row_bytes);
    bulk_load(row, from + i * row_floats, row_bytes, full);
  }
  for (int i = 0; i < rows && warp % 4 == 0 && warp < 8; i++) {
    mbarrier_wait(full, i % 2);
    const int column = warp / 4 * 32 + lane;
    const float x = row[column];
    named_barrier_sync(1, 64);
    if (lane == 0) mbarrier_arrive(empty);
    to[i * row_floats + column] = x;
  }
}

std::vector<Step> steps_of_relay(int rows) {
  Device<float> from(rows * row_floats), to(rows * row_floats);
  simt::walk_begin({{"from", from, size_t(rows), row_bytes}, {"to", to, size_t(rows), row_bytes}});
  launch(relay, {1, 288, row_bytes + 16}, from, to, rows);
  const auto launches = simt::walk_end();
  EXPECT_EQ(launches.at(0).blocks.size(), 1u);
  return launches.at(0).blocks.at(0).steps;
}

// "8 at 1", or "block at 0": who took a step, and when.
std::string place(const Step& step) {
  return (step.by ? std::to_string(step.by->first) : "block") + " at " + std::to_string(step.at);
}

TEST(WalkSteps, of_warps_that_wait_for_one_another) {
  std::vector<std::string> places;
  for (const Step& step : steps_of_relay(2)) places.push_back(place(step));
  // A row is brought, read by both, who then meet and write it; only then comes the next.
  EXPECT_EQ(places, (std::vector<std::string>{"block at 0", "8 at 1", "0 at 2", "4 at 2", "0 at 3", "4 at 3", "8 at 4",
                                              "0 at 5", "4 at 5", "0 at 6", "4 at 6"}));
}

TEST(WalkSteps, say_what_was_waited_for) {
  const std::vector<Step> steps = steps_of_relay(2);
  const auto waited = [&](int step) { return steps[step].after.at(0); };
  EXPECT_TRUE(steps[1].after.empty());  // nobody has to empty the place before it is filled the first time
  EXPECT_EQ(waited(3).gate, 0);
  EXPECT_EQ(waited(3).steps, std::set<std::size_t>{1});
  EXPECT_EQ(waited(5).gate, -1);
  EXPECT_EQ(waited(5).steps, std::set<std::size_t>{2});  // warp 0's arrival; its own is none that it waits for
  EXPECT_EQ(waited(6).gate, 1);
  EXPECT_EQ(waited(6).steps, (std::set<std::size_t>{4, 5}));
  EXPECT_EQ(waited(7).phase, 1u);
  EXPECT_EQ(steps[1].arrives, std::set<int>{0});
  EXPECT_EQ(steps[2].arrives, std::set<int>{});  // it goes on to wait there
  EXPECT_EQ(steps[4].arrives, std::set<int>{1});
}

TEST(WalkSteps, say_which_rows_were_brought_and_read) {
  const std::vector<Step> steps = steps_of_relay(2);
  const simt::Ranges second = {{1, 1}};
  EXPECT_EQ(steps[6].fills.at(0).rows, second);
  for (const int step : {7, 8}) {
    EXPECT_EQ(steps[step].uses.at(0).rows, second);
    EXPECT_EQ(steps[step].uses.at(0).place, steps[6].fills.at(0).place);
    EXPECT_EQ(steps[step].moved.at(0).move, simt::Move::landed);
    EXPECT_EQ(steps[step + 2].moved.at(0).move, simt::Move::written);
    EXPECT_EQ(steps[step + 2].moved.at(0).rows, second);
  }
}

// What one lane waits for, its warp has: whatever the lanes do after they met belongs to the step that begins then.
__global__ void one_lane_waits(const float* from, float* to) {
  float* row = dynamic_shared<float, 128>();
  auto* full = reinterpret_cast<Mbarrier*>(row + row_floats);
  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(full, row_bytes);
    bulk_load(row, from, row_bytes, full);
    mbarrier_wait(full, 0);
  }
  __syncwarp();
  to[threadIdx.x] = from[threadIdx.x];
}

TEST(WalkSteps, follow_the_lane_that_waits) {
  Device<float> from(row_floats), to(row_floats);
  simt::trace_begin();  // bytes are counted
  simt::walk_begin({{"from", from, 1, row_bytes}, {"to", to, 1, row_bytes}});
  launch(one_lane_waits, {1, 32, row_bytes + 8}, from, to);
  const auto steps = simt::walk_end().at(0).blocks.at(0).steps;
  simt::trace_end();
  ASSERT_EQ(steps.size(), 2u);
  ASSERT_EQ(steps[0].moved.size(), 1u);
  EXPECT_EQ(steps[0].moved[0].move, simt::Move::started);
  EXPECT_EQ(steps[0].work.asked, std::uint64_t(row_bytes));
  EXPECT_EQ(steps[1].work.asked, 2 * 32 * 4u);  // of all lanes, a request to read and one to write
}

// Warps 0 and 1 name what they do, warp 1 leaves out the second; after the barrier what was named last goes on.
__global__ void names(const float* from, float* to) {
  const int warp = threadIdx.x / 32;
  float x = from[threadIdx.x];
  watch_step("square");
  x = to[threadIdx.x] = x * x;
  if (warp == 0) {
    watch_step("nothing that is seen");
    watch_step("double");
    to[threadIdx.x] = 2 * x;
  }
  watch_step("end");
  __syncthreads();
  to[threadIdx.x] = 0;
}

TEST(WalkSteps, begin_where_threads_name_them) {
  Device<float> from(row_floats), to(row_floats);
  simt::walk_begin({{"from", from, 2, row_bytes / 2}, {"to", to, 2, row_bytes / 2}});
  launch(names, {1, 64}, from, to);
  const auto walk = simt::walk_end().at(0);
  std::vector<std::string> told;
  for (const Step& step : walk.blocks.at(0).steps) {
    std::string words = step.name ? walk.names.at(*step.name).first : "-";
    for (const simt::RowsMoved& moved : step.moved)
      words += std::string(" ") + name(moved.move) + " " + std::to_string(moved.rows.at(0).first) + " to " +
               std::to_string(moved.rows.at(0).second);
    told.push_back(words);
  }
  EXPECT_EQ(told, (std::vector<std::string>{"- read 0 to 1", "square written 0 to 1", "nothing that is seen",
                                            "double written 0 to 0", "end written 0 to 1"}));
  EXPECT_TRUE(walk.blocks[0].steps[3].until.has_value());  // the barrier ends what was done last
  EXPECT_FALSE(walk.blocks[0].steps[1].until.has_value());
}

// Of a party that waits at mbarriers: its steps begin at its waits and where it names them.
__global__ void names_behind_a_wait(const float* from, float* to) {
  float* row = dynamic_shared<float, 128>();
  auto* full = reinterpret_cast<Mbarrier*>(row + row_floats);
  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 128) {
    mbarrier_arrive_expect_tx(full, row_bytes);
    bulk_load(row, from, row_bytes, full);
  }
  if (threadIdx.x >= 32) return;
  mbarrier_wait(full, 0);
  watch_step("take");
  const float x = row[threadIdx.x];
  watch_step("give");
  to[threadIdx.x] = x;
}

TEST(WalkSteps, begin_at_waits_and_names) {
  Device<float> from(row_floats), to(row_floats);
  simt::walk_begin({{"from", from, 1, row_bytes}, {"to", to, 1, row_bytes}});
  launch(names_behind_a_wait, {1, 160, row_bytes + 8}, from, to);
  const auto walk = simt::walk_end().at(0);
  std::vector<std::string> told;
  for (const Step& step : walk.blocks.at(0).steps)
    told.push_back(place(step) + (step.name ? " " + walk.names.at(*step.name).first : ""));
  EXPECT_EQ(told, (std::vector<std::string>{"block at 0", "4 at 1", "0 at 2 take", "0 at 3 give"}));
  EXPECT_EQ(walk.blocks[0].steps[2].after.at(0).steps, std::set<std::size_t>{1});
  EXPECT_EQ(walk.blocks[0].steps[2].uses.size(), 1u);
}

// Of each row only the columns that are touched are told.
__global__ void half_rows(const float* from, float* to) {
  to[threadIdx.x * 4] = from[threadIdx.x % 2 + threadIdx.x / 2 * 4];
}

TEST(WalkSteps, say_which_part_of_the_rows_was_moved) {
  Device<float> from(8), to(16);
  simt::walk_begin({{"from", from, 2, 16}, {"to", to, 4, 16}});
  launch(half_rows, {1, 4}, from, to);
  const std::vector<simt::RowsMoved> moved = simt::walk_end().at(0).blocks.at(0).steps.at(0).moved;
  ASSERT_EQ(moved.size(), 2u);
  EXPECT_EQ(moved[0].of_row, (simt::Extent{0, 8}));
  EXPECT_EQ(moved[1].of_row, (simt::Extent{0, 4}));
}

}  // namespace
