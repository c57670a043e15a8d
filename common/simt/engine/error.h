// CUDA's error codes, and what is known of the last failure. A message of the engine takes the place of the code's own.
#pragma once

#include <string>
#include <vector>

// The values are CUDA's.
enum cudaError {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInitializationError = 3,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidPitchValue = 12,
  cudaErrorInvalidSymbol = 13,
  cudaErrorInvalidMemcpyDirection = 21,
  cudaErrorInsufficientDriver = 35,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorIllegalState = 401,
  cudaErrorSymbolNotFound = 500,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchOutOfResources = 701,
  cudaErrorLaunchTimeout = 702,
  cudaErrorPeerAccessAlreadyEnabled = 704,
  cudaErrorPeerAccessNotEnabled = 705,
  cudaErrorAssert = 710,
  cudaErrorHostMemoryAlreadyRegistered = 712,
  cudaErrorHostMemoryNotRegistered = 713,
  cudaErrorIllegalInstruction = 715,
  cudaErrorMisalignedAddress = 716,
  cudaErrorLaunchFailure = 719,
  cudaErrorCooperativeLaunchTooLarge = 720,
  cudaErrorNotPermitted = 800,
  cudaErrorNotSupported = 801,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorUnknown = 999,
};
using cudaError_t = cudaError;

const char* cudaGetErrorName(cudaError_t error);
// The whole message of the last failure with this code on this OS thread; what the code means if there was none.
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();  // the last failure, which is then forgotten
cudaError_t cudaPeekAtLastError();

namespace simt {

// Makes this the last error of the calling OS thread, with the message that cudaGetErrorString gives.
cudaError_t fail(cudaError_t code, std::string message);

// For programs from elsewhere, where after a mistake in a kernel every call fails, as on a GPU: that mistake, or
// cudaSuccess if there was none.
cudaError_t broken();
void breaks(cudaError_t error);

// The messages of their failed launches.
void note_failed_launch(const std::string& message);
const std::vector<std::string>& failed_launches();

}  // namespace simt
