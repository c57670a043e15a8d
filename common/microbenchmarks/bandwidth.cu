// How many bytes a second come out of each level of memory, when all multiprocessors ask it at once.
//
// As many threads as the GPU holds load 16 bytes at a time, with several loads under way in each, and add up what they
// get. They read the same bytes again and again: 32 KiB, which every multiprocessor has in its L1; 16 MiB, which fit
// into L2 (the loads pass L1 by); or 1 GiB, of which L2 holds little. Shared memory is read like L1. The bandwidth of
// registers follows from the rate of multiply-adds, which read three registers each.
#include <cmath>
#include <memory>
#include <numeric>

#include "device/launch.h"
#include "microbenchmarks/experiment.h"

namespace machine {
namespace {

constexpr int threads = 1024;
constexpr size_t bytes_of_a_block = on_gpu ? size_t(128) << 20 : size_t(128) << 10;  // that it reads, more or less

unsigned all_blocks() {  // that fit at once: two on a multiprocessor of 2048 threads
  int device = 0, multiprocessors = 0, threads_of_one = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  check(cudaDeviceGetAttribute(&threads_of_one, cudaDevAttrMaxThreadsPerMultiProcessor, device));
  return on_gpu ? unsigned(multiprocessors * (threads_of_one / threads)) : 2;
}

// Chunk i of 16 bytes, and the sum of the chunks 0 .. count - 1, in 32 bits.
__host__ __device__ uint4 chunk(uint32_t i) {
  return make_uint4(i * 2654435761u, i * 2246822519u, i * 3266489917u, i * 668265263u);
}
__host__ __device__ uint32_t sum_of(uint4 x) { return x.x + x.y + x.z + x.w; }
uint32_t sum_of_chunks(uint64_t count) { return sum_of(chunk(1)) * uint32_t(count * (count - 1) / 2); }

__global__ void fill(uint4* data, int64_t count) {
  const int64_t all = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += all) data[i] = chunk(uint32_t(i));
}

__device__ void add(uint4& sum, uint4 x) {
  sum.x += x.x;
  sum.y += x.y;
  sum.z += x.z;
  sum.w += x.w;
}

enum class From { l1, beyond_l1 };

// Every block by itself (L1), or all blocks together, read `count` chunks, a power of two. Each thread makes `loads`
// loads, and begins again where the chunks end.
template <From from>
__global__ void __launch_bounds__(threads)
    read(const uint4* __restrict__ data, uint32_t count, int loads, uint32_t* sums) {
  const uint32_t thread = blockIdx.x * threads + threadIdx.x;
  const uint32_t first = from == From::l1 ? threadIdx.x : thread,
                 all = from == From::l1 ? threads : gridDim.x * threads;
  uint4 sum = make_uint4(0, 0, 0, 0);
#pragma unroll 8
  for (int i = 0; i < loads; i++) {
    const uint4* place = data + ((first + i * all) & (count - 1));
    add(sum, from == From::l1 ? __ldg(place) : __ldcg(place));
  }
  sums[thread] = sum_of(sum);
}

constexpr int shared_chunks = 2048;  // 32 KiB

// `count` is shared_chunks, which the compiler must not know: it would load each chunk once.
__global__ void __launch_bounds__(threads) read_shared(uint32_t count, int loads, uint32_t* sums) {
  __shared__ uint4 smem[shared_chunks];
  for (uint32_t i = threadIdx.x; i < count; i += threads) smem[i] = chunk(i);
  __syncthreads();  // the chunks are there
  uint4 sum = make_uint4(0, 0, 0, 0);
#pragma unroll 8
  for (int i = 0; i < loads; i++) add(sum, smem[(threadIdx.x + i * threads) & (count - 1)]);
  sums[blockIdx.x * threads + threadIdx.x] = sum_of(sum);
}

constexpr int chains = 4;  // of multiply-adds in each thread, which do not wait for one another

// Both factor and step are 1, which the compiler must not know: it would multiply no more.
__global__ void __launch_bounds__(threads) multiply_add(int steps, float factor, float step, float* sums) {
  float x[chains];
  for (int c = 0; c < chains; c++) x[c] = float(c);
#pragma unroll 16
  for (int i = 0; i < steps; i++)
    for (int c = 0; c < chains; c++) x[c] = fmaf(x[c], factor, step);
  sums[blockIdx.x * threads + threadIdx.x] = x[0] + x[1] + x[2] + x[3];
}

// `reads(sums)` launches something whose threads leave the sums of 16-byte loads, `loads` of them each.
Run reading(unsigned blocks, int loads, uint32_t expected, const std::function<void(uint32_t* sums)>& reads) {
  const Array<uint32_t> sums(size_t(blocks) * threads);
  Run run;
  run.seconds = seconds([&] { reads(sums.data()); });
  run.counters["bytes/s"] = 16.0 * loads * blocks * threads / run.seconds;
  uint32_t sum = 0;
  for (const uint32_t one : sums.host()) sum += one;
  if (sum != expected) run.wrong = "the sum is " + std::to_string(sum) + ", expected " + std::to_string(expected);
  return run;
}

// How many loads a thread makes, and how often all chunks are read by that, if `round` are read at once.
struct Loads {
  int of_a_thread;
  uint32_t times;
};
Loads whole_times(uint64_t count, uint64_t round) {
  const uint64_t least = count / std::gcd(count, round);  // then every chunk has been read equally often
  const uint64_t loads = std::max<uint64_t>(1, bytes_of_a_block / (16 * threads) / least) * least;
  return {int(loads), uint32_t(loads * round / count)};
}

// `bytes` are a power of two.
template <From from>
Experiment of_global_memory(const char* level, size_t bytes) {
  return {std::string("bandwidth/") + level, [=] {
            const uint32_t count = uint32_t(bytes / 16), blocks = all_blocks();
            const auto data = std::make_shared<Array<uint4>>(count);
            launch(fill, {blocks, threads}, data->data(), int64_t(count));
            const Loads loads = whole_times(count, from == From::l1 ? threads : uint64_t(threads) * blocks);
            const uint32_t expected = loads.times * (from == From::l1 ? blocks : 1) * sum_of_chunks(count);
            return [=] {
              return reading(blocks, loads.of_a_thread, expected, [&](uint32_t* sums) {
                launch(read<from>, {blocks, threads}, data->data(), count, loads.of_a_thread, sums);
              });
            };
          }};
}

Experiment of_shared_memory() {
  return {"bandwidth/shared", [] {
            return [] {
              const unsigned blocks = all_blocks();
              const Loads loads = whole_times(shared_chunks, threads);
              return reading(blocks, loads.of_a_thread, loads.times * blocks * sum_of_chunks(shared_chunks),
                             [&](uint32_t* sums) {
                               launch(read_shared, {blocks, threads}, uint32_t(shared_chunks), loads.of_a_thread, sums);
                             });
            };
          }};
}

Experiment of_registers() {
  return {"bandwidth/registers", [] {
            return [] {
              const int steps = on_gpu ? 32768 : 100;
              const unsigned blocks = all_blocks();
              const Array<float> sums(size_t(blocks) * threads);
              Run run;
              run.seconds = seconds([&] { launch(multiply_add, {blocks, threads}, steps, 1.0f, 1.0f, sums.data()); });
              const double multiply_adds = double(chains) * steps * blocks * threads;
              run.counters = {{"FLOP/s", 2 * multiply_adds / run.seconds},
                              {"bytes/s", 3 * sizeof(float) * multiply_adds / run.seconds}};
              for (const float sum : sums.host())
                if (sum != float(chains * steps + 6)) run.wrong = "a sum is " + std::to_string(sum);
              return run;
            };
          }};
}

}  // namespace

std::vector<Experiment> bandwidth() {
  constexpr size_t KiB = 1024, MiB = 1024 * KiB;
  return {of_registers(), of_shared_memory(), of_global_memory<From::l1>("L1", 32 * KiB),
          of_global_memory<From::beyond_l1>("L2", on_gpu ? 16 * MiB : 64 * KiB),
          of_global_memory<From::beyond_l1>("DRAM", on_gpu ? 1024 * MiB : 256 * KiB)};
}

}  // namespace machine
