#include "session.h"

#include <algorithm>
#include <cstring>

namespace split_kv::parallel {
namespace {

using attention::Problem;
using harness::DeviceBuffer;
using harness::HostTensors;

constexpr int nan_bytes = 0xff;

template <class T>
std::vector<T> download(const DeviceBuffer& buffer) {
  std::vector<T> values(buffer.bytes() / sizeof(T));
  check(cudaMemcpy(values.data(), buffer.data(), buffer.bytes(), cudaMemcpyDeviceToHost));
  return values;
}

// Every rank's rows of one tensor, on rank 0 as a whole.
template <class T>
std::vector<T> gather(const Setting& s, World& world, const DeviceBuffer& buffer, bool queries, int width) {
  const Problem& p = s.whole;
  const std::vector<T> own = download<T>(buffer);
  const auto parts = world.gather(std::string(reinterpret_cast<const char*>(own.data()), own.size() * sizeof(T)));
  const int matrices = p.batch * (queries ? p.heads : p.kv_heads), rows = queries ? p.seq_q : p.seq_k;
  if (world.rank() != 0) return {};
  std::vector<T> whole(size_t(matrices) * rows * width);
  for (int rank = 0; rank < world.ranks(); rank++) {
    std::vector<T> part(parts[rank].size() / sizeof(T));
    std::memcpy(part.data(), parts[rank].data(), parts[rank].size());
    put_back(part, whole, matrices, rows, width, queries ? s.shards[rank].queries : s.shards[rank].keys);
  }
  return whole;
}

}  // namespace

template <class T>
std::vector<T> dealt(const std::vector<T>& whole, int matrices, int rows, int width, const Runs& runs) {
  std::vector<T> part;
  for (int matrix = 0; matrix < matrices; matrix++)
    for (const Rows& run : runs) {
      const auto from = whole.begin() + (size_t(matrix) * rows + run.first) * width;
      part.insert(part.end(), from, from + size_t(run.count) * width);
    }
  return part;
}

template <class T>
void put_back(const std::vector<T>& part, std::vector<T>& whole, int matrices, int rows, int width, const Runs& runs) {
  auto from = part.begin();
  for (int matrix = 0; matrix < matrices; matrix++)
    for (const Rows& run : runs) {
      std::copy_n(from, size_t(run.count) * width, whole.begin() + (size_t(matrix) * rows + run.first) * width);
      from += size_t(run.count) * width;
    }
}

LocalTensors::LocalTensors(const Setting& s, bool backward) {
  const Problem& p = s.whole;
  const Shard& shard = s.shards[s.rank];
  const size_t row = size_t(p.head_dim) * 2, q_rows = size_t(p.batch) * p.heads * shard.queries.count(),
               k_rows = size_t(p.batch) * p.kv_heads * shard.keys.count();
  for (DeviceBuffer* buffer : {&q, &o}) *buffer = DeviceBuffer(q_rows * row);
  for (DeviceBuffer* buffer : {&k, &v}) *buffer = DeviceBuffer(k_rows * row);
  lse = DeviceBuffer(q_rows * sizeof(float));
  if (backward) {
    for (DeviceBuffer* buffer : {&d_o, &dq}) *buffer = DeviceBuffer(q_rows * row);
    for (DeviceBuffer* buffer : {&dk, &dv}) *buffer = DeviceBuffer(k_rows * row);
  }
  for (DeviceBuffer* buffer : {&q, &k, &v, &o, &lse, &d_o, &dq, &dk, &dv}) buffer->fill(nan_bytes);
  check(cudaStreamSynchronize(nullptr));  // the ranks' streams do not wait for this one
}

void LocalTensors::upload(const Setting& s, const HostTensors& whole) {
  const Problem& p = s.whole;
  const Shard& shard = s.shards[s.rank];
  const auto put = [&](DeviceBuffer& to, const std::vector<float>& from, bool queries) {
    if (to.bytes() == 0) return;
    const auto bits =
        harness::to_storage(dealt(from, p.batch * (queries ? p.heads : p.kv_heads), queries ? p.seq_q : p.seq_k,
                                  p.head_dim, queries ? shard.queries : shard.keys),
                            p.dtype);
    check(cudaMemcpy(to.data(), bits.data(), to.bytes(), cudaMemcpyHostToDevice));
  };
  put(q, whole.q, true);
  put(k, whole.k, false);
  put(v, whole.v, false);
  put(d_o, whole.d_o, true);
}

attention::ForwardArgs LocalTensors::forward_args() const {
  return {q.data(), k.data(), v.data(), o.data(), static_cast<float*>(lse.data()), nullptr, {}};
}

attention::BackwardArgs LocalTensors::backward_args() const {
  return {q.data(),  k.data(),  v.data(), o.data(), static_cast<const float*>(lse.data()), d_o.data(), dq.data(),
          dk.data(), dv.data(), nullptr,  {}};
}

size_t LocalTensors::bytes() const {
  size_t all = 0;
  for (const DeviceBuffer* buffer : {&q, &k, &v, &o, &lse, &d_o, &dq, &dk, &dv}) all += buffer->bytes();
  return all;
}

Gathered solve(const Setting& s, Strategy& strategy, World& world, Transport& transport, const HostTensors& inputs,
               bool backward) {
  LocalTensors tensors(s, backward);
  tensors.upload(s, inputs);
  harness::Event done;
  const auto run = [&](auto&& work) {
    work();
    done.record(strategy.stream());
    transport.wait(done.get());
  };
  const int D = s.whole.head_dim;
  Gathered made;
  run([&] { strategy.forward(tensors.forward_args()); });
  made.o = gather<uint16_t>(s, world, tensors.o, true, D);
  made.lse = gather<float>(s, world, tensors.lse, true, 1);
  if (!backward) return made;
  run([&] { strategy.backward(tensors.backward_args()); });
  made.dq = gather<uint16_t>(s, world, tensors.dq, true, D);
  made.dk = gather<uint16_t>(s, world, tensors.dk, false, D);
  made.dv = gather<uint16_t>(s, world, tensors.dv, false, D);
  return made;
}

std::vector<harness::Verdict> judge(const Setting& s, const Gathered& made, const HostTensors& inputs, bool backward) {
  if (s.rank != 0) return {};
  const auto widened = [&](const std::vector<uint16_t>& bits) { return harness::from_storage(bits, s.whole.dtype); };
  std::vector<harness::Verdict> verdicts = {
      harness::Reference(s.whole, inputs, false).check_forward(widened(made.o), made.lse)};
  if (backward)
    verdicts.push_back(harness::Reference(s.whole, inputs, true, {widened(made.o), made.lse})
                           .check_backward(widened(made.dq), widened(made.dk), widened(made.dv)));
  return verdicts;
}

}  // namespace split_kv::parallel
