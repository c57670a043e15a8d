#include "simt/front/report.h"

#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <string>

#include "simt/engine/error.h"
#include "simt/engine/launch.h"
#include "simt/trace/counts.h"

namespace simt {
namespace {

void write() {
  std::ofstream out(std::getenv("SIMT_REPORT"));
  out << "{\"launched\": " << launch_count() << ", \"sampled\": " << sampled_launches() << ", \"failures\": [";
  const char* comma = "";
  for (const std::string& failure : failed_launches()) {
    out << comma << std::quoted(failure);
    comma = ",\n ";
  }
  out << "],\n\"launches\": ";
  if (kernels_are_traced())
    write_json(out, trace_end());
  else
    out << "[]";
  out << "}\n";
}

void begin() {
  if (kernels_are_traced()) trace_begin();
  std::atexit(write);  // now, so that it runs before what the program began with goes
}

}  // namespace

bool report_when_it_ends() {
  if (std::getenv("SIMT_REPORT") != nullptr) before_first_launch(begin);
  return true;
}

}  // namespace simt
