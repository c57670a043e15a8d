// What carries a part from one GPU to another.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "device/launch.h"
#include "world.h"

namespace split_kv::parallel {

struct Message {
  int peer;
  void* data;  // on the device
  size_t bytes;
};

// Exchanges are begun and finished one after the other, in the same order on all ranks that take part.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual const char* name() const = 0;

  // Starts all of these at once, when the work before them on the stream is done.
  virtual void begin(std::span<const Message> sends, std::span<const Message> receives, cudaStream_t stream) = 0;

  // Work that is put on the stream after this finds the messages received, and may overwrite those sent.
  virtual void finish(cudaStream_t stream) = 0;

  // Waits, on the host, until the event has happened. Calls the roll if another rank keeps it from happening.
  virtual void wait(cudaEvent_t event) = 0;
};

// NCCL, between GPUs; nullptr if the program was built without it.
std::unique_ptr<Transport> nccl_transport(World& world, std::chrono::milliseconds patience);
bool built_with_nccl();

// MPI, through the host's memory; nullptr if the program was built without it.
std::unique_ptr<Transport> mpi_transport(World& world);

// For one rank: nobody to exchange with.
std::unique_ptr<Transport> no_transport();

// Takes the rank's device, and what carries its parts: NCCL where every rank has a GPU of its own, else MPI, or what is
// asked for. Throws NoDevice where there should be a GPU.
struct Carrier {
  std::unique_ptr<Transport> transport;
  std::string refusal;  // one line, if what is asked for is not there
};
Carrier usual_transport(World& world, std::chrono::milliseconds patience, const std::string& asked_for = "");

}  // namespace split_kv::parallel
