#include "tests/chapter/cases.h"

#include <algorithm>
#include <sstream>

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
       << p.head_dim << "_" << attention::name(p.dtype) << "_" << attention::name(p.mask) << "_" << harness::name(c.inputs);
  if (p.scale != attention::default_scale(p.head_dim)) text << "_scaled";
  return text.str();
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto dtype = [&] { return all.size() % 2 == 0 ? DType::fp16 : DType::bf16; };

  // Every length around the edges of tiles, with both masks and both head dims; equal and unequal both ways. The dtype
  // alternates.
  const int lengths[] = {1, 2, 7, 31, 63, 64, 65, 127, 129, 257};
  for (const Mask mask : {Mask::none, Mask::causal}) {
    for (size_t i = 0; i < std::size(lengths); i++) {
      const int n = lengths[i], other = lengths[(i * 3 + 4) % std::size(lengths)];
      all.push_back({make({1, 1, 1, n, n, 64}, dtype(), mask)});
      all.push_back({make({1, 1, 1, n, n, 128}, dtype(), mask)});
      all.push_back({make({1, 2, 1, n, other, i % 2 ? 64 : 128}, dtype(), mask)});
      all.push_back({make({1, 1, 1, other, n, i % 2 ? 128 : 64}, dtype(), mask)});
    }
  }
  // Every kind of input, where tiles are full and where they are ragged.
  for (const InputKind kind : harness::all_input_kinds)
    for (const Mask mask : {Mask::none, Mask::causal})
      for (const DType type : {DType::fp16, DType::bf16}) {
        all.push_back({make({1, 1, 1, 128, 192, 64}, type, mask), kind});
        all.push_back({make({1, 1, 1, 71, 201, 128}, type, mask), kind});
      }
  // Batches and heads: multi-head, grouped, multi-query.
  for (const int kv_heads : {6, 3, 2, 1})
    for (const Mask mask : {Mask::none, Mask::causal})
      all.push_back({make({2, 6, kv_heads, 33, 70, 64}, dtype(), mask)});
  // Rows that see no key (seq_q > seq_k, causal): some, nearly all.
  for (const DType type : {DType::fp16, DType::bf16}) {
    all.push_back({make({1, 2, 2, 130, 66, 64}, type, Mask::causal)});
    all.push_back({make({1, 2, 1, 200, 1, 128}, type, Mask::causal)});
  }
  // Other head dims: supported by the early chapters only.
  for (const int head_dim : {8, 40, 72, 200, 256})
    for (const Mask mask : {Mask::none, Mask::causal}) all.push_back({make({1, 2, 1, 65, 97, head_dim}, dtype(), mask)});
  // A scale that is not 1/sqrt(D).
  Case scaled = {make({1, 1, 1, 64, 96, 64}, DType::fp16, Mask::causal)};
  scaled.problem.scale = 0.3f;
  all.push_back(scaled);
  return all;
}

std::string solve(const attention::Forward& pass, const Case& c) {
  if (const std::string why = pass.unsupported(c.problem); !why.empty()) return "";
  const auto inputs = harness::make_inputs(c.problem, c.inputs, 7);
  const harness::Reference reference(c.problem, inputs, false);
  for (const size_t guard : {size_t(256), size_t(0)}) {
    const harness::Verdict verdict = harness::run_forward(pass, c.problem, inputs, reference, guard);
    if (!verdict.passed()) return verdict.first_wrong();
  }
  return "";
}

std::string solve(const attention::Backward& pass, const Case& c) {
  if (const std::string why = pass.unsupported(c.problem); !why.empty()) return "";
  const auto inputs = harness::make_inputs(c.problem, c.inputs, 7);
  const harness::Reference reference(c.problem, inputs, true);
  for (const size_t guard : {size_t(256), size_t(0)}) {
    const harness::Verdict verdict = harness::run_backward(pass, c.problem, inputs, reference, guard);
    if (!verdict.passed()) return verdict.first_wrong();
  }
  return "";
}

namespace {

std::vector<uint16_t> bits(const harness::GuardedBuffer& buffer) {
  std::vector<uint16_t> bits(buffer.bytes() / 2);
  buffer.download(bits.data());
  return bits;
}

// Calls run() so many times and compares what outputs() gives.
template <class Run, class Outputs>
std::string first_difference(int times, Run&& run, Outputs&& outputs) {
  std::vector<uint16_t> first;
  for (int i = 0; i < times; i++) {
    run();
    check(cudaDeviceSynchronize());
    std::vector<uint16_t> now = outputs();
    if (i == 0) first = std::move(now);
    else if (now != first) return "run " + std::to_string(i) + " differs from run 0";
  }
  return "";
}

}  // namespace

std::string differs_from_run_to_run(const attention::Forward& pass, const Case& c, int times) {
  const auto inputs = harness::make_inputs(c.problem, c.inputs, 7);
  harness::DeviceTensors device(c.problem, inputs, pass.workspace_bytes(c.problem), false);
  return first_difference(
      times, [&] { pass.run(c.problem, device.forward_args(), nullptr); }, [&] { return bits(device.o); });
}

std::string differs_from_run_to_run(const attention::Backward& pass, const Case& c, int times) {
  const auto inputs = harness::make_inputs(c.problem, c.inputs, 7);
  const harness::Reference reference(c.problem, inputs, true);
  harness::DeviceTensors device(c.problem, inputs, pass.workspace_bytes(c.problem), true);
  harness::upload_forward(device, c.problem, reference);
  return first_difference(
      times, [&] { pass.run(c.problem, device.backward_args(), nullptr); },
      [&] {
        std::vector<uint16_t> all = bits(device.dq);
        for (const auto* gradient : {&device.dk, &device.dv}) {
          const auto more = bits(*gradient);
          all.insert(all.end(), more.begin(), more.end());
        }
        return all;
      });
}

}  // namespace chapter_suite
