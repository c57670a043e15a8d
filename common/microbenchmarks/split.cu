// How the warps of a thread block divide a tile of attention: by queries, or by keys.
//
// A block of four warps owns 64 queries of a head and goes through the keys, 64 at a time. Both kernels make the same
// products and the same softmax, on the same tiles in shared memory.
//
//   divide_queries   A warp has 16 queries and all 64 keys of a tile. Its rows are its own, from S to O.
//                    So does FlashAttention-2.
//   divide_keys      A warp has all 64 queries and 16 keys of a tile. A row's maximum is the largest of four warps',
//                    and its O the sum of four warps' parts. Both go through shared memory, with a barrier in between,
//                    in every tile. So does FlashAttention-1.
//
// (The parts of O could be added up once, after the last tile. Then each warp would hold O of 64 rows instead of 16.)
//
// The exchange takes 73 KiB of shared memory. So that this alone does not make the difference, divide_queries runs a
// second time with as much.
#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

#include "device/launch.h"
#include "device/math.h"
#include "device/swizzled_tile.h"
#include "microbenchmarks/experiment.h"

namespace machine {
namespace {

using namespace swizzled_tile;

constexpr int warps = 4, threads = 32 * warps, D = 64;
constexpr int Br = 64, Bc = 64;                                  // queries and keys of a tile
constexpr int heads = on_gpu ? 32 : 2, N = on_gpu ? 4096 : 128;  // multiples of the tiles
constexpr float scale_log2 = 0.125f * 1.44269504f;               // 1 / sqrt(D), log2(e)

constexpr int part_stride = D + 8;  // floats between rows of a part of O: eight rows are in different banks
constexpr size_t tile_bytes = (Br + 2 * Bc) * D * sizeof(__half);
constexpr size_t exchange_bytes = warps * Br * (part_stride + 1) * sizeof(float);

struct Tiles {
  __half *q, *k, *v;  // [64][D] each
  __device__ Tiles() : q(dynamic_shared<__half>()), k(q + Br * D), v(k + Bc * D) {}
  __device__ float* after() const { return reinterpret_cast<float*>(v + Bc * D); }

  // Q on the first time, K and V from key j0 on.
  __device__ void load(const __half* q_head, const __half* k_head, const __half* v_head, int i0, int j0) const {
    __syncthreads();  // everyone is done with the tile before
    if (j0 == 0) copy_tile<Br, D, threads>(q, q_head + i0 * D, Br);
    copy_tile<Bc, D, threads>(k, k_head + j0 * D, Bc);
    copy_tile<Bc, D, threads>(v, v_head + j0 * D, Bc);
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();  // the tiles are there
  }
};

// The warp's sixteen rows of O, divided by l.
__device__ void store(__half* o,  // [16, D]
                      const float (&o_reg)[D / 8][4], const float (&l)[2]) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  for (int h = 0; h < 2; h++)
    for (int n = 0; n < D / 8; n++)
      *reinterpret_cast<uint32_t*>(o + (g + 8 * h) * D + 8 * n + 2 * t) =
          pack2<__half>(o_reg[n][2 * h] / l[h], o_reg[n][2 * h + 1] / l[h]);
}

__global__ void __launch_bounds__(threads) divide_queries(const __half* q,  // [heads, N, D]
                                                          const __half* k,  // [heads, N, D]
                                                          const __half* v,  // [heads, N, D]
                                                          __half* o)        // [heads, N, D]
{
  const int head = blockIdx.x / (N / Br) * N * D, i0 = blockIdx.x % (N / Br) * Br, row = threadIdx.x / 32 * 16;
  const Tiles tiles;
  float o_reg[1][D / 8][4] = {}, m[2] = {-INFINITY, -INFINITY}, l[2] = {};
#pragma unroll 1
  for (int j0 = 0; j0 < N; j0 += Bc) {
    tiles.load(q + head, k + head, v + head, i0, j0);
    float s[1][Bc / 8][4];
    multiply_by_transpose<Br, Bc, D, Bc>(s, tiles.q + row * 64, tiles.k);
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float top = m[h];
      for (int n = 0; n < Bc / 8; n++)
        for (int c = 0; c < 2; c++) top = fmaxf(top, s[0][n][2 * h + c] * scale_log2);
      top = quad_max(top);
      const float correction = exp2_approx(m[h] - top);
      m[h] = top;
      l[h] *= correction;
      for (int n = 0; n < Bc / 8; n++)
        for (int c = 0; c < 2; c++) {
          float& x = s[0][n][2 * h + c];
          x = exp2_approx(x * scale_log2 - top);
          l[h] += x;
        }
      for (int n = 0; n < D / 8; n++)
        for (int c = 0; c < 2; c++) o_reg[0][n][2 * h + c] *= correction;
    }
    uint32_t p[1][Bc / 16][4];
    round_fragments<__half, Bc>(p, s);
    add_product<Bc, D, Bc, __half>(o_reg, p, tiles.v);
  }
  for (float& sum : l) sum = quad_sum(sum);
  store(o + head + (i0 + row) * D, o_reg[0], l);
}

__global__ void __launch_bounds__(threads) divide_keys(const __half* q,  // [heads, N, D]
                                                       const __half* k,  // [heads, N, D]
                                                       const __half* v,  // [heads, N, D]
                                                       __half* o)        // [heads, N, D]
{
  constexpr int keys = Bc / warps;  // of a warp
  const int head = blockIdx.x / (N / Br) * N * D, i0 = blockIdx.x % (N / Br) * Br;
  const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const int own = 16 * warp + g;  // and 8 below: the rows that this lane adds up in the end
  const Tiles tiles;
  float* parts = tiles.after();                    // [warps][Br][part_stride], of O
  float* rows = parts + warps * Br * part_stride;  // [warps][Br]: what each warp says of each row
  float m[Br / 16][2], l[Br / 16][2] = {};         // of all rows; l over the warp's keys
  float o_reg[D / 8][4] = {}, m_own[2] = {-INFINITY, -INFINITY};
  for (auto& pair : m) pair[0] = pair[1] = -INFINITY;

#pragma unroll 1
  for (int j0 = 0; j0 < N; j0 += Bc) {
    tiles.load(q + head, k + head, v + head, i0, j0);
    float s[Br / 16][keys / 8][4];
    multiply_by_transpose<Br, Bc, D, keys>(s, tiles.q, tiles.k + warp * keys * 64);
#pragma unroll
    for (int i = 0; i < Br / 16; i++)
      for (int h = 0; h < 2; h++) {
        float top = -INFINITY;
        for (int n = 0; n < keys / 8; n++)
          for (int c = 0; c < 2; c++) top = fmaxf(top, s[i][n][2 * h + c] * scale_log2);
        top = quad_max(top);
        if (t == 0) rows[warp * Br + 16 * i + 8 * h + g] = top;
      }
    __syncthreads();  // every warp's maxima are there
    const auto largest = [&](int row, float x) {
      for (int w = 0; w < warps; w++) x = fmaxf(x, rows[w * Br + row]);
      return x;
    };
#pragma unroll
    for (int i = 0; i < Br / 16; i++)
      for (int h = 0; h < 2; h++) {
        const float top = largest(16 * i + 8 * h + g, m[i][h]);
        l[i][h] *= exp2_approx(m[i][h] - top);
        m[i][h] = top;
        for (int n = 0; n < keys / 8; n++)
          for (int c = 0; c < 2; c++) {
            float& x = s[i][n][2 * h + c];
            x = exp2_approx(x * scale_log2 - top);
            l[i][h] += x;
          }
      }
    uint32_t p[Br / 16][keys / 16][4];
    round_fragments<__half, keys>(p, s);
    float part[Br / 16][D / 8][4] = {};
    add_product<Bc, D, keys, __half>(part, p, tiles.v + warp * keys * 64);
#pragma unroll
    for (int i = 0; i < Br / 16; i++)
      for (int h = 0; h < 2; h++)
        for (int n = 0; n < D / 8; n++)
          *reinterpret_cast<float2*>(parts + (warp * Br + 16 * i + 8 * h + g) * part_stride + 8 * n + 2 * t) =
              make_float2(part[i][n][2 * h], part[i][n][2 * h + 1]);
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const float top = largest(own + 8 * h, m_own[h]), correction = exp2_approx(m_own[h] - top);
      m_own[h] = top;
      for (int n = 0; n < D / 8; n++)
        for (int c = 0; c < 2; c++) o_reg[n][2 * h + c] *= correction;
    }
    __syncthreads();  // every warp's part of O is there
#pragma unroll
    for (int w = 0; w < warps; w++)
      for (int h = 0; h < 2; h++)
        for (int n = 0; n < D / 8; n++) {
          const float2 pair =
              *reinterpret_cast<const float2*>(parts + (w * Br + own + 8 * h) * part_stride + 8 * n + 2 * t);
          o_reg[n][2 * h] += pair.x;
          o_reg[n][2 * h + 1] += pair.y;
        }
  }

#pragma unroll
  for (int i = 0; i < Br / 16; i++)
    for (int h = 0; h < 2; h++) {
      const float sum = quad_sum(l[i][h]);
      if (t == 0) rows[warp * Br + 16 * i + 8 * h + g] = sum;
    }
  __syncthreads();  // every warp's sums are there
  float l_own[2] = {};
  for (int h = 0; h < 2; h++)
    for (int w = 0; w < warps; w++) l_own[h] += rows[w * Br + own + 8 * h];
  store(o + head + (i0 + 16 * warp) * D, o_reg, l_own);
}

// O of head 0, row i, in double precision.
std::vector<double> expected_row(const std::vector<__half>& q, const std::vector<__half>& k,
                                 const std::vector<__half>& v, int i) {
  std::vector<double> o(D);
  double l = 0;
  for (int j = 0; j < N; j++) {
    double score = 0;
    for (int d = 0; d < D; d++) score += double(to_float(q[i * D + d])) * to_float(k[j * D + d]);
    const double weight = std::exp2(score * scale_log2);
    l += weight;
    for (int d = 0; d < D; d++) o[d] += weight * to_float(v[j * D + d]);
  }
  for (double& x : o) x /= l;
  return o;
}

Experiment dividing(const char* what, decltype(&divide_queries) kernel, size_t shared_bytes) {
  return {std::string("split/") + what, [=] {
            std::mt19937 random(1);
            std::uniform_real_distribution<float> uniform(-2, 2);
            std::vector<__half> inputs[3];
            std::vector<std::shared_ptr<Array<__half>>> device;
            for (std::vector<__half>& x : inputs) {
              x.resize(size_t(heads) * N * D);
              for (int i = 0; i < N * D; i++) x[i] = from_float<__half>(uniform(random));
              for (int head = 1; head < heads; head++)
                std::copy_n(x.begin(), N * D, x.begin() + head * N * D);  // all alike
              device.push_back(std::make_shared<Array<__half>>(x));
            }
            device.push_back(std::make_shared<Array<__half>>(inputs[0].size()));
            std::map<int, std::vector<double>> expected;
            for (int i = 0; i < N; i += N / 32 + 1) expected[i] = expected_row(inputs[0], inputs[1], inputs[2], i);
            return [=] {
              Run run;
              run.seconds = seconds([&] {
                launch(kernel, {unsigned(heads * N / Br), threads, shared_bytes}, device[0]->data(), device[1]->data(),
                       device[2]->data(), device[3]->data());
              });
              run.counters = {{"ms", 1e3 * run.seconds},
                              {"FLOP/s", 4.0 * heads * N * N * D / run.seconds},
                              {"shared_bytes", double(shared_bytes)}};
              const std::vector<__half> o = device[3]->host();
              double squares = 0, error_squares = 0;
              for (const int head : {0, heads - 1})
                for (const auto& [i, row] : expected)
                  for (int d = 0; d < D; d++) {
                    const double error = to_float(o[(size_t(head) * N + i) * D + d]) - row[d];
                    squares += row[d] * row[d];
                    error_squares += error * error;
                  }
              const double error = std::sqrt(error_squares / squares);
              if (!(error <= 1e-3)) run.wrong = "the relative error is " + std::to_string(error);
              return run;
            };
          }};
}

}  // namespace

std::vector<Experiment> split() {
  return {dividing("queries", divide_queries, tile_bytes),
          dividing("queries_same_memory", divide_queries, tile_bytes + exchange_bytes),
          dividing("keys", divide_keys, tile_bytes + exchange_bytes)};
}

}  // namespace machine
