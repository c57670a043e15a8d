// Timing one launch at a time, cold: the L2 cache is overwritten before each, and the inputs rotate.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

#include "harness/device_buffer.h"

namespace harness {

// What the current device is.
struct Device {
  std::string name;      // "NVIDIA H200", "SIMT engine (CPU)"
  bool is_gpu = on_gpu;  // false on the SIMT engine
  size_t l2_bytes = 0;
  size_t free_bytes = 0;  // device memory
  int sm_clock_mhz = 0;   // the highest; 0 on the engine
  int driver = 0;         // 13000 for 13.0
  int runtime = 0;
};

// Throws NoDevice where a program made for GPUs finds none.
Device current_device();

struct NoDevice : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class ColdTimer {
 public:
  ColdTimer();

  // Seconds that `work` keeps the default stream busy.
  double seconds(const std::function<void()>& work);

  size_t bytes() const { return flush_.bytes(); }  // of device memory

 private:
  DeviceBuffer flush_;  // twice the L2 cache: writing it evicts everything else
  Event start_, stop_;
};

}  // namespace harness
