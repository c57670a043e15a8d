// Shifts by as many bits as a number has, or more: C++ leaves open what they give, a GPU gives 0 (or -1, for a negative
// number shifted right), and an x86 something else. GCC's -fsanitize=shift-exponent calls this; its own library is not
// linked.
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "simt/engine/findings.h"
#include "simt/front/front.h"

namespace {

// As GCC lays them out.
struct Shift {
  const char* file;
  std::uint32_t line, column;
  struct Type {
    std::uint16_t kind, info;  // info: bit 0: signed; the rest: the logarithm of its bits
    char name[1];
  } * left, *right;
};

}  // namespace

extern "C" void __ubsan_handle_shift_out_of_bounds(Shift* shift, std::uintptr_t, std::uintptr_t by) {
  if (!simt::in_kernel()) return;  // the host's shift: the same here as beside a GPU
  static std::mutex mutex;
  static std::set<std::pair<std::string, std::uint32_t>> said;
  const std::lock_guard lock(mutex);
  if (!said.emplace(shift->file, shift->line).second) return;
  const bool is_signed = (shift->right->info & 1) != 0;
  const auto bits = static_cast<std::intmax_t>(
      is_signed && shift->right->info >> 1 == 5 ? static_cast<std::int32_t>(by) : static_cast<std::intptr_t>(by));
  simt::found_mistake(shift->file + (":" + std::to_string(shift->line)) + ": a shift by " + std::to_string(bits) +
                      " of a number of " + std::to_string(1 << (shift->left->info >> 1)) +
                      " bits: C++ leaves open what that gives; a GPU shifts all bits out, and this machine does not");
}
