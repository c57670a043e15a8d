// Device variables: `__device__`, `__constant__` and `__managed__` ones at namespace scope. To g++ each is an ordinary
// variable; an object of this class beside it tells the engine.
#pragma once

#include <cstddef>

namespace simt {

class DeviceVariable {
 public:
  enum Kind { device, constant, managed };

  template <class T>
  DeviceVariable(const T& variable, Kind kind) : DeviceVariable(&variable, sizeof variable, kind) {}
  DeviceVariable(const void* address, std::size_t bytes, Kind kind);
  ~DeviceVariable();
  DeviceVariable(const DeviceVariable&) = delete;
  DeviceVariable& operator=(const DeviceVariable&) = delete;

  // The one in which the address lies; null if there is none.
  static const DeviceVariable* at(const void* address);

  // The addresses from the first to the last of them.
  struct Range {
    const char* begin = nullptr;
    std::size_t bytes = 0;
  };
  static Range all();

  const char* begin() const { return begin_; }
  std::size_t bytes() const { return bytes_; }
  Kind kind() const { return kind_; }

 private:
  const char* begin_;
  std::size_t bytes_;
  Kind kind_;
};

}  // namespace simt
