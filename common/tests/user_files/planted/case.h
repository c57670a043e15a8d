// A program of many cases, each a function that is run by its name: the first argument.
#pragma once
#include <cstdio>
#include <cstring>

struct Case {
  const char* name;
  void (*run)();
  Case* next;
  static Case*& first() {
    static Case* first = nullptr;
    return first;
  }
  Case(const char* name, void (*run)()) : name(name), run(run), next(first()) { first() = this; }
};

#define CASE(name)                            \
  static void run_##name();                   \
  static Case case_##name(#name, run_##name); \
  static void run_##name()

template <class T>
T* zeros(int count) {
  T* memory = nullptr;
  cudaMalloc(&memory, count * sizeof(T));
  cudaMemset(memory, 0, count * sizeof(T));
  return memory;
}

inline int main_of_cases(int argc, char** argv) {
  for (Case* each = Case::first(); each != nullptr; each = each->next)
    if (argc < 2)
      std::puts(each->name);
    else if (std::strcmp(argv[1], each->name) == 0) {
      each->run();
      cudaDeviceSynchronize();
      return 0;
    }
  return argc < 2 ? 0 : 4;
}
