// memcpy and its like in kernels of a user's file. GCC tells the engine of no byte that they move: it leaves that to
// functions that take their place. So they have other names here, whose functions say what they read and write
// (trace/tsan.cc).
#pragma once

#include <cstddef>
#include <cstring>

extern "C" {
void* simt_traced_memcpy(void* to, const void* from, std::size_t bytes);
void* simt_traced_memmove(void* to, const void* from, std::size_t bytes);
void* simt_traced_memset(void* to, int value, std::size_t bytes);
char* simt_traced_strcpy(char* to, const char* from);
}
namespace std {  // as std::memcpy, too
using ::simt_traced_memcpy;
using ::simt_traced_memmove;
using ::simt_traced_memset;
using ::simt_traced_strcpy;
}  // namespace std
#define memcpy simt_traced_memcpy
#define memmove simt_traced_memmove
#define memset simt_traced_memset
#define strcpy simt_traced_strcpy
