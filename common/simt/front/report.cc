#include "simt/front/report.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <string>
#include <utility>

#include "simt/cuda/host_checks.h"
#include "simt/engine/device_memory.h"
#include "simt/engine/diagnosis.h"
#include "simt/engine/engine.h"
#include "simt/engine/error.h"
#include "simt/engine/findings.h"
#include "simt/engine/launch.h"
#include "simt/trace/counts.h"
#include "simt/trace/races.h"

namespace simt {
namespace {

void write_list(std::ofstream& out, const char* name, const std::vector<std::string>& messages) {
  out << "\"" << name << "\": [";
  const char* comma = "";
  for (const std::string& message : messages) {
    out << comma << std::quoted(message);
    comma = ",\n ";
  }
  out << "],\n";
}

bool written = false, counting = false;

void write() {
  if (std::exchange(written, true)) return;
  host_checks::at_end();
  std::ofstream out(std::getenv("SIMT_REPORT"));
  out << "{\"launched\": " << launch_count() << ", \"sampled\": " << sampled_launches() << ", ";
  write_list(out, "failures", failed_launches());
  write_list(out, "mistakes", mistakes());
  write_list(out, "notes", notes());
  out << "\"launches\": ";
  if (counting)
    write_json(out, trace_end());
  else
    out << "[]";
  out << "}\n";
}

void begin() {
  counting = kernels_are_traced() && std::getenv("SIMT_COUNTS") != nullptr;
  if (counting) trace_begin();
  std::atexit(write);  // now, so that it runs before what the program began with goes
}

// Whoever started the program waits for it, or has been killed: then nobody is there to end it.
void end_with_parent() {
  const char* const parent = std::getenv("SIMT_PARENT");
  if (parent == nullptr) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (std::to_string(getppid()) != parent) std::raise(SIGKILL);  // it was killed before this could be asked for
  unsetenv("SIMT_PARENT");                                       // what the program starts has another parent
}

}  // namespace

bool report_when_it_ends(const char* header) {
  if (std::getenv("SIMT_REPORT") == nullptr || watching()) return true;  // or another file of the program did it
  end_with_parent();
  watch_program();
  headers_lie_beside(header);
  DeviceMemory::instance().close();
  install_fault_handler();
  std::atexit(write);  // of a program that launches nothing
  if (kernels_are_traced()) race_detector().watch_everything();
  before_first_launch(begin);
  return true;
}

}  // namespace simt
