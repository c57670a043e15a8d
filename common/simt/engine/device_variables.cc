#include "simt/engine/device_variables.h"

#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <vector>

#include "simt/engine/modules.h"

namespace simt {
namespace {

// By their addresses. There before the first variable of a program and after the last.
auto& variables() {
  static auto& all = *new std::map<const char*, const DeviceVariable*, std::greater<>>;
  return all;
}

auto& templates() {
  static auto& all = *new std::vector<const DeviceTemplate*>;
  return all;
}

}  // namespace

DeviceTemplate::DeviceTemplate(std::string_view part_of_name, DeviceVariable::Kind kind)
    : part_of_name(part_of_name), kind(kind) {
  templates().push_back(this);
}

const std::vector<const DeviceTemplate*>& DeviceTemplate::all() { return templates(); }

constinit DeviceVariable::Range DeviceVariable::range_;

DeviceVariable::DeviceVariable(const void* address, std::size_t bytes, Kind kind)
    : begin_(static_cast<const char*>(address)), bytes_(bytes), kind_(kind) {
  variables()[begin_] = this;
  range_ = all();
  any_managed_ = any_managed_ || kind == managed;
}

DeviceVariable::~DeviceVariable() {
  variables().erase(begin_);
  range_ = all();
}

void DeviceVariable::find_in(const Module& module) {
  static auto& found = *new std::map<const Module*, std::vector<std::unique_ptr<DeviceVariable>>>;
  const auto [its, is_new] = found.try_emplace(&module);
  if (!is_new) return;
  for (const Variable& variable : module.variables)
    its->second.push_back(std::make_unique<DeviceVariable>(variable.address, variable.bytes, variable.kind));
}

DeviceVariable::Range DeviceVariable::all() {
  if (variables().empty()) return {};
  const DeviceVariable &first = *variables().rbegin()->second, &last = *variables().begin()->second;
  return {first.begin(), static_cast<std::size_t>(last.begin() + last.bytes() - first.begin())};
}

const DeviceVariable* DeviceVariable::beside(const void* address) {
  const auto* a = static_cast<const char*>(address);
  const auto before = variables().lower_bound(a);
  if (before == variables().begin()) return before == variables().end() ? nullptr : before->second;
  const DeviceVariable* after = std::prev(before)->second;
  if (before == variables().end()) return after;
  return a - (before->first + before->second->bytes()) < after->begin() - a ? before->second : after;
}

void DeviceVariable::give_those_in(const void* copied, std::size_t bytes) {
  const std::size_t odd = -reinterpret_cast<std::uintptr_t>(copied) % sizeof(void*);
  for (std::size_t i = odd; i + sizeof(void*) <= bytes; i += sizeof(void*)) {
    const void* address;
    std::memcpy(&address, static_cast<const char*>(copied) + i, sizeof address);
    if (!may_have(address)) continue;
    if (const DeviceVariable* variable = at(address)) variable->give(true);
  }
}

const DeviceVariable* DeviceVariable::at(const void* address) {
  const auto* a = static_cast<const char*>(address);
  const auto found = variables().lower_bound(a);  // the last that begins there or before
  return found != variables().end() && a < found->first + found->second->bytes() ? found->second : nullptr;
}

}  // namespace simt
