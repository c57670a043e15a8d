// Which instance of a kernel solves a problem. Kernels are templates over the storage type T and, on tensor cores, over
// the head dim D; the problem says which, at run time. The host code of a rung is one function for all of them:
//
//   attention::by_dtype_and_head_dim<64, 128>(p, [&]<class T, int D>() {
//     const auto [q, k, v, o] = attention::tensors_of<T>(args);
//     launch(forward<T, D>, {blocks, threads, shared_bytes, stream}, p, q, k, v, o, args.lse);
//   });
#pragma once

#include "attention/rung.h"

namespace attention {

// Two macros leave out instances: WORKBOOK_ONE_DTYPE, also where nothing will run, and WORKBOOK_HEAD_DIMS_TO_64. With
// WORKBOOK_FEW_INSTANCES kernels for the engine have the first, and traced ones both.
[[noreturn]] void not_compiled();  // throws

// f<T>(), with the T of the problem's dtype.
template <class F>
auto by_dtype(const Problem& p, F&& f) {
#ifdef WORKBOOK_ONE_DTYPE
  if (p.dtype != DType::fp16) not_compiled();
  return f.template operator()<__half>();
#else
  return p.dtype == DType::fp16 ? f.template operator()<__half>() : f.template operator()<__nv_bfloat16>();
#endif
}

// f<T, D>(), with the first of these head dims, in ascending order, that holds the problem's.
template <int D, int... larger, class F>
auto by_dtype_and_head_dim(const Problem& p, F&& f) {
  if constexpr (sizeof...(larger) > 0)
#ifdef WORKBOOK_HEAD_DIMS_TO_64
    if (p.head_dim > D) not_compiled();
#else
    if (p.head_dim > D) return by_dtype_and_head_dim<larger...>(p, f);
#endif
  return by_dtype(p, [&]<class T>() { return f.template operator()<T, D>(); });
}

// The tensors of a launch, as T. Their shapes stand in attention/rung.h.
template <class T>
struct ForwardTensors {
  const T *q, *k, *v;
  T* o;
};
template <class T>
ForwardTensors<T> tensors_of(const ForwardArgs& args) {
  return {static_cast<const T*>(args.q), static_cast<const T*>(args.k), static_cast<const T*>(args.v),
          static_cast<T*>(args.o)};
}

template <class T>
struct BackwardTensors {
  const T *q, *k, *v, *o, *d_o;
  T *dq, *dk, *dv;
};
template <class T>
BackwardTensors<T> tensors_of(const BackwardArgs& args) {
  return {static_cast<const T*>(args.q), static_cast<const T*>(args.k),   static_cast<const T*>(args.v),
          static_cast<const T*>(args.o), static_cast<const T*>(args.d_o), static_cast<T*>(args.dq),
          static_cast<T*>(args.dk),      static_cast<T*>(args.dv)};
}

}  // namespace attention
