// Inline PTX. An `asm volatile("text" : "=r"(x), "+f"(y) : "l"(p) : "memory");` of a kernel becomes, for g++,
//
//   simt::ptx(file, line, "text", simt::ptx_out<'r'>(x), simt::ptx_inout<'f'>(y), simt::ptx_in<'l'>(p));
//
// The text is read when it is first executed, and its instructions are carried out one by one (ptx.cc). One that the
// engine does not know fails the launch, by name, when a thread comes to it.
#pragma once

#include <cstdint>
#include <type_traits>

#include "simt/engine/types.h"

namespace simt {

struct PtxOperand {
  std::uint64_t bits;
  const char* name;       // of %[name]; null if it has a number only
  void* place = nullptr;  // of four bytes that the instruction itself reads and writes; else they are `bits`
};

// An operand as the statement has it: what it is made of, and where the result goes, if there is one. One that this
// function neither reads nor writes is left to the instruction, which can write it later, too.
template <char constraint, class T, bool reads, bool writes>
struct PtxArgument {
  T value;  // a reference if it is written
  const char* name;
};
template <char constraint, class T>
constexpr bool is_of_constraint =
    !std::is_arithmetic_v<T> || (std::is_floating_point_v<T> == (constraint == 'f' || constraint == 'd') &&
                                 sizeof(T) == (constraint == 'h'                        ? 2
                                               : constraint == 'r' || constraint == 'f' ? 4
                                                                                        : 8));
template <char constraint, class T>
PtxArgument<constraint, T&, false, true> ptx_out(T& variable, const char* name = nullptr) {
  static_assert(is_of_constraint<constraint, T>,
                "the variable of an operand of PTX is of another type than its letter");
  return {variable, name};
}
template <char constraint, class T>
PtxArgument<constraint, T&, true, true> ptx_inout(T& variable, const char* name = nullptr) {
  static_assert(is_of_constraint<constraint, T>,
                "the variable of an operand of PTX is of another type than its letter");
  return {variable, name};
}
template <char constraint, class T>
PtxArgument<constraint, T, true, false> ptx_in(T value, const char* name = nullptr) {
  return {value, name};
}

template <char constraint, class T>
PtxArgument<constraint, T&, false, false> ptx_late(T& variable, const char* name = nullptr) {
  static_assert(sizeof(T) == 4, "the engine has sums of wgmma in 32 bits");
  return {variable, name};
}

template <char constraint, class T>
std::uint64_t ptx_bits(T value) {
  std::uint64_t bits = 0;
  if constexpr (constraint == 'f') {
    bits = __builtin_bit_cast(std::uint32_t, static_cast<float>(value));
  } else if constexpr (constraint == 'd') {
    bits = __builtin_bit_cast(std::uint64_t, static_cast<double>(value));
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    bits = static_cast<std::uint64_t>(value);
  } else {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8, "an operand of PTX has at most 64 bits");
    __builtin_memcpy(&bits, &value, sizeof value);
  }
  return bits;
}

void run_ptx(const char* file, int line, const char* text, PtxOperand* operands, int count);

// Inlined, so that results go straight to the kernel's variables and run_ptx() returns to the kernel's line.
template <char... constraints, class... T, bool... reads, bool... writes>
__attribute__((always_inline)) inline void ptx(const char* file, int line, const char* text,
                                               PtxArgument<constraints, T, reads, writes>... arguments) {
  PtxOperand operands[sizeof...(arguments) + 1] = {[](auto& argument, auto constraint, auto read, auto write) {
    if constexpr (decltype(read)::value)
      return PtxOperand{ptx_bits<decltype(constraint)::value>(argument.value), argument.name};
    else if constexpr (decltype(write)::value)
      return PtxOperand{0, argument.name};
    else
      return PtxOperand{0, argument.name, &argument.value};
  }(arguments, std::integral_constant<char, constraints>(), std::bool_constant<reads>(),
                                                   std::bool_constant<writes>())...};
  run_ptx(file, line, text, operands, sizeof...(arguments));
  [[maybe_unused]] const PtxOperand* operand = operands;
  (
      [&](auto& argument, auto write) {
        if constexpr (decltype(write)::value) {
          using Variable = std::remove_reference_t<decltype(argument.value)>;
          if constexpr (std::is_integral_v<Variable> || std::is_enum_v<Variable>)
            argument.value = static_cast<Variable>(operand->bits);
          else
            __builtin_memcpy(&argument.value, &operand->bits, sizeof(Variable));
        }
        ++operand;
      }(arguments, std::bool_constant<writes>()),
      ...);
}

}  // namespace simt
