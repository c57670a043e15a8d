#include "harness/kernel_process.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "device/cuda_error.h"
#include "device/trace.h"
#include "harness/socket.h"
#include "simt/engine/device_memory.h"

namespace harness {
namespace kernel_process {

static_assert(std::is_trivially_copyable_v<Request> && std::is_trivially_copyable_v<Answer> &&
              std::is_trivially_copyable_v<Launch>);

}  // namespace kernel_process

namespace {

using namespace kernel_process;
using simt::DeviceMemory;

// The socket, -1 if there is none.
int kernels() {
  static const int socket = [] {
    const char* const named = std::getenv("WORKBOOK_KERNELS");
    if (!named) return -1;
    prctl(PR_SET_DUMPABLE, 0);
    return std::atoi(named);
  }();
  return socket;
}

[[noreturn]] void gone() {
  std::fflush(stdout);
  std::fputs("the kernels' process has ended\n", stderr);
  _exit(3);  // whatever the tests would make of it: ./workbook grade knows how that process has ended
}

// Whatever it holds, one line of letters that can be printed.
std::string printable(const char* text, size_t longest) {
  std::string line(text, strnlen(text, longest));
  std::replace_if(
      line.begin(), line.end(), [](char letter) { return letter < ' ' || letter > '~'; }, '?');
  return line;
}

// Never empty: to a test, what has no words has no mistake.
std::string message_of(const Answer& answer) {
  const std::string message = printable(answer.message, longest_message);
  return message.empty() ? "an error without a word" : message;
}

// Where the code has more than a kernel needs, the message is perhaps not the engine's, and what it says may be
// anything that the process can see, as other exercises' code. Of such a one only what the engine says anyway is shown.
std::string shown(const std::string& message) {
  if (!std::getenv("WORKBOOK_KERNELS_UNSURE")) return message;
  for (const char* known :
       {"stack overflow", "std::bad_alloc", "cudaErrorMemoryAllocation", "invalid read", "invalid write",
        "out of bounds", "misaligned", "race on", "uninitialised", "deadlock", "division by zero"})
    if (message.find(known) != std::string::npos)
      return std::string("cudaErrorUnknown: kernel of a submission: ") + known + ": where, only its own process knows";
  return "a mistake that only the submission's own process has seen";
}

simt::LaunchCounts as_counts(const Launch& launch) {
  simt::LaunchCounts counts;
  counts.kernel = printable(launch.kernel, longest_name);
  std::replace(counts.kernel.begin(), counts.kernel.end(), '"', '\'');
  counts.grid = launch.grid, counts.block = launch.block;
  counts.dynamic_shared_bytes = launch.dynamic_shared_bytes;
  counts.barriers = launch.barriers, counts.shuffles = launch.shuffles, counts.matrix_flops = launch.matrix_flops;
  if (launch.knows_alone) counts.matrix_flops_alone = launch.matrix_flops_alone;
  counts.for_exercises = launch.for_exercises;
  counts.read = launch.read, counts.written = launch.written;
  std::copy(std::begin(launch.totals), std::end(launch.totals), counts.totals.begin());
  return counts;
}

void ask(Request request) {
  DeviceMemory& memory = DeviceMemory::instance();
  const std::vector<DeviceMemory::Block> allocations = memory.live();
  request.schedule = simt::schedule();
  request.max_shared = simt::max_shared();
  request.count = can_trace() && simt::trace_counter();
  request.first_address = memory.first_address();
  request.allocations = allocations.size();
  const int socket = kernels();
  send_all(socket, &request, sizeof request);
  send_all(socket, allocations.data(), allocations.size() * sizeof allocations[0]);
  for (const auto& block : allocations)
    send_all(socket, reinterpret_cast<const void*>(block.start), block.end - block.start);

  static Answer answer;
  if (!receive(socket, &answer, sizeof answer) || answer.launches > most_launches) gone();
  for (const auto& block : allocations)
    if (!receive(socket, reinterpret_cast<void*>(block.start), block.end - block.start)) gone();
  std::vector<Launch> launches(answer.launches);
  if (!receive(socket, launches.data(), launches.size() * sizeof(Launch))) gone();
  if (request.count)
    for (const Launch& launch : launches) simt::trace_add(as_counts(launch));
  const std::string message = shown(message_of(answer));
  if (answer.ended == Ended::with_a_cuda_error) throw CudaError(answer.code, message);
  // The engine has no others, so that their text is what was handed in, or read by it, and nothing to be shown.
  const std::string out_of_memory = std::bad_alloc().what();
  if (answer.ended != Ended::well)
    throw std::runtime_error(message == out_of_memory ? message : "an exception that is none of CUDA's");
}

template <class Args>
attention::Pass<Args> in_kernel_process_as(attention::Pass<Args> pass) {
  if (kernels() < 0) return pass;
  pass.run = [](const attention::Problem& p, const Args& args, cudaStream_t) {
    Request request;
    request.problem = p;
    request.backward = std::is_same_v<Args, attention::BackwardArgs>;
    if constexpr (std::is_same_v<Args, attention::BackwardArgs>)
      request.backward_args = args;
    else
      request.forward_args = args;
    ask(request);
  };
  return pass;
}

}  // namespace

bool kernels_are_apart() { return kernels() >= 0; }
attention::Forward in_kernel_process(const attention::Forward& pass) { return in_kernel_process_as(pass); }
attention::Backward in_kernel_process(const attention::Backward& pass) { return in_kernel_process_as(pass); }

}  // namespace harness
