// What main.cc, who judges, and timed_host.cc, in whose process a kernel is timed, say to each other. Both ends are
// built by the same compiler from the same headers, and what comes back is raw numbers of sizes that are known before.
//
//   judge  Problem                                    memory for one launch, with NaN in all outputs
//   host   Ready
//   judge  the seed                                   from here to what follows it is timed
//   host   Timed, then the bytes of O and of LSE      made of the seed's inputs
//
// and so on until the judge closes the socket. Inputs are made of a seed that nobody knows before the time begins; a
// result that is made after it has ended would not have the digest that was sent with it.
#pragma once

#include <cstdint>

#include "attention/problem.h"
#include "harness/judge/rows.h"

namespace judge {

constexpr int longest_message = 256;

struct Ready {
  uint32_t writes_lse;
  char refused[longest_message];  // why the problem cannot be had; empty
};

struct Timed {
  double device_ms;  // until the device was idle, by the host's clock
  double stream_ms;  // until the stream that the launch was given was
  Digest digest;
  char failed[longest_message];  // why it did; empty
};

}  // namespace judge
