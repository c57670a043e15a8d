// What the ELF file of a loaded program or shared library says about itself: the names of its functions, and those of
// its thread_local variables that are the kernels' static shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "simt/engine/device_variables.h"

namespace simt {

struct Function {
  std::uintptr_t begin;  // addresses in this process
  std::uintptr_t end;
  std::string name;  // mangled
};

struct ThreadLocal {
  std::size_t offset;  // in the module's thread-local block
  std::size_t bytes;
  std::string name;  // mangled
};

struct Object {
  std::uintptr_t begin;
  std::uintptr_t end;
  std::string name;  // mangled
};

struct Variable {
  const void* address;
  std::size_t bytes;
  DeviceVariable::Kind kind;
};

struct Module {
  std::string path;
  std::uintptr_t base;              // added to the file's addresses
  std::size_t tls_module;           // the dynamic linker's number for its thread-local block, 0: none
  std::vector<Function> functions;  // by address
  std::vector<ThreadLocal> shared;  // static shared memory, by offset
  std::vector<ThreadLocal> guards;  // that simt-compile has put between those
  std::vector<ThreadLocal> others;  // all other thread_local variables
  std::vector<Variable> variables;  // device variables that only their names tell of
  std::vector<Object> objects;      // in .data and .bss, by address: the device's, the host's and the engine's
  std::vector<Object> tables;       // of virtual functions, the program's own, by address
  std::uintptr_t data[2][2] = {};   // where these two begin and end

  const Function* function_at(std::uintptr_t address) const;

  // Does the address lie in .data or .bss? And which object does, null: none, or a guard that simt-compile has put
  // there.
  bool in_data(std::uintptr_t address) const {
    return address - data[0][0] < data[0][1] - data[0][0] || address - data[1][0] < data[1][1] - data[1][0];
  }
  const Object* object_at(std::uintptr_t address) const;
  const Object* table_at(std::uintptr_t address) const;

  // Bytes of static shared memory in the kernel itself (what device functions declare is not counted).
  std::size_t static_shared_of(const void* kernel) const;

  // The name of a variable in the source.
  static std::string name_of(const std::string& mangled);

  // The calling OS thread's copy of the module's thread-local variables.
  char* thread_local_block() const;
};

// For a process that may open nothing: its program's file is open already.
void read_program_from(int file);

// The module that an address belongs to, read at the first question; null if there is none.
const Module* module_at(const void* address);

}  // namespace simt
