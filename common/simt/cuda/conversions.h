// Numbers that become integers, as PTX's cvt has it: beyond the type's range, the nearest one; NaN becomes 0, or, of
// and to 64 bits, the first bit alone. C++ leaves these open, and an x86 gives something else.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "simt/engine/types.h"

namespace simt {
template <class To, class From>
__forceinline__ constexpr bool fits(From x) {
  return x > From(std::numeric_limits<To>::min()) - 1 && x < 2 * From(To(1) << (std::numeric_limits<To>::digits - 1));
}
template <class To, class From>
__attribute__((no_sanitize("float-cast-overflow"))) constexpr To saturated(From x) {
  if (fits<To>(x)) return static_cast<To>(x);
  if (x == x) return x < 0 ? std::numeric_limits<To>::min() : std::numeric_limits<To>::max();
  return sizeof(From) == 8 || sizeof(To) == 8 ? To(std::uint64_t(1) << (8 * sizeof(To) - 1)) : To(0);
}

// (To)x in device code: of fewer than 32 bits, what is left of a number of 32. On the host, what this machine makes of
// it.
bool in_kernel();
template <class To, class From>
requires(!std::is_class_v<From>) __attribute__((no_sanitize("float-cast-overflow"))) __forceinline__ constexpr To
    to_integer(From x) {
  if constexpr (std::is_floating_point_v<From> && sizeof(From) <= 8 && std::is_integral_v<To>) {
    using Small = std::conditional_t<std::is_signed_v<To>, int, unsigned>;
    using Wide = std::conditional_t<sizeof(To) < 4, Small, To>;
    if (fits<Wide>(x)) [[likely]]
      return static_cast<To>(static_cast<Wide>(x));
    return __builtin_is_constant_evaluated() || !in_kernel() ? (To)x : static_cast<To>(saturated<Wide>(x));
  }
  return (To)x;  // whatever kind of cast it is
}
template <class To, class From>
requires(std::is_class_v<std::remove_cvref_t<From>>) __forceinline__ constexpr To to_integer(From&& x) {
  if constexpr (
      requires { x.operator float(); } && !requires { x.operator To(); })  // half and bfloat16
    return to_integer<To>(static_cast<float>(x));
  else
    return static_cast<To>(static_cast<From&&>(x));
}

}  // namespace simt
