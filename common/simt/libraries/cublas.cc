// cuBLAS on the CPU: with Eigen, on copies of the matrices. The runtime's own functions make the copies, so that they
// check the program's pointers and bounds.
#include <cublasLt.h>
#include <cublasXt.h>
#include <cublas_v2.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "simt/cuda/graphs.h"
#include "simt/cuda/half_arithmetic.h"
#include "simt/cuda/host.h"
#include "simt/cuda/host_checks.h"
#include "simt/cuda/transfers.h"
#include "simt/engine/findings.h"

struct SimtBlas {
  cudaStream_t stream = nullptr;
  cublasPointerMode_t mode = CUBLAS_POINTER_MODE_HOST;
};

struct SimtBlasLtLayout {
  cudaDataType type;
  int rows, columns, pitch;
  bool by_rows = false;
  int count = 1;
  long long stride = 0;
};

struct SimtBlasLtProduct {
  cublasComputeType_t compute;
  cudaDataType scale_type;
  cublasOperation_t op_a = CUBLAS_OP_N, op_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  int bias_type = -1;  // D's
  cublasPointerMode_t mode = CUBLAS_POINTER_MODE_HOST;
};

struct SimtBlasLtPreference {};

namespace {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
template <class T>
using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;

struct Wrong {
  cublasStatus_t status;
  std::string what;
};

thread_local std::optional<simt::Transfer> call;  // that is performed
thread_local cublasPointerMode_t mode;            // where its numbers are

void want(bool right, const char* what) {
  if (!right) throw Wrong{CUBLAS_STATUS_INVALID_VALUE, what};
}

void copied(cudaError_t error) {
  if (error != cudaSuccess) throw Wrong{CUBLAS_STATUS_EXECUTION_FAILED, cudaGetErrorString(error)};
}

// A GPU reaches device memory and the host's pinned memory, and nothing else.
cudaMemoryType type_of(const void* address) {
  cudaPointerAttributes is;
  copied(cudaPointerGetAttributes(&is, address));
  return is.type;
}
bool pinned(const void* address) { return type_of(address) == cudaMemoryTypeHost; }

// Does it now, or when the graph runs into which the handle's stream is captured. What is wrong is printed, as seldom
// is asked for the status.
cublasStatus_t perform(const char* name, cublasHandle_t handle, const std::function<void()>& task) {
  if (handle == nullptr) {
    std::fprintf(stderr, "%s: it has no handle, which cublasCreate() makes\n", name);
    simt::note_failed_launch(std::string(name) + ": it has no handle, which cublasCreate() makes");
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  const auto in = [transfer = simt::Transfer(name, handle->stream), its = handle->mode, task](cudaStream_t stream) {
    try {
      call = transfer;
      call->stream = stream;
      mode = its;
      task();
      return CUBLAS_STATUS_SUCCESS;
    } catch (const Wrong& wrong) {
      const std::string line = simt::host_checks::caller();
      const std::string said = transfer.call + (line.empty() ? "" : " at " + line) + ": " + wrong.what;
      std::fprintf(stderr, "%s\n", said.c_str());
      simt::note_failed_launch(said);
      return wrong.status;
    }
  };
  if (!simt::is_captured(handle->stream)) return in(handle->stream);
  simt::capture(handle->stream, [in](cudaStream_t stream) {
    return in(stream) == CUBLAS_STATUS_SUCCESS ? cudaSuccess : cudaErrorUnknown;
  });
  return CUBLAS_STATUS_SUCCESS;
}

// The address of a number, or of a result, is on the side that the handle's mode says.
void want_side(const void* address) {
  want(address != nullptr, "the address of a number is null");
  const cudaMemoryType type = type_of(address);
  if (mode == CUBLAS_POINTER_MODE_HOST)
    want(type != cudaMemoryTypeDevice,
         "the address of a number is the device's: with CUBLAS_POINTER_MODE_HOST, the default, the host reads and "
         "writes "
         "it, and may end by that (cublasSetPointerMode() says where numbers are)");
  else
    want(type != cudaMemoryTypeUnregistered,
         "the address of a number is the host's: with CUBLAS_POINTER_MODE_DEVICE a GPU reads and writes it, and cannot "
         "reach it");
}

// One of an array of pointers, which a GPU reads.
template <class T>
T pointer(const T* from) {
  want(from != nullptr && type_of(from) != cudaMemoryTypeUnregistered,
       "an array of pointers is in the host's memory: a GPU reads it, so that it has to be in device memory");
  T value;
  copied(simt::copy(*call, &value, from, sizeof value, cudaMemcpyDefault));
  return value;
}

// A number given by its address. The host's is read before the call returns.
template <class T>
T number(const void* from) {
  want_side(from);
  T value;
  if (type_of(from) != cudaMemoryTypeUnregistered)
    copied(simt::copy(*call, &value, from, sizeof value, cudaMemcpyDefault));
  else
    std::memcpy(&value, from, sizeof value);
  return value;
}

// To the host, it is there when the call returns.
template <class T>
void put(T* to, T value) {
  want_side(to);
  copied(simt::copy(*call, to, &value, sizeof value, cudaMemcpyDefault));
  if (mode == CUBLAS_POINTER_MODE_HOST) simt::host_checks::waited(call->stream, false);
}

template <class T, class Sum>
Sum widened(const T& value) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<Sum>(value);
  else
    return static_cast<Sum>(static_cast<float>(value));
}
template <class T, class Sum>
T narrowed(Sum value) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(value);
  else
    return T(static_cast<float>(value));
}

// Columns of `rows` elements, `pitch` apart.
template <class T, class Sum = T>
Matrix<Sum> fetch(const void* from, int rows, int columns, long long pitch) {
  want(rows >= 0 && columns >= 0 && pitch >= std::max(rows, 1),
       "a leading dimension is less than the rows of its matrix");
  std::vector<T> raw(std::size_t(rows) * columns);
  const std::size_t width = sizeof(T) * rows;
  if (!raw.empty()) {
    simt::host_checks::library_reads(call->call, from, sizeof(T) * pitch * (columns - 1) + width);
    copied(simt::copy_rows(*call, raw.data(), width, from, sizeof(T) * pitch, width, columns,
                           pinned(from) ? cudaMemcpyHostToHost : cudaMemcpyDeviceToHost));
  }
  Matrix<Sum> matrix(rows, columns);
  std::transform(raw.begin(), raw.end(), matrix.data(), widened<T, Sum>);
  return matrix;
}

template <class T, class Sum = T>
void store(void* to, const Matrix<Sum>& matrix, long long pitch) {
  std::vector<T> raw(matrix.size());
  std::transform(matrix.data(), matrix.data() + matrix.size(), raw.begin(), narrowed<T, Sum>);
  const std::size_t width = sizeof(T) * matrix.rows();
  if (!raw.empty())
    copied(simt::copy_rows(*call, to, sizeof(T) * pitch, raw.data(), width, width, matrix.cols(),
                           pinned(to) ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice));
}

// A vector is a matrix of one row, its elements `step` apart. A negative step begins at the end.
template <class T>
Vector<T> fetch_vector(const T* from, int n, int step) {
  want(step != 0, "a vector's increment is 0");
  Vector<T> vector = fetch<T>(from, std::min(n, 1), std::max(n, 0), std::abs(step)).reshaped();
  if (step < 0) vector.reverseInPlace();
  return vector;
}
template <class T>
void store_vector(T* to, Vector<T> vector, int step) {
  if (step < 0) vector.reverseInPlace();
  store<T>(to, Matrix<T>(vector.transpose()), std::abs(step));
}

// Eigen's product of matrices is long to compile: once for each type.
template <class T>
[[gnu::noinline]] Matrix<T> product(T alpha, const Matrix<T>& left, const Matrix<T>& right) {
  return alpha * (left * right);
}
// Adds to a sum what was there before.
template <class T>
[[gnu::noinline]] void add(T beta, const Matrix<T>& old, Matrix<T>& sum) {
  sum += beta * old;
}

template <class T>
Matrix<T> applied(cublasOperation_t op, Matrix<T> matrix) {
  return op == CUBLAS_OP_N ? matrix : Matrix<T>(matrix.transpose());
}

// The whole of a matrix of which one triangle is given.
template <class T>
Matrix<T> symmetric(cublasFillMode_t fill, const Matrix<T>& matrix) {
  if (fill == CUBLAS_FILL_MODE_LOWER) return matrix.template selfadjointView<Eigen::Lower>();
  return matrix.template selfadjointView<Eigen::Upper>();
}

template <class T, class Sum>
Matrix<Sum> fetch_op(cublasOperation_t op, const void* from, int rows, int columns, int pitch) {
  const bool plain = op == CUBLAS_OP_N;
  return applied(op, fetch<T, Sum>(from, plain ? rows : columns, plain ? columns : rows, pitch));
}

// What is written must not be read by the same product.
template <class Result, class T>
void want_apart(const Result* result, int rows, int columns, long long pitch, const T* operand, int its_rows,
                int its_columns, long long its_pitch, const char* name) {
  if (simt::watching() &&
      simt::overlap({result, sizeof(Result) * rows, sizeof(Result) * pitch, std::size_t(columns)},
                    {operand, sizeof(T) * its_rows, sizeof(T) * its_pitch, std::size_t(its_columns)}))
    simt::found_mistake(call->what() + ": its result overlaps " + name +
                        ", which a GPU reads while it writes the result");
}

template <class AB, class C, class Sum>
void gemm(cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k, Sum alpha, const void* a, int lda,
          const void* b, int ldb, Sum beta, void* c, int ldc) {
  const Matrix<Sum> left = fetch_op<AB, Sum>(op_a, a, m, k, lda), right = fetch_op<AB, Sum>(op_b, b, k, n, ldb);
  Matrix<Sum> result = product(alpha, left, right);
  want(ldc >= std::max(m, 1), "ldc is less than m");
  const auto want_apart_from = [&](cublasOperation_t op, const void* p, int rows, int columns, int pitch,
                                   const char* name) {
    if (op != CUBLAS_OP_N) std::swap(rows, columns);
    want_apart(static_cast<C*>(c), m, n, ldc, static_cast<const AB*>(p), rows, columns, pitch, name);
  };
  want_apart_from(op_a, a, m, k, lda, "A");
  want_apart_from(op_b, b, k, n, ldb, "B");
  if (beta != Sum(0)) add(beta, fetch<C, Sum>(c, m, n, ldc), result);
  store<C, Sum>(c, result, ldc);
}

std::size_t bytes_of(cudaDataType type) {
  switch (type) {
    case CUDA_R_64F:
      return 8;
    case CUDA_R_32F:
    case CUDA_R_32I:
      return 4;
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return 2;
    default:
      return 1;
  }
}

struct Product {
  cublasOperation_t op_a, op_b;
  int m, n, k;
  const void *alpha, *a;
  int lda;
  const void* b;
  int ldb;
  const void* beta;
  void* c;
  int ldc;
};

template <class AB, class C, class Sum, class Scale>
void gemm(const Product& p) {
  gemm<AB, C, Sum>(p.op_a, p.op_b, p.m, p.n, p.k, widened<Scale, Sum>(number<Scale>(p.alpha)), p.a, p.lda, p.b, p.ldb,
                   widened<Scale, Sum>(number<Scale>(p.beta)), p.c, p.ldc);
}

void gemm(const Product& p, cudaDataType ab, cudaDataType c, cublasComputeType_t compute) {
  const bool half_scale = compute == CUBLAS_COMPUTE_16F || compute == CUBLAS_COMPUTE_16F_PEDANTIC;
  const bool whole = compute == CUBLAS_COMPUTE_32I || compute == CUBLAS_COMPUTE_32I_PEDANTIC;
  if (ab == CUDA_R_64F && c == CUDA_R_64F) return gemm<double, double, double, double>(p);
  if (ab == CUDA_R_32F && c == CUDA_R_32F) return gemm<float, float, float, float>(p);
  if (ab == CUDA_R_16F && c == CUDA_R_16F && half_scale) return gemm<__half, __half, float, __half>(p);
  if (ab == CUDA_R_16F && c == CUDA_R_16F) return gemm<__half, __half, float, float>(p);
  if (ab == CUDA_R_16F && c == CUDA_R_32F) return gemm<__half, float, float, float>(p);
  if (ab == CUDA_R_16BF && c == CUDA_R_16BF) return gemm<__nv_bfloat16, __nv_bfloat16, float, float>(p);
  if (ab == CUDA_R_16BF && c == CUDA_R_32F) return gemm<__nv_bfloat16, float, float, float>(p);
  if (ab == CUDA_R_8I && c == CUDA_R_32I && whole) return gemm<signed char, int, int, int>(p);
  if (ab == CUDA_R_8I && c == CUDA_R_32F) return gemm<signed char, float, float, float>(p);
  throw Wrong{CUBLAS_STATUS_NOT_SUPPORTED, "types " + std::to_string(ab) + " and " + std::to_string(c) +
                                               " (cudaDataType) of A and C: not part of the engine"};
}

}  // namespace

// ---- handles

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  *handle = new SimtBlas;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream) {
  *stream = handle->stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace(cublasHandle_t, void*, std::size_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) {
  handle->mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t* mode) {
  *mode = handle->mode;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t, cublasAtomicsMode_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasGetVersion(cublasHandle_t, int* version) {
  *version = 130000;
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "an unknown status of cuBLAS";
  }
}
const char* cublasGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }

// ---- copies

namespace {

cublasStatus_t copy_matrix(int rows, int columns, int bytes, const void* from, int from_rows, void* to, int to_rows,
                           cudaMemcpyKind kind, const cudaStream_t* stream = nullptr) {
  if (rows < 0 || columns < 0 || bytes <= 0 || from_rows < rows || to_rows < rows) return CUBLAS_STATUS_INVALID_VALUE;
  const std::size_t width = std::size_t(rows) * bytes;
  const std::size_t to_pitch = std::size_t(to_rows) * bytes, from_pitch = std::size_t(from_rows) * bytes;
  const cudaError_t error = stream != nullptr
                                ? cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, columns, kind, *stream)
                                : cudaMemcpy2D(to, to_pitch, from, from_pitch, width, columns, kind);
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}

}  // namespace

cublasStatus_t cublasSetVector(int n, int bytes, const void* from, int from_step, void* to, int to_step) {
  return copy_matrix(1, n, bytes, from, from_step, to, to_step, cudaMemcpyHostToDevice);
}
cublasStatus_t cublasGetVector(int n, int bytes, const void* from, int from_step, void* to, int to_step) {
  return copy_matrix(1, n, bytes, from, from_step, to, to_step, cudaMemcpyDeviceToHost);
}
cublasStatus_t cublasSetMatrix(int rows, int columns, int bytes, const void* from, int from_rows, void* to,
                               int to_rows) {
  return copy_matrix(rows, columns, bytes, from, from_rows, to, to_rows, cudaMemcpyHostToDevice);
}
cublasStatus_t cublasGetMatrix(int rows, int columns, int bytes, const void* from, int from_rows, void* to,
                               int to_rows) {
  return copy_matrix(rows, columns, bytes, from, from_rows, to, to_rows, cudaMemcpyDeviceToHost);
}
cublasStatus_t cublasSetVectorAsync(int n, int bytes, const void* from, int from_step, void* to, int to_step,
                                    cudaStream_t stream) {
  return copy_matrix(1, n, bytes, from, from_step, to, to_step, cudaMemcpyHostToDevice, &stream);
}
cublasStatus_t cublasGetVectorAsync(int n, int bytes, const void* from, int from_step, void* to, int to_step,
                                    cudaStream_t stream) {
  return copy_matrix(1, n, bytes, from, from_step, to, to_step, cudaMemcpyDeviceToHost, &stream);
}
cublasStatus_t cublasSetMatrixAsync(int rows, int columns, int bytes, const void* from, int from_rows, void* to,
                                    int to_rows, cudaStream_t stream) {
  return copy_matrix(rows, columns, bytes, from, from_rows, to, to_rows, cudaMemcpyHostToDevice, &stream);
}
cublasStatus_t cublasGetMatrixAsync(int rows, int columns, int bytes, const void* from, int from_rows, void* to,
                                    int to_rows, cudaStream_t stream) {
  return copy_matrix(rows, columns, bytes, from, from_rows, to, to_rows, cudaMemcpyDeviceToHost, &stream);
}

// ---- vectors and matrices

#define SIMT_BLAS(X, x_, T)                                                                                            \
  cublasStatus_t cublas##X##axpy(cublasHandle_t h, int n, const T* alpha, const T* x, int x_step, T* y, int y_step) {  \
    return perform("cublas" #X "axpy", h, [=] {                                                                        \
      store_vector<T>(y, fetch_vector(y, n, y_step) + number<T>(alpha) * fetch_vector(x, n, x_step), y_step);          \
    });                                                                                                                \
  }                                                                                                                    \
  cublasStatus_t cublas##X##scal(cublasHandle_t h, int n, const T* alpha, T* x, int x_step) {                          \
    return perform("cublas" #X "scal", h,                                                                              \
                   [=] { store_vector<T>(x, number<T>(alpha) * fetch_vector(x, n, x_step), x_step); });                \
  }                                                                                                                    \
  cublasStatus_t cublas##X##copy(cublasHandle_t h, int n, const T* x, int x_step, T* y, int y_step) {                  \
    return perform("cublas" #X "copy", h, [=] { store_vector<T>(y, fetch_vector(x, n, x_step), y_step); });            \
  }                                                                                                                    \
  cublasStatus_t cublas##X##swap(cublasHandle_t h, int n, T* x, int x_step, T* y, int y_step) {                        \
    return perform("cublas" #X "swap", h, [=] {                                                                        \
      const Vector<T> old = fetch_vector<T>(x, n, x_step);                                                             \
      store_vector<T>(x, fetch_vector<T>(y, n, y_step), x_step);                                                       \
      store_vector<T>(y, old, y_step);                                                                                 \
    });                                                                                                                \
  }                                                                                                                    \
  cublasStatus_t cublas##X##dot(cublasHandle_t h, int n, const T* x, int x_step, const T* y, int y_step, T* result) {  \
    return perform("cublas" #X "dot", h,                                                                               \
                   [=] { put<T>(result, fetch_vector(x, n, x_step).dot(fetch_vector(y, n, y_step))); });               \
  }                                                                                                                    \
  cublasStatus_t cublas##X##nrm2(cublasHandle_t h, int n, const T* x, int x_step, T* result) {                         \
    return perform("cublas" #X "nrm2", h, [=] { put<T>(result, fetch_vector(x, n, x_step).stableNorm()); });           \
  }                                                                                                                    \
  cublasStatus_t cublas##X##asum(cublasHandle_t h, int n, const T* x, int x_step, T* result) {                         \
    return perform("cublas" #X "asum", h, [=] { put<T>(result, fetch_vector(x, n, x_step).template lpNorm<1>()); });   \
  }                                                                                                                    \
  cublasStatus_t cublasI##x_##amax(cublasHandle_t h, int n, const T* x, int x_step, int* result) {                     \
    return perform("cublasI" #x_ "amax", h, [=] {                                                                      \
      int at = -1;                                                                                                     \
      if (n > 0) fetch_vector(x, n, x_step).cwiseAbs().maxCoeff(&at);                                                  \
      put<int>(result, at + 1);                                                                                        \
    });                                                                                                                \
  }                                                                                                                    \
  cublasStatus_t cublasI##x_##amin(cublasHandle_t h, int n, const T* x, int x_step, int* result) {                     \
    return perform("cublasI" #x_ "amin", h, [=] {                                                                      \
      int at = -1;                                                                                                     \
      if (n > 0) fetch_vector(x, n, x_step).cwiseAbs().minCoeff(&at);                                                  \
      put<int>(result, at + 1);                                                                                        \
    });                                                                                                                \
  }                                                                                                                    \
  cublasStatus_t cublas##X##gemv(cublasHandle_t h, cublasOperation_t op, int m, int n, const T* alpha, const T* a,     \
                                 int lda, const T* x, int x_step, const T* beta, T* y, int y_step) {                   \
    return perform("cublas" #X "gemv", h, [=] {                                                                        \
      const Matrix<T> matrix = applied(op, fetch<T>(a, m, n, lda));                                                    \
      Vector<T> sum = number<T>(alpha) * (matrix * fetch_vector(x, int(matrix.cols()), x_step));                       \
      const T scale = number<T>(beta);                                                                                 \
      want_apart(y, 1, int(matrix.rows()), std::abs(y_step), x, 1, int(matrix.cols()), std::abs(x_step), "x");         \
      if (scale != 0) sum += scale * fetch_vector<T>(y, int(matrix.rows()), y_step);                                   \
      store_vector<T>(y, sum, y_step);                                                                                 \
    });                                                                                                                \
  }                                                                                                                    \
  cublasStatus_t cublas##X##ger(cublasHandle_t h, int m, int n, const T* alpha, const T* x, int x_step, const T* y,    \
                                int y_step, T* a, int lda) {                                                           \
    return perform("cublas" #X "ger", h, [=] {                                                                         \
      store<T>(a,                                                                                                      \
               Matrix<T>(fetch<T>(a, m, n, lda) +                                                                      \
                         number<T>(alpha) * fetch_vector(x, m, x_step) * fetch_vector(y, n, y_step).transpose()),      \
               lda);                                                                                                   \
    });                                                                                                                \
  }                                                                                                                    \
  cublasStatus_t cublas##X##geam(cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,       \
                                 const T* alpha, const T* a, int lda, const T* beta, const T* b, int ldb, T* c,        \
                                 int ldc) {                                                                            \
    return perform("cublas" #X "geam", h, [=] {                                                                        \
      const T left = number<T>(alpha), right = number<T>(beta);                                                        \
      Matrix<T> sum = Matrix<T>::Zero(m, n);                                                                           \
      if (left != 0) add(left, fetch_op<T, T>(op_a, a, m, n, lda), sum);                                               \
      if (right != 0) add(right, fetch_op<T, T>(op_b, b, m, n, ldb), sum);                                             \
      store<T>(c, sum, ldc);                                                                                           \
    });                                                                                                                \
  }                                                                                                                    \
  cublasStatus_t cublas##X##syrk(cublasHandle_t h, cublasFillMode_t fill, cublasOperation_t op, int n, int k,          \
                                 const T* alpha, const T* a, int lda, const T* beta, T* c, int ldc) {                  \
    return perform("cublas" #X "syrk", h, [=] {                                                                        \
      const Matrix<T> left = fetch_op<T, T>(op, a, n, k, lda), old = fetch<T>(c, n, n, ldc);                           \
      const T scale = number<T>(beta);                                                                                 \
      Matrix<T> sum = product<T>(number<T>(alpha), left, left.transpose());                                            \
      if (scale != 0) add(scale, old, sum);                                                                            \
      Matrix<T> result = old; /* the other triangle stays */                                                           \
      if (fill == CUBLAS_FILL_MODE_LOWER)                                                                              \
        result.template triangularView<Eigen::Lower>() = sum;                                                          \
      else                                                                                                             \
        result.template triangularView<Eigen::Upper>() = sum;                                                          \
      store<T>(c, result, ldc);                                                                                        \
    });                                                                                                                \
  }                                                                                                                    \
  cublasStatus_t cublas##X##symm(cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t fill, int m, int n,         \
                                 const T* alpha, const T* a, int lda, const T* b, int ldb, const T* beta, T* c,        \
                                 int ldc) {                                                                            \
    return perform("cublas" #X "symm", h, [=] {                                                                        \
      const int order = side == CUBLAS_SIDE_LEFT ? m : n;                                                              \
      const Matrix<T> left = symmetric<T>(fill, fetch<T>(a, order, order, lda)), right = fetch<T>(b, m, n, ldb);       \
      const T factor = number<T>(alpha);                                                                               \
      Matrix<T> sum = side == CUBLAS_SIDE_LEFT ? product(factor, left, right) : product(factor, right, left);          \
      const T scale = number<T>(beta);                                                                                 \
      if (scale != 0) add(scale, fetch<T>(c, m, n, ldc), sum);                                                         \
      store<T>(c, sum, ldc);                                                                                           \
    });                                                                                                                \
  }                                                                                                                    \
  cublasStatus_t cublas##X##trsm(cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t fill, cublasOperation_t op, \
                                 cublasDiagType_t diagonal, int m, int n, const T* alpha, const T* a, int lda, T* b,   \
                                 int ldb) {                                                                            \
    return perform("cublas" #X "trsm", h, [=] {                                                                        \
      const int order = side == CUBLAS_SIDE_LEFT ? m : n;                                                              \
      Matrix<T> given = fetch<T>(a, order, order, lda);                                                                \
      Matrix<T> triangle = fill == CUBLAS_FILL_MODE_LOWER ? Matrix<T>(given.template triangularView<Eigen::Lower>())   \
                                                          : Matrix<T>(given.template triangularView<Eigen::Upper>());  \
      if (diagonal == CUBLAS_DIAG_UNIT) triangle.diagonal().setOnes();                                                 \
      triangle = applied(op, triangle);                                                                                \
      const bool lower = (fill == CUBLAS_FILL_MODE_LOWER) == (op == CUBLAS_OP_N);                                      \
      Matrix<T> right = number<T>(alpha) * fetch<T>(b, m, n, ldb);                                                     \
      if (side == CUBLAS_SIDE_RIGHT) right.transposeInPlace(), triangle.transposeInPlace();                            \
      if (lower == (side == CUBLAS_SIDE_LEFT))                                                                         \
        triangle.template triangularView<Eigen::Lower>().solveInPlace(right);                                          \
      else                                                                                                             \
        triangle.template triangularView<Eigen::Upper>().solveInPlace(right);                                          \
      if (side == CUBLAS_SIDE_RIGHT) right.transposeInPlace();                                                         \
      store<T>(b, right, ldb);                                                                                         \
    });                                                                                                                \
  }
#define SIMT_BLAS_GEMM(X, T, Sum)                                                                                      \
  cublasStatus_t cublas##X##gemm(cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,       \
                                 int k, const T* alpha, const T* a, int lda, const T* b, int ldb, const T* beta, T* c, \
                                 int ldc) {                                                                            \
    return cublas##X##gemmStridedBatched(h, op_a, op_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1);     \
  }                                                                                                                    \
  cublasStatus_t cublas##X##gemmStridedBatched(cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b,       \
                                               int m, int n, int k, const T* alpha, const T* a, int lda,               \
                                               long long a_stride, const T* b, int ldb, long long b_stride,            \
                                               const T* beta, T* c, int ldc, long long c_stride, int count) {          \
    return perform("cublas" #X "gemm", h, [=] {                                                                        \
      for (int i = 0; i < count; ++i)                                                                                  \
        gemm<T, T, Sum, T>(                                                                                            \
            {op_a, op_b, m, n, k, alpha, a + i * a_stride, lda, b + i * b_stride, ldb, beta, c + i * c_stride, ldc});  \
    });                                                                                                                \
  }                                                                                                                    \
  cublasStatus_t cublas##X##gemmBatched(cublasHandle_t h, cublasOperation_t op_a, cublasOperation_t op_b, int m,       \
                                        int n, int k, const T* alpha, const T* const a[], int lda, const T* const b[], \
                                        int ldb, const T* beta, T* const c[], int ldc, int count) {                    \
    return perform("cublas" #X "gemmBatched", h, [=] {                                                                 \
      for (int i = 0; i < count; ++i)                                                                                  \
        gemm<T, T, Sum, T>(                                                                                            \
            {op_a, op_b, m, n, k, alpha, pointer(a + i), lda, pointer(b + i), ldb, beta, pointer(c + i), ldc});        \
    });                                                                                                                \
  }
SIMT_BLAS(S, s, float)
SIMT_BLAS(D, d, double)
SIMT_BLAS_GEMM(S, float, float)
SIMT_BLAS_GEMM(D, double, double)
SIMT_BLAS_GEMM(H, __half, float)
#undef SIMT_BLAS
#undef SIMT_BLAS_GEMM

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                                          int n, int k, const void* alpha, const void* a, cudaDataType a_type, int lda,
                                          long long a_stride, const void* b, cudaDataType b_type, int ldb,
                                          long long b_stride, const void* beta, void* c, cudaDataType c_type, int ldc,
                                          long long c_stride, int count, cublasComputeType_t compute,
                                          cublasGemmAlgo_t) {
  return perform("cublasGemmEx", handle, [=] {
    want(a_type == b_type, "A and B have different types");
    const auto at = [](auto* p, cudaDataType type, long long elements) {
      return p + static_cast<long long>(bytes_of(type)) * elements;
    };
    for (int i = 0; i < count; ++i)
      gemm({op_a, op_b, m, n, k, alpha, at(static_cast<const char*>(a), a_type, i * a_stride), lda,
            at(static_cast<const char*>(b), b_type, i * b_stride), ldb, beta,
            at(static_cast<char*>(c), c_type, i * c_stride), ldc},
           a_type, c_type, compute);
  });
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                            const void* alpha, const void* a, cudaDataType a_type, int lda, const void* b,
                            cudaDataType b_type, int ldb, const void* beta, void* c, cudaDataType c_type, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  return cublasGemmStridedBatchedEx(handle, op_a, op_b, m, n, k, alpha, a, a_type, lda, 0, b, b_type, ldb, 0, beta, c,
                                    c_type, ldc, 0, 1, compute, algorithm);
}

cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                             const float* alpha, const void* a, cudaDataType a_type, int lda, const void* b,
                             cudaDataType b_type, int ldb, const float* beta, void* c, cudaDataType c_type, int ldc) {
  return cublasGemmEx(handle, op_a, op_b, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc,
                      CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

// ---- matrices of the host

namespace {

template <class T>
cublasStatus_t gemm_of_host(cublasOperation_t op_a, cublasOperation_t op_b, std::size_t m, std::size_t n, std::size_t k,
                            T alpha, const T* a, std::size_t lda, const T* b, std::size_t ldb, T beta, T* c,
                            std::size_t ldc) {
  using Strided = Eigen::Map<const Matrix<T>, 0, Eigen::OuterStride<>>;
  const auto view = [](const T* p, cublasOperation_t op, std::size_t rows, std::size_t columns, std::size_t pitch) {
    if (op != CUBLAS_OP_N) std::swap(rows, columns);
    return applied<T>(op, Strided(p, rows, columns, Eigen::OuterStride<>(pitch)));
  };
  if (ldc < m) return CUBLAS_STATUS_INVALID_VALUE;
  const Matrix<T> sum = product<T>(alpha, view(a, op_a, m, k, lda), view(b, op_b, k, n, ldb));
  Eigen::Map<Matrix<T>, 0, Eigen::OuterStride<>> result(c, m, n, Eigen::OuterStride<>(ldc));
  if (beta == 0)
    result = sum;
  else
    result = sum + beta * result;
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

cublasStatus_t cublasXtSgemm(cublasXtHandle_t, cublasOperation_t op_a, cublasOperation_t op_b, std::size_t m,
                             std::size_t n, std::size_t k, const float* alpha, const float* a, std::size_t lda,
                             const float* b, std::size_t ldb, const float* beta, float* c, std::size_t ldc) {
  return gemm_of_host(op_a, op_b, m, n, k, *alpha, a, lda, b, ldb, *beta, c, ldc);
}
cublasStatus_t cublasXtDgemm(cublasXtHandle_t, cublasOperation_t op_a, cublasOperation_t op_b, std::size_t m,
                             std::size_t n, std::size_t k, const double* alpha, const double* a, std::size_t lda,
                             const double* b, std::size_t ldb, const double* beta, double* c, std::size_t ldc) {
  return gemm_of_host(op_a, op_b, m, n, k, *alpha, a, lda, b, ldb, *beta, c, ldc);
}

// ---- cuBLASLt

namespace {

template <class T>
cublasStatus_t created(T** place, const T& value) {
  *place = new T(value);
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
cublasStatus_t destroyed(T* object) {
  delete object;
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
T value_at(const void* value) {
  T result;
  std::memcpy(&result, value, sizeof result);
  return result;
}

template <class T>
Matrix<float> fetch_laid(const SimtBlasLtLayout& layout, const void* from) {
  if (layout.by_rows) return fetch<T, float>(from, layout.columns, layout.rows, layout.pitch).transpose();
  return fetch<T, float>(from, layout.rows, layout.columns, layout.pitch);
}

// Calls the function with a value of the type.
template <class Function>
auto with_type(cudaDataType type, const Function& function) {
  switch (type) {
    case CUDA_R_32F:
      return function(float());
    case CUDA_R_16F:
      return function(__half());
    case CUDA_R_16BF:
      return function(__nv_bfloat16());
    default:
      throw Wrong{CUBLAS_STATUS_NOT_SUPPORTED,
                  "type " + std::to_string(type) + " (cudaDataType): not part of the engine"};
  }
}

Matrix<float> fetch_laid(const SimtBlasLtLayout& layout, const void* from, int batch) {
  return with_type(layout.type, [&](auto type) {
    return fetch_laid<decltype(type)>(layout, static_cast<const decltype(type)*>(from) + batch * layout.stride);
  });
}

void finish(const SimtBlasLtProduct& product, const SimtBlasLtLayout& d, Matrix<float>& result) {
  const int epilogue = product.epilogue;
  if ((epilogue & ~(CUBLASLT_EPILOGUE_RELU_BIAS | CUBLASLT_EPILOGUE_GELU | CUBLASLT_EPILOGUE_DEFAULT)) != 0)
    throw Wrong{CUBLAS_STATUS_NOT_SUPPORTED, "epilogue " + std::to_string(epilogue) + ": not part of the engine"};
  if ((epilogue & CUBLASLT_EPILOGUE_BIAS) != 0) {
    const cudaDataType type = product.bias_type < 0 ? d.type : static_cast<cudaDataType>(product.bias_type);
    const int rows = static_cast<int>(result.rows());
    result.colwise() += with_type(type, [&](auto one) -> Vector<float> {
      return fetch<decltype(one), float>(product.bias, rows, 1, rows).reshaped();
    });
  }
  if ((epilogue & CUBLASLT_EPILOGUE_RELU) != 0) result = result.cwiseMax(0.0f);
  if ((epilogue & CUBLASLT_EPILOGUE_GELU) != 0)
    result = result.unaryExpr(
        [](float x) { return 0.5f * x * (1 + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x))); });
}

}  // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { return cublasCreate(handle); }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return cublasDestroy(handle); }
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t compute,
                                        cudaDataType scale_type) {
  SimtBlasLtProduct made;
  made.compute = compute;
  made.scale_type = scale_type;
  return created(product, made);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) { return destroyed(product); }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      product->op_a = value_at<cublasOperation_t>(value);
      break;
    case CUBLASLT_MATMUL_DESC_TRANSB:
      product->op_b = value_at<cublasOperation_t>(value);
      break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      product->epilogue = value_at<cublasLtEpilogue_t>(value);
      break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      product->bias = value_at<const void*>(value);
      break;
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      product->bias_type = value_at<int>(value);
      break;
    case CUBLASLT_MATMUL_DESC_POINTER_MODE:
      product->mode = value_at<int>(value) == 0 ? CUBLAS_POINTER_MODE_HOST : CUBLAS_POINTER_MODE_DEVICE;
      break;
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE:
      break;
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t pitch) {
  return created(layout,
                 SimtBlasLtLayout{type, static_cast<int>(rows), static_cast<int>(columns), static_cast<int>(pitch)});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return destroyed(layout); }
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                std::size_t) {
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_ORDER:
      layout->by_rows = value_at<int>(value) == CUBLASLT_ORDER_ROW;
      break;
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      layout->count = value_at<int>(value);
      break;
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      layout->stride = value_at<std::int64_t>(value);
      break;
    case CUBLASLT_MATRIX_LAYOUT_LD:
      layout->pitch = static_cast<int>(value_at<std::int64_t>(value));
      break;
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return created(preference, SimtBlasLtPreference{});
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) { return destroyed(preference); }
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int asked,
                                              cublasLtMatmulHeuristicResult_t* results, int* count) {
  *count = std::min(asked, 1);
  if (*count == 1) *results = {};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t*, void*, std::size_t,
                              cudaStream_t stream) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  SimtBlas on = *handle;
  on.stream = stream;
  on.mode = product->mode;
  return perform(
      "cublasLtMatmul", &on, [=, p = *product, la = *a_layout, lb = *b_layout, lc = *c_layout, ld = *d_layout] {
        const auto scale = [&](const void* from) {
          return with_type(p.scale_type, [&](auto type) { return static_cast<float>(number<decltype(type)>(from)); });
        };
        for (int i = 0; i < ld.count; ++i) {
          const Matrix<float> left = applied(p.op_a, fetch_laid(la, a, i)),
                              right = applied(p.op_b, fetch_laid(lb, b, i));
          want(left.cols() == right.rows() && left.rows() == ld.rows && right.cols() == ld.columns,
               "the shapes of A, B and D do not fit");
          Matrix<float> result = ::product(scale(alpha), left, right);
          if (const float factor = scale(beta); factor != 0) add(factor, fetch_laid(lc, c, i), result);
          finish(p, ld, result);
          if (ld.by_rows) result.transposeInPlace();
          with_type(ld.type, [&](auto type) {
            store<decltype(type), float>(static_cast<decltype(type)*>(d) + i * ld.stride, result, ld.pitch);
            return 0;
          });
        }
      });
}
