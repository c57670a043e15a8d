// What host code does wrong with the runtime, in a program that is watched (findings.h): it touches device memory,
// reads managed or pinned memory before what was begun there has ended, forgets to free, does not look at failures. All
// of these functions do nothing in other programs.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>

#include "simt/cuda/runtime.h"

namespace simt {
struct Transfer;
}

namespace simt::host_checks {

// Held while a kernel runs and while the host's part of what is known about memory changes, so that several threads of
// the host do not do so at once. Empty in programs that are not watched.
std::unique_lock<std::recursive_mutex> alone();

void allocated(void* pointer, std::size_t bytes, bool managed);
void freeing(void* pointer);
void allocated_in(cudaStream_t stream, void* pointer, std::size_t bytes);  // cudaMallocAsync
void freeing_in(cudaStream_t stream, void* pointer);
void freed_by_a_graph(void* pointer);  // each time that it runs
void written(const void* to, std::size_t bytes);
void copied(const void* to, const void* from, std::size_t bytes);
void copied_to_host(const Transfer& transfer, const void* to, const void* from, std::size_t bytes, std::size_t rows = 1,
                    std::size_t pitch = 0);
// By malloc() and the like in kernels.
void kernel_allocated(void* memory, std::size_t bytes);
void kernel_freed();
void library_reads(const char* call, const void* from, std::size_t bytes);  // all of it, or a part
void all_freed();                                                           // by cudaDeviceReset()

// Pinned memory, in pages of its own; null if there is none, or if the program is not watched.
void* allocate_pinned(std::size_t bytes);
bool free_pinned(void* pointer);       // for which nothing goes on any more; false if it is none of these
bool was_pinned(const void* pointer);  // and is freed
// Work of the transfer's stream. If that is not waited for, it goes on until the stream is.
void copies(const Transfer& transfer, const void* to, const void* from, std::size_t bytes);
void sets(const Transfer& transfer, const void* to, std::size_t bytes);
std::function<std::string()> call_here(const char* call);  // "the cudaMemcpy at mine.cu:7"; found when it is asked for

// Of cudaHostRegister(), or pinned: its first byte and its length; null if it is no such memory.
struct HostBlock {
  const char* begin = nullptr;
  std::size_t bytes = 0;
  bool pinned = false;  // else of cudaHostRegister(): memory of the program's own may follow
};
HostBlock registered(const void* pointer);
void unregistered(const void* begin);
// A kernel, at pc, does so; false if it is no such memory. Host code has to wait for the kernel then.
bool kernel_touches(const void* pc, const void* address, std::size_t bytes, bool writes);
// Has the program had managed, pinned or registered memory? What kernels store there, nobody copies.
bool kernels_reach_host();
void kernels_reach_host_now();  // from now on

void launching(cudaStream_t stream, const void* kernel);
void launched();                             // a kernel may be running from now on
void waited(cudaStream_t stream, bool all);  // for everything, or for the stream's work
void calls_host(cudaStream_t stream);        // a function of the host comes in the stream
void recorded(cudaEvent_t event, cudaStream_t stream);
void waits_for_event(cudaStream_t stream, cudaEvent_t event);
void waited_for_event(cudaEvent_t event);  // for what the stream had when it was recorded
// Whether the host has waited, one way or another, for all that comes before the event; `itself`: and for the event.
bool has_ended(cudaEvent_t event, bool itself);
// By a volatile access, or an atomic one: from what a kernel has written there it knows what the kernel has done.
void looks_at(const void* flag);
void made_stream(cudaStream_t stream, bool blocking);
// While this lives, the engine itself may touch what host code may not.
class Lifted {
 public:
  Lifted();
  ~Lifted();
  Lifted(const Lifted&) = delete;
  Lifted& operator=(const Lifted&) = delete;
};

std::string caller();  // the line of the program's that has called the runtime; empty if it is not watched

void at_end();  // says what was never freed, and which failures nobody looked at

}  // namespace simt::host_checks
