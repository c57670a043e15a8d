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
// Backward, sums of dK and dV travel too, one step behind: a rank adds its part to what the rank before has made of
// it. After the last step they go home, where they meet those of the rank's own queries. Everything is added in the
// order of the ring, and the rank's own part last, so that the bits are the same in every run.
//
// Hazards: the exchange of step s writes the buffer that step s - 1 has read, so it waits for that step; step s + 1
// reads what the exchange of step s has brought, so it waits for that exchange; the end waits for the own part.
#include <algorithm>
#include <array>
#include <deque>

#include "rows.h"
#include "streams.h"
#include "ways.h"

namespace split_kv::parallel {
namespace {

using attention::BackwardArgs;
using attention::ForwardArgs;
using attention::Problem;
using harness::DeviceBuffer;

// Queries of the rank that are not all of them, as tensors of their own: a head's rows lie side by side.
struct QuerySlice {
  int first, count;
  DeviceBuffer q, lse, o, d_o;  // the last three backward
};

// One rank has all rows.
class Alone : public Way {
 public:
  Alone(const Setting& setting, bool backward)
      : set_(setting),
        workspace_(std::max(set_.forward.workspace_bytes(set_.whole),
                            backward ? set_.backward.workspace_bytes(set_.whole) : 0)) {}

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

class Ring : public Way {
 public:
  Ring(const Setting& setting, Transport& transport, bool backward)
      : set_(setting),
        p_(setting.whole),
        transport_(transport),
        share_(set_.shares[set_.rank]),
        steps_(ring_steps(p_, set_.shares, set_.rank, set_.order)),
        own_problem_(problem_of(p_, steps_[0].parts[0])) {
    const auto workspace = [&](const Problem& problem) {
      const size_t forward = set_.forward.workspace_bytes(problem);
      return backward ? std::max(forward, set_.backward.workspace_bytes(problem)) : forward;
    };
    own_workspace_ = DeviceBuffer(workspace(own_problem_));
    int most_keys = 0;
    for (const Share& share : set_.shares) most_keys = std::max(most_keys, share.keys.count());
    const size_t q = q_bytes(queries()), kv = kv_bytes(most_keys), lse = lse_bytes(queries());
    const auto pair_of = [](size_t bytes) { return Pair{DeviceBuffer(bytes), DeviceBuffer(bytes)}; };
    for (int i = 0; i < std::min(2, ranks() - 1); i++) kv_[i] = pair_of(kv);
    part_q_ = DeviceBuffer(q);
    part_lse_ = DeviceBuffer(lse);
    if (ranks() > 2) {
      sum_ = DeviceBuffer(2 * q);
      sum_lse_ = DeviceBuffer(lse);
    }
    if (backward) {
      for (Pair& pair : sums_) pair = pair_of(2 * kv);
      part_kv_ = pair_of(kv);
    }
    size_t most_workspace = 0;
    for (size_t s = 1; s < steps_.size(); s++)
      for (const Part& part : steps_[s].parts) {
        most_workspace = std::max(most_workspace, workspace(problem_of(p_, part)));
        if (part.keys < rows_of(owner(s)) && first_keys_[0].bytes() < kv_bytes(part.keys))
          first_keys_ = pair_of(kv_bytes(part.keys));
        if (part.queries < queries() && !slice_of(part)) {
          const size_t bytes = q_bytes(part.queries), slice_lse = lse_bytes(part.queries);
          slices_.push_back({part.first_query, part.queries, DeviceBuffer(bytes),
                             DeviceBuffer(backward ? slice_lse : 0), DeviceBuffer(backward ? bytes : 0),
                             DeviceBuffer(backward ? bytes : 0)});
        }
      }
    workspace_ = DeviceBuffer(most_workspace);
  }

  cudaStream_t stream() const override { return compute_; }

  size_t bytes() const override {
    size_t all = 0;
    for (const DeviceBuffer* buffer : {&own_workspace_, &workspace_, &part_q_, &part_lse_, &sum_, &sum_lse_})
      all += buffer->bytes();
    for (const Pair* pair : {&kv_[0], &kv_[1], &sums_[0], &sums_[1], &part_kv_, &first_keys_})
      all += (*pair)[0].bytes() + (*pair)[1].bytes();
    for (const QuerySlice& slice : slices_)
      all += slice.q.bytes() + slice.lse.bytes() + slice.o.bytes() + slice.d_o.bytes();
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
        for (QuerySlice& slice : slices_) copy_queries(args.q, slice, slice.q);
      } else {
        timed("compute", s, compute_, [&] {
          for (const Part& part : steps_[s].parts) compute_forward(part, keys, args);
        });
      }
      if (more) finish_exchange();
    }
    compute_.wait_for(own_);
    timed("join", steps_.size(), compute_, [&] {
      for_each_result([&](Join result, const float* lse) {
        result.to = args.o;
        merge(result, args.lse, lse, p_, compute_);
      });
    });
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
        copy_slices(args);
        finish_exchange();
        continue;
      }
      timed("compute", s, compute_, [&] {
        if (!parts.empty()) compute_backward(parts[0], keys, args);
      });
      finish_exchange();  // it has brought the sums that these gradients are added to
      timed("add", s, compute_, [&] {
        if (s == 1) begin_sums();
        for (size_t i = 0; i < parts.size(); i++) {
          if (i > 0) compute_backward(parts[i], keys, args);
          add_gradients(s, i);
        }
      });
    }
    begin_exchange(steps_.size(), {}, true);  // the sums go home
    finish_exchange();
    compute_.wait_for(own_);
    timed("join", steps_.size(), compute_, [&] {
      for_each_result([&](Join result, const float*) {
        result.to = args.dq;
        add(result, p_, compute_);
      });
      const Pair& home = sums_[steps_.size() % 2];
      const int rows = share_.keys.count();
      add({args.dk, false, home[0].data(), true, kv_heads(), rows, 0, rows, 0, rows}, p_, compute_);
      add({args.dv, false, home[1].data(), true, kv_heads(), rows, 0, rows, 0, rows}, p_, compute_);
    });
  }

 private:
  struct KeysAndValues {
    const void* k;
    const void* v;
    int rows;
  };
  using Pair = std::array<DeviceBuffer, 2>;

  int ranks() const { return int(set_.shares.size()); }
  int queries() const { return share_.queries.count(); }
  int q_heads() const { return p_.batch * p_.heads; }
  int kv_heads() const { return p_.batch * p_.kv_heads; }
  int row_bytes() const { return p_.head_dim * 2; }
  size_t q_bytes(int rows) const { return size_t(q_heads()) * rows * row_bytes(); }
  size_t kv_bytes(int rows) const { return size_t(kv_heads()) * rows * row_bytes(); }
  size_t lse_bytes(int rows) const { return size_t(q_heads()) * rows * sizeof(float); }
  int next() const { return (set_.rank + 1) % ranks(); }
  int previous() const { return (set_.rank + ranks() - 1) % ranks(); }
  int owner(size_t s) const { return (set_.rank - int(s) + ranks()) % ranks(); }  // of the keys of step s, up to P
  int rows_of(int rank) const { return set_.shares[rank].keys.count(); }

  QuerySlice* slice_of(const Part& part) {
    for (QuerySlice& slice : slices_)
      if (slice.first == part.first_query && slice.count == part.queries) return &slice;
    return nullptr;
  }

  void copy_queries(const void* from, const QuerySlice& slice, const DeviceBuffer& to) {
    copy_rows({from, queries(), slice.first, to.data(), slice.count, 0, slice.count, q_heads(), row_bytes()}, compute_);
  }

  void copy_slices(const BackwardArgs& args) {
    for (QuerySlice& slice : slices_) {
      copy_queries(args.q, slice, slice.q);
      copy_queries(args.o, slice, slice.o);
      copy_queries(args.d_o, slice, slice.d_o);
      copy_rows({args.lse, queries(), slice.first, slice.lse.data(), slice.count, 0, slice.count, q_heads(),
                 int(sizeof(float))},
                compute_);
    }
  }

  // The keys and values of step s: the rank's own, or those that came during the step before.
  KeysAndValues travelling(size_t s, const void* own_k, const void* own_v) const {
    const int rows = rows_of(owner(s));
    if (s == 0) return {own_k, own_v, rows};
    const Pair& pair = kv_[(s - 1) % 2];
    return {pair[0].data(), pair[1].data(), rows};
  }

  void begin() {
    met_ = {};
    exchange_.wait_for(compute_);  // the rank's own keys are there
    own_.wait_for(exchange_);
  }

  // During step s: its keys go on, those of step s + 1 come; and, backward, the sums that step s - 1 has made go on,
  // and those that the rank before has made for the keys of step s come. After the last step these are the rank's own.
  void begin_exchange(size_t s, const KeysAndValues& keys, bool sums) {
    if (s > 0) exchange_.wait_for(compute_);  // step s - 1: it read what is received into, and made the sums
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

  // A part's keys and values, which are the first of a rank's: as they are, or copied to where their heads are
  // neighbours.
  KeysAndValues keys_of(const Part& part, const KeysAndValues& keys) {
    if (part.keys == keys.rows) return keys;
    const void* const from[] = {keys.k, keys.v};
    for (int i = 0; i < 2; i++)
      copy_rows({from[i], keys.rows, 0, first_keys_[i].data(), part.keys, 0, part.keys, kv_heads(), row_bytes()},
                compute_);
    return {first_keys_[0].data(), first_keys_[1].data(), part.keys};
  }

  // Where a part's O or dQ goes, and its LSE. The parts of a step have different queries, and lie one after the other.
  void* part_q(const Part& part) const { return static_cast<char*>(part_q_.data()) + q_bytes(part.first_query); }
  float* part_lse(const Part& part) const {
    return static_cast<float*>(part_lse_.data()) + size_t(q_heads()) * part.first_query;
  }

  void compute_forward(const Part& part, const KeysAndValues& all_keys, const ForwardArgs& args) {
    const KeysAndValues keys = keys_of(part, all_keys);
    const QuerySlice* const slice = part.queries < queries() ? slice_of(part) : nullptr;
    set_.forward.run(
        problem_of(p_, part),
        {slice ? slice->q.data() : args.q, keys.k, keys.v, part_q(part), part_lse(part), workspace_.data(), {}},
        compute_);
    for_each_run(part, [&](const Join& join) {
      merge(join, static_cast<float*>(sum_lse_.data()), part_lse(part), p_, compute_);
    });
  }

  // dK and dV of the part stay in part_kv_, where add_gradients() finds them.
  void compute_backward(const Part& part, const KeysAndValues& all_keys, const BackwardArgs& args) {
    const KeysAndValues keys = keys_of(part, all_keys);
    const QuerySlice* const slice = part.queries < queries() ? slice_of(part) : nullptr;
    set_.backward.run(problem_of(p_, part),
                      {slice ? slice->q.data() : args.q,
                       keys.k,
                       keys.v,
                       slice ? slice->o.data() : args.o,
                       slice ? static_cast<const float*>(slice->lse.data()) : args.lse,
                       slice ? slice->d_o.data() : args.d_o,
                       part_q(part),
                       part_kv_[0].data(),
                       part_kv_[1].data(),
                       workspace_.data(),
                       {}},
                      compute_);
    for_each_run(part, [&](const Join& join) { add(join, p_, compute_); });
  }

  // Whether the first part that any rank makes of a rank's dK and dV has all of its keys.
  bool first_has_all() const { return !steps_[1].parts.empty() && steps_[1].parts[0].keys == rows_of(owner(1)); }

  void begin_sums() {
    const int rows = rows_of(owner(1));
    if (!first_has_all())
      for (const DeviceBuffer& sum : sums_[1])
        add({sum.data(), true, nullptr, false, kv_heads(), rows, 0, rows, 0, rows, true}, p_, compute_);
  }

  void add_gradients(size_t s, size_t i) {
    const int keys = steps_[s].parts[i].keys;
    for (int kv = 0; kv < 2; kv++)
      add({sums_[s % 2][kv].data(), true, part_kv_[kv].data(), false, kv_heads(), rows_of(owner(s)), 0, keys, 0, keys,
           s == 1 && i == 0 && first_has_all()},
          p_, compute_);
  }

  // ---- What the keys of other ranks have made of the rank's queries

  int begin_of(int run) const {
    int begin = 0;
    for (int i = 0; i < run; i++) begin += share_.queries.run[i].count;
    return begin;
  }

  bool contains(const Part& part, int run) const {
    const int begin = begin_of(run), end = begin_of(run + 1);
    return end > begin && part.first_query <= begin && end <= part.first_query + part.queries;
  }

  // With more than two ranks parts are added up in sum_: calls use(join) for the runs of the part (blind queries, the
  // front, the back), for neighbours at once that have all met a part before, or have not.
  template <class Use>
  void for_each_run(const Part& part, Use&& use) {
    if (ranks() == 2) return;
    for (int run = 0; run < 3; run++) {
      if (!contains(part, run)) continue;
      const int first = run;
      const bool met = met_[first];
      while (run < 2 && contains(part, run + 1) && met_[run + 1] == met) run++;
      use(Join{sum_.data(), true, part_q(part), false, q_heads(), queries(), part.first_query, part.queries,
               begin_of(first), begin_of(run + 1), !met});
      std::fill(&met_[first], &met_[run] + 1, true);
    }
  }

  // Calls use(join, lse) for what all other ranks' keys have made: with two ranks the parts, else their sum.
  template <class Use>
  void for_each_result(Use&& use) const {
    if (ranks() == 2)
      for (const Part& part : steps_[1].parts)
        use(Join{nullptr, false, part_q(part), false, q_heads(), queries(), part.first_query, part.queries,
                 part.first_query, part.first_query + part.queries},
            part_lse(part));
    else
      for (int run = 0; run < 3; run++)
        if (met_[run])
          use(Join{nullptr, false, sum_.data(), true, q_heads(), queries(), 0, queries(), begin_of(run),
                   begin_of(run + 1)},
              static_cast<const float*>(sum_lse_.data()));
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
  const Share share_;
  const std::vector<Step> steps_;
  const Problem own_problem_;  // the rank's queries and its own keys
  Stream own_{Stream::Urgency::last}, compute_{Stream::Urgency::usual}, exchange_{Stream::Urgency::first};
  DeviceBuffer own_workspace_, workspace_;
  std::array<Pair, 2> kv_;          // K and V that travel: of this step, and of the next
  std::array<Pair, 2> sums_;        // dK and dV likewise, fp32
  Pair part_kv_;                    // dK and dV of one part
  Pair first_keys_;                 // K and V of a part, if it does not have all of a rank's
  DeviceBuffer part_q_, part_lse_;  // O or dQ, and LSE, of the parts of a step
  DeviceBuffer sum_, sum_lse_;      // O or dQ, and LSE, of the steps so far; fp32
  std::deque<QuerySlice> slices_;
  std::array<bool, 3> met_;  // whether the blind queries, the front and the back are in sum_
  bool exchanging_ = false;
  size_t exchange_span_ = 0;
};

}  // namespace

std::unique_ptr<Way> ring(const Setting& setting, Transport& transport, bool backward) {
  if (setting.shares.size() == 1) return std::make_unique<Alone>(setting, backward);
  return std::make_unique<Ring>(setting, transport, backward);
}

}  // namespace split_kv::parallel
