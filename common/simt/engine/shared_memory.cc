#include "simt/engine/shared_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace simt {
namespace {
constexpr std::size_t shared_alignment = 128;
constexpr std::size_t shared_guard_bytes = 64 * 1024;
constexpr char untouched = 0x6b;                  // in guards
constexpr std::size_t buffer_bytes = 256 * 1024;  // whole pages of any size
static_assert(buffer_bytes >= most_shared);
}  // namespace

SharedMemory::SharedMemory() : size_(buffer_bytes + 2 * shared_guard_bytes) {
  void* pages = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  pages_ = static_cast<char*>(pages);
  mprotect(pages_ + shared_guard_bytes, buffer_bytes, PROT_READ | PROT_WRITE);
}

SharedMemory::~SharedMemory() { munmap(pages_, size_); }

SharedMemory::Kept::~Kept() {
  if (pages != nullptr) munmap(pages, size);
}

void SharedMemory::prepare(const Module* module, std::size_t dynamic_bytes) {
  dynamic_bytes_ = dynamic_bytes;
  dynamic_ = pages_ + shared_guard_bytes + buffer_bytes -
             (dynamic_bytes + shared_alignment - 1) / shared_alignment * shared_alignment;
  static_.clear();
  first_static_ = last_static_ = 0;
  module_ = module;
  static_begin_ = nullptr;
  away_ = false;
  kept_.begin = nullptr;
  if (module != nullptr && module->tls_module != 0) find_static(*module);

  parts_.clear();
  extent_ = 0;
  for (const auto& [pointer, bytes] : ranges()) {
    const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
    extent_ += (begin - extent_) % 16;
    parts_.push_back({begin, bytes, extent_});
    extent_ += bytes;
  }
}

void SharedMemory::find_static(const Module& module) {
  char* block = module.thread_local_block();
  static_begin_ = reinterpret_cast<char*>(reinterpret_cast<std::uintptr_t>(block) / 1024 * 1024);
  for (const ThreadLocal& variable : module.shared) {
    char* begin = block + variable.offset;
    const bool touches = !static_.empty() && static_.back().first + static_.back().second == begin;
    if (touches)
      static_.back().second += variable.bytes;
    else
      static_.emplace_back(begin, variable.bytes);
  }
  if (static_.empty()) return;
  const auto [first, bytes] = span_of_static();
  constexpr std::uintptr_t before = 128;  // the first has no guard on that side
  first_static_ = first - before;
  last_static_ = first + bytes;
  for (const ThreadLocal& guard : module.guards) {
    const auto begin = reinterpret_cast<std::uintptr_t>(block) + guard.offset;
    first_static_ = std::min(first_static_, begin);
    last_static_ = std::max(last_static_, begin + guard.bytes);
  }
}

bool SharedMemory::leaves(std::uintptr_t address, std::size_t bytes) const {
  const auto pages = reinterpret_cast<std::uintptr_t>(pages_);
  if (address - first_static_ >= last_static_ - first_static_ && address - pages >= size_) return false;
  const std::size_t offset = offset_of(address);
  if (offset != no_offset && offset_of(address + bytes - 1) == offset + bytes - 1) return false;
  if (address - pages < size_) return true;
  const std::size_t place = address - reinterpret_cast<std::uintptr_t>(module_->thread_local_block());
  return std::none_of(module_->others.begin(), module_->others.end(),
                      [&](const ThreadLocal& other) { return place - other.offset < other.bytes; });
}

// Calls visit(first byte, first whole page, end of the last one); without pages, these two are the guard's end.
template <class Visit>
void SharedMemory::for_each_guard(Visit visit) const {
  if (static_.empty()) return;
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  char* const block = module_->thread_local_block();
  for (const ThreadLocal& guard : module_->guards) {
    char* const begin = block + guard.offset;
    char* const last = begin + guard.bytes;
    char* const pages = begin + (page - reinterpret_cast<std::uintptr_t>(begin) % page) % page;
    char* const end = last - reinterpret_cast<std::uintptr_t>(last) % page;
    pages < end ? visit(begin, pages, end) : visit(begin, last, last);
  }
}

void SharedMemory::shut_guards() const {
  for_each_guard([](char* begin, char* pages, char* end) {
    std::memset(begin, untouched, static_cast<std::size_t>(pages - begin));
    if (pages != end) mprotect(pages, static_cast<std::size_t>(end - pages), PROT_NONE);
  });
}

void SharedMemory::open_guards() const {
  for_each_guard([](char*, char* pages, char* end) {
    if (pages != end) mprotect(pages, static_cast<std::size_t>(end - pages), PROT_READ | PROT_WRITE);
  });
}

std::string SharedMemory::overwritten_guard() const {
  std::string found;
  for_each_guard([&](const char* begin, const char* pages, const char*) {
    const char* const written = std::find_if(begin, pages, [](char byte) { return byte != untouched; });
    if (written != pages && found.empty()) found = beside_static(written);
  });
  return found;
}

// Between guards, as the dynamic part is.
void SharedMemory::leave() {
  away_ = true;
  if (static_.empty()) return;
  const auto [begin, bytes] = span_of_static();
  if (kept_.begin == nullptr) {
    const std::size_t size = (bytes + 2047) / 4096 * 4096 + 4096 + 2 * shared_guard_bytes;
    if (size > kept_.size) {
      if (kept_.pages != nullptr) munmap(kept_.pages, kept_.size);
      void* pages = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      kept_.pages = pages == MAP_FAILED ? nullptr : static_cast<char*>(pages);
      kept_.size = pages == MAP_FAILED ? 0 : size;
      if (pages == MAP_FAILED) throw std::bad_alloc();
      mprotect(kept_.pages + shared_guard_bytes, size - 2 * shared_guard_bytes, PROT_READ | PROT_WRITE);
    }
    char* const last = kept_.pages + kept_.size - shared_guard_bytes - bytes;
    kept_.begin = last - (reinterpret_cast<std::uintptr_t>(last) - begin) % 1024;  // with the same alignment
  }
  for (const auto& [first, length] : static_)
    std::memcpy(kept_.begin + (reinterpret_cast<std::uintptr_t>(first) - begin), first, length);
}

void SharedMemory::come_back() {
  if (std::exchange(away_, false) == false) return;
  const std::uintptr_t begin = span_of_static().first;
  for (const auto& [first, length] : static_)
    std::memcpy(first, kept_.begin + (reinterpret_cast<std::uintptr_t>(first) - begin), length);
}

char* SharedMemory::for_others(void* own) const {
  auto* const p = static_cast<char*>(own);
  const auto [begin, bytes] = span_of_static();
  const std::uintptr_t place = reinterpret_cast<std::uintptr_t>(p) - begin;
  return kept_.begin != nullptr && place < bytes ? kept_.begin + place : p;
}

char* SharedMemory::own(const void* of_others) const {
  auto* const p = static_cast<char*>(const_cast<void*>(of_others));
  if (p >= pages_ && p < pages_ + size_) return p;
  if (kept_.begin == nullptr || p < kept_.pages || p >= kept_.pages + kept_.size) return nullptr;
  return reinterpret_cast<char*>(span_of_static().first) + (p - kept_.begin);
}

void SharedMemory::close() {
  mprotect(pages_ + shared_guard_bytes, buffer_bytes, PROT_NONE);
  closed_ = true;
}

void SharedMemory::poison() {
  if (std::exchange(closed_, false)) mprotect(pages_ + shared_guard_bytes, buffer_bytes, PROT_READ | PROT_WRITE);
  std::memset(dynamic_, 0xff, pages_ + shared_guard_bytes + buffer_bytes - dynamic_);
  for (const auto& [begin, bytes] : static_) std::memset(begin, 0xff, bytes);
}

std::pair<std::uintptr_t, std::size_t> SharedMemory::span_of_dynamic() const {
  return {reinterpret_cast<std::uintptr_t>(pages_), size_};
}

std::pair<std::uintptr_t, std::size_t> SharedMemory::span_of_static() const {
  if (static_.empty()) return {};
  std::uintptr_t begin = ~std::uintptr_t(0), end = 0;
  for (const auto& [first, bytes] : static_) {
    begin = std::min(begin, reinterpret_cast<std::uintptr_t>(first));
    end = std::max(end, reinterpret_cast<std::uintptr_t>(first) + bytes);
  }
  return {begin, end - begin};
}

std::vector<std::pair<char*, std::size_t>> SharedMemory::ranges() const {
  auto ranges = static_;
  if (dynamic_bytes_ > 0) ranges.emplace_back(dynamic_, dynamic_bytes_);
  return ranges;
}

std::size_t SharedMemory::offset_of(std::uintptr_t address) const {
  for (const Part& part : parts_)
    if (address - part.begin < part.bytes) return part.offset + (address - part.begin);
  return no_offset;
}

bool SharedMemory::contains(const void* address) const {
  const auto* a = static_cast<const char*>(address);
  if (a >= pages_ && a < pages_ + size_) return true;
  for (const auto& [begin, bytes] : static_)
    if (a >= begin && a < begin + bytes) return true;
  return false;
}

bool SharedMemory::contains(const void* address, std::size_t bytes) const {
  const auto* a = static_cast<const char*>(address);
  for (const auto& [begin, size] : ranges())
    if (a >= begin && a + bytes <= begin + size) return true;
  return false;
}

std::uint32_t SharedMemory::address_of(const void* pointer) const {
  const auto* p = static_cast<const char*>(pointer);
  if (p >= pages_ && p < pages_ + size_) return static_cast<std::uint32_t>(p - dynamic_) + first_shared_address;
  const auto in_static = static_cast<std::uintptr_t>(p - static_begin_);
  if (static_begin_ == nullptr || in_static >= first_static_address) return no_address;
  return first_static_address + static_cast<std::uint32_t>(in_static);
}

void* SharedMemory::pointer_to(std::uint32_t address) const {
  // Before the dynamic part, addresses below 1024 go below 0.
  const auto byte = static_cast<std::int32_t>(address - first_shared_address);
  return byte < std::int32_t(first_static_address - first_shared_address)
             ? dynamic_ + byte
             : static_begin_ + (address - first_static_address);
}

const void* SharedMemory::at(std::uint32_t address) const {
  const std::uint32_t byte = address - first_shared_address;
  if (std::size_t(byte) + 16 <= dynamic_bytes_) return dynamic_ + byte;
  if (dynamic_bytes_ > 0) return nullptr;
  constexpr std::uintptr_t addresses = 1 << 18;  // a descriptor has no more bits
  for (const auto& [begin, bytes] : static_)
    if (const auto place = (address - static_cast<std::uintptr_t>(begin - static_begin_)) % addresses;
        place + 16 <= bytes)
      return begin + place;
  return nullptr;
}

std::string SharedMemory::place(const void* address) const {
  const auto* a = static_cast<const char*>(address);
  if (a >= pages_ && a < pages_ + size_) return "byte " + std::to_string(a - dynamic_) + " of dynamic shared memory";
  for (const auto& [begin, bytes] : static_)
    if (a >= begin && a < begin + bytes) return "byte " + std::to_string(a - begin) + " of static shared memory";
  return "a place outside shared memory";
}

// Of the nearer of the two variables that it lies between.
std::string SharedMemory::beside_static(const char* address) const {
  const std::ptrdiff_t place = address - module_->thread_local_block();
  const ThreadLocal* nearest = nullptr;
  std::ptrdiff_t distance = 0;  // below 0: before its start
  for (const ThreadLocal& variable : module_->shared) {
    const auto begin = static_cast<std::ptrdiff_t>(variable.offset),
               end = begin + static_cast<std::ptrdiff_t>(variable.bytes);
    const std::ptrdiff_t from = place < begin ? place - begin : std::max<std::ptrdiff_t>(place - end, 0);
    if (nearest == nullptr || std::abs(from) < std::abs(distance)) nearest = &variable, distance = from;
  }
  const std::string name =
      " of the shared variable " + Module::name_of(nearest->name) + " (" + std::to_string(nearest->bytes) + " bytes)";
  if (distance < 0) return std::to_string(-distance) + " bytes before the start" + name;
  return "at byte " + std::to_string(place - static_cast<std::ptrdiff_t>(nearest->offset)) + ", " +
         std::to_string(distance) + " bytes past the end" + name;
}

std::string SharedMemory::where(const void* address) const {
  const auto* a = static_cast<const char*>(address);
  if (reinterpret_cast<std::uintptr_t>(a) - first_static_ < last_static_ - first_static_) return beside_static(a);
  if (a < pages_ || a >= pages_ + size_) return "";
  const std::string name =
      " of the " + std::to_string(dynamic_bytes_) + " bytes of dynamic shared memory of this block";
  if (a < dynamic_) return std::to_string(dynamic_ - a) + " bytes before the start" + name;
  if (a < dynamic_ + dynamic_bytes_) return "at byte " + std::to_string(a - dynamic_) + name;
  return "at byte " + std::to_string(a - dynamic_) + ", " + std::to_string(a - dynamic_ - dynamic_bytes_) +
         " bytes past the end" + name;
}

}  // namespace simt
