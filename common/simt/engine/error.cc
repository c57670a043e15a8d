#include "simt/engine/error.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <utility>

#include "simt/engine/findings.h"
#include "simt/engine/launch.h"

namespace {

thread_local cudaError_t last_error = cudaSuccess, latest_failure = cudaSuccess;
thread_local std::map<cudaError_t, std::string> messages;
std::atomic<cudaError_t> kernel_error = cudaSuccess;  // see broken()

struct ErrorName {
  cudaError_t code;
  const char* name;
  const char* meaning;
};
#define SIMT_ERROR(code, meaning) \
  { code, #code, meaning }
constexpr ErrorName errors[] = {
    SIMT_ERROR(cudaSuccess, "no error"),
    SIMT_ERROR(cudaErrorInvalidValue, "invalid argument"),
    SIMT_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    SIMT_ERROR(cudaErrorInitializationError, "initialization error"),
    SIMT_ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    SIMT_ERROR(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    SIMT_ERROR(cudaErrorInvalidSymbol, "invalid device symbol"),
    SIMT_ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    SIMT_ERROR(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"),
    SIMT_ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    SIMT_ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    SIMT_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    SIMT_ERROR(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device"),
    SIMT_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    SIMT_ERROR(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    SIMT_ERROR(cudaErrorSymbolNotFound, "named symbol not found"),
    SIMT_ERROR(cudaErrorNotReady, "device not ready"),
    SIMT_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    SIMT_ERROR(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    SIMT_ERROR(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    SIMT_ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    SIMT_ERROR(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    SIMT_ERROR(cudaErrorAssert, "device-side assert triggered"),
    SIMT_ERROR(cudaErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped"),
    SIMT_ERROR(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region"),
    SIMT_ERROR(cudaErrorIllegalInstruction, "an illegal instruction was encountered"),
    SIMT_ERROR(cudaErrorMisalignedAddress, "misaligned address"),
    SIMT_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    SIMT_ERROR(cudaErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch"),
    SIMT_ERROR(cudaErrorNotPermitted, "operation not permitted"),
    SIMT_ERROR(cudaErrorNotSupported, "operation not supported"),
    SIMT_ERROR(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    SIMT_ERROR(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
    SIMT_ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    SIMT_ERROR(cudaErrorStreamCaptureImplicit,
               "operation would make the legacy stream depend on a capturing blocking stream"),
    SIMT_ERROR(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream"),
    SIMT_ERROR(cudaErrorUnsupportedLimit, "limit is not supported on this architecture"),
    SIMT_ERROR(cudaErrorInvalidClusterSize, "cluster misconfiguration"),
    SIMT_ERROR(cudaErrorUnknown, "unknown error"),
};
#undef SIMT_ERROR

const ErrorName* named(cudaError_t error) {
  const auto found = std::find_if(std::begin(errors), std::end(errors), [=](auto& e) { return e.code == error; });
  return found != std::end(errors) ? found : nullptr;
}

const char* meaning(cudaError_t error) {
  const ErrorName* name = named(error);
  return name != nullptr ? name->meaning : "unrecognized error code";
}

}  // namespace

cudaError_t simt::fail(cudaError_t code, std::string message) {
  last_error = latest_failure = code;
  failed();
  messages[code] = std::move(message);
  return code;
}

cudaError_t simt::last_failure() { return latest_failure; }

static thread_local int host_functions = 0;
simt::InHostFunction::InHostFunction() { ++host_functions; }
simt::InHostFunction::~InHostFunction() {
  --host_functions;
  discarding();  // what has failed there is no failure of the call that has had the function called
}

cudaError_t simt::broken() {
  if (host_functions > 0)
    return fail(cudaErrorNotPermitted,
                "a call of CUDA's by a function that a stream calls (cudaLaunchHostFunc, cudaStreamAddCallback)");
  return kernel_error;
}

void simt::breaks(cudaError_t error) { kernel_error = last_error = error; }

const char* cudaGetErrorName(cudaError_t error) {
  const ErrorName* name = named(error);
  return name != nullptr ? name->name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  const auto message = messages.find(error);
  return message != messages.end() ? message->second.c_str() : meaning(error);
}

cudaError_t cudaGetLastError() {
  simt::looked_at_last_error();
  const cudaError_t error = std::exchange(last_error, cudaSuccess);
  return kernel_error != cudaSuccess ? kernel_error.load() : error;
}

cudaError_t cudaPeekAtLastError() {
  simt::looked_at_last_error();
  return kernel_error != cudaSuccess ? kernel_error.load() : last_error;
}

namespace {
std::vector<std::string>& failures() {
  static auto& messages =
      *new std::vector<std::string>;  // outlives every static object that launches in its destructor
  return messages;
}
}  // namespace

void simt::note_failed_launch(const std::string& message) {
  first_launch_comes();
  failures().push_back(message);
}

const std::vector<std::string>& simt::failed_launches() { return failures(); }
