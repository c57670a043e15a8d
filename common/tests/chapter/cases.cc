#include "tests/chapter/cases.h"

#include <algorithm>
#include <sstream>
#include <type_traits>

#include "harness/verdict.h"

namespace chapter_suite {
namespace {

using attention::DType;
using attention::Mask;
using attention::Problem;
using harness::InputKind;

struct Sizes {
  int batch, heads, kv_heads, seq_q, seq_k, head_dim;
};

Problem make(const Sizes& s, DType dtype, Mask mask) {
  return {s.batch, s.heads, s.kv_heads, s.seq_q, s.seq_k, s.head_dim, dtype, mask, attention::default_scale(s.head_dim)};
}

}  // namespace

std::string name(const Case& c) {
  const Problem& p = c.problem;
  std::ostringstream text;
  text << "B" << p.batch << "_H" << p.heads << "_Hkv" << p.kv_heads << "_Nq" << p.seq_q << "_Nk" << p.seq_k << "_D"
       << p.head_dim << "_" << attention::name(p.dtype) << "_" << attention::name(p.mask) << "_" << harness::name(c.inputs)
       << (p.rope ? "_rope" : "");
  if (p.scale != attention::default_scale(p.head_dim)) text << "_scaled";
  return text.str();
}

std::vector<Case> cases(bool rope) {
  std::vector<Case> all;
  const auto dtype = [&] { return all.size() % 2 == 0 ? DType::fp16 : DType::bf16; };
  const auto of_turn = [](size_t turn) { return turn % 2 == 0 ? DType::fp16 : DType::bf16; };

  // Every length around the edges of tiles, with both masks and both head dims; equal and unequal both ways. The dtype
  // alternates, so that each length and head dim gets both.
  const int lengths[] = {1, 2, 7, 31, 63, 64, 65, 127, 129, 257};
  for (const Mask mask : {Mask::none, Mask::causal}) {
    for (size_t i = 0; i < std::size(lengths); i++) {
      const int n = lengths[i], other = lengths[(i * 3 + 4) % std::size(lengths)];
      const size_t turn = i / 2 + (mask == Mask::causal);
      all.push_back({make({1, 1, 1, n, n, 64}, of_turn(turn), mask)});
      all.push_back({make({1, 1, 1, n, n, 128}, of_turn(turn + 1), mask)});
      all.push_back({make({1, 2, 1, n, other, i % 2 ? 64 : 128}, of_turn(turn), mask)});
      all.push_back({make({1, 1, 1, other, n, i % 2 ? 128 : 64}, of_turn(turn + 1), mask)});
    }
  }
  // Every kind of input, where tiles are full and where they are ragged.
  for (const InputKind kind : harness::all_input_kinds)
    for (const Mask mask : {Mask::none, Mask::causal})
      for (const DType type : {DType::fp16, DType::bf16}) {
        all.push_back({make({1, 1, 1, 128, 192, 64}, type, mask), kind});
        all.push_back({make({1, 1, 1, 71, 201, 128}, type, mask), kind});
      }
  // A weight that is too small for fp16 one by one, and not together: thousands of keys, 2^18 times lighter than key 0.
  all.push_back({make({1, 1, 1, 1, 4096, 64}, DType::fp16, Mask::none), InputKind::sink});
  all.push_back({make({1, 1, 1, 3, 4100, 128}, DType::fp16, Mask::causal), InputKind::sink});
  // Batches and heads: multi-head, grouped, multi-query.
  for (const int kv_heads : {6, 3, 2, 1})
    for (const Mask mask : {Mask::none, Mask::causal})
      for (const DType type : {DType::fp16, DType::bf16})
        all.push_back({make({2, 6, kv_heads, 33, 70, 64}, type, mask)});
  // More heads than any kernel has go round at once (64), and not a multiple, with a second block of keys for each: the
  // last round is a smaller one.
  all.push_back({make({1, 70, 70, 3, 130, 64}, dtype(), Mask::none)});
  all.push_back({make({2, 35, 35, 3, 130, 128}, dtype(), Mask::causal)});
  // Rows that see no key (seq_q > seq_k, causal): some, nearly all.
  for (const DType type : {DType::fp16, DType::bf16}) {
    all.push_back({make({1, 2, 2, 130, 66, 64}, type, Mask::causal)});
    all.push_back({make({1, 2, 1, 200, 1, 128}, type, Mask::causal)});
  }
  // Rows with few keys and so, when they are loud, with an LSE far below 0: exp(S - LSE) of a column past the last key,
  // where S would be 0, is beyond any storage type, and must not be used although K is 0 there.
  for (const int seq_k : {1, 3, 33, 70})
    for (const Mask mask : {Mask::none, Mask::causal})
      for (const int head_dim : {64, 128})
        for (const DType type : {DType::fp16, DType::bf16})
          all.push_back({make({1, 2, 1, 70, seq_k, head_dim}, type, mask), InputKind::loud});
  // Other head dims: supported by the early chapters only.
  for (const int head_dim : {8, 40, 72, 200, 256})
    for (const Mask mask : {Mask::none, Mask::causal}) all.push_back({make({1, 2, 1, 65, 97, head_dim}, dtype(), mask)});
  // A scale that is not 1/sqrt(D).
  Case scaled = {make({1, 1, 1, 64, 96, 64}, DType::fp16, Mask::causal)};
  scaled.problem.scale = 0.3f;
  all.push_back(scaled);
  // Many tiles, and more K and V than an L2 cache likes: too slow for the engine.
  if (on_gpu) {
    all.push_back({make({1, 36, 36, 130, 4000, 64}, dtype(), Mask::causal)});
    for (const Mask mask : {Mask::none, Mask::causal})
      for (const int head_dim : {64, 128}) {
        all.push_back({make({2, 4, 2, 1023, 1025, head_dim}, dtype(), mask)});
        all.push_back({make({1, 2, 2, 2049, 2049, head_dim}, dtype(), mask), InputKind::growing});
        all.push_back({make({1, 4, 1, 3000, 517, head_dim}, dtype(), mask)});
      }
  }
  for (Case& c : all) c.problem.rope = rope;
  return all;
}

Case ragged(int head_dim) { return {make({1, 2, 1, 150, 170, head_dim}, DType::fp16, Mask::causal)}; }

Case many_tiles(int head_dim) {
  const Sizes sizes = on_gpu ? Sizes{4, 8, 2, 500, 512, head_dim} : Sizes{1, 2, 1, 40, 512, head_dim};
  return {make(sizes, DType::fp16, Mask::causal)};
}

bool must_be_supported(const Problem& p) { return (p.head_dim == 64 || p.head_dim == 128) && p.seq_k <= 512; }

namespace {

constexpr uint64_t seed = 7;

harness::Verdict run(const attention::Forward& pass, const Problem& p, const harness::HostTensors& inputs,
                     const harness::Reference& reference, size_t guard) {
  return harness::run_forward(pass, p, inputs, reference, guard);
}

harness::Verdict run(const attention::Backward& pass, const Problem& p, const harness::HostTensors& inputs,
                     const harness::Reference& reference, size_t guard) {
  return harness::run_backward(pass, p, inputs, reference, guard);
}

template <class Pass>
std::string solve_any(const Pass& pass, const Case& c, bool with_guards) {
  if (const std::string why = pass.unsupported(c.problem); !why.empty())
    return must_be_supported(c.problem) ? "is refused: " + why : "";
  const auto inputs = harness::make_inputs(c.problem, c.inputs, seed);
  const harness::Reference reference(c.problem, inputs, std::is_same_v<Pass, attention::Backward>);
  try {
    for (const size_t guard : harness::guards) {
      if (guard > 0 && !with_guards) continue;
      const harness::Verdict verdict = run(pass, c.problem, inputs, reference, guard);
      if (!verdict.passed()) return verdict.first_wrong();
    }
  } catch (const CudaError& error) {
    return error.what();
  }
  return "";
}

void append(std::vector<uint16_t>& bits, const harness::GuardedBuffer& buffer) {
  const size_t before = bits.size();
  bits.resize(before + buffer.bytes() / sizeof(uint16_t));
  buffer.download(bits.data() + before);
}

}  // namespace

std::string solve(const attention::Forward& pass, const Case& c, bool with_guards) {
  return solve_any(pass, c, with_guards);
}
std::string solve(const attention::Backward& pass, const Case& c, bool with_guards) {
  return solve_any(pass, c, with_guards);
}

std::vector<std::vector<uint16_t>> outputs(const attention::Forward& pass, const Case& c, int launches) {
  const auto inputs = harness::make_inputs(c.problem, c.inputs, seed);
  harness::DeviceTensors device(c.problem, inputs, pass.workspace_bytes(c.problem), false);
  std::vector<std::vector<uint16_t>> bits(launches);
  for (auto& of_launch : bits) {
    pass.run(c.problem, device.forward_args(), nullptr);
    check(cudaDeviceSynchronize());
    append(of_launch, device.o);
    append(of_launch, device.lse);
  }
  return bits;
}

std::vector<std::vector<uint16_t>> outputs(const attention::Backward& pass, const Case& c, int launches) {
  const auto inputs = harness::make_inputs(c.problem, c.inputs, seed);
  const harness::Reference reference(c.problem, inputs, true);
  harness::DeviceTensors device(c.problem, inputs, pass.workspace_bytes(c.problem), true);
  harness::upload_forward(device, c.problem, reference);
  std::vector<std::vector<uint16_t>> bits(launches);
  for (auto& of_launch : bits) {
    pass.run(c.problem, device.backward_args(), nullptr);
    check(cudaDeviceSynchronize());
    for (const auto* gradient : {&device.dq, &device.dk, &device.dv}) append(of_launch, *gradient);
  }
  return bits;
}

}  // namespace chapter_suite
