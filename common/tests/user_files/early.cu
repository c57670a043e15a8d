// A launch before main, as static objects make them, and one whose counts the program wants for itself.
#include <cstdio>

#include "simt/front/testing.h"

__global__ void race(float* out) {
  __shared__ float s[64];
  s[threadIdx.x] = float(threadIdx.x);
  out[threadIdx.x] = s[threadIdx.x ^ 32];
}

__global__ void store(float* out) { out[threadIdx.x] = 1; }

struct Early {
  Early() {
    float* out;
    cudaMalloc(&out, 256);
    race<<<1, 64>>>(out);
    cudaDeviceReset();
  }
} const early;

int main() {
  float* out;
  cudaMalloc(&out, 128);
  const simt::Traced traced([&] { store<<<1, 32>>>(out); });
  std::printf("%zu launches of its own\n", traced.launches().size());
}
