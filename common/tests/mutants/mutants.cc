// The list of the wrong kernels.
#include "tests/mutants/mutants.h"

namespace mutants {
namespace {

struct Described {
  const char* name;
  const char* mistake;
  bool rope = false;
  bool needs_a_gpu = false;
};

// In the order of Mutation.
constexpr Described of_the_forward[] = {
    {"none", "the kernel is right"},
    {"no_rescale", "O and l are not corrected when a later tile raises the maximum"},
    {"wrong_scale", "1/D instead of 1/sqrt(D)"},
    {"own_scale", "1/sqrt(D), whatever scale the problem has"},
    {"dropped_tail", "only whole tiles of keys"},
    {"dropped_last_key", "the last key is left out"},
    {"nearly_full_tile", "a tile that lacks one key counts as full"},
    {"rows_in_a_byte", "row 256 is taken for row 0"},
    {"rows_in_ten_bits", "row 1024 is taken for row 0", false, true},
    {"mask_off_by_one", "the diagonal itself is hidden"},
    {"mask_top_left", "causal, but aligned top-left: j <= i whatever Nk - Nq is"},
    {"stop_one_tile_short", "the keys of a block end before the tile that its last diagonal element is in"},
    {"stop_top_left", "they end at its last row, as if aligned top-left; the mask itself is right"},
    {"stop_at_first_row", "they end where its first row, not its last, stops seeing"},
    {"diagonal_unmasked", "a tile counts as wholly visible if its first key is"},
    {"mean_of_v", "every key weighs the same"},
    {"missing_barrier", "between writing a tile to shared memory and reading it"},
    {"missing_reuse_barrier", "between reading a tile and writing the next one over it"},
    {"missing_global_barrier",
     "between one warp's writing of global memory and another's reading, where blocks may have 100 KB of shared "
     "memory; it "
     "says that it is not deterministic"},
    {"wrong_warp_mask", "lanes come to a __syncwarp whose mask does not name them"},
    {"barriers_crossed", "one warp waits at the second of two barriers while the others wait at the first"},
    {"harmless_race", "shared memory is read while it is written; nothing that is read there makes a difference"},
    {"sum_in_any_order",
     "l is summed over threads by atomics, where blocks may have 100 KB of shared memory: right, but not bitwise equal "
     "from run to run"},
    {"wrong_kv_head", "h % kv_heads instead of h / (heads / kv_heads)"},
    {"group_in_bits", "the group is shifted away: 3 or 6 query heads of a kv head count as 2 or 4"},
    {"heads_modulo_64", "head 64 reads K and V of head 0"},
    {"head_dim_in_sixteens", "the last 8 elements of a head dim that is no multiple of 16 do not count"},
    {"lse_in_log2", "LSE in base 2"},
    {"no_max", "exp(s) without subtracting the maximum"},
    {"low_first_max", "the maximum starts at 0 instead of -inf"},
    {"no_score_yet", "-inf - -inf while all scores of the row so far are -inf because they overflowed"},
    {"small_weights", "P of the products is stored 2^8 below what it could be: fp16 loses the tail that l has counted"},
    {"nan_for_empty_rows", "0/0 for a row that sees no key"},
    {"nan_counts_as_empty", "O = 0 unless l > 0, which holds for NaN, too"},
    {"added_mask", "-inf is added to hidden scores instead of taking their place: NaN stays NaN"},
    {"writes_past_end", "rows beyond Nq are stored as well"},
    {"reads_past_end", "the row of Q after the last one is read, and not used"},
    {"reads_before_writing", "the workspace is read before it is written, and what is there is not used", false, true},
    {"writes_before_start", "the number in front of LSE is overwritten"},
    {"little_memory_no_tail", "only whole tiles of keys, where a block may have less than 100 KB of shared memory"},
    {"default_stream", "the kernel is launched on the default stream, whichever is asked for", false, true},
    {"merge_without_lse", "two parts of the keys are merged as if they weighed the same, whatever their LSE"},
    {"part_twice", "the first part counts twice when two parts of the keys are merged"},
    {"mask_from_part", "the second part of the keys is masked as if its first key were key 0"},
    {"rope_neighbours", "pairs are elements 2i and 2i + 1, not i and i + D/2", true},
    {"rope_table_by_head", "every head has angles of its own, further on in the table", true},
    {"rope_query_from_zero", "query i stands at position i, whatever Nk - Nq is", true},
    {"rope_no_negative_angle", "position -1 is turned like position 1", true},
    {"rope_keys_only", "Q stays as it is", true},
    {"rope_position_in_tile", "keys are counted from the beginning of their tile", true},
    {"rope_own_key_angles", "K's angles are computed from the position, Q's are read from the table", true},
};
static_assert(std::size(of_the_forward) == size_t(Mutation::count));

// In the order of BackwardMutation.
constexpr Described of_the_backward[] = {
    {"none", "the kernel is right"},
    {"no_row_sum", "dS = P dP, without - D_i"},
    {"no_lse", "P = exp(S), without - LSE"},
    {"missing_transpose", "dK and dV from P and dS where they need the transposes"},
    {"unscaled_dk", "dK misses the scale"},
    {"one_head_of_group", "dK and dV of the first query head of a group only"},
    {"mask_forgotten", "hidden keys weigh exp(S - LSE) too"},
    {"mask_wrong_side", "causal, but from the diagonal on instead of up to it"},
    {"unmasked_tail", "columns past the last key weigh exp(0 - LSE), as if K being 0 there made up for it"},
    {"unmasked_only_tile", "the same, if there are fewer keys than a tile has"},
    {"backward_missing_barrier", "between writing a tile of K to shared memory and reading it"},
    {"backward_missing_reuse_barrier", "between reading a tile and writing the next one over it"},
    {"dropped_last_query", "dK and dV miss the last query row"},
    {"late_start", "causal: dK and dV miss the first query that sees the key: an early stop that is one row off"},
    {"top_left_start", "causal: queries are taken from the key's own number on, whatever Nk - Nq is"},
    {"inf_times_zero", "hidden keys are multiplied by 0: NaN for a row that sees no key, whose LSE is -inf"},
    {"clamped_p", "P is at most 1, and fminf(P, 1) makes 1 of NaN"},
    {"rounded_p_in_ds", "dS is made of the P that is rounded for dV, not of the one before"},
    {"unwritten_dq", "dQ of rows that see no key is left as it was"},
    {"small_workspace", "asks for fewer bytes than it writes to"},
    {"stale_workspace",
     "what the launch before has left in the workspace counts; it says that it is not deterministic"},
    {"rope_not_back", "dQ and dK are those of the rotated Q and K", true},
    {"rope_forward", "dQ and dK are turned forward once more instead of back", true},
    {"rope_back_from_zero", "dQ of query i is turned back by position i, whatever Nk - Nq is", true},
    {"rope_back_in_group", "dK is turned back once for each query head of the group", true},
};
static_assert(std::size(of_the_backward) == size_t(BackwardMutation::count));

// In the order of ExtraMutation; each takes only what its mistake is about, so that all else about it is right.
struct DescribedExtra {
  const char* name;
  const char* mistake;
  unsigned takes;
};
constexpr unsigned every_extra = attention::views | attention::window | attention::softcap | attention::alibi |
                                 attention::sink | attention::own_v | attention::packed | attention::blocks;
constexpr DescribedExtra of_extras[] = {
    {"none", "the kernel is right", every_extra},
    {"window_begins_late", "the first key of the window is hidden", attention::window},
    {"window_begins_with_a_tile", "the window begins with the tile of 32 that its first key is in", attention::window},
    {"window_ends_early", "the last key of the window is hidden", attention::window},
    {"window_top_left", "the window goes along with i - j, whatever Nk - Nq is", attention::window},
    {"softcap_of_the_product", "the softcap bends q k, and the scale comes after it", attention::softcap},
    {"alibi_on_one_side", "keys after the query's own lose nothing", attention::alibi},
    {"alibi_of_first_batch", "every batch has the slopes of the first", attention::alibi},
    {"no_sink", "the sink is left out", attention::sink},
    {"sink_of_zero", "every head's sink is 0: a softmax off by one", attention::sink},
    {"sink_not_in_lse", "LSE is that of the keys alone", attention::sink},
    {"rows_without_gaps", "O is written as if it were contiguous", attention::views},
    {"writes_into_gaps", "a number is written behind each row of a tensor with gaps", attention::views},
    {"softcap_without_windows", "where there is a window the softcap is forgotten",
     attention::window | attention::softcap},
    {"keys_where_queries_begin", "a packed sequence's keys are taken to begin where its queries do", attention::packed},
    {"key_of_the_neighbour", "each query sees one more key, behind its sequence's last", attention::packed},
    {"last_tile_of_a_sequence", "the last rows of a sequence that fill no tile of 64 are left out", attention::packed},
    {"slopes_of_one_sequence", "every sequence has the slopes of the first", attention::packed | attention::alibi},
    {"writes_behind_sequences", "rows behind the last sequence become zeros", attention::packed},
    {"zeros_of_wrong_lengths", "if cu_seqlens fall or end too late, O is 0", attention::packed | attention::sink},
    {"cut_tile_as_whole", "all pairs of a block mask's cut tile are taken to be seen", attention::blocks},
    {"last_tile_of_a_list", "the last tile of each row's list is left out", attention::blocks},
    {"transposed_bits", "the bits of a cut tile are read as those of its keys", attention::blocks},
    {"mask_of_one_head", "every head has the block mask of the first", attention::blocks},
    {"zeros_of_wrong_lists", "if a block mask's lists are none, O is 0", attention::blocks | attention::sink},
    {"scale_of_v", "the scale is that of V's head dim, where V has its own", attention::own_v},
    {"softcap_without_slope", "dS as if the score were the product itself", attention::softcap},
    {"last_query_of_window", "dK and dV miss the last query that sees the key", attention::window},
    {"unseen_keys_unwritten", "dK and dV of keys that no query sees are left as they were", attention::window},
    {"sink_of_one_batch", "the sink's gradient is that of the first batch", attention::sink},
    {"sink_pushed_up", "the sink's gradient has the wrong sign", attention::sink},
    {"query_of_the_neighbour", "dK and dV take one more query, behind the sequence's last", attention::packed},
    {"keys_without_queries", "dK and dV of a sequence without queries are left as they were", attention::packed},
    {"rows_for_columns", "dK and dV take a column of a block mask to be the row with its number", attention::blocks},
    {"bits_of_queries_for_keys", "dK and dV read the bits of queries where those of keys are", attention::blocks},
    {"dk_as_wide_as_v", "dK gets as many columns as dV has", attention::own_v},
};
static_assert(std::size(of_extras) == size_t(ExtraMutation::count));

// In the order of HopperMutation.
constexpr Described of_hopper[] = {
    {"none", "the kernel is right"},
    {"phase_before", "a tile is waited for by the parity of the phase before: at once"},
    {"refilled_too_early", "V is handed back while a product reads it"},
    {"bytes_of_k_alone", "an mbarrier is told of half of the bytes that come"},
    {"page_of_v", "the descriptor of V has another distance from a page to the next"},
    {"missing_proxy_fence", "O is copied out of shared memory without a fence behind the threads that wrote it"},
    {"begins_alone", "a block copies to the other one of its cluster before that has its mbarriers"},
    {"ends_alone", "a block ends while the other one of its cluster still copies to it"},
    {"told_one_block", "a place that both blocks fill is handed back to the own block alone"},
    {"told_twice", "the own block is told twice that a place is empty, and the other one never"},
    {"copied_to_one", "half of a tile reaches the block that copies it, and not the other one"},
    {"filled_at_once", "nobody waits until a place is empty before it is filled again"},
};
static_assert(std::size(of_hopper) == size_t(HopperMutation::count));

// In the order of Fp8Mutation.
constexpr Described of_eight_bits[] = {
    {"none", "the kernel is right"},
    {"no_scale_of_k", "K's scale is dropped: scores are those of the rounded numbers"},
    {"no_scale_of_v", "V's scale is dropped: O is that of the rounded numbers"},
    {"scale_of_a_part", "a tensor's scale is that of its first half, and what is larger in the other one is cut off"},
    {"infinite_scale", "an infinity makes the scale infinite: all of its tensor becomes NaN"},
    {"infinity_saturates", "an infinity becomes the largest number of eight bits"},
    {"rounded_once_divided",
     "P is rounded to eight bits as a part of 1, not of its row's largest: small ones are lost"},
    {"keys_as_registers", "V's keys are not in the order in which registers hold P"},
    {"sum_never_flushed", "O stays with the tensor core, which cuts off what is 13 bits behind the sum so far"},
};
static_assert(std::size(of_eight_bits) == size_t(Fp8Mutation::count));

std::vector<Mutant> list() {
  std::vector<Mutant> mutants;
  for (size_t i = 1; i < size_t(Mutation::count); i++) {
    const auto& [name, mistake, rope, needs_a_gpu] = of_the_forward[i];
    mutants.push_back({name, mistake, rope, needs_a_gpu, false, forward(Mutation(i))});
    // Chapters that write no LSE are judged by O alone. So are the mutants, unless LSE is what is wrong.
    mutants.back().forward.writes_lse = Mutation(i) == Mutation::lse_in_log2;
    if (Mutation(i) != Mutation::small_weights) continue;
    mutants.push_back(mutants.back());
    mutants.back().name = "small_weights_with_rope";
    mutants.back().rope = true;
  }
  for (size_t i = 1; i < size_t(BackwardMutation::count); i++) {
    const auto& [name, mistake, rope, needs_a_gpu] = of_the_backward[i];
    mutants.push_back({name, mistake, rope, needs_a_gpu, false, {}, backward(BackwardMutation(i))});
  }
  for (size_t i = 1; i < size_t(ExtraMutation::count); i++) {
    const auto& [name, mistake, takes] = of_extras[i];
    if (ExtraMutation(i) <= ExtraMutation::last_of_the_forward)
      mutants.push_back({name, mistake, false, false, false, forward(ExtraMutation(i), takes)});
    else
      mutants.push_back({name, mistake, false, false, false, {}, backward(ExtraMutation(i), takes)});
  }
  for (size_t i = 1; i < size_t(Fp8Mutation::count); i++) {
    const auto& [name, mistake, rope, needs_a_gpu] = of_eight_bits[i];
    mutants.push_back({name, mistake, false, false, false, forward(Fp8Mutation(i))});
  }
  for (size_t i = 1; i < size_t(HopperMutation::count); i++)
#ifdef WORKBOOK_SIMT
    mutants.push_back({of_hopper[i].name, of_hopper[i].mistake, false, false, true, forward(HopperMutation(i))});
#else
    mutants.push_back({of_hopper[i].name, of_hopper[i].mistake, false, false, true});
#endif

  attention::Forward never = forward(Mutation::none), too_much = forward(Mutation::none);
  never.unsupported = [](const attention::Problem&) { return std::string("not today"); };
  mutants.push_back({"refuses_everything", "what every chapter must take is refused", false, false, false, never});
  too_much.unsupported = [](const attention::Problem& p) { return attention::head_dim_unsupported(p, 1, 128); };
  mutants.push_back({"refuses_too_little", "head dims are taken that nobody supports", false, false, false, too_much});
  return mutants;
}

}  // namespace

const std::vector<Mutant>& all() {
  static const std::vector<Mutant> mutants = list();
  return mutants;
}

std::vector<Mutant> on_this_device() {
  std::vector<Mutant> mutants = all();
  std::erase_if(mutants, [](const Mutant& mutant) { return on_gpu ? mutant.needs_the_engine : mutant.needs_a_gpu; });
  return mutants;
}

}  // namespace mutants
