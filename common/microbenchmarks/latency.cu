// How long one access takes: a pointer chase.
//
// One thread follows a chain of addresses. Each load gives the address of the next one, so that no two loads can be
// under way at once. The chain goes through all its places in a random order, so that nothing can be fetched ahead. The
// time of the chain, divided by its length, is the latency of a load.
//
// The chain in global memory has one place in every cache line of an array. An array that fits into L1 shows the
// latency of L1, one that fits into L2 that of L2, and a larger one that of DRAM, with the time that the translation of
// addresses adds. The same chain in shared memory, and a chain of multiply-adds in registers, stand beside it.
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>

#include "device/clock.h"
#include "device/launch.h"
#include "microbenchmarks/experiment.h"

namespace machine {
namespace {

constexpr int line = 128;                      // bytes of a cache line
constexpr int hops = on_gpu ? 1 << 16 : 1000;  // of a run
constexpr int shared_words = 4096;             // 16 KiB

struct Times {
  long long cycles, nanoseconds;
};

// Where the chain goes from each place: one cycle through all of them (Sattolo's shuffle).
std::vector<uint32_t> chain(size_t places) {
  std::vector<uint32_t> next(places);
  std::iota(next.begin(), next.end(), 0u);
  std::mt19937_64 random(1);
  for (size_t i = places - 1; i > 0; i--) std::swap(next[i], next[random() % i]);
  size_t length = 1;
  for (uint32_t place = next[0]; place != 0; place = next[place]) length++;
  if (length != places) throw std::logic_error("the chain has only " + std::to_string(length) + " places");
  return next;
}

uint32_t after(const std::vector<uint32_t>& next, uint32_t place, int steps) {
  for (int i = 0; i < steps; i++) place = next[place];
  return place;
}

__host__ __device__ unsigned long long address(const unsigned long long* place) {
  return reinterpret_cast<unsigned long long>(place);
}

// Each place gets the address of the next. It leaves as much of them in L2 as fits there.
__global__ void link(unsigned long long* places,  // [count][line / 8], of which the first is used
                     const uint32_t* next,        // [count]
                     int64_t count) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) places[i * (line / 8)] = address(places + int64_t(next[i]) * (line / 8));
}

// One thread: `warm_up` loads that fill L1, then the ones that count. The next run goes on where this one ended.
__global__ void chase_global(unsigned long long* at, int warm_up, int hops, Times* times) {
  unsigned long long place = *at;
  for (int i = 0; i < warm_up; i++) place = __ldg(reinterpret_cast<const unsigned long long*>(place));
  const long long cycles = clock64(), start = nanoseconds();
#pragma unroll 16
  for (int i = 0; i < hops; i++) place = __ldg(reinterpret_cast<const unsigned long long*>(place));
  if (place == 0) return;  // never: the clocks have to wait for the last load
  *times = {clock64() - cycles, nanoseconds() - start};
  *at = place;
}

__global__ void chase_shared(const uint32_t* next,  // [shared_words]
                             uint32_t* at, int hops, Times* times) {
  __shared__ uint32_t offsets[shared_words];  // in bytes: an address without arithmetic
  for (int i = threadIdx.x; i < shared_words; i += blockDim.x) offsets[i] = 4 * next[i];
  __syncthreads();  // the chain is in shared memory
  if (threadIdx.x > 0) return;
  uint32_t place = 4 * *at;
  const long long cycles = clock64(), start = nanoseconds();
#pragma unroll 16
  for (int i = 0; i < hops; i++)
    place = *reinterpret_cast<const uint32_t*>(reinterpret_cast<const char*>(offsets) + place);
  if (place == ~0u) return;  // never
  *times = {clock64() - cycles, nanoseconds() - start};
  *at = place / 4;
}

// x = x * factor + 1, one after the other.
__global__ void chain_registers(float* at, float factor, int hops, Times* times) {
  float x = *at;
  const long long cycles = clock64(), start = nanoseconds();
#pragma unroll 64
  for (int i = 0; i < hops; i++) x = fmaf(x, factor, 1.0f);
  if (x == 0) return;  // never
  *times = {clock64() - cycles, nanoseconds() - start};
  *at = x;
}

Run one_run(const std::function<void(Times*)>& work) {
  const Array<Times> times(1);
  work(times.data());
  const Times took = times.host()[0];
  return {1e-9 * double(took.nanoseconds),
          {{"ns", double(took.nanoseconds) / hops}, {"cycles", double(took.cycles) / hops}}};
}

Experiment of_registers() {
  return {
      "latency/registers", [] {
        return [at = std::make_shared<Array<float>>(std::vector<float>{1}), expected = 1.0f]() mutable {
          const float factor = 0.999f;
          for (int i = 0; i < hops; i++) expected = fmaf(expected, factor, 1.0f);
          Run run = one_run([&](Times* times) { launch(chain_registers, {1, 1}, at->data(), factor, hops, times); });
          if (const float x = at->host()[0]; !(x == expected))
            run.wrong = "the sum is " + std::to_string(x) + ", expected " + std::to_string(expected);
          return run;
        };
      }};
}

std::string where(uint64_t place, uint64_t expected) {
  return place == expected ? ""
                           : "the chain ends in " + std::to_string(place) + ", expected " + std::to_string(expected);
}

Experiment of_shared_memory() {
  return {"latency/shared", [] {
            const std::vector<uint32_t> next = chain(shared_words);
            return [next, places = std::make_shared<Array<uint32_t>>(next),
                    at = std::make_shared<Array<uint32_t>>(std::vector<uint32_t>{0}), expected = 0u]() mutable {
              expected = after(next, expected, hops);
              Run run = one_run([&](Times* times) {
                launch(chase_shared, {1, 256}, places->data(), at->data(), hops, times);
              });
              run.wrong = where(at->host()[0], expected);
              return run;
            };
          }};
}

Experiment of_global_memory(size_t bytes) {
  return {"latency/global/" + std::to_string(bytes), [bytes] {
            const size_t count = bytes / line;
            const int warm_up = int(std::min<size_t>(count, 4096));  // as many lines as any L1 has
            const std::vector<uint32_t> next = chain(count);
            const auto places = std::make_shared<Array<unsigned long long>>(bytes / 8);
            launch(link, {unsigned((count + 255) / 256), 256}, places->data(), Array<uint32_t>(next).data(),
                   int64_t(count));
            const auto at = std::make_shared<Array<unsigned long long>>(std::vector{address(places->data())});
            return [=, expected = 0u]() mutable {
              expected = after(next, expected, warm_up + hops);
              Run run = one_run([&](Times* times) { launch(chase_global, {1, 1}, at->data(), warm_up, hops, times); });
              run.counters["bytes"] = double(bytes);
              run.wrong = where((at->host()[0] - address(places->data())) / line, expected);
              return run;
            };
          }};
}

}  // namespace

std::vector<Experiment> latency() {
  std::vector<Experiment> experiments = {of_registers(), of_shared_memory()};
  const size_t largest = on_gpu ? size_t(1) << 30 : size_t(1) << 16;
  for (size_t bytes = 8192; bytes <= largest; bytes *= 2) {
    experiments.push_back(of_global_memory(bytes));
    if (bytes < largest) experiments.push_back(of_global_memory(bytes / 2 * 3));
  }
  return experiments;
}

}  // namespace machine
