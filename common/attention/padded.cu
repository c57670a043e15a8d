// The copies of attention/padded.h.
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "attention/padded.h"
#include "device/watch.h"

namespace attention {
namespace {

constexpr int threads = 256;
constexpr int block_rows = 64;  // rows of a tensor that a thread block copies

// Where the rows of a tensor lie: one behind the other or, in a problem with views, as its strides say.
struct Rows {
  int heads = 0, rows = 0;  // of a batch, of a head; 0: one behind the other
  Strides strides = {};     // elements

  // Elements of T from the first row to row i, counted over all heads; `width` of them are a row.
  template <class T>
  __device__ int64_t at(int64_t i, int width) const {
    if (rows == 0) return i * width;
    const int64_t head = i / rows;
    return (head / heads * strides.batch + head % heads * strides.head + i % rows * strides.row) /
           int64_t(sizeof(T) / sizeof(uint16_t));
  }
};

// A tensor that is copied. The problem's tensors have narrow rows, those that the kernel works on have wide rows, one
// behind the other.
struct Copy {
  const void* from;
  void* to;
  int from_width, to_width;  // of rows, in units of 16 bits
  int64_t rows;
  int parts;  // of a row, 1 or 2, each of which is padded
  Rows from_rows, to_rows;
  const int* end;  // of packed sequences, the position where the last one ends: what is behind it is left alone
  int heads;       // rows of a position
};

struct Copies {
  static constexpr int most = 7;  // Q, K, V, O, dO and two tables
  Copy list[most];
  int count = 0;

  void add(const Copy& copy) { list[count++] = copy; }
};

// Copies rows piece by piece; blockIdx.y is the tensor. A wider row is filled up with zeros, and what does not fit into
// a narrower one is dropped.
template <class Piece>
__global__ void __launch_bounds__(threads) copy_rows(Copies copies) {
  const Copy copy = copies.list[blockIdx.y];
  constexpr int units = sizeof(Piece) / sizeof(uint16_t);
  const int from_width = copy.from_width / units, to_width = copy.to_width / units;
  const int64_t first_row = int64_t(blockIdx.x) * block_rows;
  int64_t all_rows = copy.rows;
  if (copy.end) all_rows = min(all_rows, int64_t(*copy.end) * copy.heads);
  const int rows = int(min(int64_t(block_rows), all_rows - first_row));  // 0 or fewer: it is a shorter tensor
  const Piece* from = static_cast<const Piece*>(copy.from);
  Piece* to = static_cast<Piece*>(copy.to);
  watch_step("rows of D numbers, wider or narrower");
  const int from_part = from_width / copy.parts, to_part = to_width / copy.parts;
  if (copy.from_rows.rows == 0 && copy.to_rows.rows == 0) {
    from += first_row * from_width, to += first_row * to_width;
#pragma unroll 4
    for (int i = threadIdx.x; i < rows * to_width; i += threads) {
      const int part = i / to_part, at = i % to_part;  // parts are counted over all rows
      to[i] = at < from_part ? from[part * from_part + at] : Piece{};
    }
    return;
  }
  for (int i = threadIdx.x; i < rows * to_width; i += threads) {
    const int64_t row = first_row + i / to_width;
    const int column = i % to_width, part = column / to_part, at = column % to_part;
    Piece* const place = to + (copy.to_rows.at<Piece>(row, to_width) + column);
    *place = at < from_part ? from[copy.from_rows.at<Piece>(row, from_width) + part * from_part + at] : Piece{};
  }
}

void copy_all(const Copies& copies, const Problem& p, cudaStream_t stream) {
  int64_t most_rows = 0;
  for (int i = 0; i < copies.count; i++) most_rows = std::max(most_rows, copies.list[i].rows);
  const dim3 blocks(unsigned((most_rows + block_rows - 1) / block_rows), unsigned(copies.count));
  const LaunchConfig shape = {blocks, threads, 0, stream};
  if (p.unaligned)
    launch(copy_rows<uint16_t>, shape, copies);
  else if (p.rope)  // a half of a row may be a multiple of 8 bytes, and not of 16
    launch(copy_rows<uint2>, shape, copies);
  else
    launch(copy_rows<uint4>, shape, copies);
}

// Gives out a workspace from its beginning on, or only counts the bytes.
class Workspace {
 public:
  explicit Workspace(void* data) : data_(static_cast<char*>(data)) {}

  void* take(size_t bytes) {
    void* const taken = data_ ? data_ + taken_ : nullptr;
    taken_ += (bytes + 255) / 256 * 256;  // all begin as cudaMalloc's memory does
    return taken;
  }
  size_t taken() const { return taken_; }

 private:
  char* data_;
  size_t taken_ = 0;
};

// The wide problem, and copies to and from its tensors, which lie in the workspace.
template <class Args>
struct Padded {
  Problem problem;
  Args args;
  Copies inputs, results;
  Workspace workspace;

  Padded(const Problem& p, const Args& narrow, int head_dim) : problem(p), args(narrow), workspace(narrow.workspace) {
    if (head_dim != p.head_dim) problem.head_dim_v = 0;  // V becomes as wide
    problem.head_dim = head_dim;
    problem.views = problem.unaligned = false;
    const int rotated_parts = p.rope ? 2 : 1;
    // The rows of a tensor: all of them, those of a batch's head, and where packed ones end
    struct Side {
      int64_t all;
      int heads, rows;
      const int* end;
    };
    const auto end_of = [&](const int* begins) { return p.packed && begins ? begins + p.batch : nullptr; };
    const Side queries = {int64_t(p.lse_size()), p.heads, p.seq_q, end_of(args.cu_seqlens_q)};
    const Side keys = {int64_t(p.kv_rows()), p.kv_heads, p.seq_k, end_of(args.cu_seqlens_k)};
    // The heads of packed sequences lie beside one another: there each position is a batch of one row.
    const auto rows_of = [&](const Side& side, const Strides& strides) -> Rows {
      if (!p.views) return {};
      return p.packed ? Rows{side.heads, 1, {strides.row, strides.head, 0}} : Rows{side.heads, side.rows, strides};
    };
    struct Width {
      int narrow, wide;
    };
    const Width of_q = {p.head_dim, head_dim}, of_v = {p.v_dim(), problem.v_dim()};
    const auto input = [&](const void*& from, const Side& side, Width width, int parts, const Strides& strides) {
      void* const to = workspace.take(side.all * width.wide * sizeof(uint16_t));
      inputs.add(
          {from, to, width.narrow, width.wide, side.all, parts, rows_of(side, strides), {}, side.end, side.heads});
      from = to;
    };
    const auto result = [&](void*& to, const Side& side, Width width, int parts, const Strides& strides) {
      void* const from = workspace.take(side.all * width.wide * sizeof(uint16_t));
      const int* const end = args.zero_rest ? nullptr : side.end;
      results.add({from, to, width.wide, width.narrow, side.all, parts, {}, rows_of(side, strides), end, side.heads});
      to = from;
    };
    input(args.q, queries, of_q, rotated_parts, args.q_strides);
    input(args.k, keys, of_q, rotated_parts, args.k_strides);
    input(args.v, keys, of_v, 1, args.v_strides);
    if (p.rope)  // a row of a table has half as many numbers, twice as large
      for (const float** table : {&args.rope.cos, &args.rope.sin}) {
        const void* wide = *table;
        input(wide, {p.rope_rows(), 1, 1, nullptr}, of_q, 1, {});
        *table = static_cast<const float*>(wide);
      }
    if constexpr (std::is_same_v<Args, ForwardArgs>) {
      result(args.o, queries, of_v, 1, args.o_strides);
    } else {
      input(args.o, queries, of_v, 1, args.o_strides);
      input(args.d_o, queries, of_v, 1, args.d_o_strides);
      result(args.dq, queries, of_q, rotated_parts, args.dq_strides);
      result(args.dk, keys, of_q, rotated_parts, args.dk_strides);
      result(args.dv, keys, of_v, 1, args.dv_strides);
    }
  }
};

template <class Args>
size_t workspace_of(const Pass<Args>& pass, const Problem& p, int head_dim) {
  if (p.head_dim == head_dim && !p.unaligned) return pass.workspace_bytes(p);
  Padded<Args> padded(p, {}, head_dim);
  padded.workspace.take(pass.workspace_bytes(padded.problem));
  return padded.workspace.taken();
}

template <class Args>
void run_any(const Pass<Args>& pass, const Problem& p, const Args& args, int head_dim, cudaStream_t stream) {
  if (p.head_dim == head_dim && !p.unaligned) return pass.run(p, args, stream);
  Padded<Args> padded(p, args, head_dim);
  padded.args.workspace = padded.workspace.take(pass.workspace_bytes(padded.problem));
  copy_all(padded.inputs, p, stream);
  pass.run(padded.problem, padded.args, stream);
  copy_all(padded.results, p, stream);
}

}  // namespace

size_t padded_workspace(const Pass<ForwardArgs>& pass, const Problem& p, int head_dim) {
  return workspace_of(pass, p, head_dim);
}
size_t padded_workspace(const Pass<BackwardArgs>& pass, const Problem& p, int head_dim) {
  return workspace_of(pass, p, head_dim);
}
void run_padded(const Pass<ForwardArgs>& pass, const Problem& p, const ForwardArgs& args, int head_dim,
                cudaStream_t stream) {
  run_any(pass, p, args, head_dim, stream);
}
void run_padded(const Pass<BackwardArgs>& pass, const Problem& p, const BackwardArgs& args, int head_dim,
                cudaStream_t stream) {
  run_any(pass, p, args, head_dim, stream);
}

}  // namespace attention
