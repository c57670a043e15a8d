// Kernels that are wrong on purpose. A test suite is judged by the wrong kernels it rejects.
#pragma once

#include "attention/chapter.h"

namespace mutants {

enum class Mutation {
  none,                   // the kernel is right
  no_rescale,             // O and l are not corrected when a later tile raises the maximum
  wrong_scale,            // 1/D instead of 1/sqrt(D)
  dropped_tail,           // only whole tiles of keys
  dropped_last_key,       // j < Nk - 1
  mask_off_by_one,        // the diagonal itself is hidden
  mask_top_left,          // causal, but aligned top-left: j <= i whatever Nk - Nq is
  stop_one_tile_short,    // the keys of a block end before the tile that its last diagonal element is in
  stop_top_left,          // they end at its last row, as if aligned top-left; the mask itself is right
  stop_at_first_row,      // they end where its first row, not its last, stops seeing
  diagonal_unmasked,      // a tile counts as wholly visible if its first key is
  mean_of_v,              // every key weighs the same
  missing_barrier,        // between writing a tile to shared memory and reading it
  missing_reuse_barrier,  // between reading a tile and writing the next one over it
  sum_in_any_order,       // l is summed over threads by atomics: right, but not bitwise equal from run to run
  wrong_kv_head,          // h % kv_heads instead of h / (heads / kv_heads)
  lse_in_log2,            // LSE in base 2
  no_max,                 // exp(s) without subtracting the maximum
  small_weights,          // P of the products is stored 2^8 below what it could be: fp16 loses the tail that l has counted
  nan_for_empty_rows,     // 0/0 for a row that sees no key
  writes_past_end,        // rows beyond Nq are stored as well
  // With RoPE:
  rope_neighbours,         // pairs are elements 2i and 2i + 1, not i and i + D/2
  rope_table_by_head,      // every head has angles of its own, further on in the table
  rope_query_from_zero,    // query i stands at position i, whatever Nk - Nq is
  rope_no_negative_angle,  // position -1 is turned like position 1
  rope_keys_only,          // Q stays as it is
  rope_position_in_tile,   // keys are counted from the beginning of their tile
};

// A small streaming-softmax forward with that mistake. Any problem with head_dim 64 or 128, with RoPE or without.
attention::Forward forward(Mutation mutation);

enum class BackwardMutation {
  none,
  no_row_sum,             // dS = P dP, without - D_i
  no_lse,                 // P = exp(S), without - LSE
  missing_transpose,      // dK and dV from P and dS where they need the transposes
  unscaled_dk,            // dK misses the scale
  one_head_of_group,      // dK and dV of the first query head of a group only
  mask_forgotten,         // hidden keys weigh exp(S - LSE) too
  mask_wrong_side,        // causal, but from the diagonal on instead of up to it
  unmasked_tail,          // columns past the last key weigh exp(0 - LSE), as if K being 0 there made up for it
  missing_barrier,        // between writing a tile of K to shared memory and reading it
  missing_reuse_barrier,  // between reading a tile and writing the next one over it
  dropped_last_query,     // dK and dV miss the last query row
  late_start,             // causal: dK and dV miss the first query that sees the key: an early stop that is one row off
  top_left_start,         // causal: queries are taken from the key's own number on, whatever Nk - Nq is
  inf_times_zero,         // hidden keys are multiplied by 0: NaN for a row that sees no key, whose LSE is -inf
  unwritten_dq,           // dQ of rows that see no key is left as it was
  small_workspace,        // asks for fewer bytes than it writes to
  // With RoPE:
  rope_not_back,         // dQ and dK are those of the rotated Q and K
  rope_forward,          // dQ and dK are turned forward once more instead of back
  rope_back_from_zero,   // dQ of query i is turned back by position i, whatever Nk - Nq is
  rope_back_in_group,    // dK is turned back once for each query head of the group
};

// A plain backward with that mistake: one thread a row of dQ, or of dK and dV. Any problem with head_dim 64 or 128, with
// RoPE or without.
attention::Backward backward(BackwardMutation mutation);

}  // namespace mutants
