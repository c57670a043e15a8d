// Device memory for the tests' kernels.
#pragma once

#include <cstddef>
#include <vector>

#include "device/cuda.h"
#include "device/launch.h"

namespace device_tests {

// For the length of a test.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t size) : size_(size) { check(cudaMalloc(&data_, size * sizeof(T))); }
  explicit DeviceArray(const std::vector<T>& from) : DeviceArray(from.size()) {
    check(cudaMemcpy(data_, from.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  template <class U = T>
  U* as() const {
    return static_cast<U*>(data_);
  }

  std::vector<T> get() const {
    std::vector<T> to(size_);
    check(cudaMemcpy(to.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return to;
  }

 private:
  size_t size_;
  void* data_ = nullptr;
};

}  // namespace device_tests
