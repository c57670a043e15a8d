// Arithmetic on fp16 and bf16, and on pairs of them, under CUDA's names: what half.h does not have, because no chapter
// uses it. Computed in fp32 (a fused multiply-add in fp64) and rounded once.
#pragma once

#include <cmath>

#include "simt/cuda/conversions.h"
#include "simt/cuda/half.h"

#define SIMT_ONE(H, name, expression) \
  __device__ inline H name(H a) { return H(static_cast<float>(expression)); }
#define SIMT_TWO(H, name, expression) \
  __device__ inline H name(H a, H b) { return H(static_cast<float>(expression)); }
#define SIMT_COMPARE(H, H2, name, operation)                                             \
  __device__ inline bool __h##name(H a, H b) { return float(a) operation float(b); }     \
  __device__ inline H2 __h##name##2(H2 a, H2 b) {                                        \
    return {H(__h##name(a.x, b.x) ? 1.0f : 0.0f), H(__h##name(a.y, b.y) ? 1.0f : 0.0f)}; \
  }                                                                                      \
  __device__ inline bool __hb##name##2(H2 a, H2 b) { return __h##name(a.x, b.x) && __h##name(a.y, b.y); }
#define SIMT_PAIR_ONE(H2, name, of_one) \
  __device__ inline H2 name(H2 a) { return {of_one(a.x), of_one(a.y)}; }
#define SIMT_PAIR_TWO(H2, name, of_one) \
  __device__ inline H2 name(H2 a, H2 b) { return {of_one(a.x, b.x), of_one(a.y, b.y)}; }
#define SIMT_FUNCTION(H, H2, name, expression) \
  SIMT_ONE(H, h##name, expression)             \
  SIMT_PAIR_ONE(H2, h2##name, h##name)
#define SIMT_OPERATOR(H2, operation)                                                                     \
  __device__ inline H2 operator operation(H2 a, H2 b) { return {a.x operation b.x, a.y operation b.y}; } \
  __device__ inline H2& operator operation##=(H2& a, H2 b) { return a = a operation b; }

#define SIMT_ARITHMETIC(H, H2)                                                                              \
  SIMT_TWO(H, __hadd, float(a) + float(b))                                                                  \
  SIMT_TWO(H, __hsub, float(a) - float(b))                                                                  \
  SIMT_TWO(H, __hmul, float(a) * float(b))                                                                  \
  SIMT_TWO(H, __hdiv, float(a) / float(b))                                                                  \
  SIMT_TWO(H, __hadd_rn, float(a) + float(b))                                                               \
  SIMT_TWO(H, __hsub_rn, float(a) - float(b))                                                               \
  SIMT_TWO(H, __hmul_rn, float(a) * float(b))                                                               \
  SIMT_TWO(H, __hmax, fmaxf(float(a), float(b)))                                                            \
  SIMT_TWO(H, __hmin, fminf(float(a), float(b)))                                                            \
  SIMT_ONE(H, __hneg, -float(a))                                                                            \
  SIMT_ONE(H, __habs, fabsf(float(a)))                                                                      \
  __device__ inline H __hfma(H a, H b, H c) {                                                               \
    return H(static_cast<float>(fma(double(float(a)), double(float(b)), double(float(c)))));                \
  }                                                                                                         \
  SIMT_PAIR_TWO(H2, __hadd2, __hadd)                                                                        \
  SIMT_PAIR_TWO(H2, __hsub2, __hsub)                                                                        \
  SIMT_PAIR_TWO(H2, __hmul2, __hmul)                                                                        \
  SIMT_PAIR_TWO(H2, __hadd2_rn, __hadd)                                                                     \
  SIMT_PAIR_TWO(H2, __hmul2_rn, __hmul)                                                                     \
  SIMT_PAIR_TWO(H2, __h2div, __hdiv)                                                                        \
  SIMT_PAIR_TWO(H2, __hmax2, __hmax)                                                                        \
  SIMT_PAIR_TWO(H2, __hmin2, __hmin)                                                                        \
  SIMT_PAIR_ONE(H2, __hneg2, __hneg)                                                                        \
  SIMT_PAIR_ONE(H2, __habs2, __habs)                                                                        \
  __device__ inline H2 __hfma2(H2 a, H2 b, H2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; } \
  SIMT_COMPARE(H, H2, eq, ==)                                                                               \
  SIMT_COMPARE(H, H2, ne, !=)                                                                               \
  SIMT_COMPARE(H, H2, lt, <)                                                                                \
  SIMT_COMPARE(H, H2, le, <=)                                                                               \
  SIMT_COMPARE(H, H2, gt, >)                                                                                \
  SIMT_COMPARE(H, H2, ge, >=)                                                                               \
  SIMT_FUNCTION(H, H2, exp, expf(float(a)))                                                                 \
  SIMT_FUNCTION(H, H2, exp2, exp2f(float(a)))                                                               \
  SIMT_FUNCTION(H, H2, log, logf(float(a)))                                                                 \
  SIMT_FUNCTION(H, H2, log2, log2f(float(a)))                                                               \
  SIMT_FUNCTION(H, H2, sqrt, sqrtf(float(a)))                                                               \
  SIMT_FUNCTION(H, H2, rsqrt, 1.0f / sqrtf(float(a)))                                                       \
  SIMT_FUNCTION(H, H2, rcp, 1.0f / float(a))                                                                \
  SIMT_FUNCTION(H, H2, sin, sinf(float(a)))                                                                 \
  SIMT_FUNCTION(H, H2, cos, cosf(float(a)))                                                                 \
  SIMT_FUNCTION(H, H2, tanh, tanhf(float(a)))                                                               \
  SIMT_FUNCTION(H, H2, floor, floorf(float(a)))                                                             \
  SIMT_FUNCTION(H, H2, ceil, ceilf(float(a)))                                                               \
  SIMT_OPERATOR(H2, +)                                                                                      \
  SIMT_OPERATOR(H2, -)                                                                                      \
  SIMT_OPERATOR(H2, *)                                                                                      \
  SIMT_OPERATOR(H2, /)                                                                                      \
  __device__ inline H2 operator-(H2 a) { return {-a.x, -a.y}; }                                             \
  __device__ inline bool operator==(H2 a, H2 b) { return a.x == b.x && a.y == b.y; }                        \
  __device__ inline bool operator!=(H2 a, H2 b) { return a.x != b.x && a.y != b.y; }                        \
  __device__ inline int __hisinf(H a) { return std::isinf(float(a)) ? (float(a) < 0 ? -1 : 1) : 0; }        \
  __device__ inline H2 __hisnan2(H2 a) { return {H(__hisnan(a.x) ? 1.0f : 0.0f), H(__hisnan(a.y) ? 1.0f : 0.0f)}; }

SIMT_ARITHMETIC(__half, __half2)
SIMT_ARITHMETIC(__nv_bfloat16, __nv_bfloat162)
#undef SIMT_ONE
#undef SIMT_TWO
#undef SIMT_COMPARE
#undef SIMT_PAIR_ONE
#undef SIMT_PAIR_TWO
#undef SIMT_FUNCTION
#undef SIMT_OPERATOR
#undef SIMT_ARITHMETIC

// ---- halves of pairs, and other types

inline __half2 __low2half2(__half2 v) { return {v.x, v.x}; }
inline __half2 __high2half2(__half2 v) { return {v.y, v.y}; }
inline __half2 __lows2half2(__half2 a, __half2 b) { return {a.x, b.x}; }
inline __half2 __highs2half2(__half2 a, __half2 b) { return {a.y, b.y}; }
inline __half2 __lowhigh2highlow(__half2 v) { return {v.y, v.x}; }
inline __nv_bfloat162 __low2bfloat162(__nv_bfloat162 v) { return {v.x, v.x}; }
inline __nv_bfloat162 __high2bfloat162(__nv_bfloat162 v) { return {v.y, v.y}; }
inline __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return {a.x, b.x}; }
inline __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return {a.y, b.y}; }
inline short __half_as_short(__half x) { return static_cast<short>(x.bits); }
inline __half __short_as_half(short bits) { return __ushort_as_half(static_cast<unsigned short>(bits)); }

inline __half __double2half(double x) { return __half(static_cast<float>(x)); }
inline __half __int2half_rn(int x) { return __half(static_cast<float>(x)); }
inline __half __uint2half_rn(unsigned x) { return __half(static_cast<float>(x)); }
inline __half __short2half_rn(short x) { return __half(static_cast<float>(x)); }
inline __half __ushort2half_rn(unsigned short x) { return __half(static_cast<float>(x)); }
inline int __half2int_rn(__half x) { return simt::saturated<int>(nearbyintf(float(x))); }
inline int __half2int_rz(__half x) { return simt::saturated<int>(float(x)); }
inline unsigned __half2uint_rn(__half x) { return simt::saturated<unsigned>(nearbyintf(float(x))); }
inline short __half2short_rn(__half x) { return simt::saturated<short>(nearbyintf(float(x))); }
inline __nv_bfloat16 __double2bfloat16(double x) { return __nv_bfloat16(static_cast<float>(x)); }
inline __nv_bfloat16 __int2bfloat16_rn(int x) { return __nv_bfloat16(static_cast<float>(x)); }
inline int __bfloat162int_rn(__nv_bfloat16 x) { return simt::saturated<int>(nearbyintf(float(x))); }
inline int __bfloat162int_rz(__nv_bfloat16 x) { return simt::saturated<int>(float(x)); }

using __nv_half = __half;
using __nv_half2 = __half2;
