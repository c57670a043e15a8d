// The stop watch of NVIDIA's samples.
#pragma once

#include <chrono>

class StopWatchInterface {
 public:
  void start() {
    began_ = Clock::now();
    running_ = true;
  }
  void stop() {
    total_ += since_start();
    ++sessions_;
    running_ = false;
  }
  void reset() {
    total_ = 0;
    sessions_ = 0;
    if (running_) began_ = Clock::now();
  }
  float getTime() { return total_ + (running_ ? since_start() : 0); }  // in milliseconds
  float getAverageTime() { return sessions_ > 0 ? total_ / static_cast<float>(sessions_) : 0; }

 private:
  using Clock = std::chrono::steady_clock;
  float since_start() const { return std::chrono::duration<float, std::milli>(Clock::now() - began_).count(); }

  Clock::time_point began_ = {};
  float total_ = 0;
  int sessions_ = 0;
  bool running_ = false;
};
using StopWatchLinux = StopWatchInterface;

inline bool sdkCreateTimer(StopWatchInterface** timer) {
  *timer = new StopWatchInterface;
  return true;
}
inline bool sdkDeleteTimer(StopWatchInterface** timer) {
  delete *timer;
  *timer = nullptr;
  return true;
}
inline bool sdkStartTimer(StopWatchInterface** timer) {
  if (*timer != nullptr) (*timer)->start();
  return true;
}
inline bool sdkStopTimer(StopWatchInterface** timer) {
  if (*timer != nullptr) (*timer)->stop();
  return true;
}
inline bool sdkResetTimer(StopWatchInterface** timer) {
  if (*timer != nullptr) (*timer)->reset();
  return true;
}
inline float sdkGetTimerValue(StopWatchInterface** timer) { return *timer != nullptr ? (*timer)->getTime() : 0; }
inline float sdkGetAverageTimerValue(StopWatchInterface** timer) {
  return *timer != nullptr ? (*timer)->getAverageTime() : 0;
}
