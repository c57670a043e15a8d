// CUB's algorithms of the whole device, each as a kernel of one thread that takes the items in order, in the stream and
// in the temporary storage that the caller gives. What they read and write is checked as any kernel's; what is counted
// is that thread's, not CUB's. See cub.h.
#pragma once

#include "simt/libraries/cub/block.h"

namespace cub {

template <class Algorithm>
__global__ void simt_one_thread(Algorithm algorithm) {
  algorithm();
}

// Shows that the thread has not hung: a single thread waits for nobody.
__device__ inline void simt_go_on(std::size_t step) {
  if (step % 4096 == 4095) __syncthreads();
}

template <class Algorithm>
__global__ void simt_for_each(std::size_t n, Algorithm algorithm) {
  const std::size_t i = std::size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) algorithm(i);
}

// As every function here begins: asks for so much storage, or runs with it.
template <class Algorithm>
cudaError_t simt_run(void* storage, std::size_t& given, std::size_t needed, cudaStream_t stream, Algorithm algorithm) {
  if (storage == nullptr) {
    given = needed;
    return cudaSuccess;
  }
  if (given < needed) return cudaErrorInvalidValue;
  simt_one_thread<<<1, 1, 0, stream>>>(algorithm);
  return cudaPeekAtLastError();
}
template <class Algorithm>
cudaError_t simt_run(void* storage, std::size_t& given, cudaStream_t stream, Algorithm algorithm) {
  return simt_run(storage, given, 1, stream, algorithm);
}

template <class Iterator>
using simt_value = typename std::iterator_traits<Iterator>::value_type;
// What an output is made of; an iterator that does not say takes what it gets.
template <class Output, class Input>
using simt_output =
    std::conditional_t<std::is_void_v<simt_value<Output>> || std::is_same_v<simt_value<Output>, simt_nothing>, Input,
                       simt_value<Output>>;
template <class Op, class Initial, class Input>
using simt_sum = std::decay_t<std::invoke_result_t<Op, Initial, Input>>;

template <class T>
struct simt_limits {  // what Min and Max begin with
  static constexpr T lowest() {
    return std::numeric_limits<T>::has_infinity ? T(-std::numeric_limits<T>::infinity())
                                                : std::numeric_limits<T>::lowest();
  }
  static constexpr T highest() {
    return std::numeric_limits<T>::has_infinity ? T(std::numeric_limits<T>::infinity()) : std::numeric_limits<T>::max();
  }
};

// Of `n` items of an iterator that has indices.
template <class Op, class Initial, class Input>
__device__ auto simt_reduce(Input in, std::size_t from, std::size_t to, Op op, Initial initial) {
  simt_sum<Op, Initial, simt_value<Input>> all = initial;
  for (std::size_t i = from; i < to; ++i) {
    all = op(all, in[i]);
    simt_go_on(i);
  }
  return all;
}

struct DeviceReduce {
  template <class Input, class Output, class Op, class T, class Count>
  static cudaError_t Reduce(void* storage, std::size_t& bytes, Input in, Output out, Count n, Op op, T initial,
                            cudaStream_t stream = nullptr, bool = false) {
    return simt_run(storage, bytes, stream, [=]() mutable { *out = simt_reduce(in, 0, std::size_t(n), op, initial); });
  }
  template <class Input, class Output, class Count>
  static cudaError_t Sum(void* storage, std::size_t& bytes, Input in, Output out, Count n,
                         cudaStream_t stream = nullptr, bool = false) {
    return Reduce(storage, bytes, in, out, n, cub::Sum(), simt_output<Output, simt_value<Input>>{}, stream);
  }
  template <class Input, class Output, class Count>
  static cudaError_t Min(void* storage, std::size_t& bytes, Input in, Output out, Count n,
                         cudaStream_t stream = nullptr, bool = false) {
    return Reduce(storage, bytes, in, out, n, cub::Min(), simt_limits<simt_value<Input>>::highest(), stream);
  }
  template <class Input, class Output, class Count>
  static cudaError_t Max(void* storage, std::size_t& bytes, Input in, Output out, Count n,
                         cudaStream_t stream = nullptr, bool = false) {
    return Reduce(storage, bytes, in, out, n, cub::Max(), simt_limits<simt_value<Input>>::lowest(), stream);
  }
  template <class Input, class Output, class Count>
  static cudaError_t ArgMin(void* storage, std::size_t& bytes, Input in, Output out, Count n,
                            cudaStream_t stream = nullptr, bool = false) {
    return arg(storage, bytes, in, n, cub::ArgMin(), simt_limits<simt_value<Input>>::highest(), stream,
               [=](const auto& best) mutable { *out = best; });
  }
  template <class Input, class Output, class Count>
  static cudaError_t ArgMax(void* storage, std::size_t& bytes, Input in, Output out, Count n,
                            cudaStream_t stream = nullptr, bool = false) {
    return arg(storage, bytes, in, n, cub::ArgMax(), simt_limits<simt_value<Input>>::lowest(), stream,
               [=](const auto& best) mutable { *out = best; });
  }
  template <class Input, class Output, class Index>
  static cudaError_t ArgMin(void* storage, std::size_t& bytes, Input in, Output out, Index index, std::int64_t n,
                            cudaStream_t stream = nullptr) requires requires {
    *index;
  }
  {
    return arg(storage, bytes, in, n, cub::ArgMin(), simt_limits<simt_value<Input>>::highest(), stream,
               [=](const auto& best) mutable { *out = best.value, *index = best.key; });
  }
  template <class Input, class Output, class Index>
  static cudaError_t ArgMax(void* storage, std::size_t& bytes, Input in, Output out, Index index, std::int64_t n,
                            cudaStream_t stream = nullptr) requires requires {
    *index;
  }
  {
    return arg(storage, bytes, in, n, cub::ArgMax(), simt_limits<simt_value<Input>>::lowest(), stream,
               [=](const auto& best) mutable { *out = best.value, *index = best.key; });
  }
  template <class Input, class Output, class Op, class Transform, class T, class Count>
  static cudaError_t TransformReduce(void* storage, std::size_t& bytes, Input in, Output out, Count n, Op op,
                                     Transform transform, T initial, cudaStream_t stream = nullptr) {
    using Item = std::decay_t<std::invoke_result_t<Transform, simt_value<Input>>>;
    return Reduce(storage, bytes, TransformInputIterator<Item, Transform, Input>(in, transform), out, n, op, initial,
                  stream);
  }
  template <class Keys, class Unique, class Values, class Output, class Runs, class Op, class Count>
  static cudaError_t ReduceByKey(void* storage, std::size_t& bytes, Keys keys, Unique unique, Values values, Output out,
                                 Runs runs, Op op, Count n, cudaStream_t stream = nullptr, bool = false) {
    return simt_run(storage, bytes, stream, [=]() mutable {
      std::size_t found = 0;
      for (std::size_t i = 0; i < std::size_t(n);) {
        const simt_value<Keys> key = keys[i];
        simt_sum<Op, simt_value<Values>, simt_value<Values>> all = values[i];
        for (++i; i < std::size_t(n) && keys[i] == key; ++i) all = op(all, values[i]), simt_go_on(i);
        unique[found] = key;
        out[found++] = all;
        simt_go_on(i);
      }
      *runs = found;
    });
  }

 private:
  template <class Input, class Count, class Op, class T, class Write>
  static cudaError_t arg(void* storage, std::size_t& bytes, Input in, Count n, Op op, T initial, cudaStream_t stream,
                         Write write) {
    using Pair = KeyValuePair<int, simt_value<Input>>;
    return simt_run(storage, bytes, stream, [=]() mutable {
      Pair best = n > 0 ? Pair{0, in[0]} : Pair{1, initial};
      for (std::size_t i = 1; i < std::size_t(n); ++i) best = op(best, Pair{int(i), in[i]}), simt_go_on(i);
      write(best);
    });
  }
};

struct DeviceSegmentedReduce {
  template <class Input, class Output, class Begin, class End, class Op, class T>
  static cudaError_t Reduce(void* storage, std::size_t& bytes, Input in, Output out, std::int64_t segments, Begin begin,
                            End end, Op op, T initial, cudaStream_t stream = nullptr, bool = false) {
    return simt_run(storage, bytes, stream, [=]() mutable {
      for (std::int64_t s = 0; s < segments; ++s) {
        out[s] = simt_reduce(in, std::size_t(begin[s]), std::size_t(end[s]), op, initial);
        simt_go_on(std::size_t(s));
      }
    });
  }
  template <class Input, class Output, class Begin, class End>
  static cudaError_t Sum(void* storage, std::size_t& bytes, Input in, Output out, std::int64_t segments, Begin begin,
                         End end, cudaStream_t stream = nullptr, bool = false) {
    return Reduce(storage, bytes, in, out, segments, begin, end, cub::Sum(), simt_output<Output, simt_value<Input>>{},
                  stream);
  }
  template <class Input, class Output, class Begin, class End>
  static cudaError_t Min(void* storage, std::size_t& bytes, Input in, Output out, std::int64_t segments, Begin begin,
                         End end, cudaStream_t stream = nullptr, bool = false) {
    return Reduce(storage, bytes, in, out, segments, begin, end, cub::Min(), simt_limits<simt_value<Input>>::highest(),
                  stream);
  }
  template <class Input, class Output, class Begin, class End>
  static cudaError_t Max(void* storage, std::size_t& bytes, Input in, Output out, std::int64_t segments, Begin begin,
                         End end, cudaStream_t stream = nullptr, bool = false) {
    return Reduce(storage, bytes, in, out, segments, begin, end, cub::Max(), simt_limits<simt_value<Input>>::lowest(),
                  stream);
  }
};

struct DeviceScan {
  template <class Input, class Output, class Op, class T, class Count>
  static cudaError_t ExclusiveScan(void* storage, std::size_t& bytes, Input in, Output out, Op op, T initial, Count n,
                                   cudaStream_t stream = nullptr, bool = false) {
    return simt_run(storage, bytes, stream, [=]() mutable {
      simt_sum<Op, T, simt_value<Input>> before = initial;
      for (std::size_t i = 0; i < std::size_t(n); ++i) {
        const auto until = op(before, in[i]);  // first, as `out` may be `in`
        out[i] = before;
        before = until;
        simt_go_on(i);
      }
    });
  }
  template <class Input, class Output, class Op, class Count>
  static cudaError_t InclusiveScan(void* storage, std::size_t& bytes, Input in, Output out, Op op, Count n,
                                   cudaStream_t stream = nullptr, bool = false) {
    return simt_run(storage, bytes, stream, [=]() mutable {
      if (n == 0) return;
      simt_sum<Op, simt_value<Input>, simt_value<Input>> until = in[0];
      out[0] = until;
      for (std::size_t i = 1; i < std::size_t(n); ++i) out[i] = until = op(until, in[i]), simt_go_on(i);
    });
  }
  template <class Input, class Output, class Op, class T, class Count>
  static cudaError_t InclusiveScanInit(void* storage, std::size_t& bytes, Input in, Output out, Op op, T initial,
                                       Count n, cudaStream_t stream = nullptr) {
    return simt_run(storage, bytes, stream, [=]() mutable {
      simt_sum<Op, T, simt_value<Input>> until = initial;
      for (std::size_t i = 0; i < std::size_t(n); ++i) out[i] = until = op(until, in[i]), simt_go_on(i);
    });
  }
  template <class Input, class Output, class Count>
  static cudaError_t ExclusiveSum(void* storage, std::size_t& bytes, Input in, Output out, Count n,
                                  cudaStream_t stream = nullptr, bool = false) {
    return ExclusiveScan(storage, bytes, in, out, cub::Sum(), simt_value<Input>{}, n, stream);
  }
  template <class Input, class Output, class Count>
  static cudaError_t InclusiveSum(void* storage, std::size_t& bytes, Input in, Output out, Count n,
                                  cudaStream_t stream = nullptr, bool = false) {
    return InclusiveScan(storage, bytes, in, out, cub::Sum(), n, stream);
  }
  // In place.
  template <class Data, class Count>
  requires std::is_integral_v<Count>
  static cudaError_t ExclusiveSum(void* storage, std::size_t& bytes, Data data, Count n,
                                  cudaStream_t stream = nullptr) {
    return ExclusiveSum(storage, bytes, data, data, n, stream);
  }
  template <class Data, class Count>
  requires std::is_integral_v<Count>
  static cudaError_t InclusiveSum(void* storage, std::size_t& bytes, Data data, Count n,
                                  cudaStream_t stream = nullptr) {
    return InclusiveSum(storage, bytes, data, data, n, stream);
  }

  template <class Keys, class Input, class Output, class Op, class Count, class Equal = Equality>
  static cudaError_t InclusiveScanByKey(void* storage, std::size_t& bytes, Keys keys, Input in, Output out, Op op,
                                        Count n, Equal equal = {}, cudaStream_t stream = nullptr) {
    return simt_run(storage, bytes, stream, [=]() mutable {
      simt_sum<Op, simt_value<Input>, simt_value<Input>> until{};
      for (std::size_t i = 0; i < std::size_t(n); ++i) {
        until = i > 0 && equal(keys[i - 1], keys[i]) ? op(until, in[i]) : in[i];
        out[i] = until;
        simt_go_on(i);
      }
    });
  }
  template <class Keys, class Input, class Output, class Op, class T, class Count, class Equal = Equality>
  static cudaError_t ExclusiveScanByKey(void* storage, std::size_t& bytes, Keys keys, Input in, Output out, Op op,
                                        T initial, Count n, Equal equal = {}, cudaStream_t stream = nullptr) {
    return simt_run(storage, bytes, stream, [=]() mutable {
      simt_sum<Op, T, simt_value<Input>> before = initial;
      for (std::size_t i = 0; i < std::size_t(n); ++i) {
        if (i > 0 && !equal(keys[i - 1], keys[i])) before = initial;
        const auto until = op(before, in[i]);
        out[i] = before;
        before = until;
        simt_go_on(i);
      }
    });
  }
  template <class Keys, class Input, class Output, class Count, class Equal = Equality>
  static cudaError_t InclusiveSumByKey(void* storage, std::size_t& bytes, Keys keys, Input in, Output out, Count n,
                                       Equal equal = {}, cudaStream_t stream = nullptr) {
    return InclusiveScanByKey(storage, bytes, keys, in, out, cub::Sum(), n, equal, stream);
  }
  template <class Keys, class Input, class Output, class Count, class Equal = Equality>
  static cudaError_t ExclusiveSumByKey(void* storage, std::size_t& bytes, Keys keys, Input in, Output out, Count n,
                                       Equal equal = {}, cudaStream_t stream = nullptr) {
    return ExclusiveScanByKey(storage, bytes, keys, in, out, cub::Sum(), simt_value<Input>{}, n, equal, stream);
  }
};

// The chosen items go first, in their order; the others follow from the end backwards, if they are kept.
template <class Input, class Output, class Chosen>
__device__ std::size_t simt_choose(Input in, Output out, std::size_t n, Chosen chosen, bool keeps_others) {
  std::size_t first = 0, last = n;
  for (std::size_t i = 0; i < n; ++i) {
    const simt_value<Input> item = in[i];
    if (chosen(i, item))
      out[first++] = item;
    else if (keeps_others)
      out[--last] = item;
    simt_go_on(i);
  }
  return first;
}

struct DeviceSelect {
  template <class Input, class Flags, class Output, class Selected, class Count>
  static cudaError_t Flagged(void* storage, std::size_t& bytes, Input in, Flags flags, Output out, Selected selected,
                             Count n, cudaStream_t stream = nullptr, bool = false) {
    return simt_run(storage, bytes, stream, [=]() mutable {
      *selected = simt_choose(
          in, out, std::size_t(n), [&](std::size_t i, auto&) { return bool(flags[i]); }, false);
    });
  }
  template <class Data, class Flags, class Selected, class Count>
  requires std::is_integral_v<Count>
  static cudaError_t Flagged(void* storage, std::size_t& bytes, Data data, Flags flags, Selected selected, Count n,
                             cudaStream_t stream = nullptr) {
    return Flagged(storage, bytes, data, flags, data, selected, n, stream);
  }
  template <class Input, class Output, class Selected, class Count, class Select>
  requires std::is_integral_v<Count>
  static cudaError_t If(void* storage, std::size_t& bytes, Input in, Output out, Selected selected, Count n,
                        Select select, cudaStream_t stream = nullptr, bool = false) {
    return simt_run(storage, bytes, stream, [=]() mutable {
      *selected = simt_choose(
          in, out, std::size_t(n), [&](std::size_t, auto& x) { return bool(select(x)); }, false);
    });
  }
  template <class Data, class Selected, class Count, class Select>
  requires std::is_integral_v<Count>
  static cudaError_t If(void* storage, std::size_t& bytes, Data data, Selected selected, Count n, Select select,
                        cudaStream_t stream = nullptr) {
    return If(storage, bytes, data, data, selected, n, select, stream);
  }
  template <class Input, class Output, class Selected, class Count>
  static cudaError_t Unique(void* storage, std::size_t& bytes, Input in, Output out, Selected selected, Count n,
                            cudaStream_t stream = nullptr, bool = false) {
    return simt_run(storage, bytes, stream, [=]() mutable {
      *selected = simt_choose(
          in, out, std::size_t(n), [&](std::size_t i, auto& x) { return i == 0 || !(in[i - 1] == x); }, false);
    });
  }
  template <class Keys, class Values, class KeysOut, class ValuesOut, class Selected, class Count>
  static cudaError_t UniqueByKey(void* storage, std::size_t& bytes, Keys keys, Values values, KeysOut keys_out,
                                 ValuesOut values_out, Selected selected, Count n, cudaStream_t stream = nullptr) {
    return simt_run(storage, bytes, stream, [=]() mutable {
      std::size_t found = 0;
      for (std::size_t i = 0; i < std::size_t(n); ++i) {
        simt_go_on(i);
        if (i > 0 && keys[i - 1] == keys[i]) continue;
        keys_out[found] = keys[i];
        values_out[found++] = values[i];
      }
      *selected = found;
    });
  }
};

struct DevicePartition {
  template <class Input, class Flags, class Output, class Selected, class Count>
  static cudaError_t Flagged(void* storage, std::size_t& bytes, Input in, Flags flags, Output out, Selected selected,
                             Count n, cudaStream_t stream = nullptr, bool = false) {
    return simt_run(storage, bytes, stream, [=]() mutable {
      *selected = simt_choose(
          in, out, std::size_t(n), [&](std::size_t i, auto&) { return bool(flags[i]); }, true);
    });
  }
  template <class Input, class Output, class Selected, class Count, class Select>
  static cudaError_t If(void* storage, std::size_t& bytes, Input in, Output out, Selected selected, Count n,
                        Select select, cudaStream_t stream = nullptr, bool = false) {
    return simt_run(storage, bytes, stream, [=]() mutable {
      *selected = simt_choose(
          in, out, std::size_t(n), [&](std::size_t, auto& x) { return bool(select(x)); }, true);
    });
  }
};

struct DeviceRunLengthEncode {
  template <class Input, class Unique, class Lengths, class Runs, class Count>
  static cudaError_t Encode(void* storage, std::size_t& bytes, Input in, Unique unique, Lengths lengths, Runs runs,
                            Count n, cudaStream_t stream = nullptr, bool = false) {
    return DeviceReduce::ReduceByKey(storage, bytes, in, unique, ConstantInputIterator<int>(1), lengths, runs,
                                     cub::Sum(), n, stream);
  }
  template <class Input, class Offsets, class Lengths, class Runs, class Count>
  static cudaError_t NonTrivialRuns(void* storage, std::size_t& bytes, Input in, Offsets offsets, Lengths lengths,
                                    Runs runs, Count n, cudaStream_t stream = nullptr, bool = false) {
    return simt_run(storage, bytes, stream, [=]() mutable {
      std::size_t found = 0;
      for (std::size_t i = 0; i < std::size_t(n);) {
        const std::size_t begin = i;
        for (++i; i < std::size_t(n) && in[i] == in[begin]; ++i) simt_go_on(i);
        if (i - begin > 1) offsets[found] = begin, lengths[found++] = i - begin;
        simt_go_on(begin);
      }
      *runs = found;
    });
  }
};

struct DeviceHistogram {
  template <class Samples, class Counter, class Level, class Count>
  static cudaError_t HistogramEven(void* storage, std::size_t& bytes, Samples in, Counter* histogram, int levels,
                                   Level lower, Level upper, Count n, cudaStream_t stream = nullptr, bool = false) {
    Counter* one[1] = {histogram};
    const int its_levels[1] = {levels};
    const Level its_lower[1] = {lower}, its_upper[1] = {upper};
    return MultiHistogramEven<1, 1>(storage, bytes, in, one, its_levels, its_lower, its_upper, n, stream);
  }
  template <class Samples, class Counter, class Level, class Count>
  static cudaError_t HistogramRange(void* storage, std::size_t& bytes, Samples in, Counter* histogram, int levels,
                                    const Level* level, Count n, cudaStream_t stream = nullptr, bool = false) {
    return simt_run(storage, bytes, stream, [=]() mutable {
      for (int bin = 0; bin < levels - 1; ++bin) histogram[bin] = 0;
      for (std::size_t i = 0; i < std::size_t(n); ++i) {
        simt_go_on(i);
        const auto sample = in[i];
        if (sample < level[0] || !(sample < level[levels - 1])) continue;
        int low = 0, high = levels - 1;  // level[low] <= sample < level[high]
        while (high - low > 1) (sample < level[(low + high) / 2] ? high : low) = (low + high) / 2;
        ++histogram[low];
      }
    });
  }
  // `channels` samples lie together, of which the first `active` are counted.
  template <int channels, int active, class Samples, class Counter, class Level, class Count, class Levels>
  static cudaError_t MultiHistogramEven(void* storage, std::size_t& bytes, Samples in, Counter* (&histogram)[active],
                                        const Levels (&levels)[active], const Level (&lower)[active],
                                        const Level (&upper)[active], Count pixels, cudaStream_t stream = nullptr,
                                        bool = false) {
    struct Channel {
      Counter* histogram;
      int bins;
      Level lower, upper;
    };
    struct {
      Channel of[active];
    } all;
    for (int c = 0; c < active; ++c) all.of[c] = {histogram[c], int(levels[c]) - 1, lower[c], upper[c]};
    return simt_run(storage, bytes, stream, [=]() mutable {
      for (int c = 0; c < active; ++c)
        for (int bin = 0; bin < all.of[c].bins; ++bin) all.of[c].histogram[bin] = 0;
      for (std::size_t i = 0; i < std::size_t(pixels); ++i) {
        simt_go_on(i);
        for (int c = 0; c < active; ++c) {
          const Channel& channel = all.of[c];
          const auto sample = in[i * channels + c];
          if (sample < channel.lower || !(sample < channel.upper)) continue;
          int bin;
          if constexpr (std::is_integral_v<Level>)
            bin =
                int(std::int64_t(sample - channel.lower) * channel.bins / std::int64_t(channel.upper - channel.lower));
          else
            bin = int((sample - channel.lower) * (Level(channel.bins) / (channel.upper - channel.lower)));
          ++channel.histogram[bin < channel.bins ? bin : channel.bins - 1];
        }
      }
    });
  }
};

struct DeviceRadixSort {
  template <class Key, class Value, class Count>
  static cudaError_t SortPairs(void* storage, std::size_t& bytes, const Key* keys_in, Key* keys_out,
                               const Value* values_in, Value* values_out, Count n, int begin = 0,
                               int end = int(sizeof(Key) * 8), cudaStream_t stream = nullptr, bool = false) {
    return sort(storage, bytes, keys_in, keys_out, values_in, values_out, std::size_t(n), false, begin, end, stream);
  }
  template <class Key, class Value, class Count>
  static cudaError_t SortPairsDescending(void* storage, std::size_t& bytes, const Key* keys_in, Key* keys_out,
                                         const Value* values_in, Value* values_out, Count n, int begin = 0,
                                         int end = int(sizeof(Key) * 8), cudaStream_t stream = nullptr, bool = false) {
    return sort(storage, bytes, keys_in, keys_out, values_in, values_out, std::size_t(n), true, begin, end, stream);
  }
  template <class Key, class Count>
  static cudaError_t SortKeys(void* storage, std::size_t& bytes, const Key* in, Key* out, Count n, int begin = 0,
                              int end = int(sizeof(Key) * 8), cudaStream_t stream = nullptr, bool = false) {
    return sort<Key, NullType>(storage, bytes, in, out, nullptr, nullptr, std::size_t(n), false, begin, end, stream);
  }
  template <class Key, class Count>
  static cudaError_t SortKeysDescending(void* storage, std::size_t& bytes, const Key* in, Key* out, Count n,
                                        int begin = 0, int end = int(sizeof(Key) * 8), cudaStream_t stream = nullptr,
                                        bool = false) {
    return sort<Key, NullType>(storage, bytes, in, out, nullptr, nullptr, std::size_t(n), true, begin, end, stream);
  }
  // The result is in what is then the current buffer of each.
  template <class Key, class Value, class Count>
  static cudaError_t SortPairs(void* storage, std::size_t& bytes, DoubleBuffer<Key>& keys, DoubleBuffer<Value>& values,
                               Count n, int begin = 0, int end = int(sizeof(Key) * 8), cudaStream_t stream = nullptr,
                               bool = false) {
    return pairs(storage, bytes, keys, values, std::size_t(n), false, begin, end, stream);
  }
  template <class Key, class Value, class Count>
  static cudaError_t SortPairsDescending(void* storage, std::size_t& bytes, DoubleBuffer<Key>& keys,
                                         DoubleBuffer<Value>& values, Count n, int begin = 0,
                                         int end = int(sizeof(Key) * 8), cudaStream_t stream = nullptr, bool = false) {
    return pairs(storage, bytes, keys, values, std::size_t(n), true, begin, end, stream);
  }
  template <class Key, class Count>
  static cudaError_t SortKeys(void* storage, std::size_t& bytes, DoubleBuffer<Key>& keys, Count n, int begin = 0,
                              int end = int(sizeof(Key) * 8), cudaStream_t stream = nullptr, bool = false) {
    DoubleBuffer<NullType> none;
    return pairs(storage, bytes, keys, none, std::size_t(n), false, begin, end, stream);
  }
  template <class Key, class Count>
  static cudaError_t SortKeysDescending(void* storage, std::size_t& bytes, DoubleBuffer<Key>& keys, Count n,
                                        int begin = 0, int end = int(sizeof(Key) * 8), cudaStream_t stream = nullptr,
                                        bool = false) {
    DoubleBuffer<NullType> none;
    return pairs(storage, bytes, keys, none, std::size_t(n), true, begin, end, stream);
  }

 private:
  template <class Key, class Value>
  static cudaError_t pairs(void* storage, std::size_t& bytes, DoubleBuffer<Key>& keys, DoubleBuffer<Value>& values,
                           std::size_t n, bool descending, int begin, int end, cudaStream_t stream) {
    const cudaError_t error = sort<Key, Value>(storage, bytes, keys.Current(), keys.Alternate(), values.Current(),
                                               values.Alternate(), n, descending, begin, end, stream);
    if (storage != nullptr) keys.selector ^= 1, values.selector ^= 1;
    return error;
  }

  // By eight bits at a time, from the lowest; from one array to another and back, so that the last pass ends in `out`.
  template <class Key, class Value>
  static cudaError_t sort(void* storage, std::size_t& bytes, const Key* keys_in, Key* keys_out, const Value* values_in,
                          Value* values_out, std::size_t n, bool descending, int begin, int end, cudaStream_t stream) {
    constexpr bool has_values = !std::is_same_v<Value, NullType>;
    const std::size_t of_keys = CUB_ROUND_UP_NEAREST(n * sizeof(Key) + 1, 256);
    const std::size_t needed = of_keys + (has_values ? n * sizeof(Value) : 0) + 256;
    return simt_run(storage, bytes, needed, stream, [=] {
      // Aligned by hand: the caller's storage may begin anywhere.
      char* const base = reinterpret_cast<char*>(CUB_ROUND_UP_NEAREST(reinterpret_cast<std::uintptr_t>(storage), 256));
      Key* const keys_between = reinterpret_cast<Key*>(base);
      Value* const values_between = reinterpret_cast<Value*>(base + of_keys);
      const int passes = end > begin ? (end - begin + 7) / 8 : 1;
      const Key* from = keys_in;
      const Value* values_from = values_in;
      for (int pass = 0; pass < passes; ++pass) {
        const bool to_out = (passes - pass) % 2 == 1;
        Key* const to = to_out ? keys_out : keys_between;
        Value* const values_to = to_out ? values_out : values_between;
        const int shift = begin + pass * 8, width = end - shift < 8 ? end - shift : 8;
        const auto digit = [=](const Key& key) {
          return width > 0 ? unsigned(simt_radix<Key>::of(key, descending) >> shift) & ((1u << width) - 1) : 0u;
        };
        std::size_t places[257] = {};
        for (std::size_t i = 0; i < n; ++i) ++places[digit(from[i]) + 1], simt_go_on(i);
        for (int d = 0; d < 256; ++d) places[d + 1] += places[d];
        for (std::size_t i = 0; i < n; ++i) {
          const Key key = from[i];
          const std::size_t place = places[digit(key)]++;
          to[place] = key;
          if constexpr (has_values) values_to[place] = values_from[i];
          simt_go_on(i);
        }
        from = to;
        values_from = values_to;
      }
    });
  }
};

struct DeviceMergeSort {
  template <class Keys, class Count, class Less>
  static cudaError_t SortKeys(void* storage, std::size_t& bytes, Keys keys, Count n, Less less,
                              cudaStream_t stream = nullptr, bool = false) {
    return SortKeysCopy(storage, bytes, keys, keys, n, less, stream);
  }
  template <class Keys, class Count, class Less>
  static cudaError_t StableSortKeys(void* storage, std::size_t& bytes, Keys keys, Count n, Less less,
                                    cudaStream_t stream = nullptr, bool = false) {
    return SortKeysCopy(storage, bytes, keys, keys, n, less, stream);
  }
  template <class Keys, class Output, class Count, class Less>
  static cudaError_t SortKeysCopy(void* storage, std::size_t& bytes, Keys keys, Output out, Count n, Less less,
                                  cudaStream_t stream = nullptr, bool = false) {
    return sort(storage, bytes, keys, ConstantInputIterator<char>(0), out, DiscardOutputIterator<>(), n, less, stream);
  }
  template <class Keys, class Values, class Count, class Less>
  static cudaError_t SortPairs(void* storage, std::size_t& bytes, Keys keys, Values values, Count n, Less less,
                               cudaStream_t stream = nullptr, bool = false) {
    return sort(storage, bytes, keys, values, keys, values, n, less, stream);
  }
  template <class Keys, class Values, class Count, class Less>
  static cudaError_t StableSortPairs(void* storage, std::size_t& bytes, Keys keys, Values values, Count n, Less less,
                                     cudaStream_t stream = nullptr, bool = false) {
    return sort(storage, bytes, keys, values, keys, values, n, less, stream);
  }

 private:
  // Runs of one, two, four, .. items are merged.
  template <class Keys, class Values, class KeysOut, class ValuesOut, class Count, class Less>
  static cudaError_t sort(void* storage, std::size_t& bytes, Keys keys, Values values, KeysOut keys_out,
                          ValuesOut values_out, Count count, Less less, cudaStream_t stream) {
    struct Item {
      simt_value<Keys> key;
      simt_value<Values> value;
    };
    const std::size_t n = std::size_t(count);
    return simt_run(storage, bytes, 2 * n * sizeof(Item) + 256, stream, [=]() mutable {
      Item* from = reinterpret_cast<Item*>(CUB_ROUND_UP_NEAREST(reinterpret_cast<std::uintptr_t>(storage), 256));
      Item* to = from + n;
      for (std::size_t i = 0; i < n; ++i) from[i] = {keys[i], values[i]}, simt_go_on(i);
      for (std::size_t width = 1; width < n; width *= 2) {
        for (std::size_t begin = 0; begin < n; begin += 2 * width) {
          const std::size_t middle = begin + width < n ? begin + width : n;
          const std::size_t end = begin + 2 * width < n ? begin + 2 * width : n;
          std::size_t a = begin, b = middle;
          for (std::size_t i = begin; i < end; ++i) {
            const bool second = a == middle || (b < end && less(from[b].key, from[a].key));
            to[i] = from[second ? b++ : a++];
            simt_go_on(i);
          }
        }
        std::swap(from, to);
      }
      for (std::size_t i = 0; i < n; ++i) keys_out[i] = from[i].key, values_out[i] = from[i].value, simt_go_on(i);
    });
  }
};

struct DeviceAdjacentDifference {
  template <class Input, class Output, class Op = Difference, class Count>
  static cudaError_t SubtractLeftCopy(void* storage, std::size_t& bytes, Input in, Output out, Count n, Op op = {},
                                      cudaStream_t stream = nullptr) {
    return simt_run(storage, bytes, stream, [=]() mutable {
      for (std::size_t i = 0; i < std::size_t(n); ++i) {
        out[i] = i > 0 ? simt_value<Input>(op(in[i], in[i - 1])) : in[i];
        simt_go_on(i);
      }
    });
  }
  template <class Data, class Op = Difference, class Count>
  static cudaError_t SubtractLeft(void* storage, std::size_t& bytes, Data data, Count n, Op op = {},
                                  cudaStream_t stream = nullptr) {
    return simt_run(storage, bytes, stream, [=]() mutable {
      for (std::size_t i = std::size_t(n); i-- > 1;) data[i] = op(data[i], data[i - 1]), simt_go_on(i);
    });
  }
};

// A thread for each item.
struct DeviceFor {
  template <class Count, class Op>
  static cudaError_t Bulk(Count n, Op op, cudaStream_t stream = nullptr) {
    if (n <= 0) return cudaSuccess;
    simt_for_each<<<unsigned((std::size_t(n) + 255) / 256), 256, 0, stream>>>(
        std::size_t(n), [=](std::size_t i) mutable { op(Count(i)); });
    return cudaPeekAtLastError();
  }
  template <class Iterator, class Count, class Op>
  static cudaError_t ForEachN(Iterator first, Count n, Op op, cudaStream_t stream = nullptr) {
    return Bulk(
        n, [=](Count i) mutable { op(first[i]); }, stream);
  }
  template <class Iterator, class Op>
  static cudaError_t ForEach(Iterator first, Iterator last, Op op, cudaStream_t stream = nullptr) {
    return ForEachN(first, last - first, op, stream);
  }
};

}  // namespace cub
