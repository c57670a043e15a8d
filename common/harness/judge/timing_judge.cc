// How long does the kernel that was handed in for an exercise take, beside the reference solution's on the same GPU?
//
//   timing_judge --solution=5 --submission=6 --seq_q=8192 --head_dim=64 --causal=0 --times=11
//
// The keys of the problem, how often each is timed, and the sockets of two processes, each of which has one of the
// kernels (timed_host.cc): nothing that was handed in is in this one. Each time, both are told the same new random
// seed, of which they make the inputs; which of them comes first is random. Before each launch the L2 cache is
// overwritten.
//
// There are two times. `device_ms` is what the process itself says, from before the launch until its whole device is
// idle: right, if nobody lies. `apart_ms` is this process's own, from the seed to the answer, with making inputs and a
// digest of the results, the same for both kernels. The results come after that, and have to be those of the digest;
// they are compared with the solution's.
//
// Prints, as JSON, what ./workbook grade judges by: milliseconds, and how many rows were wrong in which way. The first
// time warms up: its results are compared too. Ends with status 3 if the process of the submission has ended or said
// that it failed, which is the line that is printed then.
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "attention/problem.h"
#include "device/cuda_error.h"
#include "harness/device_buffer.h"
#include "harness/judge/timing_protocol.h"
#include "harness/socket.h"

namespace judge {
namespace {

using attention::Problem;
using harness::DeviceBuffer;

struct Options {
  Problem problem;
  int times = 11, solution = -1, submission = -1;
};

Options parse(int argc, char** argv) {
  std::map<std::string, int> given = {{"batch", 1},  {"heads", 1},     {"kv_heads", 0},   {"seq_q", 0},
                                      {"seq_k", 0},  {"head_dim", 64}, {"bf16", 0},       {"causal", 0},
                                      {"times", 11}, {"solution", -1}, {"submission", -1}};
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
  if (const std::string wrong = attention::invalid(p); !wrong.empty()) throw std::runtime_error(wrong);
  return {p, given["times"], given["solution"], given["submission"]};
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

// A process of a kernel, at the other end of a socket.
class Host {
 public:
  Host(int socket, const char* whose) : socket_(socket), whose_(whose) {}

  struct Launch {
    double device_ms = 0, stream_ms = 0, apart_ms = 0;
    std::vector<char> o, lse;  // raw, of the sizes that are expected
  };

  // With memory for the next launch. Where the solution writes no LSE, none is taken.
  void prepare(const Problem& p) {
    Ready ready;
    harness::send_all(socket_, &p, sizeof p);
    receive(&ready, sizeof ready);
    if (ready.refused[0]) fail(ready.refused);
    writes_lse = ready.writes_lse != 0;
  }

  Launch launch(const Problem& p, uint64_t seed, bool with_lse) {
    Launch made;
    Timed timed;
    const auto begin = std::chrono::steady_clock::now();
    harness::send_all(socket_, &seed, sizeof seed);
    receive(&timed, sizeof timed);
    const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - begin;
    if (timed.failed[0]) fail(timed.failed);
    made.apart_ms = passed.count();
    const auto believable = [&](double ms) { return ms > 0 && ms < made.apart_ms ? ms : made.apart_ms; };
    made.device_ms = believable(timed.device_ms), made.stream_ms = believable(timed.stream_ms);
    made.o.resize(2 * p.q_size()), made.lse.resize(with_lse ? 4 * p.lse_size() : 0);
    receive(made.o.data(), made.o.size());
    receive(made.lse.data(), made.lse.size());
    if (digest_of(made, seed) != timed.digest) fail("its results are not those that it had when its time ended");
    return made;
  }

  static void put(const std::vector<char>& bytes, DeviceBuffer& buffer) {
    buffer = DeviceBuffer(bytes.size());
    if (!bytes.empty()) check(cudaMemcpy(buffer.data(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
  }

  bool writes_lse = false;

 private:
  static Digest digest_of(const Launch& made, uint64_t seed) {
    DeviceBuffer buffer;
    put(made.o, buffer);
    Digest found = digest(buffer.data(), buffer.bytes(), seed);
    if (!made.lse.empty()) {
      put(made.lse, buffer);
      found = digest(buffer.data(), buffer.bytes(), seed, found);
    }
    return found;
  }

  void receive(void* to, size_t bytes) {
    if (!harness::receive(socket_, to, bytes)) fail("the process has ended");
  }

  [[noreturn]] void fail(const char* why) {
    std::string line(why, strnlen(why, longest_message));
    std::replace_if(
        line.begin(), line.end(), [](char letter) { return letter < ' ' || letter > '~'; }, '?');
    throw std::runtime_error(whose_ + line);
  }

  int socket_;
  std::string whose_;
};

struct Turn {
  Host::Launch solution, submission;
  DeviceBuffer o;                                // the submission's
  size_t unwritten = 0, earlier = 0, wrong = 0;  // rows
};

std::vector<Turn> timed(const Options& options) {
  const Problem& p = options.problem;
  Host solution(options.solution, "the solution: "), submission(options.submission, "");
  std::random_device random;
  DeviceBuffer flush(on_gpu ? 2 * size_t(attribute(cudaDevAttrL2CacheSize)) : 0);
  std::vector<Turn> turns(size_t(options.times) + 1);
  for (Turn& turn : turns) {
    const uint64_t seed = uint64_t(random()) << 32 | random();
    const auto launch = [&](Host& host) {
      flush.fill(0);
      check(cudaDeviceSynchronize());
      return host.launch(p, seed, solution.writes_lse);
    };
    solution.prepare(p);
    submission.prepare(p);
    if (submission.writes_lse != solution.writes_lse)
      throw std::runtime_error("it does not write what the solution does");
    const bool solution_first = random() % 2;
    if (solution_first) turn.solution = launch(solution);
    turn.submission = launch(submission);
    if (!solution_first) turn.solution = launch(solution);
  }
  return turns;
}

void find_mistakes(const Problem& p, std::vector<Turn>& turns) {
  DeviceBuffer device_rows(p.lse_size()), lse, expected_o, expected_lse;
  auto* const verdicts = static_cast<Row*>(device_rows.data());
  std::vector<Row> rows(p.lse_size());
  const auto count = [&](Row what) { return size_t(std::count(rows.begin(), rows.end(), what)); };
  for (size_t i = 0; i < turns.size(); i++) {
    Turn& turn = turns[i];
    Host::put(turn.submission.o, turn.o);
    Host::put(turn.submission.lse, lse);
    Host::put(turn.solution.o, expected_o);
    Host::put(turn.solution.lse, expected_lse);
    compare(p, {turn.o.data(), static_cast<float*>(lse.data())},
            {expected_o.data(), static_cast<float*>(expected_lse.data())}, verdicts);
    for (size_t before = 0; before < i; before++) find_again(p, turn.o.data(), turns[before].o.data(), verdicts);
    check(cudaMemcpy(rows.data(), verdicts, rows.size(), cudaMemcpyDeviceToHost));
    turn.unwritten = count(Row::unwritten), turn.earlier = count(Row::earlier), turn.wrong = count(Row::wrong);
  }
}

std::string as_json(const Problem& p, const std::vector<Turn>& turns) {
  std::ostringstream text;
  text << "{\"floor_ms\": " << floor_ms(p) << ", \"rows\": " << p.lse_size() << ", \"turns\": [";
  const char* comma = "";
  for (const Turn& turn : turns) {
    text << comma << "\n {\"solution_ms\": " << turn.solution.device_ms
         << ", \"solution_apart_ms\": " << turn.solution.apart_ms << ", \"device_ms\": " << turn.submission.device_ms
         << ", \"apart_ms\": " << turn.submission.apart_ms << ", \"stream_ms\": " << turn.submission.stream_ms
         << ", \"unwritten\": " << turn.unwritten << ", \"earlier\": " << turn.earlier << ", \"wrong\": " << turn.wrong
         << "}";
    comma = ",";
  }
  text << "]}\n";
  return text.str();
}

}  // namespace
}  // namespace judge

int main(int argc, char** argv) {
  prctl(PR_SET_DUMPABLE, 0);
  judge::Options options;
  try {
    options = judge::parse(argc, argv);
    std::vector<judge::Turn> turns = judge::timed(options);
    judge::find_mistakes(options.problem, turns);
    std::fputs(judge::as_json(options.problem, turns).c_str(), stdout);
  } catch (const std::exception& error) {
    std::puts(error.what());
    return 3;
  }
}
