// Device functions under CUDA's names that no chapter uses: on integers and bits, roundings and conversions,
// mathematics. What math.h says of the fast intrinsics holds here, too. Each comes down to one or two instructions.
#pragma once

#include <fenv.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "simt/cuda/conversions.h"
#include "simt/cuda/math.h"
#include "simt/cuda/thread.h"

// ---- bits and integers

inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }

inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (x >> i & 1) << (31 - i);
  return reversed;
}
inline unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 |
         __brev(static_cast<unsigned>(x >> 32));
}

// Bytes of y:x, chosen by the low three bits of each digit of s; with the fourth set, the byte's sign, eight times.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(y) << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned selector = s >> 4 * i & 0xf;
    unsigned byte = bytes >> 8 * (selector & 7) & 0xff;
    if (selector & 8) byte = byte & 0x80 ? 0xff : 0;
    result |= byte << 8 * i;
  }
  return result;
}

inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(((static_cast<std::uint64_t>(high) << 32 | low) << (shift & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(high) << 32 | low) >> (shift & 31));
}
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(((static_cast<unsigned __int128>(high) << 32 | low) << (shift < 32 ? shift : 32)) >> 32);
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(high) << 32 | low) >> (shift < 32 ? shift : 32));
}

inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<std::int64_t>(a) * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<std::uint64_t>(a) * b >> 32);
}
inline long long __mul64hi(long long a, long long b) {
  return static_cast<long long>(static_cast<__int128>(a) * b >> 64);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline int __mul24(int a, int b) { return static_cast<int>(static_cast<std::int64_t>(a << 8 >> 8) * (b << 8 >> 8)); }
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
inline int __hadd(int a, int b) { return static_cast<int>((static_cast<std::int64_t>(a) + b) >> 1); }
inline int __rhadd(int a, int b) { return static_cast<int>((static_cast<std::int64_t>(a) + b + 1) >> 1); }
inline unsigned __uhadd(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(a) + b) >> 1);
}
inline unsigned __sad(int a, int b, unsigned sum) {
  return sum + (a < b ? unsigned(b) - unsigned(a) : unsigned(a) - unsigned(b));
}
inline unsigned __usad(unsigned a, unsigned b, unsigned sum) { return sum + (a < b ? b - a : a - b); }

// Four products of bytes, or two of a half word and a byte, added to c.
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 32; i += 8) c += static_cast<signed char>(a >> i) * static_cast<signed char>(b >> i);
  return c;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 32; i += 8) c += (a >> i & 0xff) * (b >> i & 0xff);
  return c;
}
inline int __dp2a_lo(int a, int b, int c) {
  for (int i = 0; i < 2; ++i) c += static_cast<short>(a >> 16 * i) * static_cast<signed char>(b >> 8 * i);
  return c;
}
inline int __dp2a_hi(int a, int b, int c) { return __dp2a_lo(a, b >> 16, c); }

// ---- the same bits as another type

inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }
inline int __double2loint(double x) { return static_cast<int>(std::bit_cast<std::uint64_t>(x)); }
inline int __double2hiint(double x) { return static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 32); }
inline double __hiloint2double(int high, int low) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(static_cast<unsigned>(high)) << 32 |
                               static_cast<unsigned>(low));
}

// ---- conversions, rounded to nearest, down, up or towards zero

namespace simt {
// The arithmetic in `x` under another rounding. The operands go through memory that the compiler knows nothing about,
// so that it neither calculates beforehand nor moves the work out from between the two.
template <class Work, class... Operands>
auto rounded(int mode, Work work, Operands... operands) {
  const int before = fegetround();
  fesetround(mode);
  ((void)[](auto& x) { __asm__ volatile("" : "+m"(x)); }(operands), ...);
  auto result = work(operands...);
  __asm__ volatile("" : "+m"(result));
  fesetround(before);
  return result;
}
}  // namespace simt

#define SIMT_CONVERSIONS(name, From, To)                                             \
  inline To __##name##_rn(From x) { return simt::saturated<To>(std::nearbyint(x)); } \
  inline To __##name##_rd(From x) { return simt::saturated<To>(std::floor(x)); }     \
  inline To __##name##_ru(From x) { return simt::saturated<To>(std::ceil(x)); }      \
  inline To __##name##_rz(From x) { return simt::saturated<To>(std::trunc(x)); }
SIMT_CONVERSIONS(float2int, float, int)
SIMT_CONVERSIONS(float2uint, float, unsigned)
SIMT_CONVERSIONS(float2ll, float, long long)
SIMT_CONVERSIONS(float2ull, float, unsigned long long)
SIMT_CONVERSIONS(double2int, double, int)
SIMT_CONVERSIONS(double2uint, double, unsigned)
SIMT_CONVERSIONS(double2ll, double, long long)
SIMT_CONVERSIONS(double2ull, double, unsigned long long)
#undef SIMT_CONVERSIONS

// Arithmetic and conversions that say how they round.
#define SIMT_ROUNDED(mode, direction)                                                   \
  inline float __fadd_##mode(float x, float y) {                                        \
    return simt::rounded(                                                               \
        direction, [](float a, float b) { return a + b; }, x, y);                       \
  }                                                                                     \
  inline float __fsub_##mode(float x, float y) {                                        \
    return simt::rounded(                                                               \
        direction, [](float a, float b) { return a - b; }, x, y);                       \
  }                                                                                     \
  inline float __fmul_##mode(float x, float y) {                                        \
    return simt::rounded(                                                               \
        direction, [](float a, float b) { return a * b; }, x, y);                       \
  }                                                                                     \
  inline float __fdiv_##mode(float x, float y) {                                        \
    return simt::rounded(                                                               \
        direction, [](float a, float b) { return a / b; }, x, y);                       \
  }                                                                                     \
  inline float __frcp_##mode(float x) {                                                 \
    return simt::rounded(                                                               \
        direction, [](float a) { return 1.0f / a; }, x);                                \
  }                                                                                     \
  inline float __fsqrt_##mode(float x) {                                                \
    return simt::rounded(                                                               \
        direction, [](float a) { return sqrtf(a); }, x);                                \
  }                                                                                     \
  inline float __fmaf_##mode(float x, float y, float z) {                               \
    return simt::rounded(                                                               \
        direction, [](float a, float b, float c) { return fmaf(a, b, c); }, x, y, z);   \
  }                                                                                     \
  inline double __dadd_##mode(double x, double y) {                                     \
    return simt::rounded(                                                               \
        direction, [](double a, double b) { return a + b; }, x, y);                     \
  }                                                                                     \
  inline double __dsub_##mode(double x, double y) {                                     \
    return simt::rounded(                                                               \
        direction, [](double a, double b) { return a - b; }, x, y);                     \
  }                                                                                     \
  inline double __dmul_##mode(double x, double y) {                                     \
    return simt::rounded(                                                               \
        direction, [](double a, double b) { return a * b; }, x, y);                     \
  }                                                                                     \
  inline double __ddiv_##mode(double x, double y) {                                     \
    return simt::rounded(                                                               \
        direction, [](double a, double b) { return a / b; }, x, y);                     \
  }                                                                                     \
  inline double __drcp_##mode(double x) {                                               \
    return simt::rounded(                                                               \
        direction, [](double a) { return 1.0 / a; }, x);                                \
  }                                                                                     \
  inline double __dsqrt_##mode(double x) {                                              \
    return simt::rounded(                                                               \
        direction, [](double a) { return sqrt(a); }, x);                                \
  }                                                                                     \
  inline double __fma_##mode(double x, double y, double z) {                            \
    return simt::rounded(                                                               \
        direction, [](double a, double b, double c) { return fma(a, b, c); }, x, y, z); \
  }                                                                                     \
  inline float __double2float_##mode(double x) {                                        \
    return simt::rounded(                                                               \
        direction, [](double a) { return float(a); }, x);                               \
  }                                                                                     \
  inline float __int2float_##mode(int x) {                                              \
    return simt::rounded(                                                               \
        direction, [](int a) { return float(a); }, x);                                  \
  }                                                                                     \
  inline float __uint2float_##mode(unsigned x) {                                        \
    return simt::rounded(                                                               \
        direction, [](unsigned a) { return float(a); }, x);                             \
  }                                                                                     \
  inline float __ll2float_##mode(long long x) {                                         \
    return simt::rounded(                                                               \
        direction, [](long long a) { return float(a); }, x);                            \
  }                                                                                     \
  inline float __ull2float_##mode(unsigned long long x) {                               \
    return simt::rounded(                                                               \
        direction, [](unsigned long long a) { return float(a); }, x);                   \
  }                                                                                     \
  inline double __ll2double_##mode(long long x) {                                       \
    return simt::rounded(                                                               \
        direction, [](long long a) { return double(a); }, x);                           \
  }                                                                                     \
  inline double __ull2double_##mode(unsigned long long x) {                             \
    return simt::rounded(                                                               \
        direction, [](unsigned long long a) { return double(a); }, x);                  \
  }
SIMT_ROUNDED(rd, FE_DOWNWARD)
SIMT_ROUNDED(ru, FE_UPWARD)
SIMT_ROUNDED(rz, FE_TOWARDZERO)
#undef SIMT_ROUNDED

// To nearest is what the CPU does anyway (math.h has the most usual ones).
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __frsqrt_rn(float x) { return 1.0f / sqrtf(x); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dsub_rn(double x, double y) { return x - y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __drcp_rn(double x) { return 1.0 / x; }
inline double __dsqrt_rn(double x) { return sqrt(x); }
inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline float __ll2float_rn(long long x) { return static_cast<float>(x); }
inline float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }
inline double __ll2double_rn(long long x) { return static_cast<double>(x); }
inline double __ull2double_rn(unsigned long long x) { return static_cast<double>(x); }

// ---- mathematics

extern "C" {
inline float __tanf(float x) noexcept { return tanf(x); }
inline void __sincosf(float x, float* sine, float* cosine) noexcept {
  *sine = sinf(x);
  *cosine = cosf(x);
}
inline double rsqrt(double x) noexcept { return 1.0 / sqrt(x); }
}

inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }  // NaN is 0
inline float fdividef(float x, float y) { return x / y; }
inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
inline double rcbrt(double x) { return 1.0 / cbrt(x); }
inline float sinpif(float x) { return static_cast<float>(sin(M_PI * fmod(x, 2.0))); }
inline float cospif(float x) { return static_cast<float>(cos(M_PI * fmod(x, 2.0))); }
inline double sinpi(double x) { return sin(M_PI * fmod(x, 2.0)); }
inline double cospi(double x) { return cos(M_PI * fmod(x, 2.0)); }
inline void sincospif(float x, float* sine, float* cosine) {
  *sine = sinpif(x);
  *cosine = cospif(x);
}
inline float normcdff(float x) { return 0.5f * erfcf(-x * static_cast<float>(M_SQRT1_2)); }
inline double normcdf(double x) { return 0.5 * erfc(-x * M_SQRT1_2); }
inline float norm3df(float x, float y, float z) { return sqrtf(x * x + y * y + z * z); }
inline double norm3d(double x, double y, double z) { return sqrt(x * x + y * y + z * z); }
inline float norm4df(float x, float y, float z, float w) { return sqrtf(x * x + y * y + z * z + w * w); }
inline double norm4d(double x, double y, double z, double w) { return sqrt(x * x + y * y + z * z + w * w); }
inline float rnorm3df(float x, float y, float z) { return 1.0f / norm3df(x, y, z); }
inline float rhypotf(float x, float y) { return 1.0f / hypotf(x, y); }

constexpr long long llmin(long long a, long long b) { return min(a, b); }
constexpr long long llmax(long long a, long long b) { return max(a, b); }
// Templates, because programs have functions of these names and types for the host, where nvcc has none.
template <class = void>
constexpr unsigned umin(unsigned a, unsigned b) {
  return min(a, b);
}
template <class = void>
constexpr unsigned umax(unsigned a, unsigned b) {
  return max(a, b);
}
inline double min(float a, double b) { return fmin(a, b); }
inline double max(float a, double b) { return fmax(a, b); }
inline double min(double a, float b) { return fmin(a, b); }
inline double max(double a, float b) { return fmax(a, b); }
