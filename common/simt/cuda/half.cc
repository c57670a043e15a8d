#include "simt/cuda/half.h"

#include <iterator>

namespace simt {
namespace {

constexpr float calculated(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t magnitude = bits & 0x7fff;
  if (magnitude > 0x7c00) return std::bit_cast<float>(0x7fffffffu);
  if (magnitude == 0x7c00) return std::bit_cast<float>(sign | 0x7f800000);
  if (magnitude < 0x0400) {  // subnormal: a multiple of 2^-24
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000));
}

constexpr HalfValues all() {
  HalfValues values = {};
  for (unsigned bits = 0; bits < std::size(values.of); bits++) values.of[bits] = calculated(std::uint16_t(bits));
  return values;
}

}  // namespace

constinit const HalfValues half_values = all();  // there before anything that is made at a program's start

}  // namespace simt
