#include "tests/chapter/kernel_process.h"

#include "device/trace.h"

#ifdef WORKBOOK_SIMT

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "device/cuda_error.h"
#include "simt/engine/device_memory.h"

namespace chapter_suite {
namespace {

using attention::BackwardArgs;
using attention::ForwardArgs;
using attention::Problem;
using simt::DeviceMemory;

// Both processes are copies of one, so a function has the same address in each.
template <class Args>
struct Call {
  void (*run)(const Problem&, const Args&, cudaStream_t) = nullptr;
  Args args = {};
};
struct Request {
  Problem problem = {};
  Call<ForwardArgs> forward = {};    // either this
  Call<BackwardArgs> backward = {};  // or that
  simt::Schedule schedule = {};
  size_t max_shared = 0;
  size_t allocations = 0;  // which follow
};
struct Answer {
  enum class What { done, cuda_error, other_error } what;
  cudaError_t code;
  size_t length;  // of the message, which follows
};
static_assert(std::is_trivially_copyable_v<Request> && std::is_trivially_copyable_v<Answer>);

int kernels = -1;  // the socket to the kernels' process
pid_t process = -1;

bool received(int from, void* to, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t now = read(from, static_cast<char*>(to) + done, bytes - done);
    if (now <= 0) return false;
    done += size_t(now);
  }
  return true;
}

// MSG_NOSIGNAL: if the other process has gone, the answer that does not come says so.
void send_all(int to, const void* from, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t now = send(to, static_cast<const char*>(from) + done, bytes - done, MSG_NOSIGNAL);
    if (now <= 0) return;
    done += size_t(now);
  }
}

void answer(int socket, Answer::What what, cudaError_t code, const std::string& message) {
  const Answer head = {what, code, message.size()};
  send_all(socket, &head, sizeof head);
  send_all(socket, message.data(), message.size());
}

// Answers requests until the other process has ended.
[[noreturn]] void serve(int socket) {
  Request request;
  while (received(socket, &request, sizeof request)) {
    std::vector<DeviceMemory::Block> allocations(request.allocations);
    if (!received(socket, allocations.data(), allocations.size() * sizeof allocations[0])) break;
    DeviceMemory::instance().replace_all(allocations);
    simt::set_schedule(request.schedule);
    simt::set_max_shared(request.max_shared);
    try {
      if (request.backward.run)
        request.backward.run(request.problem, request.backward.args, nullptr);
      else
        request.forward.run(request.problem, request.forward.args, nullptr);
      answer(socket, Answer::What::done, cudaSuccess, "");
    } catch (const CudaError& error) {
      answer(socket, Answer::What::cuda_error, error.code(), error.what());
    } catch (const std::exception& error) {
      answer(socket, Answer::What::other_error, cudaSuccess, error.what());
    }
    std::fflush(stdout);
  }
  _exit(0);
}

// Ends this process as the kernels' process has ended.
[[noreturn]] void end_likewise() {
  int status = 0;
  waitpid(process, &status, 0);
  std::fflush(stdout);
  if (WIFSIGNALED(status)) {
    std::signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
  }
  throw std::runtime_error("the kernels' process has ended, status " + std::to_string(WEXITSTATUS(status)));
}

void ask(Request request) {
  const std::vector<DeviceMemory::Block> allocations = DeviceMemory::instance().live();
  request.schedule = simt::schedule();
  request.max_shared = simt::max_shared();
  request.allocations = allocations.size();
  send_all(kernels, &request, sizeof request);
  send_all(kernels, allocations.data(), allocations.size() * sizeof allocations[0]);
  Answer head;
  if (!received(kernels, &head, sizeof head)) end_likewise();
  std::string message(head.length, ' ');
  if (!received(kernels, message.data(), message.size())) end_likewise();
  if (head.what == Answer::What::cuda_error) throw CudaError(head.code, message);
  if (head.what == Answer::What::other_error) throw std::runtime_error(message);
}

template <auto call, class Pass>
Pass in_kernel_process_as(Pass pass) {
  if (kernels < 0) return pass;
  static decltype(pass.run) run;  // a pass holds a plain function, which cannot carry another one along
  run = pass.run;
  pass.run = [](const Problem& p, const auto& args, cudaStream_t) {
    Request request = {.problem = p};
    request.*call = {run, args};
    ask(request);
  };
  return pass;
}

}  // namespace

void start_kernel_process() {
  if (can_trace()) return;
  DeviceMemory::instance().share();
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) throw std::runtime_error("no socket for the kernels' process");
  process = fork();
  if (process < 0) throw std::runtime_error("the kernels cannot have a process of their own");
  close(sockets[process == 0 ? 0 : 1]);
  kernels = sockets[process == 0 ? 1 : 0];
  if (process > 0) return;
  if (const char* const channel = std::getenv("WORKBOOK_GRADER_CHANNEL")) close(std::atoi(channel));
  serve(kernels);
}

attention::Forward in_kernel_process(const attention::Forward& pass) {
  return in_kernel_process_as<&Request::forward>(pass);
}

attention::Backward in_kernel_process(const attention::Backward& pass) {
  return in_kernel_process_as<&Request::backward>(pass);
}

}  // namespace chapter_suite

#else

namespace chapter_suite {

void start_kernel_process() {}
attention::Forward in_kernel_process(const attention::Forward& pass) { return pass; }
attention::Backward in_kernel_process(const attention::Backward& pass) { return pass; }

}  // namespace chapter_suite

#endif
