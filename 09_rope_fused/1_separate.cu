// Chapter 09, rung 1, separate: a kernel rotates Q and K, then chapter 08's kernel does what it always does.
//
// rotate:  a thread takes 8 pairs of a row of Q or K, elements i ... i + 7 and their partners D/2 further on, and
//          writes them, rotated, to the workspace.
// then:    chapter 08's last forward, 3_balanced.cu there, linked, on the workspace's Q and K.
//
// What changed since chapter 08: nothing but the kernel before attention.
//
// Expected limit: that kernel's memory traffic, as Q and K cross memory two more times than in chapter 08. For short
// sequences, whose attention takes no longer than a launch, it is the second launch.
#include "attention/dispatch.h"
#include "attention/padded.h"
#include "device/numeric.h"
#include "device/rope_angles.h"
#include "device/watch.h"

namespace causal_earlystop {
extern const attention::Rung balanced;  // chapter 08's last forward
}

namespace rope_fused {
namespace {

using attention::ForwardArgs;
using attention::Problem;
using attention::RopeTables;
using namespace rope_angles;

constexpr int rotate_threads = 256;

template <class T, int D>
__global__ void rotate(Problem p, RopeTables rope,
                       const T* q,    // [B, H, Nq, D]
                       const T* k,    // [B, Hkv, Nk, D]
                       T* q_rotated,  // [B, H, Nq, D]
                       T* k_rotated)  // [B, Hkv, Nk, D]
{
  constexpr int threads_per_row = D / 16;
  const size_t index = blockIdx.x * size_t(rotate_threads) + threadIdx.x;
  const size_t q_rows = size_t(p.batch) * p.heads * p.seq_q, k_rows = size_t(p.batch) * p.kv_heads * p.seq_k;
  size_t row = index / threads_per_row;
  const int i = index % threads_per_row * 8;
  if (row >= q_rows + k_rows) return;
  const bool is_q = row < q_rows;
  if (!is_q) row -= q_rows;
  const int position = is_q ? p.query_position(row % p.seq_q) : row % p.seq_k;
  watch_step("a piece of Q or K, turned");
  // exercise rotation: turn eight pairs of the row by the angles of its position, from Q or K to the workspace
  const T* const from = (is_q ? q : k) + row * D + i;
  T* const to = (is_q ? q_rotated : k_rotated) + (row * (D / 8) + i / 8) * 8;  // a multiple of 16 bytes, as nvcc sees
  Pack8<T> x1 = load_pack8(from), x2 = load_pack8(from + D / 2);
  turn(x1, x2, angles_of<D>(rope, position, i));
  store_pack8(to, x1);
  store_pack8(to + D / 2, x2);
  // end rotation |
}

void run(const Problem& p, const ForwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    const auto [q, k, v, o] = attention::tensors_of<T>(args);
    T* const q_rotated = static_cast<T*>(args.workspace);
    T* const k_rotated = q_rotated + p.q_size();
    const size_t rotations = (p.q_size() + p.kv_size()) / 16;  // of eight pairs
    launch(rotate<T, D>, {unsigned(ceil_div(rotations, rotate_threads)), rotate_threads, 0, stream}, p, args.rope, q, k,
           q_rotated, k_rotated);

    ForwardArgs rotated = args;
    rotated.q = q_rotated;
    rotated.k = k_rotated;
    rotated.workspace = k_rotated + p.kv_size();
    causal_earlystop::balanced.forward.run(p, rotated, stream);
  });
}

size_t workspace_bytes(const Problem& p) {
  return (p.q_size() + p.kv_size()) * 2 + causal_earlystop::balanced.forward.workspace_bytes(p);  // Q and K, rotated
}

constexpr attention::Forward unpadded = {attention::head_dim_not_8_to_128, workspace_bytes, run, true};

}  // namespace

extern const attention::Rung separate;
constinit const attention::Rung separate = {.name = "separate",
                                            .idea = "a kernel rotates Q and K, then chapter 08's kernel reads them",
                                            .forward = attention::padded<unpadded>};

}  // namespace rope_fused
