// CUB's primitives of a thread block, for any of its algorithms. They use the temporary storage that the kernel gives
// them, and its barriers, as CUB does: who uses it again without __syncthreads() has a race, which is found. See cub.h.
#pragma once

#include "simt/libraries/cub/warp.h"

namespace cub {

enum BlockReduceAlgorithm { BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_RAKING, BLOCK_REDUCE_WARP_REDUCTIONS };
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockLoadAlgorithm {
  BLOCK_LOAD_DIRECT,
  BLOCK_LOAD_STRIPED,
  BLOCK_LOAD_VECTORIZE,
  BLOCK_LOAD_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED
};
enum BlockStoreAlgorithm {
  BLOCK_STORE_DIRECT,
  BLOCK_STORE_STRIPED,
  BLOCK_STORE_VECTORIZE,
  BLOCK_STORE_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED
};
enum BlockHistogramAlgorithm { BLOCK_HISTO_SORT, BLOCK_HISTO_ATOMIC };

// Storage for a T whose constructor does not run, as CUB's.
template <class T>
struct Uninitialized {
  alignas(T) char bytes[sizeof(T)];
  __device__ T& Alias() { return *reinterpret_cast<T*>(bytes); }
};

// A block of x * y * z threads, and where its primitives have their storage: what the kernel gives, or their own.
template <class Storage, int x, int y, int z>
class simt_block {
 public:
  struct TempStorage : Uninitialized<Storage> {};

  __device__ explicit simt_block(TempStorage& temp) : temp_(temp.Alias()), thread_(RowMajorTid(x, y, z)) {}
  __device__ simt_block() : temp_(own()), thread_(RowMajorTid(x, y, z)) {}

 protected:
  static constexpr int threads = x * y * z;
  static constexpr int warps = (threads + 31) / 32;

  __device__ int lanes_of_own_warp() const { return thread_ / 32 < threads / 32 ? 32 : threads % 32; }

  Storage& temp_;
  int thread_;

 private:
  __device__ static Storage& own() {
    __shared__ TempStorage storage;
    return storage.Alias();
  }
};

template <class T>
struct simt_no_storage {
  T unused;
};

// The thread's own items first.
template <class T, int n, class Op>
__device__ T simt_reduce_items(T (&items)[n], Op op) {
  T all = items[0];
  for (int i = 1; i < n; ++i) all = op(all, items[i]);
  return all;
}

template <class T, int warps>
struct simt_reduce_storage {
  T of_warps[warps];
};
template <class T, int x, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int y = 1, int z = 1, int = 0>
class BlockReduce : public simt_block<simt_reduce_storage<T, (x * y * z + 31) / 32>, x, y, z> {
  using Base = simt_block<simt_reduce_storage<T, (x * y * z + 31) / 32>, x, y, z>;

 public:
  using Base::Base;
  BlockReduce() = default;

  // The result is the first thread's.
  template <class Op>
  __device__ T Reduce(T input, Op op, int valid = Base::threads) {
    typename WarpReduce<T>::TempStorage none;
    const int first = this->thread_ / 32 * 32;
    const int in_warp = valid - first < this->lanes_of_own_warp() ? valid - first : this->lanes_of_own_warp();
    const T of_warp = WarpReduce<T>(none).Reduce(input, op, in_warp > 0 ? in_warp : 0);
    if (simt::lane() == 0) this->temp_.of_warps[this->thread_ / 32] = of_warp;
    __syncthreads();
    T all = of_warp;
    if (this->thread_ == 0)
      for (int warp = 1; warp < Base::warps && warp * 32 < valid; ++warp) all = op(all, this->temp_.of_warps[warp]);
    return all;
  }
  template <int n, class Op>
  __device__ T Reduce(T (&items)[n], Op op) {
    return Reduce(simt_reduce_items(items, op), op);
  }
  __device__ T Sum(T input, int valid = Base::threads) { return Reduce(input, cub::Sum(), valid); }
  template <int n>
  __device__ T Sum(T (&items)[n]) {
    return Reduce(items, cub::Sum());
  }
};

template <class T, int warps>
struct simt_scan_storage {
  T of_warps[warps];
  T prefix;
};
template <class T, int x, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int y = 1, int z = 1, int = 0>
class BlockScan : public simt_block<simt_scan_storage<T, (x * y * z + 31) / 32>, x, y, z> {
  using Base = simt_block<simt_scan_storage<T, (x * y * z + 31) / 32>, x, y, z>;

 public:
  using Base::Base;
  BlockScan() = default;

  // One item a thread. `prefix`: called by the first warp with the sum of all, says what came before the block.
  __device__ void InclusiveSum(T in, T& out) { InclusiveScan(in, out, cub::Sum()); }
  __device__ void InclusiveSum(T in, T& out, T& all) { InclusiveScan(in, out, cub::Sum(), all); }
  template <class Prefix>
  __device__ void InclusiveSum(T in, T& out, Prefix& prefix) {
    InclusiveScan(in, out, cub::Sum(), prefix);
  }
  __device__ void ExclusiveSum(T in, T& out) { ExclusiveScan(in, out, T{}, cub::Sum()); }
  __device__ void ExclusiveSum(T in, T& out, T& all) { ExclusiveScan(in, out, T{}, cub::Sum(), all); }
  template <class Prefix>
  __device__ void ExclusiveSum(T in, T& out, Prefix& prefix) {
    ExclusiveScan(in, out, cub::Sum(), prefix);
  }
  template <class Op>
  __device__ void InclusiveScan(T in, T& out, Op op) {
    T all;
    InclusiveScan(in, out, op, all);
  }
  template <class Op>
  __device__ void InclusiveScan(T in, T& out, Op op, T& all) {
    T one[1] = {in};
    scan<true>(one, one, op, all, nothing());
    out = one[0];
  }
  template <class Op, class Prefix>
  __device__ void InclusiveScan(T in, T& out, Op op, Prefix& prefix) {
    T one[1] = {in}, all;
    scan<true>(one, one, op, all, prefix);
    out = one[0];
  }
  // Without an initial value, the first thread's output is not defined: here it stays.
  template <class Op>
  __device__ void ExclusiveScan(T in, T& out, Op op) {
    T all;
    ExclusiveScan(in, out, op, all);
  }
  template <class Op>
  __device__ void ExclusiveScan(T in, T& out, Op op, T& all) {
    T one[1] = {in}, result[1] = {out};
    scan<false>(one, result, op, all, nothing());
    out = result[0];
  }
  template <class Op, class Prefix>
  requires(!std::is_convertible_v<Prefix, T>) __device__ void ExclusiveScan(T in, T& out, Op op, Prefix& prefix) {
    T one[1] = {in}, all;
    scan<false>(one, one, op, all, prefix);
    out = one[0];
  }
  template <class Op>
  requires(!std::is_convertible_v<Op, T>) __device__ void ExclusiveScan(T in, T& out, T initial, Op op) {
    T all;
    ExclusiveScan(in, out, initial, op, all);
  }
  template <class Op>
  __device__ void ExclusiveScan(T in, T& out, T initial, Op op, T& all) {
    T one[1] = {in};
    scan<false>(one, one, op, all, fixed{initial});
    out = one[0];
  }

  // Several items a thread.
  template <int n>
  __device__ void InclusiveSum(T (&in)[n], T (&out)[n]) {
    InclusiveScan(in, out, cub::Sum());
  }
  template <int n>
  __device__ void InclusiveSum(T (&in)[n], T (&out)[n], T& all) {
    InclusiveScan(in, out, cub::Sum(), all);
  }
  template <int n, class Prefix>
  __device__ void InclusiveSum(T (&in)[n], T (&out)[n], Prefix& prefix) {
    InclusiveScan(in, out, cub::Sum(), prefix);
  }
  template <int n>
  __device__ void ExclusiveSum(T (&in)[n], T (&out)[n]) {
    ExclusiveScan(in, out, T{}, cub::Sum());
  }
  template <int n>
  __device__ void ExclusiveSum(T (&in)[n], T (&out)[n], T& all) {
    ExclusiveScan(in, out, T{}, cub::Sum(), all);
  }
  template <int n, class Prefix>
  __device__ void ExclusiveSum(T (&in)[n], T (&out)[n], Prefix& prefix) {
    ExclusiveScan(in, out, cub::Sum(), prefix);
  }
  template <int n, class Op>
  __device__ void InclusiveScan(T (&in)[n], T (&out)[n], Op op) {
    T all;
    scan<true>(in, out, op, all, nothing());
  }
  template <int n, class Op>
  __device__ void InclusiveScan(T (&in)[n], T (&out)[n], Op op, T& all) {
    scan<true>(in, out, op, all, nothing());
  }
  template <int n, class Op, class Prefix>
  __device__ void InclusiveScan(T (&in)[n], T (&out)[n], Op op, Prefix& prefix) {
    T all;
    scan<true>(in, out, op, all, prefix);
  }
  template <int n, class Op>
  __device__ void ExclusiveScan(T (&in)[n], T (&out)[n], Op op) {
    T all;
    scan<false>(in, out, op, all, nothing());
  }
  template <int n, class Op, class Prefix>
  requires(!std::is_convertible_v<Prefix, T>) __device__
      void ExclusiveScan(T (&in)[n], T (&out)[n], Op op, Prefix& prefix) {
    T all;
    scan<false>(in, out, op, all, prefix);
  }
  template <int n, class Op>
  requires(!std::is_convertible_v<Op, T>) __device__ void ExclusiveScan(T (&in)[n], T (&out)[n], T initial, Op op) {
    T all;
    scan<false>(in, out, op, all, fixed{initial});
  }
  template <int n, class Op>
  __device__ void ExclusiveScan(T (&in)[n], T (&out)[n], T initial, Op op, T& all) {
    scan<false>(in, out, op, all, fixed{initial});
  }

 private:
  struct nothing {};
  struct fixed {
    T value;
  };

  template <bool inclusive, int n, class Op, class Prefix>
  __device__ void scan(T (&in)[n], T (&out)[n], Op op, T& all, Prefix&& prefix) {
    constexpr bool calls = !std::is_same_v<Prefix, nothing> && !std::is_same_v<Prefix, fixed>;
    const int warp = this->thread_ / 32;
    typename WarpScan<T>::TempStorage none;
    T until_here, before_here{};
    WarpScan<T>(none).Scan(simt_reduce_items(in, op), until_here, before_here, op);
    if (simt::lane() == this->lanes_of_own_warp() - 1) this->temp_.of_warps[warp] = until_here;
    __syncthreads();
    all = this->temp_.of_warps[0];
    T before_warp{};
    for (int i = 1; i < Base::warps; ++i) {
      if (i == warp) before_warp = all;
      all = op(all, this->temp_.of_warps[i]);
    }
    bool any = this->thread_ > 0;
    T before = simt::lane() == 0 ? before_warp : warp == 0 ? before_here : T(op(before_warp, before_here));
    if constexpr (calls) {
      if (warp == 0) {
        const T said = prefix(all);
        if (this->thread_ == 0) this->temp_.prefix = said;
      }
      __syncthreads();
      before = any ? T(op(this->temp_.prefix, before)) : this->temp_.prefix;
      any = true;
    } else if constexpr (std::is_same_v<Prefix, fixed>) {
      before = any ? T(op(prefix.value, before)) : prefix.value;
      any = true;
    }
    for (int i = 0; i < n; ++i) {
      const T until = any ? T(op(before, in[i])) : in[i];
      if (inclusive)
        out[i] = until;
      else if (any)
        out[i] = before;
      before = until;
      any = true;
    }
  }
};

// --- Where items lie ---

template <class T, int items>
struct simt_exchange_storage {
  T of[items];
};
template <class T, int x, int n, bool = false, int y = 1, int z = 1, int = 0>
class BlockExchange : public simt_block<simt_exchange_storage<T, x * y * z * n>, x, y, z> {
  using Base = simt_block<simt_exchange_storage<T, x * y * z * n>, x, y, z>;

 public:
  using Base::Base;
  BlockExchange() = default;

  template <class Out>
  __device__ void StripedToBlocked(const T (&in)[n], Out (&out)[n]) {
    exchange(
        in, out, [this](int i) { return striped(i); }, [this](int i) { return blocked(i); });
  }
  template <class Out>
  __device__ void BlockedToStriped(const T (&in)[n], Out (&out)[n]) {
    exchange(
        in, out, [this](int i) { return blocked(i); }, [this](int i) { return striped(i); });
  }
  template <class Out>
  __device__ void WarpStripedToBlocked(const T (&in)[n], Out (&out)[n]) {
    exchange(
        in, out, [this](int i) { return warp_striped(i); }, [this](int i) { return blocked(i); });
  }
  template <class Out>
  __device__ void BlockedToWarpStriped(const T (&in)[n], Out (&out)[n]) {
    exchange(
        in, out, [this](int i) { return blocked(i); }, [this](int i) { return warp_striped(i); });
  }
  template <class Out, class Rank>
  __device__ void ScatterToBlocked(const T (&in)[n], Out (&out)[n], Rank (&ranks)[n]) {
    exchange(
        in, out, [&](int i) { return int(ranks[i]); }, [this](int i) { return blocked(i); });
  }
  template <class Out, class Rank>
  __device__ void ScatterToStriped(const T (&in)[n], Out (&out)[n], Rank (&ranks)[n]) {
    exchange(
        in, out, [&](int i) { return int(ranks[i]); }, [this](int i) { return striped(i); });
  }
  __device__ void StripedToBlocked(T (&items)[n]) { StripedToBlocked(items, items); }
  __device__ void BlockedToStriped(T (&items)[n]) { BlockedToStriped(items, items); }
  __device__ void WarpStripedToBlocked(T (&items)[n]) { WarpStripedToBlocked(items, items); }
  __device__ void BlockedToWarpStriped(T (&items)[n]) { BlockedToWarpStriped(items, items); }
  template <class Rank>
  __device__ void ScatterToBlocked(T (&items)[n], Rank (&ranks)[n]) {
    ScatterToBlocked(items, items, ranks);
  }
  template <class Rank>
  __device__ void ScatterToStriped(T (&items)[n], Rank (&ranks)[n]) {
    ScatterToStriped(items, items, ranks);
  }

  __device__ int blocked(int i) const { return this->thread_ * n + i; }
  __device__ int striped(int i) const { return this->thread_ + i * Base::threads; }
  __device__ int warp_striped(int i) const {
    return this->thread_ / 32 * 32 * n + simt::lane() + i * this->lanes_of_own_warp();
  }

 private:
  template <class Out, class From, class To>
  __device__ void exchange(const T (&in)[n], Out (&out)[n], From from, To to) {
    for (int i = 0; i < n; ++i) this->temp_.of[from(i)] = in[i];
    __syncthreads();
    for (int i = 0; i < n; ++i) out[i] = this->temp_.of[to(i)];
  }
};

constexpr bool simt_loads_transposed(BlockLoadAlgorithm how) { return how >= BLOCK_LOAD_TRANSPOSE; }
template <class T, int x, int n, BlockLoadAlgorithm how = BLOCK_LOAD_DIRECT, int y = 1, int z = 1, int = 0>
class BlockLoad
    : public simt_block<std::conditional_t<simt_loads_transposed(how), simt_exchange_storage<T, x * y * z * n>, char>,
                        x, y, z> {
  using Base = simt_block<std::conditional_t<simt_loads_transposed(how), simt_exchange_storage<T, x * y * z * n>, char>,
                          x, y, z>;

 public:
  using Base::Base;
  BlockLoad() = default;

  template <class Input>
  __device__ void Load(Input from, T (&items)[n]) {
    load(from, items, [](int) { return true; });
  }
  template <class Input>
  __device__ void Load(Input from, T (&items)[n], int valid) {
    load(from, items, [=](int i) { return i < valid; });
  }
  template <class Input, class Default>
  __device__ void Load(Input from, T (&items)[n], int valid, Default other) {
    for (int i = 0; i < n; ++i) items[i] = other;
    load(from, items, [=](int i) { return i < valid; });
  }

 private:
  template <class Input, class Valid>
  __device__ void load(Input from, T (&items)[n], Valid valid) {
    for (int i = 0; i < n; ++i) {
      const int at = place(i);
      if (valid(at)) items[i] = from[at];
    }
    if constexpr (simt_loads_transposed(how)) {
      for (int i = 0; i < n; ++i) this->temp_.of[place(i)] = items[i];
      __syncthreads();
      for (int i = 0; i < n; ++i) items[i] = this->temp_.of[this->thread_ * n + i];
    }
  }
  __device__ int place(int i) const {
    if constexpr (how == BLOCK_LOAD_DIRECT || how == BLOCK_LOAD_VECTORIZE) return this->thread_ * n + i;
    if constexpr (how >= BLOCK_LOAD_WARP_TRANSPOSE)
      return this->thread_ / 32 * 32 * n + simt::lane() + i * this->lanes_of_own_warp();
    return this->thread_ + i * Base::threads;
  }
};

constexpr bool simt_stores_transposed(BlockStoreAlgorithm how) { return how >= BLOCK_STORE_TRANSPOSE; }
template <class T, int x, int n, BlockStoreAlgorithm how = BLOCK_STORE_DIRECT, int y = 1, int z = 1, int = 0>
class BlockStore
    : public simt_block<std::conditional_t<simt_stores_transposed(how), simt_exchange_storage<T, x * y * z * n>, char>,
                        x, y, z> {
  using Base =
      simt_block<std::conditional_t<simt_stores_transposed(how), simt_exchange_storage<T, x * y * z * n>, char>, x, y,
                 z>;

 public:
  using Base::Base;
  BlockStore() = default;

  template <class Output>
  __device__ void Store(Output to, T (&items)[n]) {
    store(to, items, [](int) { return true; });
  }
  template <class Output>
  __device__ void Store(Output to, T (&items)[n], int valid) {
    store(to, items, [=](int i) { return i < valid; });
  }

 private:
  template <class Output, class Valid>
  __device__ void store(Output to, T (&items)[n], Valid valid) {
    if constexpr (simt_stores_transposed(how)) {
      for (int i = 0; i < n; ++i) this->temp_.of[this->thread_ * n + i] = items[i];
      __syncthreads();
      for (int i = 0; i < n; ++i) items[i] = this->temp_.of[place(i)];
    }
    for (int i = 0; i < n; ++i) {
      const int at = place(i);
      if (valid(at)) to[at] = items[i];
    }
  }
  __device__ int place(int i) const {
    if constexpr (how == BLOCK_STORE_DIRECT || how == BLOCK_STORE_VECTORIZE) return this->thread_ * n + i;
    if constexpr (how >= BLOCK_STORE_WARP_TRANSPOSE)
      return this->thread_ / 32 * 32 * n + simt::lane() + i * this->lanes_of_own_warp();
    return this->thread_ + i * Base::threads;
  }
};

// --- Sorting ---

// Unsigned numbers in the keys' order.
template <class Key>
struct simt_radix {
  using Bits =
      std::conditional_t<sizeof(Key) == 1, std::uint8_t,
                         std::conditional_t<sizeof(Key) == 2, std::uint16_t,
                                            std::conditional_t<sizeof(Key) == 4, std::uint32_t, std::uint64_t>>>;
  static constexpr int bits = sizeof(Key) * 8;
  __host__ __device__ static Bits of(Key key, bool descending) {
    constexpr Bits sign = Bits(1) << (bits - 1);
    constexpr bool is_signed_integer = std::is_integral_v<Key> && std::is_signed_v<Key>;
    Bits raw;
    __builtin_memcpy(&raw, &key, sizeof key);
    if (is_signed_integer)
      raw ^= sign;
    else if (!std::is_integral_v<Key>)  // -0 is as +0
      raw = (raw & sign) && raw != sign ? Bits(~raw) : Bits(raw | sign);
    return descending ? Bits(~raw) : raw;
  }
};

template <class Key, class Value, int items, int warps>
struct simt_sort_storage {
  union {
    Key keys[items];
    Value values[items];
  };
  simt_scan_storage<int, warps> scan;
};
template <class Key, int x, int n, class Value = NullType, int = 4, bool = true,
          BlockScanAlgorithm = BLOCK_SCAN_WARP_SCANS, int = 0, int y = 1, int z = 1, int = 0>
class BlockRadixSort : public simt_block<simt_sort_storage<Key, Value, x * y * z * n, (x * y * z + 31) / 32>, x, y, z> {
  using Base = simt_block<simt_sort_storage<Key, Value, x * y * z * n, (x * y * z + 31) / 32>, x, y, z>;
  using Radix = simt_radix<Key>;

 public:
  using Base::Base;
  BlockRadixSort() = default;

  __device__ void Sort(Key (&keys)[n], int begin = 0, int end = Radix::bits) {
    sort(keys, none(), begin, end, false, false);
  }
  __device__ void SortDescending(Key (&keys)[n], int begin = 0, int end = Radix::bits) {
    sort(keys, none(), begin, end, true, false);
  }
  __device__ void SortBlockedToStriped(Key (&keys)[n], int begin = 0, int end = Radix::bits) {
    sort(keys, none(), begin, end, false, true);
  }
  __device__ void SortDescendingBlockedToStriped(Key (&keys)[n], int begin = 0, int end = Radix::bits) {
    sort(keys, none(), begin, end, true, true);
  }
  __device__ void Sort(Key (&keys)[n], Value (&values)[n], int begin = 0, int end = Radix::bits) {
    sort(keys, values, begin, end, false, false);
  }
  __device__ void SortDescending(Key (&keys)[n], Value (&values)[n], int begin = 0, int end = Radix::bits) {
    sort(keys, values, begin, end, true, false);
  }
  __device__ void SortBlockedToStriped(Key (&keys)[n], Value (&values)[n], int begin = 0, int end = Radix::bits) {
    sort(keys, values, begin, end, false, true);
  }
  __device__ void SortDescendingBlockedToStriped(Key (&keys)[n], Value (&values)[n], int begin = 0,
                                                 int end = Radix::bits) {
    sort(keys, values, begin, end, true, true);
  }

 private:
  using None = NullType (&)[n];
  __device__ static None none() {
    static thread_local NullType of_nobody[n];
    return of_nobody;
  }

  // Bit by bit, from the lowest: those without it go before those with it, in their order.
  template <class V>
  __device__ void sort(Key (&keys)[n], V (&values)[n], int begin, int end, bool descending, bool striped) {
    using Scan = BlockScan<int, x, BLOCK_SCAN_WARP_SCANS, y, z>;
    auto& scan = reinterpret_cast<typename Scan::TempStorage&>(this->temp_.scan);
    for (int bit = begin; bit < end; ++bit) {
      const auto has = [&](int i) { return int(Radix::of(keys[i], descending) >> bit & 1); };
      int without = 0, before, all;
      for (int i = 0; i < n; ++i) without += !has(i);
      Scan(scan).ExclusiveSum(without, before, all);
      int places[n], with = all + this->thread_ * n - before;
      for (int i = 0; i < n; ++i) places[i] = has(i) ? with++ : before++;
      const bool last = bit == end - 1 && striped;
      move(keys, this->temp_.keys, places, last);
      if constexpr (!std::is_same_v<V, NullType>) move(values, this->temp_.values, places, last);
    }
  }
  template <class T>
  __device__ void move(T (&items)[n], T* shared, const int (&places)[n], bool striped) {
    __syncthreads();
    for (int i = 0; i < n; ++i) shared[places[i]] = items[i];
    __syncthreads();
    for (int i = 0; i < n; ++i) items[i] = shared[striped ? this->thread_ + i * Base::threads : this->thread_ * n + i];
  }
};

template <class Key, class Value, int items>
struct simt_merge_storage {
  Key keys[items];
  std::conditional_t<std::is_same_v<Value, NullType>, char, Value> values[std::is_same_v<Value, NullType> ? 1 : items];
};
template <class Key, int x, int n, class Value = NullType, int y = 1, int z = 1>
class BlockMergeSort : public simt_block<simt_merge_storage<Key, Value, x * y * z * n>, x, y, z> {
  using Base = simt_block<simt_merge_storage<Key, Value, x * y * z * n>, x, y, z>;

 public:
  using Base::Base;
  BlockMergeSort() = default;

  template <class Less>
  __device__ void Sort(Key (&keys)[n], Less less) {
    sort(keys, static_cast<Key(*)[n]>(nullptr), less, Base::threads * n);
  }
  template <class Less>
  __device__ void StableSort(Key (&keys)[n], Less less) {
    Sort(keys, less);
  }
  template <class Less>
  __device__ void Sort(Key (&keys)[n], Less less, int valid, Key) {
    sort(keys, static_cast<Key(*)[n]>(nullptr), less, valid);
  }
  template <class Less>
  __device__ void Sort(Key (&keys)[n], Value (&values)[n], Less less) {
    sort(keys, &values, less, Base::threads * n);
  }
  template <class Less>
  __device__ void StableSort(Key (&keys)[n], Value (&values)[n], Less less) {
    Sort(keys, values, less);
  }

 private:
  // Each item counts those that go before it.
  template <class V, class Less>
  __device__ void sort(Key (&keys)[n], V (*values)[n], Less less, int valid) {
    const int first = this->thread_ * n;
    for (int i = 0; i < n; ++i) this->temp_.keys[first + i] = keys[i];
    __syncthreads();
    int places[n];
    for (int i = 0; i < n; ++i) {
      places[i] = first + i;
      if (first + i >= valid) continue;
      places[i] = 0;
      for (int other = 0; other < valid; ++other)
        places[i] +=
            less(this->temp_.keys[other], keys[i]) || (other < first + i && !less(keys[i], this->temp_.keys[other]));
    }
    __syncthreads();
    for (int i = 0; i < n; ++i) this->temp_.keys[places[i]] = keys[i];
    if constexpr (!std::is_same_v<Value, NullType>)
      if (values != nullptr)
        for (int i = 0; i < n; ++i) this->temp_.values[places[i]] = (*values)[i];
    __syncthreads();
    for (int i = 0; i < n; ++i) keys[i] = this->temp_.keys[first + i];
    if constexpr (!std::is_same_v<Value, NullType>)
      if (values != nullptr)
        for (int i = 0; i < n; ++i) (*values)[i] = this->temp_.values[first + i];
  }
};

// --- Neighbours ---

template <class T, int x, int n, int bins, BlockHistogramAlgorithm = BLOCK_HISTO_SORT, int y = 1, int z = 1, int = 0>
class BlockHistogram : public simt_block<char, x, y, z> {
  using Base = simt_block<char, x, y, z>;

 public:
  using Base::Base;
  BlockHistogram() = default;

  template <class Counter>
  __device__ void InitHistogram(Counter (&histogram)[bins]) {
    for (int bin = this->thread_; bin < bins; bin += Base::threads) histogram[bin] = 0;
  }
  template <class Counter>
  __device__ void Composite(T (&items)[n], Counter (&histogram)[bins]) {
    for (int i = 0; i < n; ++i) atomicAdd(&histogram[items[i]], Counter(1));
  }
  template <class Counter>
  __device__ void Histogram(T (&items)[n], Counter (&histogram)[bins]) {
    InitHistogram(histogram);
    __syncthreads();
    Composite(items, histogram);
  }
};

template <class T, int threads>
struct simt_neighbour_storage {
  T of[threads];
};
template <class T, int x, int y = 1, int z = 1, int = 0>
class BlockDiscontinuity : public simt_block<simt_neighbour_storage<T, x * y * z>, x, y, z> {
  using Base = simt_block<simt_neighbour_storage<T, x * y * z>, x, y, z>;

 public:
  using Base::Base;
  BlockDiscontinuity() = default;

  template <int n, class Flag, class Op>
  __device__ void FlagHeads(Flag (&flags)[n], T (&items)[n], Op op) {
    heads(flags, items, op, static_cast<const T*>(nullptr));
  }
  template <int n, class Flag, class Op>
  __device__ void FlagHeads(Flag (&flags)[n], T (&items)[n], Op op, T before) {
    heads(flags, items, op, &before);
  }
  template <int n, class Flag, class Op>
  __device__ void FlagTails(Flag (&flags)[n], T (&items)[n], Op op) {
    tails(flags, items, op, static_cast<const T*>(nullptr));
  }
  template <int n, class Flag, class Op>
  __device__ void FlagTails(Flag (&flags)[n], T (&items)[n], Op op, T after) {
    tails(flags, items, op, &after);
  }

 private:
  template <int n, class Flag, class Op>
  __device__ void heads(Flag (&flags)[n], T (&items)[n], Op op, const T* before) {
    this->temp_.of[this->thread_] = items[n - 1];
    __syncthreads();
    for (int i = n - 1; i > 0; --i) flags[i] = op(items[i - 1], items[i]);
    if (this->thread_ > 0)
      flags[0] = op(this->temp_.of[this->thread_ - 1], items[0]);
    else
      flags[0] = before != nullptr ? Flag(op(*before, items[0])) : Flag(1);
  }
  template <int n, class Flag, class Op>
  __device__ void tails(Flag (&flags)[n], T (&items)[n], Op op, const T* after) {
    this->temp_.of[this->thread_] = items[0];
    __syncthreads();
    for (int i = 0; i < n - 1; ++i) flags[i] = op(items[i], items[i + 1]);
    if (this->thread_ < Base::threads - 1)
      flags[n - 1] = op(items[n - 1], this->temp_.of[this->thread_ + 1]);
    else
      flags[n - 1] = after != nullptr ? Flag(op(items[n - 1], *after)) : Flag(1);
  }
};

template <class T, int x, int y = 1, int z = 1, int = 0>
class BlockAdjacentDifference : public simt_block<simt_neighbour_storage<T, x * y * z>, x, y, z> {
  using Base = simt_block<simt_neighbour_storage<T, x * y * z>, x, y, z>;

 public:
  using Base::Base;
  BlockAdjacentDifference() = default;

  template <int n, class Out, class Op>
  __device__ void SubtractLeft(T (&in)[n], Out (&out)[n], Op op) {
    this->temp_.of[this->thread_] = in[n - 1];
    __syncthreads();
    T first = in[0];
    for (int i = n - 1; i > 0; --i) out[i] = op(in[i], in[i - 1]);
    out[0] = this->thread_ > 0 ? Out(op(first, this->temp_.of[this->thread_ - 1])) : Out(first);
  }
  template <int n, class Out, class Op>
  __device__ void SubtractRight(T (&in)[n], Out (&out)[n], Op op) {
    this->temp_.of[this->thread_] = in[0];
    __syncthreads();
    T last = in[n - 1];
    for (int i = 0; i < n - 1; ++i) out[i] = op(in[i], in[i + 1]);
    out[n - 1] = this->thread_ < Base::threads - 1 ? Out(op(last, this->temp_.of[this->thread_ + 1])) : Out(last);
  }
};

template <class T, int x, int y = 1, int z = 1, int = 0>
class BlockShuffle : public simt_block<simt_neighbour_storage<T, x * y * z>, x, y, z> {
  using Base = simt_block<simt_neighbour_storage<T, x * y * z>, x, y, z>;

 public:
  using Base::Base;
  BlockShuffle() = default;

  __device__ void Offset(T in, T& out, int distance = 1) {
    this->temp_.of[this->thread_] = in;
    __syncthreads();
    const int from = this->thread_ + distance;
    if (from >= 0 && from < Base::threads) out = this->temp_.of[from];
  }
  __device__ void Rotate(T in, T& out, unsigned distance = 1) {
    this->temp_.of[this->thread_] = in;
    __syncthreads();
    out = this->temp_.of[(this->thread_ + distance) % Base::threads];
  }
  // The items of all threads move by one place; the first, or the last, stays.
  template <int n>
  __device__ void Up(T (&in)[n], T (&out)[n]) {
    this->temp_.of[this->thread_] = in[n - 1];
    __syncthreads();
    for (int i = n - 1; i > 0; --i) out[i] = in[i - 1];
    if (this->thread_ > 0) out[0] = this->temp_.of[this->thread_ - 1];
  }
  template <int n>
  __device__ void Down(T (&in)[n], T (&out)[n]) {
    this->temp_.of[this->thread_] = in[0];
    __syncthreads();
    for (int i = 0; i < n - 1; ++i) out[i] = in[i + 1];
    if (this->thread_ < Base::threads - 1) out[n - 1] = this->temp_.of[this->thread_ + 1];
  }
};

}  // namespace cub
