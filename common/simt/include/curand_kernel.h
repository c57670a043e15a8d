// cuRAND inside kernels. All generators here are Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1,
// 2, 3", 2011): curandStatePhilox4_32_10_t gives cuRAND's very numbers, the others give numbers of their own.
#pragma once

#include <cuda_runtime.h>
#include <curand.h>

#include <cmath>
#include <cstdint>

struct curandStatePhilox4_32_10 {
  std::uint32_t counter[4], key[2], output[4];
  int used;  // of the output
  bool has_normal, has_normal_double;
  float normal;
  double normal_double;
};
using curandStatePhilox4_32_10_t = curandStatePhilox4_32_10;
struct curandStateXORWOW : curandStatePhilox4_32_10 {};
struct curandStateMRG32k3a : curandStatePhilox4_32_10 {};
using curandStateXORWOW_t = curandStateXORWOW;
using curandStateMRG32k3a_t = curandStateMRG32k3a;
using curandState_t = curandStateXORWOW;
using curandState = curandStateXORWOW;

namespace simt {

__device__ inline void philox(const std::uint32_t counter[4], const std::uint32_t key[2], std::uint32_t out[4]) {
  std::uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3], k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; ++round, k0 += 0x9e3779b9, k1 += 0xbb67ae85) {
    const std::uint64_t first = std::uint64_t(0xd2511f53) * c0, second = std::uint64_t(0xcd9e8d57) * c2;
    c0 = static_cast<std::uint32_t>(second >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(second);
    c2 = static_cast<std::uint32_t>(first >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(first);
  }
  out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

// The counter goes on by n times four numbers.
__device__ inline void philox_skip(curandStatePhilox4_32_10* state, std::uint64_t n) {
  std::uint64_t low = state->counter[0] | std::uint64_t(state->counter[1]) << 32;
  low += n;
  if (low < n && ++state->counter[2] == 0) ++state->counter[3];
  state->counter[0] = static_cast<std::uint32_t>(low);
  state->counter[1] = static_cast<std::uint32_t>(low >> 32);
  philox(state->counter, state->key, state->output);
}

__device__ inline float box_muller(std::uint32_t x, std::uint32_t y, float* second) {
  const float u = static_cast<float>(x) * 0x1p-32f + 0x1p-33f;
  const float v = static_cast<float>(y) * (0x1p-32f * 6.2831855f) + 0x1p-33f * 6.2831855f;
  const float radius = std::sqrt(-2.0f * std::log(u));
  *second = radius * std::cos(v);
  return radius * std::sin(v);
}

}  // namespace simt

__device__ inline void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset,
                                   curandStatePhilox4_32_10* state) {
  *state = {};
  state->key[0] = static_cast<std::uint32_t>(seed);
  state->key[1] = static_cast<std::uint32_t>(seed >> 32);
  state->counter[2] = static_cast<std::uint32_t>(sequence);
  state->counter[3] = static_cast<std::uint32_t>(sequence >> 32);
  simt::philox_skip(state, offset / 4);
  state->used = static_cast<int>(offset % 4);
}

__device__ inline unsigned curand(curandStatePhilox4_32_10* state) {
  const unsigned value = state->output[state->used++];
  if (state->used == 4) {
    simt::philox_skip(state, 1);
    state->used = 0;
  }
  return value;
}

__device__ inline uint4 curand4(curandStatePhilox4_32_10* state) {
  const unsigned x = curand(state), y = curand(state), z = curand(state), w = curand(state);
  return {x, y, z, w};
}

__device__ inline void skipahead(unsigned long long n, curandStatePhilox4_32_10* state) {
  const unsigned long long all = static_cast<unsigned long long>(state->used) + n;
  simt::philox_skip(state, all / 4);
  state->used = static_cast<int>(all % 4);
}

__device__ inline float curand_uniform(curandStatePhilox4_32_10* state) {
  return static_cast<float>(curand(state)) * 0x1p-32f + 0x1p-33f;
}
__device__ inline float4 curand_uniform4(curandStatePhilox4_32_10* state) {
  const float x = curand_uniform(state), y = curand_uniform(state), z = curand_uniform(state);
  return {x, y, z, curand_uniform(state)};
}
__device__ inline double curand_uniform_double(curandStatePhilox4_32_10* state) {
  const std::uint64_t low = curand(state);
  return static_cast<double>((low ^ std::uint64_t(curand(state)) << 21)) * 0x1p-53 + 0x1p-54;
}

__device__ inline float2 curand_normal2(curandStatePhilox4_32_10* state) {
  float2 pair;
  const unsigned x = curand(state);
  pair.x = simt::box_muller(x, curand(state), &pair.y);
  return pair;
}
__device__ inline float4 curand_normal4(curandStatePhilox4_32_10* state) {
  const float2 one = curand_normal2(state), two = curand_normal2(state);
  return {one.x, one.y, two.x, two.y};
}
__device__ inline float curand_normal(curandStatePhilox4_32_10* state) {
  state->has_normal = !state->has_normal;
  if (!state->has_normal) return state->normal;
  const float2 pair = curand_normal2(state);
  state->normal = pair.y;
  return pair.x;
}
__device__ inline double curand_normal_double(curandStatePhilox4_32_10* state) {
  state->has_normal_double = !state->has_normal_double;
  if (!state->has_normal_double) return state->normal_double;
  const double u = curand_uniform_double(state), v = curand_uniform_double(state) * 6.283185307179586;
  const double radius = std::sqrt(-2.0 * std::log(u));
  state->normal_double = radius * std::cos(v);
  return radius * std::sin(v);
}
__device__ inline float curand_log_normal(curandStatePhilox4_32_10* state, float mean, float deviation) {
  return std::exp(mean + deviation * curand_normal(state));
}
// Knuth's method: the product of uniform numbers, in logarithms.
__device__ inline unsigned curand_poisson(curandStatePhilox4_32_10* state, double lambda) {
  unsigned n = 0;
  for (double sum = -std::log(curand_uniform_double(state)); sum < lambda; ++n)
    sum -= std::log(curand_uniform_double(state));
  return n;
}
