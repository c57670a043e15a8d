// A device whose blocks may have less shared memory than this one's.
#pragma once

#include <cstddef>

namespace chapter_suite {

// What compute capability 8.6, 8.9 and 12.0 have (CUDA C++ Programming Guide, "Technical Specifications").
constexpr std::size_t little_shared_memory = 99 * 1024;

// As long as it lives, that is all there is to whoever asks for cudaDevAttrMaxSharedMemoryPerBlockOptin. The engine
// also refuses launches that ask for more.
class LittleSharedMemory {
 public:
  LittleSharedMemory();
  ~LittleSharedMemory();
  LittleSharedMemory(const LittleSharedMemory&) = delete;
  LittleSharedMemory& operator=(const LittleSharedMemory&) = delete;

 private:
  std::size_t before_;
};

}  // namespace chapter_suite
