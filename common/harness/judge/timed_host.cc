// The process in which one kernel is timed: the reference solution's, or one that was handed in and that nobody trusts.
// main.cc, who judges, is another process of another user, and timing_protocol.h is all that they share: the socket is
// this program's standard input. Nothing here is protected from the kernel, and whatever it says is judged.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "attention/rung.h"
#include "harness/device_buffer.h"
#include "harness/judge/timing_protocol.h"
#include "harness/socket.h"

const attention::Rung& timed_rung();  // made for each exercise: rung.cc.in

namespace judge {
namespace {

using attention::Problem;
using harness::DeviceBuffer;
using harness::Event;

constexpr int to_the_judge = 0, poison = 0xff;  // NaN in every type

struct Launch {
  Launch(const Problem& p, const attention::Forward& pass)
      : q(2 * p.q_size()),
        k(2 * p.kv_size()),
        v(2 * p.kv_size()),
        o(2 * p.q_size()),
        lse(4 * p.lse_size()),
        workspace(pass.workspace_bytes(p)) {
    for (DeviceBuffer* one : {&o, &lse, &workspace}) one->fill(poison);
    check(cudaDeviceSynchronize());
  }

  // Logits with a standard deviation of 2 at the usual scale: the softmax selects.
  void make_inputs_of(const Problem& p, uint64_t seed) {
    make_inputs(q.data(), p.q_size(), p.dtype, std::sqrt(2.0f), 3 * seed);
    make_inputs(k.data(), p.kv_size(), p.dtype, std::sqrt(2.0f), 3 * seed + 1);
    make_inputs(v.data(), p.kv_size(), p.dtype, 1, 3 * seed + 2);
    check(cudaDeviceSynchronize());
  }

  attention::ForwardArgs args() {
    return {q.data(), k.data(), v.data(), o.data(), static_cast<float*>(lse.data()), workspace.data(), {}};
  }

  DeviceBuffer q, k, v, o, lse, workspace;
};

// The time is the host's, until the whole device is idle, so that other streams are in it.
Timed timed(const Problem& p, const attention::Forward& pass, Launch& launch, uint64_t seed) {
  Timed answer = {};
  try {
    launch.make_inputs_of(p, seed);
    Event start, stop;
    start.record();
    const auto begin = std::chrono::steady_clock::now();
    pass.run(p, launch.args(), nullptr);
    stop.record();
    check(cudaDeviceSynchronize());
    const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - begin;
    answer.device_ms = passed.count(), answer.stream_ms = stop.milliseconds_since(start);
    answer.digest = digest(launch.o.data(), launch.o.bytes(), seed);
    if (pass.writes_lse) answer.digest = digest(launch.lse.data(), launch.lse.bytes(), seed, answer.digest);
  } catch (const std::exception& error) {
    std::snprintf(answer.failed, sizeof answer.failed, "%s", error.what());
  }
  return answer;
}

void send_bytes(const DeviceBuffer& buffer) {
  std::vector<char> bytes(buffer.bytes());
  check(cudaMemcpy(bytes.data(), buffer.data(), bytes.size(), cudaMemcpyDeviceToHost));
  harness::send_all(to_the_judge, bytes.data(), bytes.size());
}

int serve() {
  const attention::Forward& pass = timed_rung().forward;
  std::vector<std::unique_ptr<Launch>> launches;  // all of them stay: no address comes twice
  Problem p;
  uint64_t seed;
  while (harness::receive(to_the_judge, &p, sizeof p)) {
    Ready ready = {pass.writes_lse, {}};
    const std::string refused = attention::unsupported(pass, p);
    std::snprintf(ready.refused, sizeof ready.refused, "%s", refused.c_str());
    if (refused.empty()) launches.push_back(std::make_unique<Launch>(p, pass));
    harness::send_all(to_the_judge, &ready, sizeof ready);
    if (!refused.empty() || !harness::receive(to_the_judge, &seed, sizeof seed)) break;
    const Timed answer = timed(p, pass, *launches.back(), seed);
    harness::send_all(to_the_judge, &answer, sizeof answer);
    if (answer.failed[0]) break;
    send_bytes(launches.back()->o);
    if (pass.writes_lse) send_bytes(launches.back()->lse);
  }
  return 0;
}

}  // namespace
}  // namespace judge

int main() {
  try {
    return judge::serve();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
