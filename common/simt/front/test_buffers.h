// Device memory with something in it, for a kernel that ./workbook launches by itself
// (common/tools/user_files/generated_main.py).
#pragma once

#include <cstdio>
#include <cstdlib>
#include <random>
#include <type_traits>
#include <vector>

#include "simt/cuda.h"
#include "simt/cuda/host_checks.h"

namespace simt {

class TestBuffers {
 public:
  enum Fill { random, iota, zero, one };  // numbers of -1 to 1, or of 0 to 99 where the type is whole; 0, 1, 2, ..

  template <class T>
  T* buffer(const char* name, std::size_t count, Fill fill, bool is_input) {
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = value<T>(fill, i);
    T* memory = nullptr;
    if (cudaMalloc(reinterpret_cast<void**>(&memory), count * sizeof(T)) != cudaSuccess ||
        cudaMemcpy(memory, values.data(), count * sizeof(T), cudaMemcpyHostToDevice) != cudaSuccess) {
      std::fprintf(stderr, "--buffer %s: %s\n", name, cudaGetErrorString(cudaGetLastError()));
      std::exit(2);
    }
    allocated_.push_back(memory);
    if (!is_input) {
      shown_.push_back({name, memory, count, [](const void* values, std::size_t i) {
                          if constexpr (std::is_convertible_v<T, double>)
                            std::printf(" %g", double(static_cast<const T*>(values)[i]));
                          else
                            std::printf(" ..");
                        }});
    }
    return memory;
  }

  // main's status. `shows`: the first elements of what the kernel may have written.
  int end(bool shows) const {
    if (cudaDeviceSynchronize() != cudaSuccess || cudaGetLastError() != cudaSuccess) return 1;
    for (const Shown& each : shown_) {
      if (!shows) break;
      const host_checks::Lifted lifted;
      std::printf("%s:", each.name);
      for (std::size_t i = 0; i < each.count && i < 8; ++i) each.print(each.memory, i);
      std::printf(each.count > 8 ? " ..\n" : "\n");
    }
    for (void* const memory : allocated_) static_cast<void>(cudaFree(memory));
    return 0;
  }

 private:
  struct Shown {
    const char* name;
    const void* memory;
    std::size_t count;
    void (*print)(const void* values, std::size_t i);
  };

  template <class T>
  T value(Fill fill, std::size_t i) {
    const double number = fill == zero   ? 0
                          : fill == one  ? 1
                          : fill == iota ? double(i)
                                         : std::uniform_real_distribution<>(std::is_integral_v<T> ? 0 : -1,
                                                                            std::is_integral_v<T> ? 100 : 1)(random_);
    if constexpr (std::is_constructible_v<T, double>) {
      return T(number);
    } else {
      T value;  // a vector or another struct: its floats
      static_assert(sizeof(T) % sizeof(float) == 0, "the elements of --buffer are numbers, or structs of floats");
      for (std::size_t k = 0; k < sizeof(T) / sizeof(float); ++k) reinterpret_cast<float*>(&value)[k] = float(number);
      return value;
    }
  }

  std::mt19937_64 random_;
  std::vector<void*> allocated_;
  std::vector<Shown> shown_;
};

}  // namespace simt
