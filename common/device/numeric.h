// fp16 and bf16 storage, fp32 arithmetic: conversions, pairs in one register (4 bytes), and eight elements (16 bytes)
// at a time. Written for kernels that are templates over the storage type T: __half (fp16) or __nv_bfloat16 (bf16).
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "device/cuda.h"

#ifdef WORKBOOK_SIMT  // what nvcc has, and no kernel here uses: a solution of somebody's may
#include "simt/cuda/half_arithmetic.h"
#include "simt/cuda/intrinsics.h"
#include "simt/cuda/warp.h"
#endif

// References, because GCC gives the load of an argument by value no line of its own, and ./workbook trace charges it to
// whatever line the compiler has put before it.
__host__ __device__ inline float to_float(const __half& x) { return __half2float(x); }
__host__ __device__ inline float to_float(const __nv_bfloat16& x) { return __bfloat162float(x); }

// Rounds to nearest, ties to even: from_float<T>(x).
template <class T>
__host__ __device__ inline T from_float(float x);
template <>
__host__ __device__ inline __half from_float<__half>(float x) {
  return __float2half_rn(x);
}
template <>
__host__ __device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

// Two elements in one 32-bit register, `low` in the lower half, as the fragments of device/mma.h hold them. Each is
// rounded to nearest, ties to even. One instruction from compute capability 8.0 on (cvt.rn.f16x2.f32,
// cvt.rn.bf16x2.f32).
template <class T>
__device__ inline uint32_t pack2(float low, float high) {
  const auto pair = [&] {
    if constexpr (std::is_same_v<T, __half>)
      return __floats2half2_rn(low, high);
    else
      return __floats2bfloat162_rn(low, high);
  }();
  uint32_t packed;
  static_assert(sizeof(pair) == sizeof(packed));
  memcpy(&packed, &pair, sizeof(packed));
  return packed;
}

// The two elements of such a register: x from the lower half, y from the upper.
template <class T>
__device__ inline float2 unpack2(uint32_t packed) {
  T pair[2];
  memcpy(pair, &packed, sizeof(pair));
  return make_float2(to_float(pair[0]), to_float(pair[1]));
}

// Eight elements in one register quadruple, moved by one 16-byte instruction.
template <class T>
struct alignas(16) Pack8 {
  T x[8];
};

// One 16-byte load; `from` must be 16-byte aligned. Global or shared memory.
template <class T>
__device__ inline Pack8<T> load_pack8(const T* from) {
  Pack8<T> pack;
  *reinterpret_cast<uint4*>(&pack) = *reinterpret_cast<const uint4*>(from);
  return pack;
}

// One 16-byte store; `to` must be 16-byte aligned. Global or shared memory. (nvcc makes four stores of it where the
// address is written so that it does not see this: ./workbook dev verify shows them.)
template <class T>
__device__ inline void store_pack8(T* to, const Pack8<T>& pack) {
  *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(&pack);
}
