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
// rows: with up to 64 queries, and with more); of a tile of 192 rows of `even`, 128 of wide heads, where K and V fit
// into the L2 cache, and where they do not; and of a round of `warpgroup` with a thread block on each multiprocessor,
// and with two. They are fitted to what 334 problems took on an H200 (2026-11-24-11-rates.json): at five of them the
// choice takes more than 1.03 times as long as the fastest, and at none more than 1.05. `beside`, which chapter 10
// has since, takes a few percent less than `prompt`.
struct Rates {
  double prompt[3], even[2], warpgroup[2];
};
Rates rates_of(int head_dim) {
  if (head_dim <= 64) return {{6.3, 12, 12.8}, {14.9, 14.6}, {9.8, 9.8}};
  if (head_dim <= 128) return {{9.3, 11.9, 14.3}, {15.4, 16}, {8.6, 14}};
  if (head_dim <= 192) return {{10.3, 14.8}, {19.6, 22.1}};
  return {{13.6, 21}, {27.2, 30.2}};
}

// About how long each takes for more than 16 rows a kv head, in microseconds.
struct Times {
  double warpgroup, even, prompt;
};

Times times_of(const Problem& p) {
  constexpr double prompt_start = 4.6, even_start = 18, warpgroup_start = 8.2;  // and end
  const Rates rates = rates_of(p.head_dim);
  const double processors = multiprocessors(), keys = p.seq_k / 1000.;
  const int rows = key_parts::group_rows(p), heads = p.batch * p.heads, kv_heads = p.batch * p.kv_heads;
  const auto prompt = [&](int tile_rows, double rate) {
    return prompt_start + std::ceil(heads * ceil_div(p.seq_q, tile_rows) / processors) * rate * keys;
  };
  const bool from_memory = 4. * kv_heads * p.seq_k * p.head_dim > l2_bytes();
  const double even = kv_heads * ceil_div(rows, is_wide(p) ? 128 : 192) / processors * rates.even[from_memory] * keys;
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
    // With half as many queries as keys, or more, under the causal mask tiles differ: `prompt` takes the longest first.
    if (p.mask == attention::Mask::causal && 2 * p.seq_q >= p.seq_k) return hopper::chosen.forward.chooses(p);
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
