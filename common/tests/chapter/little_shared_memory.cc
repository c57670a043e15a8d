#include "tests/chapter/little_shared_memory.h"

#include <algorithm>
#include <cstdint>

#include "device/cuda.h"

#ifdef WORKBOOK_SIMT

namespace chapter_suite {
LittleSharedMemory::LittleSharedMemory() : before_(simt::max_shared()) { simt::set_max_shared(little_shared_memory); }
LittleSharedMemory::~LittleSharedMemory() { simt::set_max_shared(before_); }
}  // namespace chapter_suite

#else

// The linker's --wrap (common/tests/CMakeLists.txt) has the chapter call the second and the second call the first.
extern "C" cudaError_t __real_cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);

static size_t limit = SIZE_MAX;

extern "C" cudaError_t __wrap_cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  const cudaError_t error = __real_cudaDeviceGetAttribute(value, attribute, device);
  if (error == cudaSuccess && attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin)
    *value = int(std::min(size_t(*value), limit));
  return error;
}

namespace chapter_suite {
LittleSharedMemory::LittleSharedMemory() : before_(limit) { limit = little_shared_memory; }
LittleSharedMemory::~LittleSharedMemory() { limit = before_; }
}  // namespace chapter_suite

#endif
