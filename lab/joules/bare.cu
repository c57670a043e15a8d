// The products of attention alone, on tiles that lie in shared memory: no copies, no exponentials, no waits but for the
// products. The shapes are chapter 10's; the backward's five products come one kind after the other.
#include <cstdint>

#include "device/bulk_copy.h"
#include "device/launch.h"
#include "device/proxy_fence.h"
#include "device/warpgroup_backward.h"

namespace {

using namespace warpgroup_backward;
using T = __nv_bfloat16;

__device__ void fill(T* to, int size, const T* from) {
  for (int n = threadIdx.x; n < size; n += blockDim.x) to[n] = from[n];
}
template <int n>
__device__ void fill_p(uint32_t (&p)[1][n][4], const T* from) {  // numbers above zero, as P
  const uint32_t* words = reinterpret_cast<const uint32_t*>(from);
#pragma unroll
  for (int step = 0; step < n; step++)
    for (int r = 0; r < 4; r++) p[0][step][r] = words[(step * 4 + r) * 512 + threadIdx.x] & 0x7fff7fff;
}

template <int D>
__global__ void __launch_bounds__(384, 1) forward(const T* data, int iterations, float* out) {
  constexpr int Br = 192, Bc = 64 * 128 / D, stages = 4;
  T* q = dynamic_shared<T, 1024>();
  T *k = q + Br * D, *v = k + stages * Bc * D;
  fill(q, Br * D + 2 * stages * Bc * D, data);
  uint32_t p_reg[1][Bc / 16][4];
  fill_p(p_reg, data);
  fence_proxy_async();
  __syncthreads();
  const int consumer = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
  float s_reg[1][Bc / 8][4], o_reg[1][D / 8][4] = {}, alive = 0;
#pragma unroll 1
  for (int i = 0; i < iterations; i++) {
    const int place = i % stages;
    wgmma_fence();
    start_product<Br, D, Bc>(s_reg, q + 64 * consumer * page_row, k + place * Bc * D);
    start_sum<D, Bc>(o_reg, p_reg, v + place * Bc * D);
    wgmma_wait<1>(s_reg);
    alive += s_reg[0][0][0];
    wgmma_wait<0>(o_reg);
  }
  for (int n = 0; n < D / 8; n++) alive += o_reg[0][n][0] + o_reg[0][n][3];
  if (alive == 1.2345f) out[0] = alive;
}

template <int D>
__global__ void __launch_bounds__(256, 1) backward(const T* data, int iterations, float* out) {
  constexpr int Br = 64 * 128 / D, Bc = 128;
  T* k = dynamic_shared<T, 1024>();
  T *v = k + Bc * D, *q = v + Bc * D, *d_o = q + 2 * Br * D, *ds = d_o + 2 * Br * D;
  fill(k, 2 * Bc * D + 4 * Br * D + 2 * Br * Bc, data);
  uint32_t p_half[1][Br / 16][4];
  fill_p(p_half, data);
  fence_proxy_async();
  __syncthreads();
  const int consumer = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
  const T *k_rows = k + consumer * 64 * page_row, *v_rows = v + consumer * 64 * page_row;
  const T* k_columns = k + (D == 128 ? consumer * Bc * page_row : 0);
  const int first_query = D == 128 ? 0 : consumer * 64;
  float alive = 0;
#pragma unroll 1
  for (int i = 0; i < iterations; i++) {  // S and dP
    float s_reg[1][Br / 8][4], dp_reg[1][Br / 8][4];
    wgmma_fence();
    start_product<Bc, D, Br>(s_reg, k_rows, q + i % 2 * Br * D);
    start_product<Bc, D, Br>(dp_reg, v_rows, d_o + i % 2 * Br * D);
    wgmma_wait<0>(s_reg, dp_reg);
    alive += s_reg[0][0][0] + dp_reg[0][0][0];
  }
  float dv_reg[1][D / 8][4] = {}, dk_reg[1][D / 8][4] = {};
#pragma unroll 1
  for (int i = 0; i < iterations; i++) {
    wgmma_fence();
    start_sum<D, Br>(dv_reg, p_half, d_o + i % 2 * Br * D);
    start_sum<D, Br>(dk_reg, p_half, q + i % 2 * Br * D);
    wgmma_wait<0>(dv_reg, dk_reg);
  }
  for (int n = 0; n < D / 8; n++) alive += dv_reg[0][n][0] + dk_reg[0][n][0];
#pragma unroll 1
  for (int i = 0; i < iterations; i++) {
    float dq_reg[1][8][4];
    wgmma_fence();
    start_dq<Bc, Br>(dq_reg, k_columns, ds + i % 2 * Br * Bc + first_query * page_row);
    wgmma_wait<0>(dq_reg);
    alive += dq_reg[0][0][0];
  }
  if (alive == 1.2345f) out[0] = alive;
}

}  // namespace

extern "C" void bare(bool back, int D, int iterations, int blocks, const void* data, float* out, void* stream) {
  const int bytes = back ? (D == 128 ? 2 * (2 * 128 * 128 + 4 * 64 * 128 + 2 * 64 * 128) : 2 * (2 * 128 * 64 + 4 * 128 * 64 + 2 * 128 * 128))
                         : 2 * (192 * D + 8 * 64 * 128);
  const auto kernel = back ? (D == 128 ? backward<128> : backward<64>) : (D == 128 ? forward<128> : forward<64>);
  launch(kernel, {unsigned(blocks), unsigned(back ? 256 : 384), size_t(bytes), static_cast<cudaStream_t>(stream)},
         static_cast<const T*>(data), iterations, out);
}
