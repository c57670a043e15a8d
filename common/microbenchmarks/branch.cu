// What it costs when the lanes of a warp go two ways.
//
// Each thread counts up or down, as an array tells it. Both ways take equally many instructions. If all lanes of a warp
// go the same way, the warp executes that way alone. If they do not, it executes both, one after the other, and the
// lanes that are not on the current way sit idle. That takes twice the time, even if only one lane of 32 goes the other
// way.
#include <cmath>
#include <memory>

#include "device/launch.h"
#include "microbenchmarks/experiment.h"

namespace machine {
namespace {

constexpr int threads = 1024, blocks = on_gpu ? 1056 : 2;
constexpr int steps = on_gpu ? 16384 : 64;

// `one` is 1, which the compiler must not know: each step shall be a multiply-add.
__global__ void __launch_bounds__(threads) count(const int* down,  // [blocks * threads]
                                                 float one, int steps,
                                                 float* counts)  // [blocks * threads]
{
  const int i = blockIdx.x * threads + threadIdx.x;
  float x = 0;
  if (down[i]) {
#pragma unroll 16
    for (int n = 0; n < steps; n++) x = fmaf(x, one, -1.0f);
  } else {
#pragma unroll 16
    for (int n = 0; n < steps; n++) x = fmaf(x, one, 1.0f);
  }
  counts[i] = x;
}

// `goes_down` says it of thread i.
Experiment of_ways(const char* who, bool (*goes_down)(int i)) {
  return {
      std::string("branch/") + who, [=] {
        std::vector<int> down(size_t(blocks) * threads);
        for (int i = 0; i < blocks * threads; i++) down[i] = goes_down(i);
        return [down, ways = std::make_shared<Array<int>>(down), counts = std::make_shared<Array<float>>(down.size())] {
          Run run;
          run.seconds = seconds([&] { launch(count, {blocks, threads}, ways->data(), 1.0f, steps, counts->data()); });
          run.counters["ms"] = 1e3 * run.seconds;
          const std::vector<float> found = counts->host();
          for (size_t i = 0; i < down.size(); i++)
            if (found[i] != float(down[i] ? -steps : steps))
              run.wrong = "thread " + std::to_string(i) + " counts to " + std::to_string(found[i]);
          return run;
        };
      }};
}

}  // namespace

std::vector<Experiment> branch() {
  return {of_ways("all_up", [](int) { return false; }), of_ways("all_down", [](int) { return true; }),
          of_ways("by_warp", [](int i) { return i / 32 % 2 == 1; }),
          of_ways("by_lane", [](int i) { return i % 2 == 1; }), of_ways("one_lane", [](int i) { return i % 32 == 0; })};
}

}  // namespace machine
