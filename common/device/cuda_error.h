// What check() and launch() of device/launch.h throw, for host code that catches it.
#pragma once

#include <stdexcept>
#include <string>

#include "device/cuda.h"

// A CUDA call or launch that failed. what() says which, where, and what the runtime said.
class CudaError : public std::runtime_error {
 public:
  CudaError(cudaError_t code, const char* what) : std::runtime_error(what), code_(code) {}
  CudaError(cudaError_t code, const std::string& what) : std::runtime_error(what), code_(code) {}
  cudaError_t code() const { return code_; }

 private:
  cudaError_t code_;
};
