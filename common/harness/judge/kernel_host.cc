// The process of a submission's kernels: it takes requests from the socket 3 (harness/kernel_process.h), runs them, and
// answers, until the socket is closed. ./workbook grade links it, statically, with the one file that was handed in, and
// confine starts it: from its first instruction on it can compute, use its own memory, and read and write that socket.
// Nothing here is protected from the kernels: whatever it answers is raw numbers, which somebody else judges.
//
//   kernel_host rung|pass|chapter NAME
//
// What the linker is told to call `handed_in` is a Rung, or the Pass of a backward, or a Chapter with the rung NAME.
#include <link.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attention/chapter.h"
#include "device/cuda_error.h"
#include "device/trace.h"
#include "harness/kernel_process.h"
#include "harness/socket.h"
#include "simt/engine/device_memory.h"
#include "simt/engine/diagnosis.h"
#include "simt/engine/engine.h"
#include "simt/engine/modules.h"
#include "simt/hopper/bulk_copy.h"

extern "C" const char handed_in[];

// The C library's loads a shared library for this, and there is none to be had. Its size is what callers know.
extern "C" int backtrace(void** to, int size) {
  struct Walk {
    void** to;
    int size, found;
  } walk = {to, size, -1};  // not this function itself
  _Unwind_Backtrace(
      [](_Unwind_Context* context, void* data) {
        Walk& walk = *static_cast<Walk*>(data);
        if (walk.found >= walk.size) return _URC_END_OF_STACK;
        if (walk.found >= 0) walk.to[walk.found] = reinterpret_cast<void*>(_Unwind_GetIP(context));
        walk.found++;
        return _URC_NO_REASON;
      },
      &walk);
  return std::max(walk.found, 0);
}

// The dynamic linker's, which is not there: where this thread's copy of the program's thread-local variables is.
extern "C" void* __tls_get_addr(size_t* module_and_offset) {
  static const auto program = [] {
    ElfW(Phdr) found = {};
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* to) {
          for (int i = 0; i < info->dlpi_phnum; i++)
            if (info->dlpi_phdr[i].p_type == PT_TLS) *static_cast<ElfW(Phdr)*>(to) = info->dlpi_phdr[i];
          return 1;
        },
        &found);
    return found;
  }();
  const size_t step = std::max<size_t>(program.p_align, 1);
  const auto rounded = [&](size_t bytes) { return (bytes + step - 1) / step * step; };
  char* const thread = static_cast<char*>(__builtin_thread_pointer());
#ifdef __x86_64__
  return thread - rounded(program.p_memsz) + module_and_offset[1];  // the ABI's variant II: before the thread's own
#else
  return thread + rounded(16) + module_and_offset[1];  // variant I: behind
#endif
}

namespace {

using namespace harness::kernel_process;
using attention::Rung;
using harness::receive, harness::send_all;
using simt::DeviceMemory;

constexpr int socket_to_the_judge = 3, own_program = 4;

struct Passes {
  attention::Forward forward;
  attention::Backward backward;
};

Passes passes_of(std::string_view kind, std::string_view name) {
  if (kind == "pass") return {{}, *reinterpret_cast<const attention::Backward*>(handed_in)};
  if (kind == "rung") {
    const Rung& rung = *reinterpret_cast<const Rung*>(handed_in);
    return {rung.forward, rung.backward};
  }
  for (const Rung& rung : reinterpret_cast<const attention::Chapter*>(handed_in)->rungs)
    if (rung.name == name) return {rung.forward, rung.backward};
  std::exit(2);
}

// Nobody here can ask addr2line which lines these are: the grader does.
std::string addresses(std::span<void* const> stack) {
  std::string text = "{@";
  char one[24];
  for (size_t i = 0; i < std::min<size_t>(stack.size(), 8); i++) {
    std::snprintf(one, sizeof one, "%s%zx", i > 0 ? "," : "", reinterpret_cast<size_t>(stack[i]) - (i > 0 ? 1 : 0));
    text += one;
  }
  return text + "}";
}

// What the engine counts lies in this process. Traced code that can call nothing of it (kernelcode.py) can still write
// anywhere, by a wild index or a pointer made of a number: a kernel not to anything but its own memory and variables,
// and the host's code, which nobody needs to write for an exercise, to its variables. Neither to the frames of whoever
// called it: these know where the counts are.
uintptr_t hosts_frames_end = 0;

// Where the frames of what its caller calls begin; they grow down from there.
[[gnu::noinline]] uintptr_t frames_of_callees() { return reinterpret_cast<uintptr_t>(__builtin_frame_address(0)); }

void host_writes(const void* address) {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)), to = reinterpret_cast<uintptr_t>(address);
  if (to < here || to >= hosts_frames_end) std::abort();
}

class OwnMemory final : public simt::Observer {
 public:
  void accessed(const simt::MemoryAccess& access) override {
    if (access.space != simt::MemoryAccess::elsewhere || access.access == simt::Access::read) return;
    if (!simt::worker->in_kernels_frames(access.address))
      refuse(access.pc, "invalid write outside of the kernel's memory and variables");
  }
  // What the engine copies for a kernel is between shared memory, as it sees to itself, and global memory.
  void copy_starts(const simt::Copy& copy, const simt::PendingCopies&) override {
    if (copy.source_bytes > 0) require_global(copy.pc, copy.global, copy.source_bytes);
  }
  void bulk_load_starts(const simt::BulkCopy& copy, const simt::Mbarrier&) override { require_global(copy); }
  void bulk_store_starts(const simt::BulkCopy& copy) override { require_global(copy); }

 private:
  static void require_global(const simt::BulkCopy& copy) {
    if (copy.kind == simt::BulkCopy::remote) return;
    copy.for_each_piece([&](const char*, const char* global, int bytes) {
      if (global != nullptr) require_global(copy.pc, global, size_t(bytes));
    });
  }
  static void require_global(const void* pc, const void* address, size_t bytes) {
    for (const void* end : {address, static_cast<const void*>(static_cast<const char*>(address) + bytes - 1)})
      if (simt::worker->memory_access(pc, end, 1, simt::Access::read).space != simt::MemoryAccess::global)
        refuse(pc, "invalid copy: what should lie in global memory lies outside of it");
  }
  [[noreturn]] static void refuse(const void* pc, const char* what) {
    simt::worker->fail(cudaErrorIllegalAddress, &simt::worker->current(), simt::line_of(pc), what);
  }
};

void copy_text(char* to, size_t longest, const char* text) {
  std::strncpy(to, text, longest);
  to[longest] = 0;
}

Launch as_launch(const simt::LaunchCounts& counts) {
  Launch launch = {};
  copy_text(launch.kernel, longest_name, counts.kernel.c_str());
  launch.grid = counts.grid, launch.block = counts.block;
  launch.dynamic_shared_bytes = counts.dynamic_shared_bytes;
  launch.barriers = counts.barriers, launch.shuffles = counts.shuffles, launch.matrix_flops = counts.matrix_flops;
  launch.knows_alone = counts.matrix_flops_alone.has_value();
  launch.matrix_flops_alone = counts.matrix_flops_alone.value_or(0);
  launch.for_exercises = counts.for_exercises;
  launch.read = counts.read, launch.written = counts.written;
  std::copy(counts.totals.begin(), counts.totals.end(), launch.totals);
  return launch;
}

Answer answer_to(const Request& request, const Passes& passes, std::vector<Launch>& launches) {
  Answer answer = {};
  if (request.count) simt::trace_begin();
  hosts_frames_end = frames_of_callees();
  try {
    if (request.backward)
      passes.backward.run(request.problem, request.backward_args, nullptr);
    else
      passes.forward.run(request.problem, request.forward_args, nullptr);
    answer.ended = Ended::well;
  } catch (const CudaError& error) {
    answer.ended = Ended::with_a_cuda_error, answer.code = error.code();
    copy_text(answer.message, longest_message, error.what());
  } catch (const std::exception& error) {
    answer.ended = Ended::with_another_error;
    copy_text(answer.message, longest_message, error.what());
  }
  if (request.count)
    for (const simt::LaunchCounts& counts : simt::trace_end())
      if (launches.size() < most_launches) launches.push_back(as_launch(counts));
  answer.launches = uint32_t(launches.size());
  return answer;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  simt::read_program_from(own_program);
  simt::lines_are_found_elsewhere(addresses);
  static OwnMemory own_memory;
  if (can_trace()) simt::add(own_memory);
  simt::host_writes = host_writes;
  const Passes passes = passes_of(argv[1], argv[2]);
  DeviceMemory& memory = DeviceMemory::instance();
  Request request;
  while (receive(socket_to_the_judge, &request, sizeof request)) {
    if (request.first_address != memory.first_address()) return 2;
    std::vector<DeviceMemory::Block> allocations(request.allocations);
    if (!receive(socket_to_the_judge, allocations.data(), allocations.size() * sizeof allocations[0])) return 2;
    memory.replace_all(allocations);
    for (const auto& block : allocations)
      if (!receive(socket_to_the_judge, reinterpret_cast<void*>(block.start), block.end - block.start)) return 2;
    simt::set_schedule(request.schedule);
    simt::set_max_shared(request.max_shared);
    std::vector<Launch> launches;
    const Answer answer = answer_to(request, passes, launches);
    send_all(socket_to_the_judge, &answer, sizeof answer);
    for (const auto& block : allocations)
      send_all(socket_to_the_judge, reinterpret_cast<const void*>(block.start), block.end - block.start);
    send_all(socket_to_the_judge, launches.data(), launches.size() * sizeof(Launch));
  }
  _exit(0);
}
