// The chapter's measurement on several GPUs: one table of times for everything that can be dealt, in a bounded time.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "session.h"

namespace split_kv::parallel {

// Milliseconds of one call, the slowest rank's: the median of several rounds, each of some calls without a pause. A
// call of more than half a second is made twice, and the second counts.
template <class Call>
double milliseconds(World& world, Transport& transport, cudaStream_t stream, Call&& call) {
  harness::Event start, stop;
  const auto round = [&](int calls) {
    world.barrier();
    start.record(stream);
    for (int i = 0; i < calls; i++) call();
    stop.record(stream);
    transport.wait(stop.get());
    return world.largest(stop.milliseconds_since(start) / float(calls));
  };
  round(1);  // loads the kernels, and connects the ranks
  const double once = round(1);
  if (!on_gpu || once > 500) return once;
  const int calls = int(std::clamp(30 / once, 1.0, 20.0));
  std::vector<double> times;
  for (int i = 0; i < 5; i++) times.push_back(round(calls));
  std::nth_element(times.begin(), times.begin() + 2, times.end());
  return times[2];
}

// Strong scaling from N = 8192 on, weak scaling with 32768 rows a rank, the ring and all-to-all, forward and backward,
// one GPU beside them, what the transport alone takes for the same messages, and a timeline. Results are compared with
// one GPU's. Goes on to longer sequences while memory and `seconds` allow. Keeps JSON in `file`. Returns the exit
// status.
int measure(World& world, Transport& transport, const attention::Forward& forward, const attention::Backward& backward,
            const std::string& kernel, double seconds, const std::string& file);

}  // namespace split_kv::parallel
