// How long kernels may take: SIMT_SECONDS says how many seconds of processor time all launches of a program may take
// together, however busy the machine is. A launch that would take longer ends the program before it does. Where any
// time is allowed, the first launch that will take more than a minute says so, and goes on.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>

namespace simt {

struct Launch;

double allowed_seconds();    // SIMT_SECONDS; 0 if any
double processor_seconds();  // that this process has used, on all its OS threads

// Of one launch: is there time for all its blocks? Asked after each of them, and, while none has ended, by the
// Watchdog.
class Pace {
 public:
  Pace();
  ~Pace();
  Pace(const Pace&) = delete;
  Pace& operator=(const Pace&) = delete;

  // End the program, with a message, if it seems that there is not.
  void block_done(const Launch& launch);
  void look(const Launch& launch);
  // So many seconds went into what a launch does once, and not for each block: they say nothing of those to come.
  void once(double seconds);

 private:
  void judge(const Launch& launch);
  void foretell(const Launch& launch);

  double begin_;  // processor_seconds()
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;  // for what follows
  std::uint64_t done_ = 0;
  double once_ = 0;
  double look_at_;  // seconds: when to calculate again
};

}  // namespace simt
