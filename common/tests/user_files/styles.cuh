#pragma once

template <class T>
__global__ void twice(T* x) {
  x[threadIdx.x] = 2 * x[threadIdx.x];
}

inline void twice_from_header(float* x) { twice<<<1, 32>>>(x); }
