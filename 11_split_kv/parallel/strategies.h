// Attention over a sequence that several ranks hold (context parallelism): ring attention, or all-to-all as in
// DeepSpeed-Ulysses. The flag --way of the program chooses the strategy.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attention/rung.h"
#include "sharding.h"
#include "timeline.h"
#include "transport.h"

namespace split_kv::parallel {

struct Setting {
  attention::Problem whole;   // of all ranks together
  std::vector<Shard> shards;  // one for each rank
  Order order = Order::balanced;
  int rank = 0;
  attention::Forward forward;  // of one GPU
  attention::Backward backward;
};

class Strategy {
 public:
  virtual ~Strategy() = default;

  // The rank's rows of each tensor, as in attention/rung.h, where Nq and Nk are now the numbers of the rank's queries
  // and keys; there is no workspace. Work that was put on stream() before is over when the tensors are read, and what
  // comes on it afterwards finds the results.
  virtual void forward(const attention::ForwardArgs& args) = 0;
  virtual void backward(const attention::BackwardArgs& args) = 0;
  virtual cudaStream_t stream() const = 0;

  virtual size_t bytes() const = 0;  // of device memory that it holds beside the tensors

  Timeline* timeline = nullptr;  // if given, what happens is noted there
};

// K and V travel round. `backward`: whether there will be one.
std::unique_ptr<Strategy> ring(const Setting& setting, Transport& transport, bool backward);

// Each rank gets some of the heads, with all of their rows. Throws std::invalid_argument if they cannot be dealt
// evenly.
std::unique_ptr<Strategy> all_to_all(const Setting& setting, Transport& transport, bool backward);
std::string heads_refused(const attention::Problem& whole, int ranks);  // one line, or empty

}  // namespace split_kv::parallel
