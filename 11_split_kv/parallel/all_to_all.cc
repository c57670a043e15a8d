// All-to-all over heads (DeepSpeed's Ulysses). Each rank computes some of the heads: before attention, the others send
// it these heads of their rows. So it has them with all rows, and attention is one GPU's problem; afterwards the rows
// go back. A message carries heads of a rank's rows, which lie side by side in its tensors.
#include <stdexcept>

#include "rows.h"
#include "strategies.h"
#include "streams.h"

namespace split_kv::parallel {
namespace {

using attention::BackwardArgs;
using attention::ForwardArgs;
using attention::Problem;
using harness::DeviceBuffer;

// One tensor, on its way between [B, all heads, the rank's rows] and [B, the rank's heads, all rows].
struct Travelling {
  char* rows;   // [B, H or Hkv, rows of the rank, row_bytes]
  char* heads;  // [B, H or Hkv / P, all rows, row_bytes]
  bool queries;
  int row_bytes;
};

class AllToAll : public Strategy {
 public:
  AllToAll(const Setting& setting, Transport& transport, bool backward)
      : set_(setting), p_(setting.whole), own_(setting.whole), transport_(transport) {
    own_.heads = p_.heads / ranks();
    own_.kv_heads = p_.kv_heads / ranks();
    size_t workspace = set_.forward.workspace_bytes(own_);
    if (backward) workspace = std::max(workspace, set_.backward.workspace_bytes(own_));
    workspace_ = DeviceBuffer(workspace);
    const size_t q = own_.q_size() * 2, kv = own_.kv_size() * 2, lse = own_.lse_size() * sizeof(float);
    for (DeviceBuffer* buffer : {&q_, &o_}) *buffer = DeviceBuffer(q);
    for (DeviceBuffer* buffer : {&k_, &v_}) *buffer = DeviceBuffer(kv);
    lse_ = DeviceBuffer(lse);
    if (backward) {
      for (DeviceBuffer* buffer : {&d_o_, &dq_}) *buffer = DeviceBuffer(q);
      for (DeviceBuffer* buffer : {&dk_, &dv_}) *buffer = DeviceBuffer(kv);
    }
    if (ranks() > 1) staging_ = DeviceBuffer(backward ? 3 * q + 2 * kv + lse : q + 2 * kv + lse);
  }

  cudaStream_t stream() const override { return stream_; }

  size_t bytes() const override {
    size_t all = 0;
    for (const DeviceBuffer* buffer : {&workspace_, &q_, &k_, &v_, &o_, &lse_, &d_o_, &dq_, &dk_, &dv_, &staging_})
      all += buffer->bytes();
    return all;
  }

  void forward(const ForwardArgs& args) override {
    to_heads({query(args.q, q_), key(args.k, k_), key(args.v, v_)});
    compute([&] {
      set_.forward.run(own_, {q_.data(), k_.data(), v_.data(), o_.data(), fp32(lse_), workspace_.data(), {}}, stream_);
    });
    to_rows({query(args.o, o_), of_lse(args.lse)});
  }

  void backward(const BackwardArgs& args) override {
    to_heads({query(args.q, q_), key(args.k, k_), key(args.v, v_), query(args.o, o_), query(args.d_o, d_o_),
              of_lse(args.lse)});
    compute([&] {
      set_.backward.run(own_,
                        {q_.data(),
                         k_.data(),
                         v_.data(),
                         o_.data(),
                         fp32(lse_),
                         d_o_.data(),
                         dq_.data(),
                         dk_.data(),
                         dv_.data(),
                         workspace_.data(),
                         {}},
                        stream_);
    });
    to_rows({query(args.dq, dq_), key(args.dk, dk_), key(args.dv, dv_)});
  }

 private:
  int ranks() const { return int(set_.shards.size()); }
  static float* fp32(const DeviceBuffer& buffer) { return static_cast<float*>(buffer.data()); }
  static char* bytes_of(const void* tensor) { return static_cast<char*>(const_cast<void*>(tensor)); }

  Travelling query(const void* rows, const DeviceBuffer& heads) const {
    return {bytes_of(rows), bytes_of(heads.data()), true, p_.head_dim * 2};
  }
  Travelling key(const void* rows, const DeviceBuffer& heads) const {
    return {bytes_of(rows), bytes_of(heads.data()), false, p_.head_dim * 2};
  }
  Travelling of_lse(const float* rows) const { return {bytes_of(rows), bytes_of(lse_.data()), true, sizeof(float)}; }

  int heads_each(const Travelling& t) const { return t.queries ? own_.heads : own_.kv_heads; }
  int all_rows(const Travelling& t) const { return t.queries ? p_.seq_q : p_.seq_k; }
  int rows_of(const Travelling& t, int rank) const {
    return t.queries ? set_.shards[rank].queries.count() : set_.shards[rank].keys.count();
  }
  const Runs& runs_of(const Travelling& t, int rank) const {
    return t.queries ? set_.shards[rank].queries : set_.shards[rank].keys;
  }

  // Where `rank`'s heads of this rank's rows are, of batch b; and how many bytes a rank's heads have with `rows` rows.
  char* block(const Travelling& t, int b, int rank) const {
    return t.rows + block_bytes(t, rows_of(t, set_.rank)) * (size_t(b) * ranks() + rank);
  }
  size_t block_bytes(const Travelling& t, int rows) const { return size_t(heads_each(t)) * rows * t.row_bytes; }

  // Between a block of one rank's rows and this rank's heads with all rows.
  void copy_block(const Travelling& t, int b, int rank, char* block, bool into_heads) {
    char* const heads = t.heads + block_bytes(t, all_rows(t)) * b;
    int at = 0;
    for (const Rows& run : runs_of(t, rank)) {
      const int rows = rows_of(t, rank), all = all_rows(t);
      if (into_heads)
        copy_rows({block, rows, at, heads, all, run.first, run.count, heads_each(t), t.row_bytes}, stream_);
      else
        copy_rows({heads, all, run.first, block, rows, at, run.count, heads_each(t), t.row_bytes}, stream_);
      at += run.count;
    }
  }

  // Calls use(tensor, b, rank, staging) for every block that this rank's heads have in another rank's rows.
  template <class Use>
  void for_each_block(const std::vector<Travelling>& tensors, Use&& use) {
    char* staging = bytes_of(staging_.data());
    for (const Travelling& t : tensors)
      for (int b = 0; b < p_.batch; b++)
        for (int rank = 0; rank < ranks(); rank++) {
          if (rank == set_.rank) continue;
          use(t, b, rank, staging);
          staging += block_bytes(t, rows_of(t, rank));
        }
  }

  void to_heads(const std::vector<Travelling>& tensors) {
    std::vector<Message> sends, receives;
    for_each_block(tensors, [&](const Travelling& t, int b, int rank, char* staging) {
      sends.push_back({rank, block(t, b, rank), block_bytes(t, rows_of(t, set_.rank))});
      receives.push_back({rank, staging, block_bytes(t, rows_of(t, rank))});
    });
    exchange(sends, receives);
    for_each_block(tensors,
                   [&](const Travelling& t, int b, int rank, char* staging) { copy_block(t, b, rank, staging, true); });
    for (const Travelling& t : tensors)
      for (int b = 0; b < p_.batch; b++) copy_block(t, b, set_.rank, block(t, b, set_.rank), true);
  }

  void to_rows(const std::vector<Travelling>& tensors) {
    std::vector<Message> sends, receives;
    for_each_block(tensors, [&](const Travelling& t, int b, int rank, char* staging) {
      copy_block(t, b, rank, staging, false);
      sends.push_back({rank, staging, block_bytes(t, rows_of(t, rank))});
      receives.push_back({rank, block(t, b, rank), block_bytes(t, rows_of(t, set_.rank))});
    });
    for (const Travelling& t : tensors)
      for (int b = 0; b < p_.batch; b++) copy_block(t, b, set_.rank, block(t, b, set_.rank), false);
    exchange(sends, receives);
  }

  void exchange(const std::vector<Message>& sends, const std::vector<Message>& receives) {
    double bytes = 0;
    for (const Message& message : receives) bytes += double(message.bytes);
    const size_t span = timeline ? timeline->begin("exchange", "all to all", bytes, stream_) : 0;
    transport_.begin(sends, receives, stream_);
    transport_.finish(stream_);
    if (timeline) timeline->end(span, stream_);
  }

  template <class Work>
  void compute(Work&& work) {
    const size_t span = timeline ? timeline->begin("compute", "all rows", 0, stream_) : 0;
    work();
    if (timeline) timeline->end(span, stream_);
  }

  const Setting set_;
  const Problem p_;
  Problem own_;  // some heads, all rows
  Transport& transport_;
  Stream stream_{Stream::Urgency::usual};
  DeviceBuffer workspace_, q_, k_, v_, o_, lse_, d_o_, dq_, dk_, dv_, staging_;
};

}  // namespace

std::string heads_refused(const Problem& whole, int ranks) {
  if (whole.heads % ranks == 0 && whole.kv_heads % ranks == 0) return "";
  return "heads is " + std::to_string(whole.heads) + " and kv-heads is " + std::to_string(whole.kv_heads) +
         ": all-to-all deals heads, so both must be multiples of the number of ranks, " + std::to_string(ranks);
}

std::unique_ptr<Strategy> all_to_all(const Setting& setting, Transport& transport, bool backward) {
  if (const std::string why = heads_refused(setting.whole, int(setting.shards.size())); !why.empty())
    throw std::invalid_argument(why);
  return std::make_unique<AllToAll>(setting, transport, backward);
}

}  // namespace split_kv::parallel
