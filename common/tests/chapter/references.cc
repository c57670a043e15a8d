#include "tests/chapter/references.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

namespace chapter_suite {
namespace {

using attention::Problem;

// Everything that inputs and reference depend on: no two cases have the same.
std::string identity(const Case& c, bool backward) {
  const Problem& p = c.problem;
  std::ostringstream text;
  text << "batch " << p.batch << ", heads " << p.heads << ", kv heads " << p.kv_heads << ", queries " << p.seq_q
       << ", keys " << p.seq_k << ", head dim " << p.head_dim << ", " << attention::name(p.dtype) << ", mask "
       << attention::name(p.mask) << ", scale " << std::hexfloat << p.scale << ", rope " << p.rope << ", eight bits "
       << p.eight_bits << ", window " << p.window_left << " " << p.window_right << ", softcap " << p.softcap
       << ", ALiBi " << p.alibi << ", sink " << p.sink << ", views " << p.views << p.unaligned << ", head dim of V "
       << p.v_dim() << ", packed " << p.packed << " " << p.total_q << " " << p.total_k << ", blocks "
       << attention::name(p.blocks) << ", inputs " << harness::name(c.inputs) << ", seed " << seed
       << (backward ? ", backward" : "");
  return text.str();
}

constexpr const char* last_line = "the end";

void write(const std::string& path, const Case& c, bool backward, const Solved& made) {
  const std::string unfinished = path + "." + std::to_string(getpid());  // others may be writing the same
  {
    std::ofstream file(unfinished, std::ios::binary);
    file << identity(c, backward) << '\n';
    for (const auto* values :
         {&made.inputs.q, &made.inputs.k, &made.inputs.v, &made.inputs.d_o, &made.inputs.alibi, &made.inputs.sink})
      harness::write_values(file, *values);
    made.reference.write(file);
    file << last_line;
    file.close();
    if (!file) std::remove(unfinished.c_str());  // no room, perhaps: it is made again next time
  }
  std::rename(unfinished.c_str(), path.c_str());
}

Solved read(const std::string& path, std::istream& file, const Case& c, bool backward) {
  std::string is;
  std::getline(file, is);
  if (const std::string wanted = identity(c, backward); is != wanted)
    throw std::runtime_error(path + " is of another case (" + is + ") than the one that is tested (" + wanted + ")");
  harness::HostTensors inputs;
  for (auto* values : {&inputs.q, &inputs.k, &inputs.v, &inputs.d_o, &inputs.alibi, &inputs.sink})
    harness::read_values(file, *values);
  Solved found = {std::move(inputs), harness::Reference::read(file, c.problem)};
  std::string end;
  if (!std::getline(file, end) || end != last_line) throw std::runtime_error(path + " is not whole: remove it");
  return found;
}

}  // namespace

Solved solved_in(const std::string& directory, const Case& c, bool backward) {
  const std::string path = directory + "/" + name(c) + (backward ? "_backward" : "_forward");
  if (std::ifstream file(path, std::ios::binary); file) return read(path, file, c, backward);
  harness::HostTensors inputs = harness::make_inputs(c.problem, c.inputs, seed);
  harness::Reference reference(c.problem, inputs, backward);
  Solved made = {std::move(inputs), std::move(reference)};
  std::error_code cannot;
  std::filesystem::create_directories(directory, cannot);
  if (!cannot) write(path, c, backward, made);
  return made;
}

const Solved& solved(const Case& c, bool backward) {
  static std::map<std::string, std::unique_ptr<Solved>> at_hand;
  constexpr size_t enough = 128;
  const std::string key = identity(c, backward);
  if (const auto found = at_hand.find(key); found != at_hand.end()) return *found->second;
  if (at_hand.size() == enough) at_hand.clear();
  return *(at_hand[key] = std::make_unique<Solved>(solved_in(WORKBOOK_REFERENCES, c, backward)));
}

}  // namespace chapter_suite
