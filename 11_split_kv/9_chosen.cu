// Chapter 11, rung 9, chosen: the host chooses the kernel by the number of rows.
//
// No kernel of its own. The host launches (for more than 16 rows, whichever it estimates to be the fastest)
//
//   `tall`       up to 16 rows of queries a kv head: a tile that is as low as an mma; not for head dims above 128
//   `warpgroup`  for more, while their products cost less than reading K and V
//   `even`       for still more, where whole tiles of 192 rows would leave multiprocessors without work
//   `prompt`     of chapter 10 for all others, or up to D = 64 `beside`: chapter 10's own `chosen` says which
//
// and on a GPU that does not have the instructions of Hopper: `tall` instead of `warpgroup`, `packed` instead of
// `even`, and `balanced` of chapter 08 instead of those of chapter 10.
//
// What changed since 8_even: `even` gets the problems between few rows and many, other kernels get the others.
//
// Expected limit: memory for few rows, and that of chapter 10 or 08 for many.
#include <algorithm>
#include <cmath>
#include <string>

#include "attention/key_parts.h"
#include "attention/rung.h"
#include "attention/schedule.h"
#include "device/limits.h"

namespace causal_earlystop {
extern const attention::Rung balanced;
}

namespace hopper {
extern const attention::Rung chosen;
}

namespace split_kv {

extern const attention::Rung packed, tall, warpgroup, even;
int warpgroup_parts(const attention::Problem& problem);

namespace {

using attention::Forward;
using attention::ForwardArgs;
using attention::Problem;

// Kernels for wide heads have tiles of 128 rows at most, and neither `tall` nor `warpgroup` is one.
bool is_wide(const Problem& p) { return p.head_dim > 128; }

// Microseconds for 1000 keys: of a round of `prompt` with tiles of 64, 128 and 192 rows (for wide heads, of 128
// rows: with up to 64 queries, and with more); of a tile of 192 rows of `even`, 128 of wide heads, that is given out
// whole, or finds K and V in the L2 cache, and of one that does not; and of a round of `warpgroup` with a thread block
// on each multiprocessor, and with two. They are fitted to what 343 problems took on an H200, launch by launch and back
// to back (2026-12-01-11-rates.json): at ten of them the choice takes more than 1.03 times as long as the fastest, and
// at none more than 1.09.
struct Rates {
  double prompt[3], even[2], warpgroup[2];
};
Rates rates_of(int head_dim) {
  if (head_dim <= 64) return {{6.2, 8.8, 12.1}, {13, 12.8}, {9.4, 9.4}};
  if (head_dim <= 128) return {{9.4, 12.9, 15.4}, {15.9, 16.8}, {9.6, 15.9}};
  if (head_dim <= 192) return {{11.9, 16.2}, {17.1, 23.5}};
  return {{15.2, 20.8}, {23.9, 32.4}};
}

// About how long each takes for more than 16 rows a kv head, in microseconds.
struct Times {
  double warpgroup, even, prompt;
};

Times times_of(const Problem& p) {
  constexpr double prompt_start = 4.7, even_start = 23, warpgroup_start = 10.7;  // and end
  const Rates rates = rates_of(p.head_dim);
  const double processors = multiprocessors(), keys = p.seq_k / 1000.;
  const int rows = key_parts::group_rows(p), kv_heads = p.batch * p.kv_heads;
  const auto prompt = [&](int tile_rows, double rate) {
    return prompt_start + attention::rounds_of_tiles(p, tile_rows) * rate * keys;
  };
  const bool from_memory = 4. * kv_heads * p.seq_k * p.head_dim > l2_bytes();
  const double share = kv_heads * ceil_div(rows, is_wide(p) ? 128 : 192) / processors, whole = std::ceil(share) - 1;
  const double even = (whole * rates.even[0] + (share - whole) * rates.even[from_memory]) * keys;
  if (is_wide(p)) return {INFINITY, even_start + even, prompt(128, rates.prompt[p.seq_q > 64])};

  const int tiles = kv_heads * ceil_div(rows, 64), parts = warpgroup_parts(p);
  const double rounds = tiles * parts / processors;
  const double warpgroup = rounds <= 1 ? rates.warpgroup[0] : std::ceil(rounds / 2) * rates.warpgroup[1];
  return {warpgroup_start + warpgroup / parts * keys, even_start + even,
          std::min({prompt(64, rates.prompt[0]), prompt(128, rates.prompt[1]), prompt(192, rates.prompt[2])})};
}

const Forward& chosen_for(const Problem& p) {
  constexpr int low_rows = 16, tall_rows = 64;
  const int rows = key_parts::group_rows(p);
  if (rows <= low_rows && !is_wide(p)) return tall.forward;
  if (even.forward.unsupported(p).empty()) {
    // With half as many queries as keys, or more, whole tiles fill most rounds; under the causal mask they differ, and
    // `prompt` takes the longest first.
    if (2 * p.seq_q >= p.seq_k) return hopper::chosen.forward.chooses(p);
    const Times times = times_of(p);
    const double split = std::min(times.warpgroup, times.even);
    if (times.prompt < split) return hopper::chosen.forward.chooses(p);
    return times.warpgroup < times.even ? warpgroup.forward : even.forward;
  }
  constexpr int Br = 128, blocks = 2;  // 08's rows of a thread block, and its blocks per multiprocessor
  if (rows <= tall_rows) return tall.forward;
  const int64_t whole_blocks = int64_t(p.batch) * p.heads * ceil_div(p.seq_q, Br);
  return whole_blocks < blocks * multiprocessors() ? packed.forward : causal_earlystop::balanced.forward;
}

// Above 128 it supports the head dims that `even` supports.
std::string unsupported(const Problem& p) {
  const std::string why = attention::head_dim_not_8_to_256(p);
  return why.empty() && is_wide(p) ? even.forward.unsupported(p) : why;
}

size_t workspace_bytes(const Problem& p) { return chosen_for(p).workspace_bytes(p); }

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) { chosen_for(p).run(p, args, stream); }

}  // namespace

extern const attention::Rung chosen;
constinit const attention::Rung chosen = {
    .name = "chosen",
    .idea = "the host chooses by the number of rows: `tall`, `warpgroup`, `even`, or the kernel of chapter 10",
    .forward = {.unsupported = unsupported,
                .workspace_bytes = workspace_bytes,
                .run = run,
                .writes_lse = true,
                .chooses = chosen_for}};

}  // namespace split_kv
