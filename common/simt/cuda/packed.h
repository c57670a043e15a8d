// CUDA's functions on two halves or four bytes of a word, each by itself: __vadd4, __vmaxs2, __vcmpgtu4, ..
#pragma once

#include <cstdint>
#include <type_traits>

namespace simt {

// Of each part of a and b what `of` makes of it, cut to the part's bits. T: a part's type, signed or not.
template <class T, class Of>
unsigned of_parts(unsigned a, unsigned b, const Of& of) {
  constexpr int bits = 8 * sizeof(T);
  unsigned result = 0;
  for (int at = 0; at < 32; at += bits)
    result |= unsigned(std::make_unsigned_t<T>(of(int(T(a >> at)), int(T(b >> at))))) << at;
  return result;
}

template <class T>
int saturated(int x) {
  constexpr int least = std::is_signed_v<T> ? -(1 << (8 * sizeof(T) - 1)) : 0;
  constexpr int most = (1 << (8 * sizeof(T) - std::is_signed_v<T>)) - 1;
  return x < least ? least : x > most ? most : x;
}

template <class T>
unsigned sum_of_differences(unsigned a, unsigned b) {
  unsigned sum = 0;
  for (int at = 0; at < 32; at += 8 * int(sizeof(T))) {
    const int difference = int(T(a >> at)) - int(T(b >> at));
    sum += unsigned(difference < 0 ? -difference : difference);
  }
  return sum;
}

}  // namespace simt

#define SIMT_PACKED(name, T, result)                                              \
  inline unsigned name(unsigned a, unsigned b) {                                  \
    return simt::of_parts<T>(a, b, [](int x, int y) -> int { return (result); }); \
  }
#define SIMT_PACKED_UNARY(name, T, result)                                      \
  inline unsigned name(unsigned a) {                                            \
    return simt::of_parts<T>(a, 0, [](int x, int) -> int { return (result); }); \
  }
// A comparison gives all bits of a part, or, as __vset.., 1.
#define SIMT_COMPARED(name, n, T, operation)              \
  SIMT_PACKED(__vcmp##name##n, T, x operation y ? -1 : 0) \
  SIMT_PACKED(__vset##name##n, T, x operation y ? 1 : 0)
#define SIMT_PARTS(n, S, U)                                                                        \
  SIMT_PACKED(__vadd##n, U, x + y)                                                                 \
  SIMT_PACKED(__vaddss##n, S, simt::saturated<S>(x + y))                                           \
  SIMT_PACKED(__vaddus##n, U, simt::saturated<U>(x + y))                                           \
  SIMT_PACKED(__vsub##n, U, x - y)                                                                 \
  SIMT_PACKED(__vsubss##n, S, simt::saturated<S>(x - y))                                           \
  SIMT_PACKED(__vsubus##n, U, simt::saturated<U>(x - y))                                           \
  SIMT_PACKED(__vavgs##n, S, (x + y + (x + y >= 0)) >> 1)                                          \
  SIMT_PACKED(__vavgu##n, U, (x + y + 1) >> 1)                                                     \
  SIMT_PACKED(__vhaddu##n, U, (x + y) >> 1)                                                        \
  SIMT_PACKED(__vmaxs##n, S, x > y ? x : y)                                                        \
  SIMT_PACKED(__vmaxu##n, U, x > y ? x : y)                                                        \
  SIMT_PACKED(__vmins##n, S, x < y ? x : y)                                                        \
  SIMT_PACKED(__vminu##n, U, x < y ? x : y)                                                        \
  SIMT_PACKED(__vabsdiffs##n, S, x > y ? x - y : y - x)                                            \
  SIMT_PACKED(__vabsdiffu##n, U, x > y ? x - y : y - x)                                            \
  SIMT_PACKED_UNARY(__vabs##n, S, x < 0 ? -x : x)                                                  \
  SIMT_PACKED_UNARY(__vabsss##n, S, simt::saturated<S>(x < 0 ? -x : x))                            \
  SIMT_PACKED_UNARY(__vneg##n, S, -x)                                                              \
  SIMT_PACKED_UNARY(__vnegss##n, S, simt::saturated<S>(-x))                                        \
  SIMT_COMPARED(eq, n, U, ==)                                                                      \
  SIMT_COMPARED(ne, n, U, !=)                                                                      \
  SIMT_COMPARED(ges, n, S, >=)                                                                     \
  SIMT_COMPARED(geu, n, U, >=)                                                                     \
  SIMT_COMPARED(gts, n, S, >)                                                                      \
  SIMT_COMPARED(gtu, n, U, >)                                                                      \
  SIMT_COMPARED(les, n, S, <=)                                                                     \
  SIMT_COMPARED(leu, n, U, <=)                                                                     \
  SIMT_COMPARED(lts, n, S, <)                                                                      \
  SIMT_COMPARED(ltu, n, U, <)                                                                      \
  inline unsigned __vsads##n(unsigned a, unsigned b) { return simt::sum_of_differences<S>(a, b); } \
  inline unsigned __vsadu##n(unsigned a, unsigned b) { return simt::sum_of_differences<U>(a, b); }
SIMT_PARTS(2, std::int16_t, std::uint16_t)
SIMT_PARTS(4, std::int8_t, std::uint8_t)
#undef SIMT_PARTS
#undef SIMT_COMPARED
#undef SIMT_PACKED_UNARY
#undef SIMT_PACKED
