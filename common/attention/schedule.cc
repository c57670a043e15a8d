#include "attention/schedule.h"

#include <algorithm>
#include <cmath>

#include "device/launch.h"
#include "device/limits.h"

namespace attention {

int heads_in_a_round(const Problem& p) {
  constexpr size_t l2_bytes = 32 << 20;
  const size_t heads = size_t(p.batch) * p.heads, kv_bytes = (p.kv_size() + p.v_size()) * 2;
  return int(std::min(heads, std::max<size_t>(32, heads * l2_bytes / kv_bytes)));
}

int heads_that_run_together(const Problem& p) {
  constexpr double mb = 1 << 20;
  const int heads = p.batch * p.heads, most = p.head_dim > 128 ? 4 : p.head_dim > 64 ? 16 : 32;
  const double head_bytes = 2. * p.kv_size() * 2 / heads;  // of K and V, a query head's share
  if (heads * head_bytes <= (p.mask == Mask::causal ? 32 : 16) * mb) return heads;
  const int room = std::max({1, int(8 * mb / head_bytes), std::min(most, int(16 * mb / head_bytes))});
  // Of the sizes from half to one and a half times that, the one whose last round is the fullest.
  const auto fill = [&](int size) { return double((heads - 1) % size + 1) / size; };
  int best = room;
  for (int away = 1; 2 * away <= std::min(room, 64) && fill(best) < 1; away++)
    for (const int size : {room - away, room + away})
      if (fill(size) > fill(best)) best = size;
  return best;
}

int kv_heads_that_share_the_l2(const Problem& p) {
  constexpr int keys = 128;  // of a thread block
  const int kv_heads = p.batch * p.kv_heads, kv_tiles = ceil_div(p.seq_k, keys);
  const double room = 0.6 * l2_bytes();
  const double head_bytes = double(p.seq_q) * p.head_dim * (2 + 2 + 4);  // Q and dO in 16 bits, the sum of dQ in 32
  // Blocks of more heads than these do not run together. At D = 64, where blocks are shorter, twice as many heads.
  const double together = std::max(8.0, 1.1 * multiprocessors() / kv_tiles * (p.head_dim > 64 ? 1 : 2));
  int round = 1;
  if (p.mask == Mask::causal) {
    const int group = p.heads / p.kv_heads;
    const double group_bytes = head_bytes * group;
    // Blocks of one head wait for one another, at D = 64, where they are short, more than at D = 128. So at D = 64 a
    // round has at least as many kv heads as have room for all of their query heads in 32 MB.
    round = std::max(16, p.head_dim > 64 ? 0 : int((32 << 20) / group_bytes));
    // The block of the last keys is soon done with a query head, and then waits until the block of the first keys comes
    // to the next query head. With more heads in a round, the block of the last keys starts later. That pays as long as
    // what these heads read nearly fits in the L2: with 8 MB a head on an H100 it took 1.4 times as long.
    if (group > 1 && 32 * head_bytes < 1.5 * l2_bytes()) round = std::max(32, round);
  }
  while (round < kv_heads && 2 * round * head_bytes <= room && 2 * round <= together) round *= 2;
  return std::min(kv_heads, round);
}

double rounds_of_tiles(const Problem& p, int Br) {
  const double rounds = double(p.batch) * p.heads * ceil_div(p.seq_q, Br) / multiprocessors();
  if (rounds <= 1) return 1;
  const auto keys = [&](int i) { return std::max(1, p.keys_of(i).end - p.keys_of(i).first); };
  // The last round has the first rows, and the last of these have its longest tile.
  const double missing = std::ceil(rounds) - rounds, row = (1 - missing) / rounds * p.seq_q;
  return missing == 0 ? rounds : rounds + missing * keys(int(row)) / keys(p.seq_q - 1);
}

}  // namespace attention
