// Kernels that are wrong on purpose. A test suite is judged by the wrong kernels it rejects: see README.md here.
#pragma once

#include <ostream>
#include <vector>

#include "attention/chapter.h"

namespace mutants {

// What is wrong with each is said in mutants.cc, in the same order.
enum class Mutation {
  none,
  no_rescale,
  wrong_scale,
  own_scale,
  dropped_tail,
  dropped_last_key,
  nearly_full_tile,
  rows_in_a_byte,
  rows_in_ten_bits,
  mask_off_by_one,
  mask_top_left,
  stop_one_tile_short,
  stop_top_left,
  stop_at_first_row,
  diagonal_unmasked,
  mean_of_v,
  missing_barrier,
  missing_reuse_barrier,
  missing_global_barrier,
  wrong_warp_mask,
  barriers_crossed,
  harmless_race,
  sum_in_any_order,
  wrong_kv_head,
  group_in_bits,
  heads_modulo_64,
  head_dim_in_sixteens,
  lse_in_log2,
  no_max,
  low_first_max,
  no_score_yet,
  small_weights,
  nan_for_empty_rows,
  nan_counts_as_empty,
  added_mask,
  writes_past_end,
  reads_past_end,
  reads_before_writing,
  writes_before_start,
  little_memory_no_tail,
  default_stream,
  merge_without_lse,
  part_twice,
  mask_from_part,
  rope_neighbours,
  rope_table_by_head,
  rope_query_from_zero,
  rope_no_negative_angle,
  rope_keys_only,
  rope_position_in_tile,
  rope_own_key_angles,
  count
};

enum class BackwardMutation {
  none,
  no_row_sum,
  no_lse,
  missing_transpose,
  unscaled_dk,
  one_head_of_group,
  mask_forgotten,
  mask_wrong_side,
  unmasked_tail,
  unmasked_only_tile,
  missing_barrier,
  missing_reuse_barrier,
  dropped_last_query,
  late_start,
  top_left_start,
  inf_times_zero,
  clamped_p,
  rounded_p_in_ds,
  unwritten_dq,
  small_workspace,
  stale_workspace,
  rope_not_back,
  rope_forward,
  rope_back_from_zero,
  rope_back_in_group,
  count
};

enum class HopperMutation {
  none,
  phase_before,
  refilled_too_early,
  bytes_of_k_alone,
  page_of_v,
  missing_proxy_fence,
  begins_alone,
  ends_alone,
  told_one_block,
  told_twice,
  copied_to_one,
  filled_at_once,
  count
};

enum class Fp8Mutation {
  none,
  no_scale_of_k,
  no_scale_of_v,
  scale_of_a_part,
  infinite_scale,
  infinity_saturates,
  rounded_once_divided,
  keys_as_registers,
  sum_never_flushed,
  count
};

enum class ExtraMutation {
  none,
  window_begins_late,
  window_begins_with_a_tile,
  window_ends_early,
  window_top_left,
  softcap_of_the_product,
  alibi_on_one_side,
  alibi_of_first_batch,
  no_sink,
  sink_of_zero,
  sink_not_in_lse,
  rows_without_gaps,
  writes_into_gaps,
  softcap_without_windows,
  keys_where_queries_begin,
  key_of_the_neighbour,
  last_tile_of_a_sequence,
  slopes_of_one_sequence,
  writes_behind_sequences,
  zeros_of_wrong_lengths,
  cut_tile_as_whole,
  last_tile_of_a_list,
  transposed_bits,
  mask_of_one_head,
  zeros_of_wrong_lists,
  scale_of_v,
  last_of_the_forward = scale_of_v,
  softcap_without_slope,
  last_query_of_window,
  unseen_keys_unwritten,
  sink_of_one_batch,
  sink_pushed_up,
  query_of_the_neighbour,
  keys_without_queries,
  rows_for_columns,
  bits_of_queries_for_keys,
  dk_as_wide_as_v,
  count
};

// A small streaming-softmax forward with that mistake: head dims up to 128 in steps of 8, with RoPE or without.
attention::Forward forward(Mutation mutation);

// A plain backward with that mistake, one thread a row of dQ, or of dK and dV: head dims up to 128, with RoPE or
// without.
attention::Backward backward(BackwardMutation mutation);

// A plain forward and backward with that mistake that takes these extras (Pass::takes), head dims up to 128,
// or 192 where V has its own.
attention::Forward forward(ExtraMutation mutation, unsigned takes);
attention::Backward backward(ExtraMutation mutation, unsigned takes);

// A small forward of bulk copies and wgmma, in clusters of two, head dims up to 128, for the engine alone.
attention::Forward forward(HopperMutation mutation);

// A plain forward in eight bits with that mistake, head dims up to 128.
attention::Forward forward(Fp8Mutation mutation);

struct Mutant {
  const char* name;
  const char* mistake;              // in a sentence
  bool rope;                        // it solves problems with RoPE, and no others
  bool needs_a_gpu;                 // the engine cannot tell it from a right one
  bool needs_the_engine;            // a GPU would hang, or be right by luck
  attention::Forward forward = {};  // one of the two
  attention::Backward backward = {};
};

inline void PrintTo(const Mutant& mutant, std::ostream* to) { *to << mutant.mistake; }  // for GoogleTest

// Every wrong kernel, and wrong ways of saying what a kernel can do.
const std::vector<Mutant>& all();
std::vector<Mutant> on_this_device();  // without those that need a GPU, where there is none, or the engine

}  // namespace mutants
