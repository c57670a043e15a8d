#include "simt/report.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iomanip>

#include "simt/counts.h"
#include "simt/diagnosis.h"
#include "simt/engine.h"

namespace simt {
namespace {

struct Report {
  std::string path;
  std::vector<std::string> failures;
  std::uint64_t launches = 0;
};

Report& report() {
  static Report& report = *new Report;  // outlives every static object that launches in its destructor
  return report;
}

void write() {
  std::ofstream out(report().path);
  out << "{\"launched\": " << report().launches << ", \"failures\": [";
  const char* comma = "";
  for (const std::string& failure : report().failures) {
    out << comma << std::quoted(failure);
    comma = ",\n ";
  }
  out << "],\n\"launches\": ";
  if constexpr (tracing)
    write_json(out, trace_end());
  else
    out << "[]";
  out << "}\n";
}

// Seconds that kernels may take together, and have taken.
double allowed() {
  static const double seconds = [] {
    const char* value = std::getenv("SIMT_SECONDS");
    return value != nullptr ? std::atof(value) : 0;
  }();
  return seconds;
}
double used = 0;

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

void begin_report() {
  static const bool wanted = [] {
    const char* path = std::getenv("SIMT_REPORT");
    if (path == nullptr) return false;
    report().path = path;
    if constexpr (tracing) trace_begin();
    std::atexit(write);  // now, so that it runs before what the program began with goes
    return true;
  }();
  if (wanted) ++report().launches;
}

void note_failed_launch(const std::string& message) { report().failures.push_back(message); }

std::vector<std::string> failed_launches() { return report().failures; }

// Before that nothing is known: a launch's first block takes longer than the others.
constexpr double least_sample = 0.2;

Pace::Pace() : begin_(std::chrono::steady_clock::now()), look_at_(least_sample) {}

Pace::~Pace() { used += since(begin_); }

void Pace::block_done(const Launch& launch) {
  if (allowed() == 0) return;
  ++done_;
  const double passed = since(begin_) - once_, left = std::max(0.0, allowed() - used);
  if (passed < look_at_ && passed < left) return;
  look_at_ = 2 * passed;
  const double each = passed / static_cast<double>(done_);
  if (each * static_cast<double>(launch.blocks) <= left) return;
  const dim3 block = launch.block;
  std::fprintf(stderr,
               "kernel %s: its %llu blocks of %u threads would take about %s (%.2g s each), and %s are left; at most "
               "%llu blocks fit. Make the problem smaller, or allow more with --seconds.\n",
               kernel_name(launch.kernel).c_str(), static_cast<unsigned long long>(launch.blocks),
               block.x * block.y * block.z, duration(each * static_cast<double>(launch.blocks)).c_str(), each,
               duration(left).c_str(), static_cast<unsigned long long>(left / each));
  std::fflush(stderr);
  std::_Exit(2);
}

}  // namespace simt
