// NCCL carries the parts, from GPU to GPU, on a stream. Its calls return at once (the communicator does not block), so
// that a rank that waits can see whether another one has failed, and give up when nothing comes any more.
#include <nccl.h>

#include <string>
#include <thread>

#include "device/streams.h"
#include "transport.h"

namespace split_kv::parallel {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class NcclTransport : public Transport {
 public:
  NcclTransport(World& world, milliseconds patience) : world_(world), patience_(patience) {
    ncclUniqueId id = {};
    if (world.rank() == 0) require(ncclGetUniqueId(&id));
    world.broadcast(&id, sizeof id);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    require(ncclCommInitRankConfig(&comm_, world.ranks(), id, world.rank(), &config));
    settle();
  }

  ~NcclTransport() override {
    if (comm_) ncclCommAbort(comm_);  // also where a rank is gone, for which ncclCommDestroy would wait
  }

  const char* name() const override { return "NCCL"; }

  void begin(std::span<const Message> sends, std::span<const Message> receives, cudaStream_t stream) override {
    require(ncclGroupStart());
    for (const Message& m : sends) require(ncclSend(m.data, m.bytes, ncclInt8, m.peer, comm_, stream));
    for (const Message& m : receives) require(ncclRecv(m.data, m.bytes, ncclInt8, m.peer, comm_, stream));
    require(ncclGroupEnd());
    settle();
  }

  void finish(cudaStream_t) override {}  // it is on the stream

  void wait(cudaEvent_t event) override {
    const Clock::time_point until = Clock::now() + patience_;
    for (cudaError_t state; (state = cudaEventQuery(event)) != cudaSuccess;) {
      if (state != cudaErrorNotReady) check(state);
      look(until);
    }
  }

 private:
  // An exception would free the GPU's memory on its way, which may wait for another rank: roll_call() frees nothing.
  void require(ncclResult_t result) {
    if (result != ncclSuccess && result != ncclInProgress)
      world_.roll_call(std::string("NCCL: ") + ncclGetErrorString(result));
  }

  // Until the calls before have been taken by the GPU, which may mean until the other ranks have made theirs.
  void settle() {
    const Clock::time_point until = Clock::now() + patience_;
    for (ncclResult_t state = ncclInProgress;;) {
      if (ncclCommGetAsyncError(comm_, &state) == ncclSuccess && state == ncclSuccess) return;
      look(until);
    }
  }

  void look(Clock::time_point until) {
    ncclResult_t state = ncclSuccess;
    require(ncclCommGetAsyncError(comm_, &state));
    require(state);
    if (Clock::now() > until) world_.roll_call();
    std::this_thread::yield();
  }

  World& world_;
  milliseconds patience_;
  ncclComm_t comm_ = nullptr;
};

}  // namespace

std::unique_ptr<Transport> nccl_transport(World& world, milliseconds patience) {
  return std::make_unique<NcclTransport>(world, patience);
}

bool built_with_nccl() { return true; }

}  // namespace split_kv::parallel
