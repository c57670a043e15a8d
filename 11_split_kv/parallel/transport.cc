// The transport of a single rank, and which transport a run takes.
#include "transport.h"

#include <unistd.h>

#include "device/streams.h"
#include "harness/timing.h"

namespace split_kv::parallel {
namespace {

class SingleRank : public Transport {
 public:
  const char* name() const override { return "none"; }
  void begin(std::span<const Message>, std::span<const Message>, cudaStream_t) override {}
  void finish(cudaStream_t) override {}
  void wait(cudaEvent_t event) override { check(cudaEventSynchronize(event)); }
};

}  // namespace

void World::roll_call(const std::string&) { _exit(1); }

void World::abort(int status) { _exit(status); }

std::unique_ptr<Transport> no_transport() { return std::make_unique<SingleRank>(); }

Carrier usual_transport(World& world, std::chrono::milliseconds patience, const std::string& asked_for) {
  harness::current_device();
  int devices = 0;
  check(cudaGetDeviceCount(&devices));
  check(cudaSetDevice(world.local_rank() % devices));
  if (world.ranks() == 1) return {no_transport(), ""};
  const bool own_gpu = on_gpu && world.largest(world.local_ranks() > devices) == 0;
  if (asked_for == "nccl" && !built_with_nccl())
    return {nullptr, "transport is nccl: this program was built without NCCL, and there is mpi"};
  if (asked_for == "nccl" && !own_gpu)
    return {nullptr, "transport is nccl: it needs a GPU for each rank, and this host has " + std::to_string(devices) +
                         " for " + std::to_string(world.local_ranks())};
  if (built_with_nccl() && own_gpu && asked_for != "mpi") return {nccl_transport(world, patience), ""};
  return {mpi_transport(world), ""};
}

}  // namespace split_kv::parallel
