// Clusters: blocks that run together and reach each other's shared memory. The mistakes that only an observer can see
// are in trace/cluster_checks_test.cc.
#include "device/cluster.h"

#include <cooperative_groups.h>

#include "device/bulk_copy.h"
#include "device/proxy_fence.h"
#include "simt/cuda/host.h"
#include "tests/simt/support.h"

namespace {

namespace cg = cooperative_groups;

std::string at_cluster(int line) { return "simt/cluster_test.cc:" + std::to_string(line); }

template <class... Args>
Failure failure_of_clusters(Args&&... args) {
  return failure_in([&] { launch_clusters(std::forward<Args>(args)...); });
}

// In every order of threads and of blocks.
template <class Test>
void in_every_order(const Test& test) {
  for (const simt::Order order : {simt::Order::forward, simt::Order::reverse, simt::Order::last_first})
    for (const int threads : {1, 3}) {
      const WithSchedule set({.order = order, .threads = threads});
      test();
    }
  for (const std::uint64_t seed : {1, 2, 3}) {
    const WithSchedule set({.order = simt::Order::shuffled, .seed = seed});
    test();
  }
}

// Each block puts its number into dynamic and static shared memory, and reads what the next one of its cluster has
// there.
__global__ void pass_on(int* out) {
  __shared__ int fixed[32];
  int* own = dynamic_shared<int>();
  const int block = blockIdx.x + gridDim.x * blockIdx.y;
  own[threadIdx.x] = 1000 * block + threadIdx.x;
  fixed[threadIdx.x] = -own[threadIdx.x];
  cg::cluster_group cluster = cg::this_cluster();
  cluster.sync();
  const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
  out[32 * block + threadIdx.x] = cluster.map_shared_rank(own, next)[threadIdx.x];
  out[32 * (block + gridDim.x * gridDim.y) + threadIdx.x] = map_shared(fixed, next)[threadIdx.x];
  cluster.sync();
}

TEST(Clusters, blocks_read_each_other) {
  in_every_order([] {
    Device<int> out(2 * 6 * 4 * 32);
    launch_clusters(pass_on, dim3(2, 2), {dim3(6, 4), 32, 32 * sizeof(int)}, out);
    const std::vector<int> values = out.values();
    for (int y = 0; y < 4; ++y)
      for (int x = 0; x < 6; ++x)
        for (int i = 0; i < 32; ++i) {
          const int rank = x % 2 + 2 * (y % 2), next = (rank + 1) % 4;
          const int its = x / 2 * 2 + next % 2 + 6 * (y / 2 * 2 + next / 2), block = x + 6 * y;
          ASSERT_EQ(values[32 * block + i], 1000 * its + i);
          ASSERT_EQ(values[32 * (block + 24) + i], -(1000 * its + i));
        }
  });
}

// Blocks add to one histogram, of which each has a part.
__global__ void histogram(const int* data, int n, int* out) {
  __shared__ int part[16];
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x < 16) part[threadIdx.x] = 0;
  cluster.sync();
  const int blocks = cluster.num_blocks();
  for (int i = cluster.thread_rank(); i < n; i += cluster.num_threads())
    atomicAdd(cluster.map_shared_rank(part, data[i] / 16 % blocks) + data[i] % 16, 1);
  cluster.sync();
  if (threadIdx.x < 16) out[16 * cluster.block_rank() + threadIdx.x] = part[threadIdx.x];
}

TEST(Clusters, atomics_on_each_other) {
  in_every_order([] {
    std::vector<int> data(1000), expected(64);
    for (int i = 0; i < 1000; ++i) ++expected[data[i] = i * i % 64];
    Device<int> in(data), out(64);
    launch_clusters(histogram, 4, {4, 64}, in, 1000, out);
    EXPECT_EQ(out.values(), expected);
  });
}

// A block's warps multiply a tile of which each block of the cluster has fetched a part for all.
__global__ void share_tiles(const __grid_constant__ TensorMap map, int tiles, float* out) {
  __half* tile = dynamic_shared<__half, 1024>();  // [2][64][64]
  Mbarrier* full = reinterpret_cast<Mbarrier*>(tile + 2 * 64 * 64);
  Mbarrier* empty = full + 2;
  const unsigned rank = cluster_rank();
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < 2; stage++) {
      mbarrier_init(full + stage, 1);
      mbarrier_init(empty + stage, 2 * 2);  // warps of both blocks
    }
    fence_mbarrier_init();
  }
  cluster_sync();
  if (threadIdx.x < 32) {
    for (int t = 0; t < tiles && threadIdx.x == 0; t++) {
      const int stage = t % 2;
      mbarrier_wait_cluster(empty + stage, t / 2 % 2 ^ 1);
      mbarrier_arrive_expect_tx(full + stage, 64 * 64 * 2);
      tensor_load_multicast(tile + stage * 64 * 64 + rank * 32 * 64, map, full + stage, 3, 0, 64 * t + 32 * rank, 0, 0);
    }
  } else {
    float sum = 0;
    for (int t = 0; t < tiles; t++) {
      const int stage = t % 2;
      mbarrier_wait(full + stage, t / 2 % 2);
      for (int row = 0; row < 64; row++) sum += float(tile[stage * 64 * 64 + row * 64 + (threadIdx.x - 32) / 8 * 8]);
      __syncwarp();
      if (threadIdx.x % 32 < 2) mbarrier_arrive_cluster(empty + stage, threadIdx.x % 32);
    }
    out[64 * blockIdx.x + threadIdx.x - 32] = sum + rank;
  }
  cluster_sync();
}

constexpr size_t share_bytes = 2 * 64 * 64 * 2 + 64;

TEST(Clusters, multicast_tiles) {
  Device<__half> matrix{std::vector<__half>(5 * 64 * 64, __half(1.f))};
  const TensorMap map = tensor_map(static_cast<const __half*>(matrix), {64, 5 * 64, 1, 1},
                                   {128, 128 * 5 * 64, 128 * 5 * 64}, {64, 32, 1, 1});
  in_every_order([&] {
    Device<float> out(4 * 64);
    launch_clusters(share_tiles, 2, {4, 96, share_bytes}, map, 5, out);
    for (int i = 0; i < 4 * 64; ++i) ASSERT_EQ(out.values()[i], 5 * 64 + i / 64 % 2) << i;
  });
}

// Of each warp some threads return, after or before the others come to the barrier.
__global__ void some_return(unsigned returning, int* out) {
  int* own = dynamic_shared<int>();
  own[threadIdx.x] = blockIdx.x;
  if (threadIdx.x % 32 >= 16 || cluster_rank() == returning) return;
  cluster_arrive();
  if (threadIdx.x == 3) return;  // without having waited
  cluster_wait();
  out[blockIdx.x * 64 + threadIdx.x] = own[threadIdx.x] + 1;
}

TEST(Clusters, threads_that_return_are_not_waited_for) {
  in_every_order([] {
    for (const unsigned returning : {0u, 1u, 2u}) {
      Device<int> out(4 * 64);
      launch_clusters(some_return, 2, {4, 64, 256}, returning, out);
      for (int block = 0; block < 4; ++block)
        EXPECT_EQ(out.values()[block * 64 + 32], block % 2 == int(returning) ? -1 : block + 1);
    }
  });
}

// ---- launches

__global__ void of_any_size() {}

TEST(Clusters, sizes) {
  const auto code = [](dim3 cluster, dim3 grid) {
    return failure_of_clusters(of_any_size, cluster, LaunchConfig(grid, 32));
  };
  EXPECT_EQ(code(8, 16).code, cudaSuccess);
  EXPECT_EQ(code(9, 18).code, cudaErrorInvalidClusterSize);
  expect_contains(code(9, 18).message,
                  "cluster (9, 1, 1): a cluster has 1 to 8 blocks, and more than 8 need "
                  "cudaFuncAttributeNonPortableClusterSizeAllowed");
  expect_contains(code(dim3(2, 2), dim3(4, 3)).message,
                  "cluster (2, 2, 1): the grid (4, 3, 1) is not a multiple of it");
  expect_contains(code(0, 3).message, "cluster (0, 1, 1): a cluster has 1 to 8 blocks");
  ASSERT_EQ(cudaFuncSetAttribute(of_any_size, cudaFuncAttributeNonPortableClusterSizeAllowed, 1), cudaSuccess);
  EXPECT_EQ(code(16, 16).code, cudaSuccess);
  expect_contains(code(17, 17).message, "a cluster has 1 to 16 blocks");
  cudaFuncSetAttribute(of_any_size, cudaFuncAttributeNonPortableClusterSizeAllowed, 0);
}

TEST(Clusters, a_launch_by_attributes) {
  std::vector<int> data(1000), expected(64);
  for (int i = 0; i < 1000; ++i) ++expected[data[i] = i * i % 64];
  Device<int> in(data), out(64);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 4;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  const cudaLaunchConfig_t config = {4, 64, 0, nullptr, &attribute, 1};
  int* const in_pointer = in;
  int* const out_pointer = out;
  ASSERT_EQ(cudaLaunchKernelEx(&config, histogram, in_pointer, 1000, out_pointer), cudaSuccess);
  EXPECT_EQ(out.values(), expected);
  int clusters = 0;
  ASSERT_EQ(cudaOccupancyMaxActiveClusters(&clusters, histogram, &config), cudaSuccess);
  EXPECT_EQ(clusters, 6 * (16 * 32 / 4) + 2 * (18 * 32 / 4));
}

TEST(Clusters, a_sample_is_of_whole_clusters) {
  Device<int> out(2 * 16 * 32);
  WithSchedule set({.sample = 5});
  launch_clusters(pass_on, 4, {16, 32, 32 * sizeof(int)}, out);
  const std::vector<int> values = out.values();
  for (int block = 0; block < 16; ++block) EXPECT_EQ(values[32 * block] != -1, block < 4 || block >= 12) << block;
}

// ---- mistakes

enum class ClusterMistake {
  arrives_twice,
  only_waits,
  no_such_block,
  beyond_the_end,
  ended,
  waits_elsewhere,
  waits_for_another
};

constexpr int mistake_line = __LINE__ + 1;
__global__ void with_a_mistake(ClusterMistake mistake, int* out) {
  int* own = dynamic_shared<int>();
  Mbarrier* mbarrier = reinterpret_cast<Mbarrier*>(own + 32);
  const unsigned rank = cluster_rank();
  if (threadIdx.x == 0) mbarrier_init(mbarrier, 1);
  own[threadIdx.x] = threadIdx.x;
  if (mistake == ClusterMistake::arrives_twice) cluster_arrive();
  if (mistake != ClusterMistake::only_waits) cluster_arrive();
  cluster_wait();
  if (mistake == ClusterMistake::no_such_block) out[0] = *map_shared(own, 2);
  if (mistake == ClusterMistake::beyond_the_end && rank == 1) out[0] = map_shared(own, 0)[64 + threadIdx.x];
  if (mistake == ClusterMistake::waits_elsewhere && rank == 1) mbarrier_wait(mbarrier, 0);
  if (mistake == ClusterMistake::waits_for_another && rank == 1) mbarrier_wait(map_shared(mbarrier, 0), 0);
  if (mistake == ClusterMistake::ended && rank == 1) return;
  if (mistake != ClusterMistake::ended) cluster_sync();
  if (mistake == ClusterMistake::ended) {
    out[0] = map_shared(own, 1)[threadIdx.x];
  }
}

// In reverse, block 1 comes first, and block 0 goes on first from the cluster's barrier.
Failure failure_with(ClusterMistake mistake, simt::Order order = simt::Order::reverse) {
  const WithSchedule set({.order = order});
  Device<int> out(64);
  return failure_of_clusters(with_a_mistake, 2, LaunchConfig{4, 32, 256}, mistake, out);
}

TEST(Clusters, mistakes_at_the_barrier) {
  expect_contains(failure_with(ClusterMistake::arrives_twice).message,
                  at_cluster(mistake_line + 7) +
                      ": barrier.cluster.arrive: the thread has arrived before, and has not waited since");
  expect_contains(
      failure_with(ClusterMistake::only_waits).message,
      at_cluster(mistake_line + 8) + ": barrier.cluster.wait: the thread has not arrived since it waited last");
}

TEST(Clusters, a_deadlock) {
  const Failure failure = failure_with(ClusterMistake::waits_elsewhere);
  EXPECT_EQ(failure.code, cudaErrorLaunchTimeout);
  expect_contains(
      failure.message,
      "deadlock: every thread of the cluster waits: block (2, 0, 0): warp 0 waits in barrier.cluster.wait at " +
          at_cluster(mistake_line + 14) +
          " (32 of 64 threads of the cluster have come); block (3, 0, 0): warp 0 waits in "
          "mbarrier.try_wait.parity at " +
          at_cluster(mistake_line + 11) + " (the mbarrier of " + at_cluster(mistake_line + 4) +
          " at byte 128 of dynamic shared memory of block (3, 0, 0) is in phase 0: 0 of 1 arrivals have come)");
}

TEST(Clusters, mistakes_in_each_others_memory) {
  expect_contains(failure_with(ClusterMistake::no_such_block).message,
                  at_cluster(mistake_line + 9) + ": mapa: the cluster has no block of rank 2, but 2");
  const Failure beyond = failure_with(ClusterMistake::beyond_the_end);
  EXPECT_EQ(beyond.code, cudaErrorIllegalAddress);
  expect_contains(beyond.message, "block (3, 0, 0), thread (31, 0, 0), at " + at_cluster(mistake_line + 10) +
                                      ": invalid read at byte 380, 124 bytes past the end of the 256 bytes of dynamic "
                                      "shared memory of this block, which is block (2, 0, 0) of the cluster");
  const Failure ended = failure_with(ClusterMistake::ended, simt::Order::forward);
  EXPECT_EQ(ended.code, cudaErrorIllegalAddress);
  expect_contains(ended.message, "which is block (1, 0, 0) of the cluster and has returned");
  expect_contains(failure_with(ClusterMistake::waits_for_another).message,
                  "of block (2, 0, 0) is another block's, and only its own threads can wait for it");
}

struct MulticastMistake {
  uint16_t blocks = 3;
  int expected = 1024;
  bool made = true;
};

__global__ void multicast_with(const float* from, MulticastMistake with, float* out) {
  float* own = dynamic_shared<float, 1024>();
  Mbarrier* full = reinterpret_cast<Mbarrier*>(own + 256);
  if (threadIdx.x == 0 && (with.made || cluster_rank() == 0)) {
    mbarrier_init(full, 1);
    fence_mbarrier_init();
  }
  cluster_sync();
  if (threadIdx.x == 0 && (with.made || cluster_rank() == 0)) mbarrier_arrive_expect_tx(full, with.expected);
  if (threadIdx.x == 0 && cluster_rank() == 0) bulk_load_multicast(own, from, 1024, full, with.blocks);
  mbarrier_wait(full, 0);
  out[blockIdx.x * blockDim.x + threadIdx.x] = own[threadIdx.x];
  cluster_sync();
}

TEST(Clusters, multicast_mistakes) {
  Device<float> from{std::vector<float>(256, 1.f)}, out(64);
  const auto message = [&](MulticastMistake with) {
    return failure_of_clusters(multicast_with, 2, LaunchConfig{2, 32, 2048}, from, with, out).message;
  };
  EXPECT_EQ(message({}), "");
  EXPECT_EQ(out.values()[40], 1);
  expect_contains(message({.blocks = 4}), "multicast to the blocks of mask 0x00000004: the cluster has blocks 0 to 1");
  expect_contains(message({.blocks = 1}), "block (1, 0, 0): warp 0 waits in mbarrier.try_wait.parity");
  expect_contains(message({.expected = 512}), "512 bytes more than any arrival expects");
  expect_contains(message({.made = false}), ": no mbarrier was made at this address");
}

}  // namespace
