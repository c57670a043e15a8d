// Arithmetic of CUDA's vector types, as NVIDIA's samples have it.
#pragma once

#include <cuda_runtime.h>

#include <cmath>

#define SIMT_INLINE inline __attribute__((always_inline))  // no keywords of CUDA: this folder is a system one

SIMT_INLINE float clamp(float f, float a, float b) { return fmaxf(a, fminf(f, b)); }
SIMT_INLINE int clamp(int f, int a, int b) { return f < a ? a : f > b ? b : f; }
SIMT_INLINE unsigned clamp(unsigned f, unsigned a, unsigned b) { return f < a ? a : f > b ? b : f; }

SIMT_INLINE float2 operator+(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
SIMT_INLINE float2 operator+(float2 a, float b) { return make_float2(a.x + b, a.y + b); }
SIMT_INLINE float2 operator+(float a, float2 b) { return make_float2(a + b.x, a + b.y); }
SIMT_INLINE void operator+=(float2& a, float2 b) { a = a + b; }
SIMT_INLINE void operator+=(float2& a, float b) { a = a + b; }
SIMT_INLINE float2 operator-(float2 a, float2 b) { return make_float2(a.x - b.x, a.y - b.y); }
SIMT_INLINE float2 operator-(float2 a, float b) { return make_float2(a.x - b, a.y - b); }
SIMT_INLINE float2 operator-(float a, float2 b) { return make_float2(a - b.x, a - b.y); }
SIMT_INLINE void operator-=(float2& a, float2 b) { a = a - b; }
SIMT_INLINE void operator-=(float2& a, float b) { a = a - b; }
SIMT_INLINE float2 operator*(float2 a, float2 b) { return make_float2(a.x * b.x, a.y * b.y); }
SIMT_INLINE float2 operator*(float2 a, float b) { return make_float2(a.x * b, a.y * b); }
SIMT_INLINE float2 operator*(float a, float2 b) { return make_float2(a * b.x, a * b.y); }
SIMT_INLINE void operator*=(float2& a, float2 b) { a = a * b; }
SIMT_INLINE void operator*=(float2& a, float b) { a = a * b; }
SIMT_INLINE float2 operator/(float2 a, float2 b) { return make_float2(a.x / b.x, a.y / b.y); }
SIMT_INLINE float2 operator/(float2 a, float b) { return make_float2(a.x / b, a.y / b); }
SIMT_INLINE float2 operator/(float a, float2 b) { return make_float2(a / b.x, a / b.y); }
SIMT_INLINE void operator/=(float2& a, float2 b) { a = a / b; }
SIMT_INLINE void operator/=(float2& a, float b) { a = a / b; }
SIMT_INLINE float2 operator-(float2 a) { return make_float2(-a.x, -a.y); }
SIMT_INLINE float2 make_float2(float s) { return make_float2(s, s); }
SIMT_INLINE float dot(float2 a, float2 b) { return a.x * b.x + a.y * b.y; }
SIMT_INLINE float2 clamp(float2 v, float a, float b) { return make_float2(clamp(v.x, a, b), clamp(v.y, a, b)); }
SIMT_INLINE float2 clamp(float2 v, float2 a, float2 b) {
  return make_float2(clamp(v.x, a.x, b.x), clamp(v.y, a.y, b.y));
}
SIMT_INLINE float2 fminf(float2 a, float2 b) { return make_float2(fminf(a.x, b.x), fminf(a.y, b.y)); }
SIMT_INLINE float2 fmaxf(float2 a, float2 b) { return make_float2(fmaxf(a.x, b.x), fmaxf(a.y, b.y)); }
SIMT_INLINE int2 operator+(int2 a, int2 b) { return make_int2(a.x + b.x, a.y + b.y); }
SIMT_INLINE int2 operator+(int2 a, int b) { return make_int2(a.x + b, a.y + b); }
SIMT_INLINE int2 operator+(int a, int2 b) { return make_int2(a + b.x, a + b.y); }
SIMT_INLINE void operator+=(int2& a, int2 b) { a = a + b; }
SIMT_INLINE void operator+=(int2& a, int b) { a = a + b; }
SIMT_INLINE int2 operator-(int2 a, int2 b) { return make_int2(a.x - b.x, a.y - b.y); }
SIMT_INLINE int2 operator-(int2 a, int b) { return make_int2(a.x - b, a.y - b); }
SIMT_INLINE int2 operator-(int a, int2 b) { return make_int2(a - b.x, a - b.y); }
SIMT_INLINE void operator-=(int2& a, int2 b) { a = a - b; }
SIMT_INLINE void operator-=(int2& a, int b) { a = a - b; }
SIMT_INLINE int2 operator*(int2 a, int2 b) { return make_int2(a.x * b.x, a.y * b.y); }
SIMT_INLINE int2 operator*(int2 a, int b) { return make_int2(a.x * b, a.y * b); }
SIMT_INLINE int2 operator*(int a, int2 b) { return make_int2(a * b.x, a * b.y); }
SIMT_INLINE void operator*=(int2& a, int2 b) { a = a * b; }
SIMT_INLINE void operator*=(int2& a, int b) { a = a * b; }
SIMT_INLINE int2 operator-(int2 a) { return make_int2(-a.x, -a.y); }
SIMT_INLINE int2 make_int2(int s) { return make_int2(s, s); }
SIMT_INLINE int dot(int2 a, int2 b) { return a.x * b.x + a.y * b.y; }
SIMT_INLINE int2 clamp(int2 v, int a, int b) { return make_int2(clamp(v.x, a, b), clamp(v.y, a, b)); }
SIMT_INLINE int2 clamp(int2 v, int2 a, int2 b) { return make_int2(clamp(v.x, a.x, b.x), clamp(v.y, a.y, b.y)); }
SIMT_INLINE int2 min(int2 a, int2 b) { return make_int2(min(a.x, b.x), min(a.y, b.y)); }
SIMT_INLINE int2 max(int2 a, int2 b) { return make_int2(max(a.x, b.x), max(a.y, b.y)); }
SIMT_INLINE uint2 operator+(uint2 a, uint2 b) { return make_uint2(a.x + b.x, a.y + b.y); }
SIMT_INLINE uint2 operator+(uint2 a, unsigned b) { return make_uint2(a.x + b, a.y + b); }
SIMT_INLINE uint2 operator+(unsigned a, uint2 b) { return make_uint2(a + b.x, a + b.y); }
SIMT_INLINE void operator+=(uint2& a, uint2 b) { a = a + b; }
SIMT_INLINE void operator+=(uint2& a, unsigned b) { a = a + b; }
SIMT_INLINE uint2 operator-(uint2 a, uint2 b) { return make_uint2(a.x - b.x, a.y - b.y); }
SIMT_INLINE uint2 operator-(uint2 a, unsigned b) { return make_uint2(a.x - b, a.y - b); }
SIMT_INLINE uint2 operator-(unsigned a, uint2 b) { return make_uint2(a - b.x, a - b.y); }
SIMT_INLINE void operator-=(uint2& a, uint2 b) { a = a - b; }
SIMT_INLINE void operator-=(uint2& a, unsigned b) { a = a - b; }
SIMT_INLINE uint2 operator*(uint2 a, uint2 b) { return make_uint2(a.x * b.x, a.y * b.y); }
SIMT_INLINE uint2 operator*(uint2 a, unsigned b) { return make_uint2(a.x * b, a.y * b); }
SIMT_INLINE uint2 operator*(unsigned a, uint2 b) { return make_uint2(a * b.x, a * b.y); }
SIMT_INLINE void operator*=(uint2& a, uint2 b) { a = a * b; }
SIMT_INLINE void operator*=(uint2& a, unsigned b) { a = a * b; }
SIMT_INLINE uint2 make_uint2(unsigned s) { return make_uint2(s, s); }
SIMT_INLINE unsigned dot(uint2 a, uint2 b) { return a.x * b.x + a.y * b.y; }
SIMT_INLINE uint2 clamp(uint2 v, unsigned a, unsigned b) { return make_uint2(clamp(v.x, a, b), clamp(v.y, a, b)); }
SIMT_INLINE uint2 clamp(uint2 v, uint2 a, uint2 b) { return make_uint2(clamp(v.x, a.x, b.x), clamp(v.y, a.y, b.y)); }
SIMT_INLINE uint2 min(uint2 a, uint2 b) { return make_uint2(min(a.x, b.x), min(a.y, b.y)); }
SIMT_INLINE uint2 max(uint2 a, uint2 b) { return make_uint2(max(a.x, b.x), max(a.y, b.y)); }
SIMT_INLINE float length(float2 v) { return sqrtf(dot(v, v)); }
SIMT_INLINE float2 normalize(float2 v) { return v * (1.0f / sqrtf(dot(v, v))); }
SIMT_INLINE float2 lerp(float2 a, float2 b, float t) { return a + t * (b - a); }
SIMT_INLINE float2 floorf(float2 v) { return make_float2(floorf(v.x), floorf(v.y)); }
SIMT_INLINE float2 fabs(float2 v) { return make_float2(fabsf(v.x), fabsf(v.y)); }
SIMT_INLINE float fracf(float v) { return v - floorf(v); }
SIMT_INLINE float2 fracf(float2 v) { return make_float2(fracf(v.x), fracf(v.y)); }
SIMT_INLINE float2 reflect(float2 i, float2 n) { return i - 2.0f * n * dot(n, i); }
SIMT_INLINE float2 make_float2(int2 a) { return make_float2(float(a.x), float(a.y)); }
SIMT_INLINE float2 make_float2(uint2 a) { return make_float2(float(a.x), float(a.y)); }
SIMT_INLINE float3 operator+(float3 a, float3 b) { return make_float3(a.x + b.x, a.y + b.y, a.z + b.z); }
SIMT_INLINE float3 operator+(float3 a, float b) { return make_float3(a.x + b, a.y + b, a.z + b); }
SIMT_INLINE float3 operator+(float a, float3 b) { return make_float3(a + b.x, a + b.y, a + b.z); }
SIMT_INLINE void operator+=(float3& a, float3 b) { a = a + b; }
SIMT_INLINE void operator+=(float3& a, float b) { a = a + b; }
SIMT_INLINE float3 operator-(float3 a, float3 b) { return make_float3(a.x - b.x, a.y - b.y, a.z - b.z); }
SIMT_INLINE float3 operator-(float3 a, float b) { return make_float3(a.x - b, a.y - b, a.z - b); }
SIMT_INLINE float3 operator-(float a, float3 b) { return make_float3(a - b.x, a - b.y, a - b.z); }
SIMT_INLINE void operator-=(float3& a, float3 b) { a = a - b; }
SIMT_INLINE void operator-=(float3& a, float b) { a = a - b; }
SIMT_INLINE float3 operator*(float3 a, float3 b) { return make_float3(a.x * b.x, a.y * b.y, a.z * b.z); }
SIMT_INLINE float3 operator*(float3 a, float b) { return make_float3(a.x * b, a.y * b, a.z * b); }
SIMT_INLINE float3 operator*(float a, float3 b) { return make_float3(a * b.x, a * b.y, a * b.z); }
SIMT_INLINE void operator*=(float3& a, float3 b) { a = a * b; }
SIMT_INLINE void operator*=(float3& a, float b) { a = a * b; }
SIMT_INLINE float3 operator/(float3 a, float3 b) { return make_float3(a.x / b.x, a.y / b.y, a.z / b.z); }
SIMT_INLINE float3 operator/(float3 a, float b) { return make_float3(a.x / b, a.y / b, a.z / b); }
SIMT_INLINE float3 operator/(float a, float3 b) { return make_float3(a / b.x, a / b.y, a / b.z); }
SIMT_INLINE void operator/=(float3& a, float3 b) { a = a / b; }
SIMT_INLINE void operator/=(float3& a, float b) { a = a / b; }
SIMT_INLINE float3 operator-(float3 a) { return make_float3(-a.x, -a.y, -a.z); }
SIMT_INLINE float3 make_float3(float s) { return make_float3(s, s, s); }
SIMT_INLINE float dot(float3 a, float3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
SIMT_INLINE float3 clamp(float3 v, float a, float b) {
  return make_float3(clamp(v.x, a, b), clamp(v.y, a, b), clamp(v.z, a, b));
}
SIMT_INLINE float3 clamp(float3 v, float3 a, float3 b) {
  return make_float3(clamp(v.x, a.x, b.x), clamp(v.y, a.y, b.y), clamp(v.z, a.z, b.z));
}
SIMT_INLINE float3 fminf(float3 a, float3 b) { return make_float3(fminf(a.x, b.x), fminf(a.y, b.y), fminf(a.z, b.z)); }
SIMT_INLINE float3 fmaxf(float3 a, float3 b) { return make_float3(fmaxf(a.x, b.x), fmaxf(a.y, b.y), fmaxf(a.z, b.z)); }
SIMT_INLINE int3 operator+(int3 a, int3 b) { return make_int3(a.x + b.x, a.y + b.y, a.z + b.z); }
SIMT_INLINE int3 operator+(int3 a, int b) { return make_int3(a.x + b, a.y + b, a.z + b); }
SIMT_INLINE int3 operator+(int a, int3 b) { return make_int3(a + b.x, a + b.y, a + b.z); }
SIMT_INLINE void operator+=(int3& a, int3 b) { a = a + b; }
SIMT_INLINE void operator+=(int3& a, int b) { a = a + b; }
SIMT_INLINE int3 operator-(int3 a, int3 b) { return make_int3(a.x - b.x, a.y - b.y, a.z - b.z); }
SIMT_INLINE int3 operator-(int3 a, int b) { return make_int3(a.x - b, a.y - b, a.z - b); }
SIMT_INLINE int3 operator-(int a, int3 b) { return make_int3(a - b.x, a - b.y, a - b.z); }
SIMT_INLINE void operator-=(int3& a, int3 b) { a = a - b; }
SIMT_INLINE void operator-=(int3& a, int b) { a = a - b; }
SIMT_INLINE int3 operator*(int3 a, int3 b) { return make_int3(a.x * b.x, a.y * b.y, a.z * b.z); }
SIMT_INLINE int3 operator*(int3 a, int b) { return make_int3(a.x * b, a.y * b, a.z * b); }
SIMT_INLINE int3 operator*(int a, int3 b) { return make_int3(a * b.x, a * b.y, a * b.z); }
SIMT_INLINE void operator*=(int3& a, int3 b) { a = a * b; }
SIMT_INLINE void operator*=(int3& a, int b) { a = a * b; }
SIMT_INLINE int3 operator-(int3 a) { return make_int3(-a.x, -a.y, -a.z); }
SIMT_INLINE int3 make_int3(int s) { return make_int3(s, s, s); }
SIMT_INLINE int dot(int3 a, int3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
SIMT_INLINE int3 clamp(int3 v, int a, int b) { return make_int3(clamp(v.x, a, b), clamp(v.y, a, b), clamp(v.z, a, b)); }
SIMT_INLINE int3 clamp(int3 v, int3 a, int3 b) {
  return make_int3(clamp(v.x, a.x, b.x), clamp(v.y, a.y, b.y), clamp(v.z, a.z, b.z));
}
SIMT_INLINE int3 min(int3 a, int3 b) { return make_int3(min(a.x, b.x), min(a.y, b.y), min(a.z, b.z)); }
SIMT_INLINE int3 max(int3 a, int3 b) { return make_int3(max(a.x, b.x), max(a.y, b.y), max(a.z, b.z)); }
SIMT_INLINE uint3 operator+(uint3 a, uint3 b) { return make_uint3(a.x + b.x, a.y + b.y, a.z + b.z); }
SIMT_INLINE uint3 operator+(uint3 a, unsigned b) { return make_uint3(a.x + b, a.y + b, a.z + b); }
SIMT_INLINE uint3 operator+(unsigned a, uint3 b) { return make_uint3(a + b.x, a + b.y, a + b.z); }
SIMT_INLINE void operator+=(uint3& a, uint3 b) { a = a + b; }
SIMT_INLINE void operator+=(uint3& a, unsigned b) { a = a + b; }
SIMT_INLINE uint3 operator-(uint3 a, uint3 b) { return make_uint3(a.x - b.x, a.y - b.y, a.z - b.z); }
SIMT_INLINE uint3 operator-(uint3 a, unsigned b) { return make_uint3(a.x - b, a.y - b, a.z - b); }
SIMT_INLINE uint3 operator-(unsigned a, uint3 b) { return make_uint3(a - b.x, a - b.y, a - b.z); }
SIMT_INLINE void operator-=(uint3& a, uint3 b) { a = a - b; }
SIMT_INLINE void operator-=(uint3& a, unsigned b) { a = a - b; }
SIMT_INLINE uint3 operator*(uint3 a, uint3 b) { return make_uint3(a.x * b.x, a.y * b.y, a.z * b.z); }
SIMT_INLINE uint3 operator*(uint3 a, unsigned b) { return make_uint3(a.x * b, a.y * b, a.z * b); }
SIMT_INLINE uint3 operator*(unsigned a, uint3 b) { return make_uint3(a * b.x, a * b.y, a * b.z); }
SIMT_INLINE void operator*=(uint3& a, uint3 b) { a = a * b; }
SIMT_INLINE void operator*=(uint3& a, unsigned b) { a = a * b; }
SIMT_INLINE uint3 make_uint3(unsigned s) { return make_uint3(s, s, s); }
SIMT_INLINE unsigned dot(uint3 a, uint3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
SIMT_INLINE uint3 clamp(uint3 v, unsigned a, unsigned b) {
  return make_uint3(clamp(v.x, a, b), clamp(v.y, a, b), clamp(v.z, a, b));
}
SIMT_INLINE uint3 clamp(uint3 v, uint3 a, uint3 b) {
  return make_uint3(clamp(v.x, a.x, b.x), clamp(v.y, a.y, b.y), clamp(v.z, a.z, b.z));
}
SIMT_INLINE uint3 min(uint3 a, uint3 b) { return make_uint3(min(a.x, b.x), min(a.y, b.y), min(a.z, b.z)); }
SIMT_INLINE uint3 max(uint3 a, uint3 b) { return make_uint3(max(a.x, b.x), max(a.y, b.y), max(a.z, b.z)); }
SIMT_INLINE float length(float3 v) { return sqrtf(dot(v, v)); }
SIMT_INLINE float3 normalize(float3 v) { return v * (1.0f / sqrtf(dot(v, v))); }
SIMT_INLINE float3 lerp(float3 a, float3 b, float t) { return a + t * (b - a); }
SIMT_INLINE float3 floorf(float3 v) { return make_float3(floorf(v.x), floorf(v.y), floorf(v.z)); }
SIMT_INLINE float3 fabs(float3 v) { return make_float3(fabsf(v.x), fabsf(v.y), fabsf(v.z)); }
SIMT_INLINE float3 fracf(float3 v) { return make_float3(fracf(v.x), fracf(v.y), fracf(v.z)); }
SIMT_INLINE float3 reflect(float3 i, float3 n) { return i - 2.0f * n * dot(n, i); }
SIMT_INLINE float3 make_float3(int3 a) { return make_float3(float(a.x), float(a.y), float(a.z)); }
SIMT_INLINE float3 make_float3(uint3 a) { return make_float3(float(a.x), float(a.y), float(a.z)); }
SIMT_INLINE float4 operator+(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
SIMT_INLINE float4 operator+(float4 a, float b) { return make_float4(a.x + b, a.y + b, a.z + b, a.w + b); }
SIMT_INLINE float4 operator+(float a, float4 b) { return make_float4(a + b.x, a + b.y, a + b.z, a + b.w); }
SIMT_INLINE void operator+=(float4& a, float4 b) { a = a + b; }
SIMT_INLINE void operator+=(float4& a, float b) { a = a + b; }
SIMT_INLINE float4 operator-(float4 a, float4 b) { return make_float4(a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w); }
SIMT_INLINE float4 operator-(float4 a, float b) { return make_float4(a.x - b, a.y - b, a.z - b, a.w - b); }
SIMT_INLINE float4 operator-(float a, float4 b) { return make_float4(a - b.x, a - b.y, a - b.z, a - b.w); }
SIMT_INLINE void operator-=(float4& a, float4 b) { a = a - b; }
SIMT_INLINE void operator-=(float4& a, float b) { a = a - b; }
SIMT_INLINE float4 operator*(float4 a, float4 b) { return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w); }
SIMT_INLINE float4 operator*(float4 a, float b) { return make_float4(a.x * b, a.y * b, a.z * b, a.w * b); }
SIMT_INLINE float4 operator*(float a, float4 b) { return make_float4(a * b.x, a * b.y, a * b.z, a * b.w); }
SIMT_INLINE void operator*=(float4& a, float4 b) { a = a * b; }
SIMT_INLINE void operator*=(float4& a, float b) { a = a * b; }
SIMT_INLINE float4 operator/(float4 a, float4 b) { return make_float4(a.x / b.x, a.y / b.y, a.z / b.z, a.w / b.w); }
SIMT_INLINE float4 operator/(float4 a, float b) { return make_float4(a.x / b, a.y / b, a.z / b, a.w / b); }
SIMT_INLINE float4 operator/(float a, float4 b) { return make_float4(a / b.x, a / b.y, a / b.z, a / b.w); }
SIMT_INLINE void operator/=(float4& a, float4 b) { a = a / b; }
SIMT_INLINE void operator/=(float4& a, float b) { a = a / b; }
SIMT_INLINE float4 operator-(float4 a) { return make_float4(-a.x, -a.y, -a.z, -a.w); }
SIMT_INLINE float4 make_float4(float s) { return make_float4(s, s, s, s); }
SIMT_INLINE float dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
SIMT_INLINE float4 clamp(float4 v, float a, float b) {
  return make_float4(clamp(v.x, a, b), clamp(v.y, a, b), clamp(v.z, a, b), clamp(v.w, a, b));
}
SIMT_INLINE float4 clamp(float4 v, float4 a, float4 b) {
  return make_float4(clamp(v.x, a.x, b.x), clamp(v.y, a.y, b.y), clamp(v.z, a.z, b.z), clamp(v.w, a.w, b.w));
}
SIMT_INLINE float4 fminf(float4 a, float4 b) {
  return make_float4(fminf(a.x, b.x), fminf(a.y, b.y), fminf(a.z, b.z), fminf(a.w, b.w));
}
SIMT_INLINE float4 fmaxf(float4 a, float4 b) {
  return make_float4(fmaxf(a.x, b.x), fmaxf(a.y, b.y), fmaxf(a.z, b.z), fmaxf(a.w, b.w));
}
SIMT_INLINE int4 operator+(int4 a, int4 b) { return make_int4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
SIMT_INLINE int4 operator+(int4 a, int b) { return make_int4(a.x + b, a.y + b, a.z + b, a.w + b); }
SIMT_INLINE int4 operator+(int a, int4 b) { return make_int4(a + b.x, a + b.y, a + b.z, a + b.w); }
SIMT_INLINE void operator+=(int4& a, int4 b) { a = a + b; }
SIMT_INLINE void operator+=(int4& a, int b) { a = a + b; }
SIMT_INLINE int4 operator-(int4 a, int4 b) { return make_int4(a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w); }
SIMT_INLINE int4 operator-(int4 a, int b) { return make_int4(a.x - b, a.y - b, a.z - b, a.w - b); }
SIMT_INLINE int4 operator-(int a, int4 b) { return make_int4(a - b.x, a - b.y, a - b.z, a - b.w); }
SIMT_INLINE void operator-=(int4& a, int4 b) { a = a - b; }
SIMT_INLINE void operator-=(int4& a, int b) { a = a - b; }
SIMT_INLINE int4 operator*(int4 a, int4 b) { return make_int4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w); }
SIMT_INLINE int4 operator*(int4 a, int b) { return make_int4(a.x * b, a.y * b, a.z * b, a.w * b); }
SIMT_INLINE int4 operator*(int a, int4 b) { return make_int4(a * b.x, a * b.y, a * b.z, a * b.w); }
SIMT_INLINE void operator*=(int4& a, int4 b) { a = a * b; }
SIMT_INLINE void operator*=(int4& a, int b) { a = a * b; }
SIMT_INLINE int4 operator-(int4 a) { return make_int4(-a.x, -a.y, -a.z, -a.w); }
SIMT_INLINE int4 make_int4(int s) { return make_int4(s, s, s, s); }
SIMT_INLINE int dot(int4 a, int4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
SIMT_INLINE int4 clamp(int4 v, int a, int b) {
  return make_int4(clamp(v.x, a, b), clamp(v.y, a, b), clamp(v.z, a, b), clamp(v.w, a, b));
}
SIMT_INLINE int4 clamp(int4 v, int4 a, int4 b) {
  return make_int4(clamp(v.x, a.x, b.x), clamp(v.y, a.y, b.y), clamp(v.z, a.z, b.z), clamp(v.w, a.w, b.w));
}
SIMT_INLINE int4 min(int4 a, int4 b) { return make_int4(min(a.x, b.x), min(a.y, b.y), min(a.z, b.z), min(a.w, b.w)); }
SIMT_INLINE int4 max(int4 a, int4 b) { return make_int4(max(a.x, b.x), max(a.y, b.y), max(a.z, b.z), max(a.w, b.w)); }
SIMT_INLINE uint4 operator+(uint4 a, uint4 b) { return make_uint4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
SIMT_INLINE uint4 operator+(uint4 a, unsigned b) { return make_uint4(a.x + b, a.y + b, a.z + b, a.w + b); }
SIMT_INLINE uint4 operator+(unsigned a, uint4 b) { return make_uint4(a + b.x, a + b.y, a + b.z, a + b.w); }
SIMT_INLINE void operator+=(uint4& a, uint4 b) { a = a + b; }
SIMT_INLINE void operator+=(uint4& a, unsigned b) { a = a + b; }
SIMT_INLINE uint4 operator-(uint4 a, uint4 b) { return make_uint4(a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w); }
SIMT_INLINE uint4 operator-(uint4 a, unsigned b) { return make_uint4(a.x - b, a.y - b, a.z - b, a.w - b); }
SIMT_INLINE uint4 operator-(unsigned a, uint4 b) { return make_uint4(a - b.x, a - b.y, a - b.z, a - b.w); }
SIMT_INLINE void operator-=(uint4& a, uint4 b) { a = a - b; }
SIMT_INLINE void operator-=(uint4& a, unsigned b) { a = a - b; }
SIMT_INLINE uint4 operator*(uint4 a, uint4 b) { return make_uint4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w); }
SIMT_INLINE uint4 operator*(uint4 a, unsigned b) { return make_uint4(a.x * b, a.y * b, a.z * b, a.w * b); }
SIMT_INLINE uint4 operator*(unsigned a, uint4 b) { return make_uint4(a * b.x, a * b.y, a * b.z, a * b.w); }
SIMT_INLINE void operator*=(uint4& a, uint4 b) { a = a * b; }
SIMT_INLINE void operator*=(uint4& a, unsigned b) { a = a * b; }
SIMT_INLINE uint4 make_uint4(unsigned s) { return make_uint4(s, s, s, s); }
SIMT_INLINE unsigned dot(uint4 a, uint4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
SIMT_INLINE uint4 clamp(uint4 v, unsigned a, unsigned b) {
  return make_uint4(clamp(v.x, a, b), clamp(v.y, a, b), clamp(v.z, a, b), clamp(v.w, a, b));
}
SIMT_INLINE uint4 clamp(uint4 v, uint4 a, uint4 b) {
  return make_uint4(clamp(v.x, a.x, b.x), clamp(v.y, a.y, b.y), clamp(v.z, a.z, b.z), clamp(v.w, a.w, b.w));
}
SIMT_INLINE uint4 min(uint4 a, uint4 b) {
  return make_uint4(min(a.x, b.x), min(a.y, b.y), min(a.z, b.z), min(a.w, b.w));
}
SIMT_INLINE uint4 max(uint4 a, uint4 b) {
  return make_uint4(max(a.x, b.x), max(a.y, b.y), max(a.z, b.z), max(a.w, b.w));
}
SIMT_INLINE float length(float4 v) { return sqrtf(dot(v, v)); }
SIMT_INLINE float4 normalize(float4 v) { return v * (1.0f / sqrtf(dot(v, v))); }
SIMT_INLINE float4 lerp(float4 a, float4 b, float t) { return a + t * (b - a); }
SIMT_INLINE float4 floorf(float4 v) { return make_float4(floorf(v.x), floorf(v.y), floorf(v.z), floorf(v.w)); }
SIMT_INLINE float4 fabs(float4 v) { return make_float4(fabsf(v.x), fabsf(v.y), fabsf(v.z), fabsf(v.w)); }
SIMT_INLINE float4 fracf(float4 v) { return make_float4(fracf(v.x), fracf(v.y), fracf(v.z), fracf(v.w)); }
SIMT_INLINE float4 reflect(float4 i, float4 n) { return i - 2.0f * n * dot(n, i); }
SIMT_INLINE float4 make_float4(int4 a) { return make_float4(float(a.x), float(a.y), float(a.z), float(a.w)); }
SIMT_INLINE float4 make_float4(uint4 a) { return make_float4(float(a.x), float(a.y), float(a.z), float(a.w)); }
SIMT_INLINE float3 cross(float3 a, float3 b) {
  return make_float3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
SIMT_INLINE float2 make_float2(float3 a) { return make_float2(a.x, a.y); }
SIMT_INLINE float3 make_float3(float2 a, float s = 0) { return make_float3(a.x, a.y, s); }
SIMT_INLINE float3 make_float3(float4 a) { return make_float3(a.x, a.y, a.z); }
SIMT_INLINE float4 make_float4(float3 a, float w = 0) { return make_float4(a.x, a.y, a.z, w); }
SIMT_INLINE int2 make_int2(float2 a) { return make_int2(simt::to_integer<int>(a.x), simt::to_integer<int>(a.y)); }
SIMT_INLINE float smoothstep(float a, float b, float x) {
  const float y = clamp((x - a) / (b - a), 0.0f, 1.0f);
  return y * y * (3.0f - 2.0f * y);
}

#undef SIMT_INLINE
