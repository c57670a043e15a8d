// Chapter 12's backward with LSE and delta as columns against the one before, and chapter 10's columns where nothing is
// added: columns_12 REPETITIONS. One JSON line for each problem and kernel, and one for each comparison with fp64.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include "attention/problem.h"
#include "attention/rung.h"
using attention::BackwardArgs;
using attention::Problem;
namespace variants::on_hopper_base { void run_any(const Problem&, const BackwardArgs&, cudaStream_t); size_t bytes(const Problem&); }
namespace variants::on_hopper_columns { void run_any(const Problem&, const BackwardArgs&, cudaStream_t); size_t bytes(const Problem&); }
namespace hopper { extern const attention::Backward columns_backward; }

__device__ float number(size_t i, unsigned seed) {
  float sum = 0;
  for (unsigned k = 0; k < 4; k++) {
    unsigned h = unsigned(i) * 4 + k + seed;
    h ^= h >> 16, h *= 0x7feb352d, h ^= h >> 15, h *= 0x846ca68b, h ^= h >> 16;
    sum += float(h) / 4294967296.f - .5f;
  }
  return sum * 1.732f;
}
__device__ void to(__nv_bfloat16& x, float y) { x = __float2bfloat16(y); }
__device__ void to(__half& x, float y) { x = __float2half(y); }
__device__ float of(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ float of(__half x) { return __half2float(x); }
template <class T>
__global__ void fill(T* x, size_t n, unsigned seed, float factor) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x)
    to(x[i], number(i, seed) * factor);
}
__global__ void set(float* x, size_t n, float v) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) x[i] = v;
}
// fp64, one warp for each row. s = scale q k - slope |i - j|; causal, `window` keys before.
struct Shape { int n, d, window; double scale; const float* slopes; };
__device__ int first_key(const Shape& s, int i) { return s.window < 0 ? 0 : max(0, i - s.window); }
template <class T>
__device__ double dot(const T* a, const T* b, int d) {
  double sum = 0;
  for (int c = threadIdx.x; c < d; c += 32) sum += double(of(a[c])) * of(b[c]);
  for (int o = 16; o; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
  return sum;
}
template <class T>
__global__ void forward(Shape s, const T* q, const T* k, const T* v, T* o, float* lse, double* delta, const T* d_o) {
  const int i = blockIdx.x, h = blockIdx.y;
  const size_t at = size_t(h) * s.n;
  double l = 0, acc[4] = {}, m = -1e300;
  for (int j = first_key(s, i); j <= i; j++)
    m = max(m, dot(q + (at + i) * s.d, k + (at + j) * s.d, s.d) * s.scale - (s.slopes ? s.slopes[h] * double(i - j) : 0));
  for (int j = first_key(s, i); j <= i; j++) {
    const double p = exp(dot(q + (at + i) * s.d, k + (at + j) * s.d, s.d) * s.scale - (s.slopes ? s.slopes[h] * double(i - j) : 0) - m);
    l += p;
    for (int c = 0; c < s.d / 32; c++) acc[c] += p * of(v[(at + j) * s.d + c * 32 + threadIdx.x]);
  }
  double sum = 0;
  for (int c = 0; c < s.d / 32; c++) {
    to(o[(at + i) * s.d + c * 32 + threadIdx.x], float(acc[c] / l));
    sum += acc[c] / l * of(d_o[(at + i) * s.d + c * 32 + threadIdx.x]);
  }
  for (int x = 16; x; x /= 2) sum += __shfl_xor_sync(~0u, sum, x);
  if (threadIdx.x == 0) lse[at + i] = float(m + log(l)), delta[at + i] = sum;
}
template <class T>
__global__ void gradients(Shape s, const T* q, const T* k, const T* v, const T* d_o, const float* lse, const double* delta,
                          double* dq, double* dk, double* dv) {
  const int r = blockIdx.x, h = blockIdx.y;
  const size_t at = size_t(h) * s.n;
  double a[4] = {}, b[4] = {}, c[4] = {};
  const auto pair = [&](int i, int j, auto&& f) {
    const double p = exp(dot(q + (at + i) * s.d, k + (at + j) * s.d, s.d) * s.scale - (s.slopes ? s.slopes[h] * double(i - j) : 0) - double(lse[at + i]));
    f(p, p * (dot(d_o + (at + i) * s.d, v + (at + j) * s.d, s.d) - delta[at + i]) * s.scale);
  };
  for (int j = first_key(s, r); j <= r; j++)
    pair(r, j, [&](double, double ds) { for (int x = 0; x < s.d / 32; x++) a[x] += ds * of(k[(at + j) * s.d + x * 32 + threadIdx.x]); });
  for (int i = r; i < s.n && (s.window < 0 || i - s.window <= r); i++)
    pair(i, r, [&](double p, double ds) {
      for (int x = 0; x < s.d / 32; x++) b[x] += ds * of(q[(at + i) * s.d + x * 32 + threadIdx.x]), c[x] += p * of(d_o[(at + i) * s.d + x * 32 + threadIdx.x]);
    });
  for (int x = 0; x < s.d / 32; x++) {
    const size_t e = (at + r) * s.d + x * 32 + threadIdx.x;
    dq[e] = a[x], dk[e] = b[x], dv[e] = c[x];
  }
}
template <class T>
__global__ void norms(const T* x, const double* y, size_t n, double* sums) {
  double e = 0, t = 0;
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) {
    const double d = double(of(x[i])) - y[i];
    e += d * d, t += y[i] * y[i];
  }
  atomicAdd(sums, e), atomicAdd(sums + 1, t);
}
__global__ void hash(const unsigned* x, size_t n, unsigned long long* to) {
  unsigned long long sum = 0;
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x)
    sum += x[i] * (2654435761ull * (i + 1));
  atomicAdd(to, sum);
}
using Run = void (*)(const Problem&, const BackwardArgs&, cudaStream_t);
const Run base = variants::on_hopper_base::run_any, columns = variants::on_hopper_columns::run_any;
void ten(const Problem& p, const BackwardArgs& a, cudaStream_t s) { hopper::columns_backward.run(p, a, s); }

Problem problem(int n, int heads, int d, bool bf16, int window) {
  Problem p;
  p.batch = 1, p.heads = p.kv_heads = heads, p.seq_q = p.seq_k = n, p.head_dim = d;
  p.dtype = bf16 ? attention::DType::bf16 : attention::DType::fp16;
  p.mask = attention::Mask::causal, p.window_left = window, p.scale = 1 / std::sqrt(float(d));
  return p;
}
void* memory[16];
float *lse, *slopes;
void *work, *flush;

template <class T>
void errors(int d, int window, bool alibi, int n) {
  const int heads = 2;
  const size_t size = size_t(heads) * n * d;
  T* t[8];
  for (int i = 0; i < 8; i++) t[i] = static_cast<T*>(memory[i]);
  double* exact[4];
  for (int i = 0; i < 4; i++) exact[i] = static_cast<double*>(memory[8 + i]);
  for (int i : {0, 1, 2, 4}) fill<<<1024, 256>>>(t[i], size, 77777u * i, 1.f);
  const Shape s = {n, d, window, 1 / std::sqrt(double(d)), alibi ? slopes : nullptr};
  forward<<<dim3(n, heads), 32>>>(s, t[0], t[1], t[2], t[3], lse, exact[3], t[4]);
  gradients<<<dim3(n, heads), 32>>>(s, t[0], t[1], t[2], t[4], lse, exact[3], exact[0], exact[1], exact[2]);
  Problem p = problem(n, heads, d, std::is_same_v<T, __nv_bfloat16>, window);
  p.scale = float(s.scale), p.alibi = alibi;
  BackwardArgs args{};
  args.q = t[0], args.k = t[1], args.v = t[2], args.o = t[3], args.lse = lse, args.d_o = t[4];
  args.dq = t[5], args.dk = t[6], args.dv = t[7], args.workspace = work, args.alibi = alibi ? slopes : nullptr;
  double* sums;
  cudaMalloc(&sums, 48);
  for (Run run : {base, columns}) {
    for (int i = 5; i < 8; i++) cudaMemset(t[i], 0xff, size * 2);
    cudaMemset(work, 0xff, 64 << 20);
    run(p, args, 0);
    cudaMemset(sums, 0, 48);
    double e[6];
    for (int i = 0; i < 3; i++) norms<<<256, 256>>>(t[5 + i], exact[i], size, sums + 2 * i);
    cudaMemcpy(e, sums, 48, cudaMemcpyDeviceToHost);
    printf("{\"what\": \"error\", \"N\": %d, \"D\": %d, \"dtype\": \"%s\", \"window\": %d, \"alibi\": %d, \"kernel\": \"%s\", \"dq\": %.3e, \"dk\": %.3e, \"dv\": %.3e}\n",
           n, d, std::is_same_v<T, __half> ? "fp16" : "bf16", window, int(alibi), run == base ? "base" : "columns", std::sqrt(e[0] / e[1]), std::sqrt(e[2] / e[3]), std::sqrt(e[4] / e[5]));
  }
  cudaFree(sums);
}

struct Variant {
  const char* name;
  Run run;
  std::vector<float> ms;
  float burst;
  unsigned long long sum[2];
};

template <class T>
void times(int d, int window, bool alibi, int repetitions) {
  const int n = 16384;
  const size_t size = size_t(n) * 2048;
  T* t[8];
  for (int i = 0; i < 8; i++) {
    t[i] = static_cast<T*>(memory[i]);
    fill<<<1024, 256>>>(t[i], size, 77777u * i, i == 3 ? .05f : 1.f);  // t[3] is O
  }
  set<<<256, 256>>>(lse, size / d, std::log(window < 0 ? n / 2.f : window + 1.f) + .5f);
  Problem p = problem(n, 2048 / d, d, std::is_same_v<T, __nv_bfloat16>, window);
  p.alibi = alibi;
  BackwardArgs args{};
  args.q = t[0], args.k = t[1], args.v = t[2], args.o = t[3], args.lse = lse, args.d_o = t[4];
  args.dq = t[5], args.dk = t[6], args.dv = t[7], args.workspace = work, args.alibi = alibi ? slopes : nullptr;
  std::vector<Variant> all;
  all.push_back({"base", base, {}, 0, {}}), all.push_back({"columns", columns, {}, 0, {}});
  if (window < 0 && !alibi) all.push_back({"chapter 10", ten, {}, 0, {}});
  cudaEvent_t a, b;
  cudaEventCreate(&a), cudaEventCreate(&b);
  const auto timed = [&](int count, const Variant& v) {
    float ms;
    cudaEventRecord(a);
    for (int i = 0; i < count; i++) v.run(p, args, 0);
    cudaEventRecord(b), cudaEventSynchronize(b), cudaEventElapsedTime(&ms, a, b);
    return ms / count;
  };
  unsigned long long* sum;
  cudaMalloc(&sum, 8);
  for (Variant& v : all)
    for (int twice = 0; twice < 2; twice++) {
      for (int i = 5; i < 8; i++) cudaMemset(t[i], 0xff, size * 2);
      cudaMemset(sum, 0, 8), v.run(p, args, 0);
      for (int i = 5; i < 8; i++) hash<<<1024, 256>>>((unsigned*)t[i], size / 2, sum);
      cudaMemcpy(&v.sum[twice], sum, 8, cudaMemcpyDeviceToHost);
    }
  cudaFree(sum);
  for (int r = 0; r < repetitions; r++) {
    std::rotate(all.begin(), all.begin() + 1, all.end());
    for (Variant& v : all)
      cudaMemsetAsync(flush, r, 256 << 20), cudaMemsetAsync(flush, r + 1, 256 << 20), v.ms.push_back(timed(1, v));
  }
  const int burst = window < 0 ? 8 : 20;
  for (int r = 0; r < 3; r++)
    for (Variant& v : all) v.burst += timed(burst, v) / 3;
  float base_us = 0, base_burst = 0;
  for (Variant& v : all) {
    std::sort(v.ms.begin(), v.ms.end());
    if (!strcmp(v.name, "base")) base_us = v.ms[v.ms.size() / 2], base_burst = v.burst;
  }
  for (Variant& v : all)
    printf("{\"what\": \"time\", \"D\": %d, \"dtype\": \"%s\", \"window\": %d, \"alibi\": %d, \"kernel\": \"%s\", \"us\": %.1f, \"p10_us\": %.1f, \"burst_us\": %.1f, "
           "\"faster\": %.3f, \"faster_burst\": %.3f, \"same_bits_twice\": %s}\n",
           d, std::is_same_v<T, __half> ? "fp16" : "bf16", window, int(alibi), v.name, 1e3 * v.ms[v.ms.size() / 2], 1e3 * v.ms[v.ms.size() / 10], 1e3 * v.burst,
           base_us / v.ms[v.ms.size() / 2], base_burst / v.burst, v.sum[0] == v.sum[1] ? "true" : "false");
  fflush(stdout);
}

int main(int argc, char** argv) {
  const int repetitions = argc > 1 ? atoi(argv[1]) : 31;
  for (int i = 0; i < 12; i++) cudaMalloc(&memory[i], size_t(16384) * 2048 * 2);
  cudaMalloc(&lse, 16384 * 32 * 4), cudaMalloc(&work, size_t(1) << 30), cudaMalloc(&flush, 256 << 20), cudaMalloc(&slopes, 128);
  float s[32];
  for (int i = 0; i < 32; i++) s[i] = std::exp2(-8.f * (i % 16 + 1) / 16);
  cudaMemcpy(slopes, s, 128, cudaMemcpyHostToDevice);
  for (int d : {64, 128}) {
    for (int window : {-1, 256, 100}) {
      errors<__nv_bfloat16>(d, window, false, window == 100 ? 1001 : 1024);
      errors<__half>(d, window, false, window == 100 ? 1001 : 1024);
    }
    errors<__nv_bfloat16>(d, -1, true, 1001);
    errors<__half>(d, 256, true, 1024);
  }
  fflush(stdout);
  for (int d : {64, 128}) {
    for (int window : {-1, 256, 1024, 4096}) times<__nv_bfloat16>(d, window, false, window < 0 ? repetitions / 2 : repetitions);
    times<__half>(d, -1, false, repetitions / 2);
    times<__half>(d, 1024, false, repetitions);
    times<__nv_bfloat16>(d, -1, true, repetitions / 2);
    times<__nv_bfloat16>(d, 1024, true, repetitions);
  }
  if (cudaError_t e = cudaDeviceSynchronize()) { printf("%s\n", cudaGetErrorString(e)); return 1; }
}
