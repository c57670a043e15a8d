// Head dims in between. A kernel on tensor cores is made for a few head dims: 64 and 128, some for 256. Zeros fill up
// the rows of other head dims: columns of zeros in Q and K add nothing to Q K^T, in V they become columns of O that
// nobody asked for, and the gradients are padded likewise. The scale stays that of the problem.
//
// One kernel copies all inputs of a launch to the workspace and pads them, the pass runs on these, and the same kernel
// copies its results back without the padding. That reads d numbers of each row, the problem's head dim, and writes D,
// the kernel's, or the other way round: of Q, K, V and O, backward of all eight. Nothing is copied if d = D.
//
// Rows that begin at no multiple of 16 bytes are copied in the same way, element by element, whatever d is: no kernel
// takes them (Problem::unaligned).
//
// With RoPE the pairs of a row of Q or K are elements i and i + d/2, so each half of it is padded; and so are the rows
// of the tables.
#pragma once

#include "attention/rung.h"

namespace attention {

// The head dim of the kernel that solves a problem with this one.
using KernelHeadDim = int (*)(int head_dim);
constexpr int next_64_128_256(int head_dim) { return head_dim <= 64 ? 64 : head_dim <= 128 ? 128 : 256; }
constexpr int next_64_128_192_256(int head_dim) {
  return head_dim > 128 && head_dim <= 192 ? 192 : next_64_128_256(head_dim);
}

// For kernels that copy all they read and write by tensor maps, which know how many columns there are: a tile has a
// page for every 64 columns or fewer, all pages are equally wide, and 8 columns are 16 bytes, the unit of a map.
constexpr int next_in_pages(int head_dim) {
  const int step = head_dim <= 64 ? 8 : head_dim <= 128 ? 16 : head_dim <= 192 ? 24 : 32;
  return (head_dim + step - 1) / step * step;
}

size_t padded_workspace(const Pass<ForwardArgs>& pass, const Problem& problem, int head_dim);
size_t padded_workspace(const Pass<BackwardArgs>& pass, const Problem& problem, int head_dim);
void run_padded(const Pass<ForwardArgs>& pass, const Problem& problem, const ForwardArgs& args, int head_dim,
                cudaStream_t stream);
void run_padded(const Pass<BackwardArgs>& pass, const Problem& problem, const BackwardArgs& args, int head_dim,
                cudaStream_t stream);

// Turns a pass with kernels for a few head dims into one for all head dims that its `unsupported` accepts:
//
//   constexpr attention::Forward unpadded = {attention::head_dim_not_8_to_128, workspace_bytes, run, true};
//   ..
//   .forward = attention::padded<unpadded>
//
// If `unsupported` accepts head dims above 128, `wide` is the pass for those.
template <const auto& unpadded, KernelHeadDim kernel_head_dim = next_64_128_256, const auto& wide = unpadded>
constexpr auto padded = [] {
  auto pass = unpadded;
  pass.workspace_bytes = [](const Problem& p) {
    return padded_workspace(p.head_dim > 128 ? wide : unpadded, p, kernel_head_dim(p.head_dim));
  };
  pass.run = [](const Problem& p, const auto& args, cudaStream_t stream) {
    run_padded(p.head_dim > 128 ? wide : unpadded, p, args, kernel_head_dim(p.head_dim), stream);
  };
  return pass;
}();

}  // namespace attention
