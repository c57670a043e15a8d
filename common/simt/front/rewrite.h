// From CUDA C++ to C++: what g++ cannot parse becomes calls of simt/front/front.h. The text is preprocessed, so that
// launches and keywords in macros and in the user's headers are seen too; no line moves, so that messages, counts and
// debuggers keep the user's lines.
//
//   kernel<T, 4><<<grid, block>>>(x)     ::simt::configure(kernel<T, 4>, grid, block)(x)
//   kernel<<<grid, block>>>(x)           ::simt::deduced([&](auto&... a) { kernel(a...); }, grid, block)(x)
//                                        where arguments choose the template's parameters or the overload
//   extern __shared__ float tile[];      float (&tile)[] = the dynamic shared memory of the block
//   __shared__ float tile[32];           static thread_local __attribute__((abi_tag("shared"), ..)) float tile[32];
//                                        and a guard before it, which no access may touch
//   __device__ int counter;              int counter; and the engine is told of it; in a function
//                                        __attribute__((abi_tag("device"))) int counter;
//   asm volatile("..." : "=r"(x) : ..)   ::simt::ptx(file, line, "...", ::simt::ptx_out<'r'>(x), ..)
//   printf("%d", n)                      (::simt::prints(), printf("%d", n)) in device code
//   printf("%s", s)                      (::simt::prints(), [](auto... a) { return printf("%s", ::simt::printed(a)...);
//                                        }(s)) in device code
//   malloc(n), free(p)                   ::simt::kernel_malloc(n), ::simt::kernel_free(p) in device code
//   new T, delete p                      new (::simt::kernel_new) T, ::simt::kernel_delete % p in device code
//   Function* f = square;                Function* f = ::simt::in_host_code(square); for device functions in host code
//                                        ::simt::of_both_sides(square) for those of both sides
//   k<<<1, 32>>>(table, &counter)        .. (::simt::array_for_a_kernel("table", table),
//                                        &::simt::address_for_a_kernel("counter", counter)) for device variables in
//                                        host code
//                                        ::simt::on_this_side<..>(square) where whoever calls may be host or device
//                                        code
//   a function that may be called by its address, from the other side, asks at its beginning on which side it is
//   (int)x, int(x), static_cast<int>(x)  ::simt::to_integer<int>(x) in device code
//   __cluster_dims__(2, 1, 1)            ::simt::asks_for_cluster(2, 1, 1); at the beginning of the kernel
//   __launch_bounds__(256, 2)            ::simt::allows_threads(256); there
//   __global__, __device__, ..           attributes, or nothing
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace simt::front {

struct Parameter {
  std::string type;  // "const float*"
  std::string name;  // empty if it has none
};

struct Kernel {
  std::string name;                 // as it is declared, with no namespace
  std::vector<std::string> within;  // the namespaces around it
  std::vector<std::string> template_parameters;
  std::vector<Parameter> parameters;
  std::string file;
  int line;
};

struct Wrong {
  std::string file;
  int line;
  std::string what;
};

struct Rewritten {
  std::string text;
  std::vector<Wrong> mistakes;  // that nvcc refuses, and g++ does not, or in many lines
  std::vector<Kernel> kernels;  // those with a body
  bool has_main = false;
};

// `inlining`: have device functions inlined into the kernels, as nvcc does, so that accesses count at the kernel's
// line. `relaxed`: kernels may call what the host has as constexpr (nvcc's --expt-relaxed-constexpr). `host`: the file
// preprocessed without __CUDA_ARCH__, for the functions of the host; empty: the same.
Rewritten rewrite(std::string_view preprocessed, bool inlining, bool relaxed = false, std::string_view host = {});

}  // namespace simt::front
