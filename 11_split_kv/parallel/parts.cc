#include "parts.h"

#include <algorithm>

namespace split_kv::parallel {

using attention::BackwardArgs;
using attention::ForwardArgs;
using harness::DeviceBuffer;

size_t workspace_bytes(const Setting& setting, const attention::Problem& problem, bool backward) {
  const size_t forward = setting.forward.workspace_bytes(problem);
  return backward ? std::max(forward, setting.backward.workspace_bytes(problem)) : forward;
}

Parts::Parts(const Setting& setting, const std::vector<Step>& steps, bool backward, cudaStream_t stream)
    : set_(setting),
      p_(setting.whole),
      queries_(setting.shards[setting.rank].queries),
      steps_(steps),
      two_ranks_(setting.shards.size() == 2),
      stream_(stream) {
  size_t workspace = 0, most_keys = 0;
  for (size_t s = 1; s < steps_.size(); s++) {
    const int rows = set_.shards[steps_[s].owner].keys.count();
    most_keys = std::max(most_keys, size_t(rows));
    for (const Part& part : steps_[s].parts) {
      workspace = std::max(workspace, workspace_bytes(set_, problem_of(p_, part), backward));
      if (part.keys < rows && first_keys_[0].bytes() < kv_bytes(part.keys)) first_keys_ = pair_of(kv_bytes(part.keys));
      if (part.queries < queries() && !slice_of(part)) {
        const size_t q = q_bytes(part.queries), lse = lse_bytes(part.queries);
        slices_.push_back({part.first_query, part.queries, DeviceBuffer(q), DeviceBuffer(backward ? lse : 0),
                           DeviceBuffer(backward ? q : 0), DeviceBuffer(backward ? q : 0)});
      }
    }
  }
  workspace_ = DeviceBuffer(workspace);
  part_q_ = DeviceBuffer(q_bytes(queries()));
  part_lse_ = DeviceBuffer(lse_bytes(queries()));
  if (backward) part_kv_ = pair_of(kv_bytes(int(most_keys)));
  if (!two_ranks_) {
    sum_ = DeviceBuffer(2 * q_bytes(queries()));
    sum_lse_ = DeviceBuffer(lse_bytes(queries()));
  }
}

size_t Parts::bytes() const {
  size_t all = 0;
  for (const DeviceBuffer* buffer : {&workspace_, &part_q_, &part_lse_, &sum_, &sum_lse_}) all += buffer->bytes();
  for (const Pair* pair : {&first_keys_, &part_kv_}) all += (*pair)[0].bytes() + (*pair)[1].bytes();
  for (const QuerySlice& slice : slices_)
    all += slice.q.bytes() + slice.lse.bytes() + slice.o.bytes() + slice.d_o.bytes();
  return all;
}

// ---- A part's rows as tensors of their own

const Parts::QuerySlice* Parts::slice_of(const Part& part) const {
  for (const QuerySlice& slice : slices_)
    if (slice.first == part.first_query && slice.count == part.queries) return &slice;
  return nullptr;
}

void Parts::copy_slice(const void* from, const QuerySlice& slice, const DeviceBuffer& to, int bytes_of_row) {
  copy_rows({from, queries(), slice.first, to.data(), slice.count, 0, slice.count, q_heads(), bytes_of_row}, stream_);
}

void Parts::begin(const ForwardArgs& args) {
  met_ = {};
  for (const QuerySlice& slice : slices_) copy_slice(args.q, slice, slice.q, row_bytes());
}

void Parts::begin(const BackwardArgs& args) {
  met_ = {};
  for (const QuerySlice& slice : slices_) {
    copy_slice(args.q, slice, slice.q, row_bytes());
    copy_slice(args.o, slice, slice.o, row_bytes());
    copy_slice(args.d_o, slice, slice.d_o, row_bytes());
    copy_slice(args.lse, slice, slice.lse, int(sizeof(float)));
  }
}

// The first keys of a rank: as they are if the part has all, or copied to where their heads are neighbours.
KeysAndValues Parts::keys_of(const Part& part, const KeysAndValues& keys) {
  if (part.keys == keys.rows) return keys;
  const void* const from[] = {keys.k, keys.v};
  for (int i = 0; i < 2; i++)
    copy_rows({from[i], keys.rows, 0, first_keys_[i].data(), part.keys, 0, part.keys, kv_heads(), row_bytes()},
              stream_);
  return {first_keys_[0].data(), first_keys_[1].data(), part.keys};
}

// ---- A part computed

void Parts::compute(const Part& part, const KeysAndValues& all_keys, const ForwardArgs& args) {
  const KeysAndValues keys = keys_of(part, all_keys);
  const QuerySlice* const slice = slice_of(part);
  set_.forward.run(
      problem_of(p_, part),
      {slice ? slice->q.data() : args.q, keys.k, keys.v, part_q(part), part_lse(part), workspace_.data(), {}}, stream_);
  for_each_run(
      part, [&](const Join& join) { merge(join, static_cast<float*>(sum_lse_.data()), part_lse(part), p_, stream_); });
}

void Parts::compute(const Part& part, const KeysAndValues& all_keys, const BackwardArgs& args) {
  const KeysAndValues keys = keys_of(part, all_keys);
  const QuerySlice* const slice = slice_of(part);
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
                    stream_);
  for_each_run(part, [&](const Join& join) { add(join, p_, stream_); });
}

void Parts::add_gradients(const Part& part, const Pair& sums, int rows, bool fresh) {
  for (int kv = 0; kv < 2; kv++)
    add({sums[kv].data(), true, part_kv_[kv].data(), false, kv_heads(), rows, 0, part.keys, 0, part.keys, fresh}, p_,
        stream_);
}

// ---- What the parts have made, put together

int Parts::begin_of(int run) const {
  int begin = 0;
  for (int i = 0; i < run; i++) begin += queries_.run[i].count;
  return begin;
}

bool Parts::contains(const Part& part, int run) const {
  const int begin = begin_of(run), end = begin_of(run + 1);
  return end > begin && part.first_query <= begin && end <= part.first_query + part.queries;
}

// With more than two ranks parts are added up in sum_: calls use(join) for the runs of the part (blind queries, the
// front, the back), once for neighbouring runs if all of them have met a part before, or none has.
template <class Use>
void Parts::for_each_run(const Part& part, Use&& use) {
  if (two_ranks_) return;
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
void Parts::for_each_result(Use&& use) const {
  if (two_ranks_)
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

void Parts::finish(const ForwardArgs& args) {
  for_each_result([&](Join result, const float* lse) {
    result.to = args.o;
    merge(result, args.lse, lse, p_, stream_);
  });
}

void Parts::finish(const BackwardArgs& args) {
  for_each_result([&](Join result, const float*) {
    result.to = args.dq;
    add(result, p_, stream_);
  });
}

}  // namespace split_kv::parallel
