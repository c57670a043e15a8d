// Kernels as other people write them: does the engine do what CUDA says with the names that no chapter uses?
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <cuda/std/array>

#include "tests/simt/support.h"

// Of a program for its host code. nvcc has a function of this name and type for kernels alone.
static unsigned umin(unsigned a, unsigned b) { return a + b; }

namespace wild {

namespace cg = cooperative_groups;

std::string at(int line) { return "simt/wild_test.cc:" + std::to_string(line); }

// ---- groups

__global__ void groups(int* out, float* sums) {
  const cg::thread_block block = cg::this_thread_block();
  const auto warp = cg::tiled_partition<32>(block);
  const auto tile = cg::tiled_partition<8>(warp);
  const int i = block.thread_rank();
  out[i] = tile.thread_rank() + 100 * tile.meta_group_rank() + 10000 * warp.meta_group_rank();
  out[96 + i] = cg::reduce(tile, i, cg::plus<int>());
  sums[i] = cg::reduce(warp, float(i), cg::plus<float>());
  out[192 + i] = cg::inclusive_scan(tile, i, cg::plus<int>());
  out[288 + i] = cg::exclusive_scan(tile, 1);
  out[384 + i] = tile.shfl_xor(i, 1) + tile.shfl(i, 0) + tile.shfl_down(i, 1);
  if (i % 3 == 0) {
    const cg::coalesced_group some = cg::coalesced_threads();
    out[480 + i] = some.size() * 100 + some.thread_rank();
    out[576 + i] = some.shfl(i, some.size() - 1);
  } else {
    out[480 + i] = __popc(__activemask());
    out[576 + i] = __popc(cg::coalesced_threads().ballot(i % 3 == 1));
  }
  cg::sync(block);
}

TEST(Wild, groups) {
  Device<int> out(672);
  Device<float> sums(96);
  launch(groups, {1, 96}, out, sums);
  const auto v = out.values();
  const auto f = sums.values();
  for (int i = 0; i < 96; ++i) {
    const int first = i / 8 * 8, lane = i % 32, warp_first = i / 32 * 32;
    EXPECT_EQ(v[i], i % 8 + 100 * (lane / 8) + 10000 * (i / 32));
    EXPECT_EQ(v[96 + i], 8 * first + 28);
    EXPECT_EQ(f[i], 32 * warp_first + 496);
    EXPECT_EQ(v[192 + i], (i - first + 1) * (first + i) / 2);
    EXPECT_EQ(v[288 + i], i % 8);
    EXPECT_EQ(v[384 + i], (i ^ 1) + first + (i % 8 == 7 ? i : i + 1));
    int before = 0, all = 0, last = 0, ones = 0;
    for (int j = warp_first; j < warp_first + 32; ++j) {
      if (j % 3 == 0) ++all, before += j < i, last = j;
      if (j % 3 == 1) ++ones;
    }
    EXPECT_EQ(v[480 + i], i % 3 == 0 ? all * 100 + before : 32 - all) << i;
    EXPECT_EQ(v[576 + i], i % 3 == 0 ? last : ones) << i;
  }
}

// Each block reads what its neighbour wrote, by way of the grid's barrier; shared memory outlives it.
constexpr int grid_line = __LINE__ + 8;
__global__ void around(int* x, int rounds, int last_of_block) {
  const cg::grid_group grid = cg::this_grid();
  __shared__ int kept;
  if (threadIdx.x == 0) kept = 0;
  for (int round = 0; round < rounds; ++round) {
    if (blockIdx.x != 3 || round != last_of_block) grid.sync();
    const int seen = x[(blockIdx.x + 1) % gridDim.x * blockDim.x + threadIdx.x];
    grid.sync();
    x[blockIdx.x * blockDim.x + threadIdx.x] = seen + 1;
    if (threadIdx.x == 0) kept += 1;
    if (blockIdx.x == 3 && round == last_of_block) return;
  }
  grid.sync();
  x[blockIdx.x * blockDim.x + threadIdx.x] += 1000 * kept;
}

cudaError_t launch_around(dim3 grid, int* x, int rounds, int last) {
  void* arguments[] = {&x, &rounds, &last};
  return cudaLaunchCooperativeKernel(around, grid, dim3(64), arguments);
}

TEST(Wild, all_blocks_of_a_grid_wait_for_one_another) {
  constexpr int blocks = 8;
  std::vector<int> start(blocks * 64);
  for (int i = 0; i < blocks * 64; ++i) start[i] = i / 64 * 10;
  for (const simt::Order order : {simt::Order::forward, simt::Order::reverse, simt::Order::shuffled}) {
    const WithSchedule with({.order = order, .threads = 2});
    Device<int> x(start);
    ASSERT_EQ(launch_around(blocks, x, 3, -1), cudaSuccess);
    const auto v = x.values();
    for (int i = 0; i < blocks * 64; ++i) ASSERT_EQ(v[i], (i / 64 + 3) % blocks * 10 + 3 + 3000) << i;
  }
}

TEST(Wild, a_grid_whose_blocks_do_not_all_come) {
  Device<int> x(std::vector<int>(8 * 64));
  EXPECT_EQ(launch_around(8, x, 3, 1), cudaSuccess);  // as with CUDA, the next call says it
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchTimeout);
  const std::string message = cudaGetErrorString(cudaGetLastError());
  expect_contains(message, "of 8 blocks wait in grid.sync at " + at(grid_line));
  cudaDeviceReset();
  EXPECT_EQ(launch_around(132 * 32 + 1, x, 3, -1), cudaErrorCooperativeLaunchTooLarge);
  EXPECT_EQ(cudaGetLastError(), cudaErrorCooperativeLaunchTooLarge);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const Failure failure = failure_of(around, LaunchConfig{1, 64}, x, 1, -1);
  expect_contains(failure.message, "grid.sync in a launch that is not cooperative");
}

// ---- warps, atomics, numbers

__global__ void warps(unsigned* out, int* all) {
  const unsigned lane = threadIdx.x;
  out[lane] = __match_any_sync(0xffffffff, lane / 5);
  out[32 + lane] = __match_all_sync(0xffffffff, 7, all + 0);
  out[64 + lane] = __reduce_add_sync(0xffffffff, lane) + __reduce_max_sync(0xffffffff, lane) +
                   __reduce_xor_sync(0xffffffff, 1u << lane) + unsigned(__reduce_min_sync(0xffffffff, -int(lane)));
  const float4 wide = __shfl_sync(0xffffffff, lane, 3) == 3 ? make_float4(1, 2, 3, 4) : float4();
  out[96 + lane] = unsigned(wide.w);
}

TEST(Wild, warps) {
  Device<unsigned> out(128);
  Device<int> all(1);
  launch(warps, {1, 32}, out, all);
  const auto v = out.values();
  for (unsigned i = 0; i < 32; ++i) {
    unsigned same = 0;
    for (unsigned j = 0; j < 32; ++j) same |= unsigned(j / 5 == i / 5) << j;
    EXPECT_EQ(v[i], same);
    EXPECT_EQ(v[32 + i], 0xffffffff);
    EXPECT_EQ(v[64 + i], 496u + 31 + 0xffffffff - 31);
    EXPECT_EQ(v[96 + i], 4u);
  }
  EXPECT_EQ(all.values()[0], 1);
}

__global__ void updates(double* d, float* f, unsigned long long* l, unsigned* u, int* i, __half2* h, __nv_bfloat16* b) {
  atomicAdd(d, 0.5);
  atomicAdd_system(f, 1.0f);
  atomicMax(l, 40ull + threadIdx.x);
  atomicAdd_block(u, 2u);
  atomicInc(u + 1, 9u);
  atomicDec(u + 2, 9u);
  atomicOr(u + 3, 1u << threadIdx.x);
  atomicAnd(u + 4, ~(1u << threadIdx.x));
  atomicXor(u + 5, 1u << threadIdx.x);
  atomicSub(i, 3);
  atomicMin(i + 1, -int(threadIdx.x));
  atomicAdd(h, __float2half2_rn(1.0f));
  atomicAdd(b, __float2bfloat16(1.0f));
}

TEST(Wild, atomics_of_all_types) {
  Device<double> d(std::vector<double>{0});
  Device<float> f(std::vector<float>{0});
  Device<unsigned long long> l(std::vector<unsigned long long>{50});
  Device<unsigned> u(std::vector<unsigned>{0, 0, 0, 0, ~0u, 0});
  Device<int> i(std::vector<int>{0, 0});
  Device<__half2> h(std::vector<__half2>{__half2{0.0f, 5.0f}});
  Device<__nv_bfloat16> b(std::vector<__nv_bfloat16>{__nv_bfloat16(0.0f)});
  launch(updates, {2, 32}, d, f, l, u, i, h, b);
  EXPECT_EQ(d.values()[0], 32);
  EXPECT_EQ(f.values()[0], 64);
  EXPECT_EQ(l.values()[0], 71u);
  EXPECT_EQ(u.values(), (std::vector<unsigned>{128, 4, 6, ~0u, 0, 0}));
  EXPECT_EQ(i.values(), (std::vector<int>{-192, -31}));
  EXPECT_EQ(float(h.values()[0].x), 64);
  EXPECT_EQ(float(h.values()[0].y), 69);
  EXPECT_EQ(float(b.values()[0]), 64);
}

TEST(Wild, numbers) {
  EXPECT_EQ(__brev(1u), 0x80000000u);
  EXPECT_EQ(__byte_perm(0x33221100, 0x77665544, 0x7531), 0x77553311u);
  EXPECT_EQ(__byte_perm(0x80, 0, 0x0008), 0x808080ffu);
  EXPECT_EQ(__umulhi(0x80000000u, 4), 2u);
  EXPECT_EQ(__mulhi(-1, 1), -1);
  EXPECT_EQ(__funnelshift_l(0x80000000u, 1, 1), 3u);
  EXPECT_EQ(__funnelshift_r(2, 1, 1), 0x80000001u);
  EXPECT_EQ(__dp4a(int(0xff020304), 0x01010101, 10), 18);
  EXPECT_EQ(__float2int_rn(2.5f), 2);
  EXPECT_EQ(__float2int_ru(2.1f), 3);
  EXPECT_EQ(__float2int_rz(-2.9f), -2);
  EXPECT_EQ(__float2int_rn(3e9f), 0x7fffffff);
  EXPECT_EQ(__float2uint_rn(-1.0f), 0u);
  EXPECT_GT(__fadd_ru(1, 1e-10f), 1.0f);
  EXPECT_EQ(__fadd_rd(1, 1e-10f), 1.0f);
  EXPECT_EQ(__saturatef(-3), 0);
  const __half2 a = __floats2half2_rn(1, 2), b = __floats2half2_rn(3, 5);
  const float2 c = __half22float2(__hfma2(a, b, b) / a - __hmax2(a, b));
  EXPECT_EQ(c.x, 3);
  EXPECT_EQ(c.y, 2.5f);
  EXPECT_TRUE(__hblt2(a, b));
  EXPECT_EQ(float(hsqrt(__float2half(9))), 3);
  EXPECT_EQ(float(__low2bfloat16(__hadd2(__float2bfloat162_rn(2), __float2bfloat162_rn(3)))), 5);
}

// ---- inline PTX, as the front end hands it over

#define PTX(...) simt::ptx(__FILE__, __LINE__, __VA_ARGS__)
using simt::ptx_in;
using simt::ptx_inout;
using simt::ptx_out;

__global__ void calculates(unsigned* out, float* f) {
  unsigned lane, r;
  float x = 3, y = 0;
  PTX("mov.u32 %0, %%laneid;", ptx_out<'r'>(lane));
  PTX("{\n .reg .pred p;\n .reg .b32 t<2>;\n setp.lt.u32 p, %1, 16;  // the first half\n"
      " add.u32 t0, %1, 1; mov.b32 t1, 7;\n @p mul.lo.u32 %0, t0, t1;\n @!p mov.u32 %0, 0xff;\n}",
      ptx_out<'r'>(r), ptx_in<'r'>(lane));
  out[lane] = r;
  PTX("fma.rn.f32 %0, %1, %1, %0; ex2.approx.ftz.f32 %1, %2;", ptx_inout<'f'>(y), ptx_inout<'f'>(x), ptx_in<'f'>(2.0f));
  f[lane] = x + y;
  PTX("cvt.rn.f16x2.f32 %0, %1, %2;", ptx_out<'r'>(r), ptx_in<'f'>(2.0f), ptx_in<'f'>(1.0f));
  out[32 + lane] = r;
  PTX("{ .reg .pred p; mov.u32 %[to], 0; again: add.u32 %[to], %[to], %[by]; setp.lt.u32 p, %[to], 10; @p bra again; }",
      ptx_out<'r'>(r, "to"), ptx_in<'r'>(3, "by"));
  out[64 + lane] = r;
  PTX("lop3.b32 %0, %1, %2, %3, 0x96; prmt.b32 %0, %0, 0, 0x0123;", ptx_out<'r'>(r), ptx_in<'r'>(0xf0),
      ptx_in<'r'>(0xcc), ptx_in<'r'>(0xaa));
  out[96 + lane] = r;
  PTX("shfl.sync.bfly.b32 %0, %1, 1, 31, -1;", ptx_out<'r'>(r), ptx_in<'r'>(lane));
  out[128 + lane] = r;
  PTX("redux.sync.add.u32 %0, %1, 0xffffffff;", ptx_out<'r'>(r), ptx_in<'r'>(lane));
  out[160 + lane] = r;
  unsigned short bytes;
  PTX("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;", ptx_out<'h'>(bytes), ptx_in<'f'>(1e9f), ptx_in<'f'>(-1.55f));
  PTX("cvt.rn.f16x2.e4m3x2 %0, %1;", ptx_out<'r'>(r), ptx_in<'h'>(bytes));
  out[192 + lane] = r;
  PTX("cvt.rn.satfinite.relu.e5m2x2.f32 %0, %1, %2;", ptx_out<'h'>(bytes), ptx_in<'f'>(3.f), ptx_in<'f'>(-1.f));
  out[224 + lane] = bytes;
}

TEST(Wild, ptx_that_calculates) {
  Device<unsigned> out(256);
  Device<float> f(32);
  launch(calculates, {1, 32}, out, f);
  const auto v = out.values();
  for (unsigned i = 0; i < 32; ++i) {
    EXPECT_EQ(v[i], i < 16 ? 7 * (i + 1) : 0xff);
    EXPECT_EQ(f.values()[i], 4 + 9);
    EXPECT_EQ(v[32 + i], 0x40003c00u);
    EXPECT_EQ(v[64 + i], 12u);
    EXPECT_EQ(v[96 + i], 0x96000000u);
    EXPECT_EQ(v[128 + i], i ^ 1);
    EXPECT_EQ(v[160 + i], 496u);
    EXPECT_EQ(v[192 + i], 0x5f00be00u);  // 448 and -1.5
    EXPECT_EQ(v[224 + i], 0x4200u);      // 3 and 0
  }
}

// Q K^T of a warp as tutorials have it: cp.async, ldmatrix, mma; and what is stored goes through shared memory again.
__global__ void product(const __half* a, const __half* b, float* c, unsigned* copy, float* sum) {
  __shared__ __align__(128) __half tile[2][16 * 16];
  const int lane = threadIdx.x;
  unsigned place;
  PTX("{ .reg .u64 p; cvta.to.shared.u64 p, %1; cvt.u32.u64 %0, p; }", ptx_out<'r'>(place),
      ptx_in<'l'>(&tile[0][lane * 8]));
  PTX("cp.async.cg.shared.global.L2::128B [%0], [%1], %2;", ptx_in<'r'>(place), ptx_in<'l'>(a + lane * 8),
      ptx_in<'n'>(16));
  PTX("cp.async.cg.shared.global [%0+512], [%1], 16, %2;", ptx_in<'r'>(place), ptx_in<'l'>(b + lane * 8),
      ptx_in<'r'>(lane < 16 ? 16 : 0));
  PTX("cp.async.commit_group;");
  PTX("cp.async.wait_group %0;", ptx_in<'n'>(0));
  PTX("bar.sync 0;");
  const unsigned row = simt::shared_address(&tile[0][lane % 16 * 16 + lane / 16 * 8]);
  const unsigned column = simt::shared_address(&tile[1][lane % 8 * 16 + lane / 8 % 2 * 8]);
  unsigned x[4], y[2];
  float z[4] = {};
  PTX("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];", ptx_out<'r'>(x[0]), ptx_out<'r'>(x[1]),
      ptx_out<'r'>(x[2]), ptx_out<'r'>(x[3]), ptx_in<'r'>(row));
  PTX("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];", ptx_out<'r'>(y[0]), ptx_out<'r'>(y[1]),
      ptx_in<'r'>(column));
  PTX("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};",
      ptx_inout<'f'>(z[0]), ptx_inout<'f'>(z[1]), ptx_inout<'f'>(z[2]), ptx_inout<'f'>(z[3]), ptx_in<'r'>(x[0]),
      ptx_in<'r'>(x[1]), ptx_in<'r'>(x[2]), ptx_in<'r'>(x[3]), ptx_in<'r'>(y[0]), ptx_in<'r'>(y[1]));
  for (int r = 0; r < 4; ++r) c[(lane / 4 + r / 2 * 8) * 8 + lane % 4 * 2 + r % 2] = z[r];
  PTX("bar.warp.sync 0xffffffff;");
  PTX("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};", ptx_in<'r'>(row), ptx_in<'r'>(x[0]),
      ptx_in<'r'>(x[1]), ptx_in<'r'>(x[2]), ptx_in<'r'>(x[3]));
  PTX("barrier.cta.sync.aligned 1, 32;");
  PTX("{ .reg .b32 w<4>; ld.shared.v4.b32 {w0, w1, w2, w3}, [%0]; st.global.cs.v4.u32 [%1], {w0, w1, w2, w3}; }",
      ptx_in<'r'>(place), ptx_in<'l'>(copy + 4 * lane));
  PTX("red.global.add.f32 [%0], %1;", ptx_in<'l'>(sum), ptx_in<'f'>(z[0]));
}

// A warp transposes two matrices of 8 x 8 elements.
__global__ void transpose(const unsigned* from, unsigned* to) {
  __shared__ __align__(128) unsigned tile[2][8][4];
  const int lane = threadIdx.x;
  PTX("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1,%2};",
      ptx_in<'r'>(simt::shared_address(tile[lane / 8 % 2][lane % 8])), ptx_in<'r'>(from[lane]),
      ptx_in<'r'>(from[32 + lane]));
  __syncwarp();
  for (int m = 0; m < 2; ++m) to[m * 32 + lane] = tile[m][lane / 4][lane % 4];
}

TEST(Wild, ptx_of_a_transpose) {
  std::vector<unsigned> from(64);  // two matrices of 8 rows of 4 words
  for (unsigned i = 0; i < 64; ++i) from[i] = (2 * i) | (2 * i + 1) << 16;
  Device<unsigned> in(from), out(64);
  launch(transpose, {1, 32}, in, out);
  const auto to = out.values();
  for (unsigned i = 0; i < 128; ++i) {  // matrix, row, column
    const unsigned at = i / 64 * 64 + i % 8 * 8 + i / 8 % 8;
    ASSERT_EQ(to[i / 2] >> 16 * (i % 2) & 0xffff, at) << i;
  }
}

TEST(Wild, ptx_of_a_warp_s_product) {
  std::vector<__half> a(256), b(256, __half(-1.0f));
  for (int i = 0; i < 256; ++i) a[i] = float(i % 7 - 3);
  for (int i = 0; i < 128; ++i) b[i] = float(i % 5 - 2);
  Device<__half> A(a), B(b);
  Device<float> c(128), sum(std::vector<float>{0});
  Device<unsigned> copy(128);
  launch(product, {1, 32}, A, B, c, copy, sum);
  const auto v = c.values();
  float expected_sum = 0;
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) {
      float expected = 0;
      for (int k = 0; k < 16; ++k) expected += float(a[i * 16 + k]) * float(b[j * 16 + k]);
      ASSERT_EQ(v[i * 8 + j], expected) << i << ' ' << j;
      if (i < 8 && j % 2 == 0) expected_sum += expected;
    }
  EXPECT_EQ(sum.values()[0], expected_sum);
  EXPECT_EQ(std::memcmp(copy.values().data(), a.data(), 512), 0);
}

constexpr int unknown_line = __LINE__ + 2;
__global__ void unknown(bool comes) {
  if (comes) PTX("bfind.shiftamt.u32 %0, %0;", ptx_in<'r'>(1));
}

TEST(Wild, ptx_that_the_engine_does_not_know) {
  EXPECT_EQ(failure_of(unknown, LaunchConfig{1, 1}, false).code, cudaSuccess);
  const Failure failure = failure_of(unknown, LaunchConfig{1, 1}, true);
  EXPECT_EQ(failure.code, cudaErrorNotSupported);
  expect_contains(
      failure.message,
      "at " + at(unknown_line) + ": the engine does not know this PTX instruction: \"bfind.shiftamt.u32 %0, %0;\"");
}

// ---- the host

__device__ int counter[2];
__constant__ float factors[4];
const simt::DeviceVariable counter_variable{counter, simt::DeviceVariable::device};
const simt::DeviceVariable factors_variable{factors, simt::DeviceVariable::constant};

__global__ void scale(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  x[i] *= factors[i % 4];
  atomicAdd(counter, 1);
}

TEST(Wild, device_variables) {
  const float host[4] = {1, 2, 3, 4};
  const int zeros[2] = {0, 5};
  EXPECT_EQ(cudaMemcpyToSymbol(factors, host, sizeof host), cudaSuccess);
  EXPECT_EQ(cudaMemcpyToSymbol(counter, zeros, sizeof zeros), cudaSuccess);
  Device<float> x(std::vector<float>(100, 1));
  launch(scale, {1, 128}, x, 100);
  EXPECT_EQ(x.values()[7], 4);
  int counted[2];
  EXPECT_EQ(cudaMemcpyFromSymbol(counted, counter, sizeof counted), cudaSuccess);
  EXPECT_EQ(counted[0], 100);
  EXPECT_EQ(counted[1], 5);
  EXPECT_EQ(cudaMemcpyFromSymbol(counted, counter, 4, 4), cudaSuccess);
  EXPECT_EQ(counted[0], 5);
  int* address;
  EXPECT_EQ(cudaGetSymbolAddress(&address, counter), cudaSuccess);
  EXPECT_EQ(cudaMemset(address, 0, 8), cudaSuccess);
  EXPECT_EQ(counter[1], 0);
  EXPECT_EQ(cudaMemcpyToSymbol(counter, zeros, 12), cudaErrorInvalidValue);
  expect_contains(cudaGetErrorString(cudaErrorInvalidValue), "12 bytes from byte 0 on: the variable has 8");
  EXPECT_EQ(cudaMemcpyToSymbol(host, zeros, 4), cudaErrorInvalidSymbol);
  cudaGetLastError();
}

constexpr int assert_line = __LINE__ + 1;
__global__ void asserts(int n) { assert(int(threadIdx.x) < n); }

// Launches as <<<>>> does.
template <class... P, class... A>
void start(void (*kernel)(P...), dim3 grid, dim3 block, A... arguments) {
  simt::launch_by_syntax({grid, block}, reinterpret_cast<const void*>(kernel), [=] { kernel(arguments...); });
}

TEST(Wild, managed_memory_begins_as_zeros) {
  float* x = nullptr;
  ASSERT_EQ(cudaMallocManaged(&x, 400), cudaSuccess);
  EXPECT_EQ(std::count(x, x + 100, 0.0f), 100);
  EXPECT_EQ(cudaFree(x), cudaSuccess);
}

TEST(Wild, a_mistake_in_a_kernel_is_every_later_call_s_error) {
  float* x = nullptr;
  ASSERT_EQ(cudaMallocManaged(&x, 400), cudaSuccess);
  start(scale, 1, 2048, x, 100);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  start(asserts, 1, 32, 31);
  EXPECT_EQ(cudaGetLastError(), cudaErrorAssert);
  EXPECT_EQ(cudaGetLastError(), cudaErrorAssert);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorAssert);
  EXPECT_EQ(cudaMemset(x, 0, 400), cudaErrorAssert);
  expect_contains(cudaGetErrorString(cudaErrorAssert),
                  "thread (31, 0, 0), at " + at(assert_line) + ": assertion failed: int(threadIdx.x) < n");
  EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
  x[3] = 7;  // the host may touch it
  EXPECT_EQ(cudaFree(x), cudaSuccess);
}

__global__ void spins(int* flag, bool ptx) {
  if (threadIdx.x == 33) *flag = 1;
  int seen = 0;
  while (threadIdx.x == 0 && seen == 0) {
    if (ptx)
      simt::ptx(__FILE__, __LINE__, "ld.acquire.gpu.global.s32 %0, [%1];", simt::ptx_out<'r'>(seen),
                simt::ptx_in<'l'>(flag));
    else
      seen = *static_cast<volatile int*>(flag);
  }
}
constexpr int spin_line = __LINE__ - 8;

TEST(Wild, a_loop_that_waits_for_another_thread_is_named) {
  int* flag = nullptr;
  ASSERT_EQ(cudaMalloc(&flag, 4), cudaSuccess);
  const WithSchedule impatient({.patience = 0.3});
  for (const bool ptx : {false, true}) {
    ASSERT_EQ(cudaMemset(flag, 0, 4), cudaSuccess);
    start(spins, 1, 64, flag, ptx);
    EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchTimeout);
    const std::string message = cudaGetErrorString(cudaErrorLaunchTimeout);
    bool in_the_loop = false;  // wherever it was when its time was up
    for (int line = spin_line; line < spin_line + 6; ++line)
      in_the_loop |= message.find("thread (0, 0, 0), at " + at(line) + ":") != std::string::npos;
    EXPECT_TRUE(in_the_loop) << message;
    expect_contains(message, "If its loop waits for what another thread writes, it never ends");
    EXPECT_EQ(cudaDeviceReset(), cudaSuccess);
  }
  simt::set_schedule({.order = simt::Order::reverse, .patience = 0.3});  // who writes runs first
  ASSERT_EQ(cudaMemset(flag, 0, 4), cudaSuccess);
  start(spins, 1, 64, flag, false);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaFree(flag), cudaSuccess);
}

__global__ void wide_tile(int* sums) {
  __shared__ cooperative_groups::block_tile_memory<128> scratch;
  const auto tile = cooperative_groups::tiled_partition<64>(cooperative_groups::this_thread_block(scratch));
  const int sum = cooperative_groups::reduce(tile, int(threadIdx.x), cooperative_groups::plus<int>());
  if (tile.thread_rank() == 0) sums[tile.meta_group_rank()] = sum;
}

TEST(Wild, tiles_of_several_warps) {
  int* sums = nullptr;
  ASSERT_EQ(cudaMallocManaged(&sums, 2 * sizeof(int)), cudaSuccess);
  start(wide_tile, 1, 128, sums);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(sums[0], 63 * 32);
  EXPECT_EQ(sums[1], 64 * 64 + 63 * 32);
  EXPECT_EQ(cudaFree(sums), cudaSuccess);
}

TEST(Wild, host_functions) {
  int blocks = 0, block = 0, grid = 0;
  EXPECT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scale, 256, 0), cudaSuccess);
  EXPECT_EQ(blocks, 8);
  EXPECT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scale, 256, 100 * 1024), cudaSuccess);
  EXPECT_EQ(blocks, 2);
  EXPECT_EQ(cudaOccupancyMaxPotentialBlockSize(&grid, &block, scale), cudaSuccess);
  EXPECT_EQ(block, 1024);
  const auto bytes_of = [](int threads) { return std::size_t(threads) * 1024; };
  EXPECT_EQ(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &block, scale, bytes_of), cudaSuccess);
  EXPECT_EQ(block, 224);  // 225 KB, which one of 256 would not get
  const cudaStream_t stream = cudaStreamDefault;
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  cudaFuncAttributes attributes;
  EXPECT_EQ(cudaFuncGetAttributes(&attributes, around), cudaSuccess);
  EXPECT_EQ(attributes.sharedSizeBytes, 4u);
  float* pinned;
  EXPECT_EQ(cudaMallocHost(&pinned, 64), cudaSuccess);
  cudaPointerAttributes pointer;
  EXPECT_EQ(cudaPointerGetAttributes(&pointer, pinned + 1), cudaSuccess);
  EXPECT_EQ(pointer.type, cudaMemoryTypeHost);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaSetDevice(1), cudaErrorInvalidDevice);
  int attribute = -1;
  EXPECT_EQ(cudaDeviceGetAttribute(&attribute, cudaDevAttrPageableMemoryAccess, 0), cudaSuccess);
  EXPECT_EQ(attribute, 0);  // kernels may not read the memory of the host
  EXPECT_EQ(cudaDeviceGetAttribute(&attribute, cudaDevAttrGpuOverlap, 0), cudaSuccess);
  EXPECT_EQ(attribute, 1);  // though a copy ends before its call returns: else programs with streams give up
  EXPECT_EQ(cudaDeviceGetAttribute(&attribute, static_cast<cudaDeviceAttr>(9999), 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemPrefetchAsync(nullptr, 0, {cudaMemLocationTypeHost, 0}, 0), cudaSuccess);
  EXPECT_EQ(cudaMemPrefetchAsync(nullptr, 0, 0), cudaSuccess);
  EXPECT_EQ(umin(3, 4), 7u);  // this file's
  EXPECT_STREQ(cudaGetErrorName(cudaErrorAssert), "cudaErrorAssert");
  cudaGetLastError();
}

TEST(Wild, what_a_capture_forbids) {
  cudaStream_t stream, other;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
  float *memory, *more = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 128), cudaSuccess);
  cudaEvent_t event;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  const auto graph_after = [](cudaStream_t captured, cudaStreamCaptureMode mode, auto call, cudaError_t expected) {
    cudaGraph_t graph = nullptr;
    cudaStreamCaptureStatus status;
    EXPECT_EQ(cudaStreamBeginCapture(captured, mode), cudaSuccess);
    EXPECT_EQ(call(), expected);
    EXPECT_EQ(cudaStreamIsCapturing(captured, &status), cudaSuccess);
    EXPECT_EQ(status, expected == cudaSuccess ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusInvalidated);
    EXPECT_EQ(cudaStreamEndCapture(captured, &graph),
              expected == cudaSuccess ? cudaSuccess : cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph != nullptr, expected == cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  };
  constexpr auto global = cudaStreamCaptureModeGlobal, relaxed = cudaStreamCaptureModeRelaxed;
  const auto allocate = [&] { return cudaMalloc(&more, 4); };
  graph_after(stream, global, allocate, cudaErrorStreamCaptureUnsupported);
  graph_after(stream, relaxed, allocate, cudaSuccess);
  graph_after(
      stream, relaxed, [] { return cudaDeviceSynchronize(); }, cudaErrorStreamCaptureUnsupported);
  graph_after(
      stream, global, [&] { return cudaStreamSynchronize(stream); }, cudaErrorStreamCaptureUnsupported);
  graph_after(
      stream, global, [&] { return cudaStreamSynchronize(other); }, cudaSuccess);
  const auto clear = [&] { return cudaMemset(memory, 0, 128); };
  graph_after(stream, relaxed, clear, cudaErrorStreamCaptureImplicit);
  graph_after(other, relaxed, clear, cudaSuccess);  // for that stream the default stream does not wait
  graph_after(other, global, clear, cudaErrorStreamCaptureUnsupported);
  const auto wait = [&] { return cudaEventRecord(event, stream), cudaEventSynchronize(event); };
  graph_after(stream, global, wait, cudaErrorCapturedEvent);
  graph_after(
      stream, global, [&] { return cudaMemsetAsync(memory, 0, 128, stream); }, cudaSuccess);
  EXPECT_STREQ(cudaGetErrorName(cudaErrorStreamCaptureImplicit), "cudaErrorStreamCaptureImplicit");

  cudaGraph_t graph = nullptr;  // of two streams, of which one is not joined
  EXPECT_EQ(cudaStreamBeginCapture(stream, global), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(other, event), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(memory, 0, 128, other), cudaSuccess);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaFree(more), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(other), cudaSuccess);
  cudaGetLastError();
}

}  // namespace wild
