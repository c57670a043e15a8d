// CUB's reductions and scans of a warp, or of a power of two of its lanes: by shuffles, in the order in which CUB takes
// them, so that sums of floats are rounded alike.
#pragma once

#include "simt/cuda/groups.h"
#include "simt/libraries/cub/util.h"

namespace cub {

// The lanes of a logical warp.
template <int threads>
struct simt_lanes {
  static_assert(threads >= 1 && threads <= 32);

  __device__ static int lane() {
    if constexpr (PowerOfTwo<threads>::VALUE) return simt::lane() % threads;
    return simt::lane();
  }
  __device__ static int first() { return simt::lane() - lane(); }
  __device__ static unsigned mask() { return (threads == 32 ? ~0u : (1u << threads % 32) - 1) << first(); }
  template <class T>
  __device__ static T from(const char* name, const T& value, int lane) {
    return simt::shuffle_any(name, mask(), value, first() + lane, __builtin_FILE(), __builtin_LINE());
  }
  template <class T>
  __device__ static T down(const T& value, int distance, int last) {
    return from("cub::WarpReduce", value, lane() + distance <= last ? lane() + distance : lane());
  }
  template <class T>
  __device__ static T up(const T& value, int distance) {
    return from("cub::WarpScan", value, lane() >= distance ? lane() - distance : lane());
  }
};

template <class T, int threads = 32, int = 0>
class WarpReduce {
  using Lanes = simt_lanes<threads>;

 public:
  struct TempStorage {};
  __device__ explicit WarpReduce(TempStorage&) {}

  // The result is the first lane's.
  template <class Op>
  __device__ T Reduce(T input, Op op, int valid = threads) {
    return until(input, op, valid - 1);
  }
  __device__ T Sum(T input, int valid = threads) { return Reduce(input, cub::Sum(), valid); }
  __device__ T Max(T input, int valid = threads) { return Reduce(input, cub::Max(), valid); }
  __device__ T Min(T input, int valid = threads) { return Reduce(input, cub::Min(), valid); }
  // Of segments that begin where the flag is set, or end there: the result is the first lane's of each.
  template <class Op, class Flag>
  __device__ T HeadSegmentedReduce(T input, Flag head, Op op) {
    const unsigned heads = flags(head);
    const int lane = Lanes::lane();
    const unsigned later = lane == 31 ? 0 : heads >> (lane + 1) << (lane + 1);
    return until(input, op, later != 0 ? __ffs(later) - 2 : threads - 1);
  }
  template <class Op, class Flag>
  __device__ T TailSegmentedReduce(T input, Flag tail, Op op) {
    const unsigned from_here = flags(tail) >> Lanes::lane() << Lanes::lane();
    return until(input, op, from_here != 0 ? __ffs(from_here) - 1 : threads - 1);
  }
  template <class Flag>
  __device__ T HeadSegmentedSum(T input, Flag head) {
    return HeadSegmentedReduce(input, head, cub::Sum());
  }
  template <class Flag>
  __device__ T TailSegmentedSum(T input, Flag tail) {
    return TailSegmentedReduce(input, tail, cub::Sum());
  }

 private:
  template <class Op>
  __device__ static T until(T value, Op op, int last) {
    for (int distance = 1; distance < threads; distance *= 2) {
      const T other = Lanes::down(value, distance, last);
      if (Lanes::lane() + distance <= last) value = op(value, other);
    }
    return value;
  }
  template <class Flag>
  __device__ static unsigned flags(Flag flag) {
    return __ballot_sync(Lanes::mask(), int(flag)) >> Lanes::first();
  }
};

template <class T, int threads = 32, int = 0>
class WarpScan {
  using Lanes = simt_lanes<threads>;

 public:
  struct TempStorage {};
  __device__ explicit WarpScan(TempStorage&) {}

  template <class Op>
  __device__ void InclusiveScan(T input, T& output, Op op) {
    for (int distance = 1; distance < threads; distance *= 2) {
      const T other = Lanes::up(input, distance);
      if (Lanes::lane() >= distance) input = op(other, input);
    }
    output = input;
  }
  template <class Op>
  __device__ void InclusiveScan(T input, T& output, Op op, T& all) {
    InclusiveScan(input, output, op);
    all = Broadcast(output, threads - 1);
  }
  // Without an initial value, the first lane's output is not defined: here it stays.
  template <class Op>
  __device__ void ExclusiveScan(T input, T& output, Op op) {
    T inclusive;
    Scan(input, inclusive, output, op);
  }
  template <class Op>
  __device__ void ExclusiveScan(T input, T& output, T initial, Op op) {
    T inclusive;
    Scan(input, inclusive, output, initial, op);
  }
  template <class Op>
  __device__ void ExclusiveScan(T input, T& output, Op op, T& all) {
    T inclusive;
    Scan(input, inclusive, output, op);
    all = Broadcast(inclusive, threads - 1);
  }
  template <class Op>
  __device__ void ExclusiveScan(T input, T& output, T initial, Op op, T& all) {
    T inclusive;
    InclusiveScan(input, inclusive, op, all);
    exclude(inclusive, output, initial, op);
  }
  template <class Op>
  __device__ void Scan(T input, T& inclusive, T& exclusive, Op op) {
    InclusiveScan(input, inclusive, op);
    const T before = Lanes::up(inclusive, 1);
    if (Lanes::lane() > 0) exclusive = before;
  }
  template <class Op>
  __device__ void Scan(T input, T& inclusive, T& exclusive, T initial, Op op) {
    T own;
    InclusiveScan(input, own, op);
    exclude(own, exclusive, initial, op);
    inclusive = op(initial, own);
  }
  __device__ void InclusiveSum(T input, T& output) { InclusiveScan(input, output, cub::Sum()); }
  __device__ void InclusiveSum(T input, T& output, T& all) { InclusiveScan(input, output, cub::Sum(), all); }
  __device__ void ExclusiveSum(T input, T& output) { ExclusiveScan(input, output, T{}, cub::Sum()); }
  __device__ void ExclusiveSum(T input, T& output, T& all) { ExclusiveScan(input, output, T{}, cub::Sum(), all); }
  __device__ void Sum(T input, T& inclusive, T& exclusive) { Scan(input, inclusive, exclusive, T{}, cub::Sum()); }
  __device__ T Broadcast(T input, unsigned lane) { return Lanes::from("cub::WarpScan::Broadcast", input, int(lane)); }

 private:
  template <class Op>
  __device__ static void exclude(T inclusive, T& output, T initial, Op op) {
    const T before = Lanes::up(inclusive, 1);
    output = Lanes::lane() > 0 ? T(op(initial, before)) : initial;
  }
};

}  // namespace cub
