#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <unistd.h>
#include <vector>
#include <algorithm>
#include "attention/problem.h"
#include "attention/rung.h"
#include "device/launch.h"
namespace attention { extern int forced_round; int heads_in_a_round(const Problem&); int heads_that_run_together(const Problem&); }
namespace hopper { extern const attention::Forward wide_forward; }
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
  const int D = atoi(argv[1]); const double half_ms = atof(argv[2]);
  T* t[4];
  for (int i = 0; i < 4; i++) cudaMalloc(&t[i], size_t(16384) * 3072 * 2), fill<<<1024, 256>>>(t[i], size_t(16384) * 3072, 77777u * i);
  void *lse, *w, *flush;
  cudaMalloc(&lse, 64 << 20), cudaMalloc(&w, 1 << 20), cudaMalloc(&flush, 256 << 20);
  cudaEvent_t a, b, c; cudaEventCreate(&a), cudaEventCreate(&b), cudaEventCreate(&c);
  for (int n : {16384, 8192, 4096, 2048}) for (bool causal : {false, true}) {
    Problem p;
    p.batch = 16384 / n, p.heads = p.kv_heads = 3072 / D, p.seq_q = p.seq_k = n, p.head_dim = D;
    p.dtype = attention::DType::bf16, p.mask = causal ? attention::Mask::causal : attention::Mask::none;
    p.scale = 1 / std::sqrt(float(D));
    ForwardArgs args{};
    args.q = t[0], args.k = t[1], args.v = t[2], args.o = t[3], args.lse = (float*)lse, args.workspace = w;
    attention::forced_round = 0;
    const int usual = attention::heads_in_a_round(p); attention::forced_round = -1; const int now = attention::heads_that_run_together(p);
    std::vector<int> rounds = {usual}; if (now != usual) rounds.push_back(now);
    for (int r = 3; r < argc; r++) if (atoi(argv[r]) != usual && atoi(argv[r]) != now && atoi(argv[r]) <= p.batch * p.heads) rounds.push_back(atoi(argv[r]));
    for (int r : rounds) {
      attention::forced_round = r;
      const auto once = [&] { hopper::wide_forward.run(p, args, 0); };
      for (int i = 0; i < 3; i++) once();
      std::vector<float> each;
      for (int i = 0; i < 21; i++) {
        cudaMemsetAsync(flush, i, 256 << 20);
        float ms;
        cudaEventRecord(a), once(), cudaEventRecord(b), cudaEventSynchronize(b), cudaEventElapsedTime(&ms, a, b);
        each.push_back(ms);
      }
      std::nth_element(each.begin(), each.begin() + 10, each.end());
      const int half = int(half_ms / each[10]) + 1;
      cudaEventRecord(a);
      for (int i = 0; i < half; i++) once();
      cudaEventRecord(b);
      for (int i = 0; i < half; i++) once();
      cudaEventRecord(c);
      cudaEventSynchronize(b);
      char line[200] = "";
      if (FILE* f = popen("nvidia-smi --query-gpu=clocks.sm,power.draw.instant --format=csv,noheader,nounits", "r")) { if (fgets(line, 200, f)) for (char* x = line; *x; x++) if (*x == '\n') *x = 0; pclose(f); }
      float ms; cudaEventSynchronize(c), cudaEventElapsedTime(&ms, b, c);
      const double flop = 4. * p.batch * p.heads * n * double(n) * D * (causal ? .5 : 1);
      printf("D %3d N %5d %s round %2d%s %6.0f %6.0f [%s]\n", D, n, causal ? "causal" : "full  ", r, r == usual ? "*" : r == now ? "+" : " ", flop / each[10] * 1e-9, flop / (ms / half) * 1e-9, line);
      fflush(stdout);
      usleep(30000);
    }
  }
  if (cudaError_t e = cudaDeviceSynchronize()) printf("%s\n", cudaGetErrorString(e));
}
