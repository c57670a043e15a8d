// How a launch fails: the failure is written down and control jumps to the worker's own stack; the fibers of the block
// are abandoned, not unwound. Faults come here through a signal handler.
#include <execinfo.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string_view>

#include "simt/engine/device_memory.h"
#include "simt/engine/engine.h"
#include "simt/engine/findings.h"
#include "simt/engine/host_ranges.h"

namespace simt {
namespace {

// The previous handlers: another copy of the engine's, in a shared library, or the program's own.
struct sigaction previous_segv;
struct sigaction previous_fpe;
struct sigaction previous_bus;
struct sigaction previous_overdue;

bool passed_on(const struct sigaction& previous, int signal, siginfo_t* info, void* context) {
  if (previous.sa_flags & SA_SIGINFO)
    previous.sa_sigaction(signal, info, context);
  else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN)
    previous.sa_handler(signal);
  else
    return false;
  return true;
}

std::string hexadecimal(const void* address) {
  char text[32];
  std::snprintf(text, sizeof text, "%p", address);
  return text;
}

void* instruction_of(const ucontext_t& context) {
#if defined(__x86_64__)
  return reinterpret_cast<void*>(context.uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<void*>(context.uc_mcontext.pc);
#else
  static_cast<void>(context);
  return nullptr;
#endif
}

// Where nothing is that could be executed: the call that went there.
void* caller_of(const ucontext_t& context) {
#if defined(__x86_64__)
  return *reinterpret_cast<char**>(context.uc_mcontext.gregs[REG_RSP]) - 1;
#elif defined(__aarch64__)
  return reinterpret_cast<char*>(context.uc_mcontext.regs[30]) - 1;
#else
  return instruction_of(context);
#endif
}

bool is_write(const ucontext_t& context) {
#if defined(__x86_64__)
  return context.uc_mcontext.gregs[REG_ERR] & 2;
#else
  static_cast<void>(context);
  return false;
#endif
}

void on_fault(int signal, siginfo_t* info, void* context) {
  if (worker != nullptr && worker->in_kernel()) worker->fault(signal, *info, *static_cast<ucontext_t*>(context));
  if (signal != SIGFPE && watching() && (worker == nullptr || !worker->in_kernel())) {
    std::array<void*, 32> frames;
    void* const instruction = instruction_of(*static_cast<ucontext_t*>(context));
    const int depth = backtrace(frames.data(), frames.size());
    const auto found = std::find(frames.begin(), frames.begin() + depth, instruction);
    const auto first = found != frames.begin() + depth ? found : frames.begin();
    const std::string line = source_line({&*first, static_cast<std::size_t>(frames.begin() + depth - first)});
    if (host_touches(info->si_addr, is_write(*static_cast<ucontext_t*>(context)),
                     line.empty() ? "an unknown line" : line))
      return;
  }
  // By default that ends the process.
  const struct sigaction& previous = signal == SIGSEGV ? previous_segv : signal == SIGBUS ? previous_bus : previous_fpe;
  if (!passed_on(previous, signal, info, context))
    sigaction(signal, &previous, nullptr);  // and the access is tried again
}

// Few programs use the realtime signals; the last of them is the least likely one.
int overdue_signal() { return SIGRTMAX; }

void on_overdue(int signal, siginfo_t* info, void* context) {
  if (worker != nullptr && worker->in_kernel())
    worker->signalled(*static_cast<ucontext_t*>(context));
  else
    passed_on(previous_overdue, signal, info, context);
}

double processor_seconds(pthread_t thread) {
  clockid_t clock;
  timespec time = {};
  if (pthread_getcpuclockid(thread, &clock) == 0) clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

void outside_a_kernel(const char* name) { throw std::logic_error(std::string(name) + " called outside a kernel"); }

void install_fault_handler() {
  static const bool once = [] {
    void* warm_up[1];
    backtrace(warm_up, 1);  // loads what it needs now, not in the handler
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &previous_segv);
    sigaction(SIGBUS, &action, &previous_bus);
    sigaction(SIGFPE, &action, &previous_fpe);  // integers; of floating-point numbers nothing traps
    action.sa_sigaction = on_overdue;
    action.sa_flags |= SA_RESTART;
    sigaction(overdue_signal(), &action, &previous_overdue);
    return true;
  }();
  static_cast<void>(once);
}

void Worker::record(cudaError_t code, const Thread* thread, const std::string& at, const std::string& what) {
  telling_ = true;
  const std::lock_guard lock(launch_->mutex);
  if (launch_->failed.exchange(true)) return;
  // A race says more than what the reader of it looked like.
  if (suspected() && !what.starts_with("race on")) {
    const auto before = std::move(suspicion_);
    launch_->failure = {cudaErrorLaunchFailure, "kernel " + kernel_name(launch_->kernel) + ", block " + text(blockIdx) +
                                                    ", thread " + text(before->thread.index) + ", at " + before->at +
                                                    ": " + before->what};
    return;
  }
  std::string message = "kernel " + kernel_name(launch_->kernel) + ", block " + text(blockIdx);
  if (thread != nullptr) message += ", thread " + text(thread->index);
  launch_->failure = {code, message + (at.empty() ? ": " : ", at " + at + ": ") + what};
}

void Worker::fail(cudaError_t code, const Thread* thread, const std::string& at, const std::string& what) {
  record(code, thread, at, what);
  siglongjmp(first_->landing_, failed);
}

void Worker::suspect(const std::string& at, const std::string& what) {
  if (suspected()) return;
  suspicion_ = std::make_unique<Suspicion>(Suspicion{block_number(), {}, at, what});
  suspicion_->thread.index = current_->index;
}

void Worker::fail_of(unsigned thread, const std::string& at, const std::string& what) {
  Thread named = {};
  named.index = index_of(thread, launch_->block);
  fail(cudaErrorLaunchFailure, &named, at, what);
}

static bool within(const Fiber& fiber, std::uintptr_t address) {
  const auto begin = reinterpret_cast<std::uintptr_t>(fiber.stack);
  return begin <= address && address < begin + stack_bytes;
}
bool Worker::on_its_fiber(std::uintptr_t address) const { return within(*current_->fiber, address); }
bool Worker::on_a_fiber(std::uintptr_t address) const {
  return on_its_fiber(address) ||
         std::any_of(fibers_.begin(), fibers_.end(), [&](const auto& fiber) { return within(*fiber, address); });
}

void Worker::fail_if_suspected() {
  if (!suspected()) return;
  fail(cudaErrorLaunchFailure, nullptr, "", "");  // which says what was suspected
}

void Worker::fault(int signal, const siginfo_t& info, const ucontext_t& context) {
  if (first_->explaining_) {
    constexpr std::string_view line =
        "the program ends here: a kernel has written over what the engine needs to say where. "
        "Run it without --no-races: then it is stopped before\n";
    if (write(STDERR_FILENO, line.data(), line.size()) < 0) _exit(1);
    std::signal(signal, SIG_DFL);
    sigset_t self;
    sigemptyset(&self);
    sigaddset(&self, signal);
    pthread_sigmask(SIG_UNBLOCK, &self, nullptr);
    std::raise(signal);
  }
  fault_.address = info.si_addr;
  fault_.access_known = false;
  fault_.division = signal == SIGFPE;
#if defined(__x86_64__)
  fault_.write = is_write(context);
  fault_.access_known = true;
  // Not a page fault but a protection fault: the address of a 16-byte instruction is not a multiple of 16.
  fault_.misaligned = signal == SIGSEGV && info.si_code == SI_KERNEL;
#elif defined(__aarch64__)
  fault_.misaligned = signal == SIGBUS && info.si_code == BUS_ADRALN;
#else
  fault_.misaligned = false;
#endif
  fault_.call = signal != SIGFPE && instruction_of(context) == info.si_addr;
  if (fault_.call)  // and nothing to read for who looks through the stack
    fault_.stack[0] = caller_of(context), fault_.depth = 1;
  else
    keep_stack(instruction_of(context));
  siglongjmp(first_->landing_, faulted);
}

void Worker::keep_stack(void* instruction) {
  // The unwinder goes through the handler's own frames to those of the kernel: keep what follows the instruction.
  std::array<void*, 48> frames;
  const int depth = backtrace(frames.data(), frames.size());
  const auto found = std::find(frames.begin(), frames.begin() + depth, instruction);
  fault_.stack[0] = instruction;
  fault_.depth = 1;
  if (found != frames.begin() + depth)
    for (auto frame = found + 1; frame != frames.begin() + depth; ++frame) fault_.stack[fault_.depth++] = *frame;
}

void Worker::explain_fault() {
  if (launch_->failed.load()) return;
  const std::string at =
      source_line_and_call({fault_.stack.data(), static_cast<std::size_t>(fault_.depth)}, launch_->kernel);
  if (fault_.division) {
    record(cudaErrorLaunchFailure, current_, at,
           "an integer is divided by 0, or the smallest one by -1: a GPU goes on with a number that CUDA does not "
           "specify");
    return;
  }
  const auto* address = static_cast<const char*>(fault_.address);
  const char* stack = current_->fiber ? current_->fiber->stack : nullptr;
  if (stack != nullptr && address >= stack - guard_bytes && address < stack) {
    record(cudaErrorLaunchFailure, current_, at,
           "stack overflow: the thread's local variables and calls need more than " +
               std::to_string(stack_bytes / 1024) + " KiB");
    return;
  }
  if (fault_.call) {
    const std::string function = function_in_host_code(address);
    record(cudaErrorIllegalAddress, current_, at,
           address == nullptr ? "a call of a function by a null pointer"
           : function.empty() ? "a call of a function that is not there: its address is " + hexadecimal(address)
                              : "a call of " + function);
    return;
  }
  if (fault_.misaligned) {
    record(cudaErrorMisalignedAddress, current_, at,
           "misaligned access: the address of a 16-byte access is not a multiple of 16 (or is no address at all)");
    return;
  }
  const std::string access = !fault_.access_known ? "access" : fault_.write ? "write" : "read";
  std::string where = shared_.where(address);
  for (const Worker* each : cluster())
    if (char* const own = where.empty() ? each->shared_.own(address) : nullptr)
      where = each->shared_.where(own) + ", which is block " + text(each->index_) + " of the cluster" +
              (each->has_ended() ? " and has returned" : "");
  if (where.empty() && DeviceMemory::instance().contains(address)) where = DeviceMemory::instance().where(address);
  if (where.empty()) {
    where = reinterpret_cast<std::uintptr_t>(address) < 4096
                ? "of a null pointer, at byte " + std::to_string(reinterpret_cast<std::uintptr_t>(address))
                : "at " + hexadecimal(address) + ", which is not device memory";
  }
  record(cudaErrorIllegalAddress, current_, at, "invalid " + access + " " + where);
}

void Worker::check_time(Running& since) {
  const std::lock_guard lock(watched_);
  if (!runs_) return;
  launch_->pace.look(*launch_);
  const std::uint64_t turn = turn_.load(std::memory_order_relaxed);
  const double now = processor_seconds(os_thread_);
  if (turn != since.turn)
    since = {turn, now};
  else if (now - since.since > launch_->schedule.patience) {
    overdue_turn_ = turn;
    pthread_kill(os_thread_, overdue_signal());
  }
}

// In the middle of the engine or of a library, which may hold a lock, nothing can be done; the Watchdog asks again.
void Worker::signalled(const ucontext_t& context) {
  if (!is_overdue()) return;
  void* const instruction = instruction_of(context);
  const Function* function = launch_->module != nullptr
                                 ? launch_->module->function_at(reinterpret_cast<std::uintptr_t>(instruction))
                                 : nullptr;
  if (!observers_.empty() || function == nullptr || function->name.starts_with("_ZN4simt") ||
      function->name.starts_with("_ZNK4simt"))
    return;
  keep_stack(instruction);
  siglongjmp(first_->landing_, overdue);
}

void Worker::fail_if_overdue() {
  if (!is_overdue()) return;
  keep_stack(__builtin_return_address(0));
  siglongjmp(first_->landing_, overdue);
}

void Worker::fail_if_overdue_at(const void* pc) {
  if (!is_overdue()) return;
  fail(cudaErrorLaunchTimeout, current_, line_of(pc), overdue_text());
}

std::string Worker::overdue_text() const {
  char patience[32];
  std::snprintf(patience, sizeof patience, "%g", launch_->schedule.patience);
  return std::string("the thread has run for ") + patience +
         " s and has neither waited nor returned. If its loop waits for what another thread writes, it never ends: "
         "threads run one after the other here, from one barrier to the next";
}

void Worker::explain_overdue() {
  record(cudaErrorLaunchTimeout, current_, source_line({fault_.stack.data(), static_cast<std::size_t>(fault_.depth)}),
         overdue_text());
}

}  // namespace simt

// What assert() calls, in the place of the C library's: an assertion of a kernel ends its launch, not the process.
extern "C" void __assert_fail(const char* assertion, const char* file, unsigned line, const char* function) noexcept {
  using simt::worker;
  if (worker != nullptr && worker->in_kernel())
    worker->fail(cudaErrorAssert, &worker->current(),
                 simt::text({file, static_cast<int>(line), __builtin_return_address(0)}),
                 std::string("assertion failed: ") + assertion);
  std::fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, assertion);
  std::abort();
}
