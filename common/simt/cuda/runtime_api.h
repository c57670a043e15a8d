// CUDA's host functions that C has too, with their types: all that a .c file sees. C++ has overloads and templates
// besides (runtime.h, host.h).
//
// Names that are macros are macros in CUDA. A function's symbol is the same in both languages, and not CUDA's own: a
// library with the engine may be in one process with NVIDIA's.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
#define SIMT_OR(value) = value
#else
#define SIMT_OR(value)
#endif
#define SIMT_C(name) __asm__("simt_" #name)

// The values are CUDA's.
enum cudaError {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInitializationError = 3,
  cudaErrorCudartUnloading = 4,
  cudaErrorProfilerDisabled = 5,
  cudaErrorProfilerNotInitialized = 6,
  cudaErrorProfilerAlreadyStarted = 7,
  cudaErrorProfilerAlreadyStopped = 8,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidPitchValue = 12,
  cudaErrorInvalidSymbol = 13,
  cudaErrorInvalidHostPointer = 16,
  cudaErrorInvalidDevicePointer = 17,
  cudaErrorInvalidTexture = 18,
  cudaErrorInvalidTextureBinding = 19,
  cudaErrorInvalidChannelDescriptor = 20,
  cudaErrorInvalidMemcpyDirection = 21,
  cudaErrorAddressOfConstant = 22,
  cudaErrorTextureFetchFailed = 23,
  cudaErrorTextureNotBound = 24,
  cudaErrorSynchronizationError = 25,
  cudaErrorInvalidFilterSetting = 26,
  cudaErrorInvalidNormSetting = 27,
  cudaErrorMixedDeviceExecution = 28,
  cudaErrorNotYetImplemented = 31,
  cudaErrorMemoryValueTooLarge = 32,
  cudaErrorStubLibrary = 34,
  cudaErrorInsufficientDriver = 35,
  cudaErrorCallRequiresNewerDriver = 36,
  cudaErrorInvalidSurface = 37,
  cudaErrorDuplicateVariableName = 43,
  cudaErrorDuplicateTextureName = 44,
  cudaErrorDuplicateSurfaceName = 45,
  cudaErrorDevicesUnavailable = 46,
  cudaErrorIncompatibleDriverContext = 49,
  cudaErrorMissingConfiguration = 52,
  cudaErrorPriorLaunchFailure = 53,
  cudaErrorLaunchMaxDepthExceeded = 65,
  cudaErrorLaunchFileScopedTex = 66,
  cudaErrorLaunchFileScopedSurf = 67,
  cudaErrorSyncDepthExceeded = 68,
  cudaErrorLaunchPendingCountExceeded = 69,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorDeviceNotLicensed = 102,
  cudaErrorSoftwareValidityNotEstablished = 103,
  cudaErrorStartupFailure = 127,
  cudaErrorInvalidKernelImage = 200,
  cudaErrorDeviceUninitialized = 201,
  cudaErrorMapBufferObjectFailed = 205,
  cudaErrorUnmapBufferObjectFailed = 206,
  cudaErrorArrayIsMapped = 207,
  cudaErrorAlreadyMapped = 208,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorAlreadyAcquired = 210,
  cudaErrorNotMapped = 211,
  cudaErrorNotMappedAsArray = 212,
  cudaErrorNotMappedAsPointer = 213,
  cudaErrorECCUncorrectable = 214,
  cudaErrorUnsupportedLimit = 215,
  cudaErrorDeviceAlreadyInUse = 216,
  cudaErrorPeerAccessUnsupported = 217,
  cudaErrorInvalidPtx = 218,
  cudaErrorInvalidGraphicsContext = 219,
  cudaErrorNvlinkUncorrectable = 220,
  cudaErrorJitCompilerNotFound = 221,
  cudaErrorUnsupportedPtxVersion = 222,
  cudaErrorJitCompilationDisabled = 223,
  cudaErrorUnsupportedExecAffinity = 224,
  cudaErrorUnsupportedDevSideSync = 225,
  cudaErrorContained = 226,
  cudaErrorInvalidSource = 300,
  cudaErrorFileNotFound = 301,
  cudaErrorSharedObjectSymbolNotFound = 302,
  cudaErrorSharedObjectInitFailed = 303,
  cudaErrorOperatingSystem = 304,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorIllegalState = 401,
  cudaErrorLossyQuery = 402,
  cudaErrorSymbolNotFound = 500,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchOutOfResources = 701,
  cudaErrorLaunchTimeout = 702,
  cudaErrorLaunchIncompatibleTexturing = 703,
  cudaErrorPeerAccessAlreadyEnabled = 704,
  cudaErrorPeerAccessNotEnabled = 705,
  cudaErrorSetOnActiveProcess = 708,
  cudaErrorContextIsDestroyed = 709,
  cudaErrorAssert = 710,
  cudaErrorTooManyPeers = 711,
  cudaErrorHostMemoryAlreadyRegistered = 712,
  cudaErrorHostMemoryNotRegistered = 713,
  cudaErrorHardwareStackError = 714,
  cudaErrorIllegalInstruction = 715,
  cudaErrorMisalignedAddress = 716,
  cudaErrorInvalidAddressSpace = 717,
  cudaErrorInvalidPc = 718,
  cudaErrorLaunchFailure = 719,
  cudaErrorCooperativeLaunchTooLarge = 720,
  cudaErrorTensorMemoryLeak = 721,
  cudaErrorNotPermitted = 800,
  cudaErrorNotSupported = 801,
  cudaErrorSystemNotReady = 802,
  cudaErrorSystemDriverMismatch = 803,
  cudaErrorCompatNotSupportedOnDevice = 804,
  cudaErrorMpsConnectionFailed = 805,
  cudaErrorMpsRpcFailure = 806,
  cudaErrorMpsServerNotReady = 807,
  cudaErrorMpsMaxClientsReached = 808,
  cudaErrorMpsMaxConnectionsReached = 809,
  cudaErrorMpsClientTerminated = 810,
  cudaErrorCdpNotSupported = 811,
  cudaErrorCdpVersionMismatch = 812,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorStreamCaptureMerge = 902,
  cudaErrorStreamCaptureUnmatched = 903,
  cudaErrorStreamCaptureUnjoined = 904,
  cudaErrorStreamCaptureIsolation = 905,
  cudaErrorStreamCaptureImplicit = 906,
  cudaErrorCapturedEvent = 907,
  cudaErrorStreamCaptureWrongThread = 908,
  cudaErrorTimeout = 909,
  cudaErrorGraphExecUpdateFailure = 910,
  cudaErrorExternalDevice = 911,
  cudaErrorInvalidClusterSize = 912,
  cudaErrorFunctionNotLoaded = 913,
  cudaErrorInvalidResourceType = 914,
  cudaErrorInvalidResourceConfiguration = 915,
  cudaErrorUnknown = 999,
  cudaErrorApiFailureBase = 10000,
};
typedef enum cudaError cudaError_t;

const char* cudaGetErrorName(cudaError_t error) SIMT_C(cudaGetErrorName);
// The whole message of the last failure with this code on this OS thread; what the code means if there was none.
const char* cudaGetErrorString(cudaError_t error) SIMT_C(cudaGetErrorString);
cudaError_t cudaGetLastError(void) SIMT_C(cudaGetLastError);  // the last failure, which is then forgotten
cudaError_t cudaPeekAtLastError(void) SIMT_C(cudaPeekAtLastError);

typedef struct SimtStream* cudaStream_t;
typedef struct SimtEvent* cudaEvent_t;

// Memory. Fresh allocations are filled with 0xFF: NaN in fp32, fp16 and bf16. Managed memory is device memory that the
// host may touch.
enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4,
};
enum cudaMemoryType {
  cudaMemoryTypeUnregistered = 0,
  cudaMemoryTypeHost = 1,
  cudaMemoryTypeDevice = 2,
  cudaMemoryTypeManaged = 3,
};
struct cudaPointerAttributes {
  enum cudaMemoryType type;
  int device;
  void* devicePointer;
  void* hostPointer;
};
#define cudaMemAttachGlobal 1
#define cudaMemAttachHost 2
#define cudaMemAttachSingle 4
#define cudaHostAllocDefault 0
#define cudaHostAllocPortable 1
#define cudaHostAllocMapped 2
#define cudaHostAllocWriteCombined 4
#define cudaHostRegisterDefault 0
#define cudaHostRegisterPortable 1
#define cudaHostRegisterMapped 2
#define cudaCpuDeviceId ((int)-1)
#define cudaInvalidDeviceId ((int)-2)

cudaError_t cudaMalloc(void** pointer, size_t bytes) SIMT_C(cudaMalloc);
cudaError_t cudaFree(void* pointer) SIMT_C(cudaFree);
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind) SIMT_C(cudaMemcpy);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream SIMT_OR(nullptr)) SIMT_C(cudaMemcpyAsync);
cudaError_t cudaMemset(void* to, int value, size_t bytes) SIMT_C(cudaMemset);
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream SIMT_OR(nullptr))
    SIMT_C(cudaMemsetAsync);
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) SIMT_C(cudaMemGetInfo);
cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned flags SIMT_OR(cudaMemAttachGlobal))
    SIMT_C(cudaMallocManaged);
cudaError_t cudaMallocHost(void** pointer, size_t bytes) SIMT_C(cudaMallocHost);
cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned flags) SIMT_C(cudaHostAlloc);
cudaError_t cudaFreeHost(void* pointer) SIMT_C(cudaFreeHost);
cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned flags) SIMT_C(cudaHostRegister);
cudaError_t cudaHostUnregister(void* pointer) SIMT_C(cudaHostUnregister);
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned flags) SIMT_C(cudaHostGetDevicePointer);
cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) SIMT_C(cudaMallocAsync);
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) SIMT_C(cudaFreeAsync);
cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) SIMT_C(cudaMallocPitch);
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind) SIMT_C(cudaMemcpy2D);
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream SIMT_OR(nullptr))
    SIMT_C(cudaMemcpy2DAsync);
cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) SIMT_C(cudaMemset2D);
cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream SIMT_OR(nullptr)) SIMT_C(cudaMemset2DAsync);
cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes)
    SIMT_C(cudaMemcpyPeer);
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                cudaStream_t stream SIMT_OR(nullptr)) SIMT_C(cudaMemcpyPeerAsync);
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* attributes, const void* pointer)
    SIMT_C(cudaPointerGetAttributes);

// Streams and events.
#define cudaStreamDefault 0x00  // as in CUDA: also a null stream, which a constant is not
#define cudaStreamNonBlocking 1
#define cudaEventDefault 0
#define cudaEventBlockingSync 1
#define cudaEventDisableTiming 2
#define cudaEventWaitDefault 0
#define cudaEventRecordDefault 0
#define CUDART_CB  // the convention of calls, on Windows

typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status, void* data);
typedef void (*cudaHostFn_t)(void* data);

cudaError_t cudaStreamCreate(cudaStream_t* stream) SIMT_C(cudaStreamCreate);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) SIMT_C(cudaStreamCreateWithFlags);
cudaError_t cudaStreamDestroy(cudaStream_t stream) SIMT_C(cudaStreamDestroy);
cudaError_t cudaStreamSynchronize(cudaStream_t stream) SIMT_C(cudaStreamSynchronize);
cudaError_t cudaEventCreate(cudaEvent_t* event) SIMT_C(cudaEventCreate);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) SIMT_C(cudaEventCreateWithFlags);
cudaError_t cudaEventDestroy(cudaEvent_t event) SIMT_C(cudaEventDestroy);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream SIMT_OR(nullptr)) SIMT_C(cudaEventRecord);
cudaError_t cudaEventSynchronize(cudaEvent_t event) SIMT_C(cudaEventSynchronize);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t stop) SIMT_C(cudaEventElapsedTime);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority)
    SIMT_C(cudaStreamCreateWithPriority);
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) SIMT_C(cudaDeviceGetStreamPriorityRange);
cudaError_t cudaStreamQuery(cudaStream_t stream) SIMT_C(cudaStreamQuery);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags SIMT_OR(0))
    SIMT_C(cudaStreamWaitEvent);
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned flags)
    SIMT_C(cudaStreamAddCallback);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) SIMT_C(cudaLaunchHostFunc);
cudaError_t cudaEventQuery(cudaEvent_t event) SIMT_C(cudaEventQuery);

typedef struct CUuuid_st {
  char bytes[16];
} CUuuid;
typedef CUuuid cudaUUID_t;

// The device: one, the engine. Its limits are an H100's; it has a multiprocessor per OS thread of the schedule.
struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem;
  size_t sharedMemPerBlock;
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
  size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor;
  size_t sharedMemPerBlockOptin;
  int maxBlocksPerMultiProcessor;
  size_t reservedSharedMemPerBlock;
  size_t totalConstMem;
  int clockRate;        // kHz, of what clock() counts
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
  size_t memPitch;
  // 0 or as an H100 has them: nothing here depends on them.
  cudaUUID_t uuid;
  char luid[8];
  unsigned luidDeviceNodeMask;
  size_t textureAlignment, texturePitchAlignment, surfaceAlignment;
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
  cudaDevAttrClockRate = 13,  // kHz
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
enum cudaLimit {
  cudaLimitStackSize = 0,
  cudaLimitPrintfFifoSize = 1,
  cudaLimitMallocHeapSize = 2,
  cudaLimitDevRuntimeSyncDepth = 3,
  cudaLimitDevRuntimePendingLaunchCount = 4,
  cudaLimitMaxL2FetchGranularity = 5,
  cudaLimitPersistingL2CacheSize = 6,
};
enum cudaFuncCache {
  cudaFuncCachePreferNone = 0,
  cudaFuncCachePreferShared = 1,
  cudaFuncCachePreferL1 = 2,
  cudaFuncCachePreferEqual = 3,
};
enum cudaSharedMemConfig {
  cudaSharedMemBankSizeDefault = 0,
  cudaSharedMemBankSizeFourByte = 1,
  cudaSharedMemBankSizeEightByte = 2,
};
enum cudaComputeMode {
  cudaComputeModeDefault = 0,
  cudaComputeModeExclusive = 1,
  cudaComputeModeProhibited = 2,
  cudaComputeModeExclusiveProcess = 3,
};
#define cudaDeviceScheduleAuto 0
#define cudaDeviceScheduleSpin 1
#define cudaDeviceScheduleYield 2
#define cudaDeviceScheduleBlockingSync 4
#define cudaDeviceBlockingSync cudaDeviceScheduleBlockingSync  // its old name
#define cudaDeviceMapHost 8

cudaError_t cudaGetDeviceCount(int* count) SIMT_C(cudaGetDeviceCount);
cudaError_t cudaGetDevice(int* device) SIMT_C(cudaGetDevice);
cudaError_t cudaSetDevice(int device) SIMT_C(cudaSetDevice);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* properties, int device) SIMT_C(cudaGetDeviceProperties);
cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attribute, int device)
    SIMT_C(cudaDeviceGetAttribute);
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) SIMT_C(cudaDeviceGetPCIBusId);
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) SIMT_C(cudaDeviceGetByPCIBusId);
cudaError_t cudaDeviceSynchronize(void) SIMT_C(cudaDeviceSynchronize);
cudaError_t cudaRuntimeGetVersion(int* version) SIMT_C(cudaRuntimeGetVersion);
cudaError_t cudaDriverGetVersion(int* version) SIMT_C(cudaDriverGetVersion);
cudaError_t cudaDeviceReset(void) SIMT_C(cudaDeviceReset);
cudaError_t cudaThreadSynchronize(void) SIMT_C(cudaThreadSynchronize);
cudaError_t cudaThreadExit(void) SIMT_C(cudaThreadExit);
cudaError_t cudaSetDeviceFlags(unsigned flags) SIMT_C(cudaSetDeviceFlags);
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) SIMT_C(cudaDeviceCanAccessPeer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) SIMT_C(cudaDeviceEnablePeerAccess);
cudaError_t cudaDeviceDisablePeerAccess(int peer) SIMT_C(cudaDeviceDisablePeerAccess);
cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value) SIMT_C(cudaDeviceSetLimit);
cudaError_t cudaDeviceGetLimit(size_t* value, enum cudaLimit limit) SIMT_C(cudaDeviceGetLimit);
cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config) SIMT_C(cudaDeviceSetCacheConfig);
cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache* config) SIMT_C(cudaDeviceGetCacheConfig);
cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config) SIMT_C(cudaDeviceSetSharedMemConfig);
cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig* config) SIMT_C(cudaDeviceGetSharedMemConfig);
cudaError_t cudaProfilerStart(void) SIMT_C(cudaProfilerStart);
cudaError_t cudaProfilerStop(void) SIMT_C(cudaProfilerStop);

#ifndef __cplusplus
// The vector types, of which C has no more than their members.
#define SIMT_VECTORS(name, T, two, four)                  \
  typedef struct name##1 {                                \
    T x;                                                  \
  }                                                       \
  name##1;                                                \
  typedef struct __attribute__((aligned(two))) name##2 {  \
    T x, y;                                               \
  }                                                       \
  name##2;                                                \
  typedef struct name##3 {                                \
    T x, y, z;                                            \
  }                                                       \
  name##3;                                                \
  typedef struct __attribute__((aligned(four))) name##4 { \
    T x, y, z, w;                                         \
  }                                                       \
  name##4;
SIMT_VECTORS(char, signed char, 2, 4)
SIMT_VECTORS(uchar, unsigned char, 2, 4)
SIMT_VECTORS(short, short, 4, 8)
SIMT_VECTORS(ushort, unsigned short, 4, 8)
SIMT_VECTORS(int, int, 8, 16)
SIMT_VECTORS(uint, unsigned, 8, 16)
SIMT_VECTORS(long, long, 16, 16)
SIMT_VECTORS(ulong, unsigned long, 16, 16)
SIMT_VECTORS(longlong, long long, 16, 16)
SIMT_VECTORS(ulonglong, unsigned long long, 16, 16)
SIMT_VECTORS(float, float, 8, 16)
SIMT_VECTORS(double, double, 16, 16)
#undef SIMT_VECTORS
typedef struct dim3 {
  unsigned x, y, z;
} dim3;
#endif
