// The functions of host.h and launch_syntax.h.
#include "simt/cuda/host.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <string>

#include "simt/cuda/graphs.h"
#include "simt/cuda/handles.h"
#include "simt/cuda/host_checks.h"
#include "simt/engine/device_memory.h"
#include "simt/engine/device_variables.h"
#include "simt/engine/diagnosis.h"
#include "simt/engine/engine.h"
#include "simt/engine/findings.h"
#include "simt/engine/kernel_heap.h"
#include "simt/engine/modules.h"

namespace {

cudaError_t refused(const char* name, const char* what) {
  return simt::fail(cudaErrorNotSupported, std::string(name) + ": the engine has no " + what);
}

// Memory of the host that a program has from cudaMallocHost, or has registered.
class HostMemory {
 public:
  static HostMemory& instance() {
    static HostMemory& memory = *new HostMemory;
    return memory;
  }
  void add(const void* pointer, std::size_t bytes, bool pinned) {
    simt::host_checks::kernels_reach_host_now();
    const std::lock_guard lock(mutex_);
    const auto* begin = static_cast<const char*>(pointer);
    blocks_[begin] = {begin, bytes, pinned};
  }
  bool remove(const void* pointer) {
    const std::lock_guard lock(mutex_);
    return blocks_.erase(static_cast<const char*>(pointer)) != 0;
  }
  simt::host_checks::HostBlock at(const void* pointer) const {
    const std::lock_guard lock(mutex_);
    const auto* p = static_cast<const char*>(pointer);
    const auto after = blocks_.upper_bound(p);
    if (after == blocks_.begin()) return {};
    const simt::host_checks::HostBlock& block = std::prev(after)->second;
    return p < block.begin + block.bytes ? block : simt::host_checks::HostBlock();
  }
  bool contains(const void* pointer) const { return at(pointer).begin != nullptr; }

 private:
  mutable std::mutex mutex_;
  std::map<const char*, simt::host_checks::HostBlock> blocks_;
};

}  // namespace

simt::host_checks::HostBlock simt::host_checks::registered(const void* pointer) {
  return HostMemory::instance().at(pointer);
}

// ---- launches

namespace {
constexpr std::size_t usual_shared = 48 * 1024;

std::map<const void*, std::size_t>& opted_in() {
  static auto& kernels = *new std::map<const void*, std::size_t>;
  return kernels;
}
std::mutex opting_in;

// Empty if the launch may have its shared memory, as on a GPU.
std::string too_much_shared(const void* kernel, std::size_t dynamic) {
  const simt::Module* const module = simt::module_at(kernel);
  const std::size_t fixed = module != nullptr ? module->static_shared_of(kernel) : 0;
  if (fixed > usual_shared)
    return std::to_string(fixed) + " bytes of static shared memory: nvcc takes at most 49152, more has to be dynamic";
  const std::lock_guard lock(opting_in);
  const auto allowed = opted_in().find(kernel);
  if (dynamic + fixed <= usual_shared || (allowed != opted_in().end() && dynamic <= allowed->second)) return "";
  return std::to_string(dynamic) + " bytes of dynamic shared memory" +
         (fixed != 0 ? " and " + std::to_string(fixed) + " of static" : "") +
         ": more than 49152 need cudaFuncSetAttribute(.., cudaFuncAttributeMaxDynamicSharedMemorySize, ..) first";
}
}  // namespace

void simt::opt_in(const void* kernel, std::size_t bytes) {
  const std::lock_guard lock(opting_in);
  opted_in()[kernel] = bytes;
}

namespace {
// As a program has set them; at first, as on a GPU. Only the heap's size has a meaning here.
std::size_t* limit_of(cudaLimit limit) {
  static std::size_t limits[] = {1024, 1 << 20, simt::KernelHeap::instance().size(), 2, 2048, 64, 0};
  return limit >= 0 && limit < std::size(limits) ? &limits[limit] : nullptr;
}
}  // namespace

namespace {
// Launched by kernels, in their order. As on a GPU since CUDA 12, no kernel can wait for them.
struct Child {
  simt::LaunchConfig config;
  const void* kernel;
  simt::SharedCall call;
};
std::mutex children_mutex;
std::deque<Child>& children() {
  static auto& all = *new std::deque<Child>;
  return all;
}

cudaError_t launch_one(const simt::LaunchConfig& c, const void* kernel, const simt::Body& body, bool cooperative) {
  using namespace simt;
  if (const cudaError_t before = broken(); before != cudaSuccess) return before;
  const cudaError_t error = [&] {
    if (const cudaError_t wrong = comes_into_stream("its launch", c.stream); wrong != cudaSuccess)
      return fail(wrong, "kernel " + kernel_name(kernel) + ": " + cudaGetErrorString(wrong));
    if (const std::string much = too_much_shared(kernel, c.shared_bytes); !much.empty())
      return fail(cudaErrorInvalidValue, "kernel " + kernel_name(kernel) + ": " + much);
    const auto one = host_checks::alone();
    host_checks::launching(c.stream, kernel);
    const host_checks::Lifted lifted;
    const cudaError_t failed = cooperative ? launch_cooperative(kernel, c.grid, c.block, c.shared_bytes, body)
                                           : launch(kernel, c.grid, c.block, c.shared_bytes, body, false, c.cluster);
    host_checks::launched();
    return failed;
  }();
  if (error == cudaSuccess) return error;
  // A launch that was refused leaves CUDA as it was. After a mistake in a kernel nothing works any more.
  const bool in_kernel = error >= cudaErrorIllegalAddress && error <= cudaErrorNotSupported &&
                         error != cudaErrorLaunchOutOfResources && error != cudaErrorCooperativeLaunchTooLarge;
  std::string message = cudaGetErrorString(error);
  if (const std::string at = in_kernel ? "" : host_checks::caller(); !at.empty())
    message += " (launched at " + at + ")";
  std::fprintf(stderr, "%s\n", message.c_str());
  note_failed_launch(message);
  if (in_kernel) breaks(error);
  return in_kernel ? cudaSuccess : error;
}

}  // namespace

cudaError_t simt::launch_as_cuda(const LaunchConfig& c, const void* kernel, const Body& body, bool cooperative) {
  const cudaError_t error = launch_one(c, kernel, body, cooperative);
  for (;;) {
    std::unique_lock lock(children_mutex);
    if (worker != nullptr || children().empty()) return error;
    const Child child = std::move(children().front());
    children().pop_front();
    lock.unlock();
    LaunchConfig after = child.config;
    after.stream = c.stream;  // whatever the child's own: it comes after what its parent did, and before what follows
    launch_one(
        after, child.kernel, [&] { child.call(); }, false);
  }
}

bool simt::comes_later(cudaStream_t stream) { return worker != nullptr || is_captured(stream); }

cudaError_t simt::launch_later(const LaunchConfig& config, const void* kernel, SharedCall call, bool cooperative) {
  if (worker == nullptr) {
    capture(config.stream, [=](cudaStream_t stream) {
      LaunchConfig own = config;
      own.stream = stream;
      return launch_as_cuda(
          own, kernel, [&] { call(); }, cooperative);
    });
    return cudaSuccess;
  }
  const std::lock_guard lock(children_mutex);
  children().push_back({config, kernel, call});
  if (const std::size_t most = *limit_of(cudaLimitDevRuntimePendingLaunchCount); children().size() == most + 1)
    found_mistake("kernel " + kernel_name(worker->launch().kernel) + ": kernels have launched more than " +
                  std::to_string(most) +
                  " that have not begun: a GPU leaves the rest out (cudaLimitDevRuntimePendingLaunchCount)");
  return cudaSuccess;
}

cudaError_t simt::launch_call(const LaunchConfig& config, const void* kernel, SharedCall call, bool cooperative) {
  if (comes_later(config.stream)) return launch_later(config, kernel, call, cooperative);
  return launch_as_cuda(
      config, kernel, [&] { call(); }, cooperative);
}

namespace {

auto& kernels_of_addresses() {
  static auto& all = *new std::map<const void*, simt::ArgumentsOf>;
  return all;
}

}  // namespace

simt::KernelOfAddress::KernelOfAddress(const void* address, ArgumentsOf arguments) {
  kernels_of_addresses()[address] = arguments;
}

simt::ArgumentsOf simt::KernelOfAddress::find(const void* address) {
  const auto found = kernels_of_addresses().find(address);
  return found != kernels_of_addresses().end() ? found->second : nullptr;
}

cudaError_t simt::launch_address(const LaunchConfig& config, const void* kernel, void** arguments, bool cooperative) {
  const ArgumentsOf arguments_of = KernelOfAddress::find(kernel);
  if (arguments_of == nullptr)
    return fail(cudaErrorInvalidDeviceFunction,
                "cudaLaunchKernel: the pointer is no kernel of a file that launches by "
                "pointers");
  return launch_call(config, kernel, arguments_of(arguments), cooperative);
}

void simt::launch_by_syntax(const LaunchConfig& c, const void* kernel, const Body& body) {
  launch_as_cuda(c, kernel, body);
}

cudaError_t simt::read_attributes(const cudaLaunchConfig_t& config, const void* kernel, bool* cooperative,
                                  dim3* cluster) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const cudaLaunchAttribute& each = config.attrs[i];
    if (each.id == cudaLaunchAttributeCooperative) *cooperative = each.val.cooperative != 0;
    if (each.id == cudaLaunchAttributeClusterDimension)
      *cluster = {each.val.clusterDim.x, each.val.clusterDim.y, each.val.clusterDim.z};
  }
  if (*cooperative && cluster->x * cluster->y * cluster->z != 1)
    return refused(("kernel " + kernel_name(kernel)).c_str(), "cooperative launches of clusters");
  return cudaSuccess;
}

cudaError_t simt::function_attributes(cudaFuncAttributes* attributes, const void* kernel) {
  *attributes = {};
  const Module* module = module_at(kernel);
  if (module == nullptr) return fail(cudaErrorInvalidDeviceFunction, "cudaFuncGetAttributes: not a kernel");
  attributes->sharedSizeBytes = module->static_shared_of(kernel);
  attributes->maxThreadsPerBlock = 1024;
  attributes->ptxVersion = attributes->binaryVersion = 90;
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(48 * 1024 - attributes->sharedSizeBytes);
  attributes->preferredShmemCarveout = cudaSharedmemCarveoutDefault;
  return cudaSuccess;
}

cudaError_t simt::occupancy(int* blocks, const void* kernel, int threads, std::size_t shared_bytes) {
  cudaFuncAttributes attributes;
  if (const cudaError_t error = function_attributes(&attributes, kernel); error != cudaSuccess) return error;
  if (threads < 1)
    return fail(cudaErrorInvalidValue, "occupancy of a block of " + std::to_string(threads) + " threads");
  const std::size_t shared = shared_bytes + attributes.sharedSizeBytes;
  *blocks = threads > 1024 || shared > max_shared()
                ? 0
                : blocks_per_multiprocessor(static_cast<std::size_t>(threads), shared);
  return cudaSuccess;
}

cudaError_t simt::occupancy_of_clusters(int* clusters, const void* kernel, const cudaLaunchConfig_t* config) {
  int blocks = 0;
  const dim3 block = config->blockDim;
  const auto threads = static_cast<int>(block.x * block.y * block.z);
  if (const cudaError_t error = occupancy(&blocks, kernel, threads, config->dynamicSmemBytes); error != cudaSuccess)
    return error;
  bool cooperative = false;
  dim3 cluster;
  if (const cudaError_t error = read_attributes(*config, kernel, &cooperative, &cluster); error != cudaSuccess)
    return error;
  cudaFuncAttributes attributes;
  function_attributes(&attributes, kernel);
  *clusters = blocks == 0 ? 0
                          : clusters_at_once(cluster.x * cluster.y * cluster.z, static_cast<std::size_t>(threads),
                                             config->dynamicSmemBytes + attributes.sharedSizeBytes);
  return cudaSuccess;
}

cudaError_t simt::best_block(int* grid, int* block, const void* kernel, std::size_t shared_bytes, int most_threads) {
  int best = 0;
  for (int threads = most_threads > 0 ? std::min(most_threads, 1024) : 1024; threads > 0; threads -= 32) {
    int blocks = 0;
    if (const cudaError_t error = occupancy(&blocks, kernel, threads, shared_bytes); error != cudaSuccess) return error;
    if (blocks * threads <= best) continue;
    best = blocks * threads;
    *block = threads;
    *grid = blocks * schedule().threads;
  }
  return cudaSuccess;
}

// ---- memory

cudaError_t cudaMallocManaged(void** pointer, std::size_t bytes, unsigned) {
  const cudaError_t error = cudaMalloc(pointer, bytes);
  if (error != cudaSuccess || *pointer == nullptr) return error;
  simt::host_checks::allocated(*pointer, bytes, true);
  std::memset(*pointer, 0, bytes);  // as the pages are that a system gives, which programs count on
  return error;
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) { return cudaMallocHost(pointer, bytes, 0); }

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes, unsigned) {
  if (const cudaError_t error = simt::unsafe_in_capture("cudaMallocHost"); error != cudaSuccess) return error;
  *pointer = simt::host_checks::allocate_pinned(bytes);
  if (*pointer == nullptr) *pointer = std::malloc(std::max<std::size_t>(bytes, 1));
  if (*pointer == nullptr)
    return simt::fail(cudaErrorMemoryAllocation, "cudaMallocHost: no memory for " + std::to_string(bytes) + " bytes");
  HostMemory::instance().add(*pointer, bytes, /*pinned=*/true);
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
  return cudaMallocHost(pointer, bytes, flags);
}

cudaError_t cudaFreeHost(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  if (const cudaError_t error = simt::unsafe_in_capture("cudaFreeHost"); error != cudaSuccess) return error;
  if (!HostMemory::instance().remove(pointer))
    return simt::fail(cudaErrorInvalidValue,
                      "cudaFreeHost: the pointer is not one of cudaMallocHost's, or freed already");
  simt::host_checks::waited(nullptr, true);
  if (!simt::host_checks::free_pinned(pointer)) std::free(pointer);
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void* pointer, std::size_t bytes, unsigned) {
  if (HostMemory::instance().contains(pointer))
    return simt::fail(cudaErrorHostMemoryAlreadyRegistered, "cudaHostRegister: the memory is registered already");
  HostMemory::instance().add(pointer, bytes, /*pinned=*/false);
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void* pointer) {
  simt::host_checks::unregistered(pointer);
  if (HostMemory::instance().remove(pointer)) return cudaSuccess;
  return simt::fail(cudaErrorHostMemoryNotRegistered, "cudaHostUnregister: the memory is not registered");
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  if (!HostMemory::instance().contains(host))
    return simt::fail(cudaErrorInvalidValue,
                      "cudaHostGetDevicePointer: the memory is neither of cudaHostAlloc() nor registered");
  *device = host;
  return cudaSuccess;
}

cudaError_t cudaMallocPitch(void** pointer, std::size_t* pitch, std::size_t width, std::size_t height) {
  constexpr std::size_t alignment = 512;
  *pitch = (width + alignment - 1) / alignment * alignment;
  return cudaMalloc(pointer, *pitch * height);
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* memory, cudaExtent extent) {
  *memory = {nullptr, 0, extent.width, extent.height};
  return cudaMallocPitch(&memory->ptr, &memory->pitch, extent.width, extent.height * extent.depth);
}

cudaError_t cudaMemPrefetchAsync(const void*, std::size_t, int, cudaStream_t) { return simt::broken(); }

cudaError_t cudaMemAdvise(const void*, std::size_t, cudaMemoryAdvise, int) { return simt::broken(); }

cudaError_t cudaMemPrefetchAsync(const void*, std::size_t, cudaMemLocation, unsigned, cudaStream_t) {
  return simt::broken();
}

cudaError_t cudaMemAdvise(const void*, std::size_t, cudaMemoryAdvise, cudaMemLocation) { return simt::broken(); }

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  *pool = nullptr;
  return simt::broken();
}
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) { return cudaDeviceGetDefaultMemPool(pool, device); }
cudaError_t cudaDeviceSetMemPool(int, cudaMemPool_t) { return simt::broken(); }
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return simt::broken(); }
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, std::size_t) { return simt::broken(); }
cudaError_t cudaMallocFromPoolAsync(void** pointer, std::size_t bytes, cudaMemPool_t, cudaStream_t stream) {
  return cudaMallocAsync(pointer, bytes, stream);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  const simt::DeviceVariable* const variable = simt::DeviceVariable::at(pointer);
  const bool device = simt::DeviceMemory::instance().contains(pointer) || variable != nullptr;
  const auto block = simt::DeviceMemory::instance().live_block_at(reinterpret_cast<std::uintptr_t>(pointer));
  const bool managed =
      variable != nullptr ? variable->kind() == simt::DeviceVariable::managed : block && block->managed;
  const bool host = HostMemory::instance().contains(pointer);
  void* p = const_cast<void*>(pointer);
  *attributes = {managed  ? cudaMemoryTypeManaged
                 : device ? cudaMemoryTypeDevice
                 : host   ? cudaMemoryTypeHost
                          : cudaMemoryTypeUnregistered,
                 0, device || host ? p : nullptr, device && !managed ? nullptr : p};
  return cudaSuccess;
}

// ---- streams and events

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t, void*, std::size_t, unsigned) { return simt::broken(); }

cudaError_t cudaStreamSetAttribute(cudaStream_t, cudaStreamAttrID, const cudaStreamAttrValue*) {
  return simt::broken();
}

cudaError_t cudaCtxResetPersistingL2Cache() { return simt::broken(); }

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (const cudaError_t error = simt::check_event("cudaStreamWaitEvent", event); error != cudaSuccess) return error;
  if (const cudaError_t error = simt::check_stream("cudaStreamWaitEvent", stream); error != cudaSuccess) return error;
  simt::host_checks::waits_for_event(stream, event);
  simt::waits_in_capture(stream, event);
  return simt::broken();
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned) {
  simt::host_checks::calls_host(stream);
  const cudaError_t status = simt::broken();
  const simt::InHostFunction in;
  callback(stream, status, data);
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  if (const cudaError_t error = simt::broken(); error != cudaSuccess) return error;
  if (const cudaError_t error = simt::comes_into_stream("cudaLaunchHostFunc", stream); error != cudaSuccess)
    return error;
  const auto work = [=](cudaStream_t own) {
    simt::host_checks::calls_host(own);
    const simt::InHostFunction in;
    return function(data), cudaSuccess;
  };
  return simt::is_captured(stream) ? simt::capture(stream, work) : work(stream);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}

// ---- devices

cudaError_t cudaDeviceReset() {
  simt::breaks(cudaSuccess);
  simt::host_checks::waited(nullptr, true);
  int devices = 0;  // which share one memory here
  cudaGetDeviceCount(&devices);
  if (devices > 1)
    simt::host_checks::all_freed();
  else if (simt::watching())
    simt::nothing_lives_on();
  return cudaSuccess;
}

cudaError_t cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
cudaError_t cudaThreadExit() { return cudaDeviceReset(); }
cudaError_t cudaInitDevice(int device, unsigned, unsigned) { return cudaSetDevice(device); }
cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }

cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  int count = 0;
  cudaGetDeviceCount(&count);
  if (device < 0 || peer < 0 || device >= count || peer >= count)
    return simt::fail(cudaErrorInvalidDevice,
                      "cudaDeviceCanAccessPeer: there are " + std::to_string(count) + " devices");
  *can = device != peer;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  int device = 0, can = 0;
  cudaGetDevice(&device);
  if (const cudaError_t error = cudaDeviceCanAccessPeer(&can, device, peer); error != cudaSuccess) return error;
  return can ? cudaSuccess
             : simt::fail(cudaErrorInvalidDevice, "cudaDeviceEnablePeerAccess: a device is no peer of its own");
}

cudaError_t cudaDeviceDisablePeerAccess(int) { return cudaSuccess; }

cudaError_t cudaDeviceSetLimit(cudaLimit limit, std::size_t value) {
  std::size_t* const its = limit_of(limit);
  if (its == nullptr) return simt::fail(cudaErrorUnsupportedLimit, "cudaDeviceSetLimit: there is no such limit");
  if (limit == cudaLimitMallocHeapSize && !simt::KernelHeap::instance().set_size(value))
    return simt::fail(cudaErrorInvalidValue,
                      "cudaDeviceSetLimit: a kernel has asked for memory already, and the heap's size stays as it is");
  *its = value;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(std::size_t* value, cudaLimit limit) {
  const std::size_t* const its = limit_of(limit);
  if (its == nullptr) return simt::fail(cudaErrorUnsupportedLimit, "cudaDeviceGetLimit: there is no such limit");
  *value = *its;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  cudaDeviceProp properties;
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, device); error != cudaSuccess) return error;
  if (text == nullptr || length < 13)
    return simt::fail(
        cudaErrorInvalidValue,
        "cudaDeviceGetPCIBusId: the text has 13 characters, and there is room for " + std::to_string(length));
  std::snprintf(text, static_cast<std::size_t>(length), "%04x:%02x:%02x.0", properties.pciDomainID, properties.pciBusID,
                properties.pciDeviceID);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
  int count = 0;
  cudaGetDeviceCount(&count);
  for (*device = 0; *device < count; ++*device) {
    char its[16];
    if (cudaDeviceGetPCIBusId(its, sizeof its, *device) == cudaSuccess && std::strcmp(its, text) == 0)
      return cudaSuccess;
  }
  return simt::fail(cudaErrorInvalidValue, std::string("cudaDeviceGetByPCIBusId: there is no ") + text);
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  *config = cudaFuncCachePreferNone;
  return cudaSuccess;
}
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  *config = cudaSharedMemBankSizeFourByte;
  return cudaSuccess;
}
cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }
