#include "simt/engine/diagnosis.h"

#include <cxxabi.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "simt/engine/modules.h"

namespace simt {
namespace {

// The last two parts of a path: what a reader of the project needs.
std::string_view short_path(std::string_view path) {
  const auto last = path.rfind('/');
  if (last == std::string_view::npos || last == 0) return path;
  const auto before = path.rfind('/', last - 1);
  return before == std::string_view::npos ? path : path.substr(before + 1);
}

// For each address "file:line" of every function that was inlined there, innermost first, from addr2line where there is
// one.
std::vector<std::vector<std::string>> lines_at(const Module& module, std::span<const std::uintptr_t> addresses) {
  std::vector<std::vector<std::string>> result(addresses.size());
  char path[4096];
  if (realpath(module.path.c_str(), path) == nullptr || std::strchr(path, '\'') != nullptr) return result;
  constexpr std::size_t at_a_time = 1000;  // as many as a command line surely holds
  for (std::size_t first = 0; first < addresses.size(); first += at_a_time) {
    std::string command = std::string("addr2line -a -i -e '") + path + "'";
    for (std::size_t i = first; i < std::min(first + at_a_time, addresses.size()); ++i) {
      char where[32];
      std::snprintf(where, sizeof where, " 0x%zx", static_cast<std::size_t>(addresses[i] - module.base));
      command += where;
    }
    command += " 2>/dev/null";
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
    std::size_t next = first;  // the address after the one whose lines come now
    char line[4096];
    while (pipe && std::fgets(line, sizeof line, pipe.get()) != nullptr) {
      std::string_view found = line;
      found = found.substr(0, std::min(found.find(" (discriminator"), found.find('\n')));
      if (found.starts_with("0x") && next < result.size())
        ++next;
      else if (!found.starts_with("?") && !found.ends_with(":?") && !found.ends_with(":0") && next > first)
        result[next - 1].emplace_back(found);
    }
  }
  return result;
}

// Without what ".." takes back.
std::string normal(std::string_view path) {
  std::string result;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part == "..")
      result.erase(result.size() > 1 ? result.rfind('/', result.size() - 2) + 1 : 0);
    else if (!part.empty() && part != ".")
      result.append(part).append("/");
    begin = end + 1;
  }
  return result;
}

std::string& own_headers() {
  static std::string& folder = *new std::string;
  return folder;
}

bool is_passed_over(std::string_view path) {
  if (!is_header(path) || own_headers().empty()) return is_header(path);
  const std::string name = normal(path);
  if (name.starts_with(own_headers()) || name.starts_with("usr/")) return true;
  for (const char* library :
       {"/include/c++/", "/site-packages/", "/nvidia/", "/cccl/", "/thrust/", "/cub/", "/common/device/"})
    if (name.find(library) != std::string::npos) return true;
  return false;
}

std::string (*found_elsewhere)(std::span<void* const>) = nullptr;

bool in_engine(const Module& module, std::uintptr_t address) {
  const Function* function = module.function_at(address);
  return function == nullptr || function->name.starts_with("_ZN4simt") || function->name.starts_with("_ZNK4simt");
}

// GCC splits a function, and names the parts "name.part.0".
bool part_of(std::string_view name, std::string_view whole) {
  return name == whole || (name.starts_with(whole) && name[whole.size()] == '.');
}

// Where a part that GCC has split off stands in its function again, that seems to be called at the function's own first
// line; but what a function calls in its own file stands above the call.
bool may_call(std::string_view call, std::string_view called) {
  const auto file = [](std::string_view line) { return line.substr(0, line.rfind(':')); };
  const auto number = [](std::string_view line) { return std::stoi(std::string(line.substr(line.rfind(':') + 1))); };
  return file(call) != file(called) || number(call) > number(called);
}

// The first lines on a call stack, at most so many, that are not the engine's, the C library's or a header's; a
// header's if there is no other. Nothing is looked for behind the kernel, if one is named.
std::vector<std::string> lines_on(std::span<void* const> stack, const void* kernel, std::size_t most) {
  if (found_elsewhere != nullptr) {
    std::vector<void*> others;
    for (void* each : stack)
      if (const Module* module = module_at(each); module != nullptr && !in_engine(*module, std::uintptr_t(each)))
        others.push_back(each);
    if (others.empty()) return {};
    return {found_elsewhere(others)};
  }
  const Module* kernel_module = kernel != nullptr ? module_at(kernel) : nullptr;
  const Function* last =
      kernel_module != nullptr ? kernel_module->function_at(reinterpret_cast<std::uintptr_t>(kernel)) : nullptr;
  std::vector<std::string> found;
  std::string fallback;
  for (std::size_t i = 0; i < stack.size(); ++i) {
    const auto address = reinterpret_cast<std::uintptr_t>(stack[i]) - (i == 0 ? 0 : 1);
    const Module* module = module_at(reinterpret_cast<void*>(address));
    if (module == nullptr || in_engine(*module, address)) continue;
    const auto lines = lines_at(*module, {&address, 1});
    for (const std::string& line : lines[0]) {
      const std::string_view file = std::string_view(line).substr(0, line.rfind(':'));
      if (!is_passed_over(file)) found.emplace_back(short_path(line));
      if (found.size() == most) return found;
      if (fallback.empty()) fallback = short_path(line);
    }
    const Function* function = module->function_at(address);
    if (last != nullptr && function != nullptr && part_of(function->name, last->name)) break;
  }
  if (found.empty() && !fallback.empty()) found.push_back(fallback);
  return found;
}

}  // namespace

bool is_header(std::string_view path) {
  const auto name = path.substr(path.rfind('/') + 1);
  return name.ends_with(".h") || name.ends_with(".hpp") || name.ends_with(".inl") ||
         name.find('.') == std::string_view::npos || path.find("/include/c++/") != std::string_view::npos;
}

void headers_lie_beside(std::string_view one) {
  const std::string path = normal(one);
  own_headers() = path.substr(0, path.rfind("front/"));  // "front/report.h/" behind the folder
}

bool Site::operator==(const Site& other) const {
  return line == other.line && (file == other.file || std::strcmp(file, other.file) == 0);
}

std::string text(uint3 v) {
  return "(" + std::to_string(v.x) + ", " + std::to_string(v.y) + ", " + std::to_string(v.z) + ")";
}

std::string text(const Site& site) {
  if (site.file == nullptr) return site.return_address != nullptr ? line_of(site.return_address) : "an unknown line";
  if (is_passed_over(site.file) && site.return_address != nullptr) {
    // A loop comes by again and again, and each time addr2line would read all that there is about lines.
    static thread_local std::unordered_map<const void*, std::string> known;
    const auto [line, is_new] = known.try_emplace(site.return_address);
    if (is_new) {
      void* stack[] = {static_cast<char*>(const_cast<void*>(site.return_address)) - 1};
      line->second = source_line(stack);
    }
    if (!line->second.empty()) return line->second;
  }
  return std::string(short_path(site.file)) + ":" + std::to_string(site.line);
}

std::string address_text(const void* address) {
  char text[32];
  std::snprintf(text, sizeof text, "%p", address);
  return text;
}

std::string mask_text(unsigned mask) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", mask);
  return text;
}

std::string numbers_text(const char* one, unsigned bits) {
  std::string ranges;
  const bool several = !std::has_single_bit(bits);
  while (bits != 0) {
    const int first = std::countr_zero(bits), last = first + std::countr_one(bits >> first) - 1;
    ranges += (ranges.empty() ? "" : ", ") + std::to_string(first) + (last > first ? "-" + std::to_string(last) : "");
    bits &= last == 31 ? 0 : ~0u << (last + 1);
  }
  return one + std::string(several ? "s " : " ") + ranges;
}

std::string kernel_name(const void* kernel) {
  const Module* module = module_at(kernel);
  const Function* function = module ? module->function_at(reinterpret_cast<std::uintptr_t>(kernel)) : nullptr;
  if (function == nullptr) return "at an unknown address";
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(
      abi::__cxa_demangle(function->name.c_str(), nullptr, nullptr, &status), std::free);
  if (!demangled) return function->name;
  std::string name = demangled.get();
  if (name.starts_with("void ")) name.erase(0, 5);
  constexpr std::string_view anonymous = "(anonymous namespace)::";
  for (auto at = name.find(anonymous); at != std::string::npos; at = name.find(anonymous))
    name.erase(at, anonymous.size());
  int depth = 0;  // the parameters are the last group of parentheses
  for (auto i = name.size(); i-- > 0;) {
    if (name[i] == ')') ++depth;
    if (name[i] == '(' && --depth == 0) return name.substr(0, i);
  }
  return name;
}

void lines_are_found_elsewhere(std::string (*text)(std::span<void* const>)) { found_elsewhere = text; }

std::string source_line(std::span<void* const> stack) {
  const auto lines = lines_on(stack, nullptr, 1);
  return lines.empty() ? "" : lines[0];
}

std::string source_line_and_call(std::span<void* const> stack, const void* kernel) {
  const auto lines = lines_on(stack, kernel, 2);
  if (lines.empty()) return "";
  if (lines.size() > 1 && lines[0].starts_with("trace/tsan.cc:")) return lines[1];  // it carries out atomic functions
  return lines.size() > 1 && may_call(lines[1], lines[0]) ? lines[0] + " (called at " + lines[1] + ")" : lines[0];
}

std::string line_of(const void* return_address) {
  void* stack[] = {static_cast<char*>(const_cast<void*>(return_address)) - 1};
  const std::string line = source_line(stack);
  return line.empty() ? "an unknown line" : line;
}

std::vector<std::vector<std::string>> source_lines(const std::vector<const void*>& addresses) {
  std::map<const Module*, std::vector<std::size_t>> of_module;
  if (found_elsewhere == nullptr)
    for (std::size_t i = 0; i < addresses.size(); ++i)
      if (const Module* module = module_at(addresses[i])) of_module[module].push_back(i);
  std::vector<std::vector<std::string>> result(addresses.size());
  for (const auto& [module, places] : of_module) {
    std::vector<std::uintptr_t> there;
    for (const std::size_t i : places) there.push_back(reinterpret_cast<std::uintptr_t>(addresses[i]));
    const auto lines = lines_at(*module, there);
    for (std::size_t n = 0; n < places.size(); ++n)
      for (const std::string& line : lines[n]) result[places[n]].emplace_back(short_path(line));
  }
  return result;
}

}  // namespace simt
