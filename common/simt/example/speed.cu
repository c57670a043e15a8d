// How fast the engine is: five kernels that every course has, each with its result checked and the least processor time
// of several launches.
//
//   SIMT_THREADS=1 ./workbook run --no-races common/simt/example/speed.cu -- all 21
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

__global__ void transpose(float* out, const float* in, int n) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}

__global__ void reduce(float* sums, const float* in, int n) {
  extern __shared__ float part[];
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 32; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x < 32) {
    sum = part[threadIdx.x] + part[threadIdx.x + 32];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
  }
}

constexpr int tile_size = 16;
__global__ void sgemm(float* c, const float* a, const float* b, int n) {
  __shared__ float as[tile_size][tile_size], bs[tile_size][tile_size];
  const int row = blockIdx.y * tile_size + threadIdx.y, column = blockIdx.x * tile_size + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; k += tile_size) {
    as[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
    bs[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
    __syncthreads();
    for (int i = 0; i < tile_size; ++i) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

__global__ void nbody(float4* acceleration, const float4* bodies, int n) {
  __shared__ float4 tile[128];
  const float4 self = bodies[blockIdx.x * blockDim.x + threadIdx.x];
  float4 sum = make_float4(0, 0, 0, 0);
  for (int first = 0; first < n; first += blockDim.x) {
    tile[threadIdx.x] = bodies[first + threadIdx.x];
    __syncthreads();
    for (int i = 0; i < blockDim.x; ++i) {
      const float4 other = tile[i];
      const float x = other.x - self.x, y = other.y - self.y, z = other.z - self.z;
      const float r = rsqrtf(x * x + y * y + z * z + 1e-3f);
      const float s = other.w * r * r * r;
      sum.x += s * x, sum.y += s * y, sum.z += s * z;
    }
    __syncthreads();
  }
  acceleration[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void histogram(unsigned* bins, const unsigned char* data, int n) {
  __shared__ unsigned own[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) own[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&own[data[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], own[i]);
}

// Seconds of processor time, to the nanosecond (getrusage estimates by ticks).
double used() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

template <class T>
T* device(const std::vector<T>& values) {
  T* p;
  cudaMalloc(&p, values.size() * sizeof(T));
  cudaMemcpy(p, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
  return p;
}

template <class T>
std::vector<T> host(const T* p, size_t n) {
  std::vector<T> values(n);
  cudaMemcpy(values.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost);
  return values;
}

bool all_right = true;

template <class Launch>
void report(const char* name, int times, bool right, Launch launch) {
  all_right &= right;
  double least = 1e9;
  for (int i = 0; i < times; ++i) {
    const double begin = used();
    launch();
    cudaDeviceSynchronize();
    least = std::min(least, used() - begin);
  }
  std::printf("%-10s %8.2f ms%s\n", name, least * 1e3, right ? "" : "  WRONG");
}

int main(int argc, char** argv) {
  const char* only = argc > 1 ? argv[1] : "all";
  const int times = argc > 2 ? std::atoi(argv[2]) : 7;
  const auto wanted = [&](const char* name) { return !std::strcmp(only, "all") || !std::strcmp(only, name); };
  std::vector<float> values(1 << 20);
  for (size_t i = 0; i < values.size(); ++i) values[i] = (i * 7919 % 1001) / 1001.f - 0.5f;
  if (wanted("transpose")) {
    const int n = 1024;
    float *in = device(values), *out = device(values);
    const auto launch = [&] { transpose<<<dim3(n / 32, n / 32), dim3(32, 8)>>>(out, in, n); };
    launch();
    const auto got = host(out, n * n);
    bool right = true;
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) right &= got[i * n + j] == values[j * n + i];
    report("transpose", times, right, launch);
  }
  if (wanted("reduce")) {
    const int n = 1 << 20, blocks = 512;
    float *in = device(values), *sums = device(std::vector<float>(blocks));
    const auto launch = [&] { reduce<<<blocks, 256, 256 * sizeof(float)>>>(sums, in, n); };
    launch();
    double sum = 0, expected = 0;
    for (float x : host(sums, blocks)) sum += x;
    for (float x : values) expected += x;
    report("reduce", times, std::abs(sum - expected) < 1e-2, launch);
  }
  if (wanted("sgemm")) {
    const int n = 256;
    float *a = device(values), *b = device(values), *c = device(values);
    const auto launch = [&] { sgemm<<<dim3(n / tile_size, n / tile_size), dim3(tile_size, tile_size)>>>(c, a, b, n); };
    launch();
    const auto got = host(c, n * n);
    bool right = true;
    for (int i = 0; i < n * n; i += 97) {
      double sum = 0;
      for (int k = 0; k < n; ++k) sum += double(values[i / n * n + k]) * values[k * n + i % n];
      right &= std::abs(sum - got[i]) < 1e-3;
    }
    report("sgemm", times, right, launch);
  }
  if (wanted("nbody")) {
    const int n = 2048;
    std::vector<float4> bodies(n);
    for (int i = 0; i < n; ++i) bodies[i] = {values[4 * i], values[4 * i + 1], values[4 * i + 2], 1};
    float4 *in = device(bodies), *out = device(bodies);
    const auto launch = [&] { nbody<<<n / 128, 128>>>(out, in, n); };
    launch();
    const auto got = host(out, n);
    bool right = true;
    for (int i = 0; i < n; i += 127) {
      double sum = 0;
      for (int j = 0; j < n; ++j) {
        const double x = bodies[j].x - bodies[i].x, y = bodies[j].y - bodies[i].y, z = bodies[j].z - bodies[i].z;
        sum += x / std::pow(x * x + y * y + z * z + 1e-3, 1.5);
      }
      right &= std::abs(sum - got[i].x) < 1e-2 * std::abs(sum) + 1;
    }
    report("nbody", times, right, launch);
  }
  if (wanted("histogram")) {
    const int n = 1 << 20;
    std::vector<unsigned char> data(n);
    for (int i = 0; i < n; ++i) data[i] = i * 7919ll % 251;
    unsigned char* in = device(data);
    unsigned* bins = device(std::vector<unsigned>(256));
    const auto launch = [&] {
      cudaMemset(bins, 0, 1024);
      histogram<<<256, 256>>>(bins, in, n);
    };
    launch();
    std::vector<unsigned> expected(256);
    for (unsigned char d : data) ++expected[d];
    report("histogram", times, host(bins, 256) == expected, launch);
  }
  return all_right ? 0 : 1;
}
