#include "simt/engine/modules.h"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>

extern "C" void* __tls_get_addr(std::size_t*);  // the dynamic linker's: {module, offset} to an address

namespace simt {
namespace {

constexpr const char* program = "/proc/self/exe";
int open_program = -1;

// A file's bytes, mapped.
class File {
 public:
  explicit File(const std::string& path) {
    const bool is_open = path == program && open_program >= 0;
    const int file = is_open ? open_program : open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    struct stat status;
    if (fstat(file, &status) == 0 && status.st_size > 0) {
      void* data = mmap(nullptr, status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
      if (data != MAP_FAILED) bytes_ = {static_cast<const char*>(data), static_cast<std::size_t>(status.st_size)};
    }
    if (!is_open) close(file);
  }
  ~File() {
    if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  template <class T>
  std::span<const T> array(std::size_t offset, std::size_t count) const {
    if (offset > bytes_.size() || count > (bytes_.size() - offset) / sizeof(T)) return {};
    return {reinterpret_cast<const T*>(bytes_.data() + offset), count};
  }

 private:
  std::span<const char> bytes_;
};

// Is this the mangled name of a __shared__ variable? It is one inside a function (_ZZ...) and ends with the tag of
// types.h. After that only _0 or __10_ may follow, where the function has several of one name.
bool is_static_shared(std::string_view name) {
  const auto tag = name.rfind("B6shared");
  return name.starts_with("_ZZ") && tag != std::string_view::npos &&
         name.find_first_not_of("_0123456789", tag + std::string_view("B6shared").size()) == std::string_view::npos;
}

// Is it a guard that simt-compile puts between them, or between device variables? Or what tells the engine of one?
bool is_guard(std::string_view name) {
  return name.find("simt_guard_") != std::string_view::npos || name.find("simt_variable_") != std::string_view::npos;
}

// Is it the table of virtual functions of a class that is not the engine's, or the C++ library's?
bool is_table(std::string_view name) {
  return name.starts_with("_ZTV") && !name.starts_with("_ZTVN4simt") && !name.starts_with("_ZTVN10__cxxabiv1") &&
         !name.starts_with("_ZTVS") && !name.starts_with("_ZTVNS");
}

// Is it that of a device variable in a function, which has such a tag too, or of one that is a template?
std::optional<DeviceVariable::Kind> kind_of_variable(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (name.starts_with("_ZZ"))
    return has("B6device")     ? std::optional(DeviceVariable::device)
           : has("B8constant") ? std::optional(DeviceVariable::constant)
                               : std::nullopt;
  if (name.ends_with("B6deviceE")) return DeviceVariable::device;  // a member of a class
  if (name.ends_with("B8constantE")) return DeviceVariable::constant;
  if (!name.starts_with("_Z") || name.starts_with("_ZG")) return std::nullopt;
  for (const DeviceTemplate* each : DeviceTemplate::all())
    if (has(each->part_of_name)) return each->kind;
  return std::nullopt;
}

void read_symbols(Module& module) {
  const File file(module.path);
  const auto header = file.array<ElfW(Ehdr)>(0, 1);
  if (header.empty() || std::string_view(reinterpret_cast<const char*>(header[0].e_ident), SELFMAG) != ELFMAG) return;
  const auto sections = file.array<ElfW(Shdr)>(header[0].e_shoff, header[0].e_shnum);
  // .symtab has the local symbols too; a stripped file has only .dynsym.
  auto table = std::find_if(sections.begin(), sections.end(), [](auto& s) { return s.sh_type == SHT_SYMTAB; });
  if (table == sections.end())
    table = std::find_if(sections.begin(), sections.end(), [](auto& s) { return s.sh_type == SHT_DYNSYM; });
  if (table == sections.end() || table->sh_link >= sections.size()) return;
  const auto& strings = sections[table->sh_link];
  const auto names = file.array<char>(strings.sh_offset, strings.sh_size);
  if (names.empty() || names.back() != 0) return;

  std::vector<bool> data_of(sections.size());
  if (header[0].e_shstrndx < sections.size()) {
    const auto& of_sections = sections[header[0].e_shstrndx];
    const auto section_names = file.array<char>(of_sections.sh_offset, of_sections.sh_size);
    for (std::size_t i = 0; i < sections.size(); ++i) {
      if (sections[i].sh_name >= section_names.size()) continue;
      const std::string_view name = section_names.data() + sections[i].sh_name;
      if (name != ".data" && name != ".bss") continue;
      data_of[i] = true;
      auto& [begin, end] = module.data[name == ".data" ? 0 : 1];
      begin = module.base + sections[i].sh_addr;
      end = begin + sections[i].sh_size;
    }
  }

  for (const auto& symbol : file.array<ElfW(Sym)>(table->sh_offset, table->sh_size / sizeof(ElfW(Sym)))) {
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_size == 0 || symbol.st_name >= names.size()) continue;
    const char* name = names.data() + symbol.st_name;
    const unsigned type = symbol.st_info & 0xf;
    if (type == STT_FUNC)
      module.functions.push_back({module.base + symbol.st_value, module.base + symbol.st_value + symbol.st_size, name});
    else if (type == STT_TLS)
      (is_static_shared(name) ? module.shared
       : is_guard(name)       ? module.guards
                              : module.others)
          .push_back({symbol.st_value, symbol.st_size, name});
    else if (type == STT_OBJECT && is_table(name))
      module.tables.push_back({module.base + symbol.st_value, module.base + symbol.st_value + symbol.st_size, name});
    else if (type == STT_OBJECT && symbol.st_shndx < sections.size() && data_of[symbol.st_shndx] && !is_guard(name))
      module.objects.push_back({module.base + symbol.st_value, module.base + symbol.st_value + symbol.st_size, name});
    if (const auto kind = type == STT_OBJECT ? kind_of_variable(name) : std::nullopt)
      module.variables.push_back({reinterpret_cast<const void*>(module.base + symbol.st_value), symbol.st_size, *kind});
  }
  std::sort(module.functions.begin(), module.functions.end(), [](auto& a, auto& b) { return a.begin < b.begin; });
  std::sort(module.objects.begin(), module.objects.end(), [](auto& a, auto& b) { return a.begin < b.begin; });
  std::sort(module.tables.begin(), module.tables.end(), [](auto& a, auto& b) { return a.begin < b.begin; });
  std::sort(module.shared.begin(), module.shared.end(), [](auto& a, auto& b) { return a.offset < b.offset; });
}

struct Search {
  std::uintptr_t address;
  Module found;
};

int visit(dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (search.address < begin || search.address >= begin + segment.p_memsz) continue;
    search.found.path = info->dlpi_name == nullptr || *info->dlpi_name == 0 ? program : info->dlpi_name;
    search.found.base = info->dlpi_addr;
    search.found.tls_module = info->dlpi_tls_modid;
    return 1;
  }
  return 0;
}

}  // namespace

const Function* Module::function_at(std::uintptr_t address) const {
  auto after = std::upper_bound(functions.begin(), functions.end(), address,
                                [](std::uintptr_t a, const Function& f) { return a < f.begin; });
  if (after == functions.begin()) return nullptr;
  const Function& function = *std::prev(after);
  return address < function.end ? &function : nullptr;
}

static const Object* at(const std::vector<Object>& objects, std::uintptr_t address) {
  auto after = std::upper_bound(objects.begin(), objects.end(), address,
                                [](std::uintptr_t a, const Object& object) { return a < object.begin; });
  if (after == objects.begin()) return nullptr;
  const Object& object = *std::prev(after);
  return address < object.end ? &object : nullptr;
}
const Object* Module::object_at(std::uintptr_t address) const { return at(objects, address); }
const Object* Module::table_at(std::uintptr_t address) const {
  return tables.empty() || address < tables.front().begin || address >= tables.back().end ? nullptr
                                                                                          : at(tables, address);
}

std::size_t Module::static_shared_of(const void* kernel) const {
  const Function* function = function_at(reinterpret_cast<std::uintptr_t>(kernel));
  if (function == nullptr || !function->name.starts_with("_Z")) return 0;
  const std::string prefix = "_ZZ" + function->name.substr(2) + "E";
  std::size_t bytes = 0;
  for (const ThreadLocal& variable : shared)
    if (variable.name.starts_with(prefix)) bytes += variable.bytes;
  return bytes;
}

std::string Module::name_of(const std::string& mangled) {
  if (!mangled.starts_with("_Z")) return mangled;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> demangled(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), std::free);
  std::string name = demangled ? demangled.get() : mangled;  // "kernel(float*)::tile[abi:shared]"
  name.erase(std::min(name.rfind("[abi:"), name.size()));
  if (const auto scope = name.rfind("::"); scope != std::string::npos) name.erase(0, scope + 2);
  return name;
}

char* Module::thread_local_block() const {
  std::size_t index[2] = {tls_module, 0};
  return static_cast<char*>(__tls_get_addr(index));
}

void read_program_from(int file) { open_program = file; }

const Module* module_at(const void* address) {
  static std::mutex mutex;
  static auto& modules =  // asked until the process ends
      *new std::map<std::pair<std::string, std::uintptr_t>, std::unique_ptr<Module>>;
  Search search{reinterpret_cast<std::uintptr_t>(address), {}};
  if (dl_iterate_phdr(visit, &search) == 0) return nullptr;
  const std::lock_guard lock(mutex);
  auto& module = modules[{search.found.path, search.found.base}];
  if (!module) {
    module = std::make_unique<Module>(std::move(search.found));
    read_symbols(*module);
  }
  return module.get();
}

}  // namespace simt
