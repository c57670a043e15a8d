// How a launch fails: the failure is written down and control jumps to the worker's own stack; the fibers of the block
// are abandoned, not unwound. Faults come here through a signal handler.
#include <execinfo.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <memory>

#include "simt/engine.h"
#include "simt/memory.h"

namespace simt {
namespace {

std::string mask_text(unsigned mask) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", mask);
  return text;
}

struct sigaction previous_segv;
struct sigaction previous_bus;

void on_fault(int signal, siginfo_t* info, void* context) {
  if (worker != nullptr && worker->in_kernel()) worker->fault(signal, *info, *static_cast<ucontext_t*>(context));
  // Not ours: whoever was here before handles it, by default by ending the process.
  const struct sigaction& previous = signal == SIGSEGV ? previous_segv : previous_bus;
  if (previous.sa_flags & SA_SIGINFO)
    previous.sa_sigaction(signal, info, context);
  else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN)
    previous.sa_handler(signal);
  else
    sigaction(signal, &previous, nullptr);  // and the access is tried again
}

}  // namespace

void install_fault_handler() {
  static const bool once = [] {
    void* warm_up[1];
    backtrace(warm_up, 1);  // loads what it needs now, not in the handler
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &previous_segv);
    sigaction(SIGBUS, &action, &previous_bus);
    return true;
  }();
  static_cast<void>(once);
}

void Worker::record(cudaError_t code, const Thread* thread, const std::string& at, const std::string& what) {
  const std::lock_guard lock(launch_->mutex);
  if (launch_->failed.exchange(true)) return;
  std::string message = "kernel " + kernel_name(launch_->kernel) + ", block " + text(blockIdx);
  if (thread != nullptr) message += ", thread " + text(thread->index);
  launch_->failure = {code, message + (at.empty() ? ": " : ", at " + at + ": ") + what};
}

void Worker::fail(cudaError_t code, const Thread* thread, const std::string& at, const std::string& what) {
  record(code, thread, at, what);
  siglongjmp(landing_, failed);
}

std::string Worker::returned_lanes(const Warp& warp, unsigned mask) const {
  unsigned exist = 0;
  for (unsigned lane = 0; lane < 32; ++lane) exist |= unsigned(warp.lanes[lane] != nullptr) << lane;
  std::string result;
  if (const unsigned returned = mask & exist & ~warp.live; returned != 0)
    result = lanes_text(returned) + " of the mask returned before it";
  if (const unsigned missing = mask & ~exist; missing != 0)
    result += (result.empty() ? "" : ", ") + lanes_text(missing) + " of the mask are not in the block";
  return result;
}

// Who waits where: for each place its threads, in the order of their numbers.
std::string Worker::waiting_threads() const {
  struct Group {
    const Thread* first;
    std::string what;
    unsigned lanes = 0;  // of a collective
    int threads = 0;
  };
  std::vector<Group> groups;
  std::vector<const Warp*> warps;
  for (unsigned w = 0; w < warp_count_; ++w) warps.push_back(&warps_[w]);
  std::sort(warps.begin(), warps.end(), [](auto* a, auto* b) { return a->number < b->number; });
  for (const Warp* warp : warps) {
    for (const Thread* thread : warp->lanes) {
      if (thread == nullptr || !(warp->live >> thread->lane & 1)) continue;
      std::string what;
      for (unsigned used = warp->collectives_used; used != 0; used &= used - 1) {
        const Collective& collective = warp->collectives[std::countr_zero(used)];
        if (!(collective.arrived >> thread->lane & 1)) continue;
        what = std::string("of warp ") + std::to_string(warp->number) + " wait in " + collective.name + " (mask " +
               mask_text(collective.mask);
        if (const std::string returned = returned_lanes(*warp, collective.mask & ~collective.arrived);
            !returned.empty())
          what += "; " + returned;
        what += ")";
      }
      const bool in_collective = !what.empty();
      if (thread->named_barrier != 0) {
        const NamedBarrier& barrier = named_barriers_[thread->named_barrier];
        what = "wait in named barrier " + std::to_string(thread->named_barrier) + " (" +
               std::to_string(barrier.arrived) + " of " + std::to_string(barrier.threads) + " threads have come)";
      } else if (!in_collective) {
        what = "wait in __syncthreads()";
      }
      Group* group = nullptr;
      for (Group& g : groups)
        if (g.what == what && g.first->site == thread->site) group = &g;
      if (group == nullptr) group = &groups.emplace_back(Group{thread, what});
      ++group->threads;
      if (in_collective) group->lanes |= 1u << thread->lane;
    }
  }
  std::string result;
  constexpr std::size_t most = 6;
  for (std::size_t i = 0; i < std::min(most, groups.size()); ++i) {
    const Group& group = groups[i];
    if (i > 0) result += "; ";
    if (group.lanes != 0)
      result += lanes_text(group.lanes) + " ";
    else
      result += std::to_string(group.threads) + (group.threads == 1 ? " thread (" : " threads (first: ") +
                text(group.first->index) + ") ";
    result += group.what + " at " + text(group.first->site);
  }
  if (groups.size() > most) result += "; and " + std::to_string(groups.size() - most) + " more groups";
  return result;
}

void Worker::not_in_mask(const char* name, unsigned mask) {
  fail(cudaErrorLaunchFailure, current_, text(current_->site),
       std::string(name) + " with mask " + mask_text(mask) + ", which does not name the calling lane " +
           std::to_string(current_->lane));
}

void Worker::different_collectives(const Warp& warp, const Collective& waiting, const char* name) {
  const Thread& other = *warp.lanes[std::countr_zero(waiting.arrived)];
  fail(cudaErrorLaunchFailure, current_, text(current_->site),
       std::string("different collectives in one warp: lane ") + std::to_string(current_->lane) + " calls " + name +
           " with mask " + mask_text(waiting.mask) + ", while " + lanes_text(waiting.arrived) +
           " of that mask wait in " + waiting.name + " at " + text(other.site));
}

void Worker::deadlock() {
  fail(cudaErrorLaunchTimeout, nullptr, "", "deadlock: every thread of the block waits: " + waiting_threads());
}

void Worker::fault(int signal, const siginfo_t& info, const ucontext_t& context) {
  fault_.address = info.si_addr;
  fault_.access_known = false;
  void* instruction = nullptr;
#if defined(__x86_64__)
  instruction = reinterpret_cast<void*>(context.uc_mcontext.gregs[REG_RIP]);
  fault_.write = context.uc_mcontext.gregs[REG_ERR] & 2;
  fault_.access_known = true;
  // Not a page fault but a protection fault: the address of a 16-byte instruction is not a multiple of 16.
  fault_.misaligned = signal == SIGSEGV && info.si_code == SI_KERNEL;
#elif defined(__aarch64__)
  instruction = reinterpret_cast<void*>(context.uc_mcontext.pc);
  fault_.misaligned = signal == SIGBUS && info.si_code == BUS_ADRALN;
#else
  static_cast<void>(context);
  fault_.misaligned = false;
#endif
  // The unwinder goes through the handler's own frames to those of the kernel: keep what follows the instruction.
  std::array<void*, 48> frames;
  const int depth = backtrace(frames.data(), frames.size());
  const auto found = std::find(frames.begin(), frames.begin() + depth, instruction);
  fault_.stack[0] = instruction;
  fault_.depth = 1;
  if (found != frames.begin() + depth)
    for (auto frame = found + 1; frame != frames.begin() + depth; ++frame) fault_.stack[fault_.depth++] = *frame;
  siglongjmp(landing_, faulted);
}

void Worker::explain_fault() {
  if (launch_->failed.load()) return;
  const std::string at = source_line({fault_.stack.data(), static_cast<std::size_t>(fault_.depth)});
  const auto* address = static_cast<const char*>(fault_.address);
  const char* stack = current_->fiber ? current_->fiber->stack : nullptr;
  if (stack != nullptr && address >= stack - guard_bytes && address < stack) {
    record(cudaErrorLaunchFailure, current_, at,
           "stack overflow: the thread's local variables and calls need more than " +
               std::to_string(stack_bytes / 1024) + " KiB");
    return;
  }
  if (fault_.misaligned) {
    record(cudaErrorMisalignedAddress, current_, at,
           "misaligned access: the address of a 16-byte access is not a multiple of 16 (or is no address at all)");
    return;
  }
  const std::string access = !fault_.access_known ? "access" : fault_.write ? "write" : "read";
  std::string where = shared_.where(address);
  if (where.empty() && DeviceMemory::instance().contains(address)) where = DeviceMemory::instance().where(address);
  if (where.empty()) {
    char hexadecimal[32];
    std::snprintf(hexadecimal, sizeof hexadecimal, "%p", fault_.address);
    where = reinterpret_cast<std::uintptr_t>(address) < 4096
                ? "of a null pointer, at byte " + std::to_string(reinterpret_cast<std::uintptr_t>(address))
                : std::string("at ") + hexadecimal + ", which is not device memory";
  }
  record(cudaErrorIllegalAddress, current_, at, "invalid " + access + " " + where);
}

}  // namespace simt
