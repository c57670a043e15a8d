// A kernel for every mistake with bulk copies and wgmma that only an observer can name, and the same kernel
// without one.
#include "device/bulk_copy.h"
#include "device/mbarrier.h"
#include "device/named_barrier.h"
#include "device/numeric.h"
#include "device/proxy_fence.h"
#include "device/wgmma.h"
#include "simt/trace/counts.h"
#include "tests/simt/support.h"

namespace {

std::string at_hopper(int line) { return "trace/hopper_checks_test.cc:" + std::to_string(line); }

constexpr int tile_bytes = 64 * 128, tile_elements = 64 * 64;  // [64][64] fp16

struct With {
  bool first_barrier = true;   // behind which the mbarriers are there
  bool full_wait = true;       // the consumers wait for the tile
  bool early_release = false;  // they give its buffer back before they have waited for the product
  int releases = 4;            // warps that the producer waits for, before it fills the buffer again
  bool wrong_phase = false;    // the consumers wait for the other parity
  int expected = tile_bytes;
  bool refill = false;        // a consumer fills a buffer again that its warp still multiplies with
  bool operand_fence = true;  // fence.proxy.async by those that write A
  bool late_fence = false;    // it comes after the barrier
  bool operand_barrier = true;
  bool early_read = false;  // of D
  bool result_fence = true;
  bool read_wait = true;  // before the source of the store is written again
};

// D [64, 64] = the sum of A B of all tiles of B. Warp 4 fetches the tiles of B by way of two buffers, warps 0 to 3 have
// written A and multiply. The sum, rounded, leaves through A's memory.
constexpr int pipeline_line = __LINE__ + 1;
__global__ void pipeline(const __grid_constant__ TensorMap b_map, const __grid_constant__ TensorMap d_map, int tiles,
                         With with) {
  __half* a = dynamic_shared<__half, 1024>();
  __half* b = a + tile_elements;  // [2][64][64]
  Mbarrier* full = reinterpret_cast<Mbarrier*>(b + 2 * tile_elements);
  Mbarrier* empty = full + 2;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < 2; stage++) {
      mbarrier_init(full + stage, 1);
      mbarrier_init(empty + stage, with.releases);
    }
    fence_mbarrier_init();
  }
  if (with.first_barrier) __syncthreads();
  if (threadIdx.x >= 128) {
    for (int tile = 0; tile < tiles && threadIdx.x == 128; tile++) {
      const int stage = tile % 2;
      mbarrier_wait(empty + stage, (tile / 2 + 1) % 2);
      mbarrier_arrive_expect_tx(full + stage, with.expected);
      tensor_load(b + stage * tile_elements, b_map, full + stage, 0, 64 * tile);
    }
    return;
  }
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int i = threadIdx.x; i < tile_elements; i += 128) a[i] = __half(1.f);
  if (with.operand_fence) fence_proxy_async();
  if (with.operand_barrier) named_barrier_sync(1, 128);
  if (with.late_fence) fence_proxy_async();
  float d[8][4];
  for (int tile = 0; tile < tiles; tile++) {
    const int stage = tile % 2;
    if (with.full_wait) mbarrier_wait(full + stage, (tile / 2 + with.wrong_phase) % 2);
    wgmma_fence(d);
    for (int step = 0; step < 4; step++)
      wgmma<__half>(d, wgmma_advance(wgmma_descriptor(a), 32 * step),
                    wgmma_advance(wgmma_descriptor(b + stage * tile_elements), 32 * step), tile + step > 0);
    wgmma_commit();
    if (with.early_release && lane == 0) mbarrier_arrive(empty + stage);
    if (with.refill && threadIdx.x == 0) tensor_load(b + stage * tile_elements, b_map, full + stage, 0, 0);
    if (with.early_read && d[1][2] == 5) return;
    wgmma_wait<0>(d);
    if (!with.early_release && lane == 0 && warp < with.releases) mbarrier_arrive(empty + stage);
  }
  named_barrier_sync(1, 128);  // all have multiplied with A
  const int g = lane / 4, t = lane % 4;
  const auto write = [&](float factor) {
    for (int n = 0; n < 8; n++)
      for (int h = 0; h < 2; h++) {
        const int row = 16 * warp + g + 8 * h;
        *reinterpret_cast<uint32_t*>(a + row * 64 + (n ^ row % 8) * 8 + 2 * t) =
            pack2<__half>(factor * d[n][2 * h], factor * d[n][2 * h + 1]);
      }
  };
  write(1);
  if (with.result_fence) fence_proxy_async();
  named_barrier_sync(1, 128);
  if (threadIdx.x == 0) {
    tensor_store(d_map, a, 0, 0);
    bulk_commit();
    if (with.read_wait) bulk_wait_read<0>();
  }
  named_barrier_sync(1, 128);
  write(2);
  if (threadIdx.x == 0) bulk_wait<0>();
}

// Lines of the kernel, from its first on.
constexpr int mbarrier_line = pipeline_line + 8, load_line = pipeline_line + 19, operand_line = pipeline_line + 24,
              product_line = pipeline_line + 34, refill_line = pipeline_line + 38, test_line = pipeline_line + 39,
              result_line = pipeline_line + 49, leave_line = pipeline_line + 57;

class HopperCheck : public testing::Test {
 protected:
  static constexpr int tiles_ = 5;

  HopperCheck() {
    std::vector<__half> b(tiles_ * tile_elements);
    for (size_t i = 0; i < b.size(); i++) b[i] = __half(float(i % 3));
    check(cudaMemcpy(b_, b.data(), b.size() * sizeof(__half), cudaMemcpyHostToDevice));
  }

  std::string said(const With& with) {
    return failure_of(pipeline, LaunchConfig{1, 160, 3 * tile_bytes + 64}, b_map_, d_map_, tiles_, with).message;
  }

  // Whatever the order of the threads.
  void expect_said(const With& with, const std::string& what, int line, const std::string& other = "") {
    for (const simt::Order order : {simt::Order::forward, simt::Order::reverse}) {
      const WithSchedule schedule({.order = order});
      const std::string message = said(with);
      expect_contains(message, what);
      expect_contains(message, at_hopper(line));
      expect_contains(message, other);
    }
  }

  Device<__half> b_{tiles_ * tile_elements}, d_{tile_elements};
  TensorMap b_map_ = tensor_map(static_cast<const __half*>(b_), {64, 64 * tiles_}, {128}, {64, 64});
  TensorMap d_map_ = tensor_map(static_cast<const __half*>(d_), {64, 64}, {128}, {64, 64});
};

TEST_F(HopperCheck, a_correct_pipeline_in_any_order) {
  for (const simt::Order order : {simt::Order::forward, simt::Order::reverse, simt::Order::shuffled})
    for (const std::uint64_t seed : {1, 2, 3}) {
      const WithSchedule schedule({.order = order, .seed = seed});
      ASSERT_EQ(said({}), "");
      const std::vector<__half> d = d_.values();
      for (int i = 0; i < tile_elements; i++) {
        int expected = 0;
        for (int row = i % 64; row < 64 * tiles_; row += 64)
          for (int k = 0; k < 64; k++) expected += (row * 64 + k) % 3;
        ASSERT_EQ(float(d[i]), float(expected)) << i;
      }
    }
}

TEST_F(HopperCheck, bulk_copies_and_products_are_counted) {
  simt::trace_begin();
  EXPECT_EQ(said({}), "");
  const auto launches = simt::trace_end();
  ASSERT_EQ(launches.size(), 1u);
  const auto expect = [&](simt::Op op, std::uint64_t requests, std::uint64_t bytes, std::uint64_t units) {
    const simt::Counts& counts = launches[0].totals[int(op)];
    EXPECT_EQ(counts.requests, requests) << name(op);
    EXPECT_EQ(counts.bytes, bytes) << name(op);
    EXPECT_EQ(counts.units, units) << name(op);
    EXPECT_EQ(counts.ideal, units) << name(op);
  };
  constexpr int products = tiles_ * 4;
  expect(simt::Op::bulk_load, tiles_, tiles_ * tile_bytes, tiles_ * tile_bytes / 32);
  expect(simt::Op::bulk_store, 1, tile_bytes, tile_bytes / 32);
  expect(simt::Op::bulk_add, 0, 0, 0);
  expect(simt::Op::wgmma, products * 4, products * (2048 + 2048), products * 32);  // A [64][16] and B [16][64] each
  EXPECT_EQ(launches[0].matrix_flops, std::uint64_t(products) * 2 * 64 * 64 * 16);
  EXPECT_EQ(launches[0].read.launch, std::uint64_t(tiles_ * tile_bytes));
  EXPECT_EQ(launches[0].written.launch, std::uint64_t(tile_bytes));
}

// A box from this row on, which may lie below the tensor, and a sum.
__global__ void box_from(const __grid_constant__ TensorMap map, int row, float* sums) {
  char* tile = dynamic_shared<char, 1024>();
  Mbarrier* full = reinterpret_cast<Mbarrier*>(tile + tile_bytes);
  mbarrier_init(full, 1);
  fence_mbarrier_init();
  mbarrier_arrive_expect_tx(full, tile_bytes);
  tensor_load(tile, map, full, 0, row);
  mbarrier_wait(full, 0);
  bulk_add(sums, reinterpret_cast<const float*>(tile), 256);
  bulk_commit();
  bulk_wait<0>();
}

TEST_F(HopperCheck, what_lies_outside_a_tensor_is_no_traffic) {
  Device<float> sums(64);
  simt::trace_begin();
  EXPECT_EQ(failure_of(box_from, LaunchConfig{1, 1, tile_bytes + 64}, b_map_, 64 * tiles_ - 32, sums).message, "");
  const auto launches = simt::trace_end();
  const simt::Counts& load = launches.at(0).totals[int(simt::Op::bulk_load)];
  EXPECT_EQ(load.bytes, std::uint64_t(tile_bytes));
  EXPECT_EQ(load.units, std::uint64_t(tile_bytes / 2 / 32));
  const simt::Counts& add = launches[0].totals[int(simt::Op::bulk_add)];
  EXPECT_EQ(add.requests, 1u);
  EXPECT_EQ(add.units, 256u / 32);
  EXPECT_EQ(launches[0].written.launch, 256u);
}

// As on an H200, a box that lies outside as a whole needs memory where the map begins, though no row of it is there.
TEST_F(HopperCheck, a_box_outside_a_tensor_whose_map_begins_before_its_memory) {
  const TensorMap before =
      tensor_map(static_cast<const __half*>(b_) - tile_elements, {64, 64 * (tiles_ + 1)}, {128}, {64, 64});
  Device<float> sums(64);
  const auto said = [&](const TensorMap& map, int row) {
    return failure_of(box_from, LaunchConfig{1, 1, tile_bytes + 64}, map, row, sums).message;
  };
  EXPECT_EQ(said(before, 64 * (tiles_ + 1) - 1), "");
  EXPECT_EQ(said(b_map_, 64 * tiles_), "");
  expect_contains(said(before, 64 * (tiles_ + 1)), "invalid read 8192 bytes before the start of a ");
}

TEST_F(HopperCheck, mbarriers_that_threads_do_not_know_of) {
  const std::string line = at_hopper(mbarrier_line + 1);
  expect_contains(said({.first_barrier = false}),
                  "mbarrier.try_wait.parity: no barrier between this and what thread (0, 0, 0) did at " + line +
                      " to the memory of the mbarrier of " + line + " at byte 24592 of dynamic shared memory");
}

TEST_F(HopperCheck, no_wait_for_the_tile) {
  const std::string message = said({.full_wait = false});
  expect_contains(message, "read of 16 bytes of uninitialised shared memory");  // nothing has started to fill it
  expect_contains(message, at_hopper(product_line));
  const WithSchedule reverse({.order = simt::Order::reverse});
  const std::string later = said({.full_wait = false});
  expect_contains(later, "read by wgmma of shared memory that a bulk copy of thread (128, 0, 0) at " +
                             at_hopper(load_line) + " fills, before any thread has waited for phase 0 of the mbarrier");
}

// If the first copy has landed, they wait for ever for the next; if not, they do not wait at all.
TEST_F(HopperCheck, wait_for_the_wrong_phase) {
  expect_contains(said({.wrong_phase = true}), "read of 16 bytes of uninitialised shared memory");
  const WithSchedule reverse({.order = simt::Order::reverse});
  expect_contains(said({.wrong_phase = true}), " (the mbarrier of " + at_hopper(mbarrier_line) +
                                                   " at byte 24576 of dynamic shared memory is in phase 1: 0 of 1 "
                                                   "arrivals have come)");
}

TEST_F(HopperCheck, fewer_bytes_than_come) {
  expect_said({.expected = tile_bytes - 16}, "deadlock: every thread of the block waits", mbarrier_line,
              "and 16 bytes more than any arrival expects");
}

TEST_F(HopperCheck, a_buffer_that_is_filled_again_before_the_product_has_read_it) {
  expect_said({.early_release = true}, "no barrier between this bulk copy to 8192 bytes and the wgmma of warp ",
              load_line, " at " + at_hopper(product_line) + ", which has read it");
}

TEST_F(HopperCheck, a_buffer_that_is_filled_again_while_its_product_is_under_way) {
  expect_said({.refill = true},
              "bulk copy to 8192 bytes of shared memory that a wgmma of warp 0 at " + at_hopper(product_line) +
                  " reads, before that warp waited for it",
              refill_line);
}

TEST_F(HopperCheck, a_buffer_that_not_all_warps_have_given_back) {
  expect_said({.releases = 3}, "no barrier between this bulk copy to 8192 bytes and the wgmma of warp 3 at ", load_line,
              at_hopper(product_line) + ", which has read it");
}

// Warp 0 fetches tiles by way of two buffers, warp 1 reads them, and warp 2 only hands them back.
constexpr int hand_back_line = __LINE__ + 1;
__global__ void hand_back(const __grid_constant__ TensorMap map, int tiles, bool waits, __half* sum) {
  __half* b = dynamic_shared<__half, 1024>();  // [2][64][64]
  Mbarrier *full = reinterpret_cast<Mbarrier*>(b + 2 * tile_elements), *empty = full + 2;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < 2; stage++) {
      mbarrier_init(full + stage, 1);
      mbarrier_init(empty + stage, 2);
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  for (int tile = 0; tile < tiles && threadIdx.x % 32 == 0; tile++) {
    const int stage = tile % 2;
    if (threadIdx.x == 0) {
      mbarrier_wait(empty + stage, (tile / 2 + 1) % 2);
      mbarrier_arrive_expect_tx(full + stage, tile_bytes);
      tensor_load(b + stage * tile_elements, map, full + stage, 0, 64 * tile);
      continue;
    }
    if (threadIdx.x == 32 || waits) mbarrier_wait(full + stage, tile / 2 % 2);
    if (threadIdx.x == 32) sum[tile] = b[stage * tile_elements];
    mbarrier_arrive(empty + stage);
  }
}

// It would be counted twice in one phase, if warp 1 were slow, and the tile that warp 1 reads would be overwritten.
TEST_F(HopperCheck, a_buffer_that_is_given_back_before_it_was_filled) {
  const LaunchConfig config{1, 96, 2 * tile_bytes + 64};
  for (const simt::Order order : {simt::Order::forward, simt::Order::reverse, simt::Order::shuffled}) {
    const WithSchedule schedule({.order = order});
    EXPECT_EQ(failure_of(hand_back, config, b_map_, tiles_, true, d_).message, "");
    const std::string message = failure_of(hand_back, config, b_map_, tiles_, false, d_).message;
    expect_contains(message, "mbarrier.arrive counts in phase 1 of the mbarrier of ");
    expect_contains(message, ", and might have counted in the phase before");
    expect_contains(message, at_hopper(hand_back_line + 21));
  }
}

TEST_F(HopperCheck, no_fence_between_the_proxies_before_a_product) {
  const std::string what = "read by wgmma of shared memory that thread (";
  expect_said({.operand_fence = false}, what, operand_line, ", and no fence.proxy.async by that thread in between");
  expect_said({.operand_fence = false, .late_fence = true}, what,
              operand_line);  // after the barrier: too late for the others
  expect_contains(said({.operand_barrier = false}),
                  "race on shared memory: no barrier between this read of 16 bytes and the write of the same memory");
}

TEST_F(HopperCheck, no_fence_between_the_proxies_before_a_store) {
  expect_said({.result_fence = false}, "bulk copy from 8192 bytes of shared memory that thread (", leave_line,
              " at " + at_hopper(result_line) + ", and no fence.proxy.async by that thread in between");
}

TEST_F(HopperCheck, writing_what_a_store_reads) {
  expect_said({.read_wait = false},
              "write of 4 bytes of shared memory that a bulk copy of thread (0, 0, 0) at " + at_hopper(leave_line) +
                  " reads, before that thread waited for it",
              result_line);
}

TEST_F(HopperCheck, reading_the_sums_of_a_product_under_way) {
  expect_said({.early_read = true}, "read of an element of D of the wgmma at " + at_hopper(product_line), test_line,
              ", before it was waited for");
}

}  // namespace
