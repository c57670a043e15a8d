// What a program that the user wrote tells ./workbook when it ends, without knowing of it: the environment variable
// SIMT_REPORT names a file for its launches (counted, in the trace preset) and their failures, as JSON. SIMT_SECONDS is
// how long kernels may take together; a launch that would take longer ends the program before it does.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace simt {

struct Launch;

void begin_report();  // before the first launch
void note_failed_launch(const std::string& message);
std::vector<std::string> failed_launches();  // all that were noted

double allowed_seconds();  // SIMT_SECONDS; 0 if any

// Of one launch: is there time for all its blocks? Asked after each of them, and, while none has ended, by the
// Overseer.
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

  std::chrono::steady_clock::time_point begin_;
  std::mutex mutex_;  // for what follows
  std::uint64_t done_ = 0;
  double once_ = 0;
  double look_at_;  // seconds: when to calculate again
};

}  // namespace simt
