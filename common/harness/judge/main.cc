// How long does the kernel that was handed in for an exercise take, beside the reference solution's on the same GPU?
//
//   judge_ID --seq_q=8192 --head_dim=64 --causal=0 --times=11      (keys of the problem, and how often each is timed)
//
// Each time, both kernels get the same inputs, made of a new random seed, and each has output buffers of its own that
// hold NaN. Which of them comes first is random: who would copy the other one's results finds none half of the time.
// Before each launch the L2 cache is overwritten. A time is the host's, from before the launch until the whole device
// is idle, so that other streams are in it. After all have been timed, the inputs are made again, in new memory, the
// reference solution is run once more, and what the other one wrote while it was timed is compared with that.
//
// Says, or prints, as JSON what ./workbook grade judges by: milliseconds, and how many rows were wrong in which way.
// The first time warms up: its results are compared too.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "attention/rung.h"
#include "harness/device_buffer.h"
#include "harness/judge/grader_channel.h"
#include "harness/judge/rows.h"

const attention::Rung& solution();    // both generated for each exercise: rungs.cc.in
const attention::Rung& submission();  // what was handed in

namespace judge {
namespace {

using attention::Problem;
using harness::DeviceBuffer;
using harness::Event;

constexpr int poison = 0xff;  // NaN in every type

struct Options {
  Problem problem;
  int times = 11;
};

Options parse(int argc, char** argv) {
  std::map<std::string, int> given = {{"batch", 1},     {"heads", 1}, {"kv_heads", 0}, {"seq_q", 0}, {"seq_k", 0},
                                      {"head_dim", 64}, {"bf16", 0},  {"causal", 0},   {"times", 11}};
  for (int i = 1; i < argc; i++) {
    const std::string flag = argv[i];
    const size_t equals = flag.find('=');
    if (!flag.starts_with("--") || equals == std::string::npos || !given.contains(flag.substr(2, equals - 2)))
      throw std::runtime_error("unknown or malformed flag " + flag);
    given[flag.substr(2, equals - 2)] = std::atoi(flag.c_str() + equals + 1);
  }
  Problem p;
  p.batch = given["batch"], p.heads = given["heads"], p.kv_heads = given["kv_heads"] ? given["kv_heads"] : p.heads;
  p.seq_q = given["seq_q"], p.seq_k = given["seq_k"] ? given["seq_k"] : p.seq_q, p.head_dim = given["head_dim"];
  p.dtype = given["bf16"] ? attention::DType::bf16 : attention::DType::fp16;
  p.mask = given["causal"] ? attention::Mask::causal : attention::Mask::none;
  p.scale = attention::default_scale(p.head_dim);
  for (const std::string& wrong : {attention::invalid(p), solution().forward.unsupported(p)})
    if (!wrong.empty()) throw std::runtime_error(wrong);
  return {p, given["times"]};
}

int attribute(cudaDeviceAttr which) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, 0));
  return value;
}

// Nothing can be faster: all products at the rate of all tensor cores, or all bytes once at that of the memory.
// Products of fp16 with fp32 sums in a multiprocessor's cycle as NVIDIA's architecture papers have them, GPUs that are
// not known as fast as the fastest. 0 on the engine.
double floor_ms(const Problem& p) {
  if (!on_gpu) return 0;
  const int major = attribute(cudaDevAttrComputeCapabilityMajor), minor = attribute(cudaDevAttrComputeCapabilityMinor);
  const std::map<int, double> flops_of_a_cycle = {{75, 1024}, {80, 2048}, {86, 1024},
                                                  {89, 1024}, {90, 4096}, {120, 1024}};
  const auto known = flops_of_a_cycle.find(10 * major + minor);
  const double of_a_cycle = known == flops_of_a_cycle.end() ? 8192 : known->second;
  const double flop_rate = of_a_cycle * attribute(cudaDevAttrMultiProcessorCount) * attribute(cudaDevAttrClockRate);
  const double byte_rate = 2.0 * attribute(cudaDevAttrMemoryClockRate) * attribute(cudaDevAttrGlobalMemoryBusWidth) / 8;
  const double bytes = 4.0 * p.q_size() + 4.0 * p.kv_size() + 4.0 * p.lse_size();
  return std::max(attention::flops(p, false) / flop_rate, bytes / byte_rate);  // the clocks are in kHz
}

struct Inputs {
  explicit Inputs(const Problem& p) : q(2 * p.q_size()), k(2 * p.kv_size()), v(2 * p.kv_size()) {}

  // Logits with a standard deviation of 2 at the usual scale: the softmax selects.
  void make(const Problem& p, uint64_t seed) {
    make_inputs(q.data(), p.q_size(), p.dtype, std::sqrt(2.0f), 3 * seed);
    make_inputs(k.data(), p.kv_size(), p.dtype, std::sqrt(2.0f), 3 * seed + 1);
    make_inputs(v.data(), p.kv_size(), p.dtype, 1, 3 * seed + 2);
  }

  DeviceBuffer q, k, v;
};

struct Outputs {
  Outputs(const Problem& p, const attention::Forward& pass)
      : o(2 * p.q_size()), lse(4 * p.lse_size()), workspace(pass.workspace_bytes(p)), writes_lse(pass.writes_lse) {}

  void clear() {
    for (DeviceBuffer* one : {&o, &lse, &workspace}) one->fill(poison);
  }
  attention::ForwardArgs args(const Inputs& in) const {
    return {in.q.data(), in.k.data(), in.v.data(), o.data(), static_cast<float*>(lse.data()), workspace.data(), {}};
  }
  Results results() const { return {o.data(), writes_lse ? static_cast<const float*>(lse.data()) : nullptr}; }

  DeviceBuffer o, lse, workspace;
  bool writes_lse;
};

struct Time {
  double device_ms = 0;  // until the device is idle
  double stream_ms = 0;  // until the stream that the launch was given is
};

class Clock {
 public:
  Clock() : flush_(on_gpu ? 2 * size_t(attribute(cudaDevAttrL2CacheSize)) : 0) {}

  Time time(const Problem& p, const attention::Forward& pass, const attention::ForwardArgs& args) {
    flush_.fill(0);
    check(cudaDeviceSynchronize());
    start_.record();
    const auto begin = std::chrono::steady_clock::now();
    pass.run(p, args, nullptr);
    stop_.record();
    check(cudaDeviceSynchronize());
    const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - begin;
    return {passed.count(), stop_.milliseconds_since(start_)};
  }

 private:
  DeviceBuffer flush_;
  Event start_, stop_;
};

struct Turn {
  explicit Turn(const Problem& p)
      : inputs(p), of_solution(p, solution().forward), of_submission(p, submission().forward) {}

  uint64_t seed = 0;
  Inputs inputs;
  Outputs of_solution, of_submission;
  Time solution_time, submission_time;
  size_t unwritten = 0, earlier = 0, wrong = 0;  // rows
};

std::vector<Turn> timed(const Problem& p, int times) {
  std::random_device random;
  Clock clock;
  std::vector<Turn> turns;
  for (int i = 0; i <= times; i++) turns.emplace_back(p);  // all at once: no address comes twice
  for (Turn& turn : turns) {
    turn.seed = uint64_t(random()) << 32 | random();
    turn.inputs.make(p, turn.seed);
    turn.of_solution.clear();
    turn.of_submission.clear();
    const auto time_solution = [&] {
      turn.solution_time = clock.time(p, solution().forward, turn.of_solution.args(turn.inputs));
    };
    const bool solution_first = random() % 2;
    if (solution_first) time_solution();
    turn.submission_time = clock.time(p, submission().forward, turn.of_submission.args(turn.inputs));
    if (!solution_first) time_solution();
  }
  return turns;
}

void find_mistakes(const Problem& p, std::vector<Turn>& turns) {
  Inputs inputs(p);
  Outputs expected(p, solution().forward);
  DeviceBuffer device_rows(p.lse_size());
  auto* const verdicts = static_cast<Row*>(device_rows.data());
  std::vector<Row> rows(p.lse_size());
  const auto count = [&](Row what) { return size_t(std::count(rows.begin(), rows.end(), what)); };
  for (size_t i = 0; i < turns.size(); i++) {
    Turn& turn = turns[i];
    inputs.make(p, turn.seed);
    expected.clear();
    solution().forward.run(p, expected.args(inputs), nullptr);
    compare(p, turn.of_submission.results(), expected.results(), verdicts);
    for (size_t before = 0; before < i; before++)
      find_again(p, turn.of_submission.o.data(), turns[before].of_submission.o.data(), verdicts);
    check(cudaMemcpy(rows.data(), verdicts, rows.size(), cudaMemcpyDeviceToHost));
    turn.unwritten = count(Row::unwritten), turn.earlier = count(Row::earlier), turn.wrong = count(Row::wrong);
  }
}

std::string as_json(const Problem& p, const std::vector<Turn>& turns) {
  std::ostringstream text;
  text << "{\"floor_ms\": " << floor_ms(p) << ", \"rows\": " << p.lse_size() << ", \"turns\": [";
  const char* comma = "";
  for (const Turn& turn : turns) {
    text << comma << "\n {\"solution_ms\": " << turn.solution_time.device_ms
         << ", \"device_ms\": " << turn.submission_time.device_ms
         << ", \"stream_ms\": " << turn.submission_time.stream_ms << ", \"unwritten\": " << turn.unwritten
         << ", \"earlier\": " << turn.earlier << ", \"wrong\": " << turn.wrong << "}";
    comma = ",";
  }
  text << "]}\n";
  return text.str();
}

}  // namespace
}  // namespace judge

int main(int argc, char** argv) {
  try {
    const judge::GraderChannel grader;
    const judge::Options options = judge::parse(argc, argv);
    std::vector<judge::Turn> turns = judge::timed(options.problem, options.times);
    judge::find_mistakes(options.problem, turns);
    const std::string found = judge::as_json(options.problem, turns);
    if (grader.is_open())
      grader.send(found);
    else
      std::fputs(found.c_str(), stdout);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
