// Complex numbers under CUDA's names, for C: pairs.
#pragma once

#include <cuda_runtime.h>

#include <cmath>

using cuFloatComplex = float2;
using cuDoubleComplex = double2;
using cuComplex = cuFloatComplex;

#define SIMT_COMPLEX(suffix, Complex, Real)                                                                  \
  __host__ __device__ inline Real cuCreal##suffix(Complex x) { return x.x; }                                 \
  __host__ __device__ inline Real cuCimag##suffix(Complex x) { return x.y; }                                 \
  __host__ __device__ inline Complex cuConj##suffix(Complex x) { return {x.x, -x.y}; }                       \
  __host__ __device__ inline Complex cuCadd##suffix(Complex x, Complex y) { return {x.x + y.x, x.y + y.y}; } \
  __host__ __device__ inline Complex cuCsub##suffix(Complex x, Complex y) { return {x.x - y.x, x.y - y.y}; } \
  __host__ __device__ inline Complex cuCmul##suffix(Complex x, Complex y) {                                  \
    return {x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x};                                                   \
  }                                                                                                          \
  /* Divided by the larger part first, so that no square overflows. */                                       \
  __host__ __device__ inline Complex cuCdiv##suffix(Complex x, Complex y) {                                  \
    const Real scale = 1 / (std::fabs(y.x) + std::fabs(y.y));                                                \
    const Complex a = {x.x * scale, x.y * scale}, b = {y.x * scale, y.y * scale};                            \
    const Real over = 1 / (b.x * b.x + b.y * b.y);                                                           \
    return {(a.x * b.x + a.y * b.y) * over, (a.y * b.x - a.x * b.y) * over};                                 \
  }                                                                                                          \
  __host__ __device__ inline Real cuCabs##suffix(Complex x) { return std::hypot(x.x, x.y); }                 \
  __host__ __device__ inline Complex cuCfma##suffix(Complex x, Complex y, Complex z) {                       \
    return {x.x * y.x - x.y * y.y + z.x, x.x * y.y + x.y * y.x + z.y};                                       \
  }
SIMT_COMPLEX(f, cuFloatComplex, float)
SIMT_COMPLEX(, cuDoubleComplex, double)
#undef SIMT_COMPLEX

__host__ __device__ inline cuFloatComplex make_cuFloatComplex(float real, float imaginary) { return {real, imaginary}; }
__host__ __device__ inline cuDoubleComplex make_cuDoubleComplex(double real, double imaginary) {
  return {real, imaginary};
}
__host__ __device__ inline cuComplex make_cuComplex(float real, float imaginary) { return {real, imaginary}; }
__host__ __device__ inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex x) { return {x.x, x.y}; }
__host__ __device__ inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex x) {
  return {static_cast<float>(x.x), static_cast<float>(x.y)};
}
