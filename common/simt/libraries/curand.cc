// cuRAND's host interface, of include/curand.h.
#include <curand.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "simt/cuda/host.h"
#include "simt/cuda/host_checks.h"
#include "simt/cuda/transfers.h"
#include "simt/engine/findings.h"

struct SimtGenerator {
  bool on_host;
  std::mt19937_64 numbers{0};
  cudaStream_t stream = nullptr;
};

namespace simt {
// Normal numbers come in pairs.
static curandStatus_t refuse_odd(const char* name, std::size_t n) {
  if (watching())
    found_mistake(host_checks::call_here(name)() + ": " + std::to_string(n) +
                  " numbers, and none is generated (CURAND_STATUS_LENGTH_NOT_MULTIPLE): the count has to be even");
  return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
}
}  // namespace simt

namespace {

// Fills n values: on the device through the runtime's copy, which checks the pointer and its bounds.
template <class T, class Distribution>
curandStatus_t generate(const char* name, curandGenerator_t generator, T* to, std::size_t n, Distribution next) {
  if (generator == nullptr) return CURAND_STATUS_NOT_INITIALIZED;
  std::vector<T> values(n);
  std::generate(values.begin(), values.end(), [&] { return static_cast<T>(next(generator->numbers)); });
  cudaPointerAttributes is;
  cudaPointerGetAttributes(&is, to);
  const bool host = generator->on_host || is.type == cudaMemoryTypeHost;
  const cudaError_t error = simt::copy({name, generator->stream, /*waits=*/generator->on_host}, to, values.data(),
                                       n * sizeof(T), host ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice);
  if (error == cudaSuccess) return CURAND_STATUS_SUCCESS;
  std::fprintf(stderr, "%s: %s\n", name, cudaGetErrorString(error));
  return CURAND_STATUS_LAUNCH_FAILURE;
}

template <class T, class Distribution>
curandStatus_t generate_pairs(const char* name, curandGenerator_t generator, T* to, std::size_t n, Distribution next) {
  return n % 2 == 0 ? generate(name, generator, to, n, next) : simt::refuse_odd(name, n);
}

// In (0, 1], as cuRAND's.
double uniform(std::mt19937_64& numbers) { return (static_cast<double>(numbers() >> 11) + 1) * 0x1p-53; }
float uniform_float(std::mt19937_64& numbers) { return (static_cast<float>(numbers() >> 40) + 1) * 0x1p-24f; }

curandStatus_t create(curandGenerator_t* generator, curandRngType_t type, bool on_host) {
  if (type >= CURAND_RNG_QUASI_DEFAULT) {
    std::fprintf(stderr, "curandCreateGenerator: quasirandom numbers are not part of the engine\n");
    return CURAND_STATUS_TYPE_ERROR;
  }
  *generator = new SimtGenerator{on_host};
  return CURAND_STATUS_SUCCESS;
}

}  // namespace

curandStatus_t curandCreateGenerator(curandGenerator_t* generator, curandRngType_t type) {
  return create(generator, type, /*on_host=*/false);
}
curandStatus_t curandCreateGeneratorHost(curandGenerator_t* generator, curandRngType_t type) {
  return create(generator, type, /*on_host=*/true);
}
curandStatus_t curandDestroyGenerator(curandGenerator_t generator) {
  delete generator;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator, unsigned long long seed) {
  generator->numbers.seed(seed);
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset) {
  generator->numbers.discard(offset);
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetGeneratorOrdering(curandGenerator_t, curandOrdering_t) { return CURAND_STATUS_SUCCESS; }
curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream) {
  if (generator == nullptr) return CURAND_STATUS_NOT_INITIALIZED;
  generator->stream = stream;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandGetVersion(int* version) {
  *version = 100400;
  return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandGenerate(curandGenerator_t generator, unsigned* to, std::size_t n) {
  return generate("curandGenerate", generator, to, n, [](auto& numbers) { return numbers() >> 32; });
}
curandStatus_t curandGenerateUniform(curandGenerator_t generator, float* to, std::size_t n) {
  return generate("curandGenerateUniform", generator, to, n, uniform_float);
}
curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double* to, std::size_t n) {
  return generate("curandGenerateUniformDouble", generator, to, n, uniform);
}
curandStatus_t curandGenerateNormal(curandGenerator_t generator, float* to, std::size_t n, float mean,
                                    float deviation) {
  return generate_pairs("curandGenerateNormal", generator, to, n, std::normal_distribution<float>(mean, deviation));
}
curandStatus_t curandGenerateNormalDouble(curandGenerator_t generator, double* to, std::size_t n, double mean,
                                          double deviation) {
  return generate_pairs("curandGenerateNormalDouble", generator, to, n,
                        std::normal_distribution<double>(mean, deviation));
}
curandStatus_t curandGenerateLogNormal(curandGenerator_t generator, float* to, std::size_t n, float mean,
                                       float deviation) {
  return generate_pairs("curandGenerateLogNormal", generator, to, n,
                        std::lognormal_distribution<float>(mean, deviation));
}
curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned* to, std::size_t n, double lambda) {
  return generate("curandGeneratePoisson", generator, to, n, std::poisson_distribution<unsigned>(lambda));
}
