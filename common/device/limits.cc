#include "device/limits.h"

#include "device/launch.h"

namespace {

int attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

}  // namespace

int multiprocessors() { return attribute(cudaDevAttrMultiProcessorCount); }
size_t largest_shared_memory() { return size_t(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)); }
size_t l2_bytes() { return size_t(attribute(cudaDevAttrL2CacheSize)); }
