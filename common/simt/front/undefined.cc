// What C++ leaves open, and a GPU does otherwise than an x86: shifts by as many bits as a number has, or more, and
// conversions of numbers to integers that have no room for them. GCC's -fsanitize calls this; its own library is not
// linked.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "simt/cuda/intrinsics.h"
#include "simt/engine/diagnosis.h"
#include "simt/engine/findings.h"
#include "simt/front/front.h"

namespace {

// As GCC lays them out.
struct Type {
  std::uint16_t kind, info;  // info: of an integer, bit 0: signed; the rest: the logarithm of its bits
  char name[1];

  bool is_signed() const { return (info & 1) != 0; }
  unsigned bits() const { return 1u << (info >> 1); }
};
struct Place {
  const char* file;
  std::uint32_t line, column;
};
struct Shift {
  Place place;
  Type *left, *right;
};
struct Conversion {
  Place place;
  Type *from, *to;
};

// Once for each line.
template <class Words>
void say(const Place& place, const Words& words) {
  static std::mutex mutex;
  static std::set<std::pair<std::string, std::uint32_t>> said;
  const std::lock_guard lock(mutex);
  if (said.emplace(place.file, place.line).second)
    simt::found_mistake(simt::text(simt::Site{place.file, static_cast<int>(place.line)}) + ": " + words());
}

// (To)x on a GPU, and on this machine.
template <class To, class From>
std::pair<std::string, std::string> converted(From x) {
  const volatile From here = x;
  return {std::to_string(simt::to_integer<To>(x)), std::to_string(static_cast<To>(here))};
}
template <class From>
std::pair<std::string, std::string> converted(const Type& to, From x) {
  switch (to.bits()) {
    case 8:
      return to.is_signed() ? converted<std::int8_t>(x) : converted<std::uint8_t>(x);
    case 16:
      return to.is_signed() ? converted<std::int16_t>(x) : converted<std::uint16_t>(x);
    case 32:
      return to.is_signed() ? converted<std::int32_t>(x) : converted<std::uint32_t>(x);
    default:
      return to.is_signed() ? converted<std::int64_t>(x) : converted<std::uint64_t>(x);
  }
}

}  // namespace

extern "C" void __ubsan_handle_shift_out_of_bounds(Shift* shift, std::uintptr_t, std::uintptr_t by) {
  if (!simt::in_kernel()) return;  // the host's shift: the same here as beside a GPU
  say(shift->place, [&] {
    const auto bits = static_cast<std::intmax_t>(shift->right->is_signed() && shift->right->bits() == 32
                                                     ? static_cast<std::int32_t>(by)
                                                     : static_cast<std::intptr_t>(by));
    return "a shift by " + std::to_string(bits) + " of a number of " + std::to_string(shift->left->bits()) +
           " bits: C++ leaves open what that gives; a GPU shifts all bits out, and this machine does not";
  });
}

// Of conversions that no cast spells out: those are a GPU's here, too (to_integer). The value is that of a float or a
// double, bit by bit.
extern "C" void __ubsan_handle_float_cast_overflow(Conversion* conversion, std::uint64_t bits) {
  if (!simt::in_kernel()) return;
  const bool is_float = conversion->from->info == 32;
  if (!is_float && conversion->from->info != 64) return;
  const float single = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  const double x = is_float ? single : std::bit_cast<double>(bits);
  const auto [gpu, here] = is_float ? converted(*conversion->to, single) : converted(*conversion->to, x);
  if (gpu == here) return;
  say(conversion->place, [&] {
    char number[32];
    std::snprintf(number, sizeof number, "%g", x);
    std::string type = conversion->to->name;
    std::erase(type, '\'');
    return std::string(number) + " becomes a number of type " + type +
           ", in which it has no room: C++ leaves open what that gives; a GPU gives " + gpu + ", and this machine " +
           here + " (a cast, (" + type + "), gives what a GPU gives)";
  });
}
