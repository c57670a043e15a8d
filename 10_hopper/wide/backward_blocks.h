// Chapter 10, head dims above 128, backward: what blocks with keys and blocks with queries have in common.
#pragma once

#include "device/mbarrier.h"
#include "device/warpgroup_backward.h"

namespace hopper::wide {

using attention::Problem;
using namespace warpgroup_backward;

constexpr int consumers = 2;
constexpr int rows = wgmma_rows;  // of every tile: 64 keys, or queries

// This warp no longer needs the buffer that the mbarrier guards, or has filled it.
__device__ inline void arrive_warp(Mbarrier& mbarrier) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) mbarrier_arrive(&mbarrier);
}

}  // namespace hopper::wide
