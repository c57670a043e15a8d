// Device variables: `__device__`, `__constant__` and `__managed__` ones. To g++ each is an ordinary variable. An object
// of this class beside it tells the engine. Where none can be, in functions and for templates, the name of its symbol
// does.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace simt {

class DeviceVariable {
 public:
  enum Kind { device, constant, managed };

  template <class T>
  DeviceVariable(const volatile T& variable, Kind kind)
      : DeviceVariable(const_cast<const T*>(&variable), sizeof variable, kind) {}
  DeviceVariable(const void* address, std::size_t bytes, Kind kind);
  ~DeviceVariable();
  DeviceVariable(const DeviceVariable&) = delete;
  DeviceVariable& operator=(const DeviceVariable&) = delete;

  // Makes those that only their names tell of: templates, and those in functions.
  static void find_in(const struct Module& module);

  // The one in which the address lies; null if there is none.
  static const DeviceVariable* at(const void* address);

  // The one that is nearest to the address; null if there is none.
  static const DeviceVariable* beside(const void* address);

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

// A template of them: all variables whose mangled names have this part.
struct DeviceTemplate {
  DeviceTemplate(std::string_view part_of_name, DeviceVariable::Kind kind);
  DeviceTemplate(const DeviceTemplate&) = delete;
  DeviceTemplate& operator=(const DeviceTemplate&) = delete;
  static const std::vector<const DeviceTemplate*>& all();

  std::string_view part_of_name;  // "4wideI" of wide<T>
  DeviceVariable::Kind kind;
};

}  // namespace simt
