// Two rungs' forwards by name, for Python; what they do not need is a stub.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>

#include "attention/rung.h"

namespace hopper {
using attention::BackwardArgs;
using attention::Problem;
extern const attention::Rung chosen, clusters;
extern const attention::Forward wide_forward;
constinit const attention::Forward wide_forward = {};
extern const attention::Backward wide_backward;
constinit const attention::Backward wide_backward = {};
extern const attention::Rung prompt;
extern const attention::Backward clusters_backward, columns_backward;
}  // namespace hopper

extern "C" int rung_forward(const char* name, int batch, int heads, int kv_heads, int seq_q, int seq_k, int D, bool causal,
                            bool bf16, const void* q, const void* k, const void* v, void* o, float* lse, void* workspace,
                            void* stream) {
  try {
    attention::Problem p;
    p.batch = batch, p.heads = heads, p.kv_heads = kv_heads, p.seq_q = seq_q, p.seq_k = seq_k, p.head_dim = D;
    p.dtype = bf16 ? attention::DType::bf16 : attention::DType::fp16;
    p.mask = causal ? attention::Mask::causal : attention::Mask::none;
    p.scale = 1 / std::sqrt(float(D));
    const attention::ForwardArgs args = {.q = q, .k = k, .v = v, .o = o, .lse = lse, .workspace = workspace};
    const attention::Rung& rung = !std::strcmp(name, "chosen") ? hopper::chosen
                                  : hopper::clusters;
    rung.forward.run(p, args, static_cast<cudaStream_t>(stream));
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}

extern "C" int rung_backward(const char* name, int batch, int heads, int kv_heads, int seq_q, int seq_k, int D, bool causal,
                             bool bf16, const void* q, const void* k, const void* v, const void* o, const float* lse,
                             const void* d_o, void* dq, void* dk, void* dv, void* workspace, size_t bytes, void* stream) {
  try {
    attention::Problem p;
    p.batch = batch, p.heads = heads, p.kv_heads = kv_heads, p.seq_q = seq_q, p.seq_k = seq_k, p.head_dim = D;
    p.dtype = bf16 ? attention::DType::bf16 : attention::DType::fp16;
    p.mask = causal ? attention::Mask::causal : attention::Mask::none;
    p.scale = 1 / std::sqrt(float(D));
    attention::BackwardArgs args = {};
    args.q = q, args.k = k, args.v = v, args.o = o, args.lse = lse, args.d_o = d_o, args.dq = dq, args.dk = dk, args.dv = dv;
    args.workspace = workspace;
    const attention::Backward& backward = !std::strcmp(name, "columns") ? hopper::columns_backward : std::strcmp(name, "prompt") ? hopper::clusters_backward : hopper::prompt.backward;
    if (backward.workspace_bytes(p) > bytes) return 2;
    backward.run(p, args, static_cast<cudaStream_t>(stream));
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
