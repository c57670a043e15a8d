// Host work on all cores.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace harness {

// Calls work(0) .. work(count - 1), each once, on as many threads as there are cores.
template <class Work>
void in_parallel(size_t count, Work&& work) {
  std::atomic<size_t> next = 0;
  std::vector<std::jthread> threads;
  const size_t n_threads = std::min<size_t>(count, std::max(1u, std::thread::hardware_concurrency()));
  for (size_t t = 0; t < n_threads; t++)
    threads.emplace_back([&] {
      for (size_t i; (i = next++) < count;) work(i);
    });
}

}  // namespace harness
