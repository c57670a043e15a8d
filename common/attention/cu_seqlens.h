// What can be wrong with where packed sequences begin.
#pragma once

#include <string>

namespace attention {

// Of such numbers, [sequences + 1] in the host's memory, one line that says what is wrong with them; empty if nothing
// is. `name` and `total_name` are what the caller calls them and the number of rows.
inline std::string wrong_cu_seqlens(const char* name, const int* begin, int sequences, const char* total_name,
                                    int total) {
  const auto entry = [&](int b) {
    return std::string(name) + "[" + std::to_string(b) + "] is " + std::to_string(begin[b]);
  };
  if (begin[0] != 0) return entry(0) + ": it must be 0";
  for (int b = 0; b < sequences; b++)
    if (begin[b + 1] < begin[b]) return entry(b) + " and " + entry(b + 1) + ": they must not fall";
  if (begin[sequences] > total)
    return entry(sequences) + ": it must be at most " + total_name + ", " + std::to_string(total);
  return "";
}

}  // namespace attention
