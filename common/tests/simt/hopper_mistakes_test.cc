// A kernel for every mistake with mbarriers, bulk copies and wgmma that the engine finds without counting accesses. The
// others are in trace/hopper_checks_test.cc.
#include <cmath>

#include "device/bulk_copy.h"
#include "device/mbarrier.h"
#include "device/proxy_fence.h"
#include "device/setmaxnreg.h"
#include "device/wgmma.h"
#include "tests/simt/support.h"

namespace {

std::string at_hopper(int line) { return "simt/hopper_mistakes_test.cc:" + std::to_string(line); }

constexpr int tile_bytes = 64 * 128;  // [64][64] fp16

class HopperMistake : public testing::Test {
 protected:
  Device<__half> matrix_{std::vector<__half>(64 * 64, __half(1.f))};
  Device<float> out_{64 * 64};
  TensorMap map_ = tensor_map(static_cast<const __half*>(matrix_), {64, 64}, {128}, {64, 64});
};

struct Mistakes {
  int expected = tile_bytes;
  unsigned parity = 0;
  bool fence = true;
  bool wait = true;
  int copies = 1;
};

// A tile comes by a bulk copy, and is read.
constexpr int load_line = __LINE__ + 5;
__global__ void load_a_tile(const __grid_constant__ TensorMap map, Mistakes with, float* out) {
  __half* tile = dynamic_shared<__half, 1024>();
  Mbarrier* full = reinterpret_cast<Mbarrier*>(tile + 2 * tile_bytes / 2);
  if (threadIdx.x == 0) {
    mbarrier_init(full, 1);
    if (with.fence) fence_mbarrier_init();
    mbarrier_arrive_expect_tx(full, with.expected);
    for (int i = 0; i < with.copies; i++) tensor_load(tile + i * tile_bytes / 2, map, full, 0, 0);
  }
  __syncthreads();
  if (with.wait) mbarrier_wait(full, with.parity);
  out[threadIdx.x] = float(tile[threadIdx.x]);
}

LaunchConfig for_tiles(int threads) { return LaunchConfig{1, unsigned(threads), 2 * tile_bytes + 64}; }

const std::string the_mbarrier = "the mbarrier of " + at_hopper(load_line) + " at byte 16384 of dynamic shared memory";

TEST_F(HopperMistake, no_mistake) {
  EXPECT_EQ(failure_of(load_a_tile, for_tiles(128), map_, Mistakes(), out_).message, "");
  for (int i = 0; i < 128; ++i) ASSERT_EQ(out_.values()[i], 1);
}

TEST_F(HopperMistake, more_bytes_expected_than_come) {
  const Failure failure = failure_of(load_a_tile, for_tiles(128), map_, Mistakes{.expected = tile_bytes + 16}, out_);
  EXPECT_EQ(failure.code, cudaErrorLaunchTimeout);
  expect_contains(failure.message,
                  "deadlock: every thread of the block waits: warps 0-3 wait in mbarrier.try_wait.parity at " +
                      at_hopper(load_line + 6) + " (" + the_mbarrier +
                      " is in phase 0: 1 of 1 arrivals have come, 16 of the expected bytes have not)");
}

TEST_F(HopperMistake, fewer_bytes_expected_than_come) {
  const Failure failure = failure_of(load_a_tile, for_tiles(128), map_, Mistakes{.copies = 2}, out_);
  EXPECT_EQ(failure.code, cudaErrorLaunchFailure);
  expect_contains(failure.message, "the block has ended, and " + the_mbarrier +
                                       " is in phase 1: 0 of 1 arrivals have come, and 8192 bytes more than any "
                                       "arrival expects");
}

// Parity 1 is that of the phase before the first: the wait returns at once, and before the copy has landed.
TEST_F(HopperMistake, wait_for_the_wrong_phase) {
  const Failure failure = failure_of(load_a_tile, for_tiles(128), map_, Mistakes{.parity = 1}, out_);
  EXPECT_EQ(failure.code, cudaErrorLaunchTimeout);
  expect_contains(failure.message, "is in phase 1: 0 of 1 arrivals have come)");
}

TEST_F(HopperMistake, no_wait_for_a_load) {
  const Failure failure = failure_of(load_a_tile, for_tiles(128), map_, Mistakes{.wait = false}, out_);
  EXPECT_EQ(failure.code, cudaErrorLaunchFailure);
  expect_contains(failure.message, "the block has ended, and nobody has waited for the cp.async.bulk.tensor of " +
                                       at_hopper(load_line + 3) + ", which phase 0 of " + the_mbarrier + " completes");
  for (int i = 0; i < 128; ++i) ASSERT_TRUE(std::isnan(out_.values()[i]));  // what it read was poison
}

TEST_F(HopperMistake, mbarrier_that_copies_do_not_know_of) {
  expect_contains(failure_of(load_a_tile, for_tiles(128), map_, Mistakes{.fence = false}, out_).message,
                  "cp.async.bulk.tensor: no fence.mbarrier_init, and no fence.proxy.async, by the thread that made " +
                      the_mbarrier);
}

__global__ void odd_mbarriers(int which) {
  Mbarrier* mbarrier = dynamic_shared<Mbarrier>();
  if (which == 0) mbarrier_arrive(mbarrier);
  if (which == 1) mbarrier_init(mbarrier, 0);
  if (which > 1) mbarrier_init(mbarrier, 1);
  if (which == 2) mbarrier_init(mbarrier, 1);
  if (which == 3) mbarrier_wait(mbarrier, 2);
  if (which == 4) mbarrier_arrive_expect_tx(mbarrier, 1 << 20);
  if (which == 5) mbarrier_arrive_expect_tx(mbarrier, 16);
  if (which == 5) mbarrier_arrive(mbarrier);
}

TEST_F(HopperMistake, impossible_calls_of_an_mbarrier) {
  const char* const said[] = {"mbarrier.arrive: no mbarrier was made at this address",
                              "mbarrier.init: 0 arrivals: must be 1 to 1048575",
                              "mbarrier.init: there is the mbarrier of ",
                              "mbarrier.try_wait.parity 2: a parity is 0 or 1",
                              "it cannot count more than 1048575",
                              "1 of 1 arrivals have come, 16 of the expected bytes have not, and one more arrives"};
  for (int i = 0; i < 6; ++i) expect_contains(failure_of(odd_mbarriers, LaunchConfig{1, 1, 8}, i).message, said[i]);
}

__global__ void odd_copies(const __grid_constant__ TensorMap map, int which, float* global) {
  char* smem = dynamic_shared<char, 1024>();
  Mbarrier* full = reinterpret_cast<Mbarrier*>(smem + 2 * tile_bytes);
  mbarrier_init(full, 1);
  fence_mbarrier_init();
  if (which == 0) tensor_load(smem + 512, map, full, 0, 0);
  if (which == 1) tensor_load(smem + 12 * 1024, map, full, 0, 0);
  if (which == 2) tensor_load(smem, map, full, 0, 0, 0);
  if (which == 3) bulk_load(smem, global, 24, full);
  if (which == 4) bulk_load(smem, global + 1, 16, full);
  if (which == 5) bulk_load(smem + 8, global, 16, full);
  if (which == 6) bulk_load(smem, global, 16, full + 1);
  if (which == 7) bulk_store(global, smem, 16);
  if (which == 8) tensor_load(smem, map, full, -12, 0);
  if (which == 9) tensor_store(map, smem, 0, -5);
}

TEST_F(HopperMistake, impossible_copies) {
  const char* const said[] = {
      "cp.async.bulk.tensor: the address in shared memory, byte 512 of dynamic shared memory, is not a multiple of "
      "1024",
      "cp.async.bulk.tensor: 8192 bytes from byte 12288 of dynamic shared memory on are not in shared memory",
      "cp.async.bulk.tensor: 3 coordinates for a tensor map of 2 dimensions",
      "cp.async.bulk: 24 bytes: must be a multiple of 16",
      "cp.async.bulk: the address in global memory is not a multiple of 16",
      "byte 8 of dynamic shared memory, is not a multiple of 16",
      "cp.async.bulk: no mbarrier was made at this address",
      "the thread returned without having waited for this cp.async.bulk",
      "cp.async.bulk.tensor: the innermost coordinate is -12, which is -24 bytes: must be a multiple of 16",
      "cp.async.bulk.tensor: coordinate 1 of a store is -5: must not be negative"};
  for (int i = 0; i < 10; ++i) expect_contains(failure_of(odd_copies, for_tiles(1), map_, i, out_).message, said[i]);
}

struct ProductMistakes {
  int stride = 1024;
  int page = 0;
  int offset = 0;
  bool fence = true;
  bool wait = true;
  bool early = false;  // D is written before the wait
  unsigned warps = 4;
};

// The product of two tiles of ones.
constexpr int product_line = __LINE__ + 12;
template <bool mn>
__global__ void multiply_tiles(ProductMistakes with, float* out) {
  __half* tile = dynamic_shared<__half, 1024>();
  for (int i = threadIdx.x; i < tile_bytes; i += 128) tile[i] = __half(1.f);
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x / 32 >= with.warps) return;
  float d[16][4] = {};
  if (with.fence) wgmma_fence(d);
  const uint64_t a = wgmma_descriptor(tile);
  const uint64_t b = wgmma_descriptor(reinterpret_cast<char*>(tile) + with.offset, with.page, with.stride);
  wgmma<__half, Major::k, mn ? Major::mn : Major::k>(d, a, b, true);
  wgmma_commit();
  if (with.early) d[0][0] = 3;
  if (with.wait) wgmma_wait<0>(d);
  out[threadIdx.x] = d[0][0];
}

TEST_F(HopperMistake, no_mistake_with_a_product) {
  EXPECT_EQ(failure_of(multiply_tiles<false>, for_tiles(128), ProductMistakes(), out_).message, "");
  EXPECT_EQ(failure_of(multiply_tiles<true>, for_tiles(128), ProductMistakes{.page = tile_bytes}, out_).message, "");
  for (int i = 0; i < 128; ++i) ASSERT_EQ(out_.values()[i], 16);
}

TEST_F(HopperMistake, descriptor_with_a_wrong_stride) {
  const Failure failure = failure_of(multiply_tiles<false>, for_tiles(128), ProductMistakes{.stride = 512}, out_);
  EXPECT_EQ(failure.code, cudaErrorLaunchFailure);
  expect_contains(failure.message,
                  "at " + at_hopper(product_line) +
                      ": wgmma: the descriptor of B has a stride of 512 bytes from eight rows to the next eight: must "
                      "be a multiple of 1024, since they take that much");
  expect_contains(failure_of(multiply_tiles<false>, for_tiles(128), ProductMistakes{.stride = 2048}, out_).message,
                  "a stride of 2048 bytes: with 128 rows it reaches byte 16528 of dynamic shared memory");
}

TEST_F(HopperMistake, descriptor_with_a_wrong_distance_of_pages) {
  expect_contains(failure_of(multiply_tiles<true>, for_tiles(128), ProductMistakes(), out_).message,
                  "the descriptor of B has 0 bytes from a page to the next: must be a multiple of 1024");
  expect_contains(
      failure_of(multiply_tiles<true>, for_tiles(128), ProductMistakes{.page = 16384}, out_).message,
      "16384 bytes from a page to the next and a stride of 1024 bytes: with 128 rows it reaches byte 16448");
}

TEST_F(HopperMistake, descriptor_with_a_wrong_address) {
  expect_contains(failure_of(multiply_tiles<false>, for_tiles(128), ProductMistakes{.offset = 128}, out_).message,
                  "the descriptor of B has an address that is 128 bytes behind a multiple of 1024");
  expect_contains(failure_of(multiply_tiles<false>, for_tiles(128), ProductMistakes{.offset = 112}, out_).message,
                  "the descriptor of B has an address at byte 112 of a row: 16 elements do not fit behind it");
}

// The product of ones, those of B in rows of 16 bytes, without a swizzle: both halves of the inner index are the same.
__global__ void multiply_plain_rows(ProductMistakes with, float* out) {
  __half* tile = dynamic_shared<__half, 1024>();
  for (int i = threadIdx.x; i < tile_bytes; i += 128) tile[i] = __half(1.f);
  fence_proxy_async();
  __syncthreads();
  float d[16][4] = {};
  wgmma_fence(d);
  wgmma<__half>(d, wgmma_descriptor(tile),
                wgmma_descriptor(reinterpret_cast<char*>(tile) + with.offset, with.page, with.stride, 16), true);
  wgmma_commit();
  wgmma_wait<0>(d);
  out[threadIdx.x] = d[0][0];
}

TEST_F(HopperMistake, descriptors_of_rows_of_16_bytes) {
  EXPECT_EQ(failure_of(multiply_plain_rows, for_tiles(128), ProductMistakes{.stride = 128}, out_).message, "");
  for (int i = 0; i < 128; ++i) ASSERT_EQ(out_.values()[i], 16);
  EXPECT_EQ(failure_of(multiply_plain_rows, for_tiles(128), ProductMistakes{.stride = 128, .page = 2048}, out_).message,
            "");
  expect_contains(failure_of(multiply_plain_rows, for_tiles(128), ProductMistakes{.stride = 64}, out_).message,
                  "the descriptor of B has a stride of 64 bytes from eight rows to the next eight: must be a multiple "
                  "of 128, since they take that much");
  expect_contains(
      failure_of(multiply_plain_rows, for_tiles(128), ProductMistakes{.stride = 128, .offset = 16}, out_).message,
      "the descriptor of B has an address that is 16 bytes behind a multiple of 128");
}

// The product of ones of eight bits, 64 of them to a row.
__global__ void multiply_eight_bits(ProductMistakes with, int swizzled_bytes, float* out) {
  __nv_fp8_e4m3* tile = dynamic_shared<__nv_fp8_e4m3, 1024>();
  for (int i = threadIdx.x; i < 2 * tile_bytes; i += 128) tile[i] = __nv_fp8_e4m3(1.f);
  fence_proxy_async();
  __syncthreads();
  float d[16][4] = {};
  wgmma_fence(d);
  wgmma<__nv_fp8_e4m3>(d, wgmma_descriptor(tile, 0, 512, 64),
                       wgmma_descriptor(tile + with.offset, 0, with.stride, swizzled_bytes), true);
  wgmma_commit();
  wgmma_wait<0>(d);
  out[threadIdx.x] = d[0][0];
}

TEST_F(HopperMistake, descriptors_of_rows_of_64_bytes) {
  EXPECT_EQ(failure_of(multiply_eight_bits, for_tiles(128), ProductMistakes{.stride = 512}, 64, out_).message, "");
  for (int i = 0; i < 128; ++i) ASSERT_EQ(out_.values()[i], 32);
  expect_contains(failure_of(multiply_eight_bits, for_tiles(128), ProductMistakes{.stride = 256}, 64, out_).message,
                  "the descriptor of B has a stride of 256 bytes from eight rows to the next eight: must be a multiple "
                  "of 512, since they take that much");
  expect_contains(
      failure_of(multiply_eight_bits, for_tiles(128), ProductMistakes{.stride = 512, .offset = 48}, 64, out_).message,
      "the descriptor of B has an address at byte 48 of a row: 32 elements do not fit behind it");
  expect_contains(
      failure_of(multiply_eight_bits, for_tiles(128), ProductMistakes{.stride = 512, .offset = 64}, 64, out_).message,
      "the descriptor of B has an address that is 64 bytes behind a multiple of 512");
}

TEST_F(HopperMistake, no_wait_for_a_product) {
  const Failure failure = failure_of(multiply_tiles<false>, for_tiles(128), ProductMistakes{.wait = false}, out_);
  EXPECT_EQ(failure.code, cudaErrorLaunchFailure);
  expect_contains(failure.message,
                  "at " + at_hopper(product_line) + ": the thread returned without having waited for this wgmma");
  ASSERT_TRUE(std::isnan(out_.values()[0]));  // what it read was poison
}

TEST_F(HopperMistake, writing_to_the_sums_of_a_product_under_way) {
  expect_contains(failure_of(multiply_tiles<false>, for_tiles(128), ProductMistakes{.early = true}, out_).message,
                  "wgmma: lane 0 of warp 0 has written to D before it waited for this product");
}

TEST_F(HopperMistake, product_without_a_fence) {
  expect_contains(failure_of(multiply_tiles<false>, for_tiles(128), ProductMistakes{.fence = false}, out_).message,
                  "wgmma: no wgmma.fence came before the warp's first product");
}

TEST_F(HopperMistake, product_without_one_of_the_warps) {
  expect_contains(failure_of(multiply_tiles<false>, for_tiles(128), ProductMistakes{.warps = 3}, out_).message,
                  "wgmma: warp 3 has started 0 products, and another warp of its warpgroup 1");
  expect_contains(failure_of(multiply_tiles<false>, for_tiles(96), ProductMistakes(), out_).message,
                  "wgmma: the block has not all 128 threads of this warpgroup");
}

__global__ void warps_that_differ() {
  __half* tile = dynamic_shared<__half, 1024>();
  float d[8][4] = {};
  wgmma_fence(d);
  wgmma<__half>(d, wgmma_descriptor(tile), wgmma_descriptor(tile), threadIdx.x < 32);
  wgmma_commit();
  wgmma_wait<0>(d);
}

__global__ void second_product_without_a_fence(float* out) {
  __half* tile = dynamic_shared<__half, 1024>();
  for (int i = threadIdx.x; i < tile_bytes; i += 128) tile[i] = __half(1.f);
  fence_proxy_async();
  __syncthreads();
  float d[8][4];
  wgmma_fence(d);
  for (int i = 0; i < 2; i++) {
    wgmma<__half>(d, wgmma_descriptor(tile), wgmma_descriptor(tile), i > 0);
    wgmma_commit();
    wgmma_wait<0>(d);
    d[0][0] += 1;
  }
  out[threadIdx.x] = d[0][0];
}

TEST_F(HopperMistake, products_that_are_not_a_warpgroup_s) {
  expect_contains(failure_of(warps_that_differ, for_tiles(128)).message,
                  "wgmma: product 0 of this warpgroup is another one in another of its warps");
}

TEST_F(HopperMistake, sums_that_were_written_since_the_fence) {
  expect_contains(failure_of(second_product_without_a_fence, for_tiles(128), out_).message,
                  "wgmma: adds to registers that the threads have written, without a wgmma.fence since then");
}

constexpr int registers_line = __LINE__ + 3;
__global__ void take_registers(bool give, bool too_many, unsigned warps) {
  if (give && threadIdx.x < 128) setmaxnreg_dec<24>();
  if (threadIdx.x >= 128 && threadIdx.x / 32 < 4 + warps) setmaxnreg_inc<240>();
  if (too_many && threadIdx.x < 128) setmaxnreg_dec<232>();
}

TEST_F(HopperMistake, registers_that_the_block_does_not_have) {
  EXPECT_EQ(failure_of(take_registers, LaunchConfig{1, 384}, true, false, 8u).message, "");
  const Failure failure = failure_of(take_registers, LaunchConfig{1, 384}, false, false, 8u);
  EXPECT_EQ(failure.code, cudaErrorLaunchTimeout);
  expect_contains(failure.message, "wait in setmaxnreg.inc at " + at_hopper(registers_line) +
                                       " (the block has 64512 registers, of which 64512 are taken)");
  expect_contains(failure_of(take_registers, LaunchConfig{1, 384}, true, true, 8u).message,
                  "setmaxnreg.dec to 232 registers: each thread has 24");
  expect_contains(failure_of(take_registers, LaunchConfig{1, 384}, true, false, 3u).message,
                  "setmaxnreg: warp 7 has executed it 0 times, and warp 4 of the same warpgroup 1");
}

}  // namespace
