#include "simt/cuda/host_checks.h"

#include <execinfo.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simt/cuda/transfers.h"
#include "simt/engine/device_memory.h"
#include "simt/engine/device_variables.h"
#include "simt/engine/diagnosis.h"
#include "simt/engine/engine.h"
#include "simt/engine/findings.h"
#include "simt/engine/launch.h"
#include "simt/engine/modules.h"
#include "simt/front/report.h"
#include "simt/trace/host_objects.h"
#include "simt/trace/races.h"

namespace simt::host_checks {
namespace {

// Where host code called the runtime: looked up only when it has to be said.
struct Place {
  static bool of_the_runtime(const void* frame) {
    const Module* const module = module_at(frame);
    const Function* const function =
        module != nullptr ? module->function_at(reinterpret_cast<std::uintptr_t>(frame)) : nullptr;
    if (function == nullptr) return false;
    std::string_view name = function->name;
    for (const std::string_view library : {"_ZN4simt", "_ZNK4simt", "_ZN6thrust", "_ZNK6thrust", "simt_cuda"})
      if (name.starts_with(library)) return true;
    if (!name.starts_with("_Z")) return false;
    name.remove_prefix(std::min(name.find_first_not_of("0123456789L", 2), name.size()));
    return name.starts_with("cuda") || name.starts_with("cublas") || name.starts_with("curand");
  }

  std::array<void*, 12> frames;
  int depth = 0;

  static Place here() {
    Place place;
    place.depth = backtrace(place.frames.data(), static_cast<int>(place.frames.size()));
    return place;
  }
  std::string line() const {
    // Behind the last frame of the runtime.
    int first = 0;
    for (int i = 0; i < depth; ++i)
      if (of_the_runtime(frames[i])) first = i + 1;
    std::vector<void*> callers(frames.begin() + first, frames.begin() + depth);
    if (callers.empty()) return "an unknown line";
    callers[0] = static_cast<char*>(callers[0]) - 1;
    const std::string found = source_line(callers);
    return found.empty() ? "an unknown line" : found;
  }
};

// What a kernel has touched of a block of the host's memory.
struct Touched {
  enum : std::uint8_t { read = 1, written = 2 };
  std::vector<std::uint8_t> bytes;
  const void* read_at = nullptr;
  const void* written_at = nullptr;
};

// Closed to the host, for writes or for all. A page that also holds what nobody copies or touches stays open: a system
// call that reads that, as fwrite's, would fail.
struct Pages {
  std::uintptr_t begin, end;
  int protection;
};

// Of an asynchronous copy, or a kernel, the host's end.
struct Copy {
  std::uintptr_t begin, end;
  std::vector<Pages> pages;
  bool into_host;
  cudaStream_t stream;
  std::uint32_t operation;  // its number in the stream
  std::function<std::string()> call;
  const void* kernel = nullptr;  // if it is none of a copy
  Touched touched = {};          // by that

  bool concerns(std::uintptr_t address, bool write) const {
    if (address < begin || address >= end) return false;
    if (kernel == nullptr) return into_host || write;
    return (touched.bytes[address - begin] & (write ? Touched::read | Touched::written : Touched::written)) != 0;
  }
  std::string what(bool write) const {
    if (kernel == nullptr)
      return call() + (into_host ? " writes" : " reads") +
             ", without having waited for its stream: the copy may not be done";
    const bool its_write = !write || touched.read_at == nullptr;
    return "kernel " + kernel_name(kernel) + (its_write ? " writes" : " reads") + " at " +
           line_of(its_write ? touched.written_at : touched.read_at) +
           ", without having waited for it: the kernel may not be done";
  }
};

struct State {
  std::mutex mutex;
  std::map<void*, Place> allocations;
  std::map<std::uintptr_t, std::size_t> pinned;  // in pages of its own: begin, bytes
  std::map<std::uintptr_t, std::size_t> freed_pinned;
  std::vector<Copy> copies;
  std::map<std::uintptr_t, Touched> touched;  // by the kernel that runs: blocks, by their begin
  cudaStream_t stream = nullptr;              // of that kernel
  const void* kernel = nullptr;
  std::uint32_t operation = 0;
  bool running = false;                       // a kernel, perhaps
  std::atomic<const void*> prints = nullptr;  // a kernel that has printed, and that nobody has waited for
  int lifted = 0;
  // The copy, or the call of a library, that has used a block of managed memory last: by the block's begin.
  struct User {
    cudaStream_t stream;
    std::uint32_t operation;
    std::function<std::string()> what;
  };
  std::map<std::uintptr_t, User> users;
};

State& state() {
  static State& all = *new State;
  return all;
}

std::uintptr_t page() {
  static const std::uintptr_t bytes = sysconf(_SC_PAGESIZE);
  return bytes;
}

std::uintptr_t up_to_page(std::uintptr_t address) { return (address + page() - 1) / page() * page(); }

void set_protection(const Pages& pages, int protection) {
  mprotect(reinterpret_cast<void*>(pages.begin), pages.end - pages.begin, protection);
}
void open_pages(const Copy& copy) {
  for (const Pages& pages : copy.pages) set_protection(pages, PROT_READ | PROT_WRITE);
}
void close_pages(const Copy& copy) {
  for (const Pages& pages : copy.pages) set_protection(pages, pages.protection);
}

// Of those that remain: pages may be shared. Not while the engine, perhaps another thread of it, touches them itself.
void protect_all(State& s) {
  if (s.lifted > 0) return;
  for (const int protection : {PROT_READ, PROT_NONE})
    for (const Copy& copy : s.copies)
      for (const Pages& pages : copy.pages)
        if (pages.protection == protection) set_protection(pages, protection);
}

// Those of a block of the host's memory of which a kernel has touched every byte. A pinned one has its last page alone.
std::vector<Pages> pages_of(const Touched& touched, std::uintptr_t begin, bool pinned) {
  std::vector<Pages> pages;
  const std::uintptr_t end = begin + touched.bytes.size();
  for (std::uintptr_t at = up_to_page(begin); at < end && (pinned || at + page() <= end); at += page()) {
    const auto first = touched.bytes.begin() + static_cast<std::ptrdiff_t>(at - begin);
    const auto last = touched.bytes.begin() + static_cast<std::ptrdiff_t>(std::min(at + page(), end) - begin);
    if (std::find(first, last, 0) != last) continue;
    const bool all_written = std::all_of(first, last, [](std::uint8_t how) { return (how & Touched::written) != 0; });
    const int protection = all_written ? PROT_NONE : PROT_READ;
    if (!pages.empty() && pages.back().end == at && pages.back().protection == protection)
      pages.back().end += page();
    else
      pages.push_back({at, at + page(), protection});
  }
  return pages;
}

// The copies are others now.
void note_range(const State& s) {
  AwaitedRange all = {~std::uintptr_t(0), 0};
  for (const Copy& copy : s.copies) all = {std::min(all.begin, copy.begin), std::max(all.end, copy.end)};
  awaited = s.copies.empty() ? AwaitedRange() : all;
}

// What it is that host code touches too early, if it does; it is said once. `flag`: the host looks whether it is there.
std::string touches(State& s, std::uintptr_t address, bool write, bool flag = false) {
  const auto in =
      std::find_if(s.copies.begin(), s.copies.end(), [&](const Copy& c) { return c.concerns(address, write); });
  if (in == s.copies.end()) return "";
  const bool waits = flag && in->kernel != nullptr;
  const std::string what = waits ? "" : in->what(write);
  // A flag that the kernel sets tells of all that it has done before, and of what came before it in its stream.
  const auto done = [waits, one = &*in, stream = in->stream, last = in->operation](const Copy& each) {
    return &each == one || (waits && each.stream == stream && each.operation <= last);
  };
  for (const Copy& each : s.copies)
    if (done(each)) open_pages(each);
  std::vector<Copy> others;
  for (Copy& each : s.copies)
    if (!done(each)) others.push_back(std::move(each));
  s.copies = std::move(others);
  note_range(s);
  if (waits) protect_all(s);
  return what;
}

void say_of_host(bool write, const std::string& line, const std::string& what) {
  found_mistake(std::string("host code ") + (write ? "writes" : "reads") + ", at " + line + ", what " + what);
}

bool is_freed(const State& s, std::uintptr_t pinned) {
  const auto freed = s.freed_pinned.upper_bound(pinned);
  return freed != s.freed_pinned.begin() && pinned < up_to_page(std::prev(freed)->first + std::prev(freed)->second);
}

// Host code has touched a page that it may not, or whose other bytes it may not; in any case it goes on.
bool touched(const void* address, bool write, const std::string& line) {
  State& s = state();
  std::string what;
  {
    const std::lock_guard lock(s.mutex);
    const auto a = reinterpret_cast<std::uintptr_t>(address);
    if (is_freed(s, a)) {
      found_mistake(std::string("host code ") + (write ? "writes" : "reads") + ", at " + line +
                    ", pinned memory that was freed (cudaFreeHost), and ends here");
      return false;
    }
    const auto block = s.pinned.upper_bound(a);
    const bool pinned = block != s.pinned.begin() && a < up_to_page(std::prev(block)->first + std::prev(block)->second);
    const auto closes = [&](const Copy& c) {
      return std::any_of(c.pages.begin(), c.pages.end(), [&](const Pages& p) { return a >= p.begin && a < p.end; });
    };
    if (!pinned && std::none_of(s.copies.begin(), s.copies.end(), closes)) return false;
    what = touches(s, a, write);
    if (what.empty()) mprotect(reinterpret_cast<void*>(a / page() * page()), page(), PROT_READ | PROT_WRITE);
  }
  if (!what.empty()) say_of_host(write, line, what);
  return true;
}

GlobalShadow* shadow() { return kernels_are_traced() ? race_detector().global() : nullptr; }

// What is ordered is known of programs whose kernels are not traced, too.
StreamOrder& streams() {
  static StreamOrder& own = *new StreamOrder;
  GlobalShadow* const global = shadow();
  return global != nullptr ? global->streams() : own;
}

}  // namespace

static std::recursive_mutex& one_alone() {
  static std::recursive_mutex& mutex = *new std::recursive_mutex;
  return mutex;
}

std::unique_lock<std::recursive_mutex> alone() {
  // A kernel's thread may be another one than that which holds it for the launch.
  return watching() && worker == nullptr ? std::unique_lock(one_alone()) : std::unique_lock<std::recursive_mutex>();
}

static std::atomic<bool> reached = false;
bool kernels_reach_host() { return reached; }
void kernels_reach_host_now() { reached = true; }

void allocated(void* pointer, std::size_t bytes, bool managed) {
  DeviceMemory& memory = DeviceMemory::instance();
  if (managed) memory.open_to_host(pointer);
  if (!watching()) return;
  const auto one = alone();
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.allocations[pointer] = Place::here();
  if (managed) kernels_reach_host_now();
  if (GlobalShadow* const global = shadow()) global->allocated(pointer, bytes, managed || memory.all_open());
}

void freeing(void* pointer) {
  if (!watching()) return;
  const auto one = alone();
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const auto block = DeviceMemory::instance().live_block_at(address);
  if (!block || block->start != address) return;
  s.allocations.erase(pointer);
  HostObjects::instance().forget(pointer, block->bytes);
  if (GlobalShadow* const global = shadow()) global->freed(pointer, block->bytes);
}

std::function<std::string()> call_here(const char* call) {
  if (!watching()) return {};
  return [call, at = Place::here()] { return "the " + std::string(call) + " at " + at.line(); };
}

void allocated_in(cudaStream_t stream, void* pointer, std::size_t bytes) {
  if (!watching()) return;
  const auto one = alone();
  if (GlobalShadow* const global = shadow()) global->allocated_in(stream, pointer, bytes, call_here("cudaMallocAsync"));
}

void freeing_in(cudaStream_t stream, void* pointer) {
  if (!watching()) return;
  const auto one = alone();
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const auto block = DeviceMemory::instance().live_block_at(address);
  GlobalShadow* const global = shadow();
  if (global != nullptr && block && block->start == address)
    global->freed_in(stream, pointer, block->bytes, call_here("cudaFreeAsync"));
}

void kernel_allocated(void* memory, std::size_t bytes) {
  if (GlobalShadow* const global = watching() ? shadow() : nullptr) global->forget(memory, bytes);
}

void kernel_freed() {
  if (watching() && kernels_are_traced()) race_detector().forget_allocations();
}

void freed_by_a_graph(void* pointer) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.allocations.erase(pointer);
}

void all_freed() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.allocations.clear();
}

void written(const void* to, std::size_t bytes) {
  if (!watching()) return;
  const auto one = alone();
  if (GlobalShadow* const global = shadow(); global != nullptr && DeviceMemory::instance().contains(to))
    global->host_writes(to, bytes);
}

void copied(const void* to, const void* from, std::size_t bytes) {
  if (!watching()) return;
  const auto one = alone();
  GlobalShadow* const global = shadow();
  if (global != nullptr) HostObjects::instance().copied(to, from, bytes);
  const DeviceMemory& memory = DeviceMemory::instance();
  if (global == nullptr || !memory.contains(to)) return;
  if (memory.contains(from))
    global->host_copies(to, from, bytes);
  else
    global->host_writes(to, bytes);
}

// What nobody has written, if it is more than the padding of structures.
void copied_to_host(const Transfer& transfer, const void* to, const void* from, std::size_t bytes, std::size_t rows,
                    std::size_t pitch) {
  if (!watching() || bytes == 0 || sampled_launches() > 0) return;
  const auto one = alone();
  GlobalShadow* const global = shadow();
  const DeviceMemory& memory = DeviceMemory::instance();
  if (global == nullptr || !memory.contains(from) || memory.contains(to)) return;
  for (std::size_t row = 0; row < rows; ++row) {
    const auto [pieces, first, length] = global->unwritten(static_cast<const char*>(from) + row * pitch, bytes);
    const bool last_element = pieces == 1 && length >= 4 && first + length == bytes && bytes >= 64 * length;
    if (length < 16 && !last_element) continue;
    noted(transfer.what() + " copies " + (rows > 1 ? std::to_string(rows) + " rows of " : std::string()) +
          std::to_string(bytes) + " bytes to the host; nobody has written " +
          (length == bytes ? std::string("any of them")
                           : "bytes " + std::to_string(first) + " to " + std::to_string(first + length - 1) +
                                 " of them" + (pieces > 1 ? ", and others" : "")) +
          (rows > 1 ? " in row " + std::to_string(row) : "") + " (cudaMalloc does not clear memory)");
    return;
  }
}

void library_reads(const char* call, const void* from, std::size_t bytes) {
  if (!watching() || bytes == 0) return;
  const auto one = alone();
  GlobalShadow* const global = shadow();
  if (global == nullptr || !DeviceMemory::instance().contains(from) || global->any_written(from, bytes)) return;
  found_mistake(std::string(call) + ", called at " + Place::here().line() + ": it reads " + std::to_string(bytes) +
                " bytes of global memory of which nobody has written one (cudaMalloc does not clear it)");
}

void* allocate_pinned(std::size_t bytes) {
  if (!watching()) return nullptr;
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.pinned[reinterpret_cast<std::uintptr_t>(memory)] = size;
  return memory;
}

static std::atomic<bool> any_was_pinned = false;
bool free_pinned(void* pointer) {
  if (!watching()) return false;
  const auto one = alone();
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const auto block = s.pinned.find(reinterpret_cast<std::uintptr_t>(pointer));
  if (block == s.pinned.end()) return false;
  const auto [begin, bytes] = *block;
  if (GlobalShadow* const global = shadow()) global->freed(pointer, bytes);
  // Nothing else comes there, so that who touches it is known.
  when_host_touches(touched);
  mmap(pointer, up_to_page(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  s.freed_pinned[begin] = bytes;
  any_was_pinned = true;
  constexpr std::size_t most = 4096;
  if (s.freed_pinned.size() > most) {
    munmap(reinterpret_cast<void*>(s.freed_pinned.begin()->first), s.freed_pinned.begin()->second);
    s.freed_pinned.erase(s.freed_pinned.begin());
  }
  s.pinned.erase(block);
  return true;
}

bool was_pinned(const void* pointer) {
  if (!any_was_pinned) return false;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return is_freed(s, reinterpret_cast<std::uintptr_t>(pointer));
}

static void begins(State& s, Copy&& copy) {
  when_host_touches(touched);
  s.copies.push_back(std::move(copy));
  if (s.lifted == 0) close_pages(s.copies.back());
  note_range(s);
}

static void host_end(const Transfer& transfer, const void* host, std::size_t bytes, bool into_host,
                     std::uint32_t operation) {
  const HostBlock block = registered(host);
  if (block.begin == nullptr) return;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const auto a = reinterpret_cast<std::uintptr_t>(host), end = a + bytes;
  const auto pinned = s.pinned.find(reinterpret_cast<std::uintptr_t>(block.begin));
  const bool to_the_end = pinned != s.pinned.end() && end >= pinned->first + pinned->second;
  const Pages pages = {up_to_page(a), to_the_end ? up_to_page(end) : end / page() * page(),
                       into_host ? PROT_NONE : PROT_READ};
  begins(s, {a, end, pages.begin < pages.end ? std::vector{pages} : std::vector<Pages>(), into_host, transfer.stream,
             operation, transfer.what});
}

bool kernel_touches(const void* pc, const void* address, std::size_t bytes, bool writes) {
  const HostBlock block = registered(address);
  if (block.begin == nullptr) return false;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  Touched& touched = s.touched[reinterpret_cast<std::uintptr_t>(block.begin)];
  touched.bytes.resize(block.bytes);
  const std::size_t at = static_cast<std::size_t>(static_cast<const char*>(address) - block.begin);
  for (std::size_t i = at; i < std::min(at + bytes, block.bytes); ++i)
    touched.bytes[i] |= writes ? Touched::written : Touched::read;
  (writes ? touched.written_at : touched.read_at) = pc;
  return true;
}

void unregistered(const void* begin) {
  if (!watching()) return;
  const auto one = alone();
  const HostBlock block = registered(begin);
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const auto a = reinterpret_cast<std::uintptr_t>(block.begin);
  for (const Copy& copy : s.copies)
    if (copy.begin >= a && copy.begin < a + block.bytes) open_pages(copy);
  std::erase_if(s.copies, [&](const Copy& c) { return c.begin >= a && c.begin < a + block.bytes; });
  if (GlobalShadow* const global = shadow(); global != nullptr && block.begin != nullptr)
    global->forget(block.begin, block.bytes);
  note_range(s);
}

// Where kernels are traced, it is known what is used of managed memory.
static std::string user_of_managed(const void* address, bool write) {
  GlobalShadow* const global = shadow();
  if (global != nullptr && !global->awaited(address, 1, write)) return "";
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const auto block = DeviceMemory::instance().live_block_at(reinterpret_cast<std::uintptr_t>(address));
  const auto user = block ? s.users.find(block->start) : s.users.end();
  return user == s.users.end() ? "the kernel that was launched before" : user->second.what();
}

// The host has to wait before it touches managed memory that the transfer uses. False if it uses none.
static bool uses_managed(const Transfer& transfer, const void* end, std::uint32_t operation) {
  const auto block = DeviceMemory::instance().live_block_at(reinterpret_cast<std::uintptr_t>(end));
  if (!block || !block->managed) return false;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  when_host_touches_managed(user_of_managed);
  s.running = true;
  s.users[block->start] = {transfer.stream, operation, transfer.what};
  DeviceMemory::instance().device_uses(end);
  return true;
}

// Begins the transfer in its stream, where these are its two ends, if it has both.
static void moves(const Transfer& transfer, const void* to, const void* from, std::size_t bytes) {
  if (!watching() || bytes == 0) return;
  const auto one = alone();
  GlobalShadow* const global = shadow();
  const std::uint32_t operation = global != nullptr ? global->stream_begins(transfer.stream, nullptr, transfer.what)
                                                    : streams().begin(transfer.stream);
  for (const void* end : {from, to}) {
    if (end == nullptr) continue;
    const bool writes = end == to;
    if (!transfer.waits) host_end(transfer, end, bytes, writes, operation);
    const bool managed = !transfer.waits && uses_managed(transfer, end, operation);
    if (global == nullptr || (!managed && !global->streams().several())) continue;
    if (DeviceMemory::instance().contains(end) || DeviceVariable::at(end) != nullptr ||
        registered(end).begin != nullptr)
      global->copy_access(end, bytes, writes, /*noted=*/!transfer.waits);
  }
}

void copies(const Transfer& transfer, const void* to, const void* from, std::size_t bytes) {
  moves(transfer, to, from, bytes);
}

void sets(const Transfer& transfer, const void* to, std::size_t bytes) { moves(transfer, to, nullptr, bytes); }

void launching(cudaStream_t stream, const void* kernel) {
  if (!watching()) return;
  const auto one = alone();
  GlobalShadow* const global = shadow();
  State& s = state();
  s.operation = global != nullptr ? global->stream_begins(stream, kernel, nullptr) : streams().begin(stream);
  s.stream = stream;
  s.kernel = kernel;
}
void recorded(cudaEvent_t event, cudaStream_t stream) {
  if (!watching()) return;
  const auto one = alone();
  streams().record(event, stream);
}
void waits_for_event(cudaStream_t stream, cudaEvent_t event) {
  if (!watching()) return;
  const auto one = alone();
  streams().wait(stream, event);
}
bool has_ended(cudaEvent_t event, bool itself) {
  if (!watching()) return true;
  const auto one = alone();
  return streams().has_ended(event, itself);
}
void looks_at(const void* flag) {
  GlobalShadow* const global = shadow();
  if (global == nullptr || !global->streams().several()) return;
  // A kernel that runs may wait for what the host does next.
  if (const std::unique_lock now(one_alone(), std::try_to_lock); now) global->host_sees(flag);
}
static void awaited_touched(const void* pc, std::uintptr_t address, bool write, bool is_flag) {
  State& s = state();
  std::string what;
  {
    const std::lock_guard lock(s.mutex);
    if (s.lifted > 0) return;
    what = touches(s, address, write, is_flag);
  }
  if (!what.empty()) say_of_host(write, line_of(pc), what);
  if (is_flag) looks_at(reinterpret_cast<const void*>(address));
}

void made_stream(cudaStream_t stream, bool blocking) {
  if (!watching()) return;
  const auto one = alone();
  streams().made(stream, blocking);
}

void launched() {
  if (!watching()) return;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  when_host_touches_managed(user_of_managed);
  s.running = true;
  for (auto& [begin, touched] : s.touched) {
    begins(s, {begin,
               begin + touched.bytes.size(),
               pages_of(touched, begin, s.pinned.contains(begin)),
               touched.written_at != nullptr,
               s.stream,
               s.operation,
               {},
               s.kernel,
               std::move(touched)});
  }
  s.touched.clear();
  DeviceMemory::instance().kernels_run();
}

// The host knows of more now that is done.
static void has_waited() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const auto done = [](const Copy& copy) { return streams().host_knows(copy.stream, copy.operation); };
  for (const Copy& copy : s.copies)
    if (done(copy)) open_pages(copy);
  std::erase_if(s.copies, done);
  std::erase_if(s.users,
                [](const auto& each) { return streams().host_knows(each.second.stream, each.second.operation); });
  note_range(s);
  protect_all(s);
  s.prints = nullptr;
  if (!s.running) return;
  GlobalShadow* const global = shadow();
  s.running = global != nullptr && global->streams().several() && !streams().host_knows_all();
  if (global != nullptr && !s.running) global->host_has_waited();
  DeviceMemory::instance().kernels_have_ended([&](const DeviceMemory::Block& block) {
    return s.running && global->awaited(reinterpret_cast<const void*>(block.start), block.bytes, /*used=*/true);
  });
}

void waited(cudaStream_t stream, bool all) {
  if (!watching()) return;
  const auto one = alone();
  all ? streams().host_waits() : streams().host_waits(stream);
  has_waited();
}

// It may touch what the stream has done; and so may who waits for it, of which nobody hears.
void calls_host(cudaStream_t stream) {
  if (!watching()) return;
  const auto one = alone();
  streams().begin(stream);
  waited(stream, false);
}

void waited_for_event(cudaEvent_t event) {
  if (!watching()) return;
  const auto one = alone();
  streams().host_waits_for_event(event);
  has_waited();
}

Lifted::Lifted() {
  if (!watching()) return;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (s.lifted++ == 0) {
    for (const Copy& copy : s.copies) open_pages(copy);
    DeviceMemory::instance().lift();
  }
}

Lifted::~Lifted() {
  if (!watching()) return;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (--s.lifted == 0) {
    protect_all(s);
    DeviceMemory::instance().close();
  }
}

std::string caller() { return watching() ? Place::here().line() : ""; }

void at_end() {
  if (!watching()) return;
  if (kernels_are_traced()) race_detector().program_ends();
  for (const std::string& failure : failures_nobody_looked_at()) found_mistake(failure);
  if (broken() != cudaSuccess) return;  // then nothing can be freed any more
  if (const void* const kernel = state().prints)
    noted("kernel " + kernel_name(kernel) +
          " prints, and the program ends without having waited for it (cudaDeviceSynchronize()): a GPU usually "
          "prints nothing then");
  std::size_t bytes = 0;
  std::map<std::vector<void*>, std::string> lines;  // many allocations may come from one place
  {
    State& s = state();
    const std::lock_guard lock(s.mutex);
    for (const auto& block : DeviceMemory::instance().live()) {
      const auto found = s.allocations.find(reinterpret_cast<void*>(block.start));
      if (found == s.allocations.end()) continue;
      bytes += block.bytes;
      const Place& place = found->second;
      if (std::string& line = lines[{place.frames.begin(), place.frames.begin() + place.depth}]; line.empty())
        line = place.line();
    }
  }
  constexpr unsigned most_lines = 4;
  std::vector<std::string> different;
  for (const auto& [frames, line] : lines)
    if (std::find(different.begin(), different.end(), line) == different.end()) different.push_back(line);
  std::sort(different.begin(), different.end());
  std::string places;
  for (std::size_t i = 0; i < different.size() && i < most_lines; ++i) places += (i > 0 ? ", " : "") + different[i];
  if (different.size() > most_lines) places += ", ..";
  if (bytes > 0) noted(std::to_string(bytes) + " bytes of device memory were never freed: allocated at " + places);
}

}  // namespace simt::host_checks

void simt::host_touches_awaited(const void* pc, const void* address, bool write, bool is_flag) {
  host_checks::awaited_touched(pc, reinterpret_cast<std::uintptr_t>(address), write, is_flag);
}

void simt::prints() {
  if (watching() && worker != nullptr && worker->in_kernel())
    host_checks::state().prints.store(worker->launch().kernel, std::memory_order_relaxed);
}
