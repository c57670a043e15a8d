// Mistakes of clusters that only an observer can name, and the same kernels without them.
#include "device/bulk_copy.h"
#include "device/cluster.h"
#include "simt/trace/counts.h"
#include "simt/trace/walk.h"
#include "tests/simt/support.h"

namespace {

std::string at_checks(int line) { return "trace/cluster_checks_test.cc:" + std::to_string(line); }

// The kernel's first mistake; empty if it has none in any order.
template <class... Args>
std::string mistake_in_clusters(Args&&... args) {
  for (const simt::Schedule schedule :
       {simt::Schedule{.order = simt::Order::forward}, simt::Schedule{.order = simt::Order::reverse},
        simt::Schedule{.order = simt::Order::shuffled, .seed = 1},
        simt::Schedule{.order = simt::Order::shuffled, .seed = 2}}) {
    const WithSchedule set(schedule);
    const std::string message = failure_in([&] { launch_clusters(std::forward<Args>(args)...); }).message;
    if (!message.empty()) return message;
  }
  return "";
}

// In every order the same mistake.
template <class... Args>
void expect_in_clusters(const std::vector<std::string>& parts, Args&&... args) {
  for (const simt::Order order : {simt::Order::forward, simt::Order::reverse}) {
    const WithSchedule set({.order = order});
    const std::string message = failure_in([&] { launch_clusters(std::forward<Args>(args)...); }).message;
    for (const std::string& part : parts) expect_contains(message, part);
  }
}

struct Exchange {
  bool started = true;   // a barrier before the first access to another block
  bool written = true;   // one between the write and the read
  bool relaxed = false;  // whose arrival orders nothing
  bool read = true;      // one between the read and the next write
  bool stay = true;      // one before the end
  bool block = true;     // the block's own barrier, without which others of its threads have not written yet
};

// Blocks write into each other's memory, one thread for all, and read it.
constexpr int exchange_line = __LINE__ + 1;
__global__ void exchange(Exchange with, int* out) {
  __shared__ int mail[64];
  int* own = dynamic_shared<int>();
  const unsigned other = cluster_rank() ^ 1;
  if (with.started) cluster_sync();
  for (int round = 0; round < 2; round++) {
    own[threadIdx.x] = threadIdx.x + round;
    if (with.block) __syncthreads();
    if (threadIdx.x == 0)
      for (int i = 0; i < 64; i++) map_shared(mail, other)[i] = own[i];
    if (with.relaxed) simt::cluster_arrive(false);
    if (with.written && !with.relaxed) cluster_arrive();
    if (with.written || with.relaxed) cluster_wait();
    out[64 * blockIdx.x + threadIdx.x] = mail[63 - threadIdx.x] + map_shared(own, other)[threadIdx.x];
    if (with.read && (with.stay || round == 0)) cluster_sync();
  }
}

TEST(ClusterChecks, blocks_exchange) {
  Device<int> out(4 * 64);
  const LaunchConfig config(4, 64, 256);
  EXPECT_EQ(mistake_in_clusters(exchange, 2, config, Exchange(), out), "");
  EXPECT_EQ(out.values()[130], 64 + 2 - 1);
  expect_in_clusters({at_checks(exchange_line + 9) + ": write of the shared memory of block (",
                      ", of which this thread does not know that it has started: that takes a barrier.cluster"},
                     exchange, 2, config, Exchange{.started = false}, out);
  const std::string race = "race on shared memory: no barrier between this ";
  expect_in_clusters({"read of 4 bytes of uninitialised shared memory"}, exchange, 2, config,
                     Exchange{.written = false}, out);
  expect_in_clusters({race + "read of 4 bytes and the write of the same memory by thread (", ", 0, 0) of block ("},
                     exchange, 2, config, Exchange{.relaxed = true}, out);
  expect_in_clusters({race, ", 0, 0) of block ("}, exchange, 2, config, Exchange{.read = false}, out);
  expect_in_clusters({"read of 4 bytes of uninitialised shared memory"}, exchange, 2, config, Exchange{.block = false},
                     out);
}

// One reads what the other has, who may have ended by then. Whether it has is a matter of luck.
constexpr int one_way_line = __LINE__ + 1;
__global__ void one_way(bool stay, int* out) {
  int* own = dynamic_shared<int>();
  own[threadIdx.x] = threadIdx.x;
  cluster_sync();
  if (cluster_rank() == 1) out[threadIdx.x] = map_shared(own, 0)[threadIdx.x];
  if (stay) cluster_sync();
}

TEST(ClusterChecks, a_block_that_does_not_stay) {
  Device<int> out(64);
  const LaunchConfig config(2, 64, 256);
  EXPECT_EQ(mistake_in_clusters(one_way, 2, config, true, out), "");
  const std::string stay = "a block has to stay until the others have done with its shared memory (barrier.cluster)";
  expect_in_clusters({stay, at_checks(one_way_line + 4)}, one_way, 2, config, false, out);
  expect_in_clusters({stay}, exchange, 2, LaunchConfig(4, 64, 256), Exchange{.stay = false}, Device<int>(4 * 64));
}

// A ring of two tiles that two blocks fill together, each with a half for both.
struct Shared {
  bool fence = true;    // fence.mbarrier_init
  bool relaxed = true;  // the first arrival at the cluster's barrier, which the fence makes enough
  bool started = true;  // the first barrier of the cluster
  bool both = true;     // both blocks are told that a tile has been read
  bool producer_waits = true;
  bool consumers_wait = true;
  bool stay = true;
  int readers = 4;
};

constexpr int shared_line = __LINE__ + 1;
__global__ void shared_tiles(const __grid_constant__ TensorMap map, int tiles, Shared with, float* out) {
  __half* tile = dynamic_shared<__half, 1024>();  // [2][64][64]
  Mbarrier* full = reinterpret_cast<Mbarrier*>(tile + 2 * 64 * 64);
  Mbarrier* empty = full + 2;
  const unsigned rank = cluster_rank();
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < 2; stage++) {
      mbarrier_init(full + stage, 1);
      mbarrier_init(empty + stage, with.readers);
    }
    if (with.fence) fence_mbarrier_init();
  }
  __syncthreads();
  if (with.started) simt::cluster_arrive(!with.relaxed);
  if (with.started) cluster_wait();
  if (threadIdx.x < 32) {
    for (int t = 0; t < tiles && threadIdx.x == 0; t++) {
      const int stage = t % 2;
      if (with.producer_waits) mbarrier_wait_cluster(empty + stage, t / 2 % 2 ^ 1);
      mbarrier_arrive_expect_tx(full + stage, 64 * 64 * 2);
      tensor_load_multicast(tile + stage * 64 * 64 + rank * 32 * 64, map, full + stage, 3, 0, 64 * t + 32 * rank, 0, 0);
    }
  } else {
    float sum = 0;
    for (int t = 0; t < tiles; t++) {
      const int stage = t % 2;
      if (with.consumers_wait || t < 2) mbarrier_wait(full + stage, t / 2 % 2);
      for (int row = 0; row < 64; row += 16)
        sum += float(tile[stage * 64 * 64 + row * 64 + (threadIdx.x - 32) / 8 * 8]);
      __syncwarp();
      if (threadIdx.x % 32 < 2 && (with.both || threadIdx.x % 32 == rank))
        mbarrier_arrive_cluster(empty + stage, threadIdx.x % 32);
    }
    out[64 * blockIdx.x + threadIdx.x - 32] = sum + rank;
  }
  if (with.stay) cluster_sync();
}

class SharedTiles : public testing::Test {
 protected:
  std::string mistake(Shared with) {
    return mistake_in_clusters(shared_tiles, 2, LaunchConfig{4, 96, 2 * 64 * 64 * 2 + 64}, map_, 5, with, out_);
  }
  Device<__half> matrix_{std::vector<__half>(5 * 64 * 64, __half(1.f))};
  Device<float> out_{4 * 64};
  TensorMap map_ = tensor_map(static_cast<const __half*>(matrix_), {64, 5 * 64, 1, 1},
                              {128, 128 * 5 * 64, 128 * 5 * 64}, {64, 32, 1, 1});
};

TEST_F(SharedTiles, no_mistake) {
  EXPECT_EQ(mistake({}), "");
  EXPECT_EQ(mistake({.relaxed = false}), "");
  for (int i = 0; i < 4 * 64; ++i) ASSERT_EQ(out_.values()[i], 5 * 4 + i / 64 % 2) << i;
}

TEST_F(SharedTiles, mistakes) {
  expect_contains(mistake({.fence = false}), "no barrier between this and what thread (0, 0, 0) of block (");
  expect_contains(mistake({.fence = false, .relaxed = false}),
                  "no fence.mbarrier_init, and no fence.proxy.async, by the");
  expect_contains(mistake({.started = false}), "of which this thread does not know that it has started");
  // A producer that hears of its own block's readers alone.
  expect_contains(mistake({.both = false, .readers = 2}), "bulk copy to 4096 bytes");
  expect_contains(mistake({.producer_waits = false}), "1 of 1 arrivals have come");
  expect_contains(mistake({.consumers_wait = false}), "and might have counted in the phase before");
  expect_contains(mistake({.stay = false}), "a block has to stay until the others have done with its shared memory");
  expect_contains(mistake({.readers = 2}), "bulk copy to 4096 bytes");
}

TEST_F(SharedTiles, counts) {
  simt::trace_begin();
  EXPECT_EQ(mistake_in_clusters(shared_tiles, 2, LaunchConfig{4, 96, 2 * 64 * 64 * 2 + 64}, map_, 5, Shared(), out_),
            "");
  Device<int> out(4 * 64);
  launch_clusters(exchange, 2, LaunchConfig(4, 64, 256), Exchange(), out);
  const auto counted = simt::trace_end();
  ASSERT_EQ(counted.size(), 5u);
  const simt::Counts& loads = counted[0].totals[static_cast<int>(simt::Op::bulk_load)];
  EXPECT_EQ(counted[0].cluster.x, 2u);
  EXPECT_EQ(loads.requests, 4u * 5);                  // each block's half of each tile
  EXPECT_EQ(loads.units, 2u * 5 * 64 * 64 * 2 / 32);  // L2 is read once for both blocks
  EXPECT_EQ(counted[0].read.launch, 5u * 64 * 64 * 2);
  // Each round, two warps of each block read the other's memory; thread 0 writes 64 words there, one by one.
  const simt::Counts& distributed = counted[4].totals[static_cast<int>(simt::Op::distributed)];
  EXPECT_EQ(distributed.requests, 4u * 2 * (2 + 64));
}

TEST_F(SharedTiles, walk) {
  simt::walk_begin({{"matrix", static_cast<const __half*>(matrix_), 5 * 64, 128}});
  launch_clusters(shared_tiles, 2, LaunchConfig{4, 96, 2 * 64 * 64 * 2 + 64}, map_, 5, Shared(), out_);
  const auto launches = simt::walk_end();
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(launches[0].cluster.x, 2u);
  ASSERT_EQ(launches[0].blocks.size(), 4u);
  for (unsigned block = 0; block < 4; ++block) {
    EXPECT_EQ(launches[0].blocks[block].index.x, block);
    std::size_t started = 0, landed = 0, read = 0;  // rows of tiles
    for (const simt::Step& step : launches[0].blocks[block].steps) {
      for (const simt::RowsMoved& moved : step.moved)
        for (const auto& [first, last] : moved.rows)
          (moved.move == simt::Move::started ? started : landed) += last - first + 1;
      for (const simt::InPlace& used : step.uses)
        for (const auto& [first, last] : used.rows) read += last - first + 1;
    }
    EXPECT_EQ(started, 5u * 32);
    EXPECT_EQ(landed, 5u * 64);
    EXPECT_EQ(read, 5u * 4);  // of all tiles
  }
}

}  // namespace
