#include "tests/chapter/cases.h"

#include <sstream>
#include <type_traits>

#include "device/cuda_error.h"
#include "device/limits.h"
#include "harness/verdict.h"
#include "tests/chapter/references.h"

namespace chapter_suite {

using attention::DType;
using attention::Mask;
using attention::Problem;

constexpr const char* rounded_how[] = {"", "_eight_bits", "_eight_bits_lagging", "_eight_bits_of_tiles",
                                       "_eight_bits_rotated"};

std::string name(const Case& c) {
  const Problem& p = c.problem;
  std::ostringstream text;
  text << "B" << p.batch << "_H" << p.heads << "_Hkv" << p.kv_heads << "_Nq" << p.seq_q << "_Nk" << p.seq_k << "_D"
       << p.head_dim << (extras(p) & attention::own_v ? "_Dv" + std::to_string(p.v_dim()) : "") << "_"
       << attention::name(p.dtype) << "_" << attention::name(p.mask) << "_" << harness::name(c.inputs)
       << (p.rope ? "_rope" : "") << rounded_how[p.eight_bits];
  const auto side = [](int keys) { return keys < 0 ? std::string("all") : std::to_string(keys); };
  if (extras(p) & attention::window) text << "_window_" << side(p.window_left) << "_" << side(p.window_right);
  if (extras(p) & attention::softcap) text << "_softcap" << p.softcap;
  text << (p.alibi ? "_alibi" : "") << (p.sink ? "_sink" : "")
       << (p.unaligned ? "_unaligned"
           : p.views   ? "_views"
                       : "")
       << (p.packed ? "_packed" : "");
  if (extras(p) & attention::blocks) text << "_blocks_" << attention::name(p.blocks);
  if (p.scale != attention::default_scale(p.head_dim)) text << "_scale" << p.scale;
  return text.str();
}

Case make(const Sizes& s, DType dtype, Mask mask, harness::InputKind inputs) {
  return {
      {s.batch, s.heads, s.kv_heads, s.seq_q, s.seq_k, s.head_dim, dtype, mask, attention::default_scale(s.head_dim)},
      inputs};
}

Case ragged(int head_dim) { return make({1, 2, 1, 150, 170, head_dim}, DType::fp16, Mask::causal); }

Case many_tiles(int head_dim) {
  const Sizes sizes = on_gpu ? Sizes{4, 8, 2, 500, 512, head_dim} : Sizes{1, 2, 1, 40, 512, head_dim};
  return make(sizes, DType::fp16, Mask::causal);
}

std::vector<Case> small_cases() {
  return {make({1, 2, 1, 65, 129, 64}, DType::fp16, Mask::causal).for_("one row and one key after whole tiles, D = 64"),
          make({1, 1, 1, 130, 67, 128}, DType::bf16, Mask::none).for_("more queries than keys, D = 128"),
          make({1, 1, 1, 300, 20, 128}, DType::fp16, Mask::causal).for_("whole blocks of rows that see no key"),
          make({1, 2, 1, 40, 190, 200}, DType::bf16, Mask::causal)
              .for_("a head dim that many passes refuse and others pad")};
}

std::vector<Case> cases_for_checks() {
  std::vector<Case> cases = small_cases();
  cases.push_back(make({1, 1, 1, 20, 660, 64}, DType::fp16, Mask::causal)
                      .for_("keys that fill every buffer again, however many chapter 10 has, D = 64"));
  cases.push_back(make({1, 1, 1, 20, 330, 128}, DType::bf16, Mask::none).for_("the same, D = 128"));
  return cases;
}

bool must_be_supported(const Problem& p, unsigned taken) {
  const bool own_v = extras(p) & attention::own_v;
  const bool head_dims = own_v ? p.head_dim == 192 && p.v_dim() == 128 && p.softcap == 0 && !p.alibi &&
                                     largest_shared_memory() >= 163 * 1024
                               : attention::head_dim_not_8_to_128(p).empty();
  constexpr unsigned beside_blocks = attention::views | attention::sink | attention::blocks;
  const bool together = !(extras(p) & attention::blocks && extras(p) & ~beside_blocks);
  return head_dims && together && p.seq_k <= 512 && attention::extras_unsupported(p, taken).empty();
}

namespace {

harness::Verdict run(const attention::Forward& pass, const Problem& p, const Solved& s, size_t guard) {
  return harness::run_forward(pass, p, s.inputs, s.reference, guard);
}

harness::Verdict run(const attention::Backward& pass, const Problem& p, const Solved& s, size_t guard) {
  return harness::run_backward(pass, p, s.inputs, s.reference, guard);
}

template <class Pass>
std::string solve_any(const Pass& pass, const Case& c, size_t guard, Judged judged) {
  if (const std::string why = attention::unsupported(pass, c.problem); !why.empty())
    return must_be_supported(c.problem, pass.takes) ? "is refused: " + why : "";
  const Solved& question = solved(c, std::is_same_v<Pass, attention::Backward>);
  try {
    const harness::Verdict verdict = run(pass, c.problem, question, guard);
    return verdict.passed() && judged == Judged::elements_and_norms ? verdict.inaccurate() : verdict.first_wrong();
  } catch (const CudaError& error) {
    return error.what();
  }
}

void append(std::vector<uint16_t>& bits, const harness::GuardedBuffer& buffer) {
  const size_t before = bits.size();
  bits.resize(before + buffer.bytes() / sizeof(uint16_t));
  buffer.download(bits.data() + before);
}

}  // namespace

std::string solve(const attention::Forward& pass, const Case& c, size_t guard, Judged judged) {
  return solve_any(pass, c, guard, judged);
}
std::string solve(const attention::Backward& pass, const Case& c, size_t guard, Judged judged) {
  return solve_any(pass, c, guard, judged);
}

std::vector<std::vector<uint16_t>> outputs(const attention::Forward& pass, const Case& c, int launches) {
  harness::DeviceTensors device(c.problem, solved(c, false).inputs, pass.workspace_bytes(c.problem), false);
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
  const Solved& question = solved(c, true);
  harness::DeviceTensors device(c.problem, question.inputs, pass.workspace_bytes(c.problem), true);
  harness::upload_forward(device, c.problem, question.reference);
  std::vector<std::vector<uint16_t>> bits(launches);
  for (auto& of_launch : bits) {
    pass.run(c.problem, device.backward_args(), nullptr);
    check(cudaDeviceSynchronize());
    for (const auto* gradient : {&device.dq, &device.dk, &device.dv}) append(of_launch, *gradient);
  }
  return bits;
}

}  // namespace chapter_suite
