#include "simt/engine/pace.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "simt/engine/diagnosis.h"
#include "simt/engine/engine.h"

namespace simt {
namespace {

double used = 0;          // seconds, by the launches so far
std::uint64_t ended = 0;  // those launches

double since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

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

}  // namespace

double allowed_seconds() {
  static const double seconds = [] {
    const char* value = std::getenv("SIMT_SECONDS");
    return value != nullptr ? std::atof(value) : 0;
  }();
  return seconds;
}

// Before that nothing is known: a launch's first block takes longer than the others.
constexpr double least_sample = 0.2;

Pace::Pace() : begin_(std::chrono::steady_clock::now()), look_at_(least_sample) {}

Pace::~Pace() {
  used += since(begin_);
  ++ended;
}

void Pace::block_done(const Launch& launch) {
  if (allowed_seconds() == 0) return;
  const std::lock_guard lock(mutex_);
  ++done_;
  judge(launch);
}

void Pace::once(double seconds) {
  const std::lock_guard lock(mutex_);
  once_ += seconds;
}

void Pace::look(const Launch& launch) {
  if (allowed_seconds() == 0) return;
  const std::lock_guard lock(mutex_);
  if (done_ == 0) judge(launch);
}

void Pace::judge(const Launch& launch) {
  const double passed = since(begin_) - once_, left = std::max(0.0, allowed_seconds() - used);
  if (passed < look_at_ && passed < left) return;
  look_at_ = 2 * passed;
  const double each = passed / static_cast<double>(std::max<std::uint64_t>(done_, 1));
  const double all = done_ == launch.blocks ? passed : each * static_cast<double>(launch.blocks);
  if (done_ > 0 ? all <= left : passed < left) return;
  const dim3 block = launch.block;
  const std::string blocks = std::to_string(launch.blocks) + (launch.blocks == 1 ? " block of " : " blocks of ") +
                             std::to_string(block.x * block.y * block.z) + " threads ";
  std::string message = "kernel " + kernel_name(launch.kernel) + ": ";
  if (done_ > 0)
    message += "its " + blocks + "would take about " + duration(all) + ", and " + duration(left) + " are left";
  else
    message += "of its " + blocks + "none has ended in the " + duration(left) + " that are left";
  if (ended > 0) message += " after " + std::to_string(ended) + " launches";
  if (done_ > 0) message += "; at most " + std::to_string(static_cast<std::uint64_t>(left / each)) + " blocks fit";
  if (ended > 0) message += ", or fewer launches";
  std::fprintf(stderr, "%s. Make the problem smaller, or allow more with --seconds.\n", message.c_str());
  std::fflush(stderr);
  std::_Exit(2);
}

}  // namespace simt
