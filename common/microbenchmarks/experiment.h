// An experiment: one launch that shows something about the machine, and a check of its result.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/device_buffer.h"

namespace machine {

// One run of it.
struct Run {
  double seconds = 0;                      // that it took
  std::map<std::string, double> counters;  // what it showed: "ns", "cycles", "bytes/s", ...
  std::string wrong = "";                  // what is wrong with its result; empty if nothing is
};

struct Experiment {
  std::string name;                               // "latency/global/8192"
  std::function<std::function<Run()>()> prepare;  // takes the memory that the runs need; it goes with the last of them
};

// The experiments of each file.
std::vector<Experiment> latency();     // of registers, shared memory, and global memory by how much of it is used
std::vector<Experiment> bandwidth();   // of registers, shared memory, L1, L2, DRAM
std::vector<Experiment> branch();      // a warp whose lanes go two ways
std::vector<Experiment> accumulate();  // sums in fp16 and in fp32 on tensor cores
std::vector<Experiment> split();       // queries or keys divided among the warps of a block
std::vector<Experiment> products();    // of wgmma from shared memory, with nothing else to do; of Hopper alone
std::vector<Experiment> eight_bits();  // how exact sums of eight-bit products are; of Hopper alone

// Seconds that `work` keeps the GPU busy. Nothing is flushed before: what the caches hold, they may keep.
inline double seconds(const std::function<void()>& work) {
  harness::Event start, stop;
  start.record();
  work();
  stop.record();
  return 1e-3 * stop.milliseconds_since(start);
}

// An array in device memory.
template <class T>
class Array {
 public:
  explicit Array(size_t size) : buffer_(size * sizeof(T)) {}
  explicit Array(const std::vector<T>& from) : Array(from.size()) {
    check(cudaMemcpy(buffer_.data(), from.data(), buffer_.bytes(), cudaMemcpyHostToDevice));
  }

  T* data() const { return static_cast<T*>(buffer_.data()); }
  std::vector<T> host() const {
    std::vector<T> to(buffer_.bytes() / sizeof(T));
    check(cudaMemcpy(to.data(), buffer_.data(), buffer_.bytes(), cudaMemcpyDeviceToHost));
    return to;
  }

 private:
  harness::DeviceBuffer buffer_;
};

}  // namespace machine
