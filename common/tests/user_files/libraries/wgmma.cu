// wgmma as inline PTX, in the style of public kernels, which checks itself.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static int wrong = 0;

__device__ unsigned long long matrix_descriptor(const void* tile, unsigned leading, unsigned stride) {
  const auto field = [](unsigned bytes) { return (unsigned long long)(bytes & 0x3ffff) >> 4; };
  return field((unsigned)__cvta_generic_to_shared(tile)) | field(leading) << 16 | field(stride) << 32 | 1ull << 62;
}
__device__ void product_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void product_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int groups>
__device__ void product_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(groups) : "memory");
}
// The place of an element among rows of 128 bytes, swizzled.
__device__ int swizzled_place(int row, int column) { return (row * 64 + column) ^ (row % 8) * 8; }

template <int scale_d, int scale_a, int scale_b, int mn_a, int mn_b>
__device__ void product_64_32_16(float (&d)[4][4], unsigned long long a, unsigned long long b) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %18, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, %16, %17, p, %19, %20, %21, %22;\n}\n"
      : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]),
        "+f"(d[1][3]), "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]), "+f"(d[3][0]), "+f"(d[3][1]),
        "+f"(d[3][2]), "+f"(d[3][3])
      : "l"(a), "l"(b), "n"(int(scale_d)), "n"(int(scale_a)), "n"(int(scale_b)), "n"(int(mn_a)), "n"(int(mn_b)));
}

__device__ float left_factor(int row, int k) { return (row * 3 + k * 5) % 7 - 3; }
__device__ float right_factor(int k, int column) { return (k * 2 + column * 3) % 5 - 2; }

// out[64][32] = left (64 x 64) right (64 x 32), of which the last quarter counts negative.
__global__ void __launch_bounds__(128) product_of_tiles(float* out) {
  extern __shared__ __align__(1024) __nv_bfloat16 tiles[];
  __nv_bfloat16 *const a = tiles, *const b = tiles + 64 * 64;
  for (int i = threadIdx.x; i < 64 * 64; i += 128) {
    a[swizzled_place(i / 64, i % 64)] = __float2bfloat16(left_factor(i / 64, i % 64));
    if (i < 32 * 64) b[swizzled_place(i / 64, i % 64)] = __float2bfloat16(right_factor(i % 64, i / 64));
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  float d[4][4];
  for (auto& of_columns : d)
    for (float& element : of_columns) asm volatile("" : "+f"(element)::"memory");
  product_fence();
  product_64_32_16<0, 1, 1, 0, 0>(d, matrix_descriptor(a, 16, 1024), matrix_descriptor(b, 16, 1024));
  product_64_32_16<1, 1, 1, 0, 0>(d, matrix_descriptor(a + 16, 16, 1024), matrix_descriptor(b + 16, 16, 1024));
  product_commit();
  product_64_32_16<1, -1, -1, 0, 0>(d, matrix_descriptor(a + 32, 16, 1024), matrix_descriptor(b + 32, 16, 1024));
  product_64_32_16<1, 1, -1, 0, 0>(d, matrix_descriptor(a + 48, 16, 1024), matrix_descriptor(b + 48, 16, 1024));
  product_commit();
  product_wait<1>();
  product_wait<0>();
  for (auto& of_columns : d)
    for (float& element : of_columns) asm volatile("" : "+f"(element)::"memory");
  const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
  for (int i = 0; i < 16; ++i) out[(row + i % 4 / 2 * 8) * 32 + i / 4 * 8 + column + i % 2] = d[i / 4][i % 4];
}
static void test_products_of_a_warpgroup() {
  float* out = nullptr;
  std::vector<float> host(64 * 32);
  cudaMalloc(&out, host.size() * sizeof(float));
  product_of_tiles<<<1, 128, (64 + 32) * 64 * 2>>>(out);
  cudaMemcpy(host.data(), out, host.size() * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(out);
  for (int row = 0; row < 64; ++row)
    for (int column = 0; column < 32; ++column) {
      float sum = 0;
      for (int k = 0; k < 64; ++k)
        sum += (k < 48 ? 1 : -1) * float((row * 3 + k * 5) % 7 - 3) * float((k * 2 + column * 3) % 5 - 2);
      wrong += !(host[row * 32 + column] == sum);
    }
}

// A lies in registers, the rows of B are along N, and D is four variables that are no array.
__global__ void product_of_registers(float* out) {
  __shared__ alignas(1024) __half b[16 * 64];
  for (int i = threadIdx.x; i < 16 * 64; i += 128) b[i] = __float2half(0);
  __syncthreads();
  b[swizzled_place(threadIdx.x / 8, threadIdx.x % 8)] = __float2half(right_factor(threadIdx.x / 8, threadIdx.x % 8));
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
  unsigned a[4];
  for (int r = 0; r < 4; ++r) {
    const int of_row = row + r % 2 * 8, k = column + r / 2 * 8;
    const __half2 two = __floats2half2_rn(left_factor(of_row, k), left_factor(of_row, k + 1));
    a[r] = reinterpret_cast<const unsigned&>(two);
  }
  float top_left = 1, top_right = 1, low_left = 1, low_right = 1;
  product_fence();
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %9, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, p, 1, 1, 1; }"
      : "+f"(top_left), "+f"(top_right), "+f"(low_left), "+f"(low_right)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(matrix_descriptor(b, 1024, 1024)), "r"(1));
  product_commit();
  product_wait<0>();
  out[row * 8 + column] = top_left;
  out[row * 8 + column + 1] = top_right;
  out[(row + 8) * 8 + column] = low_left;
  out[(row + 8) * 8 + column + 1] = low_right;
}
static void test_product_of_registers_and_a_tile() {
  float* out = nullptr;
  std::vector<float> host(64 * 8);
  cudaMalloc(&out, host.size() * sizeof(float));
  product_of_registers<<<1, 128>>>(out);
  cudaMemcpy(host.data(), out, host.size() * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(out);
  for (int row = 0; row < 64; ++row)
    for (int column = 0; column < 8; ++column) {
      float sum = 1;
      for (int k = 0; k < 16; ++k) sum += float((row * 3 + k * 5) % 7 - 3) * float((k * 2 + column * 3) % 5 - 2);
      wrong += !(host[row * 8 + column] == sum);
    }
}

// Eight bits: A in registers is e4m3, and B is e5m2, of which an instruction takes 32 along each row.
__global__ void product_of_eight_bits(float* out) {
  __shared__ alignas(1024) __nv_fp8_e5m2 b[8 * 128];
  for (int i = threadIdx.x; i < 8 * 128; i += 128) {
    const int row = i / 128, k = i % 128;
    b[row * 128 + ((k / 16) ^ row) * 16 + k % 16] = __nv_fp8_e5m2(k < 32 ? right_factor(k, row) : 100.f);
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
  unsigned a[4] = {};
  for (int r = 0; r < 4; ++r)
    for (int i = 0; i < 4; ++i) {
      const float x = left_factor(row + r % 2 * 8, threadIdx.x % 4 * 4 + r / 2 * 16 + i);
      a[r] |= (unsigned)__nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3) << 8 * i;
    }
  float d[4] = {1, 1, 1, 1};
  product_fence();
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %9, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, p, 1, 1; }"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(matrix_descriptor(b, 0, 1024)), "r"(1));
  product_commit();
  product_wait<0>();
  for (int i = 0; i < 4; ++i) out[(row + i / 2 * 8) * 8 + column + i % 2] = d[i];
}
static void test_product_of_eight_bits() {
  float* out = nullptr;
  std::vector<float> host(64 * 8);
  cudaMalloc(&out, host.size() * sizeof(float));
  product_of_eight_bits<<<1, 128>>>(out);
  cudaMemcpy(host.data(), out, host.size() * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(out);
  for (int row = 0; row < 64; ++row)
    for (int column = 0; column < 8; ++column) {
      float sum = 1;
      for (int k = 0; k < 32; ++k) sum += float((row * 3 + k * 5) % 7 - 3) * float((k * 2 + column * 3) % 5 - 2);
      wrong += !(host[row * 8 + column] == sum);
    }
}

int main() {
  test_products_of_a_warpgroup();
  test_product_of_registers_and_a_tile();
  test_product_of_eight_bits();
  if (wrong > 0) std::printf("%d elements are wrong\n", wrong);
  return wrong > 0;
}
