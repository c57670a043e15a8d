// cuBLAS for matrices of the host.
#pragma once

#include <cublas_v2.h>

using cublasXtHandle_t = struct SimtBlas*;

inline cublasStatus_t cublasXtCreate(cublasXtHandle_t* handle) { return cublasCreate(handle); }
inline cublasStatus_t cublasXtDestroy(cublasXtHandle_t handle) { return cublasDestroy(handle); }
inline cublasStatus_t cublasXtDeviceSelect(cublasXtHandle_t, int, int*) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasXtSetBlockDim(cublasXtHandle_t, int) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasXtSgemm(cublasXtHandle_t, cublasOperation_t op_a, cublasOperation_t op_b, std::size_t m,
                             std::size_t n, std::size_t k, const float* alpha, const float* a, std::size_t lda,
                             const float* b, std::size_t ldb, const float* beta, float* c, std::size_t ldc);
cublasStatus_t cublasXtDgemm(cublasXtHandle_t, cublasOperation_t op_a, cublasOperation_t op_b, std::size_t m,
                             std::size_t n, std::size_t k, const double* alpha, const double* a, std::size_t lda,
                             const double* b, std::size_t ldb, const double* beta, double* c, std::size_t ldc);
