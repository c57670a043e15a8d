// From what the warps of a block did, each from wait to wait, to the steps of the block.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "simt/trace/walk.h"

namespace simt {

using RowList = std::vector<std::size_t>;  // in any order, perhaps more than once
using PlaceAndTensor = std::pair<unsigned, std::size_t>;

// What a warp did between two of its waits.
struct WarpStep {
  std::uint64_t number = 0;  // in the order in which they began
  bool is_marked = false;    // it begins where its threads name it; else
  int gate = 0;              // for which they waited before, unless it is the first
  unsigned phase = 0;
  std::string line;
  std::optional<std::size_t> name;  // in effect
  std::set<int> arrives;
  struct Moved {
    RowList rows;
    Extent of_row;
  };
  std::map<std::pair<std::size_t, Move>, Moved> moved;  // by tensor
  struct Fill {
    int gate;
    unsigned phase;
    RowList rows;
  };
  std::map<PlaceAndTensor, Fill> fills;
  std::map<PlaceAndTensor, RowList> uses;
  std::map<std::pair<std::size_t, std::size_t>, std::pair<RowList, RowList>> products;  // by the tensors of A and B
  std::set<unsigned> writes, sends;
  Work work;
  Watched watched;
  std::map<std::string, std::map<std::pair<std::int64_t, std::int64_t>, std::map<unsigned, Shown>>> shares;
};

// Adds to what has been shown until now.
void show(Elements& elements, std::pair<std::int64_t, std::int64_t> place, const Shown& shown);

struct WarpSteps {
  std::vector<WarpStep> steps;
  bool waits_at_mbarriers = false;
};

// Of a gate: who came, and what its copies bring.
struct Phase {
  struct Arrival {
    std::size_t barriers;  // after so many of the block
    unsigned warp;
    std::size_t step;
    auto operator<=>(const Arrival&) const = default;
  };
  std::set<Arrival> arrivals;
  std::map<std::size_t, WarpStep::Moved> copied;  // by tensor
};
using Gates = std::map<int, std::vector<Phase>>;

// Of a block, until now.
struct StepsSoFar {
  std::size_t barriers = 0;                      // of the block
  std::size_t steps = 0, at = 0;                 // how many there are, and in the longest chain of them
  std::map<Phase::Arrival, std::size_t> became;  // which step of the block a warp's step is part of
};

// The steps since the last barrier of the block, in an order in which they could have happened.
std::vector<Step> steps_of(const std::vector<WarpSteps>& warps, const Gates& gates, StepsSoFar& so_far);

}  // namespace simt
