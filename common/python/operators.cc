// The operators of PyTorch over the C interface: their kernels, what autograd and autocast make of them, and both as
// functions for Python, which say in one line what they do not take, and save the 2 us that torch.ops takes to read the
// arguments.
//
// Each call wants a plan: which chapter, how much workspace. The C interface is asked once for a problem; then the plan
// is in a map. Memory comes from PyTorch's allocator, kernels go to its current stream.
#include <ATen/FuncTorchTLS.h>
#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <Python.h>  // has to be the first
#include <c10/core/Allocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/SymInt.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "attention/cu_seqlens.h"
#include "capi/flash_attention_workbook.h"

#ifndef WORKBOOK_SIMT
#include <c10/cuda/CUDAStream.h>
#endif

namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;
using Name = std::optional<std::string_view>;  // of a chapter or of a rung; without one, the library chooses
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

const c10::DeviceType device_type = faw_on_engine() ? c10::kCPU : c10::kCUDA;

// --- Messages
// ---------------------------------------------------------------------------------------------------------

// They are strings before PyTorch sees them. It would write the parts into a stream of this module, and where that has
// a libstdc++ of its own (-static-libstdc++), what PyTorch's libraries write into one crashes.
std::string part(std::string_view text) { return std::string(text); }
std::string part(std::same_as<c10::Device> auto device) { return device.str(); }  // a string would become one, too
std::string part(std::integral auto number) { return std::to_string(number); }
std::string part(at::IntArrayRef sizes) {
  std::string text;
  for (const int64_t size : sizes) text += (text.empty() ? "[" : ", ") + std::to_string(size);
  return text.empty() ? "[]" : text + "]";
}

template <typename... Parts>
std::string message(const Parts&... parts) {
  return (part(parts) + ...);
}

#define CHECK_VALUE(condition, ...) TORCH_CHECK_VALUE(condition, message(__VA_ARGS__))  // only made if it is needed

// What is refused is a ValueError; what fails on the way is a RuntimeError.
void require(faw_status status) {
  CHECK_VALUE(status != FAW_INVALID && status != FAW_UNSUPPORTED, faw_error());
  TORCH_CHECK(status == FAW_OK, faw_error());
}

// --- What a call must be ---------------------------------------------------------------------------------------------

std::string dtype_name(const Tensor& tensor) {
  return "torch." + std::string(c10::getDtypeNames(tensor.scalar_type()).first);  // of older ones a string, else a view
}

constexpr uintptr_t alignment = 16;  // bytes: what kernels move at a time

bool aligned(const Tensor& tensor) { return reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % alignment == 0; }

// Rows of consecutive elements, wherever they begin.
bool has_whole_rows(const Tensor& tensor) {
  return tensor.is_contiguous() || tensor.size(3) == 1 || tensor.stride(3) == 1;
}

// Do its rows begin at multiples of 16 bytes, where kernels read them? Others are copied (faw_extras::unaligned).
bool has_aligned_rows(const Tensor& tensor) {
  for (int64_t axis = 0; axis < 3 && !tensor.is_contiguous(); axis++)
    if (tensor.size(axis) > 1 && tensor.stride(axis) % 8 != 0) return false;
  return aligned(tensor);
}

// A tensor's sizes or strides, as whoever called knows them: packed sequences came as [total, heads, head_dim].
std::string as_given(at::IntArrayRef axes, bool packed) {
  if (!packed || axes.size() != 4) return part(axes);
  return part(at::IntArrayRef(std::array<int64_t, 3>{axes[2], axes[1], axes[3]}));
}

void check_device(const char* name, const Tensor& tensor, const Tensor& q) {
  CHECK_VALUE(tensor.device() == q.device(), name, " is on ", tensor.device(), " and q is on ", q.device(),
              ": all tensors must be on one device");
}

void check_tensor(const char* name, const Tensor& tensor, const Tensor& q, bool packed, bool in_e4m3 = false) {
  CHECK_VALUE(tensor.device().type() == device_type || tensor.device().is_meta() ||
                  (!tensor.is_same(q) && tensor.device() == q.device()),
              name, " is on ", tensor.device(), ": it must be a ", device_type == c10::kCPU ? "CPU" : "CUDA", " tensor",
              device_type == c10::kCPU ? ", as the library is the SIMT engine's" : "");
  check_device(name, tensor, q);
  CHECK_VALUE(!in_e4m3 || tensor.scalar_type() == at::kFloat8_e4m3fn, name, " is ", dtype_name(tensor),
              ": supported is torch.float8_e4m3fn");
  CHECK_VALUE(in_e4m3 || tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16, name, " is ",
              dtype_name(tensor), ": supported are torch.float16 and torch.bfloat16");
  CHECK_VALUE(tensor.scalar_type() == q.scalar_type(), name, " is ", dtype_name(tensor), " and q is ", dtype_name(q),
              ": all tensors must have one dtype");
  CHECK_VALUE(tensor.dim() == 4, name, " has shape ", tensor.sizes(),
              ": it must be [batch, heads, sequence, head_dim]");
  CHECK_VALUE(!in_e4m3 || tensor.is_contiguous(), name, " has strides ", tensor.strides(), ": pass ", name,
              ".contiguous()");
  // What is contiguous as it was given has a wrong head_dim and no wrong strides: the plan says so.
  CHECK_VALUE(has_whole_rows(tensor) || (packed && tensor.transpose(1, 2).is_contiguous()), name, " has strides ",
              as_given(tensor.strides(), packed), ": the last must be 1: pass ", name, ".contiguous()");
  CHECK_VALUE(!in_e4m3 || aligned(tensor), name, " starts at an address that is not a multiple of ", alignment,
              " bytes: pass ", name, ".clone()");
}

void check_shape(const char* name, const Tensor& tensor, at::IntArrayRef shape, bool packed) {
  CHECK_VALUE(tensor.sizes() == shape, name, " has shape ", as_given(tensor.sizes(), packed), ": it must be ",
              as_given(shape, packed));
}

// v may have a head_dim of its own, which o has, too.
std::array<int64_t, 4> shape_with(const Tensor& tensor, int64_t head_dim) {
  return {tensor.size(0), tensor.size(1), tensor.size(2), head_dim};
}

void check_inputs(const Tensor& q, const Tensor& k, const Tensor& v, bool packed, bool in_e4m3 = false) {
  check_tensor("q", q, q, packed, in_e4m3);
  check_tensor("k", k, q, packed, in_e4m3);
  CHECK_VALUE(!packed || q.size(0) == 1, "q has shape ", q.sizes(),
              ": of packed sequences it must be [1, heads, total, head_dim]");
  CHECK_VALUE(k.size(0) == q.size(0) && k.size(3) == q.size(3), "k has shape ", as_given(k.sizes(), packed), " and q ",
              as_given(q.sizes(), packed), packed ? ": head_dim must be equal" : ": batch and head_dim must be equal");
  const int64_t heads = q.size(1), kv_heads = k.size(1);
  CHECK_VALUE(kv_heads > 0 ? heads % kv_heads == 0 : heads == 0, "q has ", heads, " heads and k ", kv_heads,
              ": those of q must be a multiple of those of k");
  check_tensor("v", v, q, packed, in_e4m3);
  check_shape("v", v, shape_with(k, v.size(3)), packed);
  CHECK_VALUE(v.size(3) > 0 || k.size(3) == 0, "v has shape ", as_given(v.sizes(), packed),
              ": its head_dim must be at least 1");
}

// The C interface counts in int.
void check_axes(const char* name, const Tensor& tensor, bool packed) {
  constexpr int most = std::numeric_limits<int>::max();
  for (const int64_t size : tensor.sizes())
    CHECK_VALUE(size <= most, name, " has shape ", as_given(tensor.sizes(), packed), ": no axis may be longer than ",
                most);
}

// fp32 and contiguous, such as lse or a table of RoPE.
const float* check_fp32(const char* name, const Tensor& tensor, at::IntArrayRef shape, const Tensor& q) {
  check_device(name, tensor, q);
  CHECK_VALUE(tensor.scalar_type() == at::kFloat && tensor.sizes() == shape && tensor.is_contiguous(), name, " is ",
              dtype_name(tensor), " ", tensor.sizes(), " on ", tensor.device(), ": it must be torch.float32 ", shape,
              ", contiguous, on ", q.device());
  return static_cast<const float*>(tensor.const_data_ptr());
}

// What models add to attention (faw_extras), as the operators take it.
struct Extras {
  int64_t window_left, window_right;
  double softcap;
  const MaybeTensor& alibi;
  const MaybeTensor& sink;
  const MaybeTensor& cu_seqlens_q;  // of packed sequences: then tensors are [1, heads, total, head_dim]
  const MaybeTensor& cu_seqlens_k;
  int64_t max_seqlen_q, max_seqlen_k;
  const MaybeTensor& block_begin;  // of a block mask
  const MaybeTensor& block_tiles;
  const MaybeTensor& block_bits;

  bool blocks() const { return block_begin.has_value(); }
  bool packed() const { return cu_seqlens_q.has_value(); }
  int64_t sequences() const { return cu_seqlens_q->size(0) - 1; }
};

// Where packed sequences begin. What these numbers are only the kernels can know, and the engine.
void check_cu_seqlens(const char* name, const Tensor& tensor, int64_t size, const Tensor& q) {
  check_device(name, tensor, q);
  CHECK_VALUE(tensor.scalar_type() == at::kInt, name, " is ", dtype_name(tensor), ": it must be torch.int32");
  CHECK_VALUE(tensor.dim() == 1 && tensor.size(0) >= 1 && tensor.is_contiguous(), name, " has shape ", tensor.sizes(),
              ": it must be [sequences + 1], contiguous");
  CHECK_VALUE(tensor.size(0) == size, "cu_seqlens_q has ", size, " numbers and ", name, " has ", tensor.size(0),
              ": both must have one more than there are sequences");
}

// A block mask: [masks of batches, of heads, R + 1 + C + 1], [2, listed, 2], [2, cut, 128, 4]. What these numbers are,
// only the kernels can know, and the engine.
void check_blocks(const Extras& extras, const Tensor& q, const Tensor& k) {
  CHECK_VALUE(extras.blocks() == extras.block_tiles.has_value() && extras.blocks() == extras.block_bits.has_value(),
              "a part of blocks is given alone: pass all of them");
  if (!extras.blocks()) return;
  const auto tiles = [](int64_t rows) { return (rows + FAW_BLOCK - 1) / FAW_BLOCK; };
  const auto part = [](const MaybeTensor& tensor, int64_t axis) {
    return axis < tensor->dim() ? tensor->size(axis) : 0;
  };
  const std::array<int64_t, 3> begin = {part(extras.block_begin, 0), part(extras.block_begin, 1),
                                        tiles(q.size(2)) + tiles(k.size(2)) + 2};
  const std::array<int64_t, 3> listed = {2, part(extras.block_tiles, 1), 2};
  const std::array<int64_t, 4> bits = {2, part(extras.block_bits, 1), FAW_BLOCK, FAW_BLOCK / 32};
  const auto check = [&](const char* name, const Tensor& tensor, at::IntArrayRef shape) {
    check_device(name, tensor, q);
    CHECK_VALUE(
        tensor.scalar_type() == at::kInt && tensor.sizes() == shape && tensor.is_contiguous() && aligned(tensor), name,
        " is ", dtype_name(tensor), " ", tensor.sizes(), " on ", tensor.device(), ": it must be torch.int32 ", shape,
        ", contiguous, on ", q.device(), ", as block_mask() makes it");
  };
  check("blocks.begin", *extras.block_begin, begin);
  check("blocks.tiles", *extras.block_tiles, listed);
  check("blocks.bits", *extras.block_bits, bits);
  for (const auto& [what, size, all] : {std::tuple("batches", begin[0], q.size(0)), {"heads", begin[1], q.size(1)}})
    CHECK_VALUE(size == 1 || size == all, "blocks has masks of ", size, " ", what, ": it must have 1 or ", all);
  const int64_t all = begin[0] * begin[1] * tiles(q.size(2)) * tiles(k.size(2));
  CHECK_VALUE(listed[1] <= all, "blocks lists ", listed[1], " tiles: there are ", all);
}

void check_lists(const Extras& extras, const Tensor& q, const Tensor& k) {
  check_blocks(extras, q, k);
  CHECK_VALUE(extras.cu_seqlens_q.has_value() == extras.cu_seqlens_k.has_value(), "cu_seqlens_",
              extras.cu_seqlens_q ? "q" : "k", " is given alone: pass both");
  if (!extras.packed()) return;
  const int64_t size = extras.cu_seqlens_q->dim() == 1 ? extras.cu_seqlens_q->size(0) : 0;
  check_cu_seqlens("cu_seqlens_q", *extras.cu_seqlens_q, size, q);
  check_cu_seqlens("cu_seqlens_k", *extras.cu_seqlens_k, size, q);
  for (const auto& [name, most] :
       {std::pair("max_seqlen_q", extras.max_seqlen_q), {"max_seqlen_k", extras.max_seqlen_k}})
    CHECK_VALUE(most >= 0, name, " is ", most, ": it must be the number of tokens of the longest sequence");
}

enum class Lie { contiguous, as_views, unaligned };

Lie how_they_lie(bool packed, std::initializer_list<Tensor> tensors) {
  Lie lie = packed ? Lie::as_views : Lie::contiguous;
  for (const Tensor& tensor : tensors) {
    if (!has_aligned_rows(tensor)) return Lie::unaligned;
    if (!tensor.is_contiguous()) lie = Lie::as_views;
  }
  return lie;
}

faw_strides strides_of(const Tensor& tensor) {
  // Of an axis with one part any stride is as good.
  const auto stride = [&](int64_t axis) { return tensor.size(axis) > 1 ? (long long)(tensor.stride(axis)) : 0; };
  return {stride(0), stride(1), stride(2)};
}

// Are there tables of RoPE? Both or none.
bool rotates(const MaybeTensor& cos, const MaybeTensor& sin) {
  CHECK_VALUE(cos.has_value() == sin.has_value(), "rope's ", cos ? "cos" : "sin", " is given alone: pass both tables");
  return cos.has_value();
}

// PyTorch's meta and fake tensors have no numbers: a call of them is checked, and has results of theirs.
bool has_values(const Tensor& tensor) { return !tensor.storage().device().is_meta(); }

// Who rotates takes contiguous tensors alone: others are copied, and so are the results.
Tensor in_order(const Tensor& tensor) {
  return tensor.is_contiguous() && aligned(tensor) ? tensor : tensor.clone(at::MemoryFormat::Contiguous);
}

Tensor as_it_lies(const Tensor& like, const Tensor& found) {
  const Tensor copy = at::empty_like(like);
  if (has_values(like)) copy.copy_(found);
  return copy;
}

// What forward-mode differentiation, as that of torch.func.jvp, carries along. The results would have none, which is
// taken for zeros.
void refuse_tangents(std::initializer_list<std::pair<const char*, const Tensor&>> tensors) {
  for (const auto& [name, tensor] : tensors)
    CHECK_VALUE(!tensor._fw_grad(0).defined(), name,
                " has a tangent: gradients are of the reverse mode alone, as torch.autograd.grad takes them");
}

// --- Plans -----------------------------------------------------------------------------------------------------------

enum class Direction { forward, backward };

struct Plan {
  std::string chapter;
  std::optional<std::string> rung;
  faw_problem problem;  // without extras
  size_t workspace;     // bytes
  bool writes_lse;

  const char* rung_name() const { return rung ? rung->c_str() : nullptr; }
};

// All that a plan depends on: the numbers (of the scale, its bits), the chapter and the rung.
template <class String>
using Question = std::tuple<std::array<int64_t, 26>, std::optional<String>, std::optional<String>>;

// For questions without a call, which ask only whether there are such pointers.
const float some_numbers = 0;
const faw_strides some_strides = {0, 0, 0};
const int some_begin = 0;

void add_block_sizes(faw_extras& to, const Extras& from) {
  to.block_batch = int(from.block_begin->size(0)), to.block_heads = int(from.block_begin->size(1));
  to.block_listed = int(from.block_tiles->size(1)), to.block_cuts = int(from.block_bits->size(1));
}

// An empty problem runs nowhere, but what is refused, and who would take it, is that of one with something in it.
faw_problem with_something_in_it(faw_problem problem) {
  for (int faw_problem::*size : {&faw_problem::batch, &faw_problem::seq_q, &faw_problem::seq_k})
    problem.*size = std::max(problem.*size, 1);
  if (problem.heads == 0) problem.heads = problem.kv_heads = 1;
  return problem;
}

std::string chapters_that_rotate() {
  std::string names;
  for (int i = 0; faw_chapter(i); i++)
    if (faw_rotates(faw_chapter(i))) names += (names.empty() ? "" : ", ") + std::string(faw_chapter(i));
  return names;
}

Plan make_plan(Direction direction, const Tensor& q, const Tensor& k, const Tensor& v, Lie lie, bool causal,
               float scale, bool rotates, const Extras& extras, Name chapter, Name rung) {
  check_axes("q", q, extras.packed());
  check_axes("k", k, extras.packed());
  check_axes("v", v, extras.packed());
  Plan plan;
  plan.problem = {.size = sizeof(faw_problem),
                  .batch = int(q.size(0)),
                  .heads = int(q.size(1)),
                  .kv_heads = int(k.size(1)),
                  .seq_q = int(q.size(2)),
                  .seq_k = int(k.size(2)),
                  .head_dim = int(q.size(3)),
                  .head_dim_v = int(v.size(3)),
                  .dtype = q.scalar_type() == at::kHalf ? FAW_FP16 : FAW_BF16,
                  .causal = causal,
                  .scale = scale,
                  .rope_cos = nullptr,
                  .rope_sin = nullptr,
                  .extras = nullptr};
  if (extras.packed()) {
    plan.problem.batch = int(extras.sequences());
    const auto longest = [](int64_t said, const Tensor& tensor) {  // what is longer is computed, too
      return int(std::max<int64_t>(1, std::min(said, tensor.size(2))));
    };
    plan.problem.seq_q = longest(extras.max_seqlen_q, q), plan.problem.seq_k = longest(extras.max_seqlen_k, k);
  }
  constexpr int64_t most = std::numeric_limits<int>::max();
  faw_extras asked = FAW_NO_EXTRAS;
  asked.window_left = int(std::clamp<int64_t>(extras.window_left, -2, most));  // beyond them all are refused
  asked.window_right = int(std::clamp<int64_t>(extras.window_right, -2, most));
  asked.softcap = float(extras.softcap);
  asked.alibi = extras.alibi ? &some_numbers : nullptr;
  asked.sink = extras.sink ? &some_numbers : nullptr;
  asked.q = lie != Lie::contiguous ? &some_strides : nullptr;
  asked.unaligned = lie == Lie::unaligned;
  if (extras.packed()) {
    asked.cu_seqlens_q = asked.cu_seqlens_k = &some_begin;
    asked.total_q = std::max(int(q.size(2)), 1), asked.total_k = std::max(int(k.size(2)), 1);
  }
  if (extras.blocks()) {
    asked.block_begin = &some_begin;
    add_block_sizes(asked, extras);
  }
  faw_problem problem = with_something_in_it(plan.problem);
  problem.extras = &asked;
  if (rung) plan.rung = std::string(*rung);
  if (chapter) {
    plan.chapter = *chapter;
  } else {
    CHECK_VALUE(!rung, "rung is ", *rung, " and no chapter is given: which chapter's?");
    const char* name = nullptr;
    require(faw_default_chapter(&problem, rotates, direction == Direction::backward, &name));
    plan.chapter = name;
  }
  CHECK_VALUE(rotates || !faw_rotates(plan.chapter.c_str()), plan.chapter,
              " rotates q and k: pass rope, such as rope_tables(q, k)");
  CHECK_VALUE(!rotates || faw_rotates(plan.chapter.c_str()), plan.chapter,
              " does not rotate q and k: pass no rope, or name a chapter that does: ", chapters_that_rotate());
  const auto ask = direction == Direction::forward ? faw_forward_workspace : faw_backward_workspace;
  require(ask(plan.chapter.c_str(), plan.rung_name(), &problem, &plan.workspace));
  plan.writes_lse = faw_writes_lse(plan.chapter.c_str(), plan.rung_name());
  return plan;
}

// The plan on the current device, which is q's. It lives until this thread's next call.
const Plan& plan_of(Direction direction, const Tensor& q, const Tensor& k, const Tensor& v, Lie lie, bool causal,
                    std::optional<double> scale, bool rotates, const Extras& extras, Name chapter, Name rung) {
  thread_local std::map<Question<std::string>, Plan, std::less<>> plans;
  CHECK_VALUE(scale != 0, "scale is 0: it must be another number, or None for 1 / sqrt(D)");
  const float factor = scale ? float(*scale) : faw_default_scale(int(q.size(3)));
  const Question<std::string_view> question = {{q.size(0),
                                                q.size(1),
                                                k.size(1),
                                                q.size(2),
                                                k.size(2),
                                                q.size(3),
                                                int64_t(q.scalar_type()),
                                                causal,
                                                std::bit_cast<int32_t>(factor),
                                                rotates,
                                                int64_t(direction),
                                                q.device().index(),
                                                int64_t(lie),
                                                extras.window_left,
                                                extras.window_right,
                                                std::bit_cast<int64_t>(extras.softcap),
                                                extras.alibi.has_value(),
                                                extras.sink.has_value(),
                                                v.size(3),
                                                extras.packed() ? extras.sequences() : -1,
                                                extras.max_seqlen_q,
                                                extras.max_seqlen_k,
                                                extras.blocks() ? extras.block_begin->size(0) : -1,
                                                extras.blocks() ? extras.block_begin->size(1) : -1,
                                                extras.blocks() ? extras.block_tiles->size(1) : -1,
                                                extras.blocks() ? extras.block_bits->size(1) : -1},
                                               chapter,
                                               rung};
  if (const auto known = plans.find(question); known != plans.end()) return known->second;
  constexpr size_t most = 4096;  // a program whose lengths are ever new must not fill the memory
  if (plans.size() == most) plans.clear();
  return plans.emplace(question, make_plan(direction, q, k, v, lie, causal, factor, rotates, extras, chapter, rung))
      .first->second;
}

// --- The kernels of the operators ------------------------------------------------------------------------------------

void* current_stream([[maybe_unused]] const Tensor& q) {
#ifdef WORKBOOK_SIMT
  return nullptr;
#else
  return c10::cuda::getCurrentCUDAStream(q.device().index()).stream();
#endif
}

c10::DataPtr allocate(size_t bytes) { return bytes ? c10::GetAllocator(device_type)->allocate(bytes) : c10::DataPtr(); }

// Is there no query, or no key? Then nothing is run: what has elements is that of rows that see no key.
bool is_empty(const Tensor& q, const Tensor& k, const Extras& extras) {
  return q.numel() == 0 || k.numel() == 0 || (extras.packed() && extras.sequences() == 0);
}

// What the lists hold is the kernels' to check, and without a query, a key or a sequence none runs. Then PyTorch's
// operations check it, on the device, and make NaN of the results. On the engine the numbers are the host's, and wrong
// ones are refused.
void spoil_if_lists_are_wrong(const std::vector<Tensor>& results, const Extras& extras, const Tensor& q,
                              const Tensor& k) {
  const auto where = [&](const Tensor& wrong, auto&& line) {  // wrong: one number
    CHECK_VALUE(device_type != c10::kCPU || !wrong.item<bool>(), line());
    for (const Tensor& result : results) result.masked_fill_(wrong, std::numeric_limits<double>::quiet_NaN());
  };
  const auto of_sequences = [&](const char* name, const Tensor& begin, const char* total_name, int64_t total) {
    const Tensor falls = begin.slice(0, 1).lt(begin.slice(0, 0, -1)).any();
    where(falls.logical_or(begin.select(0, 0).ne(0)).logical_or(begin.select(0, -1).gt(total)), [&] {
      return attention::wrong_cu_seqlens(name, begin.const_data_ptr<int>(), int(extras.sequences()), total_name,
                                         int(total));
    });
  };
  if (extras.packed()) {
    of_sequences("cu_seqlens_q", *extras.cu_seqlens_q, "total_q", q.size(2));
    of_sequences("cu_seqlens_k", *extras.cu_seqlens_k, "total_k", k.size(2));
  }
  if (extras.blocks() && (q.size(2) == 0 || k.size(2) == 0))
    where(extras.block_begin->ne(0).any(), [&] {
      const int* const begin = extras.block_begin->const_data_ptr<int>();
      const int number = *std::find_if(begin, begin + extras.block_begin->numel(), [](int b) { return b != 0; });
      return message("blocks.begin has ", number,
                     " in it: without a query or a key there are no tiles, and all must be 0");
    });
}

// The plan's problem with the tables of RoPE, if there are some.
faw_problem with_tables(const Plan& plan, const Tensor& q, const MaybeTensor& cos, const MaybeTensor& sin) {
  faw_problem problem = plan.problem;
  if (rotates(cos, sin)) {
    const std::array<int64_t, 2> shape = {std::max(problem.seq_q, problem.seq_k), problem.head_dim / 2};
    problem.rope_cos = check_fp32("rope's cos", *cos, shape, q);
    problem.rope_sin = check_fp32("rope's sin", *sin, shape, q);
  }
  return problem;
}

template <class Number>
const Number* numbers_of(const MaybeTensor& tensor) {  // whose type has been checked; no address if it has no values
  return static_cast<const Number*>(tensor->const_data_ptr());
}

// The extras of a call: those numbers, and where the tensors lie if one of them is not contiguous.
struct ExtrasOfACall {
  std::array<faw_strides, 8> strides = {};
  faw_extras extras = FAW_NO_EXTRAS;
  bool any = false;

  ExtrasOfACall(const Plan& plan, const Tensor& q, const Extras& from, int total_k) {
    extras.window_left = int(from.window_left), extras.window_right = int(from.window_right);
    extras.softcap = float(from.softcap);
    const std::array<int64_t, 2> of_heads = {plan.problem.batch, plan.problem.heads};
    if (from.alibi) extras.alibi = check_fp32("alibi", *from.alibi, of_heads, q);
    if (from.sink) extras.sink = check_fp32("sink", *from.sink, at::IntArrayRef(of_heads).slice(1, 1), q);
    any = from.window_left != -1 || from.window_right != -1 || from.softcap != 0 || from.alibi || from.sink ||
          from.blocks();
    if (from.blocks()) {
      extras.block_begin = numbers_of<int>(from.block_begin);
      extras.block_tiles = numbers_of<int>(from.block_tiles);
      extras.block_bits = numbers_of<unsigned>(from.block_bits);
      add_block_sizes(extras, from);
    }
    if (!from.packed()) return;
    extras.cu_seqlens_q = numbers_of<int>(from.cu_seqlens_q);
    extras.cu_seqlens_k = numbers_of<int>(from.cu_seqlens_k);
    extras.total_q = int(q.size(2)), extras.total_k = total_k, extras.zero_rest = 1;
  }
  void add_strides(Lie lie, const std::vector<std::pair<const faw_strides * faw_extras::*, const Tensor&>>& tensors) {
    if (lie == Lie::contiguous) return;
    extras.unaligned = lie == Lie::unaligned;
    for (size_t i = 0; i < tensors.size(); i++) {
      strides[i] = strides_of(tensors[i].second);
      extras.*tensors[i].first = &strides[i];
    }
    any = true;
  }
  const faw_extras* given() const { return any ? &extras : nullptr; }
};

// (o, lse). An lse that the rung does not write has no elements. o lies as q does, with v's head_dim.
std::tuple<Tensor, Tensor> forward(const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& cos,
                                   const MaybeTensor& sin, bool causal, std::optional<double> scale, Name chapter,
                                   Name rung, Name, Name, int64_t window_left, int64_t window_right, double softcap,
                                   const MaybeTensor& alibi, const MaybeTensor& sink, const MaybeTensor& cu_seqlens_q,
                                   const MaybeTensor& cu_seqlens_k, int64_t max_seqlen_q, int64_t max_seqlen_k,
                                   const MaybeTensor& block_begin, const MaybeTensor& block_tiles,
                                   const MaybeTensor& block_bits) {
  check_inputs(q, k, v, cu_seqlens_q.has_value());
  const c10::DeviceGuard guard(q.device());
  const Extras extras = {window_left,  window_right, softcap,      alibi,       sink,        cu_seqlens_q,
                         cu_seqlens_k, max_seqlen_q, max_seqlen_k, block_begin, block_tiles, block_bits};
  check_lists(extras, q, k);
  const Lie lie = how_they_lie(extras.packed(), {q, k, v});
  const Tensor like_o = v.size(3) == q.size(3) ? q : q.slice(3, 0, v.size(3));  // v is not the wider one
  if (rotates(cos, sin) && lie != Lie::contiguous) {
    const auto [o, lse] = forward(in_order(q), in_order(k), in_order(v), cos, sin, causal, scale, chapter, rung, {}, {},
                                  window_left, window_right, softcap, alibi, sink, cu_seqlens_q, cu_seqlens_k,
                                  max_seqlen_q, max_seqlen_k, block_begin, block_tiles, block_bits);
    return {as_it_lies(like_o, o), lse};
  }
  const Plan& plan = plan_of(Direction::forward, q, k, v, lie, causal, scale, rotates(cos, sin), extras, chapter, rung);
  faw_problem problem = with_tables(plan, q, cos, sin);
  const Tensor o = at::empty_like(like_o);
  ExtrasOfACall of_call(plan, q, extras, int(k.size(2)));
  of_call.add_strides(lie, {{&faw_extras::q, q}, {&faw_extras::k, k}, {&faw_extras::v, v}, {&faw_extras::o, o}});
  problem.extras = of_call.given();
  const Tensor lse =
      at::empty(plan.writes_lse ? q.sizes().slice(0, 3) : at::IntArrayRef(0), q.options().dtype(at::kFloat));
  if (!has_values(q)) return {o, lse};
  if (is_empty(q, k, extras)) {
    o.zero_();
    if (sink && plan.writes_lse)
      lse.copy_(sink->unsqueeze(1));  // the logarithm of the only term
    else
      lse.fill_(-std::numeric_limits<float>::infinity());
    spoil_if_lists_are_wrong({o, lse}, extras, q, k);
    return {o, lse};
  }
  const c10::DataPtr workspace = allocate(plan.workspace);
  require(faw_forward(plan.chapter.c_str(), plan.rung_name(), &problem, q.const_data_ptr(), k.const_data_ptr(),
                      v.const_data_ptr(), o.mutable_data_ptr(),
                      plan.writes_lse ? lse.mutable_data_ptr<float>() : nullptr, workspace.get(), plan.workspace,
                      current_stream(q)));
  return {o, lse};
}

// (o, lse) of q, k and v that are e4m3, with a scale each, or one for each FAW_FP8_TILE rows of a head.
std::tuple<Tensor, Tensor> forward_e4m3(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& q_scale,
                                        const Tensor& k_scale, const Tensor& v_scale, bool causal,
                                        std::optional<double> scale, std::string_view chapter_name, Name rung_name,
                                        at::ScalarType out_dtype) {
  check_inputs(q, k, v, false, true);
  for (const auto& [name, tensor] : {std::pair("q", &q), {"k", &k}, {"v", &v}}) check_axes(name, *tensor, false);
  CHECK_VALUE(out_dtype == at::kHalf || out_dtype == at::kBFloat16, "out_dtype is torch.",
              c10::getDtypeNames(out_dtype).first, ": supported are torch.float16 and torch.bfloat16");
  const bool of_tiles = q_scale.dim() == 3;
  const auto check_scale = [&](const char* name, const Tensor& given, const Tensor& of) {
    const std::array<int64_t, 3> tiles = {of.size(0), of.size(1), (of.size(2) + FAW_FP8_TILE - 1) / FAW_FP8_TILE};
    const std::array<int64_t, 1> one = {1};
    return check_fp32(name, given, of_tiles ? at::IntArrayRef(tiles) : at::IntArrayRef(one), q);
  };
  const faw_scales scales = {check_scale("q_scale", q_scale, q), check_scale("k_scale", k_scale, k),
                             check_scale("v_scale", v_scale, v), of_tiles};
  const c10::DeviceGuard guard(q.device());
  const std::string chapter(chapter_name), rung(rung_name.value_or(""));
  const char* const named = rung_name ? rung.c_str() : nullptr;
  faw_problem problem = {.size = sizeof(faw_problem),
                         .batch = int(q.size(0)),
                         .heads = int(q.size(1)),
                         .kv_heads = int(k.size(1)),
                         .seq_q = int(q.size(2)),
                         .seq_k = int(k.size(2)),
                         .head_dim = int(q.size(3)),
                         .head_dim_v = int(v.size(3)),
                         .dtype = out_dtype == at::kHalf ? FAW_FP16 : FAW_BF16,
                         .causal = causal,
                         .scale = scale ? float(*scale) : faw_default_scale(int(q.size(3))),
                         .rope_cos = nullptr,
                         .rope_sin = nullptr,
                         .extras = nullptr};
  faw_problem asked = with_something_in_it(problem);
  size_t bytes = 0;
  require(faw_forward_e4m3_workspace(chapter.c_str(), named, &asked, &bytes));
  const Tensor o = at::empty(q.sizes(), q.options().dtype(out_dtype));
  const Tensor lse = at::empty(q.sizes().slice(0, 3), q.options().dtype(at::kFloat));
  if (!has_values(q)) return {o, lse};
  if (q.numel() == 0 || k.numel() == 0) {
    o.zero_();
    lse.fill_(-std::numeric_limits<float>::infinity());
    return {o, lse};
  }
  const c10::DataPtr workspace = allocate(bytes);
  require(faw_forward_e4m3(chapter.c_str(), named, &problem, q.const_data_ptr(), k.const_data_ptr(), v.const_data_ptr(),
                           &scales, o.mutable_data_ptr(), lse.mutable_data_ptr<float>(), workspace.get(), bytes,
                           current_stream(q)));
  return {o, lse};
}

// (dq, dk, dv, dsink); without a sink dsink has no elements.
std::tuple<Tensor, Tensor, Tensor, Tensor> backward(
    const Tensor& any_d_o, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& o, const Tensor& lse,
    const MaybeTensor& cos, const MaybeTensor& sin, bool causal, std::optional<double> scale, Name chapter, Name rung,
    int64_t window_left, int64_t window_right, double softcap, const MaybeTensor& alibi, const MaybeTensor& sink,
    const MaybeTensor& cu_seqlens_q, const MaybeTensor& cu_seqlens_k, int64_t max_seqlen_q, int64_t max_seqlen_k,
    const MaybeTensor& block_begin, const MaybeTensor& block_tiles, const MaybeTensor& block_bits) {
  const bool packed = cu_seqlens_q.has_value();
  check_inputs(q, k, v, packed);
  check_tensor("o", o, q, packed);
  check_shape("o", o, shape_with(q, v.size(3)), packed);
  // How it lies is autograd's choice: the gradient of a sum is one number, expanded.
  const Lie lie = how_they_lie(packed, {q, k, v, o});
  if (rotates(cos, sin) && lie != Lie::contiguous) {
    const auto [dq, dk, dv, d_sink] =
        backward(any_d_o, in_order(q), in_order(k), in_order(v), in_order(o), lse, cos, sin, causal, scale, chapter,
                 rung, window_left, window_right, softcap, alibi, sink, cu_seqlens_q, cu_seqlens_k, max_seqlen_q,
                 max_seqlen_k, block_begin, block_tiles, block_bits);
    return {as_it_lies(q, dq), as_it_lies(k, dk), as_it_lies(v, dv), d_sink};
  }
  const bool fits = any_d_o.dim() == 4 && has_aligned_rows(any_d_o) &&
                    (lie == Lie::contiguous ? any_d_o.is_contiguous() : has_whole_rows(any_d_o));
  const Tensor d_o = fits ? any_d_o : any_d_o.clone(at::MemoryFormat::Contiguous);
  check_tensor("d_o", d_o, q, packed);
  check_shape("d_o", d_o, o.sizes(), packed);
  const float* lse_data = check_fp32("lse", lse, q.sizes().slice(0, 3), q);
  const c10::DeviceGuard guard(q.device());
  const Extras extras = {window_left,  window_right, softcap,      alibi,       sink,        cu_seqlens_q,
                         cu_seqlens_k, max_seqlen_q, max_seqlen_k, block_begin, block_tiles, block_bits};
  check_lists(extras, q, k);
  const Plan& plan =
      plan_of(Direction::backward, q, k, v, lie, causal, scale, rotates(cos, sin), extras, chapter, rung);
  faw_problem problem = with_tables(plan, q, cos, sin);
  const Tensor dq = at::empty_like(q), dk = at::empty_like(k), dv = at::empty_like(v);
  const Tensor d_sink = at::empty({sink ? q.size(1) : 0}, q.options().dtype(at::kFloat));
  ExtrasOfACall of_call(plan, q, extras, int(k.size(2)));
  if (!has_values(q)) return {dq, dk, dv, d_sink};
  if (is_empty(q, k, extras)) {
    for (const Tensor& gradient : {dq, dk, dv, d_sink}) gradient.zero_();
    spoil_if_lists_are_wrong({dq, dk, dv, d_sink}, extras, q, k);
    return {dq, dk, dv, d_sink};
  }
  if (sink) of_call.extras.d_sink = d_sink.mutable_data_ptr<float>();
  of_call.add_strides(lie, {{&faw_extras::q, q},
                            {&faw_extras::k, k},
                            {&faw_extras::v, v},
                            {&faw_extras::o, o},
                            {&faw_extras::d_o, d_o},
                            {&faw_extras::dq, dq},
                            {&faw_extras::dk, dk},
                            {&faw_extras::dv, dv}});
  problem.extras = of_call.given();
  const c10::DataPtr workspace = allocate(plan.workspace);
  require(faw_backward(plan.chapter.c_str(), plan.rung_name(), &problem, q.const_data_ptr(), k.const_data_ptr(),
                       v.const_data_ptr(), o.const_data_ptr(), lse_data, d_o.const_data_ptr(), dq.mutable_data_ptr(),
                       dk.mutable_data_ptr(), dv.mutable_data_ptr(), workspace.get(), plan.workspace,
                       current_stream(q)));
  return {dq, dk, dv, d_sink};
}

// While torch.compile records a call, its numbers may be symbols: lengths differ from batch to batch, and nothing that
// is compiled shall be for one of them. The kernels above get numbers.
template <class>
struct WithSymbols;
template <class Result, class... Arguments>
struct WithSymbols<Result(Arguments...)> {
  using type = Result(std::conditional_t<std::is_same_v<Arguments, int64_t>, c10::SymInt, Arguments>...);
};

template <class... Arguments>
std::tuple<Tensor, Tensor> call_forward(const Arguments&... arguments) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("flash_attention_workbook::forward", "")
                             .typed<WithSymbols<decltype(forward)>::type>();
  return op.call(arguments...);
}

template <class... Arguments>
std::tuple<Tensor, Tensor, Tensor, Tensor> call_backward(const Arguments&... arguments) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("flash_attention_workbook::backward", "")
                             .typed<WithSymbols<decltype(backward)>::type>();
  return op.call(arguments...);
}

template <class... Arguments>
std::tuple<Tensor, Tensor> call_forward_e4m3(const Arguments&... arguments) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("flash_attention_workbook::forward_e4m3", "")
                             .typed<decltype(forward_e4m3)>();
  return op.call(arguments...);
}

// --- Autograd and autocast -------------------------------------------------------------------------------------------

// o, as a function of q, k, v and the sink. lse has no gradient: it is the backward's own, and leaves through the last
// argument.
struct Attention : torch::autograd::Function<Attention> {
  static constexpr bool is_traceable = true;

  static Tensor forward(AutogradContext* context, const Tensor& q, const Tensor& k, const Tensor& v,
                        const MaybeTensor& cos, const MaybeTensor& sin, bool causal, std::optional<double> scale,
                        Name chapter, Name rung, Name backward_chapter, Name backward_rung, c10::SymInt window_left,
                        c10::SymInt window_right, double softcap, const MaybeTensor& alibi, const MaybeTensor& sink,
                        const MaybeTensor& cu_seqlens_q, const MaybeTensor& cu_seqlens_k, c10::SymInt max_seqlen_q,
                        c10::SymInt max_seqlen_k, const MaybeTensor& block_begin, const MaybeTensor& block_tiles,
                        const MaybeTensor& block_bits, Tensor* lse) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    Tensor o;
    std::tie(o, *lse) = call_forward(q, k, v, cos, sin, causal, scale, chapter, rung, backward_chapter, backward_rung,
                                     window_left, window_right, softcap, alibi, sink, cu_seqlens_q, cu_seqlens_k,
                                     max_seqlen_q, max_seqlen_k, block_begin, block_tiles, block_bits);
    context->save_for_backward({q, k, v, o, *lse, cos.value_or(Tensor()), sin.value_or(Tensor()),
                                alibi.value_or(Tensor()), sink.value_or(Tensor()), cu_seqlens_q.value_or(Tensor()),
                                cu_seqlens_k.value_or(Tensor()), block_begin.value_or(Tensor()),
                                block_tiles.value_or(Tensor()), block_bits.value_or(Tensor())});
    context->set_materialize_grads(false);
    context->saved_data["options"] = std::tuple(causal, scale, backward_chapter, backward_rung, window_left,
                                                window_right, softcap, max_seqlen_q, max_seqlen_k);
    return o;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    constexpr size_t of_sink = 15;
    variable_list found(24);  // of the arguments that are no tensors, and of the tables and slopes, there is none
    if (!gradients[0].defined()) return found;
    const variable_list saved = context->get_saved_variables();
    const auto table = [&](size_t i) { return saved[i].defined() ? MaybeTensor(saved[i]) : std::nullopt; };
    // With create_graph=True the operator is recorded in its turn, and refuses to be differentiated.
    std::optional<at::AutoDispatchBelowADInplaceOrView> below_autograd;
    if (!at::GradMode::is_enabled()) below_autograd.emplace();
    const auto& options = context->saved_data["options"].toTupleRef().elements();
    std::tie(found[0], found[1], found[2], found[of_sink]) =
        call_backward(gradients[0], saved[0], saved[1], saved[2], saved[3], saved[4], table(5), table(6),
                      options[0].toBool(), options[1].toOptional<double>(), options[2].toOptional<std::string_view>(),
                      options[3].toOptional<std::string_view>(), options[4].toSymInt(), options[5].toSymInt(),
                      options[6].toDouble(), table(7), table(8), table(9), table(10), options[7].toSymInt(),
                      options[8].toSymInt(), table(11), table(12), table(13));
    if (!saved[8].defined()) found[of_sink] = Tensor();
    return found;
  }
};

std::tuple<Tensor, Tensor> forward_for_autograd(const Tensor& q, const Tensor& k, const Tensor& v,
                                                const MaybeTensor& cos, const MaybeTensor& sin, bool causal,
                                                std::optional<double> scale, Name chapter, Name rung,
                                                Name backward_chapter, Name backward_rung, c10::SymInt window_left,
                                                c10::SymInt window_right, double softcap, const MaybeTensor& alibi,
                                                const MaybeTensor& sink, const MaybeTensor& cu_seqlens_q,
                                                const MaybeTensor& cu_seqlens_k, c10::SymInt max_seqlen_q,
                                                c10::SymInt max_seqlen_k, const MaybeTensor& block_begin,
                                                const MaybeTensor& block_tiles, const MaybeTensor& block_bits) {
  refuse_tangents({{"q", q}, {"k", k}, {"v", v}});
  CHECK_VALUE(!alibi || !alibi->requires_grad(), "alibi requires gradients: slopes have none");
  if (at::GradMode::is_enabled() &&
      (q.requires_grad() || k.requires_grad() || v.requires_grad() || (sink && sink->requires_grad()))) {
    if (!at::areAnyTensorSubclassLike({q, k, v})) {  // what the backward refuses is refused now
      check_inputs(q, k, v, cu_seqlens_q.has_value());
      const c10::DeviceGuard guard(q.device());
      const auto number = [](const c10::SymInt& of) { return of.guard_int(__FILE__, __LINE__); };
      const Extras extras = {
          number(window_left),  number(window_right), softcap,     alibi,       sink,      cu_seqlens_q, cu_seqlens_k,
          number(max_seqlen_q), number(max_seqlen_k), block_begin, block_tiles, block_bits};
      check_lists(extras, q, k);
      plan_of(Direction::backward, q, k, v,
              rotates(cos, sin) ? Lie::contiguous : how_they_lie(extras.packed(), {q, k, v}), causal, scale,
              rotates(cos, sin), extras, backward_chapter, backward_rung);
    }
    if (const auto& transforms = at::functorch::functorchTLSAccessor()) {
      bool supported = true;  // as Attention::apply asks, with an error of its own
      try {
        transforms->checkSupportsCppAutogradFunction();
      } catch (const c10::Error&) {
        supported = false;
      }
      CHECK_VALUE(supported, "a transform of torch.func wants gradients: torch.autograd.grad has them");
    }
    Tensor lse;
    Tensor o = Attention::apply(q, k, v, cos, sin, causal, scale, chapter, rung, backward_chapter, backward_rung,
                                window_left, window_right, softcap, alibi, sink, cu_seqlens_q, cu_seqlens_k,
                                max_seqlen_q, max_seqlen_k, block_begin, block_tiles, block_bits, &lse);
    return {o, lse};
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return call_forward(q, k, v, cos, sin, causal, scale, chapter, rung, backward_chapter, backward_rung, window_left,
                      window_right, softcap, alibi, sink, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k,
                      block_begin, block_tiles, block_bits);
}

c10::DispatchKey autocast_key() { return at::autocast::get_autocast_dispatch_key_from_device_type(device_type); }

std::tuple<Tensor, Tensor> forward_for_autocast(const Tensor& q, const Tensor& k, const Tensor& v,
                                                const MaybeTensor& cos, const MaybeTensor& sin, bool causal,
                                                std::optional<double> scale, Name chapter, Name rung,
                                                Name backward_chapter, Name backward_rung, c10::SymInt window_left,
                                                c10::SymInt window_right, double softcap, const MaybeTensor& alibi,
                                                const MaybeTensor& sink, const MaybeTensor& cu_seqlens_q,
                                                const MaybeTensor& cu_seqlens_k, c10::SymInt max_seqlen_q,
                                                c10::SymInt max_seqlen_k, const MaybeTensor& block_begin,
                                                const MaybeTensor& block_tiles, const MaybeTensor& block_bits) {
  const c10::impl::ExcludeDispatchKeyGuard below_autocast(autocast_key());
  const at::ScalarType dtype = at::autocast::get_autocast_dtype(device_type);
  const auto cast = [dtype](const Tensor& tensor) { return at::autocast::cached_cast(dtype, tensor, device_type); };
  return call_forward(cast(q), cast(k), cast(v), cos, sin, causal, scale, chapter, rung, backward_chapter,
                      backward_rung, window_left, window_right, softcap, alibi, sink, cu_seqlens_q, cu_seqlens_k,
                      max_seqlen_q, max_seqlen_k, block_begin, block_tiles, block_bits);
}

// The last arguments name the rungs of both directions; cos and sin are the tables of RoPE. The shapes of what comes
// out, for a compiler, are told by operators.py.
TORCH_LIBRARY(flash_attention_workbook, library) {
  const std::vector<at::Tag> tags = {at::Tag::needs_fixed_stride_order, at::Tag::pt2_compliant_tag};
  library.def(
      "forward(Tensor q, Tensor k, Tensor v, Tensor? cos, Tensor? sin, bool causal, float? scale, str? chapter, str? "
      "rung, str? backward_chapter, str? backward_rung, SymInt window_left=-1, SymInt window_right=-1, float "
      "softcap=0, "
      "Tensor? alibi=None, Tensor? sink=None, Tensor? cu_seqlens_q=None, Tensor? cu_seqlens_k=None, SymInt "
      "max_seqlen_q=0, SymInt max_seqlen_k=0, Tensor? block_begin=None, Tensor? block_tiles=None, Tensor? "
      "block_bits=None) -> (Tensor, Tensor)",
      tags);
  library.def(
      "backward(Tensor d_o, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, Tensor? cos, Tensor? sin, bool causal, "
      "float? scale, str? chapter, str? rung, SymInt window_left=-1, SymInt window_right=-1, float softcap=0, "
      "Tensor? alibi=None, Tensor? sink=None, Tensor? cu_seqlens_q=None, Tensor? cu_seqlens_k=None, SymInt "
      "max_seqlen_q=0, SymInt max_seqlen_k=0, Tensor? block_begin=None, Tensor? block_tiles=None, Tensor? "
      "block_bits=None) -> (Tensor, Tensor, Tensor, Tensor)",
      tags);
  library.def(
      "forward_e4m3(Tensor q, Tensor k, Tensor v, Tensor q_scale, Tensor k_scale, Tensor v_scale, bool causal, float? "
      "scale, str chapter, str? rung, ScalarType out_dtype) -> (Tensor, Tensor)",
      tags);
  for (const c10::DispatchKey key : {c10::DispatchKey::CPU, c10::DispatchKey::CUDA}) {  // one of them, to be refused
    library.impl("forward", torch::dispatch(key, forward));
    library.impl("backward", torch::dispatch(key, backward));
    library.impl("forward_e4m3", torch::dispatch(key, forward_e4m3));
  }
  library.impl("forward", torch::dispatch(c10::DispatchKey::Autograd, forward_for_autograd));
  for (const char* name : {"backward", "forward_e4m3"})
    library.impl(name, torch::dispatch(c10::DispatchKey::Autograd, torch::autograd::autogradNotImplementedFallback()));
  library.impl("forward", torch::dispatch(autocast_key(), forward_for_autocast));
}

// --- For Python ------------------------------------------------------------------------------------------------------

std::string repr(PyObject* object) { return py::repr(py::handle(object)).cast<std::string>(); }

const Tensor& tensor_in(const char* name, PyObject* object) {
  CHECK_VALUE(THPVariable_Check(object), name, " is a ", Py_TYPE(object)->tp_name, ": it must be a torch.Tensor");
  const Tensor& tensor = THPVariable_Unpack(object);
  CHECK_VALUE(tensor.layout() == at::kStrided && !tensor.is_nested() && !tensor.is_quantized(), name,
              " is a sparse, nested or quantized tensor: it must be an ordinary one");
  return tensor;
}

MaybeTensor table_in(const char* name, PyObject* object) {
  return object == Py_None ? std::nullopt : MaybeTensor(tensor_in(name, object));
}

bool causal_in(PyObject* object) {
  const long number = PyLong_Check(object) ? PyLong_AsLong(object) : -1;  // True and False are ints
  CHECK_VALUE(number == 0 || number == 1, "causal is ", repr(object), ": it must be True or False");
  return number == 1;
}

std::optional<double> scale_in(PyObject* object) {
  if (object == Py_None) return std::nullopt;
  CHECK_VALUE(PyFloat_Check(object) || PyLong_Check(object), "scale is ", repr(object), ": it must be a number");
  const double number = PyFloat_AsDouble(object);
  if (!PyErr_Occurred()) return number;
  PyErr_Clear();  // an int that is beyond every double
  return std::numeric_limits<double>::infinity();
}

Name name_in(const char* what, PyObject* object) {
  if (object == Py_None) return std::nullopt;
  CHECK_VALUE(PyUnicode_Check(object), what, " is ", repr(object), ": it must be a name");
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(object, &size);
  if (!text) throw python_error();
  return std::string_view(text, size_t(size));
}

int64_t side_in(PyObject* object) {
  const long long number = PyLong_Check(object) ? PyLong_AsLongLong(object) : -2;
  if (PyErr_Occurred()) PyErr_Clear();
  CHECK_VALUE(number >= -1, "a side of the window is ", repr(object), ": it must be a number of keys, or -1 for all");
  return number;
}

int64_t length_in(const char* name, PyObject* object) {
  const long long number = PyLong_Check(object) ? PyLong_AsLongLong(object) : -1;
  if (PyErr_Occurred()) PyErr_Clear();
  CHECK_VALUE(number >= 0, name, " is ", repr(object), ": it must be the number of tokens of the longest sequence");
  return number;
}

double softcap_in(PyObject* object) {
  const std::optional<double> number = scale_in(object);
  return number.value_or(0);
}

template <class... Tensors>
PyObject* tuple_of(std::tuple<Tensors...> tensors) {
  const auto wrapped = [](auto&... each) {
    return py::make_tuple(py::reinterpret_steal<py::object>(THPVariable_Wrap(std::move(each)))...);
  };
  return std::apply(wrapped, tensors).release().ptr();
}

// How a function for Python calls: through the dispatcher, or the kernel itself, which checks tensors without values.
enum class Call { dispatched, kernel };

// The operator, as torch.ops.flash_attention_workbook.forward.default, with these 23 arguments in order.
template <Call call>
PyObject* python_forward(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  HANDLE_TH_ERRORS
  TORCH_CHECK_TYPE(count == 23, message("forward takes 23 arguments: it was given ", count));
  const Tensor &q = tensor_in("q", arguments[0]), &k = tensor_in("k", arguments[1]), &v = tensor_in("v", arguments[2]);
  const MaybeTensor cos = table_in("rope's cos", arguments[3]), sin = table_in("rope's sin", arguments[4]);
  const bool causal = causal_in(arguments[5]);
  const std::optional<double> scale = scale_in(arguments[6]);
  const Name chapter = name_in("chapter", arguments[7]), rung = name_in("rung", arguments[8]);
  const Name backward_chapter = name_in("backward_chapter", arguments[9]);
  const Name backward_rung = name_in("backward_rung", arguments[10]);
  const int64_t window_left = side_in(arguments[11]), window_right = side_in(arguments[12]);
  const double softcap = softcap_in(arguments[13]);
  const MaybeTensor alibi = table_in("alibi", arguments[14]), sink = table_in("sink", arguments[15]);
  const MaybeTensor cu_seqlens_q = table_in("cu_seqlens_q", arguments[16]);
  const MaybeTensor cu_seqlens_k = table_in("cu_seqlens_k", arguments[17]);
  const int64_t max_seqlen_q = length_in("max_seqlen_q", arguments[18]);
  const int64_t max_seqlen_k = length_in("max_seqlen_k", arguments[19]);
  const MaybeTensor block_begin = table_in("blocks.begin", arguments[20]);
  const MaybeTensor block_tiles = table_in("blocks.tiles", arguments[21]);
  const MaybeTensor block_bits = table_in("blocks.bits", arguments[22]);
  std::tuple<Tensor, Tensor> output;
  {
    const py::gil_scoped_release others_may_run;
    const auto run = [](const auto&... given) {
      return call == Call::kernel ? forward(given...) : call_forward(given...);
    };
    output = run(q, k, v, cos, sin, causal, scale, chapter, rung, backward_chapter, backward_rung, window_left,
                 window_right, softcap, alibi, sink, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k,
                 block_begin, block_tiles, block_bits);
  }
  return tuple_of(std::move(output));
  END_HANDLE_TH_ERRORS
}

// The operator backward, likewise, with its 24 arguments in order.
template <Call call>
PyObject* python_backward(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  HANDLE_TH_ERRORS
  TORCH_CHECK_TYPE(count == 24, message("backward takes 24 arguments: it was given ", count));
  const Tensor& d_o = tensor_in("d_o", arguments[0]);
  const Tensor &q = tensor_in("q", arguments[1]), &k = tensor_in("k", arguments[2]), &v = tensor_in("v", arguments[3]);
  const Tensor &o = tensor_in("o", arguments[4]), &lse = tensor_in("lse", arguments[5]);
  const MaybeTensor cos = table_in("rope's cos", arguments[6]), sin = table_in("rope's sin", arguments[7]);
  const bool causal = causal_in(arguments[8]);
  const std::optional<double> scale = scale_in(arguments[9]);
  const Name chapter = name_in("chapter", arguments[10]), rung = name_in("rung", arguments[11]);
  const int64_t window_left = side_in(arguments[12]), window_right = side_in(arguments[13]);
  const double softcap = softcap_in(arguments[14]);
  const MaybeTensor alibi = table_in("alibi", arguments[15]), sink = table_in("sink", arguments[16]);
  const MaybeTensor cu_seqlens_q = table_in("cu_seqlens_q", arguments[17]);
  const MaybeTensor cu_seqlens_k = table_in("cu_seqlens_k", arguments[18]);
  const int64_t max_seqlen_q = length_in("max_seqlen_q", arguments[19]);
  const int64_t max_seqlen_k = length_in("max_seqlen_k", arguments[20]);
  const MaybeTensor block_begin = table_in("blocks.begin", arguments[21]);
  const MaybeTensor block_tiles = table_in("blocks.tiles", arguments[22]);
  const MaybeTensor block_bits = table_in("blocks.bits", arguments[23]);
  std::tuple<Tensor, Tensor, Tensor, Tensor> output;
  {
    const py::gil_scoped_release others_may_run;
    const auto run = [](const auto&... given) {
      return call == Call::kernel ? backward(given...) : call_backward(given...);
    };
    output =
        run(d_o, q, k, v, o, lse, cos, sin, causal, scale, chapter, rung, window_left, window_right, softcap, alibi,
            sink, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, block_begin, block_tiles, block_bits);
  }
  return tuple_of(std::move(output));
  END_HANDLE_TH_ERRORS
}

// The operator forward_e4m3, likewise, with its 11 arguments in order.
template <Call call>
PyObject* python_forward_e4m3(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  HANDLE_TH_ERRORS
  TORCH_CHECK_TYPE(count == 11, message("forward_e4m3 takes 11 arguments: it was given ", count));
  const Tensor &q = tensor_in("q", arguments[0]), &k = tensor_in("k", arguments[1]), &v = tensor_in("v", arguments[2]);
  const Tensor& q_scale = tensor_in("q_scale", arguments[3]);
  const Tensor& k_scale = tensor_in("k_scale", arguments[4]);
  const Tensor& v_scale = tensor_in("v_scale", arguments[5]);
  const bool causal = causal_in(arguments[6]);
  const std::optional<double> scale = scale_in(arguments[7]);
  const Name chapter = name_in("chapter", arguments[8]), rung = name_in("rung", arguments[9]);
  CHECK_VALUE(chapter, "chapter is None: it must be a name");
  CHECK_VALUE(THPDtype_Check(arguments[10]), "out_dtype is ", repr(arguments[10]),
              ": it must be torch.float16 or torch.bfloat16");
  const at::ScalarType out_dtype = reinterpret_cast<THPDtype*>(arguments[10])->scalar_type;
  std::tuple<Tensor, Tensor> output;
  {
    const py::gil_scoped_release others_may_run;
    const auto run = [](const auto&... given) {
      return call == Call::kernel ? forward_e4m3(given...) : call_forward_e4m3(given...);
    };
    output = run(q, k, v, q_scale, k_scale, v_scale, causal, scale, *chapter, rung, out_dtype);
  }
  return tuple_of(std::move(output));
  END_HANDLE_TH_ERRORS
}

using Function = PyObject*(PyObject*, PyObject* const*, Py_ssize_t);

PyMethodDef named(const char* name, Function* function) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)), METH_FASTCALL, nullptr};
}

PyMethodDef functions[] = {named("forward", python_forward<Call::dispatched>),
                           named("backward", python_backward<Call::dispatched>),
                           named("forward_e4m3", python_forward_e4m3<Call::dispatched>),
                           named("check_forward", python_forward<Call::kernel>),
                           named("check_backward", python_backward<Call::kernel>),
                           named("check_forward_e4m3", python_forward_e4m3<Call::kernel>),
                           {nullptr, nullptr, 0, nullptr}};

PyModuleDef module = {PyModuleDef_HEAD_INIT, "_operators", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__operators() { return PyModule_Create(&module); }
