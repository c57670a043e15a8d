"""simt-compile: what becomes of CUDA's own syntax, token by token."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

FRONT = Path(os.environ["WORKBOOK_BUILD"]) / "common" / "simt" / "front" / "simt-compile"


def front(text: str, mode: str = "--rewritten", *flags) -> str:
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "a.cu").write_text(text)
        return subprocess.run([FRONT, mode, "g++", *flags, "a.cu"], cwd=place, capture_output=True, text=True, check=True).stdout


def rewritten(text: str, *flags) -> str:
    """In one line, with single spaces, without directives."""
    lines = [line for line in front(text, "--rewritten", *flags).splitlines() if not line.startswith("#")]
    return " ".join(" ".join(lines).split())


class Launches(unittest.TestCase):
    def test_of_functions_and_instances(self):
        for launch, call in {
            "k<<<g, b>>>(x);": "::simt::configure(k, g, b)(x);",
            "k <<< g, b, 16, s >>> (x, y);": "::simt::configure(k , g, b, 16, s ) (x, y);",
            "ns::k<float, 4><<<dim3(2, 3), {1, 2}>>>(x);": "::simt::configure(ns::k<float, 4>, dim3(2, 3), {1, 2})(x);",
            "::k<A<B<int>>><<<1, 2>>>(x);": "::simt::configure(::k<A<B<int>>>, 1, 2)(x);",
            "k<<<f<A<B<int>>>(n), 32>>>(x);": "::simt::configure(k, f<A<B<int>>>(n), 32)(x);",
            "k<<<n < 5 ? 1 : 2, 32>>>(x);": "::simt::configure(k, n < 5 ? 1 : 2, 32)(x);",
            "k<<<(n + 1) >> 2, 1 << 5>>>(x);": "::simt::configure(k, (n + 1) >> 2, 1 << 5)(x);",
            "all[i]<<<1, 2>>>(x);": "::simt::configure(all[i], 1, 2)(x);",
            "this->p.k<<<1, 2>>>(x);": "::simt::configure(this->p.k, 1, 2)(x);",
            "T::template k<3><<<1, 2>>>(x);": "::simt::configure(T::template k<3>, 1, 2)(x);",
            "(*pointer)<<<1, 2>>>(x);": "::simt::configure((*pointer), 1, 2)(x);",
            "if (a) k<<<1, 2>>>(x); else k<<<3, 4>>>(y);":
                "if (a) ::simt::configure(k, 1, 2)(x); else ::simt::configure(k, 3, 4)(y);",
            "switch (n) { case 'k':k<<<1, 2>>>(x); }": "switch (n) { case 'k': ::simt::configure(k, 1, 2)(x); }",
            "std::cout << 1 << a<b>; c = a >> 3;": "std::cout << 1 << a<b>; c = a >> 3;",
            "operator<<<int>(a, b);": "operator<<<int>(a, b);",
        }.items():
            with self.subTest(launch):
                self.assertEqual(rewritten(f"void f() {{ {launch} }}"), f"void f() {{ {call} }}")

    def test_of_a_template_or_an_overload_by_its_arguments(self):
        kernel = "template <class T, int N = 4> __global__ void k(T* x) {} "
        self.assertIn("::simt::deduced([&](auto&... simt_arguments) { k<float>(simt_arguments...); }, 1, 2)(x);",
                      rewritten(kernel + "void f() { k<float><<<1, 2>>>(x); }"))
        self.assertIn("::simt::configure(k<float, 8>, 1, 2)(x)", rewritten(kernel + "void f() { k<float, 8><<<1, 2>>>(x); }"))
        self.assertIn("void k(T* x) { if (::simt::dry_call()) return;}", rewritten(kernel))
        two = "__global__ void k(int* x) {} __global__ void k(float* x) {} void f() { k<<<1, 2>>>(x); }"
        self.assertIn("::simt::deduced(", rewritten(two))
        self.assertEqual(rewritten(two).count("if (::simt::dry_call()) return;"), 2)
        self.assertIn("::simt::configure(", rewritten("__global__ void k(int* x); __global__ void k(int* y) {} "
                                                      "void f() { k<<<1, 2>>>(x); }"))
        self.assertIn("::simt::deduced(", rewritten("__global__ void k(int* x) {} void k(int* x, int n) { k<<<1, n>>>(x); }"))
        self.assertIn("::simt::deduced(", rewritten("__global__ void k(int n = 3) {} void f() { k<<<1, 2>>>(); }"))

    def test_in_a_macro_in_a_header_and_behind_a_condition(self):
        macro = "#define GO(k, ...) k<<<1, \\\n 2>>>(__VA_ARGS__)\n"
        self.assertEqual(rewritten(macro + "void f() { GO(k, 1, 2); }"), "void f() { ::simt::configure(k, 1, 2)(1, 2); }")
        self.assertEqual(rewritten("#if __CUDACC__ && __CUDA_ARCH__ >= 800 && M == 3\nint x;\n#else\nint y;\n#endif", "-DM=3"), "int x;")

    def test_the_two_sides_of_a_file(self):
        both = "#ifdef __CUDA_ARCH__\n  return 1;\n#else\n  return 2;\n#endif\n}\n"
        self.assertEqual(rewritten("int f() {\n" + both), "int f() { return 2; }")
        self.assertEqual(rewritten("__device__ int f() {\n" + both), "int f() { return 1; }")
        self.assertEqual(rewritten("__host__ __device__ int f() {\n" + both),
                         "int f() { if (!::std::is_constant_evaluated() && !::simt::in_kernel()) { return 2; } else "
                         "{ return 1; }}")
        launches = rewritten("__global__ void k() {}\nvoid f() {\n#ifndef __CUDA_ARCH__\n  k<<<1, 2>>>();\n#endif\n}\nint g;")
        self.assertIn("void f() { ::simt::configure(k, 1, 2)(); } int g;", launches)
        lines = front("int f() {\n" + both + "int g;\n").splitlines()
        self.assertEqual(lines[lines.index("int g;") - 1], "", lines)
        above = next(line for line in reversed(lines[:lines.index("int g;")]) if line.startswith("#"))
        number = int(above.split()[1]) + lines[lines.index(above):].index("int g;") - 1
        self.assertEqual(number, 8)  # no line moves

    def test_kernels_that_are_launched_by_their_addresses_name_themselves(self):
        launch = "void f() { cudaLaunchKernel(p, 1, 2, a, 0, 0); } "
        self.assertIn("void k(int* x, float y) { (void)&::simt::NamedKernel<static_cast<void (*)(int*, float)>(&k)>::self;}",
                      rewritten(launch + "__global__ void k(int* x, float y) {}"))
        self.assertIn("NamedKernel<static_cast<void (*)(const T*)>(&k<T, N>)>::self;}",
                      rewritten(launch + "template <class T, int N = 3> __global__ void k(const T* x) {}"))
        self.assertIn("(&k<T, F>)>::self;}", rewritten(launch + " template <class T, T (*F)(T)> __global__ void k(T* x) {}"))
        self.assertIn("(&k<A>)>::self;}", rewritten(launch + " template <int (&A)[3]> __global__ void k(int* x) {}"))
        self.assertNotIn("NamedKernel", rewritten("__global__ void k(int* x) {}"))

    def test_not_in_comments_and_strings(self):
        text = 'const char* s = "k<<<1, 2>>>(x) __shared__"; const char* r = R"(k<<<1, 2>>>(x)\n__device__ ")"; // k<<<1, 2>>>(x)'
        self.assertEqual(rewritten(text), 'const char* s = "k<<<1, 2>>>(x) __shared__"; const char* r = R"(k<<<1, 2>>>(x) __device__ ")";')


class Declarations(unittest.TestCase):
    def test_of_shared_memory(self):
        shared = '__attribute__((abi_tag("shared"), aligned(16)))'
        guard = 'static thread_local __attribute__((used, aligned(16))) char simt_guard_0[128];'
        dynamic = "(::simt::dynamic_shared_memory());"
        once = "[[maybe_unused]] static thread_local const bool simt_object_"
        before = f"{guard} {once}0 = ::simt::before_object<{{}}>();"
        behind = f" {once}1 = ::simt::behind_objects({{}});"
        for declaration, becomes in {
            "__shared__ float a[2][3], b;": f"{guard} static thread_local {shared} float a[2][3], b;",
            "static __shared__ int a;": f"{guard} static thread_local {shared} int a;",
            "__shared__ alignas(16) T a[4];":
                f"{before.format('T')} alignas(16) static thread_local {shared} T a[4];" + behind.format("a"),
            "__shared__ __align__(8) float a[4];":
                f"{guard} static thread_local {shared} __attribute__((aligned(8))) float a[4];",
            "__shared__ const n::T<int, 3> *a, b;":
                f"{before.format('const n::T<int,3>*')} static thread_local {shared} const n::T<int, 3> *a, b;" +
                behind.format("a, b"),
            "__shared__ struct { int n; } a;": f"{guard} static thread_local {shared} struct {{ int n; }} a;",
            "extern __shared__ float a[];": f"float (&a)[] = *reinterpret_cast<float (*)[]>{dynamic}",
            "extern __shared__ __align__(16) unsigned char a[];":
                f"unsigned char (&a)[] = *reinterpret_cast<unsigned char (*)[]>{dynamic}",
            "extern volatile __shared__ float2 a[][4];":
                f"volatile float2 (&a)[][4] = *reinterpret_cast<volatile float2 (*)[][4]>{dynamic}",
        }.items():
            with self.subTest(declaration):
                self.assertEqual(rewritten(f"void f() {{ {declaration} }}"), f"void f() {{ {becomes} }}")
        self.assertEqual(rewritten("extern __shared__ float a[];"), "static ::simt::DynamicShared< float []> a;")

    def test_of_variables(self):
        said = "static const ::simt::DeviceVariable simt_variable_{}{{{}, ::simt::DeviceVariable::{}}};"
        for declaration, names, kind in [
            ("__device__ int a;", ["a"], "device"), ("__constant__ float a[4], b = 2;", ["a", "b"], "constant"),
            ("static __device__ __align__(8) S<int, 3> a{1, 2};", ["a"], "device"), ("__device__ __managed__ int a;", ["a"], "managed"),
            ("__device__ float (*a)(float, int) = f;", ["a"], "device"),
            ("__constant__ struct { int x; float y; } a = {3, 1}, b{};", ["a", "b"], "constant"), ("__device__ struct S a = {1};", ["a"], "device"), ("namespace n { __device__ int a; }", ["a"], "device"),
            ("__device__ constexpr int a = 3;", [], ""), ("extern __device__ int a;", [], ""),
            ("void f() { static __device__ int a; }", [], ""), ("__device__ int a(int b);", [], ""),
            ("__device__ int a(0);", ["a"], "device"), ("__constant__ float a(-1.f), b(2);", ["a", "b"], "constant"),
            ("__device__ cuda::semaphore<1, 2> a(1);", ["a"], "device"), ("__managed__ T* a(nullptr);", ["a"], "managed"),
            ("__device__ T a({1, 2});", ["a"], "device"), ("__device__ int a(limits<int>::max());", ["a"], "device"),
            ("__device__ int a(dim3(2, 3).x);", ["a"], "device"), ("__device__ int a((3));", ["a"], "device"),
            ("const int N = 4; __device__ int a(N * 2);", ["a"], "device"), ("constexpr int N = 4; __device__ int a(N);", ["a"], "device"),
            ("enum { M, N }; __device__ int a(N);", ["a"], "device"),
            ("struct N; __device__ int a(N);", [], ""), ("__device__ int a(S<M, N, 2>);", [], ""),
            ("using N = int; __device__ int a(N);", [], ""), ("__device__ int a(int, float = 2 + 3);", [], ""),
            ("__device__ int a(int b = 3);", [], ""), ("__device__ int a(S<3> b, ...);", [], ""), ("__device__ int a();", [], ""),
            ("__device__ int a(T (&b)[3 + 4]);", [], ""), ("__device__ int a(const T*, T&&);", [], ""),
            ("__device__ int a(void (*b)(int));", [], ""), ("__device__ int a(std::function<int(T)> b);", [], ""),
            ("struct S { __device__ S(const S&); __device__ int a(decltype(1 + 2) b); };", [], ""),
            ("struct S { __device__ S(int a); __device__ operator int() const; int a; };", [], ""),
        ]:
            with self.subTest(declaration):
                text = rewritten(declaration)
                self.assertEqual(text.count("DeviceVariable "), len(names))
                for number, name in enumerate(names):
                    self.assertIn(said.format(number, name, kind), text)

        tagged = '__attribute__((abi_tag("{}")))'
        self.assertEqual(rewritten("template <class T> __constant__ T a[4];"), "template <class T> T a[4]; static const ::simt::DeviceTemplate "
                         "simt_variable_0{\"1aI\", ::simt::DeviceVariable::constant};")
        self.assertEqual(rewritten("void f() { static __device__ int a; }"), f"void f() {{ static {tagged.format('device')} int a; }}")

    def test_of_functions_that_may_be_called_from_the_other_side(self):
        guard = ' if (!__builtin_is_constant_evaluated() && {}) ::simt::{}("{}", __builtin_return_address(0));'
        host = guard.format("::simt::in_kernel()", "host_function_in_kernel", "{}")
        device = guard.format("!::simt::in_kernel()", "device_function_on_host", "{}")
        for text, said in {
            "int f(int x) { return x; } F a = f;": [host.format("f")],
            "struct S { static int f(int x) { return x; } }; F a = &S::f;": [host.format("f")],
            "F a = [](int x) { return x; };": [host.format("a lambda function")],
            "__device__ int f(int x) { return x; } __device__ F a = f;": [device.format("f")],
            "int f(int x) { return x; } int a = f(3);": [],
            "int f(int x) { return x; } __host__ int a() { return f(3); }": [],
            "__device__ int f(int x) { return x; } __device__ int g() { return f(3); }": [],
            "__host__ __device__ int f(int x) { return x; } __device__ F a = f;": [],
            "constexpr int f(int x) { return x; } F a = f; constexpr auto b = [](int x) { return x; };": [],
            "__device__ int g() { auto a = [](int x) { return x; }; return a(3); } auto b = [] __device__ (int x) { return x; };": [],
        }.items():
            with self.subTest(text):
                found = rewritten(text)
                self.assertEqual([each for each in said if each not in found], [], found)
                self.assertEqual(found.count("__builtin_return_address"), len(said), found)

    def test_of_device_functions_that_host_code_names(self):
        functions = ("using F = int (*)(int); __device__ int f(int x) { return x; } __host__ __device__ int both(int x) { return x; } "
                     "template <class T> __device__ T g(T x) { return x; } namespace n { __device__ int h(int x) { return x; } } ")
        for text, becomes in {
            "void host() { F a = f, b = &f, c[] = {n::h, g<int>}; }":
                "void host() { F a = ::simt::in_host_code(f), b = &::simt::in_host_code(f), "
                "c[] = {::simt::in_host_code(n::h), ::simt::in_host_code(g<int>)}; }",
            "F table[] = {f, both};": "F table[] = {::simt::in_host_code(f), ::simt::of_both_sides(both)};",
            'N table[] = {{"f", f}, {"both", both}, {.b = f}};':
                'N table[] = {{"f", ::simt::in_host_code(f)}, {"both", ::simt::of_both_sides(both)}, {.b = ::simt::in_host_code(f)}};',
            "bool host(F a) { t<int, f>(a); return a == f || a != &both; }":
                "bool host(F a) { t<int, f>(a); return a == ::simt::in_host_code(f) || a != &::simt::of_both_sides(both); }",
            "F host(bool a) { return a ? f : nullptr; }": "F host(bool a) { return a ? ::simt::in_host_code(f) : nullptr; }",
            "void host() { k<<<1, 2>>>(x, both, f); F a = both; }":
                "void host() { ::simt::configure(k, 1, 2)(x, ::simt::of_both_sides(both), ::simt::in_host_code(f)); "
                "F a = ::simt::of_both_sides(both); }",
            "void host(int a, F b = f);": "void host(int a, F b = ::simt::on_this_side<false>(f));",
            "struct S { F a = both, b{g<int>}; S() : a(f) {} };":
                "struct S { F a = ::simt::on_this_side<true>(both), b{::simt::on_this_side<false>(g<int>)}; "
                "S() : a(::simt::on_this_side<false>(f)) { if (::simt::in_kernel()) "
                '::simt::own_function_in_kernel("S::S", __builtin_FILE(), __builtin_LINE());} };',
        }.items():
            with self.subTest(text):
                self.assertTrue(rewritten(functions + text).endswith(becomes), rewritten(functions + text))
        for text in ("void host() { t<f>(x); t<int, f, 3>(x); u(&T<f>::call); }", "void host(int f) { int g = f; use(f, g); }",
                     "void host() { int a, f; use(f); }", "void host() { for (int a = 0, f; ;) use(f); }", "constexpr F a = f;", "void host() { constexpr F a[] = {f}; constexpr bool b = use(f); }", "struct S { int f; int host() { return (f); } };",
                     "enum E { e, f }; void host() { use(f); }", "__device__ int f(float x); void host() { F a = f; }"):
            with self.subTest(text):
                self.assertNotIn("in_host_code", rewritten(functions + text))
        for text in ("__device__ int host(F b = f);", "struct S { int f = 0, a = f; };", "template <F a = f, int n = 3> struct S {};",
                     "struct S { int f(int x); int a = f(3); };"):
            with self.subTest(text):
                self.assertNotIn("on_this_side", rewritten(functions + text))
        self.assertNotIn("in_host_code", rewritten(functions).replace("F a", "") + rewritten(functions + "__device__ F a = f, b[] = {f};"))

    def test_behind_a_text(self):
        self.assertIn('extern "C" __attribute__', rewritten('extern "C"__global__ void k() {}'))
        self.assertEqual(rewritten('auto a = "b"s, c = "d"_e;'), 'auto a = "b"s, c = "d"_e;')

    def test_of_template_arguments_that_a_launch_gives(self):
        for parameter, given in {"F f": True, "int (*f)(int)": True, "Mode f": True, "auto f": True, "int f": False,
                                 "class f": False, "F g": False}.items():
            with self.subTest(parameter):
                found = rewritten(f"template <{parameter}> void host(float* x) {{ k<<<1, 2>>>(x, f, f + 1); }}")
                self.assertIn("(x, ::simt::value_in_host_code(f), f + 1)" if given else "(x, f, f + 1)", found)

    def test_of_constructors(self):
        guard = ' if (::simt::in_kernel()) ::simt::own_function_in_kernel("S::S", __builtin_FILE(), __builtin_LINE());'
        kernels = {"plain": "__global__ void k(S x) {} ", "template": "template <class T> __global__ void k(T x) {} ",
                   "default": "__global__ void k(S x = S(1, 2)) {} "}
        for constructor, guarded in {
            "S() {}": ("plain", "template"), "S(int a, int b = 2) : a(a), b(b) {}": ("plain",), "S(int a, int b) {}": ("plain", "template"),
            "explicit S(int a) {}": ("plain", "template"), "S(const S& a) {}": (), "S(S* next, int a) {}": (), "~S() {}": (),
            "__host__ __device__ S() {}": (), "__device__ S(int a) {}": (), "constexpr S(int a, int b) {}": (), "S() = default;": ()
        }.items():
            for kind, kernel in kernels.items():
                with self.subTest(constructor, kernel=kind):
                    found = rewritten(f"struct S {{ int a, b; {constructor} }}; {kernel}")
                    self.assertEqual(guard.strip() in found, kind in guarded, found)

    def test_of_restricted_parameters(self):
        said = 'if (::simt::is_first_thread()) ::simt::restricted({{"a", a, false}, {"b", b, true}});'
        for parameters, told in {"const int* __restrict__ a, int* __restrict b": True, "const int* __restrict__ a, int* b": False,
                                 "const int* __restrict__ a, const int* __restrict__ b": False, "int* a, int* b": False}.items():
            with self.subTest(parameters):
                self.assertEqual(said in rewritten(f"__global__ void k({parameters}, int n) {{ }}"), told)

    def test_of_device_variables_that_a_launch_names(self):
        variables = "__device__ int n; __constant__ float t[4]; __managed__ int m[2]; __global__ void k(F...); "
        for text, becomes in {
            "void host() { k<<<1, 2>>>(&n, ::t, t + 1, x); }":
                '(&::simt::address_for_a_kernel("n", n), ::simt::array_for_a_kernel("t", ::t), ::simt::array_for_a_kernel("t", t) + 1, x)',
            "void host() { k<<<1, 2>>>(&t[1]); }": '(&::simt::address_for_a_kernel("t", t)[1])',
            "void host() { k<<<1, 2>>>(t[1], x.t, sizeof(t), m, use(t)); }": "(t[1], x.t, sizeof(t), m, use(t))",
            "__global__ void parent() { k<<<1, 2>>>(t); }": ")(t)",
        }.items():
            with self.subTest(text):
                self.assertIn(becomes, rewritten(variables + text))

    def test_of_what_prints(self):
        self.assertEqual(rewritten('__device__ void f() { if (g()) std::printf("a(%d)", 1); else printf("b"); }'),
                         'void f() { if (g()) (::simt::prints(), std::printf("a(%d)", 1)); else (::simt::prints(), printf("b")); }')
        for call in ['printf("sums%% %d", t...)', 'printf("%5.1f\\n" "s", add<1, 2>(3))', 'printf(format, s)', 'printf("%s")']:
            self.assertEqual(rewritten(f"__device__ void f() {{ {call}; }}"), f"void f() {{ (::simt::prints(), {call}); }}")
        self.assertEqual(rewritten('__device__ void f() { ::printf("%d %" "-*s", a<1, 2>(3), t...); }'),
                         'void f() { (::simt::prints(), [](auto... simt_arguments) { return ::printf("%d %" "-*s", '
                         '::simt::printed(simt_arguments)...); }( a<1, 2>(3), t...)); }')
        self.assertEqual(rewritten('__device__ void f() { x.printf("a"); } void g() { printf("b"); }'),
                         'void f() { x.printf("a"); } void g() { printf("b"); }')

    def test_of_what_allocates(self):
        new = "new (::simt::kernel_new)"
        for text, becomes in {
            "struct P { int* q; __device__ P() : q(new int(1)) { delete q; } };":
                f"struct P {{ int* q; P() : q({new} int(1)) {{ ::simt::kernel_delete % q; }} }};",
            "struct P { P(); void* q; }; __device__ P::P() : q{malloc(4)} { free(q); }":
                "struct P { P(); void* q; }; P::P() : q{::simt::kernel_malloc(4)} { ::simt::kernel_free(q); }",
            "struct P { int* q = new int; int* r{new int}; __device__ ~P(); P(P*) : r(new int) {} P(const P&) = delete; };":
                f"struct P {{ int* q = {new} int; int* r{{{new} int}}; ~P(); P(P*) : r(new int) {{}} P(const P&) = delete; }};",
            # What is the program's own is not the library's.
            "__device__ void f() { pool::malloc(4); ::malloc(4); return ::std::free(p); }":
                "void f() { pool::malloc(4); ::simt::kernel_malloc(4); return ::simt::kernel_free(p); }",
            "struct S { __device__ void f() { free(1); } void free(int); }; __device__ void g() { free(p); }":
                "struct S { void f() { free(1); } void free(int); }; void g() { ::simt::kernel_free(p); }",
            "struct S { void free(int); void f(); }; __device__ void S::f() { free(1); } __device__ void g(S s) { free(p); }":
                "struct S { void free(int); void f(); }; void S::f() { free(1); } void g(S s) { ::simt::kernel_free(p); }",
            "struct S { void* operator new(size_t); }; struct T : S {}; __device__ void f() { new S; new T(1); new S*; new S[2]; ::new S; }":
                "struct S { void* operator new(size_t); }; struct T : S {}; void f() { new S; new T(1); "
                f"{new} S*; {new} S[2]; ::{new} S; }}",
            "struct P { int* q = new int; P(P*) : q(new int) { new int; } };": "struct P { int* q = new int; P(P*) : q(new int) { new int; } };",
        }.items():
            with self.subTest(text):
                self.assertEqual(rewritten(text), becomes)

    def test_of_casts_to_integers(self):
        to = "::simt::to_integer<{}>("
        for text, becomes in {
            "(int)x * 2": to.format("int") + "x) * 2", "-(unsigned char)x[i].f(2)->y + 1": "-" + to.format("unsigned char") + " x[i].f(2)->y) + 1",
            "(int)-x": to.format("int") + "-x)", "(int)(a + b) * c": to.format("int") + "(a + b)) * c",
            "(int)(float)x": to.format("int") + "(float)x)", "(float)(int)x": "(float)" + to.format("int") + "x)",
            "(uint8_t)(int)(x)": to.format("uint8_t") + to.format("int") + "(x)))", "(std::size_t)max<float>(a, b)": to.format("std::size_t") + "max<float>(a, b))",
            "(int)a < b": to.format("int") + "a) < b", "(int)2.5f": to.format("int") + "2.5f)",
            "int(x) + unsigned(y)": to.format("int") + "x) + " + to.format("unsigned") + "y)",
            "std::uint8_t(x)": to.format("std::uint8_t") + "x)", "static_cast<short>(x)": to.format("short") + "x)",
            "(float)x": "(float)x", "(T)x": to.format("T") + "x)", "(U)x": "(U)x", "(int*)x": "(int*)x", "sizeof(int)": "sizeof(int)", "f<int(float)>(x)": "f<int(float)>(x)",
            "(int)(T)-x + (int)(x)-y": to.format("int") + to.format("T") + "-x)) + " + to.format("int") + "(x))-y", "(int)x++": "(int)x++", "new int(3)": "new (::simt::kernel_new) int(3)",
            "[](int) { return 1; }(x)": "[](int) { return 1; }(x)",
        }.items():
            with self.subTest(text):
                self.assertEqual(rewritten(f"template <class T> __device__ auto f() {{ return {text}; }}"),
                                 f"template <class T> auto f() {{ return {becomes}; }}")
        for text in ("int f(float x) { return (int)x + int(x) + static_cast<int>(x); }", "void f(int); struct S { int operator()(int); };"):
            self.assertEqual(rewritten(text), text)
        self.assertEqual(rewritten("__device__ int f(int (x), int); struct S { __device__ int operator+(int) const; };"),
                         "int f(int (x), int); struct S { int operator+(int) const; };")

    def test_of_functions(self):
        inline = "__attribute__((always_inline))"
        self.assertEqual(rewritten("__global__ void __launch_bounds__(N * 2, 1) k() {}"), "__attribute__((noinline, noclone)) void k() { ::simt::allows_threads(N* 2);}")
        self.assertEqual(rewritten("__host__ __device__ __forceinline__ int f() { return 1; }"), f"inline {inline} int f() {{ return 1; }}")
        self.assertEqual(rewritten("__forceinline__ __device__ inline int f();"), f"{inline} inline int f();")
        self.assertEqual(rewritten("__device__ __noinline__ int f() {}"), "__attribute__((noinline)) int f() {}")
        self.assertEqual(rewritten("struct __align__(8) S {}; __attribute__((__noinline__)) int f();"),
                         "struct __attribute__((aligned(8))) S {}; __attribute__((__noinline__)) int f();")
        # To count at the kernel's line, they become part of it: not where that cannot be.
        self.assertEqual(rewritten("__device__ int f() { return 1; }", "-DSIMT_TRACED"), f"{inline} int f() {{ return 1; }}")
        self.assertEqual(rewritten("__device__ int f(int n) { return f(n - 1); }", "-DSIMT_TRACED"), "int f(int n) { return f(n - 1); }")
        self.assertEqual(rewritten("__device__ int f(); auto g = [] __device__ (int i) {};", "-DSIMT_TRACED"), "int f(); auto g = [] (int i) {};")


class Ptx(unittest.TestCase):
    def test_of_device_code(self):
        site = "__builtin_FILE(), __builtin_LINE(), "
        for text, becomes in {
            'asm volatile("a %0, %1;" "b;" : "=r"(x), "+f"(y[0]) : "l"(f(p, 1)), "n"(16) : "memory");':
                f"::simt::ptx({site}\"a %0, %1;\" \"b;\" , ::simt::ptx_out<'r'>(x) , ::simt::ptx_inout<'f'>(y[0]) , ::simt::ptx_in<'l'>(f(p, 1)) "
                ", ::simt::ptx_in<'n'>(16) );",
            'asm volatile("wgmma" "x;" : "+f"(x), "=r"(y) : "l"(z));':
                f"::simt::ptx({site}\"wgmma\" \"x;\" , ::simt::ptx_late<'f'>(x) , ::simt::ptx_out<'r'>(y) , ::simt::ptx_in<'l'>(z));",
            'asm volatile("" : "+f"(x) :: "memory");': f'::simt::ptx({site}"");',
            'asm("b;");': f'::simt::ptx({site}"b;");',
            'asm volatile("b;" ::: "memory");': f'::simt::ptx({site}"b;" );',
            '__asm__ __volatile__("c %[v];" :: [v] "r"(x));': f"::simt::ptx({site}\"c %[v];\" , ::simt::ptx_in<'r'>(x, \"v\"));",
        }.items():
            with self.subTest(text):
                got = rewritten(f"__device__ void f() {{ {text} }}")
                self.assertEqual(got.replace(" ", ""), f"voidf(){{{becomes.replace(' ', '')}}}")

    def test_the_hosts_is_left_alone(self):
        self.assertEqual(rewritten('void f() { asm("nop"); }'), 'void f() { asm("nop"); }')


class Lines(unittest.TestCase):
    def test_none_moves(self):
        text = ("__global__ void k(int* a,\n int b) {\n  extern __shared__\n float s[];\n  asm volatile(\"a;\"\n : : \"r\"(b)\n : \"memory\");\n}\n"
                "void f() {\n  k<<<1,\n 2>>>(a,\n b);\n}\nint last;")
        got = front(text)
        self.assertEqual(len(got[got.index("__attribute__"):].splitlines()), len(text.splitlines()))
        self.assertIn("int last;", got.splitlines()[-1])

    def test_kernels_and_main_are_found(self):
        text = ("#include <cstdio>\nnamespace a { namespace {\n__global__ void one(const float* __restrict__ x, unsigned int n = 3, float4 v[]) {}\n} }\n"
                "__global__ void declared();\ntemplate <class T, int N>\n__global__ void two(T) {}\nint main() {}\n")
        found = json.loads(front(text, "--kernels"))
        self.assertTrue(found["main"])
        one, two = found["kernels"]
        self.assertEqual((one["name"], one["within"], one["types"], one["names"], one["file"], one["line"]),
                         ("one", ["a"], ["const float*", "unsigned int", "float4*"], ["x", "n", "v"], "a.cu", 3))
        self.assertEqual((two["name"], two["template"], two["line"]), ("two", ["class T", "int N"], 7))


class Prelude(unittest.TestCase):
    """What every file begins with is compiled once; but not for a file that makes something else of it."""
    FLAGS = ["-std=gnu++20", "-O1", "-Wall", "-include", "first.h"]

    @classmethod
    def setUpClass(cls):
        place = tempfile.TemporaryDirectory()
        cls.addClassCleanup(place.cleanup)
        cls.place = Path(place.name)
        shutil.copy(FRONT, cls.place / "front")
        (cls.place / "first.h").write_text("#ifdef TWICE\n#define N 2\n#else\n#define N 1\n#endif\nconstexpr int times = N;\n")
        compiler = cls.place / "compiler"  # which leaves what it sees
        compiler.write_text('#!/bin/sh\nfor word; do case $word in *.ii) [ -s "$word" ] && cp "$word" seen;; esac; done\nexec g++ "$@"\n')
        compiler.chmod(0o755)
        subprocess.run(["./front", "--prelude", "./compiler", *cls.FLAGS], cwd=cls.place, check=True)

    def compiled(self, text: str, *flags) -> "tuple[bool, int]":
        """(Is it left out? what the program returns)"""
        (self.place / "a.cu").write_text(text)
        subprocess.run(["./front", "./compiler", *self.FLAGS, *flags, "-c", "a.cu", "-o", "a.o"], cwd=self.place, check=True)
        left_out = "pch_preprocess" in (self.place / "seen").read_text(errors="replace")
        subprocess.run(["g++", "a.o", "-o", "a"], cwd=self.place, check=True)
        return left_out, subprocess.run(["./a"], cwd=self.place).returncode

    def test_macros_of_the_files_own(self):
        self.assertEqual(self.compiled("#define TWICE\nint main() { return N * 10 + times; }"), (True, 11))
        self.assertEqual(self.compiled("int main() { return N * 10 + times + OTHER; }", "-DOTHER=7"), (True, 18))
        self.assertEqual(self.compiled("int main() { return N * 10 + times; }", "-DTWICE"), (False, 22))

    def test_other_flags(self):
        self.assertEqual(self.compiled("int main() { return times; }"), (True, 1))
        with mock.patch.object(self, "FLAGS", [flag.replace("-Wall", "-Wvla") for flag in self.FLAGS]):
            self.assertEqual(self.compiled("int main() { return times; }"), (False, 1))

    def test_another_compilers(self):
        made = self.place / "front.prelude.gch"
        right = made.read_bytes()
        self.addCleanup(made.write_bytes, right)
        made.write_bytes(b"x" * 1000)
        self.assertEqual(self.compiled("int main() { return times; }"), (False, 1))


if __name__ == "__main__":
    unittest.main()
