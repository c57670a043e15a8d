#include "attention/problem.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "attention/block_mask.h"
#include "attention/dispatch.h"

namespace attention {

void not_compiled() {
  throw std::logic_error("there is no such instance: compiled without WORKBOOK_FEW_INSTANCES there is");
}

float default_scale(int head_dim) { return float(1.0 / std::sqrt(double(head_dim))); }

const char* name(DType dtype) { return dtype == DType::fp16 ? "fp16" : "bf16"; }
const char* name(Mask mask) { return mask == Mask::none ? "none" : "causal"; }
const char* name(BlockPattern pattern) {
  constexpr const char* names[] = {"none", "given", "documents", "prefix", "dilated", "scattered"};
  return names[int(pattern)];
}

Problem default_problem() {
  Problem p;
  p.batch = on_gpu ? 2 : 1;
  p.heads = p.kv_heads = on_gpu ? 16 : 2;
  p.seq_q = p.seq_k = on_gpu ? 4096 : 256;
  p.mask = Mask::causal;
  return p;
}

std::string label(const Problem& p) {
  std::ostringstream text;
  text << "B" << p.batch << "_H" << p.heads;
  if (p.kv_heads != p.heads) text << "_Hkv" << p.kv_heads;
  if (p.seq_k == p.seq_q)
    text << "_N" << p.seq_q;
  else
    text << "_Nq" << p.seq_q << "_Nk" << p.seq_k;
  text << "_D" << p.head_dim << "_" << name(p.dtype) << (p.mask == Mask::causal ? "_causal" : "_full");
  if (p.rope) text << "_rope";
  if (extras(p) & window) text << "_window" << p.window_left << "_" << p.window_right;
  if (extras(p) & softcap) text << "_softcap" << p.softcap;
  if (p.alibi) text << "_alibi";
  if (p.sink) text << "_sink";
  if (p.views) text << "_views";
  if (extras(p) & own_v) text << "_dv" << p.v_dim();
  if (p.packed) text << "_packed" << p.total_q << "_" << p.total_k;
  if (extras(p) & blocks) text << "_blocks_" << name(p.blocks);
  return text.str();
}

double flops(const Problem& p, bool backward) {
  double pairs = double(p.seq_q) * p.seq_k * (p.mask == Mask::causal ? 0.5 : 1);
  if (extras(p) & window) {
    pairs = 0;
    for (int i = 0; i < p.seq_q; i++) pairs += std::max(0, p.keys_of(i).end - p.keys_of(i).first);
  }
  if (extras(p) & blocks) pairs = seen_pairs(p) / (double(p.batch) * p.heads);
  const double of_q_and_k = backward ? 3 : 1, of_v = backward ? 2 : 1;  // products of 2 D operations for each pair
  return 2.0 * p.batch * p.heads * pairs * (of_q_and_k * p.head_dim + of_v * p.v_dim());
}

std::string invalid(const Problem& p) {
  const struct {
    const char* name;
    int value;
  } sizes[] = {{"batch", p.batch}, {"heads", p.heads}, {"kv-heads", p.kv_heads},
               {"seq-q", p.seq_q}, {"seq-k", p.seq_k}, {"head-dim", p.head_dim}};
  for (const auto& size : sizes)
    if (size.value < 1) return std::string(size.name) + " is " + std::to_string(size.value) + ": it must be at least 1";
  for (const auto& [name, value] : {std::pair("total-q", p.total_q), {"total-k", p.total_k}})
    if (p.packed && value < 1) return std::string(name) + " is " + std::to_string(value) + ": it must be at least 1";
  if (p.head_dim_v < 0)
    return "head-dim-v is " + std::to_string(p.head_dim_v) + ": it must be at least 1, or 0 for that of Q and K";
  if (p.heads % p.kv_heads != 0)
    return "heads is " + std::to_string(p.heads) + " and kv-heads is " + std::to_string(p.kv_heads) +
           ": heads must be a multiple of kv-heads";
  if (!std::isfinite(p.scale)) return "scale is " + std::to_string(p.scale) + ": it must be finite";
  constexpr float log2_e = 1.44269504f;  // kernels work in base 2
  if (!std::isfinite(p.scale * log2_e)) {
    std::ostringstream line;
    line << "scale is " << p.scale << ": it must lie between -2.35e+38 and 2.35e+38, for scale * log2(e) to be finite";
    return line.str();
  }
  for (const int side : {p.window_left, p.window_right})
    if (constexpr int most = 1 << 30; side < -1 || side > most)
      return "window is " + std::to_string(p.window_left) + "," + std::to_string(p.window_right) +
             ": each side must be -1 (all keys) or a number of keys from 0 to " + std::to_string(most);
  if (p.softcap != 0 && !(p.softcap >= 0.1f && p.softcap <= 1000)) {  // tanh has too few bits for others
    std::ostringstream line;
    line << "softcap is " << p.softcap << ": it must be 0 (none) or a number from 0.1 to 1000";
    return line.str();
  }
  if (p.packed && p.blocks != BlockPattern::none)
    return "packed sequences and a block mask are both given: a problem has one of them";
  if (p.softcap > 0 && p.alibi) return "softcap and alibi are both given: a problem has one score function";
  return "";
}

unsigned extras(const Problem& p) {
  const bool has_window = p.window_left >= 0 || p.window_right >= 0;
  return p.views * views | has_window * window | (p.softcap != 0) * softcap | p.alibi * alibi | p.sink * sink |
         (p.v_dim() != p.head_dim) * own_v | p.packed * packed | (p.blocks != BlockPattern::none) * blocks;
}

std::string extras_unsupported(const Problem& p, unsigned taken) {
  const struct {
    Extras bit;
    std::string takes;
  } all[] = {{views, p.unaligned ? "only rows that begin at multiples of 16 bytes" : "only contiguous tensors"},
             {window, "no window"},
             {softcap, "no softcap"},
             {alibi, "no alibi"},
             {sink, "no sink"},
             {own_v, "no V with a head-dim of its own (" + std::to_string(p.v_dim()) + " beside " +
                         std::to_string(p.head_dim) + ")"},
             {packed, "no packed sequences"},
             {blocks, "no blocks"}};
  std::string line;
  for (const auto& extra : all)
    if (extras(p) & ~taken & extra.bit) line += (line.empty() ? "it takes " : " and ") + extra.takes;
  return line;
}

std::string unsupported(const Forward& pass, const Problem& p) {
  const std::string why = extras_unsupported(p, pass.takes);
  return why.empty() ? pass.unsupported(p) : why;
}
std::string unsupported(const Backward& pass, const Problem& p) {
  const std::string why = extras_unsupported(p, pass.takes);
  return why.empty() ? pass.unsupported(p) : why;
}

std::string head_dim_unsupported(const Problem& p, int step, int largest) {
  if (p.head_dim % step == 0 && p.head_dim >= step && p.head_dim <= largest) return "";
  return "head-dim is " + std::to_string(p.head_dim) + ": supported are the multiples of " + std::to_string(step) +
         " up to " + std::to_string(largest);
}

std::string head_dim_not_8_to_256(const Problem& p) { return head_dim_unsupported(p, 8, 256); }
std::string head_dim_not_8_to_128(const Problem& p) { return head_dim_unsupported(p, 8, 128); }

std::string not_hopper(int major, int minor, int block_bytes) {
  constexpr int needed = 227 * 1024;  // that a thread block can have (CUDA C++ Programming Guide, 9.0)
  if (major != 9 || minor != 0)
    return "this GPU has compute capability " + std::to_string(major) + "." + std::to_string(minor) +
           ": supported is 9.0 (H100, H200), whose instructions the kernel is made of";
  if (block_bytes < needed)
    return "a thread block can have " + std::to_string(block_bytes) + " bytes of shared memory: supported are " +
           std::to_string(needed) + ", as on compute capability 9.0";
  return "";
}

namespace {

std::string device_not_hopper() {
  int device = 0, major = 0, minor = 0, block_bytes = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return "";
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  cudaDeviceGetAttribute(&block_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  return not_hopper(major, minor, block_bytes);
}

}  // namespace

std::string not_for_hopper(const Problem& p) {
  const std::string why = device_not_hopper();
  return why.empty() ? head_dim_not_8_to_128(p) : why;
}

std::string not_for_hopper_to_256(const Problem& p) {
  const std::string why = device_not_hopper();
  return why.empty() ? head_dim_not_8_to_256(p) : why;
}

}  // namespace attention
