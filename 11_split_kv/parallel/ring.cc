// Ring attention: in each of P steps a rank computes with the keys and values of one rank, while those of the next step
// come from the rank before it, and its present ones go to the rank after it.
//
//   step          0          1          2          3
//   compute   | own keys | of r - 1 | of r - 2 | of r - 3 |
//   exchange  | of r - 1 | of r - 2 | of r - 3 |
//
// There are two buffers for keys and values: one is computed with, one is received into.
//
// Backward, the sums of dK and dV travel too, one step behind: a rank adds its part to what the rank before has made of
// it. After the last step they go home. Everything is added in the order of the ring, so that the bits are the same in
// every run.
//
// Hazards: the exchange of step s writes the buffer that step s - 1 has read, so it waits for that step; step s + 1
// reads what the exchange of step s has brought, so it waits for that exchange.
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
using attention::Mask;
using attention::Problem;
using harness::DeviceBuffer;

// Queries of the rank that are not all of them, as tensors of their own: a head's rows lie side by side.
struct QuerySlice {
  int first, count;
  DeviceBuffer q, lse, o, d_o;  // the last three backward
};

// How often one of the rank's three runs of queries meets keys.
struct Meetings {
  int all = 0, so_far = 0;
};

class Ring : public Way {
 public:
  Ring(const Setting& setting, Transport& transport, bool backward)
      : set_(setting),
        p_(setting.whole),
        transport_(transport),
        share_(set_.shares[set_.rank]),
        steps_(ring_steps(p_, set_.shares, set_.rank, set_.order)) {
    int most_keys = 0;
    for (const Share& share : set_.shares) most_keys = std::max(most_keys, share.keys.count());
    size_t workspace = 0;
    for (const Step& step : steps_)
      for (const Part& part : step.parts) {
        const Problem problem = problem_of(p_, part);
        workspace = std::max(workspace, set_.forward.workspace_bytes(problem));
        if (backward) workspace = std::max(workspace, set_.backward.workspace_bytes(problem));
      }
    workspace_ = DeviceBuffer(workspace);
    if (ranks() == 1) return;

    const size_t q = q_bytes(share_.queries.count()), kv = kv_bytes(most_keys);
    for (auto& buffers : kv_) buffers = {DeviceBuffer(kv), DeviceBuffer(kv)};
    part_q_ = DeviceBuffer(q);
    part_lse_ = DeviceBuffer(lse_bytes(share_.queries.count()));
    if (ranks() > 2) sum_ = DeviceBuffer(2 * q);
    if (backward)
      for (auto* pair : {&sums_[0], &sums_[1]}) *pair = {DeviceBuffer(2 * kv), DeviceBuffer(2 * kv)};
    if (backward) part_kv_ = {DeviceBuffer(kv), DeviceBuffer(kv)};
    for (size_t s = 1; s < steps_.size(); s++)
      for (const Part& part : steps_[s].parts) {
        if (part.keys < set_.shares[steps_[s].owner].keys.count() && first_keys_[0].bytes() < kv_bytes(part.keys))
          first_keys_ = {DeviceBuffer(kv_bytes(part.keys)), DeviceBuffer(kv_bytes(part.keys))};
        if (part.queries < share_.queries.count() && !slice_of(part)) {
          const size_t bytes = q_bytes(part.queries), lse = lse_bytes(part.queries);
          slices_.push_back({part.first_query, part.queries, DeviceBuffer(bytes), DeviceBuffer(backward ? lse : 0),
                             DeviceBuffer(backward ? bytes : 0), DeviceBuffer(backward ? bytes : 0)});
        }
      }
  }

  cudaStream_t stream() const override { return compute_; }

  size_t bytes() const override {
    size_t all = workspace_.bytes() + part_q_.bytes() + part_lse_.bytes() + sum_.bytes();
    for (const auto* pair : {&kv_[0], &kv_[1], &sums_[0], &sums_[1], &part_kv_, &first_keys_})
      all += (*pair)[0].bytes() + (*pair)[1].bytes();
    for (const QuerySlice& slice : slices_)
      all += slice.q.bytes() + slice.lse.bytes() + slice.o.bytes() + slice.d_o.bytes();
    return all;
  }

  void forward(const ForwardArgs& args) override {
    count_meetings();
    exchange_.wait_for(compute_);  // the rank's own keys are there
    for (QuerySlice& slice : slices_) copy_queries(args.q, slice, slice.q);
    for (size_t s = 0; s < steps_.size(); s++) {
      const KeysAndValues keys = travelling(s, args.k, args.v);
      const bool more = s + 1 < steps_.size();
      if (more) begin_exchange(s, keys, nullptr);
      note(lane_compute, s, 0, compute_);
      for (const Part& part : steps_[s].parts) compute_forward(s, part, keys, args);
      noted(compute_);
      if (more) finish_exchange();
    }
  }

  void backward(const BackwardArgs& args) override {
    count_meetings();
    exchange_.wait_for(compute_);
    for (QuerySlice& slice : slices_) {
      copy_queries(args.q, slice, slice.q);
      copy_queries(args.o, slice, slice.o);
      copy_queries(args.d_o, slice, slice.d_o);
      copy_rows({args.lse, share_.queries.count(), slice.first, slice.lse.data(), slice.count, 0, slice.count,
                 q_heads(), int(sizeof(float))},
                compute_);
    }
    for (size_t s = 0; s < steps_.size(); s++) {
      const KeysAndValues keys = travelling(s, args.k, args.v);
      if (ranks() > 1) begin_exchange(s, keys, sums_of(s));
      note(lane_compute, s, 0, compute_);
      const std::vector<Part>& parts = steps_[s].parts;
      if (!parts.empty()) compute_backward(s, parts[0], keys, args);
      noted(compute_);
      if (ranks() > 1) finish_exchange();  // it has brought the sums that these gradients are added to
      note(lane_add, s, 0, compute_);
      for (size_t i = 0; i < parts.size(); i++) {
        if (i > 0) compute_backward(s, parts[i], keys, args);
        if (ranks() > 1) add_gradients(s, parts[i]);
      }
      noted(compute_);
    }
    if (ranks() > 1) bring_home(args);
  }

 private:
  struct KeysAndValues {
    const void* k;
    const void* v;
    int rows;
  };
  using Pair = std::array<DeviceBuffer, 2>;

  static constexpr const char *lane_compute = "compute", *lane_add = "add", *lane_exchange = "exchange";

  int ranks() const { return int(set_.shares.size()); }
  int q_heads() const { return p_.batch * p_.heads; }
  int kv_heads() const { return p_.batch * p_.kv_heads; }
  int row_bytes() const { return p_.head_dim * 2; }
  size_t q_bytes(int rows) const { return size_t(q_heads()) * rows * row_bytes(); }
  size_t kv_bytes(int rows) const { return size_t(kv_heads()) * rows * row_bytes(); }
  size_t lse_bytes(int rows) const { return size_t(q_heads()) * rows * sizeof(float); }
  int next() const { return (set_.rank + 1) % ranks(); }
  int previous() const { return (set_.rank + ranks() - 1) % ranks(); }
  int rows_of(int owner) const { return set_.shares[(owner + ranks()) % ranks()].keys.count(); }
  int owner(size_t s) const { return set_.rank - int(s); }  // modulo the number of ranks

  QuerySlice* slice_of(const Part& part) {
    for (QuerySlice& slice : slices_)
      if (slice.first == part.first_query && slice.count == part.queries) return &slice;
    return nullptr;
  }

  void copy_queries(const void* from, const QuerySlice& slice, const DeviceBuffer& to) {
    copy_rows(
        {from, share_.queries.count(), slice.first, to.data(), slice.count, 0, slice.count, q_heads(), row_bytes()},
        compute_);
  }

  // The keys and values of step s: the rank's own, or those that came during the step before.
  KeysAndValues travelling(size_t s, const void* own_k, const void* own_v) const {
    const int rows = rows_of(owner(s));
    if (s == 0) return {own_k, own_v, rows};
    const Pair& pair = kv_[(s - 1) % 2];
    return {pair[0].data(), pair[1].data(), rows};
  }

  // Sums of dK and dV for the keys of step s.
  const Pair* sums_of(size_t s) const { return &sums_[s % 2]; }

  // During step s: its keys go on, those of step s + 1 come; and, backward, the sums that step s - 1 has made go on,
  // and those that the rank before made with the keys of step s come.
  void begin_exchange(size_t s, const KeysAndValues& keys, const Pair* sums) {
    if (s > 0) exchange_.wait_for(compute_);  // step s - 1: it read what is received into, and made the sums
    std::vector<Message> sends, receives;
    if (s + 1 < steps_.size()) {
      const Pair& to = kv_[s % 2];
      const size_t bytes = kv_bytes(keys.rows), coming = kv_bytes(rows_of(owner(s + 1)));
      sends = {{next(), const_cast<void*>(keys.k), bytes}, {next(), const_cast<void*>(keys.v), bytes}};
      receives = {{previous(), to[0].data(), coming}, {previous(), to[1].data(), coming}};
    }
    if (sums && s > 0) {
      const size_t going = 2 * kv_bytes(rows_of(owner(s - 1))), coming = 2 * kv_bytes(rows_of(owner(s)));
      for (int i = 0; i < 2; i++) {
        sends.push_back({next(), (*sums_of(s - 1))[i].data(), going});
        receives.push_back({previous(), (*sums)[i].data(), coming});
      }
    }
    double bytes = 0;
    for (const Message& message : receives) bytes += double(message.bytes);
    note(lane_exchange, s, bytes, exchange_);
    exchange_span_ = timeline ? timeline->opened() : 0;
    transport_.begin(sends, receives, exchange_);
  }

  void finish_exchange() {
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

  void compute_forward(size_t s, const Part& part, const KeysAndValues& all_keys, const ForwardArgs& args) {
    const KeysAndValues keys = keys_of(part, all_keys);
    const QuerySlice* const slice = part.queries < share_.queries.count() ? slice_of(part) : nullptr;
    void* const o = s == 0 ? args.o : part_q_.data();
    float* const lse = s == 0 ? args.lse : static_cast<float*>(part_lse_.data());
    set_.forward.run(problem_of(p_, part),
                     {slice ? slice->q.data() : args.q, keys.k, keys.v, o, lse, workspace_.data(), {}}, compute_);
    for_each_run(part, [&](int from, int until, const Meetings& met) {
      if (s == 0) return;  // the first part is the result so far
      merge({args.o, static_cast<float*>(sum_.data()), args.lse, part_q_.data(), lse, q_heads(), share_.queries.count(),
             part.first_query, part.queries, from, until, met.so_far == 2, met.so_far == met.all},
            p_, compute_);
    });
  }

  // dQ is added up here. dK and dV of the part stay in part_kv_, where add_gradients() finds them.
  void compute_backward(size_t s, const Part& part, const KeysAndValues& all_keys, const BackwardArgs& args) {
    const KeysAndValues keys = keys_of(part, all_keys);
    const QuerySlice* const slice = part.queries < share_.queries.count() ? slice_of(part) : nullptr;
    const bool alone = ranks() == 1;
    set_.backward.run(problem_of(p_, part),
                      {slice ? slice->q.data() : args.q,
                       keys.k,
                       keys.v,
                       slice ? slice->o.data() : args.o,
                       slice ? static_cast<const float*>(slice->lse.data()) : args.lse,
                       slice ? slice->d_o.data() : args.d_o,
                       s == 0 ? args.dq : part_q_.data(),
                       alone ? args.dk : part_kv_[0].data(),
                       alone ? args.dv : part_kv_[1].data(),
                       workspace_.data(),
                       {}},
                      compute_);
    for_each_run(part, [&](int from, int until, const Meetings& met) {
      if (s == 0) return;
      const bool second = met.so_far == 2, last = met.so_far == met.all;
      add({second ? args.dq : sum_.data(), !second, last ? args.dq : sum_.data(), !last, part_q_.data(), q_heads(),
           share_.queries.count(), part.first_query, part.queries, from, until},
          p_, compute_);
    });
  }

  void add_gradients(size_t s, const Part& part) {
    for (int i = 0; i < 2; i++) {
      void* const sum = (*sums_of(s))[i].data();
      add({s == 0 ? nullptr : sum, true, sum, true, part_kv_[i].data(), kv_heads(), rows_of(owner(s)), 0, part.keys, 0,
           part.keys},
          p_, compute_);
    }
  }

  // The last step's sums are those of the next rank's keys. Nothing is added to them any more, so they go home rounded,
  // in the buffer of keys that no step needs: half the bytes of the last exchange, which nothing hides.
  void bring_home(const BackwardArgs& args) {
    const size_t last = steps_.size() - 1;
    const int rows = rows_of(owner(last));
    const Pair& rounded = kv_[last % 2];
    for (int i = 0; i < 2; i++)
      add({(*sums_of(last))[i].data(), true, rounded[i].data(), false, nullptr, kv_heads(), rows, 0, rows, 0, rows}, p_,
          compute_);
    exchange_.wait_for(compute_);
    const size_t going = kv_bytes(rows), coming = kv_bytes(share_.keys.count());
    const Message sends[] = {{next(), rounded[0].data(), going}, {next(), rounded[1].data(), going}};
    const Message receives[] = {{previous(), args.dk, coming}, {previous(), args.dv, coming}};
    note(lane_exchange, last + 1, 2.0 * double(coming), exchange_);
    exchange_span_ = timeline ? timeline->opened() : 0;
    transport_.begin(sends, receives, exchange_);
    finish_exchange();
  }

  // ---- Which of a rank's queries have met how many parts: blind ones, its front, its back

  void count_meetings() {
    meetings_ = {};
    for (const Step& step : steps_)
      for (const Part& part : step.parts)
        for (int run = 0; run < 3; run++) meetings_[run].all += contains(part, run);
  }

  int begin_of(int run) const {
    int begin = 0;
    for (int i = 0; i < run; i++) begin += share_.queries.run[i].count;
    return begin;
  }

  bool contains(const Part& part, int run) const {
    const int begin = begin_of(run), count = share_.queries.run[run].count;
    return count > 0 && part.first_query <= begin && begin + count <= part.first_query + part.queries;
  }

  // Calls use(from, until, meetings) for the runs of the part, for neighbours that have met as many at once.
  template <class Use>
  void for_each_run(const Part& part, Use&& use) {
    for (int run = 0; run < 3; run++) meetings_[run].so_far += contains(part, run);
    for (int run = 0; run < 3;) {
      if (!contains(part, run)) {
        run++;
        continue;
      }
      const int first = run;
      int until = begin_of(run);
      const auto alike = [&](int other) {
        return contains(part, other) && meetings_[other].all == meetings_[first].all &&
               meetings_[other].so_far == meetings_[first].so_far;
      };
      for (; run < 3 && alike(run); run++) until = begin_of(run) + share_.queries.run[run].count;
      use(begin_of(first), until, meetings_[first]);
    }
  }

  // ---- The timeline

  void note(const char* lane, size_t step, double bytes, cudaStream_t stream) {
    if (!timeline) return;
    timeline->begin(lane, "step " + std::to_string(step), bytes, stream);
    if (lane != lane_exchange) compute_span_ = timeline->opened();
  }
  void noted(cudaStream_t stream) {
    if (timeline) timeline->end(compute_span_, stream);
  }

  const Setting set_;
  const Problem p_;
  Transport& transport_;
  const Share share_;
  const std::vector<Step> steps_;
  Stream compute_{Stream::Urgency::usual}, exchange_{Stream::Urgency::first};
  DeviceBuffer workspace_;
  std::array<Pair, 2> kv_;          // K and V that travel: of this step, and of the next
  std::array<Pair, 2> sums_;        // dK and dV likewise, fp32
  Pair part_kv_;                    // dK and dV of one part
  Pair first_keys_;                 // K and V of a part, if it does not have all of a rank's
  DeviceBuffer part_q_, part_lse_;  // O or dQ, and LSE, of one part
  DeviceBuffer sum_;                // O or dQ so far, fp32
  std::deque<QuerySlice> slices_;
  std::array<Meetings, 3> meetings_;
  size_t compute_span_ = 0, exchange_span_ = 0;
};

}  // namespace

std::unique_ptr<Way> ring(const Setting& setting, Transport& transport, bool backward) {
  return std::make_unique<Ring>(setting, transport, backward);
}

}  // namespace split_kv::parallel
