// Device variables: `__device__`, `__constant__` and `__managed__` ones. To g++ each is an ordinary variable. An object
// of this class beside it tells the engine. Where none can be, in functions and for templates, the name of its symbol
// does.
#pragma once

#include <array>
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

  // Could it be one of them? For every access of host code.
  static bool may_have(const void* address) {
    return static_cast<std::size_t>(static_cast<const char*>(address) - range_.begin) < range_.bytes;
  }

  // Host code has its address: from cudaGetSymbolAddress(), or copied from the device. The variable's name alone gives
  // it another one on a GPU.
  bool given() const { return given_ || any_managed_; }
  void give(bool given) const { given_ = given; }
  // Where host code has touched the variable by its name, null if nowhere: [read, written]. And whether kernels use it;
  // whether host code keeps its own variable of that name, and copies from one to the other.
  struct Use {
    std::array<const void*, 2> host = {};
    bool by_kernels = false, twin = false;
  };
  Use& use() const { return use_; }

  // Those whose addresses are among the words of this memory of the host's, copied from the device.
  static void give_those_in(const void* copied, std::size_t bytes);

  const char* begin() const { return begin_; }
  std::size_t bytes() const { return bytes_; }
  Kind kind() const { return kind_; }

 private:
  const char* begin_;
  std::size_t bytes_;
  Kind kind_;
  mutable bool given_ = false;
  mutable Use use_;
  static Range range_;
  static inline bool any_managed_ = false;
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
