#include "device/fp8.h"
#include "device/launch.h"
#include "device/proxy_fence.h"
#include "device/wgmma.h"
#include "device_array.h"
#include "fp8_kernels.h"

namespace device_tests {
namespace {

template <class T>
__global__ void pack4_kernel(const float* from, uint32_t* to, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = ::pack4<T>(from[4 * i], from[4 * i + 1], from[4 * i + 2], from[4 * i + 3]);
}

// Where byte k of a row is, among rows of so many bytes.
template <int row_bytes>
__device__ int place(int row, int k) {
  return row * row_bytes + (k / 16 ^ row * row_bytes / 128 % (row_bytes / 16)) * 16 + k % 16;
}

constexpr int a_bytes = 64 * 128, most_columns = 256;

template <class T, int N, int row_bytes, bool a_in_registers>
__global__ void __launch_bounds__(128)
    fp8_product_kernel(const uint8_t* a, const uint8_t* b, float* d, bool accumulate, int step) {
  uint8_t* a_smem = dynamic_shared<uint8_t, 1024>();
  uint8_t* b_smem = a_smem + a_bytes;
  for (int i = threadIdx.x; i < a_bytes + most_columns * 128; i += 128) a_smem[i] = 0x7f;  // NaN
  __syncthreads();
  for (int i = threadIdx.x; i < 64 * 32; i += 128) a_smem[place<row_bytes>(i / 32, 32 * step + i % 32)] = a[i];
  for (int i = threadIdx.x; i < N * 32; i += 128) b_smem[place<row_bytes>(i / 32, 32 * step + i % 32)] = b[i];
  fence_proxy_async();
  __syncthreads();

  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, first_row = threadIdx.x / 32 * 16;
  const auto of_d = [&](int n, int r) { return (first_row + g + r / 2 * 8) * N + 8 * n + 2 * t + r % 2; };
  float d_reg[N / 8][4];
  for (int n = 0; n < N / 8; n++)
    for (int r = 0; r < 4; r++) d_reg[n][r] = d[of_d(n, r)];
  uint32_t a_reg[4];
  for (int r = 0; r < 4; r++) {
    const uint8_t* four = a + (first_row + g + r % 2 * 8) * 32 + 4 * t + r / 2 * 16;
    a_reg[r] = four[0] | four[1] << 8 | four[2] << 16 | uint32_t(four[3]) << 24;
  }
  const auto descriptor = [&](const uint8_t* tile) {
    return wgmma_advance(wgmma_descriptor(tile, 0, 8 * row_bytes, row_bytes), 32 * step);
  };
  const uint64_t b_descriptor = descriptor(b_smem);
  wgmma_fence(d_reg);
  if constexpr (a_in_registers)
    wgmma<T>(d_reg, a_reg, b_descriptor, accumulate);
  else
    wgmma<T>(d_reg, descriptor(a_smem), b_descriptor, accumulate);
  wgmma_commit();
  wgmma_wait<0>(d_reg);
  for (int n = 0; n < N / 8; n++)
    for (int r = 0; r < 4; r++) d[of_d(n, r)] = d_reg[n][r];
}

struct Runner {
  Fp8ProductCase of;
  void (*run)(const uint8_t*, const uint8_t*, float*, bool, int);
};

template <class T, int N, int row_bytes, bool a_in_registers>
void run_product(const uint8_t* a, const uint8_t* b, float* d, bool accumulate, int step) {
  launch(fp8_product_kernel<T, N, row_bytes, a_in_registers>, {1, 128, a_bytes + most_columns * 128}, a, b, d,
         accumulate, step);
}

template <class T, int N, int row_bytes>
void add(std::vector<Runner>& runners) {
  const Fp8 type = std::is_same_v<T, __nv_fp8_e4m3> ? Fp8::e4m3 : Fp8::e5m2;
  runners.push_back({{type, N, row_bytes, false}, run_product<T, N, row_bytes, false>});
  runners.push_back({{type, N, row_bytes, true}, run_product<T, N, row_bytes, true>});
}

const std::vector<Runner>& runners() {
  static const std::vector<Runner> all = [] {
    std::vector<Runner> runners;
    add<__nv_fp8_e4m3, 64, 128>(runners);
    add<__nv_fp8_e4m3, 128, 128>(runners);
    add<__nv_fp8_e4m3, 128, 64>(runners);
    add<__nv_fp8_e4m3, 192, 64>(runners);
    add<__nv_fp8_e5m2, 80, 128>(runners);
    return runners;
  }();
  return all;
}

}  // namespace

Bytes packed_fp8(Fp8 type, const Floats& numbers) {
  const int count = int(numbers.size() / 4);
  const DeviceArray<float> from(numbers);
  const DeviceArray<uint8_t> to(numbers.size());
  launch(type == Fp8::e4m3 ? pack4_kernel<__nv_fp8_e4m3> : pack4_kernel<__nv_fp8_e5m2>,
         {unsigned(ceil_div(count, 128)), 128}, from.as(), to.as<uint32_t>(), count);
  return to.get();
}

const std::vector<Fp8ProductCase>& fp8_product_cases() {
  static const std::vector<Fp8ProductCase> cases = [] {
    std::vector<Fp8ProductCase> cases;
    for (const Runner& runner : runners()) cases.push_back(runner.of);
    return cases;
  }();
  return cases;
}

Floats product(const Fp8ProductCase& of, const Bytes& a, const Bytes& b, const Floats& d, bool accumulate, int step) {
  const DeviceArray<uint8_t> a_device(a), b_device(b);
  const DeviceArray<float> d_device(d);
  for (const Runner& runner : runners())
    if (runner.of.type == of.type && runner.of.columns == of.columns && runner.of.row_bytes == of.row_bytes &&
        runner.of.a_in_registers == of.a_in_registers)
      runner.run(a_device.as(), b_device.as(), d_device.as(), accumulate, step);
  return d_device.get();
}

}  // namespace device_tests
