// What programs from elsewhere use of CUDA besides kernels, each thing checked: main's status is how many checks
// failed.
#include <cuComplex.h>
#include <cublasLt.h>
#include <cublasXt.h>
#include <cublas_v2.h>
#include <cuda_fp8.h>
#include <curand.h>
#include <curand_kernel.h>
#include <helper_cuda.h>
#include <helper_functions.h>
#include <helper_math.h>
#include <mma.h>
#include <nvtx3/nvToolsExt.h>

#include <cmath>
#include <cuda/pipeline>
#include <numeric>
#include <string>
#include <vector>

int failed = 0;
#define CHECK(what) \
  if (!(what)) printf("api.cu:%d: %s\n", __LINE__, #what), ++failed

__device__ volatile int flag;
__device__ volatile float flags[4];

__global__ void add(float* x, float a) { x[threadIdx.x] += a; }
template <class T, int N>
__global__ void add_all(T* x) {
  x[threadIdx.x] += N;
}

void launches_by_address(float* x) {
  void (*typed)(float*, float) = add;
  float a = 2;
  void* arguments[] = {&x, &a};
  cudaError error = cudaLaunchKernel((void*)typed, dim3(1), dim3(32), arguments, 0, 0);
  CHECK(error == cudaSuccess);
  const void* kernels[] = {(const void*)add, (const void*)add_all<float, 3>};
  for (const void* kernel : kernels) CHECK(cudaLaunchKernel(kernel, 1, 32, arguments, 0, nullptr) == cudaSuccess);
  CHECK(cudaLaunchKernel((const void*)&failed, 1, 32, arguments, 0, nullptr) == cudaErrorInvalidDeviceFunction);
  cudaDeviceSynchronize();
  CHECK(x[7] == 7);
}

void graphs(float* x) {
  float host[32];
  cudaStream_t one, two;
  cudaStreamCreate(&one);
  cudaStreamCreate(&two);
  cudaEvent_t event;
  CHECK(cudaEventCreate(&event, cudaEventDisableTiming) == cudaSuccess);
  cudaMemset(x, 0, 128);
  cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal);
  {
    float a = 2;  // is gone when the graph runs
    add<<<1, 32, 0, one>>>(x, a);
  }
  cudaEventRecord(event, one);
  cudaStreamWaitEvent(two, event, 0);
  add_all<float, 3><<<1, 32, 0, two>>>(x);
  cudaEventRecord(event, two);
  cudaStreamWaitEvent(one, event, 0);
  cudaMemcpyAsync(host, x, 128, cudaMemcpyDeviceToHost, one);
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(one, &graph) == cudaSuccess);
  CHECK(x[5] == 0);
  cudaGraphExec_t executable;
  cudaGraphInstantiate(&executable, graph, nullptr, nullptr, 0);
  cudaGraphExecUpdateResult updated;
  CHECK(cudaGraphExecUpdate(executable, graph, nullptr, &updated) == cudaSuccess);
  CHECK(updated == cudaGraphExecUpdateSuccess);
  for (int i = 0; i < 3; ++i) cudaGraphLaunch(executable, one);
  cudaStreamSynchronize(one);
  CHECK(host[5] == 15);
  add<<<1, 32, 0, two>>>(x, 1.0f);  // no stream is captured any more
  CHECK(x[5] == 16);

  cudaGraph_t own;
  cudaGraphCreate(&own, 0);
  float a = 10;
  void* arguments[] = {&x, &a};
  cudaKernelNodeParams parameters = {};
  parameters.func = (void*)add;
  parameters.gridDim = dim3(1);
  parameters.blockDim = dim3(32);
  parameters.kernelParams = arguments;
  cudaMemsetParams zero = {};
  zero.dst = x;
  zero.elementSize = 4;
  zero.width = 32;
  zero.height = 1;
  cudaGraphNode_t adds, copies, clears;
  cudaGraphAddKernelNode(&adds, own, nullptr, 0, &parameters);
  cudaGraphAddMemcpyNode1D(&copies, own, &adds, 1, host, x, 128, cudaMemcpyDeviceToHost);
  cudaGraphAddMemsetNode(&clears, own, nullptr, 0, &zero);
  cudaGraphAddDependencies(own, &clears, &adds, 1);
  a = 99;  // the node has a copy
  cudaGraphInstantiate(&executable, own, 0);
  cudaGraphLaunch(executable, 0);
  CHECK(host[5] == 10);
}

__global__ void grow(int* count, int depth) {
  if (threadIdx.x != 0) return;
  atomicAdd(count, 1);
  if (depth > 0) grow<<<2, 32>>>(count, depth - 1);
}

// Its copies on the device are bytes: no destructor runs there.
struct Owner {
  int* memory;
  Owner() { cudaMallocManaged(&memory, 4); }
  Owner(const Owner& other) : memory(other.memory) { ++copies(); }
  ~Owner() { ++ended(); }
  static int& copies() {
    static int n = 0;
    return n;
  }
  static int& ended() {
    static int n = 0;
    return n;
  }
};
__global__ void own(Owner owner) { atomicAdd(owner.memory, 1); }

__host__ __device__ int where() {
#ifdef __CUDA_ARCH__
  return __CUDA_ARCH__;
#else
  return -1;
#endif
}
__global__ void ask(int* out) { *out = where() + (flag = 0); }

// Four bytes, or two halves, at once.
__global__ void packed(unsigned* out) {
  const unsigned a = 0x7f80ff01, b = 0x0180fe02;
  __builtin_assume(gridDim.x == 1);
  const unsigned results[] = {__vadd4(a, b),   __vaddss4(a, b), __vaddus4(a, b), __vsub2(a, b),    __vsubus4(a, b),
                              __vmaxs4(a, b),  __vminu2(a, b),  __vavgs4(a, b),  __vavgu4(a, b),   __vabsdiffu4(a, b),
                              __vabs4(a),      __vabsss4(a),    __vneg2(a),      __vcmpgts4(a, b), __vcmpgeu2(a, b),
                              __vseteq4(a, b), __vsadu4(a, b),  __vsads2(a, b),  __vhaddu4(a, b),  __vcmpne4(a, b)};
  for (const unsigned result : results) *out++ = result;
}

__global__ void products(const half* a, const half* b, float* c) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 1.0f);
  wmma::load_matrix_sync(left, a, 16);
  wmma::load_matrix_sync(right, b, 16);
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(c, sum, 16, wmma::mem_col_major);
}

__global__ void small_floats(float* out) {
  const float x = 17.3f * threadIdx.x;
  out[threadIdx.x] = float(__nv_fp8_e4m3(x));
  out[32 + threadIdx.x] = float(__nv_fp8_e5m2(-x));
}

__global__ void random_numbers(float* mean, unsigned* philox) {
  curandState state;
  curand_init(7, threadIdx.x, 0, &state);
  float sum = 0;
  for (int i = 0; i < 100; ++i) sum += curand_uniform(&state);
  atomicAdd(mean, sum / 3200);
  if (threadIdx.x != 0) return;
  curandStatePhilox4_32_10_t known;
  curand_init(0, 0, 0, &known);
  for (int i = 0; i < 4; ++i) philox[i] = curand(&known);
}

__global__ void doubled(const float4* in, float4* out) {
  __shared__ alignas(16) float4 stage[32];
  auto pipe = cuda::make_pipeline();
  pipe.producer_acquire();
  cuda::memcpy_async(stage + threadIdx.x, in + threadIdx.x, cuda::aligned_size_t<16>(16), pipe);
  pipe.producer_commit();
  cuda::pipeline_consumer_wait_prior<0>(pipe);
  out[threadIdx.x] = stage[threadIdx.x] * 2.0f;
}

void libraries() {
  const int m = 3, n = 4, k = 5;
  std::vector<float> A(m * k), B(k * n), C(m * n, 1);
  for (int i = 0; i < m * k; ++i) A[i] = i;
  for (int i = 0; i < k * n; ++i) B[i] = i * 0.5f;
  float *a, *b, *c;
  checkCudaErrors(cudaMalloc(&a, m * k * 4));
  checkCudaErrors(cudaMalloc(&b, k * n * 4));
  checkCudaErrors(cudaMalloc(&c, m * n * 4));
  cublasHandle_t handle;
  checkCudaErrors(cublasCreate(&handle));
  cublasSetMatrix(m, k, 4, A.data(), m, a, m);
  cublasSetMatrix(k, n, 4, B.data(), k, b, k);
  cublasSetMatrix(m, n, 4, C.data(), m, c, m);
  const float alpha = 2, beta = 3;
  std::vector<float> expected(m * n);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      expected[i + j * m] = beta;
      for (int q = 0; q < k; ++q) expected[i + j * m] += alpha * A[i + q * m] * B[q + j * k];
    }
  CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, a, m, b, k, &beta, c, m) ==
        CUBLAS_STATUS_SUCCESS);
  cublasGetMatrix(m, n, 4, c, m, C.data(), m);
  CHECK(sdkCompareL2fe(expected.data(), C.data(), m * n, 1e-6f));
  int largest = 0;
  cublasIsamax(handle, m * n, c, 1, &largest);
  CHECK(largest == m * n);
  float norm = 0, zero = 0, one = 1;
  cublasSdot(handle, m * n, c, 1, c, 1, &norm);
  CHECK(std::fabs(norm - std::inner_product(C.begin(), C.end(), C.begin(), 0.0f)) < 1e-3f * norm);
  // y = A^T x with steps of 2 and -1; solving a triangle undoes the product with it.
  cublasSgemv(handle, CUBLAS_OP_T, m, k, &one, a, m, b, 2, &zero, c, -1);
  cublasGetVector(k, 4, c, 1, C.data(), 1);
  for (int j = 0; j < k; ++j) CHECK(C[k - 1 - j] == A[j * m] * B[0] + A[1 + j * m] * B[2] + A[2 + j * m] * B[4]);
  cublasScopy(handle, m * m, a, 1, c, 1);  // c's lower triangle: 0 1 2; 4 5; 8
  const float two = 2;
  cublasSetVector(1, 4, &two, 1, c, 1);
  std::vector<float> X = {1, 2, 3}, right = {2, 1 + 8, 2 + 10 + 24};
  cublasSetVector(3, 4, right.data(), 1, b, 1);
  cublasStrsm(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, 3, 1, &one, c, 3, b,
              3);
  cublasGetVector(3, 4, b, 1, right.data(), 1);
  CHECK(right == X);

  std::vector<float> product(m * n, 0);
  cublasXtSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, A.data(), m, B.data(), k, &zero, product.data(), m);
  CHECK(product[0] == expected[0] - beta);
  // cuBLASLt, by rows, with a bias and ReLU: (row of ones) (column of numbers) - 5.
  std::vector<float> ones = {1, 1}, numbers = {1, 2, 3, 4}, bias = {-5};
  cublasSetVector(2, 4, ones.data(), 1, a, 1);
  cublasSetVector(4, 4, numbers.data(), 1, b, 1);
  cublasSetVector(1, 4, bias.data(), 1, a + 8, 1);
  cublasLtMatmulDesc_t description;
  cublasLtMatrixLayout_t left, middle, result;
  cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_RELU_BIAS;
  const float* bias_at = a + 8;
  cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
  cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias_at, sizeof bias_at);
  cublasLtMatrixLayoutCreate(&left, CUDA_R_32F, 1, 2, 1);
  cublasLtMatrixLayoutCreate(&middle, CUDA_R_32F, 2, 2, 2);
  cublasLtMatrixLayoutCreate(&result, CUDA_R_32F, 1, 2, 1);
  CHECK(cublasLtMatmul(handle, description, &one, a, left, b, middle, &zero, c, result, c, result, nullptr, nullptr, 0,
                       nullptr) == CUBLAS_STATUS_SUCCESS);
  float rectified[2];
  cudaMemcpy(rectified, c, 8, cudaMemcpyDefault);
  CHECK(rectified[0] == 0 && rectified[1] == 2);

  curandGenerator_t generator;
  CHECK(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT) == CURAND_STATUS_SUCCESS);
  CHECK(curandCreateGenerator(&generator, CURAND_RNG_QUASI_SOBOL32) == CURAND_STATUS_TYPE_ERROR);
  float* random;
  cudaMallocManaged(&random, 40000);
  curandGenerateNormal(generator, random, 10000, 3, 2);
  float mean = 0, square = 0;
  for (int i = 0; i < 10000; ++i) mean += random[i] / 10000, square += random[i] * random[i] / 10000;
  CHECK(std::fabs(mean - 3) < 0.1f && std::fabs(square - mean * mean - 4) < 0.3f);
}

int main(int argc, char** argv) {
  nvtxRangePush("all");
  findCudaDevice(argc, (const char**)argv);
  StopWatchInterface* timer = nullptr;
  sdkCreateTimer(&timer);
  sdkStartTimer(&timer);
  float* x;
  cudaMallocManaged(&x, 4096);
  cudaMemset(x, 0, 4096);
  launches_by_address(x);
  graphs(x);
  int* number = (int*)x + 64;
  grow<<<1, 32>>>(number, 3);
  cudaDeviceSynchronize();
  CHECK(*number == 1 + 2 + 4 + 8);
  ask<<<1, 1>>>(number);
  cudaDeviceSynchronize();
  CHECK(*number == 900 && where() == -1 && INT_MAX > 0);
  {
    Owner owner;
    *owner.memory = 0;
    own<<<2, 32>>>(owner);
    cudaDeviceSynchronize();
    CHECK(*owner.memory == 64);
    CHECK(Owner::ended() == Owner::copies());
  }

  half* halves;
  cudaMallocManaged(&halves, 1024);
  for (int i = 0; i < 256; ++i) halves[i] = i % 7, halves[256 + i] = i % 5;
  products<<<1, 32>>>(halves, halves + 256, x);
  cudaDeviceSynchronize();
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) {
      float sum = 1;
      for (int k = 0; k < 16; ++k) sum += float(halves[16 * i + k]) * float(halves[256 + 16 * j + k]);
      CHECK(x[i + 16 * j] == sum);
    }
  small_floats<<<1, 32>>>(x);
  cudaDeviceSynchronize();
  CHECK(x[1] == 18 && x[7] == 120 && x[31] == 448);  // ties to even; beyond the largest
  CHECK(x[33] == -16 && x[39] == -128 && x[63] == -512);
  CHECK(float(__nv_fp8_e4m3(0x1p-9f)) == 0x1p-9f && float(__nv_fp8_e5m2(0x1p-16f)) == 0x1p-16f);
  CHECK(__nv_cvt_float_to_fp8(1e6f, __NV_NOSAT, __NV_E5M2) == 0x7c);
  x[0] = 0;
  random_numbers<<<1, 32>>>(x, (unsigned*)x + 4);
  cudaDeviceSynchronize();
  CHECK(std::fabs(x[0] - 0.5f) < 0.03f);
  CHECK(((unsigned*)x)[4] == 0x6627e8d5 && ((unsigned*)x)[7] == 0x9b00dbd8);  // the published test of Philox4x32-10
  for (int i = 0; i < 128; ++i) x[i] = i;
  doubled<<<1, 32>>>((float4*)x, (float4*)x + 32);
  cudaDeviceSynchronize();
  CHECK(x[128 + 77] == 154);
  packed<<<1, 1>>>((unsigned*)x);
  cudaDeviceSynchronize();
  const unsigned wanted[] = {0x8000fd03, 0x7f80fd03, 0x80ffff03, 0x7e0000ff, 0x7e000100, 0x7f80ff02, 0x0180fe02,
                             0x4080fe02, 0x4080ff02, 0x7e000101, 0x7f800101, 0x7f7f0101, 0x808000ff, 0xff00ff00,
                             0xffffffff, 0x00010000, 0x00000080, 0x00007eff, 0x4080fe01, 0xff00ffff};
  for (int i = 0; i < 20; ++i)
    if (((unsigned*)x)[i] != wanted[i])
      printf("packed %d: %08x, not %08x\n", i, ((unsigned*)x)[i], wanted[i]), ++failed;
  const cuComplex z = cuCmulf(make_cuComplex(1, 2), make_cuComplex(3, 4));
  CHECK(z.x == -5 && z.y == 10 && cuCabsf(make_cuComplex(3, 4)) == 5);
  CHECK(dot(make_float3(1, 2, 3), make_float3(1.0f) + make_float3(1, 1, 1)) == 12);
  CHECK(float(__float2half_rz(2049.5f)) == 2048 && float(__float2half_ru(2049)) == 2050 &&
        float(__float2half_rd(-2049)) == -2050);

  cudaDeviceProp properties;
  cudaGetDeviceProperties(&properties, 0);
  CHECK(properties.textureAlignment == 512 && properties.clusterLaunch == 1 && properties.clockRate > 0);
  char bus[16];
  int device = -1;
  CHECK(cudaDeviceGetPCIBusId(bus, sizeof bus, 0) == cudaSuccess && std::string(bus) == "0000:01:00.0");
  CHECK(cudaDeviceGetByPCIBusId(&device, bus) == cudaSuccess && device == 0);
  CHECK(cudaDeviceGetPCIBusId(bus, 5, 0) == cudaErrorInvalidValue);
  std::size_t limit = 0;
  CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 4096) == cudaSuccess &&
        cudaDeviceGetLimit(&limit, cudaLimitStackSize) == cudaSuccess && limit == 4096);
  cudaPitchedPtr box;
  cudaMalloc3D(&box, make_cudaExtent(8, 4, 2));
  cudaMemset3D(box, 7, make_cudaExtent(8, 4, 2));
  char out[64] = {};
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = box;
  copy.dstPtr = make_cudaPitchedPtr(out, 8, 8, 4);
  copy.extent = make_cudaExtent(8, 4, 2);
  copy.kind = cudaMemcpyDeviceToHost;
  CHECK(cudaMemcpy3D(&copy) == cudaSuccess && out[0] == 7 && out[63] == 7);
  libraries();
  sdkStopTimer(&timer);
  CHECK(sdkGetTimerValue(&timer) > 0);
  return failed;
}
