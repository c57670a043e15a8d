// A whole problem, dealt to the ranks, solved by them, gathered again and compared with the reference.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/tensors.h"
#include "harness/verdict.h"
#include "strategies.h"

namespace split_kv::parallel {

// The rank's rows of a whole tensor, and the other way round.
template <class T>
std::vector<T> dealt(const std::vector<T>& whole, int matrices, int rows, int width, const Runs& runs);
template <class T>
void put_back(const std::vector<T>& part, std::vector<T>& whole, int matrices, int rows, int width, const Runs& runs);

// The rows of one rank, on its device.
struct LocalTensors {
  LocalTensors(const Setting& setting, bool backward);  // poisoned: NaN
  void upload(const Setting& setting, const harness::HostTensors& whole);

  attention::ForwardArgs forward_args() const;
  attention::BackwardArgs backward_args() const;
  size_t bytes() const;

  harness::DeviceBuffer q, k, v, o, lse, d_o, dq, dk, dv;
};

// What the ranks have made, put together on rank 0; empty elsewhere. The stored bits.
struct Gathered {
  std::vector<uint16_t> o, dq, dk, dv;
  std::vector<float> lse;
  bool operator==(const Gathered&) const = default;
};

struct StrategyName {
  const char* name;
  std::unique_ptr<Strategy> (*make)(const Setting&, Transport&, bool backward);
};
inline constexpr StrategyName strategies[] = {{"ring", ring}, {"all_to_all", all_to_all}};

// Solves it once, forward and, if asked for, backward from what the forward has made.
Gathered solve(const Setting& setting, Strategy& strategy, World& world, Transport& transport,
               const harness::HostTensors& inputs, bool backward);

// On rank 0: the verdicts on the forward and, if there is one, the backward. Elsewhere empty.
std::vector<harness::Verdict> judge(const Setting& setting, const Gathered& made, const harness::HostTensors& inputs,
                                    bool backward);

}  // namespace split_kv::parallel
