#include <numeric>

#include "attention/schedule.h"
#include "device/atomic_add.h"
#include "device/cooperative_launch.h"
#include "device/cp_async.h"
#include "device/cuda.h"
#include "device/dependent_launch.h"
#include "device/launch.h"
#include "device/ldmatrix.h"
#include "device/math.h"
#include "device/mma.h"
#include "device/mma_half.h"
#include "device/named_barrier.h"
#include "device/numeric.h"
#include "device/rope_angles.h"
#include "device/semaphore.h"
#include "device/stmatrix.h"
#include "device_array.h"
#include "kernels.h"

namespace device_tests {
namespace {

// 32 elements a block, one a thread. All sizes here are multiples of 32.
dim3 warps_for(size_t size) { return dim3(unsigned(size / 32)); }

__device__ size_t thread_index() { return size_t(blockIdx.x) * blockDim.x + threadIdx.x; }

template <class T>
__global__ void mma_kernel(const uint32_t* a, const uint32_t* b, float* c) {
  const size_t thread = thread_index();
  float c_reg[4];
  for (int r = 0; r < 4; r++) c_reg[r] = c[thread * 4 + r];
  mma_m16n8k16<T>(c_reg, a + thread * 4, b + thread * 2);
  for (int r = 0; r < 4; r++) c[thread * 4 + r] = c_reg[r];
}

__global__ void mma_half_kernel(const uint32_t* a, const uint32_t* b, float* c) {
  const size_t thread = thread_index();
  float* c_lane = c + thread * 4;
  uint32_t c_reg[2] = {::pack2<__half>(c_lane[0], c_lane[1]), ::pack2<__half>(c_lane[2], c_lane[3])};
  mma_m16n8k16_half(c_reg, a + thread * 4, b + thread * 2);
  for (int r = 0; r < 2; r++) {
    const float2 pair = ::unpack2<__half>(c_reg[r]);
    c_lane[2 * r] = pair.x;
    c_lane[2 * r + 1] = pair.y;
  }
}

template <Form FORM>
__global__ void ldmatrix_kernel(const uint16_t* tile, const int* rows, uint32_t* out) {
  constexpr int registers = FORM == Form::x4 || FORM == Form::x4_trans ? 4 : 2;
  const int lane = threadIdx.x;
  uint16_t* tile_smem = dynamic_shared<uint16_t>();  // [32, 8]
  for (int n = lane; n < 32 * 8; n += 32) tile_smem[n] = tile[n];
  __syncwarp();
  const uint16_t* row = tile_smem + rows[lane] * 8;
  uint32_t r[registers];
  if constexpr (FORM == Form::x4) ldmatrix_x4(r, row);
  if constexpr (FORM == Form::x4_trans) ldmatrix_x4_trans(r, row);
  if constexpr (FORM == Form::x2) ldmatrix_x2(r, row);
  if constexpr (FORM == Form::x2_trans) ldmatrix_x2_trans(r, row);
  for (int n = 0; n < registers; n++) out[lane * registers + n] = r[n];
}

template <bool TRANS>
__global__ void stmatrix_kernel(const uint32_t* fragments, const int* rows, uint16_t* tile) {
  const int lane = threadIdx.x;
  uint16_t* tile_smem = dynamic_shared<uint16_t>();  // [32, 8]
  for (int n = lane; n < 32 * 8; n += 32) tile_smem[n] = 0xffff;
  __syncwarp();
  (TRANS ? stmatrix_x4_trans : stmatrix_x4)(tile_smem + rows[lane] * 8, fragments + lane * 4);
  __syncwarp();
  for (int n = lane; n < 32 * 8; n += 32) tile[n] = tile_smem[n];
}

template <class T>
__global__ void multiply_kernel(const uint16_t* a, const uint16_t* b, bool b_is_transposed, float* c) {
  const int lane = threadIdx.x;
  uint16_t* a_smem = dynamic_shared<uint16_t>();  // [16, 16]
  uint16_t* b_smem = a_smem + 16 * 16;            // [8, 16] or [16, 8]
  for (int n = lane; n < 16 * 16; n += 32) a_smem[n] = a[n];
  for (int n = lane; n < 16 * 8; n += 32) b_smem[n] = b[n];
  __syncwarp();

  uint32_t a_reg[4], b_reg[2];
  ldmatrix_x4(a_reg, a_smem + lane % 16 * 16 + lane / 16 * 8);
  if (b_is_transposed)
    ldmatrix_x2(b_reg, b_smem + lane % 8 * 16 + lane / 8 % 2 * 8);
  else
    ldmatrix_x2_trans(b_reg, b_smem + lane % 16 * 8);

  float c_reg[4] = {};
  mma_m16n8k16<T>(c_reg, a_reg, b_reg);
  const int g = lane >> 2, t = lane & 3;
  c[g * 8 + 2 * t] = c_reg[0];
  c[g * 8 + 2 * t + 1] = c_reg[1];
  c[(g + 8) * 8 + 2 * t] = c_reg[2];
  c[(g + 8) * 8 + 2 * t + 1] = c_reg[3];
}

__global__ void copy_or_zero_kernel(const uint4* from, const int* valid, uint4* to) {
  const int lane = threadIdx.x;
  uint4* smem = dynamic_shared<uint4>();  // [32]
  cp_async_16_or_zero(smem + lane, from + lane, valid[lane] != 0);
  cp_async_commit();
  cp_async_wait<0>();
  __syncwarp();
  to[31 - lane] = smem[31 - lane];  // another lane's copy
}

__global__ void copy_in_stages_kernel(const uint4* from, uint4* to) {
  const int lane = threadIdx.x;
  uint4* smem = dynamic_shared<uint4>();  // [3, 32]
  for (int stage = 0; stage < 3; stage++) {
    cp_async_16(smem + stage * 32 + lane, from + stage * 32 + lane);
    cp_async_commit();
  }
  cp_async_wait<1>();
  to[lane] = smem[lane];
  to[32 + lane] = smem[32 + lane];
  cp_async_wait<0>();
  to[64 + lane] = smem[64 + lane];
}

struct Tables {
  const float *cos, *sin;
};

// A thread has one position.
template <int D>
__global__ void angles_kernel(Tables rope, const int* positions, float* cos, float* sin) {
  const size_t thread = thread_index();
  for (int i = 0; i < D / 2; i += 8) {
    const rope_angles::Angles angles = rope_angles::angles_of<D>(rope, positions[thread], i);
    for (int e = 0; e < 8; e++) {
      cos[thread * (D / 2) + i + e] = angles.cos[e];
      sin[thread * (D / 2) + i + e] = angles.sin[e];
    }
  }
}

__global__ void add_from_blocks_kernel(const float* x, float* sum) {
  const int lane = threadIdx.x;
  atomic_add_4(sum + lane % 8 * 4, x + lane * 4);
}

__global__ void pass_to_partner_kernel(int rounds, bool writer_waits, int* out) {
  int* smem = dynamic_shared<int>();  // [2, 32]
  const int lane = threadIdx.x % 32, pair = threadIdx.x / 32 % 2;
  const bool writes = threadIdx.x / 64 == 1;  // so that in the order of threads the readers come first
  for (int round = 0; round < rounds; round++) {
    if (writes) {
      smem[pair * 32 + lane] = 100 * round + 32 * pair + lane;
      if (writer_waits)
        named_barrier_sync(1 + pair, 64);
      else
        named_barrier_arrive(1 + pair, 64);
    } else {
      named_barrier_sync(1 + pair, 64);
      out[(round * 2 + pair) * 32 + 31 - lane] = smem[pair * 32 + 31 - lane];  // another lane's
    }
    __syncthreads();  // everyone has read
  }
}

__global__ void take_turns_kernel(int* ticket, int* semaphore, bool peek, int* list) {
  const int lane = threadIdx.x;
  const int turn = __shfl_sync(0xffffffff, lane == 0 ? atomicAdd(ticket, 1) : 0, 0);
  if (lane == 0) {
    if (!peek || semaphore_peek(semaphore) != turn) semaphore_wait(semaphore, turn);
    fence_acq_rel();
  }
  __syncwarp();
  list[turn * 32 + lane] = turn == 0 ? lane : list[(turn - 1) * 32 + (lane + 1) % 32] + 1;
  __syncwarp();
  if (lane == 0) {
    fence_acq_rel();
    semaphore_set(semaphore, turn + 1);
  }
}

__global__ void tiles_in_order_kernel(attention::TileList<64> tiles, int* list) {
  attention::Tile tile;
  for (int index = 0; tiles.get(tile, index); index++) list[2 * index] = tile.head, list[2 * index + 1] = tile.i0;
}

__global__ void go_round_kernel(const int* from, int* to) {
  const int i = blockIdx.x * 32 + threadIdx.x;
  grid_dependency_wait();
  to[i] = from[(i + 32) % (gridDim.x * 32)] + 1;
}

__global__ void pass_in_a_circle_kernel(int rounds, int* semaphores, int* list) {
  const int lane = threadIdx.x, block = blockIdx.x, blocks = gridDim.x, behind = (block + 1) % blocks;
  __shared__ int sums[32];
  sums[lane] = lane;
  for (int round = 0; round < rounds; round++) {
    list[block * 32 + lane] = sums[lane];
    __syncwarp();
    if (lane == 0) {
      fence_acq_rel();
      semaphore_set(semaphores + 2 * block, round + 1);    // it may be read
      semaphore_wait(semaphores + 2 * behind, round + 1);  // and so may the one behind
    }
    __syncwarp();
    sums[lane] = list[behind * 32 + (lane + 1) % 32] + 1;
    __syncwarp();
    if (lane == 0) {
      fence_acq_rel();
      semaphore_set(semaphores + 2 * behind + 1, round + 1);  // it has been read
      semaphore_wait(semaphores + 2 * block + 1, round + 1);
    }
    __syncwarp();
  }
  list[block * 32 + lane] = sums[lane];
}

template <class T>
__global__ void to_float_kernel(const T* x, float* y) {
  y[thread_index()] = ::to_float(x[thread_index()]);
}

template <class T>
__global__ void from_float_kernel(const float* x, T* y) {
  y[thread_index()] = ::from_float<T>(x[thread_index()]);
}

template <class T>
__global__ void pack2_kernel(const float* low, const float* high, uint32_t* y) {
  y[thread_index()] = ::pack2<T>(low[thread_index()], high[thread_index()]);
}

template <class T>
__global__ void unpack2_kernel(const uint32_t* x, float2* y) {
  y[thread_index()] = ::unpack2<T>(x[thread_index()]);
}

__global__ void evaluate_kernel(Function function, const float* x, float* y) {
  const float value = x[thread_index()];
  float result = 0;
  switch (function) {
    case Function::exp2_approx:
      result = exp2_approx(value);
      break;
    case Function::exp2_polynomial:
      result = exp2_polynomial(value);
      break;
    case Function::log2_approx:
      result = log2_approx(value);
      break;
    case Function::warp_sum:
      result = warp_sum(value);
      break;
    case Function::warp_max:
      result = warp_max(value);
      break;
    case Function::quad_sum:
      result = quad_sum(value);
      break;
    case Function::quad_max:
      result = quad_max(value);
      break;
  }
  y[thread_index()] = result;
}

}  // namespace

Floats mma(DType dtype, const Words& a, const Words& b, const Floats& c) {
  const DeviceArray<uint32_t> a_device(a), b_device(b);
  const DeviceArray<float> c_device(c);
  launch(dtype == DType::fp16 ? mma_kernel<__half> : mma_kernel<__nv_bfloat16>, {warps_for(c.size() / 4), dim3(32)},
         a_device.as(), b_device.as(), c_device.as());
  return c_device.get();
}

Floats mma_half(const Words& a, const Words& b, const Floats& c) {
  const DeviceArray<uint32_t> a_device(a), b_device(b);
  const DeviceArray<float> c_device(c);
  launch(mma_half_kernel, {warps_for(c.size() / 4), dim3(32)}, a_device.as(), b_device.as(), c_device.as());
  return c_device.get();
}

Words ldmatrix(Form form, const std::vector<uint16_t>& tile, const std::vector<int>& rows) {
  const DeviceArray<uint16_t> tile_device(tile);
  const DeviceArray<int> rows_device(rows);
  const DeviceArray<uint32_t> out(form == Form::x4 || form == Form::x4_trans ? 32 * 4 : 32 * 2);
  const auto kernel = form == Form::x4         ? ldmatrix_kernel<Form::x4>
                      : form == Form::x4_trans ? ldmatrix_kernel<Form::x4_trans>
                      : form == Form::x2       ? ldmatrix_kernel<Form::x2>
                                               : ldmatrix_kernel<Form::x2_trans>;
  launch(kernel, {dim3(1), dim3(32), 32 * 8 * sizeof(uint16_t)}, tile_device.as(), rows_device.as(), out.as());
  return out.get();
}

std::vector<uint16_t> stmatrix(bool trans, const Words& fragments, const std::vector<int>& rows) {
  const DeviceArray<uint32_t> fragments_device(fragments);
  const DeviceArray<int> rows_device(rows);
  const DeviceArray<uint16_t> tile(32 * 8);
  launch(trans ? stmatrix_kernel<true> : stmatrix_kernel<false>, {dim3(1), dim3(32), 32 * 8 * sizeof(uint16_t)},
         fragments_device.as(), rows_device.as(), tile.as());
  return tile.get();
}

Floats multiply(DType dtype, const std::vector<uint16_t>& a, const std::vector<uint16_t>& b, bool b_is_transposed) {
  const DeviceArray<uint16_t> a_device(a), b_device(b);
  const DeviceArray<float> c(16 * 8);
  launch(dtype == DType::fp16 ? multiply_kernel<__half> : multiply_kernel<__nv_bfloat16>,
         {dim3(1), dim3(32), (16 * 16 + 16 * 8) * sizeof(uint16_t)}, a_device.as(), b_device.as(), b_is_transposed,
         c.as());
  return c.get();
}

Words copy_or_zero(const Words& from, const std::vector<int>& valid) {
  const DeviceArray<uint32_t> from_device(from), to(from.size());
  const DeviceArray<int> valid_device(valid);
  launch(copy_or_zero_kernel, {dim3(1), dim3(32), 32 * sizeof(uint4)}, from_device.as<uint4>(), valid_device.as(),
         to.as<uint4>());
  return to.get();
}

Words copy_in_stages(const Words& from) {
  const DeviceArray<uint32_t> from_device(from), to(from.size());
  launch(copy_in_stages_kernel, {dim3(1), dim3(32), 3 * 32 * sizeof(uint4)}, from_device.as<uint4>(), to.as<uint4>());
  return to.get();
}

Floats angles(int head_dim, const Floats& cos, const Floats& sin, int first_row, const std::vector<int>& positions) {
  const size_t row = head_dim / 2, size = positions.size() * row;
  const DeviceArray<float> cos_device(cos), sin_device(sin), angles(2 * size);
  const DeviceArray<int> positions_device(positions);
  // Where row 0 would be. In integers, which need not point to anything.
  const auto row_0 = [&](const DeviceArray<float>& table) {
    return reinterpret_cast<const float*>(reinterpret_cast<uintptr_t>(table.as()) - first_row * row * sizeof(float));
  };
  launch(head_dim == 64 ? angles_kernel<64> : angles_kernel<128>, {warps_for(positions.size()), dim3(32)},
         Tables{row_0(cos_device), row_0(sin_device)}, positions_device.as(), angles.as(), angles.as() + size);
  return angles.get();
}

Floats add_from_blocks(int blocks, const Floats& x) {
  const DeviceArray<float> x_device(x), sum(Floats(8 * 4));
  launch(add_from_blocks_kernel, {dim3(unsigned(blocks)), dim3(32)}, x_device.as(), sum.as());
  return sum.get();
}

std::vector<int> pass_to_partner(int rounds, bool writer_waits) {
  const DeviceArray<int> out(rounds * 2 * 32);
  launch(pass_to_partner_kernel, {dim3(1), dim3(128), 2 * 32 * sizeof(int)}, rounds, writer_waits, out.as());
  return out.get();
}

std::vector<int> take_turns(int blocks, bool peek) {
  const DeviceArray<int> counters(std::vector<int>(2)), list(blocks * 32);
  launch(take_turns_kernel, {dim3(unsigned(blocks)), dim3(32)}, counters.as(), counters.as() + 1, peek, list.as());
  return list.get();
}

std::vector<int> pass_in_a_circle(int rounds, int blocks) {
  const DeviceArray<int> semaphores(std::vector<int>(blocks * 2)), list(blocks * 32);
  launch_cooperative(pass_in_a_circle_kernel, {unsigned(blocks), 32}, rounds, semaphores.as(), list.as());
  return list.get();
}

std::vector<int> tiles_in_order(const attention::Problem& p, int round_heads) {
  const auto tiles = attention::all_tiles<64>(p, round_heads);
  const DeviceArray<int> list(2 * tiles.heads * tiles.row_tiles);
  launch(tiles_in_order_kernel, {dim3(1), dim3(1)}, tiles, list.as());
  return list.get();
}

std::vector<int> go_round(int launches, int blocks) {
  std::vector<int> start(blocks * 32);
  std::iota(start.begin(), start.end(), 0);
  const DeviceArray<int> rings[] = {DeviceArray<int>(start), DeviceArray<int>(start)};
  for (int i = 0; i < launches; i++)
    launch_dependent(go_round_kernel, {unsigned(blocks), 32}, rings[i % 2].as(), rings[(i + 1) % 2].as());
  return rings[launches % 2].get();
}

Floats to_float(DType dtype, const std::vector<uint16_t>& bits) {
  const DeviceArray<uint16_t> x(bits);
  const DeviceArray<float> y(bits.size());
  if (dtype == DType::fp16)
    launch(to_float_kernel<__half>, {warps_for(bits.size()), dim3(32)}, x.as<__half>(), y.as());
  else
    launch(to_float_kernel<__nv_bfloat16>, {warps_for(bits.size()), dim3(32)}, x.as<__nv_bfloat16>(), y.as());
  return y.get();
}

std::vector<uint16_t> from_float(DType dtype, const Floats& values) {
  const DeviceArray<float> x(values);
  const DeviceArray<uint16_t> y(values.size());
  if (dtype == DType::fp16)
    launch(from_float_kernel<__half>, {warps_for(values.size()), dim3(32)}, x.as(), y.as<__half>());
  else
    launch(from_float_kernel<__nv_bfloat16>, {warps_for(values.size()), dim3(32)}, x.as(), y.as<__nv_bfloat16>());
  return y.get();
}

Words pack2(DType dtype, const Floats& low, const Floats& high) {
  const DeviceArray<float> low_device(low), high_device(high);
  const DeviceArray<uint32_t> y(low.size());
  launch(dtype == DType::fp16 ? pack2_kernel<__half> : pack2_kernel<__nv_bfloat16>, {warps_for(low.size()), dim3(32)},
         low_device.as(), high_device.as(), y.as());
  return y.get();
}

Floats unpack2(DType dtype, const Words& packed) {
  const DeviceArray<uint32_t> x(packed);
  const DeviceArray<float> y(2 * packed.size());
  launch(dtype == DType::fp16 ? unpack2_kernel<__half> : unpack2_kernel<__nv_bfloat16>,
         {warps_for(packed.size()), dim3(32)}, x.as(), y.as<float2>());
  return y.get();
}

Floats evaluate(Function function, const Floats& values) {
  const DeviceArray<float> x(values), y(values.size());
  launch(evaluate_kernel, {warps_for(values.size()), dim3(32)}, function, x.as(), y.as());
  return y.get();
}

}  // namespace device_tests
