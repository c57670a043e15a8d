// Ring attention: in each of P - 1 steps a rank computes with the keys and values of another rank, while those of the
// next step come from the rank before it, and its present ones go to the rank after it. What a rank makes of its own
// keys waits for nobody, and nobody waits for it before the end: it is on a stream of the least urgency, and fills what
// the others leave idle.
//
//   own       | own keys .................................. |
//   compute              | of r - 1 | of r - 2 | of r - 3 |  | join |
//   exchange  | of r - 1 | of r - 2 | of r - 3 |
//
// There are two buffers for keys and values: one is computed with, one is received into.
//
// Backward, sums of dK and dV travel too, one step behind: a rank adds its part to the sums that come from the rank
// before. After the last step they go home, where they meet those of the rank's own queries. Everything is added in the
// order of the ring, and the rank's own part last, so that the bits are the same in every run.
//
// Hazards: the exchange of step s writes the buffer that step s - 1 has read, so it waits for that step; step s + 1
// reads what the exchange of step s has brought, so it waits for that exchange; the end waits for the own part.
//
// What a step computes is in parts.h; here is when, and what travels meanwhile.
#include <algorithm>
#include <array>

#include "parts.h"
#include "streams.h"

namespace split_kv::parallel {
namespace {

using attention::BackwardArgs;
using attention::ForwardArgs;
using attention::Problem;
using harness::DeviceBuffer;

// One rank has all rows.
class Alone : public Strategy {
 public:
  Alone(const Setting& setting, bool backward)
      : set_(setting), workspace_(workspace_bytes(set_, set_.whole, backward)) {}

  cudaStream_t stream() const override { return stream_; }
  size_t bytes() const override { return workspace_.bytes(); }

  void forward(const ForwardArgs& args) override {
    ForwardArgs own = args;
    own.workspace = workspace_.data();
    set_.forward.run(set_.whole, own, stream_);
  }
  void backward(const BackwardArgs& args) override {
    BackwardArgs own = args;
    own.workspace = workspace_.data();
    set_.backward.run(set_.whole, own, stream_);
  }

 private:
  const Setting set_;
  const Stream stream_{Stream::Urgency::usual};
  const DeviceBuffer workspace_;
};

class Ring : public Strategy {
 public:
  Ring(const Setting& setting, Transport& transport, bool backward)
      : set_(setting),
        p_(setting.whole),
        transport_(transport),
        steps_(ring_steps(p_, set_.shards, set_.rank, set_.order)),
        own_problem_(problem_of(p_, steps_[0].parts[0])),
        own_workspace_(workspace_bytes(set_, own_problem_, backward)),
        parts_(set_, steps_, backward, compute_) {
    int most = 0;
    for (const Shard& shard : set_.shards) most = std::max(most, shard.keys.count());
    for (int i = 0; i < std::min(2, ranks() - 1); i++) kv_[i] = pair_of(kv_bytes(most));
    if (backward)
      for (Pair& pair : sums_) pair = pair_of(2 * kv_bytes(most));
  }

  cudaStream_t stream() const override { return compute_; }

  size_t bytes() const override {
    size_t all = own_workspace_.bytes() + parts_.bytes();
    for (const Pair* pair : {&kv_[0], &kv_[1], &sums_[0], &sums_[1]}) all += (*pair)[0].bytes() + (*pair)[1].bytes();
    return all;
  }

  void forward(const ForwardArgs& args) override {
    ForwardArgs own = args;
    own.workspace = own_workspace_.data();
    begin();
    for (size_t s = 0; s < steps_.size(); s++) {
      const KeysAndValues keys = travelling(s, args.k, args.v);
      const bool more = s + 1 < steps_.size();
      if (more) begin_exchange(s, keys, false);
      if (s == 0) {
        timed("own", s, own_, [&] { set_.forward.run(own_problem_, own, own_); });
        parts_.begin(args);
      } else {
        timed("compute", s, compute_, [&] {
          for (const Part& part : steps_[s].parts) parts_.compute(part, keys, args);
        });
      }
      if (more) finish_exchange();
    }
    compute_.wait_for(own_);
    timed("join", steps_.size(), compute_, [&] { parts_.finish(args); });
  }

  void backward(const BackwardArgs& args) override {
    BackwardArgs own = args;
    own.workspace = own_workspace_.data();
    begin();
    for (size_t s = 0; s < steps_.size(); s++) {
      const KeysAndValues keys = travelling(s, args.k, args.v);
      const std::vector<Part>& parts = steps_[s].parts;
      begin_exchange(s, keys, true);
      if (s == 0) {
        timed("own", s, own_, [&] { set_.backward.run(own_problem_, own, own_); });
        parts_.begin(args);
        finish_exchange();
        continue;
      }
      timed("compute", s, compute_, [&] {
        if (!parts.empty()) parts_.compute(parts[0], keys, args);
      });
      finish_exchange();  // it has brought the sums that these gradients are added to
      timed("add", s, compute_, [&] {
        if (s == 1) begin_sums();
        for (size_t i = 0; i < parts.size(); i++) {
          if (i > 0) parts_.compute(parts[i], keys, args);
          parts_.add_gradients(parts[i], sums_[s % 2], keys.rows, s == 1 && i == 0 && first_has_all());
        }
      });
    }
    begin_exchange(steps_.size(), {}, true);  // the sums go home
    finish_exchange();
    compute_.wait_for(own_);
    timed("join", steps_.size(), compute_, [&] {
      parts_.finish(args);
      const Pair& home = sums_[steps_.size() % 2];
      const int rows = rows_of(set_.rank);
      add({args.dk, false, home[0].data(), true, kv_heads(), rows, 0, rows, 0, rows}, p_, compute_);
      add({args.dv, false, home[1].data(), true, kv_heads(), rows, 0, rows, 0, rows}, p_, compute_);
    });
  }

 private:
  int ranks() const { return int(set_.shards.size()); }
  int kv_heads() const { return p_.batch * p_.kv_heads; }
  size_t kv_bytes(int rows) const { return size_t(kv_heads()) * rows * p_.head_dim * 2; }
  int next() const { return (set_.rank + 1) % ranks(); }
  int previous() const { return (set_.rank + ranks() - 1) % ranks(); }
  int owner(size_t s) const { return (set_.rank - int(s) + ranks()) % ranks(); }  // of the keys of step s, up to P
  int rows_of(int rank) const { return set_.shards[rank].keys.count(); }

  // The keys and values of step s: the rank's own, or those that came during the step before.
  KeysAndValues travelling(size_t s, const void* own_k, const void* own_v) const {
    const int rows = rows_of(owner(s));
    if (s == 0) return {own_k, own_v, rows};
    const Pair& pair = kv_[(s - 1) % 2];
    return {pair[0].data(), pair[1].data(), rows};
  }

  // The own part begins some microseconds after the exchange, whose thread blocks have so many registers that each
  // needs a multiprocessor of its own. If blocks of the own part were first, the exchange would wait until enough of
  // them are done, on each rank. On two H200s a call with N = 8192 takes 0.42 ms this way, and often 0.51 without it.
  void begin() {
    exchange_.wait_for(compute_);  // the rank's own keys are there
    own_.wait_for(exchange_);
    for (int i = 0; i < 2; i++) pause(own_);
  }

  // During step s: its keys go on, those of step s + 1 come; and, backward, the sums that step s - 1 has made go on,
  // and those that the rank before has made for the keys of step s come. After the last step these are the rank's own.
  void begin_exchange(size_t s, const KeysAndValues& keys, bool sums) {
    if (s > 0) exchange_.wait_for(compute_);  // step s - 1: it read the buffer that is received into, and made the sums
    std::vector<Message> sends, receives;
    if (s + 1 < steps_.size()) {
      const Pair& to = kv_[s % 2];
      const size_t bytes = kv_bytes(keys.rows), coming = kv_bytes(rows_of(owner(s + 1)));
      sends = {{next(), const_cast<void*>(keys.k), bytes}, {next(), const_cast<void*>(keys.v), bytes}};
      receives = {{previous(), to[0].data(), coming}, {previous(), to[1].data(), coming}};
    }
    if (sums && s > 1)
      for (int i = 0; i < 2; i++) {
        sends.push_back({next(), sums_[(s - 1) % 2][i].data(), 2 * kv_bytes(rows_of(owner(s - 1)))});
        receives.push_back({previous(), sums_[s % 2][i].data(), 2 * kv_bytes(rows_of(owner(s)))});
      }
    double bytes = 0;
    for (const Message& message : receives) bytes += double(message.bytes);
    exchanging_ = !receives.empty();
    if (!exchanging_) return;
    if (timeline) exchange_span_ = timeline->begin("exchange", "step " + std::to_string(s), bytes, exchange_);
    transport_.begin(sends, receives, exchange_);
  }

  void finish_exchange() {
    if (!exchanging_) return;
    transport_.finish(exchange_);
    if (timeline) timeline->end(exchange_span_, exchange_);
    compute_.wait_for(exchange_);
  }

  // Whether the part that begins a rank's sums of dK and dV, on the next rank, has all of that rank's keys.
  bool first_has_all() const { return !steps_[1].parts.empty() && steps_[1].parts[0].keys == rows_of(owner(1)); }

  void begin_sums() {
    const int rows = rows_of(owner(1));
    if (!first_has_all())
      for (const DeviceBuffer& sum : sums_[1])
        add({sum.data(), true, nullptr, false, kv_heads(), rows, 0, rows, 0, rows, true}, p_, compute_);
  }

  template <class Work>
  void timed(const char* lane, size_t step, cudaStream_t stream, Work&& work) {
    const size_t span = timeline ? timeline->begin(lane, "step " + std::to_string(step), 0, stream) : 0;
    work();
    if (timeline) timeline->end(span, stream);
  }

  const Setting set_;
  const Problem p_;
  Transport& transport_;
  const std::vector<Step> steps_;
  const Problem own_problem_;  // the rank's queries and its own keys
  const DeviceBuffer own_workspace_;
  Stream own_{Stream::Urgency::last}, compute_{Stream::Urgency::usual}, exchange_{Stream::Urgency::first};
  Parts parts_;
  std::array<Pair, 2> kv_;    // K and V that travel: of this step, and of the next
  std::array<Pair, 2> sums_;  // dK and dV likewise, fp32
  bool exchanging_ = false;
  size_t exchange_span_ = 0;
};

}  // namespace

std::unique_ptr<Strategy> ring(const Setting& setting, Transport& transport, bool backward) {
  if (setting.shards.size() == 1) return std::make_unique<Alone>(setting, backward);
  return std::make_unique<Ring>(setting, transport, backward);
}

}  // namespace split_kv::parallel
