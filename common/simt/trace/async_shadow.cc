#include "simt/trace/async_shadow.h"

#include <bit>

#include "simt/hopper/mbarrier.h"

namespace simt {
namespace {

constexpr std::size_t async_line_bytes = 16;

}  // namespace

void AsyncShadow::launch_begins(std::size_t bytes, unsigned blocks) {
  bytes_ = bytes;
  all_bytes_ = bytes * blocks;
  lines_.clear();
}

void AsyncShadow::block_begins() { lines_.assign(lines_.size(), {}); }

AsyncShadow::Line& AsyncShadow::line(std::size_t byte) {
  if (lines_.empty()) lines_.resize(all_bytes_ / async_line_bytes + 1);
  return lines_[byte / async_line_bytes];
}

std::optional<AsyncShadow::Mistake> AsyncShadow::read_mistake(const Line& line, unsigned thread,
                                                              const Shadow& shadow) const {
  if (line.load == nullptr) return {};
  if (!line.landed) return Mistake{Mistake::loading, line.load_pc, line.load_thread, line.load, line.phase};
  if (line.landed_interval == shadow.interval() &&
      !shadow.knows_phase(thread, Shadow::number_of(*line.load), line.phase))
    return Mistake{Mistake::not_waited, line.load_pc, line.load_thread, line.load, line.phase};
  return {};
}

std::optional<AsyncShadow::Mistake> AsyncShadow::write_mistake(std::size_t byte, unsigned thread,
                                                               const Shadow& shadow) {
  const Line& line = this->line(byte);
  const auto first_warp = static_cast<unsigned>(bytes_ == 0 ? 0 : byte / bytes_ * 32);  // of the block
  if (const auto mistake = read_mistake(line, thread, shadow)) return mistake;
  if (line.stores > 0) return Mistake{Mistake::storing, line.store_pc, line.store_thread, nullptr, 0};
  for (std::uint32_t warps = line.product_warps; warps != 0; warps &= warps - 1) {
    const auto warp = static_cast<unsigned>(std::countr_zero(warps));
    const unsigned number = 32 * (first_warp + warp);
    if (line.products[warp] > 0) return Mistake{Mistake::multiplying, line.product_pc, number, nullptr, 0};
    if (line.product_interval == shadow.interval() && line.product_end[warp] != 0 &&
        !shadow.knows_warp_event(thread, first_warp + warp, line.product_end[warp]))
      return Mistake{Mistake::released, line.product_pc, number, nullptr, 0};
  }
  return {};
}

std::optional<AsyncShadow::Mistake> AsyncShadow::unfenced(std::size_t byte, unsigned thread,
                                                          const Shadow& shadow) const {
  const Shadow::Event* const written = shadow.unfenced_write(byte, thread);
  if (written == nullptr) return {};
  return Mistake{Mistake::unfenced, written->pc, written->thread, nullptr, 0};
}

std::optional<AsyncShadow::Mistake> AsyncShadow::access(std::size_t byte, std::size_t size, unsigned thread,
                                                        bool writes, const Shadow& shadow) {
  std::optional<Mistake> found;
  for (std::size_t i = byte / async_line_bytes * async_line_bytes; i < byte + size && !found; i += async_line_bytes) {
    Line& there = line(i);
    found = writes ? write_mistake(i, thread, shadow) : read_mistake(there, thread, shadow);
    if (writes) there.load = nullptr;
  }
  return found;
}

std::optional<AsyncShadow::Mistake> AsyncShadow::load_starts(std::size_t byte, std::size_t size, unsigned thread,
                                                             const void* pc, const Mbarrier& mbarrier,
                                                             const Shadow& shadow) {
  std::optional<Mistake> found;
  for (std::size_t i = byte; i < byte + size && !found; i += async_line_bytes) {
    Line& there = line(i);
    found = write_mistake(i, thread, shadow);
    if (!found) found = unfenced(i, thread, shadow);
    there.load = &mbarrier;
    there.phase = mbarrier.phase();
    there.landed = false;
    there.load_pc = pc;
    there.load_thread = thread;
    there.product_warps = 0;
    there.product_end.fill(0);
  }
  return found;
}

void AsyncShadow::load_lands(std::size_t byte, std::size_t size, const Shadow& shadow) {
  for (std::size_t i = byte; i < byte + size; i += async_line_bytes) {
    line(i).landed = true;
    line(i).landed_interval = shadow.interval();
  }
}

std::optional<AsyncShadow::Mistake> AsyncShadow::store_starts(std::size_t byte, std::size_t size, unsigned thread,
                                                              const void* pc, const Shadow& shadow) {
  std::optional<Mistake> found;
  for (std::size_t i = byte; i < byte + size && !found; i += async_line_bytes) {
    Line& there = line(i);
    found = read_mistake(there, thread, shadow);
    if (!found) found = unfenced(i, thread, shadow);
    ++there.stores;
    there.store_pc = pc;
    there.store_thread = thread;
  }
  return found;
}

void AsyncShadow::store_ends(std::size_t byte, std::size_t size) {
  for (std::size_t i = byte; i < byte + size; i += async_line_bytes) --line(i).stores;
}

std::optional<AsyncShadow::Mistake> AsyncShadow::product_starts(std::size_t byte, unsigned thread, const void* pc,
                                                                const Shadow& shadow) {
  Line& there = line(byte);
  auto found = read_mistake(there, thread, shadow);
  if (!found) found = unfenced(byte, thread, shadow);
  ++there.products[thread / 32 % 32];
  there.product_warps |= 1u << thread / 32 % 32;
  there.product_pc = pc;
  return found;
}

void AsyncShadow::product_ends(std::size_t byte, unsigned warp, std::uint32_t event, const Shadow& shadow) {
  Line& there = line(byte);
  if (there.products[warp % 32] > 0) --there.products[warp % 32];
  if (there.product_interval != shadow.interval()) there.product_end.fill(0);
  there.product_interval = shadow.interval();
  there.product_end[warp % 32] = event;
}

}  // namespace simt
