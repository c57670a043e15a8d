// Whoever sets REQUIRE_GPU=1 wants no test left out for want of a GPU.
#pragma once

#include <cstdlib>
#include <string>

inline bool gpu_required() {
  const char* required = std::getenv("REQUIRE_GPU");
  return required && std::string(required) == "1";
}
