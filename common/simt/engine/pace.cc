#include "simt/engine/pace.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "simt/engine/diagnosis.h"
#include "simt/engine/engine.h"
#include "simt/engine/findings.h"

namespace simt {
namespace {

double used = 0;          // seconds, by the launches so far
std::uint64_t ended = 0;  // those launches

std::string duration(double seconds) {
  char text[32];
  if (seconds < 100)
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  else if (seconds < 6000)
    std::snprintf(text, sizeof text, "%.0f min", seconds / 60);
  else
    std::snprintf(text, sizeof text, "%.0f h", seconds / 3600);
  return text;
}

// "31 x 32": a grid of about the same shape with at most so many blocks.
std::string smaller_grid(const dim3& grid, std::uint64_t most) {
  std::array<double, 3> extents = {double(grid.x), double(grid.y), double(grid.z)};
  const auto blocks = [&] { return extents[0] * extents[1] * extents[2]; };
  const auto dimensions = std::count_if(extents.begin(), extents.end(), [](double extent) { return extent > 1; });
  const double factor = std::pow(static_cast<double>(most) / blocks(), 1.0 / static_cast<double>(dimensions));
  for (double& extent : extents) extent = std::max(1.0, std::floor(extent * factor));
  while (blocks() > static_cast<double>(most)) *std::max_element(extents.begin(), extents.end()) -= 1;
  std::string text;
  for (int i = 0; i < (grid.z > 1 ? 3 : 2); ++i)
    text += (i > 0 ? " x " : "") + std::to_string(static_cast<std::uint64_t>(extents[i]));
  return text;
}

std::atomic<bool> foretold = false;  // that a launch takes long

std::string blocks_of(const Launch& launch) {
  const dim3 block = launch.block;
  return std::to_string(launch.blocks) + (launch.blocks == 1 ? " block of " : " blocks of ") +
         std::to_string(block.x * block.y * block.z) + " threads";
}

}  // namespace

double processor_seconds() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double allowed_seconds() {
  static const double seconds = [] {
    const char* value = std::getenv("SIMT_SECONDS");
    return value != nullptr ? std::atof(value) : 0;
  }();
  return seconds;
}

// Before that nothing is known: a launch's first block takes longer than the others.
constexpr double least_sample = 0.2;

Pace::Pace() : begin_(processor_seconds()), look_at_(least_sample) {}

Pace::~Pace() {
  used += processor_seconds() - begin_;
  ++ended;
}

void Pace::block_done(const Launch& launch) {
  const bool any_time = allowed_seconds() == 0;
  if (any_time && (foretold || !watching())) return;
  const std::lock_guard lock(mutex_);
  ++done_;
  any_time ? foretell(launch) : judge(launch);
}

void Pace::once(double seconds) {
  const std::lock_guard lock(mutex_);
  once_ += seconds;
}

void Pace::look(const Launch& launch) {
  const bool any_time = allowed_seconds() == 0;
  if (any_time && (foretold || !watching())) return;
  const std::lock_guard lock(mutex_);
  if (done_ == 0) any_time ? foretell(launch) : judge(launch);
}

// In time of the clock, for somebody who waits.
void Pace::foretell(const Launch& launch) {
  constexpr double sample = 2, long_time = 60;  // seconds
  const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  if (passed < (done_ > 0 ? sample : long_time)) return;
  const double all =
      passed / static_cast<double>(std::max<std::uint64_t>(done_, 1)) * static_cast<double>(launch.blocks);
  if (all < long_time || foretold.exchange(true)) return;
  const std::string name = "kernel " + kernel_name(launch.kernel) + ": ";
  if (done_ > 0)
    noted(name + "its " + blocks_of(launch) + " will take about " + duration(all) +
          "; --blocks N runs a sample of them, --seconds S ends what takes longer");
  else
    noted(name + "of its " + blocks_of(launch) + " none has ended in the first " + duration(passed) +
          "; --seconds S ends what takes longer");
}

void Pace::judge(const Launch& launch) {
  const double passed = processor_seconds() - begin_ - once_, left = std::max(0.0, allowed_seconds() - used);
  if (passed < look_at_ && passed < left) return;
  look_at_ = 2 * passed;
  const double each = passed / static_cast<double>(std::max<std::uint64_t>(done_, 1));
  const double all = done_ == launch.blocks ? passed : each * static_cast<double>(launch.blocks);
  if (done_ > 0 ? all <= left : passed < left) return;
  const std::string blocks = blocks_of(launch) + " ";
  std::string message = "kernel " + kernel_name(launch.kernel) + ": ";
  if (done_ > 0)
    message += "its " + blocks + "would take about " + duration(all) + ", and " + duration(left) + " are left";
  else
    message += "of its " + blocks + "none has ended in the " + duration(left) + " that are left";
  if (ended > 0) message += " after " + std::to_string(ended) + " launches";
  const auto most = static_cast<std::uint64_t>(left / each);
  if (done_ > 0) message += "; at most " + std::to_string(most) + (most == 1 ? " block fits" : " blocks fit");
  if (done_ > 0 && most > 0 && (launch.grid.y > 1 || launch.grid.z > 1))
    message += ", a grid of " + smaller_grid(launch.grid, most);
  if (ended > 0) message += ", or fewer launches";
  std::fprintf(stderr,
               "%s. Make the problem smaller, run a sample of its blocks with --blocks N, or allow more with "
               "--seconds.\n",
               message.c_str());
  std::fflush(stderr);
  std::_Exit(2);
}

}  // namespace simt
