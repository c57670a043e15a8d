#include "device/bulk_copy.h"
#include "device/cluster.h"
#include "device/cuda.h"
#include "device/elect.h"
#include "device/launch.h"
#include "device/mbarrier.h"
#include "device/numeric.h"
#include "device/proxy_fence.h"
#include "device/setmaxnreg.h"
#include "device/swizzle.h"
#include "device/wgmma.h"
#include "device_array.h"
#include "hopper_kernels.h"

namespace device_tests {
namespace {

struct Coordinates {
  int c[5];
};

// Thread 0 makes an mbarrier for one arrival, and the others learn of it.
__device__ void make(Mbarrier* mbarrier) {
  if (threadIdx.x == 0) {
    mbarrier_init(mbarrier, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
}

template <int rank>
__global__ void load_box_kernel(const __grid_constant__ TensorMap map, Coordinates at, int bytes, uint16_t* out) {
  uint16_t* smem = dynamic_shared<uint16_t, 1024>();
  __shared__ Mbarrier full;
  make(&full);
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(&full, bytes);
    if constexpr (rank == 2) tensor_load(smem, map, &full, at.c[0], at.c[1]);
    if constexpr (rank == 3) tensor_load(smem, map, &full, at.c[0], at.c[1], at.c[2]);
    if constexpr (rank == 4) tensor_load(smem, map, &full, at.c[0], at.c[1], at.c[2], at.c[3]);
    if constexpr (rank == 5) tensor_load(smem, map, &full, at.c[0], at.c[1], at.c[2], at.c[3], at.c[4]);
  }
  mbarrier_wait(&full, 0);
  for (int i = threadIdx.x; i < bytes / 2; i += 128) out[i] = smem[i];
}

template <int rank>
__global__ void store_box_kernel(const __grid_constant__ TensorMap map, Coordinates at, int bytes,
                                 const uint16_t* from) {
  uint16_t* smem = dynamic_shared<uint16_t, 1024>();
  for (int i = threadIdx.x; i < bytes / 2; i += 128) smem[i] = from[i];
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    if constexpr (rank == 2) tensor_store(map, smem, at.c[0], at.c[1]);
    if constexpr (rank == 3) tensor_store(map, smem, at.c[0], at.c[1], at.c[2]);
    if constexpr (rank == 4) tensor_store(map, smem, at.c[0], at.c[1], at.c[2], at.c[3]);
    if constexpr (rank == 5) tensor_store(map, smem, at.c[0], at.c[1], at.c[2], at.c[3], at.c[4]);
    bulk_commit();
    bulk_wait<0>();
  }
}

__global__ void bulk_copies_kernel(const float* from, float* to, float* sum, int count) {
  float* smem = dynamic_shared<float, 1024>();
  __shared__ Mbarrier full;
  make(&full);
  const int bytes = count * int(sizeof(float));
  if (threadIdx.x == 0) {
    bulk_load(smem, from, bytes, &full);
    mbarrier_arrive_expect_tx(&full, bytes);  // after the copy: its bytes may have come
    mbarrier_wait(&full, 0);
    bulk_store(to, smem, bytes);
    bulk_add(sum, smem, bytes);
    bulk_commit();
    bulk_add(sum, smem, bytes);
    bulk_commit();
    bulk_wait_read<1>();
    bulk_wait<0>();
  }
}

__global__ void ring_kernel(const uint32_t* from, uint32_t* to, int rounds) {
  uint32_t* smem = dynamic_shared<uint32_t, 1024>();  // [2][32]
  __shared__ Mbarrier full[2], empty[2];
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < 2; stage++) {
      mbarrier_init(&full[stage], 1);
      mbarrier_init(&empty[stage], 32);
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int round = 0; round < rounds; round++) {
      const int stage = round % 2;
      mbarrier_wait(&empty[stage], (round / 2 + 1) % 2);
      // The phase that was waited for is over; the one in which this buffer will be read is not.
      const bool said =
          mbarrier_test(&empty[stage], (round / 2 + 1) % 2) && !mbarrier_test(&empty[stage], round / 2 % 2);
      mbarrier_arrive_expect_tx(&full[stage], 128);
      bulk_load(smem + 32 * stage, from + (said ? 32 * round : 0), 128, &full[stage]);
    }
  } else if (threadIdx.x >= 32) {
    const int lane = threadIdx.x % 32;
    for (int round = 0; round < rounds; round++) {
      const int stage = round % 2;
      if (!mbarrier_test(&full[stage], round / 2 % 2)) mbarrier_wait(&full[stage], round / 2 % 2);
      to[32 * round + lane] = smem[32 * stage + lane];
      mbarrier_arrive(&empty[stage]);
    }
  }
}

__global__ void cluster_kernel(const uint32_t* from, uint32_t* to, int rounds) {
  uint32_t* places = dynamic_shared<uint32_t, 1024>();  // [2][32], and then as many that were read last
  Mbarrier* full = reinterpret_cast<Mbarrier*>(places + 4 * 32);
  Mbarrier* empty = full + 2;
  const uint32_t rank = cluster_rank(), lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int place = 0; place < 2; place++) {
      mbarrier_init(full + place, 1);
      mbarrier_init(empty + place, 2);  // a warp of each block
    }
    fence_mbarrier_init();
  }
  cluster_sync();
  if (threadIdx.x == 0) {
    for (int round = 0; round < rounds; round++) {
      const int place = round % 2;
      mbarrier_wait_cluster(empty + place, round / 2 % 2 ^ 1);
      mbarrier_arrive_expect_tx(full + place, 32 * sizeof(uint32_t));
      bulk_load_multicast(places + 32 * place + 16 * rank, from + 32 * round + 16 * rank, 16 * sizeof(uint32_t),
                          full + place, 3);
    }
  } else if (threadIdx.x >= 32) {
    for (int round = 0; round < rounds; round++) {
      const int place = round % 2;
      mbarrier_wait(full + place, round / 2 % 2);
      const uint32_t word = places[32 * place + lane];
      __syncwarp();
      if (lane < 2)  // either will do: the warp has only read
        place == 0 ? mbarrier_arrive_cluster(empty + place, lane) : mbarrier_arrive_cluster_read(empty + place, lane);
      to[(rank * rounds + round) * 32 + lane] = word;
      places[64 + 32 * place + lane] = word + rank;
    }
  }
  cluster_sync();
  if (threadIdx.x >= 32)
    for (int round = max(0, rounds - 2); round < rounds; round++)
      to[((2 + rank) * rounds + round) * 32 + lane] = map_shared(places, rank ^ 1)[64 + 32 * (round % 2) + lane];
  cluster_sync();
}

__global__ void elected_kernel(int* out) {
  out[threadIdx.x] = elect_one();
  out[32 + threadIdx.x] = elect_one();
}

__global__ void __launch_bounds__(384, 1) other_registers_kernel(int* sums) {
  int* smem = dynamic_shared<int>();
  if (threadIdx.x < 128)
    setmaxnreg_dec<24>();
  else
    setmaxnreg_inc<240>();
  smem[threadIdx.x] = int(threadIdx.x);
  __syncthreads();
  if (threadIdx.x % 128 == 0) {
    int sum = 0;
    for (int i = 0; i < 128; i++) sum += smem[threadIdx.x + i];
    sums[threadIdx.x / 128] = sum;
  }
}

// Writes element (row, k) of A, or (column, k) of B, into a tile whose rows run along k, or along the other index.
template <bool mn, class T>
__device__ void put(T* tile, int row, int k, T x) {
  const int r = mn ? k : row, c = mn ? row : k;
  constexpr int rows_of_page = mn ? 64 : 256;  // K-major tiles have one page of 64 here
  tile[swizzled_tile::position<rows_of_page>(r, c / 8) + c % 8] = x;
}

constexpr int a_bytes = 256 * 128, b_bytes = 256 * 128;  // room for either form

template <class T, int N, From a_from, From b_from>
__global__ void __launch_bounds__(128) product_kernel(const T* a, const T* b, float* d, bool accumulate, int step) {
  T* a_smem = dynamic_shared<T, 1024>();
  T* b_smem = a_smem + a_bytes / sizeof(T);
  constexpr bool a_mn = a_from == From::mn_major, b_mn = b_from == From::mn_major;
  const T nan = ::from_float<T>(__int_as_float(0x7fc00000));
  for (int i = threadIdx.x; i < int((a_bytes + b_bytes) / sizeof(T)); i += 128) a_smem[i] = nan;
  __syncthreads();
  for (int i = threadIdx.x; i < 64 * 16; i += 128) put<a_mn>(a_smem, i / 16, 16 * step + i % 16, a[i]);
  for (int i = threadIdx.x; i < N * 16; i += 128)
    if constexpr (b_from == From::plain)
      b_smem[((2 * step + i / N / 8) * N + i % N) * 8 + i / N % 8] = b[i];
    else
      put<b_mn>(b_smem, i % N, 16 * step + i / N, b[i]);
  fence_proxy_async();
  __syncthreads();

  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, first_row = threadIdx.x / 32 * 16;
  const auto place = [&](int n, int r) { return (first_row + g + r / 2 * 8) * N + 8 * n + 2 * t + r % 2; };
  float d_reg[N / 8][4];
  for (int n = 0; n < N / 8; n++)
    for (int r = 0; r < 4; r++) d_reg[n][r] = d[place(n, r)];
  uint32_t a_reg[4];
  for (int r = 0; r < 4; r++) {
    const T* pair = a + (first_row + g + r % 2 * 8) * 16 + 2 * t + r / 2 * 8;
    a_reg[r] = ::pack2<T>(::to_float(pair[0]), ::to_float(pair[1]));
  }
  const uint64_t b_descriptor =
      b_from == From::plain ? wgmma_advance(wgmma_descriptor(b_smem, 16 * N, 8 * 16, 16), 2 * 16 * N * step)
                            : wgmma_advance(wgmma_descriptor(b_smem, b_mn ? 64 * 128 : 0), (b_mn ? 2048 : 32) * step);
  const uint64_t a_descriptor = wgmma_advance(wgmma_descriptor(a_smem), (a_mn ? 2048 : 32) * step);
  wgmma_fence(d_reg);
  if constexpr (a_from == From::registers)
    wgmma<T, b_mn ? Major::mn : Major::k>(d_reg, a_reg, b_descriptor, accumulate);
  else
    wgmma<T, a_mn ? Major::mn : Major::k, b_mn ? Major::mn : Major::k>(d_reg, a_descriptor, b_descriptor, accumulate);
  wgmma_commit();
  wgmma_wait<0>(d_reg);
  for (int n = 0; n < N / 8; n++)
    for (int r = 0; r < 4; r++) d[place(n, r)] = d_reg[n][r];
}

__global__ void __launch_bounds__(128)
    two_products_kernel(const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map,
                        const __grid_constant__ TensorMap v_map, float* first, float* second) {
  constexpr int D = 128, tile_bytes = 64 * D * 2, page_bytes = 64 * 128;
  char* q_smem = dynamic_shared<char, 1024>();
  char* k_smem = q_smem + tile_bytes;
  char* v_smem = k_smem + tile_bytes;
  Mbarrier* full = reinterpret_cast<Mbarrier*>(v_smem + tile_bytes);  // [2]
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; i++) mbarrier_init(&full[i], 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect_tx(&full[0], 2 * tile_bytes);
    tensor_load(q_smem, q_map, &full[0], 0, 0, 0);
    tensor_load(k_smem, k_map, &full[0], 0, 0, 0);
    mbarrier_arrive_expect_tx(&full[1], tile_bytes);
    tensor_load(v_smem, v_map, &full[1], 0, 0, 0);
  }
  __syncthreads();
  float s[8][4], o[D / 8][4];
  mbarrier_wait(&full[0], 0);
  wgmma_fence(s);
#pragma unroll
  for (int step = 0; step < D / 16; step++) {
    const int bytes = step / 4 * page_bytes + step % 4 * 32;
    wgmma<__half>(s, wgmma_advance(wgmma_descriptor(q_smem), bytes), wgmma_advance(wgmma_descriptor(k_smem), bytes),
                  step > 0);
  }
  wgmma_commit();
  wgmma_wait<0>(s);
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, first_row = threadIdx.x / 32 * 16;
  for (int n = 0; n < 8; n++)
    for (int r = 0; r < 4; r++) first[(first_row + g + r / 2 * 8) * 64 + 8 * n + 2 * t + r % 2] = s[n][r];
  uint32_t p[4][4];
  for (int step = 0; step < 4; step++)
    for (int r = 0; r < 4; r++) {
      const float* pair = s[2 * step + r / 2] + r % 2 * 2;
      p[step][r] = ::pack2<__half>(pair[0], pair[1]);
    }
  mbarrier_wait(&full[1], 0);
  wgmma_fence(o);
#pragma unroll
  for (int step = 0; step < 4; step++)
    wgmma<__half, Major::mn>(o, p[step], wgmma_advance(wgmma_descriptor(v_smem, page_bytes), 2048 * step), step > 0);
  wgmma_commit();
  wgmma_wait<0>(o);
  for (int n = 0; n < D / 8; n++)
    for (int r = 0; r < 4; r++) second[(first_row + g + r / 2 * 8) * D + 8 * n + 2 * t + r % 2] = o[n][r];
}

// The tensor map of a contiguous tensor of up to five dimensions.
TensorMap map_of(const __half* data, const Boxes& boxes) {
  int64_t sizes[5], strides[5];
  int64_t stride = 2;
  for (size_t i = 0; i < boxes.sizes.size(); i++) {
    sizes[i] = boxes.sizes[i];
    stride *= boxes.sizes[i];
    strides[i] = stride;
  }
  return make_tensor_map(TensorElement::fp16, int(boxes.sizes.size()), data, sizes, strides, boxes.box.data());
}

int box_bytes(const Boxes& boxes) {
  int bytes = 2;
  for (const int size : boxes.box) bytes *= size;
  return bytes;
}

Coordinates coordinates(const std::vector<int>& at) {
  Coordinates result = {};
  for (size_t i = 0; i < at.size(); i++) result.c[i] = at[i];
  return result;
}

template <class T, int N, From a_from, From b_from>
void run_product(const uint16_t* a, const uint16_t* b, float* d, bool accumulate, int step) {
  launch(product_kernel<T, N, a_from, b_from>, {1, 128, a_bytes + b_bytes}, reinterpret_cast<const T*>(a),
         reinterpret_cast<const T*>(b), d, accumulate, step);
}

struct Runner {
  ProductCase of;
  void (*run)(const uint16_t*, const uint16_t*, float*, bool, int);
};

template <int N, From a_from, From b_from>
void add(std::vector<Runner>& runners, bool both_types) {
  runners.push_back({{DType::fp16, N, a_from, b_from}, run_product<__half, N, a_from, b_from>});
  if (both_types) runners.push_back({{DType::bf16, N, a_from, b_from}, run_product<__nv_bfloat16, N, a_from, b_from>});
}

template <int N>
void add_all_forms(std::vector<Runner>& runners) {
  add<N, From::k_major, From::k_major>(runners, true);
  add<N, From::k_major, From::mn_major>(runners, true);
  add<N, From::mn_major, From::k_major>(runners, true);
  add<N, From::mn_major, From::mn_major>(runners, true);
  add<N, From::registers, From::k_major>(runners, true);
  add<N, From::registers, From::mn_major>(runners, true);
  add<N, From::k_major, From::plain>(runners, true);
  add<N, From::registers, From::plain>(runners, true);
}

template <int N>
void add_two_forms(std::vector<Runner>& runners) {
  add<N, From::k_major, From::k_major>(runners, false);
  add<N, From::registers, From::mn_major>(runners, false);
}

const std::vector<Runner>& runners() {
  static const std::vector<Runner> all = [] {
    std::vector<Runner> runners;
    add_all_forms<80>(runners);
    add_all_forms<128>(runners);
    add_two_forms<64>(runners);
    add_two_forms<96>(runners);
    add_two_forms<112>(runners);
    add_two_forms<144>(runners);
    add_two_forms<160>(runners);
    add_two_forms<176>(runners);
    add_two_forms<192>(runners);
    return runners;
  }();
  return all;
}

}  // namespace

bool hopper_present() {
  int device = 0, major = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess && major == 9;
}

Halves load_box(const Boxes& boxes, const Halves& tensor, const std::vector<int>& at) {
  const DeviceArray<uint16_t> data(tensor), out(box_bytes(boxes) / 2);
  const auto kernel = at.size() == 2   ? load_box_kernel<2>
                      : at.size() == 3 ? load_box_kernel<3>
                      : at.size() == 4 ? load_box_kernel<4>
                                       : load_box_kernel<5>;
  launch(kernel, {1, 128, size_t(box_bytes(boxes))}, map_of(data.as<__half>(), boxes), coordinates(at),
         box_bytes(boxes), out.as());
  return out.get();
}

Halves store_box(const Boxes& boxes, const Halves& tensor, const std::vector<int>& at, const Halves& shared) {
  const DeviceArray<uint16_t> data(tensor), from(shared);
  const auto kernel = at.size() == 2   ? store_box_kernel<2>
                      : at.size() == 3 ? store_box_kernel<3>
                      : at.size() == 4 ? store_box_kernel<4>
                                       : store_box_kernel<5>;
  launch(kernel, {1, 128, size_t(box_bytes(boxes))}, map_of(data.as<__half>(), boxes), coordinates(at),
         box_bytes(boxes), from.as());
  return data.get();
}

Floats bulk_copies(const Floats& from, const Floats& to) {
  const DeviceArray<float> from_device(from), copy(from.size()), sum(to);
  launch(bulk_copies_kernel, {1, 32, from.size() * sizeof(float)}, from_device.as(), copy.as(), sum.as(),
         int(from.size()));
  if (copy.get() != from) return {};
  return sum.get();
}

Words through_clusters(const Words& from) {
  const DeviceArray<uint32_t> from_device(from), to(4 * from.size());
  launch_clusters(cluster_kernel, 2, {2, 64, 1024}, from_device.as(), to.as(), int(from.size() / 32));
  return to.get();
}

Words through_a_ring(const Words& from) {
  const DeviceArray<uint32_t> from_device(from), to(from.size());
  launch(ring_kernel, {1, 64, 256}, from_device.as(), to.as(), int(from.size() / 32));
  return to.get();
}

std::vector<int> elected() {
  const DeviceArray<int> out(64);
  launch(elected_kernel, {1, 32}, out.as());
  return out.get();
}

std::vector<int> with_other_registers() {
  const DeviceArray<int> sums(3);
  launch(other_registers_kernel, {1, 384, 384 * sizeof(int)}, sums.as());
  return sums.get();
}

const std::vector<ProductCase>& product_cases() {
  static const std::vector<ProductCase> cases = [] {
    std::vector<ProductCase> cases;
    for (const Runner& runner : runners()) cases.push_back(runner.of);
    return cases;
  }();
  return cases;
}

Floats product(const ProductCase& of, const Halves& a, const Halves& b, const Floats& d, bool accumulate, int step) {
  const DeviceArray<uint16_t> a_device(a), b_device(b);
  const DeviceArray<float> d_device(d);
  for (const Runner& runner : runners())
    if (runner.of.dtype == of.dtype && runner.of.columns == of.columns && runner.of.a == of.a && runner.of.b == of.b)
      runner.run(a_device.as(), b_device.as(), d_device.as(), accumulate, step);
  return d_device.get();
}

TwoProducts two_products(const Halves& q, const Halves& k, const Halves& v) {
  const DeviceArray<uint16_t> q_device(q), k_device(k), v_device(v);
  const DeviceArray<float> first(64 * 64), second(64 * 128);
  const auto map = [](const DeviceArray<uint16_t>& matrix) {  // [64, 128], as two pages
    return tensor_map(matrix.as<__half>(), {64, 64, 2}, {256, 128}, {64, 64, 2});
  };
  launch(two_products_kernel, {1, 128, 3 * 64 * 128 * 2 + 2 * sizeof(Mbarrier)}, map(q_device), map(k_device),
         map(v_device), first.as(), second.as());
  return {first.get(), second.get()};
}

}  // namespace device_tests
