// wmma: products of matrices that a warp has in its registers, as fragments. Which lane has which elements is left open
// by CUDA; here element i of a lane is element 32 i + lane of the matrix, row by row. So accesses of load_matrix_sync
// and store_matrix_sync count otherwise than on a GPU.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "simt/cuda/groups.h"

namespace nvcuda::wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32;
}

template <class T>
struct stored {
  using type = T;
};
template <>
struct stored<precision::tf32> {
  using type = float;
};

template <class Use, int m, int n, int k, class T, class Layout = void>
struct fragment {
  static constexpr int rows = std::is_same_v<Use, matrix_b> ? k : m;
  static constexpr int columns = std::is_same_v<Use, matrix_a> ? k : n;
  static constexpr int num_elements = rows * columns / 32;
  static constexpr int num_storage_elements = num_elements;
  using element_type = T;
  using storage_element_type = typename stored<T>::type;
  storage_element_type x[num_elements];
};

// The place in memory of element i of this lane.
template <class Fragment>
__device__ inline unsigned place(int i, unsigned pitch, bool by_rows) {
  const unsigned element = 32u * static_cast<unsigned>(i) + simt::thread_number() % 32;
  const unsigned row = element / Fragment::columns, column = element % Fragment::columns;
  return by_rows ? row * pitch + column : column * pitch + row;
}

// Rows, or columns, begin 16 bytes apart, or a multiple.
template <class T>
__device__ inline void check_pitch(const char* name, unsigned pitch, const char* file, int line) {
  if (pitch * sizeof(T) % 16 != 0)
    simt::undefined(name,
                    sizeof(T) == 2 ? "its leading dimension has to be a multiple of 8 elements, and is"
                                   : "its leading dimension has to be a multiple of 16 bytes, and is, in elements,",
                    static_cast<int>(pitch), file, line);
}

template <class Use, int m, int n, int k, class T, class Layout, class From>
__device__ inline void load_matrix_sync(fragment<Use, m, n, k, T, Layout>& to, const From* from, unsigned pitch,
                                        const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  check_pitch<From>("load_matrix_sync", pitch, file, line);
  using Fragment = fragment<Use, m, n, k, T, Layout>;
  for (int i = 0; i < Fragment::num_elements; ++i)
    to.x[i] = from[place<Fragment>(i, pitch, std::is_same_v<Layout, row_major>)];
}
template <int m, int n, int k, class T, class From>
__device__ inline void load_matrix_sync(fragment<accumulator, m, n, k, T>& to, const From* from, unsigned pitch,
                                        layout_t layout, const char* file = __builtin_FILE(),
                                        int line = __builtin_LINE()) {
  check_pitch<From>("load_matrix_sync", pitch, file, line);
  using Fragment = fragment<accumulator, m, n, k, T>;
  for (int i = 0; i < Fragment::num_elements; ++i) to.x[i] = from[place<Fragment>(i, pitch, layout == mem_row_major)];
}
template <int m, int n, int k, class T, class To>
__device__ inline void store_matrix_sync(To* to, const fragment<accumulator, m, n, k, T>& from, unsigned pitch,
                                         layout_t layout, const char* file = __builtin_FILE(),
                                         int line = __builtin_LINE()) {
  check_pitch<To>("store_matrix_sync", pitch, file, line);
  using Fragment = fragment<accumulator, m, n, k, T>;
  for (int i = 0; i < Fragment::num_elements; ++i) to[place<Fragment>(i, pitch, layout == mem_row_major)] = from.x[i];
}

template <class Use, int m, int n, int k, class T, class Layout, class Value>
__device__ inline void fill_fragment(fragment<Use, m, n, k, T, Layout>& fragment, const Value& value) {
  for (auto& element : fragment.x) element = value;
}

// To 10 bits of mantissa, ties away from zero.
__host__ __device__ inline float __float_to_tf32(float x) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  if ((bits & 0x7f800000) != 0x7f800000) bits += 0x1000;
  bits &= 0xffffe000;
  __builtin_memcpy(&x, &bits, 4);
  return x;
}

template <class A, class B, class C, class D>
struct Operands {
  const A* a;
  const B* b;
  const C* c;
  D* d;
};

// As the hardware does: tf32 without the bits that it does not have; whole numbers exactly, all else in fp32 or fp64.
template <class T, class S>
auto factor(const S& x) {
  if constexpr (std::is_same_v<T, precision::tf32>) {
    std::uint32_t bits;
    __builtin_memcpy(&bits, &x, 4);
    bits &= 0xffffe000;
    float value;
    __builtin_memcpy(&value, &bits, 4);
    return value;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<int>(x);
  } else if constexpr (std::is_same_v<T, double>) {
    return x;
  } else {
    return static_cast<float>(x);
  }
}

template <class A, class B, class C, class D>
void product(void* const operands[32], unsigned) {
  using All = Operands<A, B, C, D>;
  constexpr int rows = D::rows, columns = D::columns, depth = A::columns;
  using Sum = decltype(factor<typename A::element_type>(A().x[0]) * 1);
  static_assert(rows * columns % 32 == 0);
  Sum a[rows * depth], b[depth * columns];
  const auto at = [&](int element) { return static_cast<All*>(operands[element % 32]); };
  for (int i = 0; i < rows * depth; ++i) a[i] = factor<typename A::element_type>(at(i)->a->x[i / 32]);
  for (int i = 0; i < depth * columns; ++i) b[i] = factor<typename B::element_type>(at(i)->b->x[i / 32]);
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column) {
      const int i = row * columns + column;
      Sum sum = 0;
      for (int inner = 0; inner < depth; ++inner) sum += a[row * depth + inner] * b[inner * columns + column];
      const All* its = at(i);
      its->d->x[i / 32] = static_cast<Sum>(its->c->x[i / 32]) + sum;
    }
}

template <class A, class B, class C, class D>
__device__ inline void mma_sync(D& d, const A& a, const B& b, const C& c, bool = false,
                                const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  Operands<A, B, C, D> operands = {&a, &b, &c, &d};
  simt::warp_collective("wmma::mma_sync", 0xffffffff, &operands, product<A, B, C, D>, file, line);
}

}  // namespace nvcuda::wmma
