// What NVIDIA's samples share besides: command lines, stop watches, comparisons with what is expected.
#pragma once

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "helper_string.h"
#include "helper_timer.h"

// True if at most that share of the values differs by more than epsilon.
template <class T, class S>
bool compareData(const T* expected, const T* data, unsigned length, S epsilon, float share) {
  unsigned wrong = 0;
  for (unsigned i = 0; i < length; ++i) {
    const double off = std::fabs(static_cast<double>(expected[i]) - static_cast<double>(data[i]));
    if (!(off <= static_cast<double>(epsilon))) ++wrong;
  }
  return share == 0 ? wrong == 0 : static_cast<float>(wrong) <= share * static_cast<float>(length);
}

// True if the difference's L2 norm, relative to what is expected, is below epsilon.
inline bool sdkCompareL2fe(const float* expected, const float* data, unsigned length, float epsilon) {
  double off = 0, all = 0;
  for (unsigned i = 0; i < length; ++i) {
    off += (double(expected[i]) - data[i]) * (double(expected[i]) - data[i]);
    all += double(expected[i]) * expected[i];
  }
  return all > 0 && std::sqrt(off / all) < epsilon;
}
