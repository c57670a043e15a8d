#include "simt/cuda/runtime.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <unordered_set>

#include "simt/cuda/graphs.h"
#include "simt/cuda/handles.h"
#include "simt/cuda/host_checks.h"
#include "simt/cuda/host_memory.h"
#include "simt/cuda/launch_syntax.h"
#include "simt/engine/device_memory.h"
#include "simt/engine/device_variables.h"
#include "simt/engine/diagnosis.h"
#include "simt/engine/engine.h"
#include "simt/engine/findings.h"
#include "simt/engine/kernel_heap.h"
#include "simt/engine/launch.h"
#include "simt/engine/shared_memory.h"

namespace {

// Those of a kind that a program has made and not destroyed.
template <class Handle>
class Live {
 public:
  void made(Handle handle) {
    const std::lock_guard lock(mutex_);
    all_.insert(handle);
  }
  bool destroyed(Handle handle) {
    const std::lock_guard lock(mutex_);
    return all_.erase(handle) != 0;
  }
  bool has(Handle handle) {
    const std::lock_guard lock(mutex_);
    return all_.contains(handle);
  }
  void all_destroyed() {
    const std::lock_guard lock(mutex_);
    all_.clear();
  }

 private:
  std::mutex mutex_;
  std::unordered_set<Handle> all_;
};
Live<cudaStream_t>& streams() {
  static auto& all = *new Live<cudaStream_t>;
  return all;
}
Live<cudaEvent_t>& events() {
  static auto& all = *new Live<cudaEvent_t>;
  return all;
}

thread_local int current_device = 0;

constexpr int cuda_version = 13000;  // the toolkit whose names and meanings these are

}  // namespace

namespace simt {
static cudaError_t allocate(const char* call, void** pointer, std::size_t bytes, const void* caller) {
  if (const cudaError_t error = broken(); error != cudaSuccess) return error;
  if (pointer == nullptr) return fail(cudaErrorInvalidValue, std::string(call) + ": no place for the pointer");
  if (DeviceVariable::may_have(pointer)) host_touches_variable(caller, pointer, true);
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  const HostMemory info = host_memory();
  if (bytes <= info.free) *pointer = DeviceMemory::instance().allocate(bytes);
  if (*pointer != nullptr) {
    host_checks::allocated(*pointer, bytes, false);
    return cudaSuccess;
  }
  return fail(cudaErrorMemoryAllocation, std::string(call) + ": " + std::to_string(bytes) + " bytes asked for, " +
                                             std::to_string(info.free) + " of " + std::to_string(info.total) +
                                             " are free");
}

static cudaError_t free(const char* call, void* pointer) {
  host_checks::freeing(pointer);
  const bool of_a_kernel = KernelHeap::instance().has(reinterpret_cast<std::uintptr_t>(pointer));
  const std::string wrong = of_a_kernel ? KernelHeap::for_kernels_alone : DeviceMemory::instance().free(pointer);
  if (wrong.empty()) return cudaSuccess;
  return fail(cudaErrorInvalidValue, std::string(call) + ": " + address_text(pointer) + " is " + wrong);
}
}  // namespace simt

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  if (const cudaError_t error = simt::unsafe_in_capture("cudaMalloc"); error != cudaSuccess) return error;
  return simt::allocate("cudaMalloc", pointer, bytes, __builtin_return_address(0));
}

cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t stream) {
  if (const cudaError_t error = simt::comes_into_stream("cudaMallocAsync", stream); error != cudaSuccess) return error;
  const cudaError_t error = simt::allocate("cudaMallocAsync", pointer, bytes, __builtin_return_address(0));
  // Captured, it is there from now on, whichever stream the graph runs in.
  if (error == cudaSuccess && bytes > 0 && !simt::is_captured(stream))
    simt::host_checks::allocated_in(stream, *pointer, bytes);
  return error;
}

cudaError_t cudaFree(void* pointer) {
  if (const cudaError_t error = simt::broken(); error != cudaSuccess) return error;
  if (pointer == nullptr) return cudaSuccess;
  if (const cudaError_t error = simt::unsafe_in_capture("cudaFree"); error != cudaSuccess) return error;
  simt::host_checks::waited(nullptr, true);
  return simt::free("cudaFree", pointer);
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  if (const cudaError_t error = simt::broken(); error != cudaSuccess) return error;
  if (const cudaError_t error = simt::comes_into_stream("cudaFreeAsync", stream); error != cudaSuccess) return error;
  // A graph uses the memory each time that it runs.
  if (simt::is_captured(stream)) {
    simt::host_checks::freed_by_a_graph(pointer);
    return simt::capture(stream, [](cudaStream_t) { return cudaSuccess; });
  }
  if (pointer == nullptr) return cudaSuccess;
  simt::host_checks::freeing_in(stream, pointer);
  return simt::free("cudaFreeAsync", pointer);
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const simt::HostMemory info = simt::host_memory();
  *free = info.free;
  *total = info.total;
  return cudaSuccess;
}

cudaError_t simt::check_stream(const char* call, cudaStream_t stream) {
  if (stream == nullptr || streams().has(stream)) return cudaSuccess;
  return fail(cudaErrorInvalidResourceHandle,
              std::string(call) + ": the stream has been destroyed, or was never created");
}

cudaError_t simt::check_event(const char* call, cudaEvent_t event) {
  if (event != nullptr && events().has(event)) return cudaSuccess;
  return fail(cudaErrorInvalidResourceHandle, std::string(call) + (event == nullptr ? ": a null event"
                                                                                    : ": the event has been destroyed, "
                                                                                      "or was never created"));
}

void simt::nothing_lives_on() {
  DeviceMemory& memory = DeviceMemory::instance();
  for (const DeviceMemory::Block& block : memory.live()) {
    if (KernelHeap::instance().has(block.start)) continue;
    auto* const pointer = reinterpret_cast<void*>(block.start);
    host_checks::freeing(pointer);
    memory.free(pointer, true);
  }
  streams().all_destroyed();
  events().all_destroyed();
}

cudaStream_t simt::make_stream(bool blocking) {
  const cudaStream_t stream = new SimtStream{blocking};
  streams().made(stream);
  host_checks::made_stream(stream, blocking);
  return stream;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  *stream = simt::make_stream((flags & cudaStreamNonBlocking) == 0);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (simt::worker != nullptr && simt::worker->in_kernel()) return cudaSuccess;  // of a kernel's own
  if (streams().destroyed(stream)) return cudaSuccess;
  return simt::fail(cudaErrorInvalidResourceHandle,
                    std::string("cudaStreamDestroy: ") +
                        (stream == nullptr ? "of the default stream" : "the stream has been destroyed already"));
}

static cudaError_t wait_for(const char* call, cudaStream_t stream) {
  if (const cudaError_t error = simt::check_stream(call, stream); error != cudaSuccess) return error;
  if (const cudaError_t error = simt::waits_in_capture(call, stream); error != cudaSuccess) return error;
  simt::host_checks::waited(stream, false);
  return simt::broken();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return wait_for("cudaStreamSynchronize", stream); }

cudaError_t cudaStreamQuery(cudaStream_t stream) { return wait_for("cudaStreamQuery", stream); }

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = new SimtEvent;
  (*event)->timed = (flags & cudaEventDisableTiming) == 0;
  events().made(*event);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned flags) { return cudaEventCreateWithFlags(event, flags); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const cudaError_t error = simt::check_event("cudaEventDestroy", event);
  events().destroyed(event);
  return error;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const cudaError_t error = simt::broken(); error != cudaSuccess) return error;
  if (const cudaError_t error = simt::check_event("cudaEventRecord", event); error != cudaSuccess) return error;
  if (const cudaError_t error = simt::check_stream("cudaEventRecord", stream); error != cudaSuccess) return error;
  if (const cudaError_t error = simt::comes_into_capture("cudaEventRecord", stream); error != cudaSuccess) return error;
  simt::recorded_in_capture(event, stream);
  event->time = std::chrono::steady_clock::now();
  event->recorded = !simt::is_captured(stream);  // there it orders the nodes of a graph
  event->stream = stream;
  if (event->recorded) simt::host_checks::recorded(event, stream);
  return cudaSuccess;
}

static cudaError_t wait_for(const char* call, cudaEvent_t event) {
  if (const cudaError_t error = simt::check_event(call, event); error != cudaSuccess) return error;
  if (const cudaError_t error = simt::waits_in_capture(call, event); error != cudaSuccess) return error;
  simt::host_checks::waited_for_event(event);
  return simt::broken();
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) { return wait_for("cudaEventSynchronize", event); }

cudaError_t cudaEventQuery(cudaEvent_t event) { return wait_for("cudaEventQuery", event); }

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) {
  if (const cudaError_t error = simt::broken(); error != cudaSuccess) return error;
  for (const cudaEvent_t event : {start, stop}) {
    if (const cudaError_t error = simt::check_event("cudaEventElapsedTime", event); error != cudaSuccess) return error;
    if (!event->recorded || !event->timed)
      return simt::fail(cudaErrorInvalidResourceHandle,
                        std::string("cudaEventElapsedTime: an event that ") +
                            (event->timed ? "was never recorded" : "has no time (cudaEventDisableTiming)"));
  }
  if (!simt::host_checks::has_ended(start, /*itself=*/false) || !simt::host_checks::has_ended(stop, /*itself=*/true))
    return simt::fail(cudaErrorNotReady,
                      "cudaEventElapsedTime: the host has not waited for the event (cudaEventSynchronize()), and on a "
                      "GPU it may not have come yet: there is no time");
  *milliseconds = std::chrono::duration<float, std::milli>(stop->time - start->time).count();
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  static const int devices = [] {
    const char* asked = std::getenv("SIMT_DEVICES");
    const int number = asked != nullptr ? std::atoi(asked) : 1;
    if (number >= 1 && number <= 16) return number;
    std::fprintf(stderr, "SIMT_DEVICES=%s: must be 1 to 16\n", asked);
    std::exit(2);
  }();
  *count = devices;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}

namespace {

cudaError_t check_device(int device) {
  int count;
  cudaGetDeviceCount(&count);
  if (device >= 0 && device < count) return cudaSuccess;
  return simt::fail(cudaErrorInvalidDevice, "device " + std::to_string(device) + ": there is only device 0" +
                                                (count > 1 ? " to " + std::to_string(count - 1) : ""));
}

}  // namespace

cudaError_t cudaSetDevice(int device) {
  if (const cudaError_t error = check_device(device); error != cudaSuccess) return error;
  current_device = device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (const cudaError_t error = check_device(device); error != cudaSuccess) return error;
  cudaDeviceProp p = {};
  std::snprintf(p.name, sizeof p.name, "SIMT engine (CPU)");
  p.totalGlobalMem = simt::host_memory().total;
  p.sharedMemPerBlock = 48 * 1024;
  p.sharedMemPerBlockOptin = simt::max_shared();
  p.sharedMemPerMultiprocessor = 228 * 1024;
  p.reservedSharedMemPerBlock = 1024;
  p.regsPerBlock = p.regsPerMultiprocessor = 65536;
  p.warpSize = 32;
  p.maxThreadsPerBlock = 1024;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 0x7fffffff;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.major = simt::capability() / 10;
  p.minor = simt::capability() % 10;
  p.multiProcessorCount = simt::schedule().threads;
  p.maxThreadsPerMultiProcessor = 2048;  // as blocks_per_multiprocessor() has it
  p.maxBlocksPerMultiProcessor = 32;
  p.memoryBusWidth = 64;
  p.clockRate = 1000 * 1000;  // clock64() counts nanoseconds
  p.pciBusID = device + 1;
  p.totalConstMem = 64 * 1024;
  p.clusterLaunch = 1;
  p.cooperativeLaunch = p.managedMemory = p.concurrentManagedAccess = p.unifiedAddressing = p.canMapHostMemory = 1;
  p.concurrentKernels = p.deviceOverlap = 1;
  p.asyncEngineCount = 3;
  p.hostNativeAtomicSupported = 1;
  p.directManagedMemAccessFromHost = p.memoryPoolsSupported = 1;
  p.streamPrioritiesSupported = p.globalL1CacheSupported = p.localL1CacheSupported = 1;
  p.memPitch = 0x7fffffff;
  p.textureAlignment = p.surfaceAlignment = 512;
  p.texturePitchAlignment = 32;
  p.hostRegisterSupported = p.canUseHostPointerForRegisteredMem = p.unifiedFunctionPointers = 1;
  p.singleToDoublePrecisionPerfRatio = 2;
  p.l2CacheSize = 1 << 20;  // on every machine, so that kernels count the same on all of them
  *properties = p;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp p;
  if (const cudaError_t error = cudaGetDeviceProperties(&p, device); error != cudaSuccess) return error;
  const std::pair<cudaDeviceAttr, int> values[] = {
      {cudaDevAttrMaxThreadsPerBlock, p.maxThreadsPerBlock},
      {cudaDevAttrMaxSharedMemoryPerBlock, static_cast<int>(p.sharedMemPerBlock)},
      {cudaDevAttrWarpSize, p.warpSize},
      {cudaDevAttrClockRate, p.clockRate},
      {cudaDevAttrMemoryClockRate, p.memoryClockRate},
      {cudaDevAttrIntegrated, p.integrated},
      {cudaDevAttrComputeMode, p.computeMode},
      {cudaDevAttrMultiProcessorCount, p.multiProcessorCount},
      {cudaDevAttrGlobalMemoryBusWidth, p.memoryBusWidth},
      {cudaDevAttrL2CacheSize, p.l2CacheSize},
      {cudaDevAttrMaxThreadsPerMultiProcessor, p.maxThreadsPerMultiProcessor},
      {cudaDevAttrComputeCapabilityMajor, p.major},
      {cudaDevAttrComputeCapabilityMinor, p.minor},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, static_cast<int>(p.sharedMemPerMultiprocessor)},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, static_cast<int>(p.sharedMemPerBlockOptin)},
      {cudaDevAttrMaxBlockDimX, p.maxThreadsDim[0]},
      {cudaDevAttrMaxBlockDimY, p.maxThreadsDim[1]},
      {cudaDevAttrMaxBlockDimZ, p.maxThreadsDim[2]},
      {cudaDevAttrMaxGridDimX, p.maxGridSize[0]},
      {cudaDevAttrMaxGridDimY, p.maxGridSize[1]},
      {cudaDevAttrMaxGridDimZ, p.maxGridSize[2]},
      {cudaDevAttrTotalConstantMemory, static_cast<int>(p.totalConstMem)},
      {cudaDevAttrMaxRegistersPerBlock, p.regsPerBlock},
      {cudaDevAttrMaxRegistersPerMultiprocessor, p.regsPerMultiprocessor},
      {cudaDevAttrManagedMemory, p.managedMemory},
      {cudaDevAttrConcurrentManagedAccess, p.concurrentManagedAccess},
      {cudaDevAttrCooperativeLaunch, p.cooperativeLaunch},
      {cudaDevAttrMaxBlocksPerMultiprocessor, p.maxBlocksPerMultiProcessor},
      {cudaDevAttrGpuOverlap, p.deviceOverlap},
      {cudaDevAttrKernelExecTimeout, p.kernelExecTimeoutEnabled},
      {cudaDevAttrCanMapHostMemory, p.canMapHostMemory},
      {cudaDevAttrConcurrentKernels, p.concurrentKernels},
      {cudaDevAttrEccEnabled, p.ECCEnabled},
      {cudaDevAttrPciBusId, p.pciBusID},
      {cudaDevAttrPciDeviceId, p.pciDeviceID},
      {cudaDevAttrTccDriver, p.tccDriver},
      {cudaDevAttrAsyncEngineCount, p.asyncEngineCount},
      {cudaDevAttrUnifiedAddressing, p.unifiedAddressing},
      {cudaDevAttrStreamPrioritiesSupported, p.streamPrioritiesSupported},
      {cudaDevAttrGlobalL1CacheSupported, p.globalL1CacheSupported},
      {cudaDevAttrLocalL1CacheSupported, p.localL1CacheSupported},
      {cudaDevAttrIsMultiGpuBoard, p.isMultiGpuBoard},
      {cudaDevAttrHostNativeAtomicSupported, p.hostNativeAtomicSupported},
      {cudaDevAttrPageableMemoryAccess, p.pageableMemoryAccess},
      {cudaDevAttrComputePreemptionSupported, p.computePreemptionSupported},
      {cudaDevAttrPageableMemoryAccessUsesHostPageTables, p.pageableMemoryAccessUsesHostPageTables},
      {cudaDevAttrDirectManagedMemAccessFromHost, p.directManagedMemAccessFromHost},
      {cudaDevAttrMaxPersistingL2CacheSize, p.persistingL2CacheMaxSize},
      {cudaDevAttrMaxAccessPolicyWindowSize, p.accessPolicyMaxWindowSize},
      {cudaDevAttrMemoryPoolsSupported, p.memoryPoolsSupported},
      {cudaDevAttrMaxPitch, static_cast<int>(p.memPitch)},
      {cudaDevAttrTextureAlignment, static_cast<int>(p.textureAlignment)},
      {cudaDevAttrTexturePitchAlignment, static_cast<int>(p.texturePitchAlignment)},
      {cudaDevAttrSurfaceAlignment, static_cast<int>(p.surfaceAlignment)},
      {cudaDevAttrPciDomainId, p.pciDomainID},
      {cudaDevAttrMultiGpuBoardGroupID, p.multiGpuBoardGroupID},
      {cudaDevAttrSingleToDoublePrecisionPerfRatio, p.singleToDoublePrecisionPerfRatio},
      {cudaDevAttrCanUseHostPointerForRegisteredMem, p.canUseHostPointerForRegisteredMem},
      {cudaDevAttrHostRegisterSupported, p.hostRegisterSupported},
      {cudaDevAttrReservedSharedMemoryPerBlock, static_cast<int>(p.reservedSharedMemPerBlock)},
      {cudaDevAttrClusterLaunch, p.clusterLaunch},
  };
  for (const auto& [known, its_value] : values) {
    if (known != attribute) continue;
    *value = its_value;
    return cudaSuccess;
  }
  return simt::fail(cudaErrorInvalidValue, "device attribute " + std::to_string(attribute) + " is not known here");
}

cudaError_t cudaDeviceSynchronize() {
  if (simt::worker != nullptr && simt::worker->in_kernel())
    simt::worker->fail(
        cudaErrorNotSupported, &simt::worker->current(), simt::line_of(__builtin_return_address(0)),
        "cudaDeviceSynchronize() inside a kernel, which CUDA has had no more since version 12: kernels that a "
        "kernel launches run after it");
  if (const cudaError_t error = simt::waits_in_capture("cudaDeviceSynchronize"); error != cudaSuccess) return error;
  simt::host_checks::waited(nullptr, true);
  return simt::broken();
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = cuda_version;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = cuda_version;
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed)
    simt::allow_non_portable_clusters(kernel, value != 0);
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value >= 0 && static_cast<std::size_t>(value) <= simt::max_shared()) {
    simt::opt_in(kernel, static_cast<std::size_t>(value));
    return cudaSuccess;
  }
  return simt::fail(cudaErrorInvalidValue, "kernel " + simt::kernel_name(kernel) + ": " + std::to_string(value) +
                                               " bytes of dynamic shared memory: a block can have " +
                                               std::to_string(simt::max_shared()));
}
