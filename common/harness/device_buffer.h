// Device memory and CUDA events that free themselves.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "device/launch.h"

namespace harness {

class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(size_t bytes) : bytes_(bytes) {
    if (bytes > 0) check(cudaMalloc(&data_, bytes));
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~DeviceBuffer() {
    if (data_) cudaFree(data_);
  }

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

  // Every byte becomes `value`; 0xff makes every fp16, bf16 and fp32 number NaN.
  void fill(int value) {
    if (bytes_ > 0) check(cudaMemset(data_, value, bytes_));
  }

 private:
  void swap(DeviceBuffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  void* data_ = nullptr;
  size_t bytes_ = 0;
};

class Event {
 public:
  Event() { check(cudaEventCreate(&event_)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { cudaEventDestroy(event_); }

  cudaEvent_t get() const { return event_; }
  void record(cudaStream_t stream = nullptr) { check(cudaEventRecord(event_, stream)); }

  // From `start` to this event, once both have happened.
  float milliseconds_since(const Event& start) const {
    check(cudaEventSynchronize(event_));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start.event_, event_));
    return milliseconds;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace harness
