// What every thread block of a launch did, in its order, for a page that replays it (./workbook walk). Only
// of kernels that are traced.
//
// A step of a block goes from one of its barriers to the next, or to where its threads name what they do next
// (device/watch.h). Within a step CUDA leaves the order of the threads open,
// so a step says what they did together: which rows of which tensor they touched, and how many bytes were moved. Where
// warps wait at mbarriers in between, each party of them has steps of its own, from one of its waits to the next: the
// whole block if all its warps wait for the same, else the warps of a warpgroup that do.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "simt/engine/types.h"

namespace simt {

// A matrix in global memory, by whose rows its accesses are told.
struct Tensor {
  std::string name;
  const void* data;
  std::size_t rows, row_bytes;
};

enum class Move : std::uint8_t { read, written, started, landed };  // the last two: asynchronous copies
constexpr int move_count = 4;
const char* name(Move move);

using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;  // first and last row of each, ascending

// Bytes of a row, from the first of them to behind the last.
struct Extent {
  std::size_t begin = ~std::size_t{0}, end = 0;

  bool operator==(const Extent&) const = default;
  void add(const Extent& other) { begin = std::min(begin, other.begin), end = std::max(end, other.end); }
};

struct RowsMoved {
  std::size_t tensor;  // its place among those given to walk_begin()
  Move move;
  Ranges rows;
  Extent of_row;
};

// Bytes and operations of one step; or of all until now, and then a step's are the difference of two.
struct Work {
  std::uint64_t asked = 0;   // bytes of global memory in whole sectors: of all requests, which go through L2,
  std::uint64_t block = 0;   // those that this block had not touched before,
  std::uint64_t launch = 0;  // and those that no block of the launch had
  std::uint64_t shared = 0;  // bytes of shared memory that lanes ask for
  std::uint64_t matrix_flops = 0;
  std::uint64_t shuffles = 0;

  bool operator==(const Work&) const = default;
  Work& operator+=(const Work& b) {
    asked += b.asked;
    block += b.block;
    launch += b.launch;
    shared += b.shared;
    matrix_flops += b.matrix_flops;
    shuffles += b.shuffles;
    return *this;
  }
  friend Work operator-(Work a, const Work& b) {
    return {a.asked - b.asked,
            a.block - b.block,
            a.launch - b.launch,
            a.shared - b.shared,
            a.matrix_flops - b.matrix_flops,
            a.shuffles - b.shuffles};
  }
};

// What a party waited for. A gate is an mbarrier, by its index in the block, or a named barrier, by its number with a
// minus.
struct Waited {
  int gate;
  unsigned phase;
  std::string line;             // of the kernel
  std::set<std::size_t> steps;  // of the block, which had to come before
};

// Rows of a tensor in a place of shared memory that bulk copies fill.
struct InPlace {
  unsigned place;
  std::size_t tensor;
  Ranges rows;
};
struct Filled : InPlace {
  int gate;  // and its phase, for which those wait that want to read them
  unsigned phase;
};

// A number that a kernel gave to watch(), and which thread of its block did, with the return address of the call; of a
// sum, one of the threads that had a share.
struct Shown {
  float value = 0;
  unsigned thread = 0;
  const void* pc = nullptr;
  std::vector<Shown> others = {};  // where several threads show the same element: what each of the others gave last
};
// Those of a step: by name, then by row and column.
using Elements = std::map<std::pair<std::int64_t, std::int64_t>, Shown>;
using Watched = std::map<std::string, Elements>;

// Rows of two tensors that a wgmma multiplies with one another, both from such places: those of A, those of B.
struct Multiplied {
  std::size_t a, b;  // tensors
  Ranges a_rows, b_rows;
};

struct Step {
  std::optional<std::string> until;  // the line of the barrier that ends it, empty if the block ends; if either does
  std::optional<std::pair<unsigned, unsigned>> by;  // first and last warp of the party; not of the whole block
  std::size_t at = 0;                               // how many steps have to come before it, one after the other
  std::vector<Waited> after;                        // for what it waits first
  std::set<int> arrives;                            // gates
  std::vector<RowsMoved> moved;
  std::vector<Filled> fills;  // by copies that start
  std::vector<InPlace> uses;  // rows that are read from there
  std::vector<Multiplied> products;
  std::set<unsigned> writes, sends;  // places to which threads write, and from which bulk copies start
  std::optional<std::size_t> name;   // among those of the launch
  Work work;
  Watched watched;
};

struct BlockWalk {
  uint3 index;
  std::vector<Step> steps;
};

struct LaunchWalk {
  std::string kernel;
  dim3 grid, block, cluster;
  std::uint64_t dynamic_shared_bytes = 0;
  std::vector<std::pair<std::string, std::string>> names;   // that the kernel gives to its steps, and the lines that do
  std::vector<std::string> mbarriers;                       // by index: the line that makes it
  std::vector<std::pair<std::size_t, std::size_t>> places;  // that bulk copies fill: offset in shared memory, bytes
  std::vector<BlockWalk> blocks;                            // in the order in which they ran
};

// Between the two, every launch is recorded, with the work of its steps if launches are counted, too (trace_begin());
// walk_end() returns those that succeeded, in their order.
void walk_begin(std::vector<Tensor> tensors);
std::vector<LaunchWalk> walk_end();

// A JSON array, an object for each launch.
void write_json(std::ostream& out, const std::vector<Tensor>& tensors, const std::vector<LaunchWalk>& launches);

}  // namespace simt
