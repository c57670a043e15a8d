// What differs between testing on the SIMT engine and on a GPU.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "harness/verdict.h"
#include "tests/chapter/cases.h"
#include "tests/gpu_required.h"

namespace chapter_suite {

// Where there is neither the engine nor a GPU its tests are skipped, which tests/main.cc counts, or fail. (They have
// to fail here: CTest takes a skipped test for one that is all right, whatever the program's exit status.)
class OnDevice : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0) return;
    if (gpu_required()) FAIL() << "REQUIRE_GPU=1, and there is no GPU";
    GTEST_SKIP() << "needs a GPU";
  }
};

// Calls `test` once for every schedule order of the engine. On a GPU, which has its own mind, twice.
inline void for_every_order(const std::function<void(const std::string&)>& test) {
#ifdef WORKBOOK_SIMT
  const simt::Schedule before = simt::schedule();
  for (const auto& [name, order, seed] : {std::tuple{"forward", simt::Order::forward, 0u},
                                          std::tuple{"reverse", simt::Order::reverse, 0u},
                                          std::tuple{"shuffled:1", simt::Order::shuffled, 1u},
                                          std::tuple{"shuffled:2", simt::Order::shuffled, 2u}}) {
    simt::Schedule schedule = before;
    schedule.order = order;
    schedule.seed = seed;
    simt::set_schedule(schedule);
    test(name);
  }
  simt::set_schedule(before);
#else
  for (const char* name : {"the GPU's", "the GPU's, again"}) test(name);
#endif
}

// Runs the pass `times` times in every order: empty, or which run differed in at least one bit from the first.
// (In one order the engine always does the same, and would find any kernel deterministic.)
template <class Args>
std::string differs_from_run_to_run(const attention::Pass<Args>& pass, const Case& c, int times) {
  std::vector<uint16_t> first;
  std::string difference;
  for_every_order([&](const std::string& order) {
    if (!difference.empty()) return;
    const auto runs = outputs(pass, c, times);
    if (first.empty()) first = runs[0];
    for (int i = 0; i < times && difference.empty(); i++)
      if (runs[i] != first) difference = "run " + std::to_string(i) + " in order " + order + " differs from the first";
  });
  return difference;
}

// The same pass, launched twice in the same workspace. One at a time: Pass holds plain functions, which cannot carry the
// first one along.
template <class Args>
attention::Pass<Args> twice(const attention::Pass<Args>& pass) {
  static const attention::Pass<Args>* once;
  once = &pass;
  attention::Pass<Args> repeated = pass;
  repeated.run = [](const attention::Problem& p, const Args& args, cudaStream_t stream) {
    for (int i = 0; i < 2; i++) once->run(p, args, stream);
  };
  return repeated;
}

// As solve(), with the launches captured in a CUDA graph that is then replayed. The engine has no graphs.
template <class Args>
std::string solve_in_a_graph(const attention::Pass<Args>& pass, const Case& c) {
#ifdef WORKBOOK_SIMT
  (void)pass, (void)c;
  return "the SIMT engine has no CUDA graphs";
#else
  static const attention::Pass<Args>* captured;  // Pass holds plain functions, which cannot carry it along
  captured = &pass;
  attention::Pass<Args> replayed = pass;
  replayed.run = [](const attention::Problem& p, const Args& args, cudaStream_t) {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    captured->run(p, args, stream);
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&executable, graph, 0));
    check(cudaDeviceSynchronize());  // the inputs are there: this stream does not wait for the one that brought them
    for (int i = 0; i < 2; i++) check(cudaGraphLaunch(executable, stream));  // the second one after the first
    check(cudaStreamSynchronize(stream));
    check(cudaGraphExecDestroy(executable));
    check(cudaGraphDestroy(graph));
    check(cudaStreamDestroy(stream));
  };
  return solve(replayed, c);
#endif
}

}  // namespace chapter_suite
