// How fast tensor cores multiply when nothing else is to be done, and what the numbers have to do with it.
//
// Two warpgroups of a thread block multiply from shared memory without a pause: their own A, 64 x 128, by one of four
// B^T, 192 x 128, after the other. All of it stays in shared memory, so only the tensor cores can be the limit, or the
// power that the GPU may draw. A GPU that has reached its power limit lowers its clock. A product of zeros switches
// fewer transistors than a product of random numbers, and needs less power: if the same instructions with zeros take as
// many cycles and less time, power is the limit. Each launch takes a third of a second, so that the clock has
// come to rest for most of it.
//
// Compute capability 9.0 alone: the products are wgmma's.
#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

#include "device/clock.h"
#include "device/launch.h"
#include "device/numeric.h"
#include "device/proxy_fence.h"
#include "device/swizzle.h"
#include "device/wgmma.h"
#include "microbenchmarks/experiment.h"

namespace machine {
namespace {

using swizzled_tile::position;

constexpr int warpgroups = 2, threads = 128 * warpgroups;
constexpr int rows = 64 * warpgroups, columns = 192, inner = 128;  // of A B
constexpr int matrices = 4;                                        // that take the place of B in turn
constexpr int times = on_gpu ? 250000 : 2 * matrices;

struct Shared {
  __half a[rows * inner], b[matrices][columns * inner];  // in pages of 64 columns, swizzled
};

// Cycles and nanoseconds that a thread block took.
struct Took {
  long long cycles, nanoseconds;
};

__global__ void __launch_bounds__(threads, 1) multiply(const __half* a,  // [rows, inner]
                                                       const __half* b,  // [matrices, columns, inner], B^T
                                                       int times,
                                                       float* last,  // [rows, columns], the last of the products
                                                       Took* took) {
  constexpr int chunks = inner / 8;
  Shared& smem = *dynamic_shared<Shared, 1024>();
  for (int i = threadIdx.x; i < rows * chunks; i += threads)
    store_pack8(smem.a + position<rows>(i / chunks, i % chunks), load_pack8(a + i * 8));
  for (int matrix = 0; matrix < matrices; matrix++)
    for (int i = threadIdx.x; i < columns * chunks; i += threads)
      store_pack8(smem.b[matrix] + position<columns>(i / chunks, i % chunks),
                  load_pack8(b + (matrix * columns * chunks + i) * 8));
  fence_proxy_async();
  __syncthreads();  // A and every B are in shared memory

  const int warpgroup = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
  const uint64_t a_rows = wgmma_descriptor(smem.a + warpgroup * 64 * 64);
  const long long first_cycle = clock64(), begin = nanoseconds();
  float d[columns / 8][4];
#pragma unroll 1
  for (int i = 0; i < times; i++) {
    const uint64_t b_rows = wgmma_descriptor(smem.b[i % matrices]);
    wgmma_fence(d);
#pragma unroll
    for (int step = 0; step < inner / 16; step++)
      wgmma<__half>(d, wgmma_advance(a_rows, step / 4 * rows * 128 + step % 4 * 32),
                    wgmma_advance(b_rows, step / 4 * columns * 128 + step % 4 * 32), step > 0);
    wgmma_commit();
    wgmma_wait<0>(d);
  }
  const Took block = {clock64() - first_cycle, nanoseconds() - begin};
  if (blockIdx.x > 0) return;
  if (threadIdx.x == 0) *took = block;
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  for (int n = 0; n < columns / 8; n++)
    for (int r = 0; r < 4; r++)
      last[(threadIdx.x / 32 * 16 + r / 2 * 8 + g) * columns + 8 * n + 2 * t + r % 2] = d[n][r];
}

int attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

std::vector<__half> numbers(int size, float spread) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 1);
  std::vector<__half> x(size);
  for (__half& number : x) number = from_float<__half>(spread * normal(random));
  return x;
}

Experiment of(const char* what, float spread) {
  return {
      std::string("products/") + what, [=] {
        const std::vector<__half> a = numbers(rows * inner, spread), b = numbers(matrices * columns * inner, spread);
        std::vector<double> expected(rows * columns);
        for (int i = 0; i < rows * columns; i++)
          for (int k = 0; k < inner; k++) {
            const int column = (times - 1) % matrices * columns + i % columns;
            expected[i] += double(to_float(a[i / columns * inner + k])) * to_float(b[column * inner + k]);
          }
        return [=, a = std::make_shared<Array<__half>>(a), b = std::make_shared<Array<__half>>(b)] {
          const unsigned blocks = on_gpu ? attribute(cudaDevAttrMultiProcessorCount) : 1;
          const Array<float> last(rows * columns);
          const Array<Took> took(1);
          Run run;
          run.seconds = seconds([&] {
            launch(multiply, {blocks, threads, sizeof(Shared)}, a->data(), b->data(), times, last.data(), took.data());
          });
          const Took block = took.host()[0];
          const double flops = 2.0 * rows * columns * inner * times;  // of a thread block
          constexpr double peak = 4096;  // of a multiprocessor in a cycle: Hopper, 16-bit numbers, fp32 sums
          run.counters["flop/s"] = blocks * flops / run.seconds;
          run.counters["MHz"] = 1e3 * block.cycles / std::max(1LL, block.nanoseconds);
          run.counters["tensor cores"] = flops / peak / std::max(1LL, block.cycles);
          const std::vector<float> found = last.host();
          for (int i = 0; i < rows * columns; i++)
            if (!(std::abs(found[i] - expected[i]) <= 1e-3 * spread))
              run.wrong = "element " + std::to_string(i) + " is " + std::to_string(found[i]) + ", not " +
                          std::to_string(expected[i]);
          return run;
        };
      }};
}

}  // namespace

std::vector<Experiment> products() {
  if (on_gpu &&
      (attribute(cudaDevAttrComputeCapabilityMajor) != 9 || attribute(cudaDevAttrComputeCapabilityMinor) != 0))
    return {};
  return {of("zeros", 0), of("random", 1)};
}

}  // namespace machine
