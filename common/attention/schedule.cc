#include "attention/schedule.h"

#include <algorithm>

namespace attention {

int heads_in_a_round(const Problem& p) {
  constexpr size_t l2_bytes = 32 << 20;
  const size_t heads = size_t(p.batch) * p.heads, kv_bytes = 2 * p.kv_size() * 2;
  return int(std::min(heads, std::max<size_t>(32, heads * l2_bytes / kv_bytes)));
}

}  // namespace attention
