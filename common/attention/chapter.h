// What a chapter tells the rest of the workbook about itself.
//
// Every chapter directory ends in one `const attention::Chapter chapter`, inside a namespace named after the
// directory (05_online_softmax: namespace online_softmax). The programs, tests, benchmarks and tools work from
// that alone: adding a chapter is adding a directory.
#pragma once

#include <string>
#include <vector>

#include "attention/problem.h"
#include "device/launch.h"

namespace attention {

// All pointers are device pointers, 16-byte aligned, with the shapes at the top of attention/problem.h.

// The angles of RoPE, for problems that have it: row p belongs to position p, or -p with the sine's sign turned, of
// every batch and head.
struct RopeTables {
  const float* cos = nullptr;  // [rope_rows(), D/2]
  const float* sin = nullptr;  // [rope_rows(), D/2]
};

struct ForwardArgs {
  const void* q;    // [B, H, Nq, D]
  const void* k;    // [B, Hkv, Nk, D]
  const void* v;    // [B, Hkv, Nk, D]
  void* o;          // [B, H, Nq, D]
  float* lse;       // [B, H, Nq], written by forwards with writes_lse, untouched by the others
  void* workspace;  // workspace_bytes(problem) bytes, contents undefined before and after
  RopeTables rope;
};

struct BackwardArgs {
  const void* q;     // [B, H, Nq, D]
  const void* k;     // [B, Hkv, Nk, D]
  const void* v;     // [B, Hkv, Nk, D]
  const void* o;     // [B, H, Nq, D]      from the forward
  const float* lse;  // [B, H, Nq]         from the forward
  const void* d_o;   // [B, H, Nq, D]
  void* dq;          // [B, H, Nq, D]
  void* dk;          // [B, Hkv, Nk, D]
  void* dv;          // [B, Hkv, Nk, D]
  void* workspace;   // workspace_bytes(problem) bytes, contents undefined before and after
  RopeTables rope;
};

// One direction of one rung. `run` only enqueues kernels on the stream: it allocates nothing, does not
// synchronise, can be captured in a CUDA graph, and throws CudaError if a launch is refused. It may be called
// only for problems that attention::invalid and `unsupported` have nothing against.
template <class Args>
struct Pass {
  // Why this pass cannot take the problem on the current device: one line that names the value and lists what
  // is supported; empty if it can.
  std::string (*unsupported)(const Problem&) = nullptr;
  size_t (*workspace_bytes)(const Problem&) = nullptr;
  void (*run)(const Problem&, const Args&, cudaStream_t) = nullptr;
  bool writes_lse = false;    // forward only
  bool deterministic = true;  // the same bits from the same inputs, whatever the order of threads

  explicit operator bool() const { return run != nullptr; }
};

using Forward = Pass<ForwardArgs>;
using Backward = Pass<BackwardArgs>;

// A chapter in one step has one rung; a chapter in several small steps has one for each, slowest idea first. A literal
// type: a rung defined in a file of its own is there before the chapter that lists it is made.
struct Rung {
  const char* name;  // what --rung takes
  const char* idea;  // what it adds, in one sentence
  Forward forward = {};
  Backward backward = {};
};

struct Chapter {
  std::string name;         // the directory: "05_online_softmax"
  std::string idea;         // the one idea, in a sentence
  std::vector<Rung> rungs;  // at least one; the last is the chapter's result
  // Another chapter's rung, whose forward made the O and LSE that the backwards start from; else they are the
  // reference's.
  const Rung* starts_from = nullptr;
  bool rope = false;  // it solves problems with RoPE, and no others; all other chapters solve those without
};

}  // namespace attention
