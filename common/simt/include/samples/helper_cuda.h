// For programs made after NVIDIA's samples, which include this file without bringing it: their checks of errors and how
// they choose a device. A file of this name among the user's own is found first.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "helper_string.h"

#ifndef MAX
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#endif
#ifndef MIN
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#endif

inline const char* _cudaGetErrorEnum(cudaError_t error) { return cudaGetErrorName(error); }

template <class Status>
void check(Status status, const char* call, const char* file, int line) {
  if (static_cast<int>(status) == 0) return;
  std::fprintf(stderr, "%s:%d: %s failed with code %d", file, line, call, static_cast<int>(status));
  if constexpr (std::is_same_v<Status, cudaError_t>) std::fprintf(stderr, " (%s)", cudaGetErrorString(status));
  std::fprintf(stderr, "\n");
  std::exit(EXIT_FAILURE);
}
#define checkCudaErrors(call) check((call), #call, __FILE__, __LINE__)

namespace simt::samples {
inline void last_error(const char* what, const char* file, int line, bool ends) {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, cudaGetErrorString(error));
  if (ends) std::exit(EXIT_FAILURE);
}
}  // namespace simt::samples
#define getLastCudaError(what) simt::samples::last_error(what, __FILE__, __LINE__, true)
#define printLastCudaError(what) simt::samples::last_error(what, __FILE__, __LINE__, false)

inline int ftoi(float value) { return static_cast<int>(value + (value < 0 ? -0.5f : 0.5f)); }

// Cores of a multiprocessor, by compute capability.
inline int _ConvertSMVer2Cores(int major, int minor) {
  if (major == 6 && minor == 0) return 64;
  if (major == 7 || (major == 8 && minor == 0)) return 64;
  return major == 3 ? 192 : 128;
}

inline const char* _ConvertSMVer2ArchName(int major, int minor) {
  if (major == 8 && minor == 9) return "Ada";
  const char* const names[] = {"Kepler", "", "Maxwell", "Pascal", "Volta", "Ampere", "Hopper", "Blackwell"};
  if (major == 7 && minor == 5) return "Turing";
  return major >= 3 && major <= 10 ? names[major - 3] : "Graphics Device";
}

inline int gpuDeviceInit(int device) {
  int count = 0;
  checkCudaErrors(cudaGetDeviceCount(&count));
  device = std::max(device, 0);
  if (device >= count) {
    std::fprintf(stderr, "there is no device %d\n", device);
    return -device;
  }
  checkCudaErrors(cudaSetDevice(device));
  return device;
}

inline int gpuGetMaxGflopsDeviceId() { return 0; }

inline int findCudaDevice(int argc, const char** argv) {
  const bool chosen = checkCmdLineFlag(argc, argv, "device");
  const int device = gpuDeviceInit(chosen ? getCmdLineArgumentInt(argc, argv, "device") : gpuGetMaxGflopsDeviceId());
  if (device < 0) std::exit(EXIT_FAILURE);
  cudaDeviceProp properties;
  checkCudaErrors(cudaGetDeviceProperties(&properties, device));
  std::printf("Device %d: \"%s\", compute capability %d.%d\n", device, properties.name, properties.major,
              properties.minor);
  return device;
}

inline int findIntegratedGPU() { return -1; }

inline bool checkCudaCapabilities(int major, int minor) {
  cudaDeviceProp properties;
  int device = 0;
  checkCudaErrors(cudaGetDevice(&device));
  checkCudaErrors(cudaGetDeviceProperties(&properties, device));
  return properties.major > major || (properties.major == major && properties.minor >= minor);
}
