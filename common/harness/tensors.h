// One problem's tensors: made on the host, held on the device, read back.
#pragma once

#include <cstdint>
#include <istream>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "attention/block_mask.h"
#include "attention/chapter.h"
#include "harness/device_buffer.h"

namespace harness {

// What the numbers are like. Each kind catches bugs that the others let pass.
enum class InputKind {
  spread,       // normal; logits with a standard deviation of 2 at the default scale: the softmax really selects
  growing,      // logits grow along the keys, so that every tile of a streaming softmax raises the maximum
  spike_first,  // one key far above the others: the first one,
  spike_last,   // the last one (the one in the ragged tail),
  spike_tiles,  // or one at each multiple of 32 and just before it, alternating over the query rows
  large,        // |logit| around 100: exp overflows unless the maximum is subtracted
  loud,         // Q five times and K and V three times the usual: few keys decide, and dP reaches hundreds
  overflow,     // bf16: the first half of the keys has scores of -inf in fp32, the others about -120
  long_sum,     // all scores are 0, and V is seven numbers from 1 to 1.75: nothing is rounded but a sum that only grows
  apart,        // bf16: V is tiny in the first 128 keys, huge in the next, and 0 behind them
  sink,  // key 0 is 2^18 times as heavy as each other key, which are alike and, thousands of them, count together
};
const char* name(InputKind kind);
constexpr InputKind all_input_kinds[] = {InputKind::spread,     InputKind::growing,     InputKind::spike_first,
                                         InputKind::spike_last, InputKind::spike_tiles, InputKind::large,
                                         InputKind::loud,       InputKind::overflow,    InputKind::long_sum,
                                         InputKind::apart,      InputKind::sink};

// The problem with packed sequences in the place of its batches: `batch` of them, up to seq_q queries and seq_k keys
// long. One is the longest, some have a single query, no query or no key, and of the others every power of two has as
// many. A few rows behind the last belong to none.
attention::Problem packed(attention::Problem problem);

// What packed sequences are each alone; any other problem is its own only one.
std::vector<attention::Problem> sequences(const attention::Problem& problem);

// Of them all, as attention::flops().
double flops_of_all(const attention::Problem& problem, bool backward);

// Values that the storage type holds exactly, widened to float. Layouts as in attention/problem.h; of packed sequences
// those of each one's own problem, one behind the other. The host has no rows that belong to none.
struct HostTensors {
  std::vector<float> q;      // [B, H, Nq, D]
  std::vector<float> k;      // [B, Hkv, Nk, D]
  std::vector<float> v;      // [B, Hkv, Nk, D]
  std::vector<float> d_o;    // [B, H, Nq, D]
  std::vector<float> alibi;  // [B, H], if the problem has ALiBi: slopes from 1/2 down, as its paper has them
  std::vector<float> sink;   // [H], if it has sinks
};

// Where the rows of a tensor [B, H, N, D] lie: one behind the other or, for problems with views, by positions first, as
// a model's projections leave them, with gaps between rows and batches. Packed sequences lie by positions anyhow. D is
// the problem's head_dim or v_dim().
attention::Strides strides(const attention::Problem& problem, int heads, int rows, int D);

// What a problem in eight bits makes of its inputs: of Q, K and V each element's e4m3 times its scale. Rotated rows of
// Q and K are longer than V's if the kernel's are: the problem of these is the second function.
HostTensors in_eight_bits(const attention::Problem& problem, const HostTensors& inputs);
attention::Problem in_eight_bits(const attention::Problem& problem);

// The same numbers for the same seed on every machine.
HostTensors make_inputs(const attention::Problem& problem, InputKind kind, uint64_t seed);

// The numbers, and how many they are, as bytes of this machine. read_values() throws std::runtime_error if there are
// fewer.
template <class T>
void write_values(std::ostream& to, const std::vector<T>& values) {
  const uint64_t count = values.size();
  to.write(reinterpret_cast<const char*>(&count), sizeof count);
  to.write(reinterpret_cast<const char*>(values.data()), std::streamsize(count * sizeof(T)));
}
template <class T>
void read_values(std::istream& from, std::vector<T>& values) {
  uint64_t count = 0;
  from.read(reinterpret_cast<char*>(&count), sizeof count);
  if (from) values.resize(count);
  if (!from.read(reinterpret_cast<char*>(values.data()), std::streamsize(count * sizeof(T))))
    throw std::runtime_error("the file ends too early");
}

// fp16 or bf16 bits and back.
std::vector<uint16_t> to_storage(const std::vector<float>& values, attention::DType dtype);
std::vector<float> from_storage(const std::vector<uint16_t>& bits, attention::DType dtype);

// Device memory that starts as NaN (0xff bytes) and has `guard` more NaN bytes on both sides: numbers written there are
// noticed, and numbers read from there spoil the result. With guard = 0 the memory itself is the edge, which is where
// the SIMT engine and compute-sanitizer look.
constexpr size_t guards[] = {0, 256};  // a result is right if it is with each of these

class GuardedBuffer {
 public:
  // nothing: as allocated, so that initcheck sees what is read before it is written
  enum class Fill { poison, nothing };
  GuardedBuffer(size_t bytes, size_t guard, Fill fill = Fill::poison);
  // A tensor as strides() has it, of 16-bit numbers, or LSE. What lies between its rows, and behind packed sequences,
  // is guards, too.
  enum class Of { queries, keys, lse };
  GuardedBuffer(const attention::Problem& problem, Of rows, int D, size_t guard, bool exists = true);

  void* data() const { return bytes_ == 0 ? nullptr : static_cast<char*>(buffer_.data()) + guard_; }
  size_t bytes() const { return bytes_; }  // of what is uploaded and downloaded: without gaps
  void upload(const void* from);
  void download(void* to) const;
  bool guards_intact() const;  // nobody has written outside

 private:
  size_t bytes_;
  size_t guard_;
  size_t row_bytes_;               // of one contiguous piece
  std::vector<size_t> row_begin_;  // where each begins, from data() on; empty: there is one piece
  size_t extent_;                  // bytes from the first to the last, gaps included
  DeviceBuffer buffer_;
};

// Everything one forward or backward of a rung works on.
struct DeviceTensors {
  DeviceTensors(const attention::Problem& problem, const HostTensors& inputs, size_t workspace_bytes, bool backward,
                size_t guard = 0);

  attention::ForwardArgs forward_args() const;
  attention::BackwardArgs backward_args() const;

  attention::RopeTables rope_tables() const;

  // Fills the tables of RoPE with the angles of positions first, first + 1, ...
  void upload_rope(const attention::Problem& problem, int first = 0);

  // One line naming the tensor whose surroundings were written to; empty if none.
  std::string broken_guard() const;

  GuardedBuffer q, k, v, o, lse, workspace;
  GuardedBuffer rope_cos, rope_sin;          // empty unless the problem has RoPE
  GuardedBuffer d_o, dq, dk, dv;             // empty unless backward
  GuardedBuffer alibi, sink;                 // empty unless the problem has them
  GuardedBuffer d_sink;                      // likewise, and unless backward
  GuardedBuffer cu_seqlens_q, cu_seqlens_k;  // empty unless the problem is packed
  attention::BlockLists blocks;              // empty unless it has a block mask, as the three that follow
  GuardedBuffer block_begin, block_tiles, block_bits;

 private:
  attention::BlockMask block_mask() const;

  attention::Strides of_q_, of_k_, of_v_, of_o_;
};

// Bytes of device memory that DeviceTensors takes, guards aside.
size_t device_bytes(const attention::Problem& problem, size_t workspace_bytes, bool backward);

}  // namespace harness
