#include "harness/timing.h"

namespace harness {

Device current_device() {
  int device = 0, devices = 0;
  if (const cudaError_t code = cudaGetDeviceCount(&devices); code != cudaSuccess || devices == 0)
    throw NoDevice(std::string("there is no GPU (") + cudaGetErrorString(code) +
                   "): the same program of the cpu preset needs none");
  check(cudaGetDevice(&device));
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, device));
  Device d;
  d.name = properties.name;
  d.l2_bytes = size_t(properties.l2CacheSize);
  size_t total = 0;
  check(cudaMemGetInfo(&d.free_bytes, &total));
  int clock_khz = 0;
  if (d.is_gpu) check(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, device));
  d.sm_clock_mhz = clock_khz / 1000;
  check(cudaDriverGetVersion(&d.driver));
  check(cudaRuntimeGetVersion(&d.runtime));
  return d;
}

// On the SIMT engine there is no cache to empty.
ColdTimer::ColdTimer() : flush_(current_device().is_gpu ? 2 * current_device().l2_bytes : 0) {}

double ColdTimer::seconds(const std::function<void()>& work) {
  if (flush_.bytes() > 0) check(cudaMemsetAsync(flush_.data(), 0, flush_.bytes(), nullptr));
  start_.record();
  work();
  stop_.record();
  return stop_.milliseconds_since(start_) * 1e-3;
}

}  // namespace harness
