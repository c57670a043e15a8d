// The words CUDA adds to C++, and its vector types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

// Inline functions of kernels that are traced do more than those of others. They have a namespace of their own, so that
// a program may have both: the linker keeps one of two functions with the same name.
#ifdef SIMT_TRACED
#define SIMT_VARIANT traced
#else
#define SIMT_VARIANT plain
#endif

#ifndef SIMT_FRONT  // simt-compile (front/) takes the words for what they are
#ifdef SIMT_TRACED
// Every access is counted at the kernel's line that it comes from: all is inlined into the kernel, as by nvcc.
#define __global__ __attribute__((noinline))
#define __device__ __attribute__((always_inline))
#else
#define __global__
#define __device__
#endif
#define __host__
#define __constant__
#define __managed__
#define __forceinline__ inline __attribute__((always_inline))  // __noinline__ is missing: it is a word of libstdc++'s
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __grid_constant__
// A block runs on one OS thread from start to end, so one copy per OS thread is one copy per resident block. The tag
// becomes part of the variable's mangled name: by it the engine knows its own among all thread_locals (modules.cc).
// constinit: else g++ has the kernel write beside an array of __half that it has been initialized.
#define __shared__ static constinit thread_local __attribute__((abi_tag("shared")))
#endif

namespace simt {
// What __shfl_sync() and the like move: numbers (and half.h's).
template <class T>
inline constexpr bool is_shuffled = std::is_arithmetic_v<T> || std::is_enum_v<T>;
}  // namespace simt

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

struct alignas(8) int2 {
  int x, y;
};
struct int3 {
  int x, y, z;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct float3 {
  float x, y, z;
};
struct alignas(16) float4 {
  float x, y, z, w;
};

inline int2 make_int2(int x, int y) { return {x, y}; }
inline int3 make_int3(int x, int y, int z) { return {x, y, z}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float3 make_float3(float x, float y, float z) { return {x, y, z}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
