#include "simt/variables.h"

#include <functional>
#include <iterator>
#include <map>

namespace simt {
namespace {

// By their addresses. There before the first variable of a program and after the last.
auto& variables() {
  static auto& all = *new std::map<const char*, const DeviceVariable*, std::greater<>>;
  return all;
}

}  // namespace

DeviceVariable::DeviceVariable(const void* address, std::size_t bytes, Kind kind)
    : begin_(static_cast<const char*>(address)), bytes_(bytes), kind_(kind) {
  variables()[begin_] = this;
}

DeviceVariable::~DeviceVariable() { variables().erase(begin_); }

DeviceVariable::Range DeviceVariable::all() {
  if (variables().empty()) return {};
  const DeviceVariable &first = *variables().rbegin()->second, &last = *variables().begin()->second;
  return {first.begin(), static_cast<std::size_t>(last.begin() + last.bytes() - first.begin())};
}

const DeviceVariable* DeviceVariable::at(const void* address) {
  const auto* a = static_cast<const char*>(address);
  const auto found = variables().lower_bound(a);  // the last that begins there or before
  return found != variables().end() && a < found->first + found->second->bytes() ? found->second : nullptr;
}

}  // namespace simt
