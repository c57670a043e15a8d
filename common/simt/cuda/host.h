// The CUDA runtime's host functions that no kernel's file uses, for programs from elsewhere (and device/streams.h).
// What runtime.h says holds here: every call has finished when it returns. Textures and arrays are missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "simt/cuda/half.h"
#include "simt/cuda/launch_syntax.h"
#include "simt/cuda/runtime.h"
#include "simt/engine/types.h"

// ---- memory

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes, unsigned flags);
template <class T>
cudaError_t cudaMallocManaged(T** pointer, std::size_t bytes, unsigned flags = cudaMemAttachGlobal) {
  return cudaMallocManaged(reinterpret_cast<void**>(pointer), bytes, flags);
}
template <class T>
cudaError_t cudaMallocHost(T** pointer, std::size_t bytes, unsigned flags = cudaHostAllocDefault) {
  return cudaMallocHost(reinterpret_cast<void**>(pointer), bytes, flags);
}
template <class T>
cudaError_t cudaHostAlloc(T** pointer, std::size_t bytes, unsigned flags) {
  return cudaHostAlloc(reinterpret_cast<void**>(pointer), bytes, flags);
}
template <class T>
cudaError_t cudaHostGetDevicePointer(T** device, void* host, unsigned flags) {
  return cudaHostGetDevicePointer(reinterpret_cast<void**>(device), host, flags);
}
template <class T>
cudaError_t cudaMallocAsync(T** pointer, std::size_t bytes, cudaStream_t stream) {
  return cudaMallocAsync(reinterpret_cast<void**>(pointer), bytes, stream);
}
template <class T>
cudaError_t cudaMallocPitch(T** pointer, std::size_t* pitch, std::size_t width, std::size_t height) {
  return cudaMallocPitch(reinterpret_cast<void**>(pointer), pitch, width, height);
}

// Boxes of bytes, of pitched memory: arrays are missing.
struct cudaExtent {
  std::size_t width, height, depth;
};
struct cudaPos {
  std::size_t x, y, z;
};
struct cudaPitchedPtr {
  void* ptr;
  std::size_t pitch, xsize, ysize;
};
struct cudaMemcpy3DParms {
  struct cudaArray* srcArray;
  cudaPos srcPos;
  cudaPitchedPtr srcPtr;
  struct cudaArray* dstArray;
  cudaPos dstPos;
  cudaPitchedPtr dstPtr;
  cudaExtent extent;
  cudaMemcpyKind kind;
};
inline cudaExtent make_cudaExtent(std::size_t width, std::size_t height, std::size_t depth) {
  return {width, height, depth};
}
inline cudaPos make_cudaPos(std::size_t x, std::size_t y, std::size_t z) { return {x, y, z}; }
inline cudaPitchedPtr make_cudaPitchedPtr(void* pointer, std::size_t pitch, std::size_t width, std::size_t height) {
  return {pointer, pitch, width, height};
}
cudaError_t cudaMalloc3D(cudaPitchedPtr* memory, cudaExtent extent);
cudaError_t cudaMemset3D(cudaPitchedPtr memory, int value, cudaExtent extent);
cudaError_t cudaMemset3DAsync(cudaPitchedPtr memory, int value, cudaExtent extent, cudaStream_t stream = nullptr);
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* copy);
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* copy, cudaStream_t stream = nullptr);

cudaError_t cudaMemPrefetchAsync(const void* pointer, std::size_t bytes, int device, cudaStream_t stream = nullptr);
enum cudaMemoryAdvise {
  cudaMemAdviseSetReadMostly = 1,
  cudaMemAdviseUnsetReadMostly = 2,
  cudaMemAdviseSetPreferredLocation = 3,
  cudaMemAdviseUnsetPreferredLocation = 4,
  cudaMemAdviseSetAccessedBy = 5,
  cudaMemAdviseUnsetAccessedBy = 6,
};
cudaError_t cudaMemAdvise(const void* pointer, std::size_t bytes, cudaMemoryAdvise advice, int device);
enum cudaMemLocationType {
  cudaMemLocationTypeInvalid = 0,
  cudaMemLocationTypeDevice = 1,
  cudaMemLocationTypeHost = 2,
  cudaMemLocationTypeHostNuma = 3,
  cudaMemLocationTypeHostNumaCurrent = 4,
};
struct cudaMemLocation {
  cudaMemLocationType type;
  int id;
};
cudaError_t cudaMemPrefetchAsync(const void* pointer, std::size_t bytes, cudaMemLocation location, unsigned flags,
                                 cudaStream_t stream = nullptr);
cudaError_t cudaMemAdvise(const void* pointer, std::size_t bytes, cudaMemoryAdvise advice, cudaMemLocation location);

// Pools of memory: there is one, and what is asked of it changes nothing.
using cudaMemPool_t = struct SimtMemPool*;
enum cudaMemPoolAttr {
  cudaMemPoolReuseFollowEventDependencies = 1,
  cudaMemPoolReuseAllowOpportunistic = 2,
  cudaMemPoolReuseAllowInternalDependencies = 3,
  cudaMemPoolAttrReleaseThreshold = 4,
};
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device);
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device);
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t bytes);
cudaError_t cudaMallocFromPoolAsync(void** pointer, std::size_t bytes, cudaMemPool_t pool, cudaStream_t stream);

// ---- device variables

namespace simt {
struct SymbolCopy {
  const void* symbol;
  std::size_t size, offset;
  const void* from;  // or:
  void* to;
  std::size_t bytes;
  cudaMemcpyKind kind;
};
cudaError_t copy_symbol(const char* call, const SymbolCopy& copy);
cudaError_t copy_symbol(const char* call, const SymbolCopy& copy, cudaStream_t stream);
cudaError_t symbol_address(const void* symbol, void** address, std::size_t* bytes);
inline const void* place(const volatile void* symbol) { return const_cast<const void*>(symbol); }
}  // namespace simt

template <class T>
cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* from, std::size_t bytes, std::size_t offset = 0,
                               cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
  return simt::copy_symbol("cudaMemcpyToSymbol",
                           {simt::place(&symbol), sizeof symbol, offset, from, nullptr, bytes, kind});
}
template <class T>
cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, std::size_t bytes, std::size_t offset = 0,
                                 cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
  return simt::copy_symbol("cudaMemcpyFromSymbol",
                           {simt::place(&symbol), sizeof symbol, offset, nullptr, to, bytes, kind});
}
template <class T>
cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* from, std::size_t bytes, std::size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream = nullptr) {
  return simt::copy_symbol("cudaMemcpyToSymbolAsync",
                           {simt::place(&symbol), sizeof symbol, offset, from, nullptr, bytes, kind}, stream);
}
template <class T>
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, std::size_t bytes, std::size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream = nullptr) {
  return simt::copy_symbol("cudaMemcpyFromSymbolAsync",
                           {simt::place(&symbol), sizeof symbol, offset, nullptr, to, bytes, kind}, stream);
}
template <class T>
cudaError_t cudaGetSymbolAddress(void** address, const T& symbol) {
  std::size_t bytes;
  return simt::symbol_address(simt::place(&symbol), address, &bytes);
}
template <class P, class T>
cudaError_t cudaGetSymbolAddress(P** address, const T& symbol) {
  return cudaGetSymbolAddress(reinterpret_cast<void**>(address), symbol);
}
template <class T>
cudaError_t cudaGetSymbolSize(std::size_t* bytes, const T& symbol) {
  void* address;
  return simt::symbol_address(simt::place(&symbol), &address, bytes);
}

// ---- streams and events

inline const cudaStream_t cudaStreamLegacy = nullptr;
inline const cudaStream_t cudaStreamPerThread = nullptr;

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, std::size_t bytes = 0,
                                     unsigned flags = cudaMemAttachGlobal);
template <class T>
cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, T* pointer, std::size_t bytes = 0,
                                     unsigned flags = cudaMemAttachGlobal) {
  return cudaStreamAttachMemAsync(stream, static_cast<void*>(pointer), bytes, flags);
}
// Advice to the cache, which the engine does not have.
enum cudaAccessProperty {
  cudaAccessPropertyNormal = 0,
  cudaAccessPropertyStreaming = 1,
  cudaAccessPropertyPersisting = 2,
};
struct cudaAccessPolicyWindow {
  void* base_ptr;
  std::size_t num_bytes;
  float hitRatio;
  cudaAccessProperty hitProp, missProp;
};
enum cudaStreamAttrID {
  cudaStreamAttributeAccessPolicyWindow = 1,
  cudaStreamAttributeSynchronizationPolicy = 3,
  cudaStreamAttributePriority = 8,
};
union cudaStreamAttrValue {
  cudaAccessPolicyWindow accessPolicyWindow;
  int priority;
};
cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID attribute, const cudaStreamAttrValue* value);
cudaError_t cudaCtxResetPersistingL2Cache();
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream = nullptr, unsigned flags = 0);

// ---- devices. SIMT_DEVICES says how many there are; all share the engine's memory.

constexpr int cudaSharedmemCarveoutDefault = -1;
constexpr int cudaSharedmemCarveoutMaxShared = 100;
constexpr int cudaSharedmemCarveoutMaxL1 = 0;

cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags);
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* properties);

// ---- kernels

struct cudaFuncAttributes {
  std::size_t sharedSizeBytes;  // static
  std::size_t constSizeBytes;
  std::size_t localSizeBytes;
  int maxThreadsPerBlock;
  int numRegs;  // 0: the engine does not know
  int ptxVersion;
  int binaryVersion;
  int cacheModeCA;
  int maxDynamicSharedSizeBytes;
  int preferredShmemCarveout;
};

namespace simt {
cudaError_t function_attributes(cudaFuncAttributes* attributes, const void* kernel);
// By threads and shared memory, as an H100 would; the engine knows nothing of registers.
cudaError_t occupancy(int* blocks, const void* kernel, int threads, std::size_t shared_bytes);
cudaError_t best_block(int* grid, int* block, const void* kernel, std::size_t shared_bytes, int most_threads);

template <class Kernel>
const void* address(Kernel* kernel) {
  return reinterpret_cast<const void*>(kernel);
}

// A kernel called with arguments that are given by their addresses.
cudaError_t launch_call(const LaunchConfig& config, const void* kernel, SharedCall call, bool cooperative);
// The same of one whose type is forgotten.
cudaError_t launch_address(const LaunchConfig& config, const void* kernel, void** arguments, bool cooperative);
}  // namespace simt

template <class Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, Kernel* kernel) {
  return simt::function_attributes(attributes, simt::address(kernel));
}
template <class Kernel>
cudaError_t cudaFuncSetCacheConfig(Kernel*, cudaFuncCache) {
  return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaFuncSetSharedMemConfig(Kernel*, cudaSharedMemConfig) {
  return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel* kernel, int threads,
                                                          std::size_t shared_bytes) {
  return simt::occupancy(blocks, simt::address(kernel), threads, shared_bytes);
}
template <class Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, Kernel* kernel, int threads,
                                                                   std::size_t shared_bytes, unsigned) {
  return simt::occupancy(blocks, simt::address(kernel), threads, shared_bytes);
}
template <class Kernel>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, Kernel* kernel, std::size_t shared_bytes = 0,
                                               int most_threads = 0) {
  return simt::best_block(grid, block, simt::address(kernel), shared_bytes, most_threads);
}

template <class Kernel, class BytesOf>
cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int* grid, int* block, Kernel* kernel, BytesOf bytes_of,
                                                           int most_threads = 0) {
  int multiprocessors = 1;
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0);
  *grid = *block = 0;
  for (int best = 0, threads = most_threads > 0 ? most_threads : 1024; threads > 0; threads -= 32) {
    int blocks = 0;
    const cudaError_t error = simt::occupancy(&blocks, simt::address(kernel), threads, bytes_of(threads));
    if (error != cudaSuccess) return error;
    if (blocks * threads <= best) continue;
    best = blocks * threads;
    *block = threads;
    *grid = blocks * multiprocessors;
  }
  return cudaSuccess;
}

template <class... P>
cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments,
                             std::size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
  return simt::launch_call({grid, block, shared_bytes, stream}, simt::address(kernel),
                           simt::call_with(kernel, arguments), false);
}
inline cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                    std::size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
  return simt::launch_address({grid, block, shared_bytes, stream}, kernel, arguments, false);
}
template <class... P>
cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments,
                                        std::size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
  return simt::launch_call({grid, block, shared_bytes, stream}, simt::address(kernel),
                           simt::call_with(kernel, arguments), true);
}
inline cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                               std::size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
  return simt::launch_address({grid, block, shared_bytes, stream}, kernel, arguments, true);
}

enum cudaLaunchAttributeID {
  cudaLaunchAttributeCooperative = 2,
  cudaLaunchAttributeClusterDimension = 4,
  cudaLaunchAttributeClusterSchedulingPolicyPreference = 5,
  cudaLaunchAttributeProgrammaticStreamSerialization = 6,
  cudaLaunchAttributePriority = 8,
};
union cudaLaunchAttributeValue {
  int cooperative;
  struct {
    unsigned x, y, z;
  } clusterDim;
  int programmaticStreamSerializationAllowed;
  int priority;
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};

namespace simt {
// Cooperative or not, and the cluster, from the attributes.
cudaError_t read_attributes(const cudaLaunchConfig_t& config, const void* kernel, bool* cooperative, dim3* cluster);
cudaError_t occupancy_of_clusters(int* clusters, const void* kernel, const cudaLaunchConfig_t* config);
}  // namespace simt

template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...), A&&... arguments) {
  bool cooperative = false;
  simt::LaunchConfig where(config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream);
  if (const cudaError_t error = simt::read_attributes(*config, simt::address(kernel), &cooperative, &where.cluster);
      error != cudaSuccess)
    return error;
  const auto call = [&](const std::decay_t<P>&... copies) {
    return simt::launch_now_or_later(
        where, simt::address(kernel), [kernel, copies...] { kernel(copies...); }, cooperative);
  };
  return call(std::forward<A>(arguments)...);
}

template <class Kernel>
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, Kernel* kernel, const cudaLaunchConfig_t* config) {
  return simt::occupancy_of_clusters(clusters, simt::address(kernel), config);
}

// ---- graphs (graphs.cc): work of a stream, or nodes of a program's own, that run later, one after the other

using cudaGraph_t = struct SimtGraph*;
using cudaGraphExec_t = struct SimtGraphExec*;
using cudaGraphNode_t = struct SimtGraphNode*;
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal = 0,
  cudaStreamCaptureModeThreadLocal = 1,
  cudaStreamCaptureModeRelaxed = 2,
};
enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone = 0,
  cudaStreamCaptureStatusActive = 1,
  cudaStreamCaptureStatusInvalidated = 2,
};
struct cudaKernelNodeParams {
  void* func;
  dim3 gridDim, blockDim;
  unsigned sharedMemBytes;
  void** kernelParams;
  void** extra;
};
struct cudaMemsetParams {
  void* dst;
  std::size_t pitch;
  unsigned value;
  unsigned elementSize;  // 1, 2 or 4 bytes
  std::size_t width, height;
};
struct cudaHostNodeParams {
  cudaHostFn_t fn;
  void* userData;
};
struct cudaGraphEdgeData {
  unsigned char from_port, to_port, type, reserved[5];
};
enum cudaGraphExecUpdateResult { cudaGraphExecUpdateSuccess = 0, cudaGraphExecUpdateError = 1 };
struct cudaGraphExecUpdateResultInfo {
  cudaGraphExecUpdateResult result;
  cudaGraphNode_t errorNode, errorFromNode;
};
constexpr unsigned cudaGraphInstantiateFlagAutoFreeOnLaunch = 1;
constexpr unsigned cudaGraphInstantiateFlagUpload = 2;
constexpr unsigned cudaGraphInstantiateFlagDeviceLaunch = 4;
constexpr unsigned cudaGraphInstantiateFlagUseNodePriority = 8;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
// As CUDA 12 has it, and as CUDA 13.
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id = nullptr, cudaGraph_t* graph = nullptr,
                                     const cudaGraphNode_t** dependencies = nullptr, std::size_t* count = nullptr);
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, std::size_t* count);
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode);
cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags);
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   std::size_t count, const cudaKernelNodeParams* parameters);
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                     std::size_t count, void* to, const void* from, std::size_t bytes,
                                     cudaMemcpyKind kind);
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   std::size_t count, const cudaMemcpy3DParms* parameters);
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   std::size_t count, const cudaMemsetParams* parameters);
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                 std::size_t count, const cudaHostNodeParams* parameters);
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                  std::size_t count);
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                       std::size_t count, cudaGraph_t child);
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     std::size_t count);
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     const cudaGraphEdgeData* data, std::size_t count);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count);
cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags = 0);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, cudaGraphNode_t* wrong, char* text,
                                 std::size_t bytes);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags = 0);
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* result);
inline cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphNode_t* wrong,
                                       cudaGraphExecUpdateResult* result) {  // as CUDA 11 has it
  cudaGraphExecUpdateResultInfo info = {cudaGraphExecUpdateError, nullptr, nullptr};
  const cudaError_t error = cudaGraphExecUpdate(executable, graph, &info);
  if (wrong != nullptr) *wrong = info.errorNode;
  if (result != nullptr) *result = info.result;
  return error;
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* parameters);
cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);
