// What kernels did with memory, counted as Nsight Compute counts it. Only of kernels that are traced: at each of their
// loads and stores the compiler calls the engine.
//
// The lanes of a warp that execute the same instruction together make one request. A request to global memory moves
// sectors of 32 bytes; one to shared memory takes wavefronts, of one word from each of the 32 banks of 4 bytes.
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "simt/engine/observer.h"
#include "simt/engine/types.h"

namespace simt {

// cp.async makes a copy_load and a copy_store. A bulk copy is one request, however much it moves; its bytes are those
// of shared memory, its sectors those of global memory, fewer if a part of a box is outside. A wgmma is a request of
// each of the four warps: a warp's bytes are its own rows of A, if they are in shared memory, and a quarter of B, which
// is read once. A multicast copy is one bulk_load, which reads global memory once. What threads do to the shared memory
// of other blocks of their cluster is `distributed`; its units are those of shared memory, and what a GPU counts there
// has not been compared.
enum class Op : std::uint8_t {
  global_load,
  global_store,
  global_atomic,
  copy_load,
  bulk_load,
  bulk_store,
  bulk_add,
  shared_load,
  shared_store,
  shared_atomic,
  copy_store,
  ldmatrix,
  wgmma,
  distributed
};
constexpr int op_count = 14;
constexpr bool is_global(Op op) { return op <= Op::bulk_add; }
const char* name(Op op);

struct Counts {
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;       // that the lanes ask for
  std::uint64_t lane_bytes = 0;  // of one lane: what the requests would be if each were a byte wide
  std::uint64_t units = 0;       // sectors of global memory, wavefronts of shared memory
  std::uint64_t ideal = 0;  // sectors, were the same different bytes consecutive and aligned; wavefronts without bank
                            // conflicts: units - ideal are then the bank conflicts that Nsight Compute counts
  std::uint64_t lines = 0;  // of global memory, 128 bytes each: the load and store unit takes them one at a time
  // Requests to shared memory that would fall away if each were put together with the one before it, because every lane
  // goes on where it ended and up to 16 aligned bytes come together. nvcc may do that, g++ does not.
  std::uint64_t neighbours = 0;

  Counts& operator+=(const Counts& other);
};

struct LineCounts {
  std::string line;    // of the kernel: "03_tiling/3_padded.cu:93"
  std::string within;  // the line of a function inlined there, innermost that is not a header's; empty if none
  Op op;
  Counts counts;
};

// Bytes of global memory, in whole sectors. From level to level, repetitions fall away: what remains at the last must
// come from, or go to, DRAM even with perfect caches.
struct Traffic {
  std::uint64_t warps = 0;   // over all requests
  std::uint64_t blocks = 0;  // different ones of each thread block
  std::uint64_t launch = 0;  // different ones of the whole launch
};

// What only some idea gives, where an exercise teaches it and the other counts are the same without it. Compilers may
// differ in comparisons, so that no test expects a number of them.
struct ForExercises {
  std::uint64_t votes_alone = 0;  // and matches, and reductions, of warps none of whose products by wgmma is on its way
  std::uint64_t flops_out_of_turn = 0;    // of wgmma: a warp has its turn from a wait at a named barrier to an arrival
                                          // at one that it does not wait at
  std::uint64_t flops_ended_in_turn = 0;  // of wgmma that a warp waits for while it has its turn
  // That threads write while no product of their warp by wgmma is on its way; and before their warp has arrived at an
  // mbarrier, since a product of its ended: so long it keeps from others what the product has read.
  std::uint64_t bytes_alone = 0, bytes_before_release = 0;
  std::uint64_t waits_for_all_products = 0;  // by wgmma, of a warp: then it has none on its way
  std::uint64_t stores_waited_out = 0;       // bulk stores and adds that are waited for until they have written
  std::uint64_t accesses_of_a_thread = 0;  // the most that one thread of a block makes, to global and to shared memory
  std::uint64_t flops_of_a_block = 0;      // the most matrix_flops that one block has
  std::uint64_t copies_alone = 0;  // to shared memory, that land before a product of their block has run beside them
  // In kernels that are compiled for it, workbook_chapter(COMPARISONS): what threads compare after a vote of their
  // warp, before its next product by mma.
  std::uint64_t comparisons_after_votes = 0;
  std::uint64_t bytes_after_votes = 0;  // that threads write in between, to whatever memory and to arrays of their own
};

struct LaunchCounts {
  std::string kernel;
  dim3 grid, block, cluster;
  std::uint64_t dynamic_shared_bytes = 0;
  std::uint64_t barriers = 0;      // passed, by all blocks together
  std::uint64_t shuffles = 0;      // of a warp
  std::uint64_t matrix_flops = 0;  // of mma and wgmma
  // Those that start while no copy to shared memory is on its way in the block, by cp.async or bulk: all have been
  // waited for. In a launch that has some. None between two barriers of the block from one to the other of which a warp
  // multiplies beside copies of its own: the other warps can do so beside these, too, whichever of them runs first.
  std::optional<std::uint64_t> matrix_flops_alone;
  ForExercises for_exercises;
  Traffic read, written;
  std::array<Counts, op_count> totals;
  std::vector<LineCounts> lines;  // those with the most units first
};

// Between the two, every launch is counted; trace_end() returns those that succeeded, in their order. They nest: a
// launch counts for each pair around it.
void trace_begin();
std::vector<LaunchCounts> trace_end();

// A launch that another process has counted, as one more of the innermost pair.
void trace_add(LaunchCounts launch);

class Counter* trace_counter();  // of the innermost pair; null outside

// A JSON array, an object for each launch.
void write_json(std::ostream& out, const std::vector<LaunchCounts>& launches);

}  // namespace simt
