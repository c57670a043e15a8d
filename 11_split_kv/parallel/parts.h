// What the keys of other ranks make of a rank's queries, part by part (sharding.h). A part is a problem for the kernels
// of one GPU: its rows are brought together where they are not neighbours, and what the parts have made is put
// together.
#pragma once

#include <array>
#include <deque>
#include <vector>

#include "harness/device_buffer.h"
#include "rows.h"
#include "strategies.h"

namespace split_kv::parallel {

// Of one rank: [batch * kv_heads, rows, D] each.
struct KeysAndValues {
  const void* k;
  const void* v;
  int rows;
};

using Pair = std::array<harness::DeviceBuffer, 2>;  // K and V, or dK and dV
inline Pair pair_of(size_t bytes) { return {harness::DeviceBuffer(bytes), harness::DeviceBuffer(bytes)}; }

// Of the rank's kernels: the larger of forward and backward, if there is one.
size_t workspace_bytes(const Setting& setting, const attention::Problem& problem, bool backward);

class Parts {
 public:
  // Of all steps but the first, which is the rank's own keys. What is done is put on this stream.
  Parts(const Setting& setting, const std::vector<Step>& steps, bool backward, cudaStream_t stream);

  size_t bytes() const;  // of device memory

  // Before the first part.
  void begin(const attention::ForwardArgs& args);
  void begin(const attention::BackwardArgs& args);

  // The parts of a step have different queries. `keys` are all keys of their owner. Backward, the part's dK and dV are
  // there until the next part.
  void compute(const Part& part, const KeysAndValues& keys, const attention::ForwardArgs& args);
  void compute(const Part& part, const KeysAndValues& keys, const attention::BackwardArgs& args);

  // The dK and dV of the part that was computed last are added to sums in fp32, which have `rows` rows. `fresh`: the
  // sums hold nothing yet, and the part has all of their keys.
  void add_gradients(const Part& part, const Pair& sums, int rows, bool fresh);

  // After the last part: merged with O and LSE, or added to dQ.
  void finish(const attention::ForwardArgs& args);
  void finish(const attention::BackwardArgs& args);

 private:
  // Some of the rank's queries, not all, as tensors of their own: so a head's rows lie side by side.
  struct QuerySlice {
    int first, count;
    harness::DeviceBuffer q, lse, o, d_o;  // the last three for a backward only
  };

  int queries() const { return queries_.count(); }
  int q_heads() const { return p_.batch * p_.heads; }
  int kv_heads() const { return p_.batch * p_.kv_heads; }
  int row_bytes() const { return p_.head_dim * 2; }
  size_t q_bytes(int rows) const { return size_t(q_heads()) * rows * row_bytes(); }
  size_t kv_bytes(int rows) const { return size_t(kv_heads()) * rows * row_bytes(); }
  size_t lse_bytes(int rows) const { return size_t(q_heads()) * rows * sizeof(float); }

  const QuerySlice* slice_of(const Part& part) const;
  void copy_slice(const void* from, const QuerySlice& slice, const harness::DeviceBuffer& to, int row_bytes);
  KeysAndValues keys_of(const Part& part, const KeysAndValues& keys);

  void* part_q(const Part& part) const { return static_cast<char*>(part_q_.data()) + q_bytes(part.first_query); }
  float* part_lse(const Part& part) const {
    return static_cast<float*>(part_lse_.data()) + size_t(q_heads()) * part.first_query;
  }

  int begin_of(int run) const;
  bool contains(const Part& part, int run) const;
  template <class Use>
  void for_each_run(const Part& part, Use&& use);
  template <class Use>
  void for_each_result(Use&& use) const;

  const Setting set_;
  const attention::Problem p_;
  const Runs queries_;  // blind, front, back
  const std::vector<Step> steps_;
  const bool two_ranks_;
  const cudaStream_t stream_;
  harness::DeviceBuffer workspace_;
  std::deque<QuerySlice> slices_;
  Pair first_keys_;                          // K and V of a part, if it does not have all of a rank's
  harness::DeviceBuffer part_q_, part_lse_;  // O or dQ, and LSE, of the parts of a step
  Pair part_kv_;                             // dK and dV of one part
  harness::DeviceBuffer sum_, sum_lse_;      // O or dQ, and LSE, of the steps so far; fp32
  std::array<bool, 3> met_;                  // whether the blind queries, the front and the back are in sum_
};

}  // namespace split_kv::parallel
