// The ranks of one run: who they are, and the small things they tell one another. mpirun starts them; a program that
// was started without it, or built without MPI, is one rank.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace split_kv::parallel {

class World {
 public:
  // All ranks, or one. Ends the process with a message if they have not all come within the patience.
  static std::unique_ptr<World> join(std::chrono::milliseconds patience);
  virtual ~World() = default;

  virtual int rank() const { return 0; }
  virtual int ranks() const { return 1; }
  virtual int local_rank() const { return 0; }  // among those of this host
  virtual int local_ranks() const { return 1; }

  // All of these wait for the other ranks, and call the roll when one is silent for longer than the patience.
  virtual void barrier() {}
  virtual std::vector<std::string> gather(const std::string& bytes) { return {bytes}; }  // on rank 0; elsewhere empty
  virtual void broadcast(void* /*data*/, size_t /*bytes*/) {}                            // rank 0's
  virtual double largest(double value) { return value; }                                 // of all ranks' values

  // What a rank does that has waited too long, or knows why it would. The others wait too, and call the roll as well.
  // Says why, and which ranks do not answer within the patience, and ends every rank.
  [[noreturn]] virtual void roll_call(const std::string& why = "");

  // Ends every rank.
  [[noreturn]] virtual void abort(int status);
};

bool built_with_mpi();

}  // namespace split_kv::parallel
