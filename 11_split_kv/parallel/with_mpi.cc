// MPI starts the ranks and carries what they tell one another. It carries the parts, too, where NCCL does not: out of
// the device's memory, from host to host, and into the device's memory. Nothing here waits without looking at the
// clock.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <thread>

#include "transport.h"

namespace split_kv::parallel {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::string seconds(milliseconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", double(time.count()) / 1000);
  return text;
}

// What a launcher of MPI programs leaves in the environment: of Open MPI, of PMIx, of MPICH and Slurm.
const char* launcher_says(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const char* value = std::getenv(name)) return value;
  return nullptr;
}

// Ends the process with a message if what goes on meanwhile does not end in time: for calls of MPI that only return
// when all ranks have come.
class Deadline {
 public:
  Deadline(milliseconds patience, std::function<std::string()> message)
      : thread_([this, patience, message = std::move(message)] {
          std::unique_lock lock(mutex_);
          if (done_.wait_for(lock, patience, [&] { return met_; })) return;
          std::fputs((message() + "\n").c_str(), stderr);
          _exit(1);  // mpirun then ends the other ranks
        }) {}
  ~Deadline() {
    {
      std::lock_guard lock(mutex_);
      met_ = true;
    }
    done_.notify_one();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  bool met_ = false;
  std::thread thread_;
};

// Which ranks of this host have not come as far as MPI_Init: each that does leaves a file where the launcher keeps the
// files of the job, which it removes at the end.
class Arrivals {
 public:
  Arrivals() {
    if (rank_ && directory_) std::ofstream(file(rank_));
  }
  std::string missing(milliseconds patience) const {
    std::string names;
    const bool one_host = ranks_ && here_ && std::string(ranks_) == here_;
    for (int rank = 0; one_host && directory_ && rank < std::atoi(ranks_); rank++)
      if (!std::filesystem::exists(file(std::to_string(rank))))
        names += (names.empty() ? "rank " : ", rank ") + std::to_string(rank);
    return "rank " + std::string(rank_ ? rank_ : "?") + ": " + (names.empty() ? "not every rank" : names) +
           (names.empty() ? " has come within " : " has not come within ") + seconds(patience);
  }

 private:
  std::string file(const std::string& rank) const {
    return std::string(directory_) + "/come." + (job_ ? job_ : "job") + "." + rank;
  }
  const char* const directory_ = launcher_says({"PMIX_SERVER_TMPDIR"});
  const char* const job_ = launcher_says({"PMIX_NAMESPACE"});
  const char* const rank_ = launcher_says({"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"});
  const char* const ranks_ = launcher_says({"OMPI_COMM_WORLD_SIZE"});
  const char* const here_ = launcher_says({"OMPI_COMM_WORLD_LOCAL_SIZE"});
};

class MpiWorld : public World {
 public:
  explicit MpiWorld(milliseconds patience) : patience_(patience) {
    const Arrivals arrivals;
    const Deadline deadline(patience, [&] { return arrivals.missing(patience); });
    MPI_Init(nullptr, nullptr);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    answers_.resize(ranks_, MPI_REQUEST_NULL);
    answer_bytes_.resize(ranks_);
    MPI_Comm on_host;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &on_host);
    MPI_Comm_rank(on_host, &local_rank_);
    MPI_Comm_size(on_host, &local_ranks_);
    MPI_Comm_free(&on_host);
    for (int other = 0; other < ranks_; other++)
      if (other != rank_)
        MPI_Irecv(&answer_bytes_[other], 1, MPI_BYTE, other, roll_call_tag, MPI_COMM_WORLD, &answers_[other]);
  }

  ~MpiWorld() override {
    for (MPI_Request& answer : answers_)
      if (answer != MPI_REQUEST_NULL) {
        MPI_Cancel(&answer);
        MPI_Request_free(&answer);
      }
    const Deadline deadline(patience_, [&] {
      return "rank " + std::to_string(rank_) + ": not every rank has come to the end within " + seconds(patience_);
    });
    MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  int local_rank() const override { return local_rank_; }
  int local_ranks() const override { return local_ranks_; }

  void barrier() override {
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    await({&request, 1});
  }

  std::vector<std::string> gather(const std::string& bytes) override {
    std::vector<unsigned long long> sizes(ranks_);
    const unsigned long long size = bytes.size();
    MPI_Request request;
    MPI_Igather(&size, 1, MPI_UNSIGNED_LONG_LONG, sizes.data(), 1, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD, &request);
    await({&request, 1});
    std::vector<std::string> all;
    std::vector<MPI_Request> requests;
    if (rank_ == 0) {
      for (const auto each : sizes) all.emplace_back(each, '\0');
      all[0] = bytes;
      for (int other = 1; other < ranks_; other++) receive(all[other].data(), sizes[other], other, requests);
    } else {
      send(bytes.data(), bytes.size(), 0, requests);
    }
    await(requests);
    return all;
  }

  void broadcast(void* data, size_t bytes) override {
    MPI_Request request;
    MPI_Ibcast(data, int(bytes), MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    await({&request, 1});
  }

  double largest(double value) override {
    double all = value;
    MPI_Request request;
    MPI_Iallreduce(&value, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &request);
    await({&request, 1});
    return all;
  }

  void roll_call(const std::string& why) override {
    const std::string who = "rank " + std::to_string(rank_) + ": ";
    if (!why.empty()) std::fputs((who + why + "\n").c_str(), stderr);
    const char here = 1;
    std::vector<MPI_Request> calls(ranks_, MPI_REQUEST_NULL);
    for (int other = 0; other < ranks_; other++)
      if (other != rank_) MPI_Isend(&here, 1, MPI_BYTE, other, roll_call_tag, MPI_COMM_WORLD, &calls[other]);
    // After an error here, the others may wait until their own patience ends, and call the roll only then.
    arrived(answers_, why.empty() ? patience_ : 2 * patience_);
    // An exception would free the GPU's memory on its way, which waits for the GPU, which waits for the lost rank.
    std::fputs((who + missing(answers_) + "\n").c_str(), stderr);
    abort(1);
  }

  void abort(int status) override { MPI_Abort(MPI_COMM_WORLD, status), _exit(status); }

  // Waits for all of them, or calls the roll.
  void await(std::span<MPI_Request> requests) {
    if (!arrived(requests, patience_)) roll_call("");
  }

  // MPI counts in int: what is longer goes in pieces.
  static void send(const char* data, size_t bytes, int peer, std::vector<MPI_Request>& requests) {
    in_pieces(bytes, [&](size_t at, int count) {
      MPI_Isend(data + at, count, MPI_BYTE, peer, data_tag, MPI_COMM_WORLD, &requests.emplace_back());
    });
  }
  static void receive(char* data, size_t bytes, int peer, std::vector<MPI_Request>& requests) {
    in_pieces(bytes, [&](size_t at, int count) {
      MPI_Irecv(data + at, count, MPI_BYTE, peer, data_tag, MPI_COMM_WORLD, &requests.emplace_back());
    });
  }

 private:
  static constexpr int data_tag = 1, roll_call_tag = 2;

  template <class Piece>
  static void in_pieces(size_t bytes, Piece&& piece) {
    constexpr size_t largest = 1 << 30;
    for (size_t at = 0; at < bytes; at += largest) piece(at, int(std::min(largest, bytes - at)));
  }

  bool arrived(std::span<MPI_Request> requests, milliseconds patience) const {
    const Clock::time_point until = Clock::now() + patience;
    for (int done = 0;;) {
      MPI_Testall(int(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
      if (done) return true;
      if (Clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(50));  // the ranks may share a few cores
    }
  }

  // A line with the ranks from which nothing has come.
  std::string missing(std::vector<MPI_Request>& from) const {
    std::string names;
    for (int other = 0; other < ranks_; other++) {
      int done = 1;
      if (other != rank_ && from[other] != MPI_REQUEST_NULL) MPI_Test(&from[other], &done, MPI_STATUS_IGNORE);
      if (!done) names += (names.empty() ? "rank " : ", rank ") + std::to_string(other);
    }
    return names.empty() ? "nothing has come for " + seconds(patience_) + ", though every rank answers"
                         : names + " has not answered for " + seconds(patience_) + ": it has died, or is stuck";
  }

  milliseconds patience_;
  int rank_ = 0, ranks_ = 1, local_rank_ = 0, local_ranks_ = 1;
  std::vector<MPI_Request> answers_;  // to the roll call, from each rank
  std::vector<char> answer_bytes_;
};

class MpiTransport : public Transport {
 public:
  explicit MpiTransport(MpiWorld& world) : world_(world) {}

  const char* name() const override { return "MPI"; }

  void begin(std::span<const Message> sends, std::span<const Message> receives, cudaStream_t stream) override {
    sent_.clear();
    for (const Message& message : sends) {
      sent_.emplace_back(message.bytes);
      check(cudaMemcpyAsync(sent_.back().data(), message.data, message.bytes, cudaMemcpyDeviceToHost, stream));
    }
    check(cudaStreamSynchronize(stream));
    for (size_t i = 0; i < sends.size(); i++) MpiWorld::send(sent_[i].data(), sends[i].bytes, sends[i].peer, requests_);
    for (const Message& message : receives) {
      received_.emplace_back(message, std::vector<char>(message.bytes));
      MpiWorld::receive(received_.back().second.data(), message.bytes, message.peer, requests_);
    }
  }

  void finish(cudaStream_t stream) override {
    world_.await(requests_);
    requests_.clear();
    for (const auto& [message, bytes] : received_)
      check(cudaMemcpyAsync(message.data, bytes.data(), message.bytes, cudaMemcpyHostToDevice, stream));
    check(cudaStreamSynchronize(stream));
    received_.clear();
  }

  void wait(cudaEvent_t event) override { check(cudaEventSynchronize(event)); }

 private:
  MpiWorld& world_;
  // Of vectors, which keep their bytes where they are when the list grows: a short string does not.
  std::vector<std::vector<char>> sent_;
  std::vector<std::pair<Message, std::vector<char>>> received_;
  std::vector<MPI_Request> requests_;
};

}  // namespace

std::unique_ptr<World> World::join(milliseconds patience) {
  if (!launcher_says({"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_SIZE"})) return std::make_unique<World>();
  return std::make_unique<MpiWorld>(patience);
}

std::unique_ptr<Transport> mpi_transport(World& world) {
  auto* const mpi = dynamic_cast<MpiWorld*>(&world);
  return mpi ? std::make_unique<MpiTransport>(*mpi) : nullptr;
}

bool built_with_mpi() { return true; }

}  // namespace split_kv::parallel
