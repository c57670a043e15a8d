#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <unistd.h>
#include <vector>
#include <algorithm>
#include "attention/problem.h"
#include "attention/rung.h"
#include "device/launch.h"
namespace hopper {
void forward_late16(const attention::Problem& p, const attention::ForwardArgs& args, cudaStream_t stream, bool polynomial);
void forward_late8(const attention::Problem& p, const attention::ForwardArgs& args, cudaStream_t stream, bool polynomial);
void forward_late4(const attention::Problem& p, const attention::ForwardArgs& args, cudaStream_t stream, bool polynomial);
void forward_late4v(const attention::Problem& p, const attention::ForwardArgs& args, cudaStream_t stream, bool polynomial);
void forward_early16(const attention::Problem& p, const attention::ForwardArgs& args, cudaStream_t stream, bool polynomial);
void forward_early4(const attention::Problem& p, const attention::ForwardArgs& args, cudaStream_t stream, bool polynomial);
void forward_always16(const attention::Problem& p, const attention::ForwardArgs& args, cudaStream_t stream, bool polynomial);
void forward_always4(const attention::Problem& p, const attention::ForwardArgs& args, cudaStream_t stream, bool polynomial);
void forward_always4v(const attention::Problem& p, const attention::ForwardArgs& args, cudaStream_t stream, bool polynomial);
void forward_four8(const attention::Problem& p, const attention::ForwardArgs& args, cudaStream_t stream, bool polynomial);
void forward_four2(const attention::Problem& p, const attention::ForwardArgs& args, cudaStream_t stream, bool polynomial);
void forward_four2e(const attention::Problem& p, const attention::ForwardArgs& args, cudaStream_t stream, bool polynomial);
}
using T = __nv_bfloat16;
using attention::Problem; using attention::ForwardArgs;
__global__ void fill(T* x, size_t n, unsigned seed) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) {
    float sum = 0;
    for (unsigned k = 0; k < 4; k++) {
      unsigned h = unsigned(i) * 4 + k + seed;
      h ^= h >> 16, h *= 0x7feb352d, h ^= h >> 15, h *= 0x846ca68b, h ^= h >> 16;
      sum += float(h) / 4294967296.f - .5f;
    }
    x[i] = __float2bfloat16(sum * 1.732f);
  }
}
int main(int argc, char** argv) {
  constexpr int D = 64;
  T* t[4];
  for (int i = 0; i < 4; i++) cudaMalloc(&t[i], size_t(16384) * 2048 * 2), fill<<<1024, 256>>>(t[i], size_t(16384) * 2048, 77777u * i);
  T *o2[2]; for (auto& x : o2) cudaMalloc(&x, size_t(16384) * 2048 * 2);
  void *lse, *w, *flush;
  cudaMalloc(&lse, 64 << 20), cudaMalloc(&w, 1 << 20), cudaMalloc(&flush, 256 << 20);
  cudaEvent_t a, b; cudaEventCreate(&a), cudaEventCreate(&b);
  struct V { const char* name; void (*run)(const Problem&, const ForwardArgs&, cudaStream_t, bool); bool polynomial; };
  std::vector<V> vs;
  for (bool poly : {false, true}) {
    vs.push_back({"late16", hopper::forward_late16, poly});
    vs.push_back({"late8", hopper::forward_late8, poly});
    vs.push_back({"late4", hopper::forward_late4, poly});
    vs.push_back({"late4v", hopper::forward_late4v, poly});
    vs.push_back({"early16", hopper::forward_early16, poly});
    vs.push_back({"early4", hopper::forward_early4, poly});
    vs.push_back({"always16", hopper::forward_always16, poly});
    vs.push_back({"always4", hopper::forward_always4, poly});
    vs.push_back({"four8", hopper::forward_four8, poly});
    vs.push_back({"four2", hopper::forward_four2, poly});
    vs.push_back({"four2e", hopper::forward_four2e, poly});
    vs.push_back({"always4v", hopper::forward_always4v, poly});
  }
  for (int n : {16384, 8192, 2048}) for (bool causal : {false, true}) {
    Problem p;
    p.batch = 16384 / n, p.heads = p.kv_heads = 2048 / D, p.seq_q = p.seq_k = n, p.head_dim = D;
    p.dtype = attention::DType::bf16, p.mask = causal ? attention::Mask::causal : attention::Mask::none;
    p.scale = 1 / std::sqrt(float(D));
    ForwardArgs args{};
    args.q = t[0], args.k = t[1], args.v = t[2], args.o = t[3], args.lse = (float*)lse, args.workspace = w;
    std::vector<std::vector<float>> each(vs.size()), slices(vs.size());
    const int rounds = argc > 1 ? atoi(argv[1]) : 7;
    for (int round = 0; round <= rounds; round++) for (size_t k = 0; k < vs.size(); k++) {
      const V& v = vs[round % 2 ? k : vs.size() - 1 - k];
      const size_t i = &v - vs.data();
      const auto once = [&] { v.run(p, args, 0, v.polynomial); };
      for (int r = 0; r < 3; r++) {
        cudaMemsetAsync(flush, r, 256 << 20);
        float ms;
        cudaEventRecord(a), once(), cudaEventRecord(b), cudaEventSynchronize(b), cudaEventElapsedTime(&ms, a, b);
        if (round) each[i].push_back(ms);
      }
      const int count = int(12 / (causal ? 2.3 : 4.1) * 1) + 2;
      cudaEventRecord(a);
      for (int r = 0; r < count; r++) once();
      cudaEventRecord(b), cudaEventSynchronize(b);
      float ms; cudaEventElapsedTime(&ms, a, b);
      if (round) slices[i].push_back(ms / count);
    }
    const double flop = 4. * p.batch * p.heads * n * double(n) * D * (causal ? .5 : 1);
    std::vector<T> first(1 << 16), now(1 << 16);
    for (size_t i = 0; i < vs.size(); i++) {
      cudaMemset(t[3], 0, size_t(16384) * 2048 * 2);
      vs[i].run(p, args, 0, vs[i].polynomial);
      cudaMemcpy(now.data(), (T*)t[3] + 123 * 64 * 100, now.size() * 2, cudaMemcpyDeviceToHost);
      if (!i) first = now;
      double d = 0, f = 0;
      for (size_t j = 0; j < now.size(); j++) { const double x = __bfloat162float(first[j]), y = __bfloat162float(now[j]); d += (x - y) * (x - y), f += x * x; }
      std::sort(each[i].begin(), each[i].end()), std::sort(slices[i].begin(), slices[i].end());
      printf("N %5d %s %-9s%s alone %4.0f slices %4.0f off %.4f\n", n, causal ? "causal" : "full  ", vs[i].name, vs[i].polynomial ? " poly" : "     ", flop / each[i][each[i].size() / 2] * 1e-9, flop / slices[i][slices[i].size() / 2] * 1e-9, std::sqrt(d / f));
    }
    fflush(stdout);
  }
  if (cudaError_t e = cudaDeviceSynchronize()) printf("%s\n", cudaGetErrorString(e));
}
