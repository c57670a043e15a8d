// CUB's small things: operators, pairs, iterators, loads and stores of a thread. See cub.h.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>

namespace cub {

// --- Operators and pairs ---

struct Sum {
  template <class A, class B>
  __host__ __device__ constexpr auto operator()(const A& a, const B& b) const {
    return a + b;
  }
};
struct Difference {
  template <class A, class B>
  __host__ __device__ constexpr auto operator()(const A& a, const B& b) const {
    return a - b;
  }
};
struct Max {
  template <class A, class B>
  __host__ __device__ constexpr std::common_type_t<A, B> operator()(const A& a, const B& b) const {
    return a < b ? b : a;
  }
};
struct Min {
  template <class A, class B>
  __host__ __device__ constexpr std::common_type_t<A, B> operator()(const A& a, const B& b) const {
    return b < a ? b : a;
  }
};
struct Equality {
  template <class A, class B>
  __host__ __device__ constexpr bool operator()(const A& a, const B& b) const {
    return a == b;
  }
};
struct Inequality {
  template <class A, class B>
  __host__ __device__ constexpr bool operator()(const A& a, const B& b) const {
    return a != b;
  }
};
template <class T>
struct CastOp {
  template <class A>
  __host__ __device__ constexpr T operator()(const A& a) const {
    return static_cast<T>(a);
  }
};

struct NullType {};

template <class Key, class Value>
struct KeyValuePair {
  Key key;
  Value value;
  __host__ __device__ bool operator==(const KeyValuePair& b) const { return key == b.key && value == b.value; }
  __host__ __device__ bool operator!=(const KeyValuePair& b) const { return !(*this == b); }
};
// Of equal values, that with the lower key.
struct ArgMax {
  template <class Pair>
  __host__ __device__ Pair operator()(const Pair& a, const Pair& b) const {
    return a.value < b.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};
struct ArgMin {
  template <class Pair>
  __host__ __device__ Pair operator()(const Pair& a, const Pair& b) const {
    return b.value < a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};

// The values of equal keys in a row are reduced; a change of the key begins anew.
template <class Op>
struct ReduceByKeyOp {
  Op op;
  template <class Pair>
  __host__ __device__ Pair operator()(const Pair& a, const Pair& b) const {
    return {b.key, a.key == b.key ? op(a.value, b.value) : b.value};
  }
};

// --- Numbers ---

template <int n, int bits = 0, bool done = (1 << bits) >= n>
struct Log2 {
  static constexpr int VALUE = Log2<n, bits + 1>::VALUE;
};
template <int n, int bits>
struct Log2<n, bits, true> {
  static constexpr int VALUE = bits;
};
template <int n>
struct PowerOfTwo {
  static constexpr bool VALUE = (n & (n - 1)) == 0;
};
template <int n>
struct Int2Type {
  static constexpr int VALUE = n;
};
template <class A, class B>
__host__ __device__ constexpr A DivideAndRoundUp(A a, B b) {
  return static_cast<A>(a / b + (a % b != 0));
}
__device__ inline unsigned LaneId() { return unsigned(simt::lane()); }
__device__ inline unsigned WarpId() {
  return ((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) / 32;
}
__device__ inline int RowMajorTid(int x, int y, int) {
  return (int(threadIdx.z) * y + int(threadIdx.y)) * x + int(threadIdx.x);
}

#define CUB_MAX(a, b) (((a) > (b)) ? (a) : (b))
#define CUB_MIN(a, b) (((a) < (b)) ? (a) : (b))
#define CUB_ROUND_UP_NEAREST(x, y) ((((x) + (y)-1) / (y)) * (y))
#define CUB_PTX_WARP_THREADS 32
#define CUB_PTX_LOG_WARP_THREADS 5
#define CUB_WARP_THREADS(unused) 32
#define CUB_VERSION 200800
#define CUB_NS_QUALIFIER ::cub
#define CUB_RUNTIME_FUNCTION

inline cudaError_t Debug(cudaError_t error, const char* file, int line) {
  if (error != cudaSuccess)
    std::fprintf(stderr, "CUDA error %d [%s, %d]: %s\n", error, file, line, cudaGetErrorString(error));
  return error;
}
#define CubDebug(call) cub::Debug(call, __FILE__, __LINE__)
#define CubDebugExit(call) \
  if (cub::Debug(call, __FILE__, __LINE__) != cudaSuccess) std::exit(1)

template <class Kernel>
cudaError_t MaxSmOccupancy(int& blocks, Kernel kernel, int threads, int shared_bytes = 0) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, std::size_t(shared_bytes));
}

// --- Iterators ---

template <class Derived, class T, class Offset = std::ptrdiff_t>
struct simt_iterator {
  using difference_type = Offset;
  using value_type = T;
  using reference = T;
  using pointer = const T*;
  using iterator_category = std::random_access_iterator_tag;

  __host__ __device__ reference operator*() const { return self().at(0); }
  __host__ __device__ Derived operator+(Offset n) const { return self().moved(n); }
  __host__ __device__ Derived operator-(Offset n) const { return self().moved(-n); }
  __host__ __device__ Derived& operator+=(Offset n) { return self() = self().moved(n); }
  __host__ __device__ Derived& operator++() { return *this += 1; }
  __host__ __device__ Derived operator++(int) {
    Derived old = self();
    ++*this;
    return old;
  }
  __host__ __device__ reference operator[](Offset n) const { return self().at(n); }

 private:
  __host__ __device__ const Derived& self() const { return static_cast<const Derived&>(*this); }
  __host__ __device__ Derived& self() { return static_cast<Derived&>(*this); }
};

template <class T, class Offset = std::ptrdiff_t>
struct CountingInputIterator : simt_iterator<CountingInputIterator<T, Offset>, T, Offset> {
  __host__ __device__ explicit CountingInputIterator(T first) : first(first) {}
  __host__ __device__ T at(Offset n) const { return first + T(n); }
  __host__ __device__ CountingInputIterator moved(Offset n) const { return CountingInputIterator(first + T(n)); }
  T first;
};
template <class T, class Offset = std::ptrdiff_t>
struct ConstantInputIterator : simt_iterator<ConstantInputIterator<T, Offset>, T, Offset> {
  __host__ __device__ explicit ConstantInputIterator(T value, Offset = 0) : value(value) {}
  __host__ __device__ T at(Offset) const { return value; }
  __host__ __device__ ConstantInputIterator moved(Offset) const { return *this; }
  T value;
};
template <class T, class Op, class Input, class Offset = std::ptrdiff_t>
struct TransformInputIterator : simt_iterator<TransformInputIterator<T, Op, Input, Offset>, T, Offset> {
  __host__ __device__ TransformInputIterator(Input input, Op op) : input(input), op(op) {}
  __host__ __device__ T at(Offset n) const { return op(input[n]); }
  __host__ __device__ TransformInputIterator moved(Offset n) const { return {input + n, op}; }
  Input input;
  mutable Op op;
};
template <class Input, class Offset = std::ptrdiff_t, class T = typename std::iterator_traits<Input>::value_type>
struct ArgIndexInputIterator : simt_iterator<ArgIndexInputIterator<Input, Offset, T>, KeyValuePair<Offset, T>, Offset> {
  __host__ __device__ explicit ArgIndexInputIterator(Input input, Offset first = 0) : input(input), first(first) {}
  __host__ __device__ KeyValuePair<Offset, T> at(Offset n) const { return {first + n, input[first + n]}; }
  __host__ __device__ ArgIndexInputIterator moved(Offset n) const { return ArgIndexInputIterator(input, first + n); }
  Input input;
  Offset first;
};
struct simt_nothing {
  template <class T>
  __host__ __device__ const simt_nothing& operator=(const T&) const {
    return *this;
  }
};
template <class Offset = std::ptrdiff_t>
struct DiscardOutputIterator : simt_iterator<DiscardOutputIterator<Offset>, simt_nothing, Offset> {
  __host__ __device__ DiscardOutputIterator(Offset = 0) {}
  __host__ __device__ simt_nothing at(Offset) const { return {}; }
  __host__ __device__ DiscardOutputIterator moved(Offset) const { return *this; }
};

// --- Loads and stores: the engine has no caches ---

enum CacheLoadModifier { LOAD_DEFAULT, LOAD_CA, LOAD_CG, LOAD_CS, LOAD_CV, LOAD_LDG, LOAD_VOLATILE };
enum CacheStoreModifier { STORE_DEFAULT, STORE_WB, STORE_CG, STORE_CS, STORE_WT, STORE_VOLATILE };

template <CacheLoadModifier, class Input>
__device__ auto ThreadLoad(Input from) {
  return *from;
}
template <CacheStoreModifier, class Output, class T>
__device__ void ThreadStore(Output to, T value) {
  *to = value;
}
template <CacheLoadModifier modifier, class T, class Offset = std::ptrdiff_t>
struct CacheModifiedInputIterator : simt_iterator<CacheModifiedInputIterator<modifier, T, Offset>, T, Offset> {
  __host__ __device__ CacheModifiedInputIterator(const T* from) : from(from) {}
  __host__ __device__ T at(Offset n) const { return from[n]; }
  __host__ __device__ CacheModifiedInputIterator moved(Offset n) const { return {from + n}; }
  const T* from;
};
template <CacheStoreModifier, class T, class Offset = std::ptrdiff_t>
struct CacheModifiedOutputIterator {
  __host__ __device__ CacheModifiedOutputIterator(T* to) : to(to) {}
  __host__ __device__ T& operator*() const { return *to; }
  __host__ __device__ T& operator[](Offset n) const { return to[n]; }
  __host__ __device__ CacheModifiedOutputIterator operator+(Offset n) const { return {to + n}; }
  T* to;
};

// Blocked: thread t has items t * n to t * n + n - 1. Striped: t, t + threads, t + 2 * threads, ..
template <class T, int n, class Input>
__device__ void LoadDirectBlocked(int thread, Input from, T (&items)[n]) {
  for (int i = 0; i < n; ++i) items[i] = from[thread * n + i];
}
template <class T, int n, class Input>
__device__ void LoadDirectBlocked(int thread, Input from, T (&items)[n], int valid) {
  for (int i = 0; i < n; ++i)
    if (thread * n + i < valid) items[i] = from[thread * n + i];
}
template <class T, class Default, int n, class Input>
__device__ void LoadDirectBlocked(int thread, Input from, T (&items)[n], int valid, Default other) {
  for (int i = 0; i < n; ++i) {
    if (thread * n + i < valid)
      items[i] = from[thread * n + i];
    else
      items[i] = other;
  }
}
template <class T, int n>
__device__ void LoadDirectBlockedVectorized(int thread, T* from, T (&items)[n]) {
  LoadDirectBlocked(thread, from, items);
}
template <int threads, class T, int n, class Input>
__device__ void LoadDirectStriped(int thread, Input from, T (&items)[n]) {
  for (int i = 0; i < n; ++i) items[i] = from[thread + i * threads];
}
template <int threads, class T, int n, class Input>
__device__ void LoadDirectStriped(int thread, Input from, T (&items)[n], int valid) {
  for (int i = 0; i < n; ++i)
    if (thread + i * threads < valid) items[i] = from[thread + i * threads];
}
template <int threads, class T, class Default, int n, class Input>
__device__ void LoadDirectStriped(int thread, Input from, T (&items)[n], int valid, Default other) {
  for (int i = 0; i < n; ++i) {
    if (thread + i * threads < valid)
      items[i] = from[thread + i * threads];
    else
      items[i] = other;
  }
}
template <class T, int n, class Output>
__device__ void StoreDirectBlocked(int thread, Output to, T (&items)[n]) {
  for (int i = 0; i < n; ++i) to[thread * n + i] = items[i];
}
template <class T, int n, class Output>
__device__ void StoreDirectBlocked(int thread, Output to, T (&items)[n], int valid) {
  for (int i = 0; i < n; ++i)
    if (thread * n + i < valid) to[thread * n + i] = items[i];
}
template <int threads, class T, int n, class Output>
__device__ void StoreDirectStriped(int thread, Output to, T (&items)[n]) {
  for (int i = 0; i < n; ++i) to[thread + i * threads] = items[i];
}
template <int threads, class T, int n, class Output>
__device__ void StoreDirectStriped(int thread, Output to, T (&items)[n], int valid) {
  for (int i = 0; i < n; ++i)
    if (thread + i * threads < valid) to[thread + i * threads] = items[i];
}

// --- Memory ---

template <class T>
struct DoubleBuffer {
  DoubleBuffer() : d_buffers{nullptr, nullptr} {}
  DoubleBuffer(T* current, T* alternate) : d_buffers{current, alternate} {}
  T* Current() { return d_buffers[selector]; }
  T* Alternate() { return d_buffers[selector ^ 1]; }

  T* d_buffers[2];
  int selector = 0;
};

// Its cache is cudaMalloc and cudaFree.
struct CachingDeviceAllocator {
  explicit CachingDeviceAllocator(bool = false, bool = false) {}
  CachingDeviceAllocator(unsigned, unsigned, unsigned = ~0u, std::size_t = ~std::size_t(0), bool = false) {}
  cudaError_t DeviceAllocate(void** memory, std::size_t bytes, cudaStream_t = nullptr) {
    return cudaMalloc(memory, bytes);
  }
  cudaError_t DeviceAllocate(int, void** memory, std::size_t bytes, cudaStream_t = nullptr) {
    return cudaMalloc(memory, bytes);
  }
  cudaError_t DeviceFree(void* memory) { return cudaFree(memory); }
  cudaError_t DeviceFree(int, void* memory) { return cudaFree(memory); }
  cudaError_t FreeAllCached() { return cudaSuccess; }
};

}  // namespace cub
