// What the file of a rung ends in: a forward, a backward or both. Each is a function that launches kernels, with what
// its callers have to know. Every kernel's file includes this header: nothing in it takes a compiler long.
#pragma once

#include <cstdint>
#include <iosfwd>  // declares std::string

#include "attention/problem.h"
#include "device/launch.h"

namespace attention {

// All pointers are device pointers, 16-byte aligned, with the shapes at the top of attention/problem.h; D is
// Problem::v_dim() for V, O, dO and dV.

// The angles of RoPE, for problems that have it: row p belongs to position p of every batch and head, and, with
// the sine's sign changed, to position -p.
struct RopeTables {
  const float* cos = nullptr;  // [rope_rows(), D/2]
  const float* sin = nullptr;  // [rope_rows(), D/2]
};

// Elements from one part of a tensor [B, H, N, D] to the next, for problems with views. Rows are contiguous, each
// starts at a multiple of 16 bytes (but of a problem that is `unaligned`), and no two elements of a result share a
// place.
struct Strides {
  int64_t batch, head, row;
};
inline Strides contiguous(int heads, int rows, int head_dim) {
  return {int64_t(heads) * rows * head_dim, int64_t(rows) * head_dim, head_dim};
}
// As the problem has it where nobody says more. Packed tensors have no batches: [total, H, D].
inline Strides contiguous(const Problem& p, int heads, int rows, int head_dim) {
  return p.packed ? Strides{0, head_dim, int64_t(heads) * head_dim} : contiguous(heads, rows, head_dim);
}

// A block mask, for problems that have one: what queries see of keys, in tiles of 128 queries and 128 keys. Of a row of
// tiles those are listed in which some pair is seen, the first keys first, and of each column likewise, the first
// queries first. Where all pairs of a tile are seen, nobody has to look at more. Else the tile is cut, and has a bit
// for each pair. All of it is in device memory. Lists that are none make NaN of all results.
struct BlockMask {
  static constexpr int tile = 128;
  static constexpr int words = tile / 32;  // of bits, for each query or key of a cut tile

  int batch = 1, heads = 1;  // of masks: 1, if all batches or heads have the same one
  int listed = 0, cuts = 0;  // tiles of all masks; cut ones that have bits of their own
  // [batch, heads, rows + 1 + columns + 1]: where the list of each row begins among all of them, and where the mask's
  // last one ends; then the same of each column
  const int* begin = nullptr;
  // [2][listed][2]: of a tile in the lists of rows, which one of its row it is, and if it is cut, whose bits it has,
  // else -1; then the same of columns
  const int* tiles = nullptr;
  // [2][cuts][128][4]: of each query of a cut tile, bit j % 32 of word j / 32 says whether it sees key j; then the same
  // of each key. 16-byte aligned
  const uint32_t* bits = nullptr;
};

// What the elements of Q, K and V are to be multiplied by, if these are e4m3: one number each or, of tiles, one for
// each fp8_tile rows of a head. Any numbers above 0; what is not makes NaN of the results.
struct ScalesOfE4m3 {
  const float *q = nullptr, *k = nullptr, *v = nullptr;  // [1]; or [B, H, tiles of Nq], [B, Hkv, tiles of Nk] twice
  bool of_tiles = false;
};

struct ForwardArgs {
  const void* q;    // [B, H, Nq, D]
  const void* k;    // [B, Hkv, Nk, D]
  const void* v;    // [B, Hkv, Nk, D]
  void* o;          // [B, H, Nq, D]
  float* lse;       // [B, H, Nq], written by forwards with writes_lse, untouched by the others
  void* workspace;  // workspace_bytes(problem) bytes, contents undefined before and after
  RopeTables rope;
  // For problems that have them:
  Strides q_strides = {}, k_strides = {}, v_strides = {}, o_strides = {};
  const float* alibi = nullptr;       // [B, H], slopes
  const float* sink = nullptr;        // [H], natural logarithms
  const int* cu_seqlens_q = nullptr;  // [B + 1], where packed sequences begin, and the last one ends:
  const int* cu_seqlens_k = nullptr;  // 0 first, none below the one before it, the last at most total_q or total_k
  BlockMask blocks = {};
  bool zero_rest = false;  // rows of results behind the last sequence become zeros; else nobody writes them
  ScalesOfE4m3 scales = {};
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
  // For problems that have them:
  Strides q_strides = {}, k_strides = {}, v_strides = {}, o_strides = {};
  Strides d_o_strides = {}, dq_strides = {}, dk_strides = {}, dv_strides = {};
  const float* alibi = nullptr;       // [B, H]
  const float* sink = nullptr;        // [H]
  float* d_sink = nullptr;            // [H]
  const int* cu_seqlens_q = nullptr;  // [B + 1]
  const int* cu_seqlens_k = nullptr;  // [B + 1]
  BlockMask blocks = {};
  bool zero_rest = false;  // as above
};

// One direction of one rung. `run` only enqueues kernels on the stream: it allocates nothing, does not
// synchronise, can be captured in a CUDA graph, and throws CudaError if a launch is refused. It may be called
// only for problems that attention::invalid and `unsupported` accept.
template <class Args>
struct Pass {
  // Why this pass cannot take the problem on the current device: one line that names the value and lists what
  // is supported; empty if it can.
  std::string (*unsupported)(const Problem&) = nullptr;
  size_t (*workspace_bytes)(const Problem&) = nullptr;
  void (*run)(const Problem&, const Args&, cudaStream_t) = nullptr;
  bool writes_lse = false;              // forward only
  bool deterministic = true;            // the same bits from the same inputs, whatever the order of threads
  unsigned takes = no_extras;           // of attention::Extras
  EightBits eight_bits = sixteen_bits;  // forward only
  bool cuts_sums = false;               // in eight bits: O stays with tensor cores, which cut a long sum off
  // Of a pass without kernels of its own: the pass whose kernels it takes for a problem that it supports.
  const Pass& (*chooses)(const Problem&) = nullptr;

  explicit operator bool() const { return run != nullptr; }
};

using Forward = Pass<ForwardArgs>;
using Backward = Pass<BackwardArgs>;

// Why the pass cannot take the problem: extras that it does not know, or else Pass::unsupported. Empty if it can.
std::string unsupported(const Forward& pass, const Problem& problem);
std::string unsupported(const Backward& pass, const Problem& problem);

// Pass::workspace_bytes of a pass without a workspace.
inline size_t no_workspace(const Problem&) { return 0; }

// A chapter in one step has one rung; a chapter in several small steps has one for each, slowest idea first. A literal
// type, so a rung that another file defines is initialized before the chapter that lists it.
struct Rung {
  const char* name;  // what --rung takes
  const char* idea;  // what it adds, in one sentence
  Forward forward = {};
  Backward backward = {};
  Forward from_e4m3 = {};  // of Q, K and V that are e4m3 already, with ForwardArgs::scales; O has Problem::dtype
};

}  // namespace attention
