// cuBLAS on the CPU (libraries/cublas.cc): what teaching programs call of it, right and slow. Matrices are stored
// column by column.
#pragma once

#define CUBLAS_API_H_  // by this, and cuRAND's, helper_cuda.h of NVIDIA's samples knows that it is included

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <library_types.h>

#include <cstddef>

enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_MAPPING_ERROR = 11,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
  CUBLAS_STATUS_LICENSE_ERROR = 16,
};
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 };
enum cublasFillMode_t { CUBLAS_FILL_MODE_LOWER = 0, CUBLAS_FILL_MODE_UPPER = 1, CUBLAS_FILL_MODE_FULL = 2 };
enum cublasDiagType_t { CUBLAS_DIAG_NON_UNIT = 0, CUBLAS_DIAG_UNIT = 1 };
enum cublasSideMode_t { CUBLAS_SIDE_LEFT = 0, CUBLAS_SIDE_RIGHT = 1 };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 };
enum cublasAtomicsMode_t { CUBLAS_ATOMICS_NOT_ALLOWED = 0, CUBLAS_ATOMICS_ALLOWED = 1 };
enum cublasMath_t {
  CUBLAS_DEFAULT_MATH = 0,
  CUBLAS_TENSOR_OP_MATH = 1,
  CUBLAS_PEDANTIC_MATH = 2,
  CUBLAS_TF32_TENSOR_OP_MATH = 3,
  CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16,
};
enum cublasComputeType_t {
  CUBLAS_COMPUTE_16F = 64,
  CUBLAS_COMPUTE_16F_PEDANTIC = 65,
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32F_PEDANTIC = 69,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_64F_PEDANTIC = 71,
  CUBLAS_COMPUTE_32I = 72,
  CUBLAS_COMPUTE_32I_PEDANTIC = 73,
  CUBLAS_COMPUTE_32F_FAST_16F = 74,
  CUBLAS_COMPUTE_32F_FAST_16BF = 75,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
};
enum cublasGemmAlgo_t { CUBLAS_GEMM_DFALT = -1, CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99 };

using cublasHandle_t = struct SimtBlas*;

cublasStatus_t cublasCreate(cublasHandle_t* handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream);
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* memory, std::size_t bytes);
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode);
cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t* mode);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode);
cublasStatus_t cublasGetVersion(cublasHandle_t handle, int* version);
const char* cublasGetStatusName(cublasStatus_t status);
const char* cublasGetStatusString(cublasStatus_t status);

cublasStatus_t cublasSetVector(int n, int bytes, const void* from, int from_step, void* to, int to_step);
cublasStatus_t cublasGetVector(int n, int bytes, const void* from, int from_step, void* to, int to_step);
cublasStatus_t cublasSetMatrix(int rows, int columns, int bytes, const void* from, int from_rows, void* to,
                               int to_rows);
cublasStatus_t cublasGetMatrix(int rows, int columns, int bytes, const void* from, int from_rows, void* to,
                               int to_rows);
cublasStatus_t cublasSetVectorAsync(int n, int bytes, const void* from, int from_step, void* to, int to_step,
                                    cudaStream_t stream);
cublasStatus_t cublasGetVectorAsync(int n, int bytes, const void* from, int from_step, void* to, int to_step,
                                    cudaStream_t stream);
cublasStatus_t cublasSetMatrixAsync(int rows, int columns, int bytes, const void* from, int from_rows, void* to,
                                    int to_rows, cudaStream_t stream);
cublasStatus_t cublasGetMatrixAsync(int rows, int columns, int bytes, const void* from, int from_rows, void* to,
                                    int to_rows, cudaStream_t stream);

#define SIMT_BLAS(X, x_, T)                                                                                          \
  cublasStatus_t cublas##X##axpy(cublasHandle_t, int n, const T* alpha, const T* x, int x_step, T* y, int y_step);   \
  cublasStatus_t cublas##X##scal(cublasHandle_t, int n, const T* alpha, T* x, int x_step);                           \
  cublasStatus_t cublas##X##copy(cublasHandle_t, int n, const T* x, int x_step, T* y, int y_step);                   \
  cublasStatus_t cublas##X##swap(cublasHandle_t, int n, T* x, int x_step, T* y, int y_step);                         \
  cublasStatus_t cublas##X##dot(cublasHandle_t, int n, const T* x, int x_step, const T* y, int y_step, T* result);   \
  cublasStatus_t cublas##X##nrm2(cublasHandle_t, int n, const T* x, int x_step, T* result);                          \
  cublasStatus_t cublas##X##asum(cublasHandle_t, int n, const T* x, int x_step, T* result);                          \
  cublasStatus_t cublasI##x_##amax(cublasHandle_t, int n, const T* x, int x_step, int* result);                      \
  cublasStatus_t cublasI##x_##amin(cublasHandle_t, int n, const T* x, int x_step, int* result);                      \
  cublasStatus_t cublas##X##gemv(cublasHandle_t, cublasOperation_t op, int m, int n, const T* alpha, const T* a,     \
                                 int lda, const T* x, int x_step, const T* beta, T* y, int y_step);                  \
  cublasStatus_t cublas##X##ger(cublasHandle_t, int m, int n, const T* alpha, const T* x, int x_step, const T* y,    \
                                int y_step, T* a, int lda);                                                          \
  cublasStatus_t cublas##X##geam(cublasHandle_t, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,       \
                                 const T* alpha, const T* a, int lda, const T* beta, const T* b, int ldb, T* c,      \
                                 int ldc);                                                                           \
  cublasStatus_t cublas##X##syrk(cublasHandle_t, cublasFillMode_t fill, cublasOperation_t op, int n, int k,          \
                                 const T* alpha, const T* a, int lda, const T* beta, T* c, int ldc);                 \
  cublasStatus_t cublas##X##symm(cublasHandle_t, cublasSideMode_t side, cublasFillMode_t fill, int m, int n,         \
                                 const T* alpha, const T* a, int lda, const T* b, int ldb, const T* beta, T* c,      \
                                 int ldc);                                                                           \
  cublasStatus_t cublas##X##trsm(cublasHandle_t, cublasSideMode_t side, cublasFillMode_t fill, cublasOperation_t op, \
                                 cublasDiagType_t diagonal, int m, int n, const T* alpha, const T* a, int lda, T* b, \
                                 int ldb);
#define SIMT_BLAS_GEMM(X, T)                                                                                          \
  cublasStatus_t cublas##X##gemm(cublasHandle_t, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k, \
                                 const T* alpha, const T* a, int lda, const T* b, int ldb, const T* beta, T* c,       \
                                 int ldc);                                                                            \
  cublasStatus_t cublas##X##gemmStridedBatched(cublasHandle_t, cublasOperation_t op_a, cublasOperation_t op_b, int m, \
                                               int n, int k, const T* alpha, const T* a, int lda, long long a_stride, \
                                               const T* b, int ldb, long long b_stride, const T* beta, T* c, int ldc, \
                                               long long c_stride, int count);                                        \
  cublasStatus_t cublas##X##gemmBatched(cublasHandle_t, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, \
                                        int k, const T* alpha, const T* const a[], int lda, const T* const b[],       \
                                        int ldb, const T* beta, T* const c[], int ldc, int count);
SIMT_BLAS(S, s, float)
SIMT_BLAS(D, d, double)
SIMT_BLAS_GEMM(S, float)
SIMT_BLAS_GEMM(D, double)
SIMT_BLAS_GEMM(H, __half)
#undef SIMT_BLAS
#undef SIMT_BLAS_GEMM

cublasStatus_t cublasGemmEx(cublasHandle_t, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                            const void* alpha, const void* a, cudaDataType a_type, int lda, const void* b,
                            cudaDataType b_type, int ldb, const void* beta, void* c, cudaDataType c_type, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm);
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,
                                          int k, const void* alpha, const void* a, cudaDataType a_type, int lda,
                                          long long a_stride, const void* b, cudaDataType b_type, int ldb,
                                          long long b_stride, const void* beta, void* c, cudaDataType c_type, int ldc,
                                          long long c_stride, int count, cublasComputeType_t compute,
                                          cublasGemmAlgo_t algorithm);
cublasStatus_t cublasSgemmEx(cublasHandle_t, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                             const float* alpha, const void* a, cudaDataType a_type, int lda, const void* b,
                             cudaDataType b_type, int ldb, const float* beta, void* c, cudaDataType c_type, int ldc);
// The types of compute by their old names.
inline cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,
                                   int k, const void* alpha, const void* a, cudaDataType a_type, int lda, const void* b,
                                   cudaDataType b_type, int ldb, const void* beta, void* c, cudaDataType c_type,
                                   int ldc, cudaDataType compute, cublasGemmAlgo_t algorithm) {
  const cublasComputeType_t type = compute == CUDA_R_16F   ? CUBLAS_COMPUTE_16F
                                   : compute == CUDA_R_64F ? CUBLAS_COMPUTE_64F
                                   : compute == CUDA_R_32I ? CUBLAS_COMPUTE_32I
                                                           : CUBLAS_COMPUTE_32F;
  return cublasGemmEx(handle, op_a, op_b, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc, type,
                      algorithm);
}

#define cublasCreate_v2 cublasCreate
#define cublasDestroy_v2 cublasDestroy
#define cublasSgemm_v2 cublasSgemm
#define cublasDgemm_v2 cublasDgemm
#define cublasSgemv_v2 cublasSgemv
#define cublasDgemv_v2 cublasDgemv
#define cublasSaxpy_v2 cublasSaxpy
#define cublasDaxpy_v2 cublasDaxpy
#define cublasSdot_v2 cublasSdot
#define cublasDdot_v2 cublasDdot
#define cublasSetStream_v2 cublasSetStream
