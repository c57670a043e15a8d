// The C interface: finds the rung, checks the call, and turns every exception into a status and a line of text.
#include "capi/flash_attention_workbook.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "attention/block_mask.h"
#include "attention/cu_seqlens.h"
#include "capi/all_chapters.h"
#include "device/cuda_error.h"

namespace {

using attention::Backward;
using attention::Chapter;
using attention::Forward;
using attention::Pass;
using attention::Problem;
using attention::Rung;
using attention::Strides;

// A fixed buffer: a failure to allocate must not become one to report.
thread_local char last_error[1024] = "";

// Keeps the text, on one line: the SIMT engine's diagnoses, and the names that callers pass, may have more. What the
// chapters' programs have as flags, head-dim, is a field here, head_dim.
faw_status fail(faw_status status, const char* message) noexcept {
  std::snprintf(last_error, sizeof last_error, "%s", message);
  for (const char* flag : {"kv-heads", "seq-q", "seq-k", "head-dim-v", "head-dim", "total-q", "total-k"})
    for (char* found = last_error; (found = std::strstr(found, flag));)
      std::replace(found, found + std::strlen(flag), '-', '_');
  std::replace_if(
      last_error, last_error + std::strlen(last_error), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return status;
}

// Thrown inside this file only; guarded() turns it into a status.
struct Failure {
  faw_status status;
  std::string message;
};

[[noreturn]] void refuse(const std::string& message) { throw Failure{FAW_INVALID, message}; }

template <class Function>
faw_status guarded(Function&& function) noexcept {
  try {
    function();
    return FAW_OK;
  } catch (const Failure& failure) {
    return fail(failure.status, failure.message.c_str());
  } catch (const CudaError& error) {
    cudaGetLastError();  // it is reported here: the caller's next launch must not find it again
    return fail(FAW_CUDA_ERROR, error.what());
  } catch (const std::exception& error) {
    return fail(FAW_FAILED, error.what());
  } catch (...) {
    return fail(FAW_FAILED, "unknown error");
  }
}

const Chapter* find_chapter(const char* name) {
  if (name)
    for (const Chapter* chapter : all_chapters())
      if (chapter->name == name) return chapter;
  return nullptr;
}

bool has(const Rung& rung, const Forward Rung::*direction) { return bool(rung.*direction); }
bool has(const Rung& rung, const Backward Rung::*direction) { return bool(rung.*direction); }

const char* name_of(const Forward Rung::*direction) {
  return direction == &Rung::forward ? "forward" : "forward of tensors in e4m3";
}
const char* name_of(const Backward Rung::*) { return "backward"; }

// Null if there is none of that name; of no name, if no rung has the direction.
template <class Direction>
const Rung* find_rung(const Chapter& chapter, const char* name, Direction direction) {
  const auto found = std::find_if(chapter.rungs.rbegin(), chapter.rungs.rend(), [&](const Rung& rung) {
    return name ? std::strcmp(rung.name, name) == 0 : has(rung, direction);
  });
  return found == chapter.rungs.rend() ? nullptr : &*found;
}

// Null if the rung or the direction is not there.
template <class Args>
const Pass<Args>* find_pass(const char* chapter_name, const char* rung_name, const Pass<Args> Rung::*direction) {
  const Chapter* chapter = find_chapter(chapter_name);
  const Rung* rung = chapter ? find_rung(*chapter, rung_name, direction) : nullptr;
  return rung && has(*rung, direction) ? &(rung->*direction) : nullptr;
}

template <class Range, class Name>
std::string joined(const Range& range, Name&& name) {
  std::string list;
  for (const auto& item : range) list += std::string(list.empty() ? "" : ", ") + name(item);
  return list;
}

// "; chapters that take this problem: ..", or nothing if there are none.
template <class Args>
std::string who_takes(const Problem& problem, const Pass<Args> Rung::*direction) {
  std::string names;
  for (const Chapter* chapter : all_chapters())
    if (const Rung* rung = find_rung(*chapter, nullptr, direction);
        rung && chapter->rope == problem.rope && attention::unsupported(rung->*direction, problem).empty())
      names += (names.empty() ? "; chapters that take this problem: " : ", ") + chapter->name;
  return names;
}

// The pass, which has nothing against the problem.
template <class Args>
const Pass<Args>& require_pass(const char* chapter_name, const char* rung_name, const Pass<Args> Rung::*direction,
                               const Problem& problem) {
  const Chapter* chapter = find_chapter(chapter_name);
  if (!chapter)
    refuse(std::string("chapter is ") + (chapter_name ? chapter_name : "NULL") + ": there are " +
           joined(all_chapters(), [](const Chapter* c) { return c->name; }));
  const Rung* rung = find_rung(*chapter, rung_name, direction);
  if (rung_name && !rung)
    refuse(std::string("rung is ") + rung_name + ": " + chapter->name + " has " +
           joined(chapter->rungs, [](const Rung& r) { return r.name; }));
  if (!rung || !has(*rung, direction))
    throw Failure{FAW_UNSUPPORTED, chapter->name + (rung ? std::string(", rung ") + rung->name + "," : "") +
                                       " has no " + name_of(direction)};
  const Pass<Args>& pass = rung->*direction;
  if (const std::string why = attention::unsupported(pass, problem); !why.empty())
    throw Failure{
        FAW_UNSUPPORTED,
        chapter->name + (rung_name ? std::string(", ") + name_of(direction) + " of rung " + rung_name : "") + ": " +
            why + (attention::extras_unsupported(problem, pass.takes).empty() ? "" : who_takes(problem, direction))};
  return pass;
}

// A struct that the caller gives begins with its size, see the header. `first` is what its first version had. The last
// field ends where the struct does, or what a later version puts behind it would not be seen.
constexpr size_t first_problem = 72, first_extras = 192;
static_assert(sizeof(faw_problem) == offsetof(faw_problem, extras) + sizeof(faw_extras*));
static_assert(sizeof(faw_extras) == offsetof(faw_extras, reserved) + sizeof(int));

void require_size(const std::string& name, size_t given, size_t first, size_t ours) {
  constexpr size_t most = 4096;  // what is more was never set
  if (given < first || given > most)
    refuse(name + "'s size is " + std::to_string(given) + ": it must be sizeof(faw_" + name + "), which is " +
           std::to_string(ours) + " here");
}

// What the caller gave, as this library knows it; what the caller does not know is as `none` has it.
template <class Struct>
Struct known(const std::string& name, const Struct& given, size_t first, Struct none) {
  require_size(name, given.size, first, sizeof(Struct));
  const size_t common = std::min(sizeof(Struct), given.size);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&given);
  if (std::any_of(bytes + common, bytes + given.size, [](unsigned char byte) { return byte != 0; }))
    refuse(name + "'s size is " + std::to_string(given.size) + ": here it has " + std::to_string(common) +
           " bytes, and what is behind them must be 0");
  std::memcpy(&none, &given, common);
  return none;
}

faw_problem known(const faw_problem* problem) {
  if (!problem) refuse("problem is NULL");
  return known("problem", *problem, first_problem, faw_problem{});
}

faw_extras extras_of(const faw_problem& problem) {
  constexpr faw_extras none = FAW_NO_EXTRAS;
  return problem.extras ? known("extras", *problem.extras, first_extras, none) : none;
}

std::array<std::pair<const char*, const faw_strides*>, 8> strides_of(const faw_extras& extras) {
  return {{{"q", extras.q},
           {"k", extras.k},
           {"v", extras.v},
           {"o", extras.o},
           {"d_o", extras.d_o},
           {"dq", extras.dq},
           {"dk", extras.dk},
           {"dv", extras.dv}}};
}

Problem to_problem(bool rotates, const faw_problem& from) {
  if (from.dtype != FAW_FP16 && from.dtype != FAW_BF16)
    refuse("dtype is " + std::to_string(from.dtype) + ": it must be 0 (fp16) or 1 (bf16)");
  if (from.causal != 0 && from.causal != 1) refuse("causal is " + std::to_string(from.causal) + ": it must be 0 or 1");
  if (from.scale == 0) refuse("scale is 0: it must be another number, such as faw_default_scale(head_dim)");
  Problem problem = {.batch = from.batch,
                     .heads = from.heads,
                     .kv_heads = from.kv_heads,
                     .seq_q = from.seq_q,
                     .seq_k = from.seq_k,
                     .head_dim = from.head_dim,
                     .dtype = from.dtype == FAW_FP16 ? attention::DType::fp16 : attention::DType::bf16,
                     .mask = from.causal ? attention::Mask::causal : attention::Mask::none,
                     .scale = from.scale,
                     .rope = rotates,
                     .head_dim_v = from.head_dim_v};
  if (from.extras) {
    const faw_extras extras = extras_of(from);
    problem.window_left = extras.window_left, problem.window_right = extras.window_right;
    problem.softcap = extras.softcap;
    problem.alibi = extras.alibi, problem.sink = extras.sink;
    if (extras.unaligned != 0 && extras.unaligned != 1)
      refuse("unaligned is " + std::to_string(extras.unaligned) + ": it must be 0 or 1");
    problem.views = problem.unaligned = extras.unaligned != 0;
    for (const auto& [name, strides] : strides_of(extras)) problem.views = problem.views || strides;
    problem.packed = extras.cu_seqlens_q || extras.cu_seqlens_k;
    problem.total_q = extras.total_q, problem.total_k = extras.total_k;
    if (!problem.packed && (extras.total_q || extras.total_k))
      refuse("total_q is " + std::to_string(extras.total_q) + ", total_k is " + std::to_string(extras.total_k) +
             " and cu_seqlens_q and cu_seqlens_k are NULL: the totals are of packed sequences");
    if (extras.block_begin) {
      problem.blocks = attention::BlockPattern::given;
      if (!problem.packed) problem.listed = extras.block_listed;
      for (const auto& [name, size, all] : {std::tuple("block_batch", extras.block_batch, problem.batch),
                                            {"block_heads", extras.block_heads, problem.heads}})
        if (size != 1 && size != all)
          refuse(std::string(name) + " is " + std::to_string(size) + ": it must be 1 or " + std::to_string(all));
      for (const auto& [name, count] :
           {std::pair("block_listed", extras.block_listed), {"block_cuts", extras.block_cuts}})
        if (count < 0 || count >= 1 << 29)  // tiles are counted twice, and have two numbers each
          refuse(std::string(name) + " is " + std::to_string(count) + ": it must be from 0 to 536870911");
    } else if (extras.block_batch || extras.block_heads || extras.block_listed || extras.block_cuts) {
      refuse("block_begin is NULL and there are sizes of a block mask: they must be 0");
    }
  }
  if (const std::string wrong = attention::invalid(problem); !wrong.empty()) refuse(wrong);
  // Sizes in bytes, those of a workspace with S in it among them, have to fit size_t.
  const double scores = double(problem.batch) * problem.heads * problem.seq_q *
                        std::max({problem.seq_k, problem.head_dim, problem.v_dim()});
  const double keys =
      double(problem.batch) * problem.kv_heads * problem.seq_k * std::max(problem.head_dim, problem.v_dim());
  if (std::max(scores, keys) > 0x1p60) refuse("batch x heads x seq-q x seq-k is beyond all memory");
  return problem;
}

Problem to_problem(const char* chapter_name, const faw_problem& from) {
  return to_problem(faw_rotates(chapter_name) == 1, from);
}

void require_pointers(std::initializer_list<std::pair<const char*, const void*>> pointers,
                      uintptr_t alignment = 16) {  // kernels move 16 bytes at a time
  for (const auto& [name, pointer] : pointers) {
    if (!pointer) refuse(std::string(name) + " is NULL");
    if (reinterpret_cast<uintptr_t>(pointer) % alignment != 0)
      refuse(std::string(name) + " is not aligned to " + std::to_string(alignment) + " bytes");
  }
}
uintptr_t alignment_of_tensors(const Problem& p) { return p.unaligned ? sizeof(uint16_t) : 16; }

// Those of a chapter that rotates; any other must not be given some, which it would not use.
attention::RopeTables rope_tables(const char* chapter_name, const faw_problem& problem) {
  const Chapter& chapter = *find_chapter(chapter_name);
  if (chapter.rope) {
    require_pointers({{"rope_cos", problem.rope_cos}, {"rope_sin", problem.rope_sin}});
  } else if (problem.rope_cos || problem.rope_sin) {
    refuse(chapter.name + " does not rotate Q and K: rope_cos and rope_sin must be NULL");
  }
  return {problem.rope_cos, problem.rope_sin};
}

// The strides of a tensor [batch, heads, rows, D], or of packed sequences [rows, heads, D]. No two elements of a result
// may share a place.
Strides to_strides(const char* name, const faw_strides* from, const Problem& p, int heads, int rows, int D,
                   bool result) {
  if (!from) return attention::contiguous(p, heads, rows, D);
  const struct {
    const char* name;
    long long stride;
    int size;
  } axes[] = {{"batch", p.packed ? 0 : from->batch, p.packed ? 1 : p.batch},
              {"head", from->head, heads},
              {"row", from->row, rows}};
  double extent = D;
  for (const auto& axis : axes) {
    if (axis.stride < 0 || (axis.stride % 8 != 0 && !p.unaligned))
      refuse(std::string(name) + "'s stride of " + axis.name + " is " + std::to_string(axis.stride) +
             ": it must be a multiple of 8 elements, which are 16 bytes, or extras say `unaligned`, and not negative");
    extent += double(axis.size - 1) * double(axis.stride);
  }
  if (extent > 0x1p35) refuse(std::string(name) + " spans more than 64 GiB");
  if (!result) return {axes[0].stride, from->head, from->row};
  // In the order of their strides, each axis with more than one part has to step over all of the axis before.
  std::vector<std::pair<long long, int>> steps = {{1, D}};
  for (const auto& axis : axes)
    if (axis.size > 1) steps.emplace_back(axis.stride, axis.size);
  std::sort(steps.begin() + 1, steps.end());
  long long covered = 1;
  for (const auto& [stride, size] : steps) {
    if (stride < covered) refuse(std::string(name) + "'s strides let two of its elements share a place");
    covered = stride * (size - 1) + covered;
  }
  return {axes[0].stride, from->head, from->row};
}

// Where packed sequences begin. On the engine they are the host's own numbers, and what is wrong with them is said
// here.
void require_cu_seqlens(const char* name, const int* begin, int sequences, const char* total_name, int total) {
  if (!begin) refuse(std::string(name) + " is NULL");
  if (reinterpret_cast<uintptr_t>(begin) % sizeof(int) != 0)
    refuse(std::string(name) + " is not aligned to " + std::to_string(sizeof(int)) + " bytes");
  if (on_gpu) return;
  if (const std::string wrong = attention::wrong_cu_seqlens(name, begin, sequences, total_name, total); !wrong.empty())
    refuse(wrong);
}

// Its lists, which on the engine are the host's own numbers, too.
attention::BlockMask to_block_mask(const faw_extras& from, const Problem& p, bool backward) {
  require_pointers({{"block_begin", from.block_begin}});
  if (from.block_listed > 0) require_pointers({{"block_tiles", from.block_tiles}});
  if (from.block_cuts > 0) require_pointers({{"block_bits", from.block_bits}});
  const attention::BlockMask mask = {from.block_batch, from.block_heads, from.block_listed, from.block_cuts,
                                     from.block_begin, from.block_tiles, from.block_bits};
  if (!on_gpu)
    if (const std::string wrong = attention::wrong_lists(p, mask, backward); !wrong.empty()) refuse(wrong);
  return mask;
}

// Scales, which on the engine are the host's own numbers, too.
static_assert(FAW_FP8_TILE == attention::fp8_tile);
attention::ScalesOfE4m3 to_scales(const faw_scales* from, const Problem& p) {
  if (!from) refuse("scales is NULL");
  if (from->of_tiles != 0 && from->of_tiles != 1)
    refuse("of_tiles is " + std::to_string(from->of_tiles) + ": it must be 0 or 1");
  const auto numbers = [&](int heads, int rows) {
    return from->of_tiles ? size_t(p.batch) * heads * ((rows + FAW_FP8_TILE - 1) / FAW_FP8_TILE) : 1;
  };
  const struct {
    const char* name;
    const float* scales;
    size_t size;
  } all[] = {{"q", from->q, numbers(p.heads, p.seq_q)},
             {"k", from->k, numbers(p.kv_heads, p.seq_k)},
             {"v", from->v, numbers(p.kv_heads, p.seq_k)}};
  for (const auto& [name, scales, size] : all) {
    if (!scales) refuse(std::string("the scale of ") + name + " is NULL");
    if (reinterpret_cast<uintptr_t>(scales) % sizeof(float) != 0)
      refuse(std::string("the scale of ") + name + " is not aligned to 4 bytes");
    for (size_t i = 0; !on_gpu && i < size; i++)
      if (!(scales[i] >= std::numeric_limits<float>::min() && std::isfinite(scales[i]))) {
        char number[32];
        std::snprintf(number, sizeof number, "%g", scales[i]);
        refuse("a scale of " + std::string(name) + " is " + number + ": it must be at least 2^-126 and finite");
      }
  }
  return {from->q, from->k, from->v, from->of_tiles != 0};
}

// What a call gives to kernels beside the tensors; all of it is contiguous and without extras if the problem has none.
template <class Args>
void add_extras(Args& args, const Problem& p, const faw_problem& problem) {
  constexpr bool is_backward = std::is_same_v<Args, attention::BackwardArgs>;
  const faw_extras extras = extras_of(problem);
  const auto of_queries = [&](const char* name, const faw_strides* strides, int D, bool result) {
    return to_strides(name, strides, p, p.heads, p.packed ? p.total_q : p.seq_q, D, result);
  };
  const auto of_keys = [&](const char* name, const faw_strides* strides, int D, bool result) {
    return to_strides(name, strides, p, p.kv_heads, p.packed ? p.total_k : p.seq_k, D, result);
  };
  args.q_strides = of_queries("q", extras.q, p.head_dim, false);
  args.k_strides = of_keys("k", extras.k, p.head_dim, false);
  args.v_strides = of_keys("v", extras.v, p.v_dim(), false);
  args.o_strides = of_queries("o", extras.o, p.v_dim(), !is_backward);
  if (p.alibi) require_pointers({{"alibi", extras.alibi}});
  if (p.sink) require_pointers({{"sink", extras.sink}});
  args.alibi = extras.alibi, args.sink = extras.sink;
  if (p.packed) {
    require_cu_seqlens("cu_seqlens_q", extras.cu_seqlens_q, p.batch, "total_q", p.total_q);
    require_cu_seqlens("cu_seqlens_k", extras.cu_seqlens_k, p.batch, "total_k", p.total_k);
    args.cu_seqlens_q = extras.cu_seqlens_q, args.cu_seqlens_k = extras.cu_seqlens_k;
    args.zero_rest = extras.zero_rest;
  }
  if (extras.block_begin) args.blocks = to_block_mask(extras, p, is_backward);
  if constexpr (is_backward) {
    args.d_o_strides = of_queries("d_o", extras.d_o, p.v_dim(), false);
    args.dq_strides = of_queries("dq", extras.dq, p.head_dim, true);
    args.dk_strides = of_keys("dk", extras.dk, p.head_dim, true);
    args.dv_strides = of_keys("dv", extras.dv, p.v_dim(), true);
    if (p.sink) require_pointers({{"d_sink", extras.d_sink}});
    args.d_sink = extras.d_sink;
  }
}

template <class Args>
void require_workspace(const Pass<Args>& pass, const Problem& problem, const void* workspace, size_t bytes) {
  const size_t wanted = pass.workspace_bytes(problem);
  if (wanted > 0) require_pointers({{"workspace", workspace}});
  if (bytes < wanted)
    refuse("workspace_bytes is " + std::to_string(bytes) + ": it must be at least " + std::to_string(wanted));
}

template <class Args>
faw_status workspace_bytes(const char* chapter, const char* rung, const Pass<Args> Rung::*direction,
                           const faw_problem* problem, size_t* bytes) {
  return guarded([&] {
    if (!bytes) refuse("bytes is NULL");
    const Problem p = to_problem(chapter, known(problem));
    *bytes = require_pass(chapter, rung, direction, p).workspace_bytes(p);
  });
}

bool writes_lse(const Forward& pass) { return pass.writes_lse; }
bool writes_lse(const Backward&) { return true; }

struct Named {
  const Chapter* chapter;
  const Rung* rung;
};

// Whose kernels the pass runs for a problem that it supports: its own, or those of the pass that it chooses.
template <class Args>
Named runs(const Pass<Args>& pass, const Pass<Args> Rung::*direction, const Problem& problem) {
  const auto run = (pass.chooses ? pass.chooses(problem) : pass).run;
  for (const Chapter* chapter : all_chapters())
    for (const Rung& rung : chapter->rungs)
      if ((rung.*direction).run == run) return {chapter, &rung};
  throw std::logic_error("no chapter lists the rung that is chosen");
}

// If there is none, it says what the last chapter of the book that has such passes would have taken, preferably which
// head dims.
template <class Args>
Named default_rung(const Problem& problem, const Pass<Args> Rung::*direction) {
  std::string refused = std::string("no chapter has a ") + name_of(direction) + (problem.rope ? " with rope" : "");
  enum { nothing, extras, another, head_dim } reason = nothing;
  const auto refuse = [&](auto why_not, const std::string& line) {
    if (why_not > reason) reason = why_not, refused = line;
  };
  const bool one_takes_such = problem.rope || attention::extras(problem) != attention::no_extras;
  const auto chapters = all_chapters();
  for (auto chapter = chapters.rbegin(); chapter != chapters.rend(); ++chapter) {
    const Rung* rung = find_rung(**chapter, nullptr, direction);
    if (!rung || (*chapter)->rope != problem.rope || !writes_lse(rung->*direction)) continue;
    const Pass<Args>& pass = rung->*direction;
    if (const std::string why = attention::extras_unsupported(problem, pass.takes); !why.empty()) {
      refuse(extras, (*chapter)->name + ": " + why +
                         (problem.rope && attention::extras(problem) != attention::views
                              ? ": rotate Q and K before the call, and give no rope"
                              : ""));
      continue;
    }
    const bool wanted = (*chapter)->general || attention::extras(problem) != attention::no_extras;
    if (!wanted && !pass.chooses) continue;
    if (const std::string why = attention::unsupported(pass, problem); !why.empty()) {
      if (wanted)
        refuse(why.starts_with("head-dim") ? head_dim : another,
               (one_takes_such ? (*chapter)->name : "no chapter takes it") + ": " + why);
    } else if (wanted || runs(pass, direction, problem).chapter == *chapter) {
      return {*chapter, rung};
    }
  }
  throw Failure{FAW_UNSUPPORTED, refused};
}

}  // namespace

extern "C" {

int faw_version(void) { return FAW_VERSION; }

const char* faw_error(void) { return last_error; }

float faw_default_scale(int head_dim) { return attention::default_scale(head_dim); }

int faw_on_engine(void) { return !on_gpu; }

faw_status faw_default_problem(faw_problem* problem) {
  return guarded([&] {
    if (!problem) refuse("problem is NULL");
    const size_t size = problem->size;
    require_size("problem", size, first_problem, sizeof *problem);
    const Problem p = attention::default_problem();
    const faw_problem it = {.size = size,
                            .batch = p.batch,
                            .heads = p.heads,
                            .kv_heads = p.kv_heads,
                            .seq_q = p.seq_q,
                            .seq_k = p.seq_k,
                            .head_dim = p.head_dim,
                            .head_dim_v = p.head_dim_v,
                            .dtype = p.dtype == attention::DType::fp16 ? FAW_FP16 : FAW_BF16,
                            .causal = p.mask == attention::Mask::causal,
                            .scale = p.scale,
                            .rope_cos = nullptr,
                            .rope_sin = nullptr,
                            .extras = nullptr};
    std::memset(problem, 0, size);
    std::memcpy(problem, &it, std::min(size, sizeof it));
  });
}

faw_status faw_flops(const faw_problem* problem, int backward, double* flops) {
  return guarded([&] {
    if (!flops) refuse("flops is NULL");
    const Problem p = to_problem(false, known(problem));
    if (p.blocks == attention::BlockPattern::given)
      refuse("the operations of a block mask are those of the pairs that are seen: count these");
    if (p.packed) refuse("the operations of packed sequences are those of one problem each: ask for each length");
    *flops = attention::flops(p, backward != 0);
  });
}

const char* faw_chapter(int index) {
  const auto chapters = all_chapters();
  return index >= 0 && size_t(index) < chapters.size() ? chapters[size_t(index)]->name.c_str() : nullptr;
}

const char* faw_rung(const char* chapter_name, int index) {
  const Chapter* chapter = find_chapter(chapter_name);
  return chapter && index >= 0 && size_t(index) < chapter->rungs.size() ? chapter->rungs[size_t(index)].name : nullptr;
}

int faw_has_forward(const char* chapter, const char* rung) {
  return find_pass(chapter, rung, &Rung::forward) != nullptr;
}

int faw_has_backward(const char* chapter, const char* rung) {
  return find_pass(chapter, rung, &Rung::backward) != nullptr;
}

int faw_has_forward_e4m3(const char* chapter, const char* rung) {
  return find_pass(chapter, rung, &Rung::from_e4m3) != nullptr;
}

int faw_writes_lse(const char* chapter, const char* rung) {
  const Forward* pass = find_pass(chapter, rung, &Rung::forward);
  return pass && pass->writes_lse;
}

int faw_is_deterministic(const char* chapter, const char* rung, int backward) {
  const auto says = [](const auto* pass) { return pass && pass->deterministic; };
  return backward ? says(find_pass(chapter, rung, &Rung::backward)) : says(find_pass(chapter, rung, &Rung::forward));
}

int faw_rotates(const char* chapter_name) {
  const Chapter* chapter = find_chapter(chapter_name);
  return chapter && chapter->rope;
}

int faw_rounds_to_eight_bits(const char* chapter_name) {
  const Chapter* chapter = find_chapter(chapter_name);
  return chapter && chapter->rungs.back().forward.eight_bits != attention::sixteen_bits;
}

int faw_is_general(const char* chapter_name) {
  const Chapter* chapter = find_chapter(chapter_name);
  return chapter && chapter->general;
}

faw_status faw_default_chapter(const faw_problem* problem, int rotates, int backward, const char** chapter) {
  return guarded([&] {
    if (!chapter) refuse("chapter is NULL");
    const Problem p = to_problem(rotates != 0, known(problem));
    const Named found = backward ? default_rung(p, &Rung::backward) : default_rung(p, &Rung::forward);
    *chapter = found.chapter->name.c_str();
  });
}

faw_status faw_default_rung(const faw_problem* problem, int rotates, int backward, const char** chapter,
                            const char** rung) {
  return guarded([&] {
    if (!chapter || !rung) refuse(std::string(chapter ? "rung" : "chapter") + " is NULL");
    const Problem p = to_problem(rotates != 0, known(problem));
    const auto ran = [&](auto direction) { return runs(default_rung(p, direction).rung->*direction, direction, p); };
    const Named found = backward ? ran(&Rung::backward) : ran(&Rung::forward);
    *chapter = found.chapter->name.c_str(), *rung = found.rung->name;
  });
}

faw_status faw_forward_workspace(const char* chapter, const char* rung, const faw_problem* problem, size_t* bytes) {
  return workspace_bytes(chapter, rung, &Rung::forward, problem, bytes);
}

faw_status faw_backward_workspace(const char* chapter, const char* rung, const faw_problem* problem, size_t* bytes) {
  return workspace_bytes(chapter, rung, &Rung::backward, problem, bytes);
}

faw_status faw_forward(const char* chapter, const char* rung, const faw_problem* problem, const void* q, const void* k,
                       const void* v, void* o, float* lse, void* workspace, size_t workspace_bytes, void* stream) {
  return guarded([&] {
    const faw_problem given = known(problem);
    const Problem p = to_problem(chapter, given);
    const Forward& pass = require_pass(chapter, rung, &Rung::forward, p);
    require_pointers({{"q", q}, {"k", k}, {"v", v}, {"o", o}}, alignment_of_tensors(p));
    if (pass.writes_lse) require_pointers({{"lse", lse}});
    require_workspace(pass, p, workspace, workspace_bytes);
    attention::ForwardArgs args = {q, k, v, o, lse, workspace, rope_tables(chapter, given)};
    add_extras(args, p, given);
    pass.run(p, args, static_cast<cudaStream_t>(stream));
  });
}

faw_status faw_forward_e4m3_workspace(const char* chapter, const char* rung, const faw_problem* problem,
                                      size_t* bytes) {
  return workspace_bytes(chapter, rung, &Rung::from_e4m3, problem, bytes);
}

faw_status faw_forward_e4m3(const char* chapter, const char* rung, const faw_problem* problem, const void* q,
                            const void* k, const void* v, const faw_scales* scales, void* o, float* lse,
                            void* workspace, size_t workspace_bytes, void* stream) {
  return guarded([&] {
    const faw_problem given = known(problem);
    const Problem p = to_problem(chapter, given);
    const Forward& pass = require_pass(chapter, rung, &Rung::from_e4m3, p);
    require_pointers({{"q", q}, {"k", k}, {"v", v}, {"o", o}});
    if (pass.writes_lse) require_pointers({{"lse", lse}});
    require_workspace(pass, p, workspace, workspace_bytes);
    attention::ForwardArgs args = {q, k, v, o, lse, workspace, rope_tables(chapter, given)};
    args.scales = to_scales(scales, p);
    pass.run(p, args, static_cast<cudaStream_t>(stream));
  });
}

faw_status faw_backward(const char* chapter, const char* rung, const faw_problem* problem, const void* q, const void* k,
                        const void* v, const void* o, const float* lse, const void* d_o, void* dq, void* dk, void* dv,
                        void* workspace, size_t workspace_bytes, void* stream) {
  return guarded([&] {
    const faw_problem given = known(problem);
    const Problem p = to_problem(chapter, given);
    const Backward& pass = require_pass(chapter, rung, &Rung::backward, p);
    require_pointers({{"q", q}, {"k", k}, {"v", v}, {"o", o}, {"d_o", d_o}, {"dq", dq}, {"dk", dk}, {"dv", dv}},
                     alignment_of_tensors(p));
    require_pointers({{"lse", lse}});
    require_workspace(pass, p, workspace, workspace_bytes);
    attention::BackwardArgs args = {q, k, v, o, lse, d_o, dq, dk, dv, workspace, rope_tables(chapter, given)};
    add_extras(args, p, given);
    pass.run(p, args, static_cast<cudaStream_t>(stream));
  });
}

}  // extern "C"
