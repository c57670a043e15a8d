// What is known, beside shadow.h, about shared memory that bulk copies fill and read and that wgmma reads, for every 16
// bytes: what is on its way there, and who may touch it after that. From that follows whether an access is one of these
// mistakes:
//
//   loading      it is before anybody has waited for the bulk copy that fills this memory
//   not_waited   the copy has landed, but nothing orders this thread after a wait for the mbarrier's phase
//   storing      a bulk copy reads this memory, and its thread has not waited for that
//   multiplying  wgmma reads this memory, and its warp has not waited for that
//   released     a warp has waited for its wgmma, but nothing orders this write after that
//   unfenced     a thread has written here, and passed no fence.proxy.async before the copy or wgmma that follows
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "simt/trace/shadow.h"

namespace simt {

class Mbarrier;

class AsyncShadow {
 public:
  struct Mistake {
    enum Kind { loading, not_waited, storing, multiplying, released, unfenced } kind;
    const void* pc;  // of the copy, the product, or the write that is not fenced
    unsigned thread;
    const Mbarrier* mbarrier;  // and its phase, of a load
    std::uint32_t phase;
  };

  void launch_begins(std::size_t bytes, unsigned blocks);  // bytes of each block of a cluster
  void block_begins();
  bool used() const { return !lines_.empty(); }  // by this launch

  // Each of them notes what happens, and returns the first mistake that it is.
  std::optional<Mistake> access(std::size_t byte, std::size_t size, unsigned thread, bool writes, const Shadow& shadow);
  std::optional<Mistake> load_starts(std::size_t byte, std::size_t size, unsigned thread, const void* pc,
                                     const Mbarrier& mbarrier, const Shadow& shadow);
  void load_lands(std::size_t byte, std::size_t size, const Shadow& shadow);
  std::optional<Mistake> store_starts(std::size_t byte, std::size_t size, unsigned thread, const void* pc,
                                      const Shadow& shadow);
  void store_ends(std::size_t byte, std::size_t size);
  std::optional<Mistake> product_starts(std::size_t byte, unsigned thread, const void* pc, const Shadow& shadow);
  void product_ends(std::size_t byte, unsigned warp, std::uint32_t event, const Shadow& shadow);

 private:
  struct Line {
    const Mbarrier* load =
        nullptr;  // that completes the last load, on its way or landed, since when no thread has written
    std::uint32_t phase = 0;
    bool landed = false;
    std::uint32_t landed_interval = 0;
    const void* load_pc = nullptr;
    unsigned load_thread = 0;

    int stores = 0;  // on their way
    const void* store_pc = nullptr;
    unsigned store_thread = 0;

    std::array<std::uint8_t, 32> products = {};      // on their way, of each warp of the block
    std::array<std::uint32_t, 32> product_end = {};  // of each warp, an event in this interval; 0: none
    std::uint32_t product_interval = 0;
    std::uint32_t product_warps = 0;  // that have any of those
    const void* product_pc = nullptr;
  };

  std::optional<Mistake> read_mistake(const Line& line, unsigned thread, const Shadow& shadow) const;
  std::optional<Mistake> write_mistake(std::size_t byte, unsigned thread, const Shadow& shadow);
  std::optional<Mistake> unfenced(std::size_t byte, unsigned thread, const Shadow& shadow) const;
  Line& line(std::size_t byte);

  std::size_t bytes_ = 0, all_bytes_ = 0;  // of a block, of all
  std::vector<Line> lines_;                // none until the launch uses them
};

}  // namespace simt
