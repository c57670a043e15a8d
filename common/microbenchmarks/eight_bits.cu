// How many bits of a sum of eight-bit products does a tensor core keep, and how often must the sum be taken from it?
//
// `bits`: 1 is added to a smaller and smaller power of two, as two products of one instruction. The last power that
// makes a difference says how many bits stay behind the leading one.
//
// `sum/EVERY/KEYS`: a row of weights between 0 and 1 times a column of numbers between 0 and 1, with e4m3 numbers, 32
// keys in an instruction. After EVERY instructions the sum is added to one in fp32, and the tensor core begins a new
// one; after 0, never. What is cut off is always lost in the same direction, so the error grows with what a sum has
// reached, relative to the products.
//
// Compute capability 9.0 alone: the products are wgmma's. The engine cuts off as much (simt/hopper/wgmma.cc).
#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

#include "device/fp8.h"
#include "device/launch.h"
#include "device/proxy_fence.h"
#include "device/wgmma.h"
#include "microbenchmarks/experiment.h"

namespace machine {
namespace {

using e4m3 = __nv_fp8_e4m3;
constexpr int rows = 64, columns = 64, depth = 32;  // of an instruction
constexpr int row_bytes = 64;                       // in shared memory, of which an instruction takes half

// One warpgroup: sums of products over `keys`, which the tensor core keeps for `every` instructions.
__global__ void __launch_bounds__(128) add_up(const e4m3* p,  // [rows, keys]
                                              const e4m3* v,  // [columns, keys]
                                              int keys, int every,
                                              float* o)  // [rows, columns]
{
  uint8_t* const p_smem = dynamic_shared<uint8_t, 1024>();
  uint8_t* const v_smem = p_smem + rows * row_bytes;
  float o_reg[columns / 8][4] = {}, sum[columns / 8][4] = {};
  for (int j = 0, step = 0; j < keys; j += depth, step++) {
    for (int i = threadIdx.x; i < rows * depth; i += 128) {
      const int row = i / depth, k = i % depth;
      const int place = row * row_bytes + (k / 16 ^ row / 2 % 4) * 16 + k % 16;  // swizzled over 64 bytes
      p_smem[place] = p[row * keys + j + k].__x;
      v_smem[place] = v[row * keys + j + k].__x;
    }
    fence_proxy_async();
    __syncthreads();  // both tiles are there
    const bool fresh = every > 0 && step % every == 0;
    wgmma_fence(sum);
    wgmma<e4m3>(sum, wgmma_descriptor(p_smem, 0, 8 * row_bytes, row_bytes),
                wgmma_descriptor(v_smem, 0, 8 * row_bytes, row_bytes), !fresh);
    wgmma_commit();
    wgmma_wait<0>(sum);
    if (j + depth >= keys || (every > 0 && (step + 1) % every == 0))
      for (int n = 0; n < columns / 8; n++)
        for (int r = 0; r < 4; r++) o_reg[n][r] += sum[n][r];
    __syncthreads();  // both have been read
  }
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  for (int n = 0; n < columns / 8; n++)
    for (int r = 0; r < 4; r++)
      o[(threadIdx.x / 32 * 16 + r / 2 * 8 + g) * columns + 8 * n + 2 * t + r % 2] = o_reg[n][r];
}

void launch_add_up(const Array<e4m3>& p, const Array<e4m3>& v, int keys, int every, const Array<float>& o) {
  launch(add_up, {1, 128, (rows + columns) * row_bytes}, p.data(), v.data(), keys, every, o.data());
}

Experiment long_sum(int every, int keys) {
  return {"fp8_sum/" + std::to_string(every) + "/" + std::to_string(keys), [=] {
            std::mt19937 random(1);
            std::uniform_real_distribution<float> uniform(0, 1);
            std::vector<e4m3> p(size_t(rows) * keys), v(size_t(columns) * keys);
            for (std::vector<e4m3>* numbers : {&p, &v})
              for (e4m3& x : *numbers) x = e4m3(uniform(random));
            std::vector<double> expected(rows * columns);
            for (int i = 0; i < rows * columns; i++)
              for (int j = 0; j < keys; j++)
                expected[i] +=
                    double(to_float(p[size_t(i / columns) * keys + j])) * to_float(v[size_t(i % columns) * keys + j]);
            return [=, p = std::make_shared<Array<e4m3>>(p), v = std::make_shared<Array<e4m3>>(v)] {
              const Array<float> o(rows * columns);
              Run run;
              run.seconds = seconds([&] { launch_add_up(*p, *v, keys, every, o); });
              const std::vector<float> found = o.host();
              double squares = 0, error_squares = 0;
              for (int i = 0; i < rows * columns; i++) {
                squares += expected[i] * expected[i];
                error_squares += (found[i] - expected[i]) * (found[i] - expected[i]);
              }
              const double error = std::sqrt(error_squares / squares);
              run.counters = {{"keys", keys}, {"every", every}, {"error", error}};
              // An instruction cuts at most a unit off each product, the sum before and the sum after.
              const int in_a_row = every > 0 ? std::min(every, keys / depth) : keys / depth;
              if (!(error <= in_a_row * (depth + 2) * 0x1p-13))
                run.wrong = "the relative error is " + std::to_string(error);
              return run;
            };
          }};
}

Experiment kept_bits() {
  return {"fp8_bits", [] {
            return [] {
              Run run;
              int kept = 0;
              for (int bits = 1; bits <= 18; bits++) {
                const int left = bits / 2, right = bits - left;
                std::vector<e4m3> p(rows * depth, e4m3(0.f)), v(columns * depth, e4m3(0.f));
                for (int i = 0; i < rows; i++) {
                  p[i * depth] = v[i * depth] = e4m3(16.f);
                  p[i * depth + 31] = e4m3(16 * std::ldexp(1.f, -left));
                  v[i * depth + 31] = e4m3(16 * std::ldexp(1.f, -right));
                }
                const Array<e4m3> p_device(p), v_device(v);
                const Array<float> o(rows * columns);
                run.seconds += seconds([&] { launch_add_up(p_device, v_device, depth, 0, o); });
                const float found = o.host()[0];
                if (found == 256 + std::ldexp(256.f, -bits) && kept == bits - 1) kept = bits;
                if (found != 256 && kept != bits)
                  run.wrong = "1 + 2^-" + std::to_string(bits) + " is " + std::to_string(found / 256);
              }
              run.counters["bits"] = kept;
              return run;
            };
          }};
}

bool is_hopper() {
  int device = 0, major = 0, minor = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  return major == 9 && minor == 0;
}

}  // namespace

std::vector<Experiment> eight_bits() {
  if (on_gpu && !is_hopper()) return {};
  std::vector<Experiment> experiments = {kept_bits()};
  for (const int every : {0, 4, 16, 64})
    for (int keys = 256; keys <= (on_gpu ? 65536 : 1024); keys *= 4) experiments.push_back(long_sum(every, keys));
  return experiments;
}

}  // namespace machine
