// Where a pipeline is in its ring of buffers (its stages), each with mbarriers `full` and `empty` (device/mbarrier.h).
// Producer and consumers have a Ring each and advance it alike:
//
//   producer   mbarrier_wait(&empty[ring.place], ring.parity ^ 1); start to fill the buffer; ring.advance();
//   consumer   mbarrier_wait(&full[ring.place], ring.parity);      use it, arrive at `empty`; ring.advance();
//
// The producer's parity is the other one because new buffers are empty: a wait for the phase before the first returns.
#pragma once

#include "device/cuda.h"

template <int places>
struct Ring {
  int place = 0, parity = 0;  // the buffer that is next, and the parity of the phase in which it is filled
  __device__ void advance() {
    if (++place == places) place = 0, parity ^= 1;
  }
};
