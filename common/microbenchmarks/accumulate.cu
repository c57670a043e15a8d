// Sums in fp16 against sums in fp32, on tensor cores.
//
// A tensor core multiplies 16-bit numbers exactly. The instruction chooses the precision of the sums. An fp16 number
// has 11 significant bits: once a sum has grown to more than 2048 times the next product, adding that product changes
// nothing. So a long sum in fp16, such as a row of P times a column of V, stops growing. The experiments "sum" add up
// `keys` products of numbers between 0 and 1 both ways and compare with double precision. The experiments "rate" show
// whether fp16 sums are faster.
#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

#include "device/launch.h"
#include "device/mma.h"
#include "device/mma_half.h"
#include "device/numeric.h"
#include "microbenchmarks/experiment.h"

namespace machine {
namespace {

// The sums of a 16 x 8 product that one warp holds, C fragments of either precision.
struct Fp32Sums {
  float c[4] = {};
  __device__ void add(const uint32_t* a, const uint32_t* b) { mma_m16n8k16<__half>(c, a, b); }
  __device__ float get(int i) const { return c[i]; }
};
struct Fp16Sums {
  uint32_t c[2] = {};
  __device__ void add(const uint32_t* a, const uint32_t* b) { mma_m16n8k16_half(c, a, b); }
  __device__ float get(int i) const {
    const float2 pair = unpack2<__half>(c[i / 2]);
    return i % 2 == 0 ? pair.x : pair.y;
  }
};

// One warp: P V.
template <class Sums>
__global__ void multiply(const __half* p,  // [16, keys]
                         const __half* v,  // [8, keys], V transposed
                         int keys,
                         float* o)  // [16, 8]
{
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  Sums sums;
  for (int j = 0; j < keys; j += 16) {
    const auto pair = [&](const __half* row, int column) {
      return *reinterpret_cast<const uint32_t*>(row + j + column + 2 * t);
    };
    const __half *p_row = p + g * keys, *p_row8 = p_row + 8 * keys, *v_row = v + g * keys;
    const uint32_t a[4] = {pair(p_row, 0), pair(p_row8, 0), pair(p_row, 8), pair(p_row8, 8)};
    const uint32_t b[2] = {pair(v_row, 0), pair(v_row, 8)};
    sums.add(a, b);
  }
  for (int i = 0; i < 4; i++) o[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sums.get(i);
}

template <class Sums>
Experiment long_sum(const char* precision, double rounding, int keys) {
  return {"sum/" + std::string(precision) + "/" + std::to_string(keys), [=] {
            std::mt19937 random(1);
            std::uniform_real_distribution<float> uniform(0, 1);
            std::vector<__half> p(size_t(16) * keys), v(size_t(8) * keys);
            for (std::vector<__half>* numbers : {&p, &v})
              for (__half& x : *numbers) x = from_float<__half>(uniform(random));
            std::vector<double> expected(16 * 8);
            for (int i = 0; i < 16 * 8; i++)
              for (int j = 0; j < keys; j++)
                expected[i] += double(to_float(p[size_t(i / 8) * keys + j])) * to_float(v[size_t(i % 8) * keys + j]);
            return [=, p = std::make_shared<Array<__half>>(p), v = std::make_shared<Array<__half>>(v)] {
              const Array<float> o(16 * 8);
              Run run;
              run.seconds = seconds([&] { launch(multiply<Sums>, {1, 32}, p->data(), v->data(), keys, o.data()); });
              const std::vector<float> found = o.host();
              double squares = 0, error_squares = 0;
              for (int i = 0; i < 16 * 8; i++) {
                squares += expected[i] * expected[i];
                error_squares += (found[i] - expected[i]) * (found[i] - expected[i]);
              }
              const double error = std::sqrt(error_squares / squares);
              run.counters = {{"keys", keys}, {"error", error}};
              // More cannot get lost: each addition of positive numbers is off by a rounding of what has been reached.
              if (!(error <= std::min(1.0, keys * rounding)))
                run.wrong = "the relative error is " + std::to_string(error);
              return run;
            };
          }};
}

constexpr int threads = 256, blocks = on_gpu ? 16896 : 1;
constexpr int products = 8;              // that a warp has under way
constexpr int steps = on_gpu ? 128 : 8;  // of 16 units each: up to 2048 units no sum is rounded

template <class Sums>
__global__ void __launch_bounds__(threads) multiply_often(uint32_t one, uint32_t unit, int steps, float* sums) {
  const uint32_t a[4] = {one, one, one, one}, b[2] = {unit, unit};
  Sums c[products];
#pragma unroll 4
  for (int i = 0; i < steps; i++)
#pragma unroll
    for (int n = 0; n < products; n++) c[n].add(a, b);
  float sum = 0;
#pragma unroll
  for (int n = 0; n < products; n++)
#pragma unroll
    for (int i = 0; i < 4; i++) sum += c[n].get(i);
  sums[blockIdx.x * threads + threadIdx.x] = sum;
}

template <class Sums>
Experiment rate(const char* precision) {
  return {"rate/" + std::string(precision), [=] {
            return [] {
              const Array<float> sums(size_t(blocks) * threads);
              const float unit = 0x1p-10f;
              const auto twice = [](float x) { return __half_as_ushort(from_float<__half>(x)) * 0x10001u; };
              Run run;
              run.seconds = seconds([&] {
                launch(multiply_often<Sums>, {blocks, threads}, twice(1), twice(unit), steps, sums.data());
              });
              run.counters["FLOP/s"] = 2.0 * 16 * 8 * 16 * products * steps * blocks * (threads / 32) / run.seconds;
              for (const float sum : sums.host())
                if (sum != 4 * products * 16 * steps * unit) run.wrong = "a sum is " + std::to_string(sum);
              return run;
            };
          }};
}

}  // namespace

std::vector<Experiment> accumulate() {
  std::vector<Experiment> experiments;
  for (int keys = 64; keys <= (on_gpu ? 65536 : 1024); keys *= 4) {
    experiments.push_back(long_sum<Fp16Sums>("fp16", 0x1p-11, keys));
    experiments.push_back(long_sum<Fp32Sums>("fp32", 0x1p-23, keys));
  }
  experiments.push_back(rate<Fp16Sums>("fp16"));
  experiments.push_back(rate<Fp32Sums>("fp32"));
  return experiments;
}

}  // namespace machine
