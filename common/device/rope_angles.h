// RoPE's angles, eight pairs of a row at a time. Pair i of a row, elements i and i + D/2, is turned by the angle
// position * 10000^(-2i/D); chapter 09 is about where that is done.
#pragma once

#include <cstddef>
#include <cstdlib>

#include "device/cuda.h"
#include "device/numeric.h"

namespace rope_angles {

// Where the row of a position begins in a table. In 64 bits: at D = 128, position 2^25 is element 2^31.
template <int D>
__device__ size_t row_of(int position) {
  return size_t(unsigned(abs(position))) * (D / 2);
}

// The angles of pairs i ... i + 7 of a row.
struct Angles {
  alignas(16) float cos[8], sin[8];
};

// From attention::RopeTables: row p of its tables, cos and sin, belongs to position p, or -p with the sine's sign
// turned.
template <int D, class Tables>
__device__ Angles angles_of(const Tables& rope, int position, int i) {
  const size_t at = row_of<D>(position) + i;
  Angles angles;
#pragma unroll
  for (int e = 0; e < 8; e += 4) {  // 16 bytes a load
    *reinterpret_cast<float4*>(angles.cos + e) = *reinterpret_cast<const float4*>(rope.cos + at + e);
    *reinterpret_cast<float4*>(angles.sin + e) = *reinterpret_cast<const float4*>(rope.sin + at + e);
  }
#pragma unroll
  for (int e = 0; e < 8; e++)
    if (position < 0) angles.sin[e] = -angles.sin[e];
  return angles;
}

// Turns eight pairs: x1 are elements i ... i + 7 of a row, x2 their partners i + D/2 ... i + D/2 + 7.
template <class T>
__device__ void turn(Pack8<T>& x1, Pack8<T>& x2, const Angles& angles) {
#pragma unroll
  for (int e = 0; e < 8; e++) {
    const float a = to_float(x1.x[e]), b = to_float(x2.x[e]);
    x1.x[e] = from_float<T>(a * angles.cos[e] - b * angles.sin[e]);
    x2.x[e] = from_float<T>(a * angles.sin[e] + b * angles.cos[e]);
  }
}

// The angles of pairs i and i + 1 of a row.
struct TwoAngles {
  float2 cos, sin;
};

template <int D, class Tables>
__device__ TwoAngles two_angles_of(const Tables& rope, int position, int i) {
  const size_t at = row_of<D>(position) + i;
  TwoAngles angles = {*reinterpret_cast<const float2*>(rope.cos + at), *reinterpret_cast<const float2*>(rope.sin + at)};
  if (position < 0) angles.sin = make_float2(-angles.sin.x, -angles.sin.y);
  return angles;
}

// Turns pairs i and i + 1 of a row back: x1 are the two elements i and i + 1, x2 their partners.
__device__ inline void turn_back(float2& x1, float2& x2, const TwoAngles& angles) {
  const float2 a = x1, b = x2, cos = angles.cos, sin = angles.sin;
  x1 = make_float2(a.x * cos.x + b.x * sin.x, a.y * cos.y + b.y * sin.y);
  x2 = make_float2(b.x * cos.x - a.x * sin.x, b.y * cos.y - a.y * sin.y);
}

}  // namespace rope_angles
