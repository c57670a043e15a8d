// The backward with a window, variants against one another: window_rounds D WINDOW ROUNDS..; D = 64: H = 32, D = 128: H = 16.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_bf16.h>
#include "attention/problem.h"
#include "attention/rung.h"
#include "attention/schedule.h"
using attention::BackwardArgs;
using attention::Problem;
#define KERNELS(n) \
  namespace variants::on_hopper_##n { void run_any(const Problem&, const BackwardArgs&, cudaStream_t, int, int); }
KERNELS(0) KERNELS(1) KERNELS(2)
using T = __nv_bfloat16;
__global__ void fill(T* x, size_t n, unsigned seed, float factor) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) {
    float sum = 0;
    for (unsigned k = 0; k < 4; k++) {
      unsigned h = unsigned(i) * 4 + k + seed;
      h ^= h >> 16, h *= 0x7feb352d, h ^= h >> 15, h *= 0x846ca68b, h ^= h >> 16;
      sum += float(h) / 4294967296.f - .5f;
    }
    x[i] = __float2bfloat16(sum * 1.732f * factor);
  }
}
__global__ void set(float* x, size_t n, float to) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) x[i] = to;
}
__global__ void hash(const unsigned* x, size_t n, unsigned long long* to) {
  unsigned long long sum = 0;
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x)
    sum += x[i] * (2654435761ull * (i + 1));
  atomicAdd(to, sum);
}
int main(int argc, char** argv) {
  const int D = atoi(argv[1]), window = atoi(argv[2]), n = 16384, repetitions = atoi(argv[3]);
  const size_t elements = size_t(n) * 2048;
  T* t[8];
  for (int i = 0; i < 8; i++) {
    cudaMalloc(&t[i], elements * 2);
    fill<<<1024, 256>>>(t[i], elements, 77777u * i, i == 3 ? .05f : 1.f);  // t[3] is O
  }
  float* lse;
  void *w, *flush;
  unsigned long long* sum;
  cudaMalloc(&lse, elements / D * 4), cudaMalloc(&w, size_t(1) << 30), cudaMalloc(&flush, 256 << 20), cudaMalloc(&sum, 8);
  set<<<256, 256>>>(lse, elements / D, std::log(window + 1.f) + .5f);
  Problem p;
  p.batch = 1, p.heads = p.kv_heads = 2048 / D, p.seq_q = p.seq_k = n, p.head_dim = D;
  p.dtype = attention::DType::bf16, p.mask = attention::Mask::causal, p.window_left = window;
  p.scale = 1 / std::sqrt(float(D));
  BackwardArgs args{};
  args.q = t[0], args.k = t[1], args.v = t[2], args.o = t[3], args.lse = lse, args.d_o = t[4];
  args.dq = t[5], args.dk = t[6], args.dv = t[7], args.workspace = w;
  struct Variant { int kernel, round, parts; std::vector<float> ms = {}; float burst = 0; unsigned long long sum = 0; };
  std::vector<Variant> all = {{0, 0, 1}, {0, 0, 2}};  // prepare alone; as it is
  for (int i = 4; i < argc; i++)
    if (const int round = atoi(argv[i]); round <= p.heads)
      for (int kernel : {0, 1, 2}) all.push_back({kernel, round, 2});
  const auto once = [&](const Variant& v) {
    (v.kernel == 0 ? variants::on_hopper_0::run_any : v.kernel == 1 ? variants::on_hopper_1::run_any :
     variants::on_hopper_2::run_any)(p, args, 0, v.round, v.parts);
  };
  cudaEvent_t a, b;
  cudaEventCreate(&a), cudaEventCreate(&b);
  const auto timed = [&](int count, const Variant& v) {
    float ms;
    cudaEventRecord(a);
    for (int i = 0; i < count; i++) once(v);
    cudaEventRecord(b), cudaEventSynchronize(b), cudaEventElapsedTime(&ms, a, b);
    return ms / count;
  };
  for (Variant& v : all) {
    for (int i = 5; i < 8; i++) cudaMemset(t[i], 0xff, elements * 2);
    once(v);
    cudaMemset(sum, 0, 8);
    for (int i = 5; i < 8; i++) hash<<<1024, 256>>>((unsigned*)t[i], elements / 2, sum);
    cudaMemcpy(&v.sum, sum, 8, cudaMemcpyDeviceToHost);
  }
  srand(1);
  for (int r = 0; r < repetitions; r++) {
    for (size_t i = all.size(); i > 1; i--) std::swap(all[i - 1], all[rand() % i]);
    for (Variant& v : all) cudaMemsetAsync(flush, r, 256 << 20), cudaMemsetAsync(flush, r + 1, 256 << 20), v.ms.push_back(timed(1, v));
  }
  for (int r = 0; r < 3; r++)
    for (Variant& v : all) v.burst += timed(20, v) / 3;
  std::sort(all.begin(), all.end(), [](const Variant& x, const Variant& y) {
    return std::pair(x.parts * 100 + x.round, x.kernel) < std::pair(y.parts * 100 + y.round, y.kernel); });
  unsigned long long expected = 0;
  for (const Variant& v : all) if (v.round == 0 && v.parts == 2) expected = v.sum;
  for (Variant& v : all) {
    std::sort(v.ms.begin(), v.ms.end());
    printf("{\"D\": %d, \"window\": %d, \"parts\": \"%s\", \"ahead\": %d, \"round\": %d, \"us\": %.1f, \"p10_us\": %.1f, "
           "\"burst_us\": %.1f, \"same_bits\": %s}\n", D, window, v.parts == 1 ? "prepare" : "both", v.kernel, v.round,
           1e3 * v.ms[v.ms.size() / 2], 1e3 * v.ms[v.ms.size() / 10], 1e3 * v.burst,
           v.parts == 1 ? "null" : v.sum == expected ? "true" : "false");
  }
  if (cudaError_t e = cudaDeviceSynchronize()) { printf("%s\n", cudaGetErrorString(e)); return 1; }
}
