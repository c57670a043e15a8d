// CUDA's vector types that types.h does not have: no chapter uses them, but who solves an exercise may.
#pragma once

#include "simt/engine/types.h"

// Members x, y, z, w, and make_TYPE(x, ..); alignments are CUDA's.
#define SIMT_VECTORS(name, T, two, four)                                \
  struct name##1 {                                                      \
    T x;                                                                \
  };                                                                    \
  struct alignas(two) name##2 {                                         \
    T x, y;                                                             \
  };                                                                    \
  struct name##3 {                                                      \
    T x, y, z;                                                          \
  };                                                                    \
  struct alignas(four) name##4 {                                        \
    T x, y, z, w;                                                       \
  };                                                                    \
  constexpr name##1 make_##name##1(T x) { return {x}; }                 \
  constexpr name##2 make_##name##2(T x, T y) { return {x, y}; }         \
  constexpr name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; } \
  constexpr name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

SIMT_VECTORS(char, signed char, 2, 4)
SIMT_VECTORS(uchar, unsigned char, 2, 4)
SIMT_VECTORS(short, short, 4, 8)
SIMT_VECTORS(ushort, unsigned short, 4, 8)
SIMT_VECTORS(long, long, 16, 16)
SIMT_VECTORS(ulong, unsigned long, 16, 16)
SIMT_VECTORS(longlong, long long, 16, 16)
SIMT_VECTORS(ulonglong, unsigned long long, 16, 16)
SIMT_VECTORS(double, double, 16, 16)
#undef SIMT_VECTORS

// Since CUDA 13 these say how they are aligned.
#define SIMT_VECTOR(name, T, alignment)              \
  struct alignas(alignment) name##4_##alignment##a { \
    T x, y, z, w;                                    \
  };                                                 \
  constexpr name##4_##alignment##a make_##name##4_##alignment##a(T x, T y, T z, T w) { return {x, y, z, w}; }
#define SIMT_VECTORS(name, T) SIMT_VECTOR(name, T, 16) SIMT_VECTOR(name, T, 32)
SIMT_VECTORS(long, long)
SIMT_VECTORS(ulong, unsigned long)
SIMT_VECTORS(longlong, long long)
SIMT_VECTORS(ulonglong, unsigned long long)
SIMT_VECTORS(double, double)
#undef SIMT_VECTORS
#undef SIMT_VECTOR

struct int1 {
  int x;
};
struct uint1 {
  unsigned x;
};
struct float1 {
  float x;
};
constexpr int1 make_int1(int x) { return {x}; }
constexpr uint1 make_uint1(unsigned x) { return {x}; }
constexpr float1 make_float1(float x) { return {x}; }
