// What a block has of compute capability 9.0: its mbarriers, the bulk stores of its threads, the products of its
// warpgroups, and its registers. A Worker has one, which is empty until a kernel uses any of it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <unordered_map>

#include "simt/hopper/bulk_copy.h"
#include "simt/hopper/mbarrier.h"
#include "simt/hopper/setmaxnreg.h"
#include "simt/hopper/wgmma.h"

namespace simt {

class HopperState {
 public:
  void block_begins();
  void block_ends(Worker& worker);   // fails the launch if something is left over
  void thread_ends(Worker& worker);  // the same, of the current thread

  Mbarriers mbarriers;
  std::unordered_map<unsigned, BulkGroups> stores;  // by the thread's number in the block
  Products products;
  RegisterPool registers;
  bool used = false;
};

}  // namespace simt
