// How a grid reaches the OS threads.
#include "simt/engine/launch.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "simt/engine/device_variables.h"
#include "simt/engine/engine.h"
#include "simt/engine/watchdog.h"

namespace simt {
namespace {

std::optional<long long> parse_number(std::string_view text) {
  if (text.empty() || text.size() > 18) return std::nullopt;
  long long value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

[[noreturn]] void bad_environment(const char* name, const char* value, const char* allowed) {
  std::fprintf(stderr, "%s=%s: must be %s\n", name, value, allowed);
  std::fflush(nullptr);
  std::_Exit(2);  // with no report of what the program has left behind
}

constexpr int most_threads = 256;

Schedule schedule_from_environment() {
  Schedule schedule;
  schedule.threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 16);
  if (const char* value = std::getenv("SIMT_THREADS")) {
    const auto threads = parse_number(value);
    if (!threads || *threads < 1 || *threads > most_threads) bad_environment("SIMT_THREADS", value, "1 to 256");
    schedule.threads = static_cast<int>(*threads);
  }
  if (const char* value = std::getenv("SIMT_ORDER")) {
    const std::string_view order = value;
    constexpr std::string_view shuffled = "shuffled:";
    const auto seed = order.starts_with(shuffled) ? parse_number(order.substr(shuffled.size())) : std::nullopt;
    if (order == "reverse")
      schedule.order = Order::reverse;
    else if (seed)
      schedule.order = Order::shuffled, schedule.seed = *seed;
    else if (order == "last_first")
      schedule.order = Order::last_first;
    else if (order != "forward")
      bad_environment("SIMT_ORDER", value, "forward, reverse, last_first or shuffled:SEED with a whole number SEED");
  }
  if (const char* value = std::getenv("SIMT_BLOCKS")) {
    const auto blocks = parse_number(value);
    if (!blocks || *blocks < 1) bad_environment("SIMT_BLOCKS", value, "a whole number above 0");
    schedule.sample = static_cast<std::uint64_t>(*blocks);
  }
  schedule.patience = std::max(schedule.patience, allowed_seconds());
  return schedule;
}

std::atomic<std::uint64_t> launches = 0, sampled = 0;
std::atomic<void (*)()> first_launch = nullptr;

// The OS threads. The one that launches is worker 0; the others sleep between launches and join those they wake up
// in time for, so that a small launch never waits for them.
class Pool {
 public:
  static Pool& instance() {
    static Pool pool;
    return pool;
  }

  Schedule schedule() {
    const std::lock_guard lock(launching_);
    return schedule_;
  }

  void set_schedule(const Schedule& schedule) {
    if (schedule.threads < 1 || schedule.threads > most_threads)
      throw std::invalid_argument("simt::Schedule: threads is " + std::to_string(schedule.threads) +
                                  ", must be 1 to 256");
    if (!(schedule.patience > 0))
      throw std::invalid_argument("simt::Schedule: patience is " + std::to_string(schedule.patience) +
                                  ", must be more than 0");
    const std::lock_guard lock(launching_);
    schedule_ = schedule;
  }

  void run(Launch& launch) {
    const std::lock_guard one_at_a_time(launching_);
    launch.schedule = schedule_;
    if (launches++ == 0) {
      read_left_out_line();
      first_launch_comes();
    }
    watchdog_.watch(caller_);
    const std::uint64_t cluster = launch.cluster_blocks(),
                        sample = (schedule_.sample + cluster - 1) / cluster * cluster;
    if (sample != 0 && sample < launch.blocks && !launch.cooperative) {
      launch.blocks = sample;
      ++sampled;
    }
    if (schedule_.order == Order::shuffled) {
      const std::uint64_t units = launch.units();
      launch.offset = mix(schedule_.seed) % units;
      launch.stride = mix(schedule_.seed + 1) % units;
      while (std::gcd(launch.stride, units) != 1) launch.stride = (launch.stride + 1) % units;
    }
    launch.observers = observers();
    // What observers know of memory belongs to one OS thread.
    if (launch.observers.empty() && schedule_.threads > 1 && launch.units() > 1 && !launch.cooperative &&
        schedule_.order != Order::last_first)
      launch.divided = true, offer(launch);
    caller_.run(launch);
    std::unique_lock lock(mutex_);
    launch_ = nullptr;
    left_.wait(lock, [this] { return running_ == 0; });  // those that joined may still run their last block
  }

  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    offered_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  Pool() : schedule_(schedule_from_environment()) {}

  void offer(Launch& launch) {
    while (static_cast<int>(threads_.size()) < schedule_.threads - 1)
      threads_.emplace_back([this, number = static_cast<int>(threads_.size())] { serve(number); });
    {
      const std::lock_guard lock(mutex_);
      launch_ = &launch;
      ++generation_;
    }
    offered_.notify_all();
  }

  void serve(int number) {
    const auto own = std::make_unique<Worker>();
    watchdog_.watch(*own);
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      offered_.wait(lock, [&] { return stop_ || (launch_ != nullptr && generation_ != seen); });
      if (stop_) break;
      seen = generation_;
      if (number >= launch_->schedule.threads - 1) continue;
      Launch& launch = *launch_;
      ++running_;
      lock.unlock();
      own->run(launch);
      lock.lock();
      if (--running_ == 0) left_.notify_all();
    }
    watchdog_.forget(*own);
  }

  std::mutex launching_;
  Schedule schedule_;
  Worker caller_;
  Watchdog watchdog_;  // of caller_, and of the threads' own

  std::mutex mutex_;
  std::condition_variable offered_;
  std::condition_variable left_;
  Launch* launch_ = nullptr;
  std::uint64_t generation_ = 0;
  int running_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

namespace {
std::atomic<std::size_t> shared_limit = most_shared;
std::atomic<int> said_capability = 90;
}  // namespace

int capability() { return said_capability; }
void set_capability(int capability) { said_capability = capability; }

std::size_t max_shared() { return shared_limit; }

void set_max_shared(std::size_t bytes) {
  if (bytes > most_shared)
    throw std::invalid_argument("simt::set_max_shared: " + std::to_string(bytes) + " bytes, must be at most " +
                                std::to_string(most_shared));
  shared_limit = bytes;
}

void Launch::waits_for_others(const Worker& worker) {
  const std::lock_guard lock(mutex);
  waiting_workers.push_back(&worker);
}

void Launch::waits_no_more(const Worker& worker) {
  const std::lock_guard lock(mutex);
  std::erase(waiting_workers, &worker);
}

bool Launch::all_wait_for_others() {
  const std::lock_guard lock(mutex);
  // In this order: who has stopped running has written what it had to write.
  return static_cast<int>(waiting_workers.size()) == workers &&
         std::none_of(waiting_workers.begin(), waiting_workers.end(),
                      [](const Worker* w) { return w->written_word() != nullptr; });
}

std::uint64_t launch_count() { return launches; }

std::uint64_t sampled_launches() { return sampled; }

void before_first_launch(void (*call)()) { first_launch = call; }

void first_launch_comes() {
  if (void (*const call)() = first_launch.exchange(nullptr); call != nullptr) call();
}

Schedule schedule() { return Pool::instance().schedule(); }

void set_schedule(const Schedule& schedule) { Pool::instance().set_schedule(schedule); }

int blocks_per_multiprocessor(std::size_t threads, std::size_t shared_bytes) {
  constexpr std::size_t most_threads_there = 2048, most_blocks = 32, shared_there = 228 * 1024, reserved = 1024;
  const std::size_t warps = (threads + 31) / 32;
  return static_cast<int>(
      std::min({most_blocks, most_threads_there / 32 / warps, shared_there / (shared_bytes + reserved)}));
}

int clusters_at_once(unsigned blocks, std::size_t threads, std::size_t shared_bytes) {
  const auto each = static_cast<unsigned>(blocks_per_multiprocessor(threads, shared_bytes));
  return static_cast<int>(6 * (16 * each / blocks) + 2 * (18 * each / blocks));
}

namespace {

std::mutex non_portable_mutex;
std::set<const void*>& non_portable() {
  static auto& kernels = *new std::set<const void*>;
  return kernels;
}

// What is wrong with a grid of such clusters; empty if nothing is.
std::string wrong_cluster(const void* kernel, dim3 grid, dim3 cluster) {
  const std::lock_guard lock(non_portable_mutex);
  const unsigned most = non_portable().contains(kernel) ? 16 : 8;
  const std::uint64_t blocks = std::uint64_t(cluster.x) * cluster.y * cluster.z;
  const std::string name = "cluster " + text(cluster);
  if (blocks == 0 || blocks > most)
    return name + ": a cluster has 1 to " + std::to_string(most) + " blocks" +
           (blocks > 8 && blocks <= 16 ? ", and more than 8 need cudaFuncAttributeNonPortableClusterSizeAllowed" : "");
  if (grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0)
    return name + ": the grid " + text(grid) + " is not a multiple of it";
  return "";
}

enum class Blocks { apart, dependent, cooperative };

cudaError_t launch_blocks(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes, const Body& body,
                          Blocks blocks, dim3 cluster = {}) {
  const auto refuse = [&](cudaError_t code, const std::string& what) {
    return fail(code, "kernel " + kernel_name(kernel) + ": " + what);
  };
  if (worker != nullptr) return refuse(cudaErrorNotSupported, "launched from inside a kernel");
  const std::uint64_t threads = std::uint64_t(block.x) * block.y * block.z;
  if (block.x == 0 || block.y == 0 || block.z == 0 || block.x > 1024 || block.y > 1024 || block.z > 64 ||
      threads > max_block_threads)
    return refuse(cudaErrorInvalidConfiguration,
                  "block " + text(block) + ": a block has 1 to 1024 threads, at most 1024 x 1024 x 64");
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535)
    return refuse(cudaErrorInvalidConfiguration,
                  "grid " + text(grid) + ": a grid has at least 1 block and at most 2147483647 x 65535 x 65535");
  if (const std::string wrong = wrong_cluster(kernel, grid, cluster); !wrong.empty())
    return refuse(cudaErrorInvalidClusterSize, wrong);
  const Module* module = module_at(kernel);
  if (module != nullptr && !observers().empty()) DeviceVariable::find_in(*module);
  const std::size_t static_bytes = module ? module->static_shared_of(kernel) : 0;
  if (shared_bytes + static_bytes > max_shared())
    return refuse(cudaErrorInvalidValue,
                  std::to_string(shared_bytes) + " bytes of dynamic shared memory" +
                      (static_bytes ? " and " + std::to_string(static_bytes) + " of static" : std::string()) +
                      ": a block can have " + std::to_string(max_shared()));
  if (blocks == Blocks::cooperative) {
    constexpr int multiprocessors = 132;
    const int most = multiprocessors * blocks_per_multiprocessor(threads, shared_bytes + static_bytes);
    if (std::uint64_t(grid.x) * grid.y * grid.z > static_cast<std::uint64_t>(most))
      return refuse(cudaErrorCooperativeLaunchTooLarge,
                    "grid " + text(grid) + ": at most " + std::to_string(most) + " such blocks run at once");
  }
  install_fault_handler();

  Launch launch(kernel, module, grid, block, shared_bytes, body, blocks == Blocks::dependent);
  launch.cooperative = blocks == Blocks::cooperative;
  launch.cluster = cluster;
  Pool::instance().run(launch);
  if (const dim3 asked = launch.asked_cluster; asked.x != 0) {
    if (launch.cluster_blocks() > 1)
      return refuse(cudaErrorInvalidClusterSize,
                    "cluster " + text(cluster) + ": the kernel itself says " + text(asked));
    if (launch.cooperative) return refuse(cudaErrorNotSupported, "the engine has no cooperative launches of clusters");
    return launch_blocks(kernel, grid, block, shared_bytes, body, blocks, asked);
  }
  if (launch.failed) return fail(launch.failure.code, std::move(launch.failure.message));
  return cudaSuccess;
}

}  // namespace

cudaError_t launch(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes, const Body& body,
                   bool dependent, dim3 cluster) {
  return launch_blocks(kernel, grid, block, shared_bytes, body, dependent ? Blocks::dependent : Blocks::apart, cluster);
}

void allow_non_portable_clusters(const void* kernel, bool allowed) {
  const std::lock_guard lock(non_portable_mutex);
  if (allowed)
    non_portable().insert(kernel);
  else
    non_portable().erase(kernel);
}

cudaError_t launch_cooperative(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes, const Body& body) {
  return launch_blocks(kernel, grid, block, shared_bytes, body, Blocks::cooperative);
}

}  // namespace simt
