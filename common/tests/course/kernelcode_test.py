"""What may stand between the markers: every solution, and what students try; not what does something else than
computing."""

import time
import unittest

from tools import course
from tools.course.initializers import first_variable
from tools.course.kernelcode import objection, refusal

TEMPLATE = "template <class F> float call(F op, float x) { return op(x); }"
FUNCTOR = "struct S { __device__ float operator()(float x) const { return x; } };"
REFUSED = [
    ("replaces a library function", 'extern "C" void* memcpy(void* a, const void* b, size_t n) { return a; }',
     "string"),
    ("replaces one, without a string", "extern int n;", "extern"),
    ("forks", "fork();", "fork"), ("ends the process", "exit(0);", "exit"),
    ("calls what is hidden behind a name", "auto f = quick_exit;", "quick_exit"),
    ("makes a name look declared", "l * getppid; getppid();", "getppid"), ("or so", "l = m > vfork; vfork();", "vfork"),
    ("or so", "(void(m), vfork); vfork();", "vfork"),
    ("allocates", "float* a = new float[1 << 30];", "new"),
    ("allocates with C", "float* a = (float*) malloc(1 << 30);", "malloc"),
    ("reads a file", "std::ifstream file;", "std"), ("reads a file with C", "const int f = open(0, 0);", "open"),
    ("prints a score", 'printf("[  PASSED  ] 2 tests.");', "printf"), ("prints one without printf", 'l = *"PASSED";',
                                                                       "string"),
    ("a macro", "#define EXPECT_EQ(a, b)", "preprocessor"), ("a pragma", "#pragma GCC optimize(0)", "preprocessor"),
    ("a pragma as an operator", "_Pragma(0)", "_Pragma"), ("includes", "#include <cstdlib>", "preprocessor"),
    ("assembly", "asm volatile (0);", "asm"), ("a built-in of the compiler", "__builtin_trap();", "__builtin_trap"),
    ("an attribute", "[[gnu::constructor]] int x;", "attribute"), ("another", "__attribute__((used)) int x;",
                                                                   "__attribute__"),
    ("leaves its function", "} int evil() { return 1;", "without its"),
    ("opens what it does not close", "if (l > 0) {", "not closed"),
    ("swallows what follows", "/* ", "comment"), ("or so", "// \\\n", "backslash"),
    ("keeps results from call to call", "static float kept;", "static"),
    ("throws", "throw 1;", "throw"), ("calls the runtime", "cudaDeviceReset();", "cudaDeviceReset"),
    ("another namespace", "::exit(0);", "::"),
    ("the tests' names", "testing::Test a;", "testing"), ("the engine's names", "simt::set_schedule(0);", "simt"),
    ("a member's name for a function", "struct A { int kill; }; kill(0, 9);", "kill"),
    ("a closed block's name for a function", "{ int vfork = 0; } vfork();", "vfork"),
    ("a variable's name for a function", "if (l > 0) { [](float getppid) { return 0; }(l); getppid(); }", "getppid"),
    ("an address for a function", "(*reinterpret_cast<void (*)(int)>(0x401000))(5);", "no name"),
    ("or so", "void (*f)(int) = (void (*)(int))0x401000; f(5);", "no name"), ("or so", "using F = void(int); F* f(0); f(1);", "f, which is called"),
    ("or so", "using F = void(int); F* f[1]; f[0](1);", "no name"), ("or so", "using F = void(int); (*(F*)5)(1);", "no name"),
    ("or so", "using F = void(int); ((F*)5)(1);", "no name"), ("or so", "using F = void(int); reinterpret_cast<F*>(5)(1);", "no name"),
    ("a member's address", "(s_row.*m)(1);", "a pointer to a member"), ("a function of elsewhere", "float cosh_(float); l = cosh_(l);", "cosh_"),
    ("or so, as a member", "using F = float(float); struct H { F* f; }; H h; h.f = (F*)(5); h.f(1);", "f, which is called"),
    ("or so, as one of a known name", "using F = float(float); struct H { F* warp_max; }; H h; h.warp_max(1);", "warp_max, which is called"),
    ("or so, of a template", "template <class F> struct H { F* f; }; H<float(float)> h; h.f = 0; h.f(1);", "f, which is called"),
    ("or so, to a template", f"{TEMPLATE} using F = float(float); l = call((F*)(0x401000), 1);", "op, which is called"),
    ("a changed address to a template", "template <class F> float call(F op, float x) { op += 64; return op(x); } l = call(expf, 1);", "op, which is called"),
    ("or so", "template <class F> float call(F op, float x) { F g = (F)(0x401000); return g(x); } l = call(expf, 1);", "g, which is called"),
    ("a lambda's address to a template", f"{TEMPLATE} l = call(+[](float x) {{ return x; }}, 1);", "op, which is called"),
    ("or so", f"{TEMPLATE} l = call(*[](float x) {{ return x; }}, 1);", "op, which is called"),
    ("or so", f"{TEMPLATE} auto g = [](float x) {{ return x; }}; l = call(+g + 64, 1);", "op, which is called"),
    ("a member's address to a template", "struct S { static __device__ float f(float x) { return x; } }; "
     f"{TEMPLATE} l = call(S::f, 1);", "op, which is called"),
    ("an address to a lambda", "const auto f = [](auto op) { return op(1); }; f(max<int>);", "op, which is called"),
    ("a loop's object for a function", f"{FUNCTOR} for (S vfork; false;) {{}} vfork(1);", "vfork, which is called"),
    ("or so", f"{FUNCTOR} for (S vfork; false;); vfork(1);", "vfork, which is called"), ("a block's", f"{FUNCTOR} {{ S vfork; }} vfork(1);", "vfork"),
    ("a parameter for a function", f"{FUNCTOR} const auto f = [](S vfork) {{ return vfork(1); }}; vfork(1);", "vfork, which is called"),
    ("an object that cannot be called", "struct S { float a; }; S vfork; vfork(1);", "vfork, which is called"),
    ("a number", "float vfork = 1; l = vfork(3);", "vfork, which is called"),
    ("no member", "for (float vfork = 0; false;) {} struct S { int v; }; S y; l = lane ? S(y) : vfork(3);", "vfork, which is called"),
    ("converts to something else", "struct S { using F = float(float); __device__ operator F*() { return (F*)(5); } };", "operator"),
    ("keeps results in a function", "static __device__ float kept;", "not const"),
    ("letters that look like others", "float а = 1;", "ASCII"),
    ("a digraph", "%:define x", "digraph"), ("hides a type", "int T = 2; l = T;", "T, which is a type"),
]
ALLOWED = ["", "for (int j = lane, n = 3; j < n; j += 32) l += s_row[j];", "float a = 0, b[4] = {}, c; c = a + b[0];",
           "const auto twice = [&](float x, float y) { return 2 * x + y; };\nl = twice(l, m);",
           "#pragma unroll\nfor (int i = 0; i < 4; i++) l += 1;",
           "#pragma unroll 4\nfor (int i = 0; i < 4; i++) l += 1;",
           "__shared__ float row[32]; row[lane] = l; __syncwarp();",
           "l = fmaxf(l, __shfl_xor_sync(0xffffffff, l, 1));  // größer",
           "if (const float x = 1, y = 2; x < y) l = x;", "float4 v = make_float4(1, 2, 3, 4); l = v.x;",
           "__shared__ float odd_most[32], odd_sums[32]; odd_most[lane] = odd_sums[lane] = l;", "volatile float odd_keep = 0, odd_other = 1; l = odd_other;",
           "struct A { struct B { int first; }; }; const A::B odd_span = {1}; l = odd_span.first;", "const T mine = s_row[0];", "float4 v = *reinterpret_cast<const float4*>(s_row + 4 * lane); l = v.x;",
          "l = fma(l, m, rsqrt(l)) + __fsqrt_rn(l); const __half2 h = __float2half2_rn(l);", "volatile float x = l;",
          "static constexpr int n = 1'000;", "constexpr int depth = 4;\n#pragma unroll depth\nfor (int i = 0; i < 4; i++) l += 1;",
          "unsigned all = __reduce_add_sync(0xffffffff, unsigned(lane)); l = all;", "for (;;) {}",
          "l = (float)(lane) * (l + 1);", "if (l > 0) (l) = 1;", "float twice(float x) { return 2 * x; } l = twice(l);",
          "const auto f = [](float x) { return x; };\nl = f(m) * (m);", "l = [&](float x) { return x; }(l);",
          f"{TEMPLATE} {FUNCTOR} const auto f = [](float x) {{ return x; }}; S s; l = call(f, 1) + call(S(), 1) + call(s, 1) + s(1) + S()(1) + S{{}}(1);",
          "struct A { float v, w; __device__ A(float x) : v(x), w{x} {} __device__ float get() const { return v; } __device__ float twice() const "
          "{ return 2 * get(); } __device__ A operator+(const A& b) const { return A(v + b.v); } }; A a(0.0f); l = (a + a).twice();",
          "const auto f = [](auto op, float x) { return op(x); }; l = f([](float x) { return x; }, 1);", "float t[2][3] = {}; float (*u)[3] = t; l = u[0][0];",
          "typedef unsigned int u32; u32 n = 0; uint k = n; l = k;", "float a[2]; l = a[0] * (a[1]);", "while (l > (m)) (void)(l);", "l = fmax(exp(l), log(m)) + fabs(sqrt(pow(2, floor(l))));"]


# Outside of functions: what runs before the program does, and what does not.
EARLY = ["const int started = early();", "int started = early();", "__device__ int started = early();", "int started(early(2));", "int started{early()};",
         "const int started = [] { return 1; }();", "struct Early { int x = early(); } started;", "struct E { int x = early(); }; E e = {};",
         "struct E { inline static int x = early(); };", "template <class T> const int started = early();",
         "int a = 1, b = early();", "const int started =\n    early();", "struct E { E(int) {} }; E e(1);", "const float x = sqrt(2.0f);",
         "int started = // early\n early();", "namespace { int started = early(); }", "const int x = started;", "struct uint32_t { uint32_t(int) {} }; const uint32_t x = 1;",
         "struct E { E(int) {} }; const E e = 1;", "const float a = 1, b(early());"]
NOT_EARLY = ["constexpr int rows = 4 * Bc;", "constexpr int rows = early();", "const int rows = 64;", "const float zero = 0, two[2] = {0, -.5f};", "__constant__ float table[2][2] = {{1, 2}, {3, 1e-3f}};",
             "const float lowest = -INFINITY;", "const uint32_t bits{0xff};",
             "__device__ float twice(float x) { return 2 * x; }", "template <class T = float>\n__device__ T twice(T x) { const T y = early(); return y; }",
             "struct Pair { float a = 1, b; };", "using Row = float*;", "enum { rows = 4 };", "static_assert(rows(4) == 4);", "float twice(float x);",
             "void later();", "int later(const Problem& p, int n);", "struct E { int get() const { return 1; } };",
             "template <class T, int n>\nstruct Rows { T at[n]; __device__ T first() { T x = early(); return x; } };", "// const int x = early();",
             "__global__ void k(float* a) {\n  const float x = early();\n  a[0] = x;\n}"]


# And what no kernel may write to.
KEPT = ["__device__ float zero = 0;", "__device__ int kept;", "__device__ float sums[2] = {0, 0};", "int kept[2];"]


class KernelCode(unittest.TestCase):
    def setUp(self):
        self.course = course.load()
        self.device = [path.read_text() for path in sorted(self.course.root.glob("common/device/*.h"))]
        (self.exercise,) = self.course.select(["05.rescale"])

    def objection(self, written: str, exercise=None):
        one = exercise or self.exercise
        return objection(written, [self.course.student_files([one])[one.file], *self.device], one.may)

    def test_every_solution_and_every_stub(self):
        for one in self.course.exercises:
            if one.kind == "code":
                self.assertIsNone(self.objection(self.course.written(one), one), one.id)
                self.assertIsNone(self.objection(self.course.handed_out(one), one), one.id)

    def test_what_a_kernel_needs(self):
        for code in ALLOWED:
            with self.subTest(code=code):
                self.assertIsNone(self.objection(code))

    def test_what_it_does_not_need(self):
        for what, code, expected in REFUSED:
            with self.subTest(what=what, code=code):
                found = self.objection(code)
                self.assertIsNotNone(found, code)
                self.assertIn(expected, found.what)

    def test_the_right_file_of_a_debugging_exercise(self):
        for one in self.course.exercises:
            if one.kind == "debug":
                with self.subTest(exercise=one.id):
                    self.assertIsNone(refusal(self.course, one, self.course.text(one)))

    def test_nothing_outside_of_functions_runs_before_the_program(self):
        barrier, reduction = self.course.select(["04.barrier", "05.reduction"])
        text, solution = self.course.text(barrier), self.course.written(reduction)
        for says, codes in (("first value is no number", EARLY), ("is not const", KEPT), ("", NOT_EARLY)):
            for code in codes:
                mended = text.replace("namespace fusion {\n", f"namespace fusion {{\n{code}\n", 1)
                written = self.course.replaced(reduction, f"{solution}\n{code}")
                for one, handed_in in ((barrier, mended), (reduction, written)):
                    with self.subTest(code=code, exercise=one.id):
                        found = refusal(self.course, one, handed_in)
                        self.assertEqual(bool(found) and "a variable outside of functions" in found.line, bool(says), found)
                        if says:
                            self.assertIn(says, found.line)
                            self.assertTrue(found.refused)
                            at = int(found.line.partition(":")[2].partition(":")[0])
                            self.assertIn(handed_in.splitlines()[at - 1], code.splitlines())
        within = "  const int n = early();\n  int early = [] { return 1; }();"
        self.assertNotIn("outside of functions", str(refusal(self.course, self.exercise, self.course.replaced(self.exercise, within))))

    def test_no_name_comes_to_mean_another_function_to_the_lines_around(self):
        """So that these would do the exercise's work in another place."""
        reduction, diagonal = self.course.select(["05.reduction", "08.diagonal"])
        stub = self.course.handed_out(reduction)
        for one, code, doubted in [(diagonal, "const auto exp2_approx = [](const float& x) { return x; };", True),
                                   (diagonal, FUNCTOR + "S exp2_approx;", True), (diagonal, "using exp2_approx = float;", True),
                                   (diagonal, "const auto f = [](float x) { return x; }; auto exp2_approx = f;", True),
                                   (diagonal, "const auto f = [](float x) { return x; }; const float exp2_approx = f(1);", False),
                                   (reduction, stub + "__device__ float expf(float x) { return x; }", True), (reduction, stub, False)]:
            with self.subTest(code=code):
                found = refusal(self.course, one, self.course.replaced(one, code))
                self.assertEqual(bool(found) and "which the lines around call" in found.line, doubted, found)

    def test_of_a_file_only_what_the_student_writes(self):
        text = self.course.student_files([self.exercise])[self.exercise.file]
        first = self.course.region(self.exercise, text).first
        self.assertEqual(refusal(self.course, self.exercise, f"int x = system(0);\n{text}"), None)
        written = text.replace("const float correction = 1;", 'const float correction = 1;\nprintf("%f\\n", l);')
        self.assertEqual(refusal(self.course, self.exercise, written).line,
                         f'{self.exercise.file}:{first + 2}: a string or a character: printf("%f\\n", l);')

    def test_what_ends_a_line_for_only_one_of_python_and_the_compiler(self):
        """Behind it, code could look like a comment. Where the compiler does not see it, it does not matter."""
        text = self.course.student_files([self.exercise])[self.exercise.file]
        first = self.course.region(self.exercise, text).first
        for letter, said in [("\0", "a zero byte (U+0000)"), ("\f", "a form feed (U+000C)"), ("\v", "a vertical tab (U+000B)"),
                             ("\x1c", "a control character (U+001C)"), ("\x7f", "a control character (U+007F)"),
                             ("\x85", "a control character (U+0085)"), ("\u2028", "line separator (U+2028)"),
                             ("\u2029", "paragraph separator (U+2029)"), ("\r", "a carriage return alone (U+000D)")]:
            with self.subTest(letter=ascii(letter)):
                comment = f"// mine {letter} for later"
                written = text.replace("const float correction = 1;", f"const float correction = 1;\n{comment}")
                found = refusal(self.course, self.exercise, written)
                self.assertEqual((found.line, found.refused), (f"{self.exercise.file}:{first + 2}: {said}: remove it, also from a "
                                 "comment; of what cannot be seen only blanks, tabs and ends of lines may be here", True))
                self.assertIsNone(refusal(self.course, self.exercise, f"{comment}\n{text}"), "outside of the markers")
                (heads,) = self.course.select(["01.heads"])
                mended = self.course.text(heads)
                found = refusal(self.course, heads, f"{mended}{comment}\n")
                self.assertIn(f"{heads.file}:{mended.count(chr(10)) + 1}: {said}", found.line)
        windows = text.replace("const float correction = 1;", "const float correction = 2;  // mine").replace("\n", "\r\n")
        self.assertIsNone(refusal(self.course, self.exercise, windows))

    def test_no_text_takes_long(self):
        """It is read by the grader itself, whom nobody stops."""
        (heads,) = self.course.select(["01.heads"])
        for code in ("/* " * 5000, "int " + ", ".join(f"a{number}" for number in range(2000)) + ";", "f(" * 8000, "> x " * 4000,
                     "T<" * 5000 + ">" * 5000 + " x;", "{" * 16000, "a b;" * 4000, "{}" * 8000,
                     "template<>" * 1600, "'" * 16000, "x(){}" * 3000):
            with self.subTest(code=code[:20]):
                begin = time.process_time()
                self.objection(code)
                first_variable(code, {1})
                self.assertLess(time.process_time() - begin, 1)
        begin = time.process_time()
        found = refusal(self.course, self.exercise, self.course.replaced(self.exercise, "/* " * 300_000))
        self.assertIn("characters more than were handed out, and at most 16,384 may be", found.line)
        found = refusal(self.course, heads, self.course.text(heads) + "\n" * 500_000)
        self.assertIn("500,", found.line)
        self.assertLess(time.process_time() - begin, 1)

    def test_the_line(self):
        self.assertEqual(self.objection("l = 1;\n/* two\nlines */ fork();").line, 3)


if __name__ == "__main__":
    unittest.main()
