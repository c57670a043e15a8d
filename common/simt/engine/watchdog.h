// Looks at the workers now and then, from an OS thread of its own: has one of their threads been running for too long,
// has none of a launch's blocks ended in the time that there is?
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "simt/engine/engine.h"

namespace simt {

class Watchdog {
 public:
  ~Watchdog();
  void watch(Worker& worker);  // once more is the same
  void forget(Worker& worker);

 private:
  void look();

  std::mutex mutex_;
  std::condition_variable ends_;
  bool end_ = false;
  std::vector<std::pair<Worker*, Worker::Running>> workers_;
  std::thread thread_;
};

}  // namespace simt
