#include "simt/engine/watchdog.h"

#include <signal.h>

#include <algorithm>
#include <chrono>

namespace simt {

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ends_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::watch(Worker& worker) {
  const std::lock_guard lock(mutex_);
  if (std::any_of(workers_.begin(), workers_.end(), [&](const auto& each) { return each.first == &worker; })) return;
  workers_.push_back({&worker, {}});
  if (thread_.joinable()) return;
  // The program's signals are not for this thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { look(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Watchdog::forget(Worker& worker) {
  const std::lock_guard lock(mutex_);
  std::erase_if(workers_, [&](const auto& each) { return each.first == &worker; });
}

void Watchdog::look() {
  std::unique_lock lock(mutex_);
  while (!ends_.wait_for(lock, std::chrono::milliseconds(100), [this] { return end_; }))
    for (auto& [worker, since] : workers_) worker->check_time(since);
}

}  // namespace simt
