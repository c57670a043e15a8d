// Shared by the engine's tests: device arrays, and the message of a launch that fails.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "device/cooperative_launch.h"
#include "device/cuda_error.h"
#include "device/dependent_launch.h"

// A device array that is freed with the scope.
template <class T>
class Device {
 public:
  explicit Device(size_t count) : count_(count) { check(cudaMalloc(&data_, count * sizeof(T))); }
  explicit Device(const std::vector<T>& values) : Device(values.size()) {
    check(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~Device() { cudaFree(data_); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  operator T*() const { return data_; }
  std::vector<T> values() const {
    std::vector<T> values(count_);
    check(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t count_;
};

struct Failure {
  cudaError_t code = cudaSuccess;
  std::string message;
};

// What `launches` throws; cudaSuccess if it does not.
template <class Launches>
Failure failure_in(const Launches& launches) {
  try {
    launches();
  } catch (const CudaError& error) {
    return {error.code(), error.what()};
  }
  return {};
}

// What launch(...) throws, launch_dependent(...), and launch_cooperative(...).
template <class... Args>
Failure failure_of(Args&&... args) {
  return failure_in([&] { launch(std::forward<Args>(args)...); });
}

template <class... Args>
Failure failure_of_dependent(Args&&... args) {
  return failure_in([&] { launch_dependent(std::forward<Args>(args)...); });
}

template <class... Args>
Failure failure_of_cooperative(Args&&... args) {
  return failure_in([&] { launch_cooperative(std::forward<Args>(args)...); });
}

inline void expect_contains(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << "no \"" << part << "\" in: " << message;
}

// Restores the schedule that was set before.
class WithSchedule {
 public:
  explicit WithSchedule(const simt::Schedule& schedule) : before_(simt::schedule()) { simt::set_schedule(schedule); }
  ~WithSchedule() { simt::set_schedule(before_); }
  WithSchedule(const WithSchedule&) = delete;
  WithSchedule& operator=(const WithSchedule&) = delete;

 private:
  simt::Schedule before_;
};
