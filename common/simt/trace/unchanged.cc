#include "simt/trace/unchanged.h"

#include "simt/engine/diagnosis.h"
#include "simt/engine/engine.h"
#include "simt/engine/findings.h"

namespace simt {

AccessCode code_at([[maybe_unused]] const void* pc) {
#ifdef __x86_64__
  const auto* code = static_cast<const std::uint8_t*>(pc);
  while (*code == 0x66 || (*code & 0xf0) == 0x40) ++code;  // 16 bits; further registers
  if (*code == 0xc6 || *code == 0xc7) return AccessCode::stores_a_number;
  const bool has_a_number = *code == 0x80 || *code == 0x81 || *code == 0x83;
  if (has_a_number && (code[1] >> 3 & 7) == 7) return AccessCode::compares_with_a_number;
#endif
  return AccessCode::other;
}

void UnchangedStores::launch_ends() {
  for (auto& [places, pair] : pairs_) {
    const auto [store, read] = places;
    if (pair.said || !(changing_.contains(store) || code_at(store) == AccessCode::stores_a_number)) continue;
    pair.said = true;
    if (said_lines_.insert(line_of(store) + " " + line_of(read)).second)
      noted(pair.message +
            ": what is stored was there already, so the read finds the same in any order. With other numbers it might "
            "not");
  }
}

void UnchangedStores::program_ends() {
  std::map<const void*, const Pair*> first;  // of each kernel
  for (const auto& [places, pair] : pairs_) {
    if (pair.said) continue;
    const Pair*& known = first[pair.kernel];
    if (known == nullptr || pair.number < known->number) known = &pair;
  }
  for (const auto& [kernel, pair] : first) found_mistake(pair->message);
}

}  // namespace simt
