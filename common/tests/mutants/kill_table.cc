#include "tests/mutants/kill_table.h"

#include <fstream>
#include <sstream>

namespace mutants {
namespace {

// "a, b" with ',' -> {"a", "b"}; spaces and backquotes do not count.
std::vector<std::string> parts(const std::string& text, char separator) {
  std::vector<std::string> found;
  std::istringstream rest(text);
  for (std::string part; std::getline(rest, part, separator);) {
    std::erase_if(part, [](char c) { return c == ' ' || c == '`'; });
    if (!part.empty()) found.push_back(part);
  }
  return found;
}

}  // namespace

KillTable read_kill_table(const std::string& path, const std::string& device) {
  KillTable table;
  std::ifstream file(path);
  enum { elsewhere, between, of_mutants, of_kinds } place = elsewhere;
  for (std::string line; std::getline(file, line);) {
    if (line == "<!-- kills: " + device + " -->") place = between;
    if (line == "<!-- /kills -->") place = elsewhere;
    const bool heading = line.starts_with("| mutant |") || line.starts_with("| kind of test |");
    if (place != elsewhere && heading) place = line.starts_with("| mutant |") ? of_mutants : of_kinds;
    if (place <= between || heading || !line.starts_with("| ")) continue;
    const std::vector<std::string> cells = parts(line, '|');
    if (place == of_kinds) {
      table.kinds.push_back(cells[0]);
    } else {
      table.mutants.push_back(cells[0]);
      if (cells.size() > 2) table.killers[cells[0]] = parts(cells.back(), ',');
    }
  }
  return table;
}

}  // namespace mutants
