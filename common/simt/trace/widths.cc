#include "simt/trace/widths.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "simt/engine/diagnosis.h"

namespace simt {
namespace {

using Widths = std::map<std::pair<std::string, std::string>, unsigned>;  // by place and name

Widths read() {
  Widths widths;
  const char* path = std::getenv("SIMT_WIDTHS");
  if (path == nullptr) return widths;
  std::ifstream file(path);
  std::string line;
  bool right = true;
  while (right && std::getline(file, line)) {
    // The last two words; the place before them may have blanks.
    const std::size_t number = line.find_last_of(' ');
    const std::size_t op = number == 0 || number == line.npos ? line.npos : line.find_last_of(' ', number - 1);
    right = op != line.npos;
    if (right)
      widths[{line.substr(0, op), line.substr(op + 1, number - op - 1)}] =
          static_cast<unsigned>(std::strtoul(line.c_str() + number, nullptr, 10));
  }
  if (right && !widths.empty()) return widths;
  std::fprintf(stderr, "SIMT_WIDTHS=%s: must be a file with lines such as \"sgemm/mine.cu:42 shared_load 16\"\n", path);
  std::exit(2);
}

const Widths& all_widths() {
  static const Widths widths = read();
  return widths;
}

}  // namespace

unsigned widest(const void* pc, Op op) {
  const Widths& widths = all_widths();
  if (widths.empty()) return 0;
  const auto lines = source_lines({static_cast<const char*>(pc) - 1});
  for (const std::string& line : lines[0])
    if (!is_header(line.substr(0, line.rfind(':')))) {
      const auto found = widths.find({line, name(op)});
      return found != widths.end() ? found->second : 0;
    }
  return 0;
}

}  // namespace simt
