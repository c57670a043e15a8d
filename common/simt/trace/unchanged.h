// Reads beside stores of what was there already. Such a read finds the same in any order: no mistake, but worth a note,
// as in Floyd and Warshall's algorithm, where row k and column k do not change in step k. But if the instruction
// computes what it stores, and in the whole program never stores anything new where something was, then the data hide
// what it does, nothing but zeros perhaps. The two are called a race when the program ends: the first of each kernel.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>

namespace simt {

// What an access is in x86-64's machine code, by the return address of the engine's function that is told of it.
enum class AccessCode { other, compares_with_a_number, stores_a_number };
AccessCode code_at(const void* pc);

// By the same addresses, that of the store and that of the read.
class UnchangedStores {
 public:
  void changes(const void* store) {  // it has stored something new, where something was
    const void*& known = lately_[reinterpret_cast<std::uintptr_t>(store) % lately_.size()];
    if (known != store) changing_.insert(known = store);
  }
  template <class Message>
  void beside(const void* store, const void* read, const void* kernel, const Message& message) {
    const auto [pair, is_new] = pairs_.try_emplace({store, read});
    if (is_new) pair->second = {pairs_.size(), kernel, message(), false};
  }
  void races(const void* store, const void* read) { pairs_[{store, read}].said = true; }  // which is said elsewhere
  void forget(const void* kernel) {  // its launch has failed, and that was said
    std::erase_if(pairs_, [&](const auto& each) { return each.second.kernel == kernel && !each.second.said; });
  }
  void launch_ends();
  void program_ends();

 private:
  struct Pair {
    std::size_t number = 0;  // in the order in which they came
    const void* kernel = nullptr;
    std::string message;
    bool said = false;
  };

  std::map<std::pair<const void*, const void*>, Pair> pairs_;
  std::unordered_set<const void*> changing_;
  std::array<const void*, 64> lately_ = {};  // most of those
  std::unordered_set<std::string> said_lines_;
};

}  // namespace simt
