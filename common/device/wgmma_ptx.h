// The PTX of device/wgmma.h. An instruction names each of its 32 to 128 registers of D, and inline assembly takes no
// array: so the lists are written out here, by macros that end with this file.
#pragma once

#include <cstdint>

#include "device/cuda.h"

namespace wgmma_ptx {

// The registers of 16 more columns, as operands and as the instruction names them.
#define D16(i)                                                                                                         \
  "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3]), "+f"(d[i + 1][0]), "+f"(d[i + 1][1]), "+f"(d[i + 1][2]), \
      "+f"(d[i + 1][3])
#define D64 D16(0), D16(2), D16(4), D16(6)
#define NAMES64                              \
  "%0, %1, %2, %3, %4, %5, %6, %7, "         \
  "%8, %9, %10, %11, %12, %13, %14, %15, "   \
  "%16, %17, %18, %19, %20, %21, %22, %23, " \
  "%24, %25, %26, %27, %28, %29, %30, %31"
#define D80 D64, D16(8)
#define NAMES80 NAMES64 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define D96 D80, D16(10)
#define NAMES96 NAMES80 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define D112 D96, D16(12)
#define NAMES112 NAMES96 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define D128 D112, D16(14)
#define NAMES128 NAMES112 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define D144 D128, D16(16)
#define NAMES144 NAMES128 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define D160 D144, D16(18)
#define NAMES160 NAMES144 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define D176 D160, D16(20)
#define NAMES176 NAMES160 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define D192 D176, D16(22)
#define NAMES192 NAMES176 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define D256 D192, D16(24), D16(26), D16(28), D16(30)
#define NAMES256                                     \
  NAMES192                                           \
  ", %96, %97, %98, %99, %100, %101, %102, %103, "   \
  "%104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, " \
  "%120, %121, %122, %123, %124, %125, %126, %127"

// N, T by its name in PTX, and the numbers of the operands that follow D.
#define FROM_SHARED(N, T, A, B, ACCUMULATE, A_MN, B_MN)                                        \
  asm volatile("{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %" #ACCUMULATE              \
               ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N "k16.f32." #T "." #T " {" NAMES##N \
               "}, %" #A ", %" #B ", accumulate, 1, 1, %" #A_MN ", %" #B_MN ";\n}"             \
               : D##N                                                                          \
               : "l"(a), "l"(b), "r"(int(accumulate)), "n"(int(a_mn)), "n"(int(b_mn)))
#define FROM_REGISTERS(N, T, A0, A1, A2, A3, B, ACCUMULATE, B_MN)                                       \
  asm volatile("{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %" #ACCUMULATE                       \
               ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N "k16.f32." #T "." #T " {" NAMES##N          \
               "}, {%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}, %" #B ", accumulate, 1, 1, %" #B_MN ";\n}" \
               : D##N                                                                                   \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(int(accumulate)), "n"(int(b_mn)))
// The same of eight bits, which have no majors to say.
#define FROM_SHARED_FP8(N, T, A, B, ACCUMULATE, ...)                                           \
  asm volatile("{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %" #ACCUMULATE              \
               ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N "k32.f32." #T "." #T " {" NAMES##N \
               "}, %" #A ", %" #B ", accumulate, 1, 1;\n}"                                     \
               : D##N                                                                          \
               : "l"(a), "l"(b), "r"(int(accumulate)))
#define FROM_REGISTERS_FP8(N, T, A0, A1, A2, A3, B, ACCUMULATE, ...)                           \
  asm volatile("{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %" #ACCUMULATE              \
               ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N "k32.f32." #T "." #T " {" NAMES##N \
               "}, {%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}, %" #B ", accumulate, 1, 1;\n}"    \
               : D##N                                                                          \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(int(accumulate)))
#define ALL_TYPES(N, FORM, ...)                                                                           \
  if constexpr (fragments == N / 8 && wgmma_type<T> == WgmmaType::f16) FORM(N, f16, __VA_ARGS__);         \
  if constexpr (fragments == N / 8 && wgmma_type<T> == WgmmaType::bf16) FORM(N, bf16, __VA_ARGS__);       \
  if constexpr (fragments == N / 8 && wgmma_type<T> == WgmmaType::e4m3) FORM##_FP8(N, e4m3, __VA_ARGS__); \
  if constexpr (fragments == N / 8 && wgmma_type<T> == WgmmaType::e5m2) FORM##_FP8(N, e5m2, __VA_ARGS__)

template <class T, bool a_mn, bool b_mn, int fragments>
__device__ __forceinline__ void from_shared(float (&d)[fragments][4], uint64_t a, uint64_t b, bool accumulate) {
  ALL_TYPES(64, FROM_SHARED, 32, 33, 34, 35, 36);
  ALL_TYPES(80, FROM_SHARED, 40, 41, 42, 43, 44);
  ALL_TYPES(96, FROM_SHARED, 48, 49, 50, 51, 52);
  ALL_TYPES(112, FROM_SHARED, 56, 57, 58, 59, 60);
  ALL_TYPES(128, FROM_SHARED, 64, 65, 66, 67, 68);
  ALL_TYPES(144, FROM_SHARED, 72, 73, 74, 75, 76);
  ALL_TYPES(160, FROM_SHARED, 80, 81, 82, 83, 84);
  ALL_TYPES(176, FROM_SHARED, 88, 89, 90, 91, 92);
  ALL_TYPES(192, FROM_SHARED, 96, 97, 98, 99, 100);
  ALL_TYPES(256, FROM_SHARED, 128, 129, 130, 131, 132);
}

template <class T, bool b_mn, int fragments>
__device__ __forceinline__ void from_registers(float (&d)[fragments][4], const uint32_t (&a)[4], uint64_t b,
                                               bool accumulate) {
  ALL_TYPES(64, FROM_REGISTERS, 32, 33, 34, 35, 36, 37, 38);
  ALL_TYPES(80, FROM_REGISTERS, 40, 41, 42, 43, 44, 45, 46);
  ALL_TYPES(96, FROM_REGISTERS, 48, 49, 50, 51, 52, 53, 54);
  ALL_TYPES(112, FROM_REGISTERS, 56, 57, 58, 59, 60, 61, 62);
  ALL_TYPES(128, FROM_REGISTERS, 64, 65, 66, 67, 68, 69, 70);
  ALL_TYPES(144, FROM_REGISTERS, 72, 73, 74, 75, 76, 77, 78);
  ALL_TYPES(160, FROM_REGISTERS, 80, 81, 82, 83, 84, 85, 86);
  ALL_TYPES(176, FROM_REGISTERS, 88, 89, 90, 91, 92, 93, 94);
  ALL_TYPES(192, FROM_REGISTERS, 96, 97, 98, 99, 100, 101, 102);
  ALL_TYPES(256, FROM_REGISTERS, 128, 129, 130, 131, 132, 133, 134);
}

#undef ALL_TYPES
#undef FROM_REGISTERS_FP8
#undef FROM_SHARED_FP8
#undef FROM_REGISTERS
#undef FROM_SHARED
#undef NAMES256
#undef D256
#undef NAMES192
#undef D192
#undef NAMES176
#undef D176
#undef NAMES160
#undef D160
#undef NAMES144
#undef D144
#undef NAMES128
#undef D128
#undef NAMES112
#undef D112
#undef NAMES96
#undef D96
#undef NAMES80
#undef D80
#undef NAMES64
#undef D64
#undef D16

}  // namespace wgmma_ptx
