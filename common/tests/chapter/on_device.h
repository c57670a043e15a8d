// What differs between testing on the SIMT engine and on a GPU.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "harness/verdict.h"
#include "tests/chapter/cases.h"

namespace chapter_suite {

// Skips its tests, loudly (see tests/main.cc), where there is neither the engine nor a GPU.
class OnDevice : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "needs a GPU";
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

// Captures the launches in a CUDA graph, replays it, and compares. The engine has no graphs: nothing to test there.
inline std::string solve_in_a_graph(const attention::Forward& pass, const Case& c) {
#ifdef WORKBOOK_SIMT
  (void)pass, (void)c;
  return "";
#else
  const auto inputs = harness::make_inputs(c.problem, c.inputs, 7);
  const harness::Reference reference(c.problem, inputs, false);
  attention::Forward replayed = pass;
  static const attention::Forward* captured;  // Pass holds plain functions, which cannot carry it along
  captured = &pass;
  replayed.run = [](const attention::Problem& p, const attention::ForwardArgs& args, cudaStream_t) {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    captured->run(p, args, stream);
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&executable, graph, 0));
    check(cudaGraphLaunch(executable, stream));
    check(cudaStreamSynchronize(stream));
    check(cudaGraphExecDestroy(executable));
    check(cudaGraphDestroy(graph));
    check(cudaStreamDestroy(stream));
  };
  const harness::Verdict verdict = harness::run_forward(replayed, c.problem, inputs, reference);
  return verdict.passed() ? "" : verdict.first_wrong();
#endif
}

}  // namespace chapter_suite
