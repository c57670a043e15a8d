// A header of the program's own: what is wrong in its functions has to be named here, not where they are called.
#pragma once

__device__ inline int neighbour_of(const int* x, int i) {
  return x[i + 1];  // beyond_in_a_header
}

inline void release(int* x) {
  cudaFree(x);
  cudaFree(x);  // freed_twice_in_a_header
}

inline int first_of(const int* x) {
  return x[0];  // pinned_read_too_early_in_a_header
}
