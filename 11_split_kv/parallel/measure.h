// The chapter's measurement on several GPUs: one table of times, of each way at several lengths, in a bounded time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "session.h"

namespace split_kv::parallel {

// Milliseconds of one call of each, the slowest rank's: the median of several rounds, each of some calls without a
// pause. The entries of `all` take turns, in one order and in the other, since a GPU at its limit of power remembers
// for some 100 ms what it has done: none comes behind the same one in every round. A call of more than half a second is
// made twice, and the second counts.
struct Timed {
  Transport& transport;
  cudaStream_t stream;
  std::function<void()> call;
};
std::vector<double> milliseconds(World& world, const std::vector<Timed>& all);

// Strong scaling from N = 8192 on, weak scaling with 32768 rows a rank, the ring and all-to-all, forward and backward,
// one GPU beside them, what the transport alone takes for the same messages, and a timeline. Results are compared with
// one GPU's. Goes on to longer sequences while memory and `seconds` allow. Keeps JSON in `file`. Returns the exit
// status.
int measure(World& world, Transport& transport, const attention::Forward& forward, const attention::Backward& backward,
            const std::string& kernel, double seconds, const std::string& file);

}  // namespace split_kv::parallel
