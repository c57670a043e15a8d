// The instructions of inline PTX that calculate: registers in, registers out. PTX ISA, "Instruction Set".
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "simt/cuda/fp8.h"
#include "simt/cuda/half.h"
#include "simt/cuda/intrinsics.h"
#include "simt/ptx/ptx_code.h"

namespace simt {
namespace {

using Bits = std::uint64_t;

template <class T>
T from_bits(Bits bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
Bits to_bits(T value) {
  Bits bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

template <class T, class Operation>
Bits calculate(Bits a, Bits b, Bits c) {
  return to_bits<T>(Operation()(from_bits<T>(a), from_bits<T>(b), from_bits<T>(c)));
}
template <class T, class Operation>
Bits calculate_pair(Bits a, Bits b, Bits c) {
  return calculate<T, Operation>(a, b, c) | calculate<T, Operation>(a >> 16, b >> 16, c >> 16) << 16;
}

template <class Operation>
auto for_integers(PtxType type) -> decltype(PtxInstruction::calculate) {
  switch (type) {
    case PtxType::u16:
    case PtxType::b16:
      return calculate<std::uint16_t, Operation>;
    case PtxType::s16:
      return calculate<std::int16_t, Operation>;
    case PtxType::u32:
    case PtxType::b32:
      return calculate<std::uint32_t, Operation>;
    case PtxType::s32:
      return calculate<std::int32_t, Operation>;
    case PtxType::u64:
    case PtxType::b64:
      return calculate<std::uint64_t, Operation>;
    case PtxType::s64:
      return calculate<std::int64_t, Operation>;
    default:
      return nullptr;
  }
}

template <class Operation>
auto for_floats(PtxType type) -> decltype(PtxInstruction::calculate) {
  switch (type) {
    case PtxType::f32:
      return calculate<float, Operation>;
    case PtxType::f64:
      return calculate<double, Operation>;
    case PtxType::f16:
      return calculate<__half, Operation>;
    case PtxType::bf16:
      return calculate<__nv_bfloat16, Operation>;
    case PtxType::f16x2:
      return calculate_pair<__half, Operation>;
    case PtxType::bf16x2:
      return calculate_pair<__nv_bfloat16, Operation>;
    default:
      return nullptr;
  }
}

template <class Operation>
auto for_numbers(PtxType type) -> decltype(PtxInstruction::calculate) {
  const auto integers = for_integers<Operation>(type);
  return integers != nullptr ? integers : for_floats<Operation>(type);
}

// Integers wrap around.
template <class T>
constexpr bool is_integer = std::is_integral_v<T>;
template <class T>
using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;

struct Plus {
  template <class T>
  T operator()(T a, T b, T) const {
    if constexpr (is_integer<T>)
      return static_cast<T>(static_cast<Bits>(a) + static_cast<Bits>(b));
    else
      return a + b;
  }
};
struct Minus {
  template <class T>
  T operator()(T a, T b, T) const {
    if constexpr (is_integer<T>)
      return static_cast<T>(static_cast<Bits>(a) - static_cast<Bits>(b));
    else
      return a - b;
  }
};
struct Times {
  template <class T>
  T operator()(T a, T b, T) const {
    if constexpr (is_integer<T>)
      return static_cast<T>(static_cast<Bits>(a) * static_cast<Bits>(b));
    else
      return a * b;
  }
};
struct TimesPlus {
  template <class T>
  T operator()(T a, T b, T c) const {
    if constexpr (is_integer<T>)
      return static_cast<T>(static_cast<Bits>(a) * static_cast<Bits>(b) + static_cast<Bits>(c));
    else if constexpr (sizeof(T) == 2)
      return T(static_cast<float>(fma(double(float(a)), double(float(b)), double(float(c)))));
    else
      return std::fma(a, b, c);
  }
};
struct TimesHigh {
  template <class T>
  T operator()(T a, T b, T) const {
    return static_cast<T>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b) >> 8 * sizeof(T));
  }
};
struct Over {
  template <class T>
  T operator()(T a, T b, T) const {
    if constexpr (is_integer<T>)
      return b == 0 ? T(-1) : static_cast<T>(static_cast<Wide<T>>(a) / b);
    else
      return a / b;
  }
};
struct Remainder {
  template <class T>
  T operator()(T a, T b, T) const {
    return b == 0 ? a : static_cast<T>(static_cast<Wide<T>>(a) % b);
  }
};
struct Smaller {
  template <class T>
  T operator()(T a, T b, T) const {
    if constexpr (!is_integer<T>) {
      if (float(a) != float(a)) return b;
      if (float(b) != float(b)) return a;
    }
    return b < a ? b : a;
  }
};
struct Larger {
  template <class T>
  T operator()(T a, T b, T) const {
    if constexpr (!is_integer<T>) {
      if (float(a) != float(a)) return b;
      if (float(b) != float(b)) return a;
    }
    return a < b ? b : a;
  }
};
struct Negative {
  template <class T>
  T operator()(T a, T, T) const {
    if constexpr (is_integer<T>)
      return static_cast<T>(-static_cast<Bits>(a));
    else
      return -a;
  }
};
struct Magnitude {
  template <class T>
  T operator()(T a, T, T) const {
    if constexpr (is_integer<T>)
      return a < 0 ? static_cast<T>(-static_cast<Bits>(a)) : a;
    else
      return T(std::fabs(static_cast<std::conditional_t<sizeof(T) == 8, double, float>>(a)));
  }
};
struct BitsAnd {
  template <class T>
  T operator()(T a, T b, T) const {
    return static_cast<T>(a & b);
  }
};
struct BitsOr {
  template <class T>
  T operator()(T a, T b, T) const {
    return static_cast<T>(a | b);
  }
};
struct BitsXor {
  template <class T>
  T operator()(T a, T b, T) const {
    return static_cast<T>(a ^ b);
  }
};
struct BitsNot {
  template <class T>
  T operator()(T a, T, T) const {
    return static_cast<T>(~a);
  }
};
// By 32 bits of the second operand, and no further than the width.
struct Left {
  template <class T>
  T operator()(T a, T b, T) const {
    const auto by = static_cast<std::uint32_t>(b);
    return by >= 8 * sizeof(T) ? T(0) : static_cast<T>(static_cast<Bits>(a) << by);
  }
};
struct Right {
  template <class T>
  T operator()(T a, T b, T) const {
    const auto by = std::min<std::uint32_t>(static_cast<std::uint32_t>(b), 8 * sizeof(T));
    return static_cast<T>(static_cast<Wide<T>>(a) >> by);
  }
};
struct Ones {
  template <class T>
  T operator()(T a, T, T) const {
    return static_cast<T>(std::popcount(static_cast<std::make_unsigned_t<T>>(a)));
  }
};
struct LeadingZeros {
  template <class T>
  T operator()(T a, T, T) const {
    return static_cast<T>(std::countl_zero(static_cast<std::make_unsigned_t<T>>(a)));
  }
};
struct Reversed {
  template <class T>
  T operator()(T a, T, T) const {
    return static_cast<T>(__brevll(static_cast<Bits>(a)) >> (64 - 8 * sizeof(T)));
  }
};

// A function of a float, in the precision of the result.
template <float (*function)(float)>
struct Of {
  template <class T>
  T operator()(T a, T, T) const {
    if constexpr (sizeof(T) == 8)
      return static_cast<T>(function(static_cast<float>(a)));
    else
      return T(function(float(a)));
  }
};
float reciprocal(float x) { return 1.0f / x; }
float inverse_root(float x) { return 1.0f / std::sqrt(x); }

struct Calculation {
  const char* name;  // of the opcode's beginning
  int operands;
  decltype(PtxInstruction::calculate) (*choose)(PtxType type);
};
// The longest name that fits counts.
constexpr Calculation calculations[] = {
    {"add", 2, for_numbers<Plus>},
    {"sub", 2, for_numbers<Minus>},
    {"mul", 2, for_floats<Times>},
    {"mul.lo", 2, for_integers<Times>},
    {"mul.hi", 2, for_integers<TimesHigh>},
    {"mad.lo", 3, for_integers<TimesPlus>},
    {"fma", 3, for_floats<TimesPlus>},
    {"mad", 3, for_floats<TimesPlus>},
    {"div", 2, for_numbers<Over>},
    {"rem", 2, for_integers<Remainder>},
    {"min", 2, for_numbers<Smaller>},
    {"max", 2, for_numbers<Larger>},
    {"neg", 1, for_numbers<Negative>},
    {"abs", 1, for_numbers<Magnitude>},
    {"and", 2, for_integers<BitsAnd>},
    {"or", 2, for_integers<BitsOr>},
    {"xor", 2, for_integers<BitsXor>},
    {"not", 1, for_integers<BitsNot>},
    {"shl", 2, for_integers<Left>},
    {"shr", 2, for_integers<Right>},
    {"popc", 1, for_integers<Ones>},
    {"clz", 1, for_integers<LeadingZeros>},
    {"brev", 1, for_integers<Reversed>},
    {"ex2", 1, for_floats<Of<exp2f>>},
    {"lg2", 1, for_floats<Of<log2f>>},
    {"rcp", 1, for_floats<Of<reciprocal>>},
    {"rsqrt", 1, for_floats<Of<inverse_root>>},
    {"sqrt", 1, for_floats<Of<sqrtf>>},
    {"sin", 1, for_floats<Of<sinf>>},
    {"cos", 1, for_floats<Of<cosf>>},
    {"tanh", 1, for_floats<Of<tanhf>>},
};

void execute_calculation(PtxRun& run, const PtxInstruction& i) {
  Bits operands[3] = {};
  for (int n = 0; n < i.count; ++n) operands[n] = run.get(i.arguments[n + 1], i.type);
  Bits result = i.calculate(operands[0], operands[1], operands[2]);
  if (i.mode == 1) result = to_bits(__saturatef(from_bits<float>(result)));
  run.set(i.arguments[0], result, i.type);
}

PtxExecute choose_calculation(PtxInstruction& i) {
  const Calculation* found = nullptr;
  for (const Calculation& each : calculations)
    if ((i.opcode + ".").starts_with(each.name + std::string(".")) &&
        (found == nullptr || std::strlen(each.name) > std::strlen(found->name)))
      found = &each;
  if (found == nullptr || !i.only(1, {"lo", "hi", "rn", "ftz", "approx", "full", "sat"})) return nullptr;
  i.type = i.last_type();
  if (i.type == PtxType::f64 && i.has("approx")) return nullptr;
  i.mode = i.has("sat");
  if (i.mode == 1 && i.type != PtxType::f32) return nullptr;
  i.count = found->operands;
  i.calculate = found->choose(i.type);
  if (static_cast<int>(i.arguments.size()) != i.count + 1) return nullptr;
  return i.calculate != nullptr ? execute_calculation : nullptr;
}

// ---- moves and conversions

void execute_mov(PtxRun& run, const PtxInstruction& i) {
  const PtxArgumentOf &to = i.arguments[0], &from = i.arguments[1];
  const int all = ptx_bytes(i.type);
  Bits bits = 0;
  if (from.form == PtxArgumentOf::vector) {
    const int part = 8 * all / static_cast<int>(from.values.size());
    for (std::size_t n = 0; n < from.values.size(); ++n)
      bits |= (run.get(from.values[n], i.type) & ((Bits(1) << part) - 1)) << part * static_cast<int>(n);
  } else {
    bits = run.get(from, i.type);
  }
  if (to.form == PtxArgumentOf::vector) {
    const int part = 8 * all / static_cast<int>(to.values.size());
    for (std::size_t n = 0; n < to.values.size(); ++n)
      run.set(to.values[n], bits >> part * static_cast<int>(n) & ((Bits(1) << part) - 1), i.type);
  } else {
    run.set(to, bits, i.type);
  }
}

PtxExecute choose_mov(PtxInstruction& i) {
  i.type = i.last_type();
  return i.pieces.size() == 2 && i.type != PtxType::none && i.arguments.size() == 2 ? execute_mov : nullptr;
}

double number_of(Bits bits, PtxType type) {
  switch (type) {
    case PtxType::f32:
      return from_bits<float>(bits);
    case PtxType::f64:
      return from_bits<double>(bits);
    case PtxType::f16:
      return float(from_bits<__half>(bits));
    default:
      return float(from_bits<__nv_bfloat16>(bits));
  }
}

bool is_float(PtxType type) {
  return type == PtxType::f32 || type == PtxType::f64 || type == PtxType::f16 || type == PtxType::bf16;
}
bool is_signed(PtxType type) {
  return type == PtxType::s8 || type == PtxType::s16 || type == PtxType::s32 || type == PtxType::s64;
}

std::int64_t signed_of(Bits bits, PtxType type) {
  const int unused = 64 - 8 * ptx_bytes(type);
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

enum Rounding { to_nearest, to_zero, down, up };

Bits converted(const PtxInstruction& i, Bits bits) {
  const PtxType to = i.type, from = i.from;
  if (is_float(from)) {
    const double x = number_of(bits, from);
    if (is_float(to)) {
      if (to == PtxType::f64) return to_bits(x);
      float y = static_cast<float>(x);
      if (i.mode == to_zero && to == PtxType::f32) y = __double2float_rz(x);
      if (i.has("sat")) y = __saturatef(y);
      if (i.has("relu") && !(y > 0)) y = y != y ? y : 0;
      if (to == PtxType::f32) return to_bits(y);
      if (to == PtxType::f16) return half_bits(y);
      return bfloat16_bits(y);
    }
    const double whole = i.mode == to_zero ? std::trunc(x)
                         : i.mode == down  ? std::floor(x)
                         : i.mode == up    ? std::ceil(x)
                                           : std::nearbyint(x);
    if (whole != whole) return 0;
    const int width = 8 * ptx_bytes(to);
    const double least = is_signed(to) ? -std::ldexp(1.0, width - 1) : 0,
                 above = std::ldexp(1.0, is_signed(to) ? width - 1 : width);
    if (whole < least) return is_signed(to) ? Bits(1) << (width - 1) : 0;
    if (whole >= above) return is_signed(to) ? (Bits(1) << (width - 1)) - 1 : ~Bits(0) >> (64 - width);
    return is_signed(to) ? static_cast<Bits>(static_cast<std::int64_t>(whole)) : static_cast<Bits>(whole);
  }
  if (is_float(to)) {
    if (to == PtxType::f64) return is_signed(from) ? to_bits(double(signed_of(bits, from))) : to_bits(double(bits));
    const float y = is_signed(from) ? static_cast<float>(signed_of(bits, from)) : static_cast<float>(bits);
    return to == PtxType::f32 ? to_bits(y) : to == PtxType::f16 ? half_bits(y) : bfloat16_bits(y);
  }
  return is_signed(from) ? static_cast<Bits>(signed_of(bits, from)) : bits;
}

void execute_cvt(PtxRun& run, const PtxInstruction& i) {
  run.set(i.arguments[0], converted(i, run.get(i.arguments[1], i.from)), i.type);
}

// Two floats become a pair, the first its upper half.
void execute_cvt_pair(PtxRun& run, const PtxInstruction& i) {
  PtxInstruction half;
  half.pieces = i.pieces;
  half.type = i.type == PtxType::f16x2 ? PtxType::f16 : PtxType::bf16;
  half.from = PtxType::f32;
  const Bits upper = converted(half, run.get(i.arguments[1], PtxType::f32)),
             lower = converted(half, run.get(i.arguments[2], PtxType::f32));
  run.set(i.arguments[0], upper << 16 | lower, i.type);
}

// 10 bits of the mantissa are kept, rounded to nearest, ties away from zero.
void execute_cvt_tf32(PtxRun& run, const PtxInstruction& i) {
  Bits bits = run.get(i.arguments[1], PtxType::f32);
  if (from_bits<float>(bits) == from_bits<float>(bits)) bits = (bits + 0x1000) & ~Bits(0x1fff);
  run.set(i.arguments[0], bits, PtxType::b32);
}

// cvt.rn.satfinite{.relu}.e4m3x2.f32 d, a, b: two floats become a pair of bytes, the first its upper one;
// cvt.rn{.relu}.f16x2.e4m3x2 d, a: and back. `mode` is the type of eight bits.
void execute_cvt_to_fp8(PtxRun& run, const PtxInstruction& i) {
  const auto byte = [&](std::size_t argument) -> Bits {
    const float x = from_bits<float>(run.get(i.arguments[argument], PtxType::f32));
    return fp8_bits(i.has("relu") && x < 0 ? 0 : x, __NV_SATFINITE, static_cast<__nv_fp8_interpretation_t>(i.mode));
  };
  run.set(i.arguments[0], byte(1) << 8 | byte(2), PtxType::b16);
}
void execute_cvt_from_fp8(PtxRun& run, const PtxInstruction& i) {
  const Bits pair = run.get(i.arguments[1], PtxType::b16);
  const auto half = [&](Bits byte) -> Bits {
    const float x = fp8_value(static_cast<unsigned char>(byte), static_cast<__nv_fp8_interpretation_t>(i.mode));
    return half_bits(i.has("relu") && x < 0 ? 0 : x);
  };
  run.set(i.arguments[0], half(pair >> 8) << 16 | half(pair & 0xff), PtxType::b32);
}

PtxExecute choose_cvt(PtxInstruction& i) {
  if (i.opcode == "cvt.rna.tf32.f32") return execute_cvt_tf32;
  for (const auto& [type, name] : {std::pair(__NV_E4M3, "e4m3x2"), {__NV_E5M2, "e5m2x2"}}) {
    i.mode = type;
    const std::string& last = i.pieces.back();
    if (i.has(name) && last == "f32")
      return i.only(1, {"rn", "satfinite", "relu", name}) && i.has("satfinite") && i.arguments.size() == 3
                 ? execute_cvt_to_fp8
                 : nullptr;
    if (i.has(name) && last == name)
      return i.only(1, {"rn", "relu", name}) && i.has("f16x2") && i.arguments.size() == 2 ? execute_cvt_from_fp8
                                                                                          : nullptr;
  }
  if (!i.only(1, {"rn", "rz", "rni", "rzi", "rmi", "rpi", "ftz", "sat", "relu"})) return nullptr;
  i.from = i.last_type();
  i.type = i.type_before_last();
  if (i.type == PtxType::f16x2 || i.type == PtxType::bf16x2)
    return i.from == PtxType::f32 && i.arguments.size() == 3 && !i.has("rz") ? execute_cvt_pair : nullptr;
  const bool narrow = i.type == PtxType::f16 || i.type == PtxType::bf16;
  if (i.arguments.size() != 2 || i.type == PtxType::none || (i.has("rz") && narrow) || (i.has("relu") && !narrow))
    return nullptr;
  if (i.has("sat") && !is_float(i.type)) return nullptr;
  i.mode = i.has("rzi") || i.has("rz") ? to_zero : i.has("rmi") ? down : i.has("rpi") ? up : to_nearest;
  return execute_cvt;
}

// ---- bit fields, three-way logic, choices

PtxExecute choose_lop3(PtxInstruction& i) {
  if (i.opcode != "lop3.b32" || i.arguments.size() != 5) return nullptr;
  return [](PtxRun& run, const PtxInstruction& i) {
    const Bits a = run.get(i.arguments[1], PtxType::b32), b = run.get(i.arguments[2], PtxType::b32),
               c = run.get(i.arguments[3], PtxType::b32), table = run.get(i.arguments[4], PtxType::b32);
    Bits result = 0;
    for (int bit = 0; bit < 32; ++bit)
      result |= (table >> ((a >> bit & 1) << 2 | (b >> bit & 1) << 1 | (c >> bit & 1)) & 1) << bit;
    run.set(i.arguments[0], result, PtxType::b32);
  };
}

PtxExecute choose_prmt(PtxInstruction& i) {
  if (i.opcode != "prmt.b32" || i.arguments.size() != 4) return nullptr;
  return [](PtxRun& run, const PtxInstruction& i) {
    const auto get = [&](int n) { return static_cast<unsigned>(run.get(i.arguments[n], PtxType::b32)); };
    run.set(i.arguments[0], __byte_perm(get(1), get(2), get(3)), PtxType::b32);
  };
}

PtxExecute choose_bfe(PtxInstruction& i) {
  i.type = i.last_type();
  if (i.pieces.size() != 2 || (i.type != PtxType::u32 && i.type != PtxType::u64) || i.arguments.size() != 4)
    return nullptr;
  return [](PtxRun& run, const PtxInstruction& i) {
    const Bits a = run.get(i.arguments[1], i.type), from = run.get(i.arguments[2], PtxType::u32) & 0xff,
               count = run.get(i.arguments[3], PtxType::u32) & 0xff;
    const Bits moved = from < 64 ? a >> from : 0;
    run.set(i.arguments[0], count < 64 ? moved & ((Bits(1) << count) - 1) : moved, i.type);
  };
}

PtxExecute choose_bfi(PtxInstruction& i) {
  i.type = i.last_type();
  if (i.pieces.size() != 2 || (i.type != PtxType::b32 && i.type != PtxType::b64) || i.arguments.size() != 5)
    return nullptr;
  return [](PtxRun& run, const PtxInstruction& i) {
    const Bits a = run.get(i.arguments[1], i.type), b = run.get(i.arguments[2], i.type),
               to = run.get(i.arguments[3], PtxType::u32) & 0xff, count = run.get(i.arguments[4], PtxType::u32) & 0xff;
    const Bits field = to < 64 ? (count < 64 ? (Bits(1) << count) - 1 : ~Bits(0)) << to : 0;
    run.set(i.arguments[0], (b & ~field) | (to < 64 ? a << to & field : 0), i.type);
  };
}

PtxExecute choose_selp(PtxInstruction& i) {
  i.type = i.last_type();
  if (i.pieces.size() != 2 || i.type == PtxType::none || i.arguments.size() != 4) return nullptr;
  return [](PtxRun& run, const PtxInstruction& i) {
    const bool first = run.get(i.arguments[3], PtxType::pred) != 0;
    run.set(i.arguments[0], run.get(i.arguments[first ? 1 : 2], i.type), i.type);
  };
}

enum Comparison { eq, ne, lt, le, gt, ge };
constexpr const char* comparisons[] = {"eq", "ne", "lt", "le", "gt", "ge"};
constexpr const char* unsigned_comparisons[] = {"eq", "ne", "lo", "ls", "hi", "hs"};

template <class T>
bool compare(int how, T a, T b) {
  switch (how) {
    case eq:
      return a == b;
    case ne:
      return a < b || b < a;  // not of NaN
    case lt:
      return a < b;
    case le:
      return a <= b;
    case gt:
      return a > b;
    default:
      return a >= b;
  }
}

PtxExecute choose_setp(PtxInstruction& i) {
  if (i.pieces.size() < 3 || i.arguments.size() != 3 || !i.only(2, {"ftz"})) return nullptr;
  i.type = i.last_type();
  i.mode = -1;
  for (int how = 0; how < 6; ++how)
    if (i.pieces[1] == comparisons[how] || i.pieces[1] == unsigned_comparisons[how]) i.mode = how;
  if (i.mode < 0 || i.type == PtxType::none) return nullptr;
  return [](PtxRun& run, const PtxInstruction& i) {
    const Bits a = run.get(i.arguments[1], i.type), b = run.get(i.arguments[2], i.type);
    const bool yes = is_float(i.type)    ? compare(i.mode, number_of(a, i.type), number_of(b, i.type))
                     : is_signed(i.type) ? compare(i.mode, signed_of(a, i.type), signed_of(b, i.type))
                                         : compare(i.mode, a, b);
    run.set(i.arguments[0], yes, PtxType::pred);
    if (!i.arguments[0].also.empty()) run.set(i.arguments[0].also[0], !yes, PtxType::pred);
  };
}

template <bool plus>
void execute_wide(PtxRun& run, const PtxInstruction& i) {
  const bool with_sign = is_signed(i.from);
  const Bits a = run.get(i.arguments[1], i.from), b = run.get(i.arguments[2], i.from);
  Bits product = with_sign ? static_cast<Bits>(signed_of(a, i.from) * signed_of(b, i.from)) : a * b;
  if (plus) product += run.get(i.arguments[3], i.type);
  run.set(i.arguments[0], product, i.type);
}

PtxExecute choose_wide(PtxInstruction& i) {
  i.from = i.last_type();
  const int bytes = ptx_bytes(i.from);
  if (i.pieces.size() != 3 || (bytes != 2 && bytes != 4)) return nullptr;
  i.type = bytes == 2 ? PtxType::b32 : PtxType::b64;
  return i.pieces[0] == "mad" ? execute_wide<true> : execute_wide<false>;
}

}  // namespace

PtxExecute choose_ptx_arithmetic(PtxInstruction& i) {
  const std::string& name = i.pieces[0];
  if (name == "mov") return choose_mov(i);
  if (name == "cvt") return choose_cvt(i);
  if (name == "lop3") return choose_lop3(i);
  if (name == "prmt") return choose_prmt(i);
  if (name == "bfe") return choose_bfe(i);
  if (name == "bfi") return choose_bfi(i);
  if (name == "selp") return choose_selp(i);
  if (name == "setp") return choose_setp(i);
  if ((name == "mul" || name == "mad") && i.has("wide")) return choose_wide(i);
  return choose_calculation(i);
}

}  // namespace simt
