// What the tables of README.md say: which kind of test kills which mutant.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace mutants {

struct KillTable {
  std::vector<std::string> mutants;                         // in the order of the table
  std::vector<std::string> kinds;                           // of tests, in the order of theirs
  std::map<std::string, std::vector<std::string>> killers;  // of each mutant, in the order of `kinds`
};

// The two tables between `<!-- kills: device -->` and `<!-- /kills -->` of a Markdown file: of mutants, with their
// killers in the last column, and of kinds. Empty if the file has none.
KillTable read_kill_table(const std::string& path, const std::string& device);

}  // namespace mutants
