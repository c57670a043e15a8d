// Chapter 09, rung 1, separate, backward: chapter 08's backward between two kernels that rotate.
//
// rotate:  a thread takes 8 pairs of a row of one of two tensors, elements i ... i + 7 and their partners D/2 further
//          on. First Q and K, to the workspace. Last dQ and dK, in place: they are the gradients of the rotated Q and
//          K. S depends on Q and K through their rotations, so the gradients are turned by the transpose of the
//          rotation, which is the rotation by the opposite angle.
//
// What changed since chapter 08: nothing but the kernels before and after its own.
//
// Expected limit: as in the forward, memory traffic and launches. Four tensors cross memory two more times than in
// chapter 08; and dQ and dK are rounded twice.
#include "attention/dispatch.h"
#include "attention/padded.h"
#include "device/numeric.h"
#include "device/rope_angles.h"
#include "device/watch.h"

namespace causal_earlystop {
extern const attention::Backward ordered_backward;  // chapter 08's, deterministic
}

namespace rope_fused {
namespace {

using attention::BackwardArgs;
using attention::Problem;
using attention::RopeTables;
using namespace rope_angles;

constexpr int rotate_threads = 256;

// `from` and `to` may be the same.
template <class T, int D>
__global__ void rotate(Problem p, RopeTables rope,
                       int way,           // 1: forward, -1: back
                       const T* from_q,   // [B, H, Nq, D]
                       const T* from_k,   // [B, Hkv, Nk, D]
                       T* to_q, T* to_k)  // likewise
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
  watch_step("a piece of Q or K, or of dQ or dK, turned");
  const T* const from = (is_q ? from_q : from_k) + row * D + i;
  T* const to = (is_q ? to_q : to_k) + (row * (D / 8) + i / 8) * 8;  // a multiple of 16 bytes, as nvcc sees
  Pack8<T> x1 = load_pack8(from), x2 = load_pack8(from + D / 2);
  turn(x1, x2, angles_of<D>(rope, way * position, i));  // by -p is back from p
  store_pack8(to, x1);
  store_pack8(to + D / 2, x2);
}

void run(const Problem& p, const BackwardArgs& args, cudaStream_t stream) {
  attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
    const auto [q, k, v, o, d_o, dq, dk, dv] = attention::tensors_of<T>(args);
    T* const q_rotated = static_cast<T*>(args.workspace);
    T* const k_rotated = q_rotated + p.q_size();
    const size_t rotations = (p.q_size() + p.kv_size()) / 16;  // of eight pairs
    const unsigned blocks = unsigned(ceil_div(rotations, rotate_threads));

    launch(rotate<T, D>, {blocks, rotate_threads, 0, stream}, p, args.rope, 1, q, k, q_rotated, k_rotated);
    BackwardArgs rotated = args;
    rotated.q = q_rotated;
    rotated.k = k_rotated;
    rotated.workspace = k_rotated + p.kv_size();
    causal_earlystop::ordered_backward.run(p, rotated, stream);
    // exercise inverse: the gradients are those of the rotated Q and K; turn them into those of Q and K
    launch(rotate<T, D>, {blocks, rotate_threads, 0, stream}, p, args.rope, -1, dq, dk, dq, dk);
    // end inverse |
  });
}

size_t workspace_bytes(const Problem& p) {
  return (p.q_size() + p.kv_size()) * 2 + causal_earlystop::ordered_backward.workspace_bytes(p);  // Q and K, rotated
}

constexpr attention::Backward unpadded = {attention::head_dim_not_8_to_128, workspace_bytes, run};

}  // namespace

extern const attention::Backward separate_backward;
constinit const attention::Backward separate_backward = attention::padded<unpadded>;

}  // namespace rope_fused
