// The words of the engine's messages.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simt/engine/error.h"
#include "simt/engine/types.h"

namespace simt {

// A place in kernel source where threads wait, as the call noted it.
struct Site {
  const char* file = nullptr;
  int line = 0;
  const void* return_address = nullptr;  // finds the kernel's line when file is a wrapper's header, or null

  bool operator==(const Site& other) const;
};

std::string text(uint3 v);                                 // "(1, 0, 0)"
std::string text(const Site& site);                        // "05_online_softmax/attention.cu:77"
std::string address_text(const void* address);             // "0x100001000f00"
std::string mask_text(unsigned mask);                      // "0x0000ffff"
std::string kernel_name(const void* kernel);               // "naive::softmax<__half>"
std::string numbers_text(const char* one, unsigned bits);  // "lanes 0-15, 20" of "lane"; "lane 3"

// The first source line on a call stack (innermost first) that is not the engine's, the C library's or a header's;
// empty if nothing is known. The first address is an instruction, the others are return addresses.
std::string source_line(std::span<void* const> stack);

// The same and, if that line is in a function which the kernel calls, where: "tiles.cu:60 (called at tiles.cu:98)".
std::string source_line_and_call(std::span<void* const> stack, const void* kernel);

std::string line_of(const void* return_address);  // the same of one call; "an unknown line" if nothing is known

// Where this process cannot start addr2line: what stands for the line of a call stack (as in source_line, without the
// engine's own). source_lines() finds none then.
void lines_are_found_elsewhere(std::string (*text)(std::span<void* const> stack));

// For each address of an instruction its source lines, from the innermost inlined function out; paths shortened.
std::vector<std::vector<std::string>> source_lines(const std::vector<const void*>& addresses);

bool is_header(std::string_view path);
// In a program whose files tell where one of the engine's headers lies, a header of the program's own is none that is
// passed over.
void headers_lie_beside(std::string_view one);

}  // namespace simt
