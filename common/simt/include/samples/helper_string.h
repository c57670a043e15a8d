// What NVIDIA's samples ask of a command line: --name, -name=value.
#pragma once

#include <strings.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>

#ifndef EXIT_WAIVED
#define EXIT_WAIVED 2
#endif

namespace simt::samples {

// What follows the flag and its =; null if the flag is not there.
inline const char* value_of(int argc, const char** argv, const char* flag) {
  const std::size_t length = std::strlen(flag);
  for (int i = 1; i < argc; ++i) {
    const char* word = argv[i];
    while (*word == '-') ++word;
    if (word == argv[i] || strncasecmp(word, flag, length) != 0) continue;
    if (word[length] == '=') return word + length + 1;
    if (word[length] == '\0') return word + length;
  }
  return nullptr;
}

}  // namespace simt::samples

inline bool checkCmdLineFlag(int argc, const char** argv, const char* flag) {
  return simt::samples::value_of(argc, argv, flag) != nullptr;
}

template <class T>
bool getCmdLineArgumentValue(int argc, const char** argv, const char* flag, T* value) {
  const char* text = simt::samples::value_of(argc, argv, flag);
  if (text == nullptr || *text == '\0') return false;
  std::istringstream(text) >> *value;
  return true;
}

inline int getCmdLineArgumentInt(int argc, const char** argv, const char* flag) {
  const char* text = simt::samples::value_of(argc, argv, flag);
  return text != nullptr ? std::atoi(text) : 0;
}

inline float getCmdLineArgumentFloat(int argc, const char** argv, const char* flag) {
  const char* text = simt::samples::value_of(argc, argv, flag);
  return text != nullptr ? static_cast<float>(std::atof(text)) : 0;
}

inline bool getCmdLineArgumentString(int argc, const char** argv, const char* flag, char** value) {
  const char* text = simt::samples::value_of(argc, argv, flag);
  *value = text != nullptr ? const_cast<char*>(text) : nullptr;
  return text != nullptr;
}

// The file, in the folders where samples keep theirs; null if it is in none. The caller frees it.
inline char* sdkFindFilePath(const char* name, const char* = nullptr) {
  for (const char* folder : {"./", "./data/", "../", "../data/", "../../../Common/data/", "../../../../Common/data/"}) {
    const std::string path = std::string(folder) + name;
    if (std::FILE* file = std::fopen(path.c_str(), "rb")) {
      std::fclose(file);
      return strdup(path.c_str());
    }
  }
  return nullptr;
}
