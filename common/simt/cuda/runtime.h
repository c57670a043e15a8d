// The CUDA runtime's host functions that the workbook uses, on the CPU. "Device memory" is memory of the engine
// (see memory.h), streams and events exist, and every call has finished when it returns.
#pragma once

#include <cstddef>

#include "simt/engine/error.h"

// Memory. Fresh allocations are filled with 0xFF: NaN in fp32, fp16 and bf16.
enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4,
};

using cudaStream_t = struct SimtStream*;
using cudaEvent_t = struct SimtEvent*;

cudaError_t cudaMalloc(void** pointer, std::size_t bytes);
template <class T>
cudaError_t cudaMalloc(T** pointer, std::size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(pointer), bytes);
}
cudaError_t cudaFree(void* pointer);
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void* to, int value, std::size_t bytes);
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream = nullptr);
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total);

// Streams and events.
#define cudaStreamDefault 0x00  // as in CUDA: also a null stream, which a constant is not
constexpr unsigned cudaStreamNonBlocking = 1;
constexpr unsigned cudaEventDefault = 0;
constexpr unsigned cudaEventBlockingSync = 1;
constexpr unsigned cudaEventDisableTiming = 2;

cudaError_t cudaStreamCreate(cudaStream_t* stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop);

struct CUuuid_st {
  char bytes[16];
};
using cudaUUID_t = CUuuid_st;
using CUuuid = CUuuid_st;

// The device: one, the engine. Its limits are an H100's; it has a multiprocessor per OS thread of the schedule.
struct cudaDeviceProp {
  char name[256];
  std::size_t totalGlobalMem;
  std::size_t sharedMemPerBlock;
  int regsPerBlock;
  int warpSize;
  int maxThreadsPerBlock;
  int maxThreadsDim[3];
  int maxGridSize[3];
  int major;
  int minor;
  int multiProcessorCount;
  int concurrentKernels;
  int ECCEnabled;
  int pciBusID;
  int pciDeviceID;
  int pciDomainID;
  int memoryBusWidth;
  int l2CacheSize;
  int maxThreadsPerMultiProcessor;
  std::size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor;
  std::size_t sharedMemPerBlockOptin;
  int maxBlocksPerMultiProcessor;
  std::size_t reservedSharedMemPerBlock;
  std::size_t totalConstMem;
  int clockRate;        // kHz; 0: not known
  int memoryClockRate;  // kHz; 0: not known
  int managedMemory;
  int concurrentManagedAccess;
  int pageableMemoryAccess;
  int unifiedAddressing;
  int canMapHostMemory;
  int cooperativeLaunch;
  int asyncEngineCount;
  int integrated;
  int kernelExecTimeoutEnabled;
  int computeMode;
  int deviceOverlap;
  int streamPrioritiesSupported;
  int pageableMemoryAccessUsesHostPageTables;
  int hostNativeAtomicSupported;
  int directManagedMemAccessFromHost;
  int computePreemptionSupported;
  int globalL1CacheSupported;
  int localL1CacheSupported;
  int memoryPoolsSupported;
  int persistingL2CacheMaxSize;
  int accessPolicyMaxWindowSize;
  int isMultiGpuBoard;
  int tccDriver;
  std::size_t memPitch;
  // 0 or as an H100 has them: nothing here depends on them.
  cudaUUID_t uuid;
  char luid[8];
  unsigned luidDeviceNodeMask;
  std::size_t textureAlignment, texturePitchAlignment, surfaceAlignment;
  int maxTexture1D, maxTexture1DMipmap, maxTexture1DLinear, maxTexture1DLayered[2];
  int maxTexture2D[2], maxTexture2DMipmap[2], maxTexture2DLinear[3], maxTexture2DGather[2], maxTexture2DLayered[3];
  int maxTexture3D[3], maxTexture3DAlt[3];
  int maxTextureCubemap, maxTextureCubemapLayered[2];
  int maxSurface1D, maxSurface1DLayered[2];
  int maxSurface2D[2], maxSurface2DLayered[3];
  int maxSurface3D[3];
  int maxSurfaceCubemap, maxSurfaceCubemapLayered[2];
  int multiGpuBoardGroupID;
  int singleToDoublePrecisionPerfRatio;
  int canUseHostPointerForRegisteredMem;
  int cooperativeMultiDeviceLaunch;
  int hostRegisterSupported, hostRegisterReadOnlySupported;
  int sparseCudaArraySupported, deferredMappingCudaArraySupported;
  int timelineSemaphoreInteropSupported;
  int gpuDirectRDMASupported, gpuDirectRDMAWritesOrdering;
  unsigned gpuDirectRDMAFlushWritesOptions;
  unsigned memoryPoolSupportedHandleTypes;
  int ipcEventSupported;
  int clusterLaunch;
  int unifiedFunctionPointers;
  int mpsEnabled;
  int deviceNumaConfig, deviceNumaId, hostNumaId, hostNumaMultinodeIpcSupported;
  unsigned gpuPciDeviceID, gpuPciSubsystemID;
};

enum cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock = 1,
  cudaDevAttrMaxSharedMemoryPerBlock = 8,
  cudaDevAttrWarpSize = 10,
  cudaDevAttrClockRate = 13,  // kHz; 0: not known
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrIntegrated = 18,
  cudaDevAttrComputeMode = 20,
  cudaDevAttrMemoryClockRate = 36,  // kHz; 0: not known
  cudaDevAttrGlobalMemoryBusWidth = 37,
  cudaDevAttrL2CacheSize = 38,
  cudaDevAttrMaxThreadsPerMultiProcessor = 39,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
  cudaDevAttrMaxBlockDimX = 2,
  cudaDevAttrMaxBlockDimY = 3,
  cudaDevAttrMaxBlockDimZ = 4,
  cudaDevAttrMaxGridDimX = 5,
  cudaDevAttrMaxGridDimY = 6,
  cudaDevAttrMaxGridDimZ = 7,
  cudaDevAttrTotalConstantMemory = 9,
  cudaDevAttrMaxRegistersPerBlock = 12,
  cudaDevAttrMaxRegistersPerMultiprocessor = 82,
  cudaDevAttrManagedMemory = 83,
  cudaDevAttrConcurrentManagedAccess = 89,
  cudaDevAttrCooperativeLaunch = 95,
  cudaDevAttrMaxBlocksPerMultiprocessor = 106,
  cudaDevAttrGpuOverlap = 15,
  cudaDevAttrKernelExecTimeout = 17,
  cudaDevAttrCanMapHostMemory = 19,
  cudaDevAttrConcurrentKernels = 31,
  cudaDevAttrEccEnabled = 32,
  cudaDevAttrPciBusId = 33,
  cudaDevAttrPciDeviceId = 34,
  cudaDevAttrTccDriver = 35,
  cudaDevAttrAsyncEngineCount = 40,
  cudaDevAttrUnifiedAddressing = 41,
  cudaDevAttrStreamPrioritiesSupported = 78,
  cudaDevAttrGlobalL1CacheSupported = 79,
  cudaDevAttrLocalL1CacheSupported = 80,
  cudaDevAttrIsMultiGpuBoard = 84,
  cudaDevAttrHostNativeAtomicSupported = 86,
  cudaDevAttrPageableMemoryAccess = 88,
  cudaDevAttrComputePreemptionSupported = 90,
  cudaDevAttrPageableMemoryAccessUsesHostPageTables = 100,
  cudaDevAttrDirectManagedMemAccessFromHost = 101,
  cudaDevAttrMaxPersistingL2CacheSize = 108,
  cudaDevAttrMaxAccessPolicyWindowSize = 109,
  cudaDevAttrMemoryPoolsSupported = 115,
  cudaDevAttrMaxPitch = 11,
  cudaDevAttrTextureAlignment = 14,
  cudaDevAttrTexturePitchAlignment = 51,
  cudaDevAttrSurfaceAlignment = 30,
  cudaDevAttrPciDomainId = 50,
  cudaDevAttrMultiGpuBoardGroupID = 85,
  cudaDevAttrSingleToDoublePrecisionPerfRatio = 87,
  cudaDevAttrCanUseHostPointerForRegisteredMem = 91,
  cudaDevAttrHostRegisterSupported = 99,
  cudaDevAttrReservedSharedMemoryPerBlock = 111,
  cudaDevAttrClusterLaunch = 120,
};

cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaDriverGetVersion(int* version);

enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9,
  cudaFuncAttributeNonPortableClusterSizeAllowed = 14,
};

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value);
template <class... Args>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Args...), cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
