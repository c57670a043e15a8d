// What this GPU can do: the experiments of this directory, each checked before it is timed, and with every time again.
//
// Takes --check (run each once, do not time) and every flag of Google Benchmark. Exit status: 0 if all results were
// right, 1 if not, 2 if a flag is not understood.
#include <benchmark/benchmark.h>

#include <iostream>
#include <stdexcept>
#include <string_view>

#include "harness/timing.h"
#include "microbenchmarks/experiment.h"

namespace machine {
namespace {

std::vector<Experiment> all() {
  std::vector<Experiment> experiments;
  for (const auto& file : {latency, bandwidth, branch, accumulate, split, products, eight_bits})
    for (Experiment& experiment : file()) experiments.push_back(std::move(experiment));
  return experiments;
}

int check_all() {
  bool passed = true;
  for (const Experiment& experiment : all()) {
    const Run run = experiment.prepare()();
    std::cout << experiment.name << ": " << (run.wrong.empty() ? "PASS" : "FAIL  " + run.wrong) << std::endl;
    passed = passed && run.wrong.empty();
  }
  return passed ? 0 : 1;
}

// The runs of the experiment at hand: repetitions share its memory, which nobody else needs at that time.
class Prepared {
 public:
  Run run(const Experiment& experiment) {
    if (name_ != experiment.name) {
      runs_ = nullptr;  // gives back the memory of the one before
      runs_ = experiment.prepare();
      name_ = experiment.name;
      checked();  // the first run warms up
    }
    return checked();
  }

 private:
  Run checked() {
    Run run = runs_();
    if (!run.wrong.empty()) throw std::runtime_error(name_ + ": " + run.wrong);
    return run;
  }

  std::string name_;
  std::function<Run()> runs_;
};

void add_context(const harness::Device& device) {
  cudaDeviceProp gpu;
  check(cudaGetDeviceProperties(&gpu, 0));
  benchmark::AddCustomContext("device", device.name);
  benchmark::AddCustomContext("sm_clock_max_mhz", std::to_string(device.sm_clock_mhz));
  for (const auto& [what, value] :
       std::map<std::string, size_t>{{"multiprocessors", gpu.multiProcessorCount},
                                     {"registers_of_multiprocessor", gpu.regsPerMultiprocessor},
                                     {"shared_bytes_of_multiprocessor", gpu.sharedMemPerMultiprocessor},
                                     {"shared_bytes_of_block", gpu.sharedMemPerBlockOptin},
                                     {"threads_of_multiprocessor", gpu.maxThreadsPerMultiProcessor},
                                     {"l2_bytes", gpu.l2CacheSize},
                                     {"dram_bytes", gpu.totalGlobalMem}})
    benchmark::AddCustomContext(what, std::to_string(value));
}

int main(int argc, char** argv) {
  const bool check_only = argc == 2 && std::string_view(argv[1]) == "--check";
  if (!check_only) benchmark::Initialize(&argc, argv);
  if (!check_only && benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const harness::Device device = harness::current_device();
  if (check_only) return check_all();
  add_context(device);
  Prepared prepared;
  for (const Experiment& experiment : all())
    benchmark::RegisterBenchmark(experiment.name.c_str(),
                                 [&prepared, experiment](benchmark::State& state) {
                                   for (auto _ : state) {
                                     const Run run = prepared.run(experiment);
                                     state.SetIterationTime(run.seconds);
                                     for (const auto& [what, value] : run.counters) state.counters[what] = value;
                                   }
                                 })
        ->UseManualTime()
        ->Iterations(1)
        ->Repetitions(on_gpu ? 5 : 1);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace machine

int main(int argc, char** argv) {
  try {
    return machine::main(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "microbenchmarks: " << error.what() << "\n";
    return 1;
  }
}
