#include "device/limits.h"

#include "device/launch.h"

namespace {

int attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

struct KnownGpu {
  const char* name;
  int capability;
  size_t shared_memory;
};

#define GPU(short_name, name, capability, multiprocessors, shared_kb, clock, fp32, tensor, dram, l2) \
  {short_name, capability, size_t(shared_kb) * 1024},
constexpr KnownGpu known[] = {
#include "device/gpus.def"
};
#undef GPU

const KnownGpu* find(const std::string& name) {
  for (const KnownGpu& gpu : known)
    if (name == gpu.name) return &gpu;
  return nullptr;
}

}  // namespace

int compute_capability() {
  return 10 * attribute(cudaDevAttrComputeCapabilityMajor) + attribute(cudaDevAttrComputeCapabilityMinor);
}

bool is_known_gpu(const std::string& name) { return find(name) != nullptr; }

std::string known_gpus() {
  std::string names;
  for (const KnownGpu& gpu : known) names += (names.empty() ? "" : ", ") + std::string(gpu.name);
  return names;
}

void take_limits_of([[maybe_unused]] const std::string& name) {
#ifdef WORKBOOK_SIMT
  const KnownGpu& gpu = *find(name);
  simt::set_capability(gpu.capability);
  simt::set_max_shared(gpu.shared_memory);
#endif
}

int multiprocessors() { return attribute(cudaDevAttrMultiProcessorCount); }
size_t largest_shared_memory() { return size_t(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)); }
size_t l2_bytes() { return size_t(attribute(cudaDevAttrL2CacheSize)); }
