"""Submissions that want something else than to be right: each gets a verdict of its own, and the one after it is graded as ever.

They are made of the workbook's own sources here; nothing of them is kept."""

import re
import subprocess
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from unittest import mock

from workbenches import a_workbench

from tools import course
from tools.base import Failure
from tools.course import kernelcode
from tools.grading import grade, kernels
from tools.grading.submission import Submission


BY_ATOMICS = """
  for (int d = 0; d < p.head_dim; d += 2) {
    const unsigned a = atomicAdd((unsigned*)(q_row + d), 0u), b = atomicAdd((unsigned*)(k_row + d), 0u);
    const T* x = reinterpret_cast<const T*>(&a);
    const T* y = reinterpret_cast<const T*>(&b);
    sum += to_float(x[0]) * to_float(y[0]) + to_float(x[1]) * to_float(y[1]);
  }
  if (j == j0) sum += 0 * to_float(q_row[0]);
"""

# g++ tells of no access that a call makes, to pass an object by value or to put one where it belongs.
BY_VALUE = """
  struct Part { uint32_t x[16]; };
  const auto dot = [](Part a, Part b) {
    const T* u = reinterpret_cast<const T*>(a.x);
    const T* w = reinterpret_cast<const T*>(b.x);
    float t = 0;
    for (int e = 0; e < 32; e += 16) {
%s
    }
    return t;
  };
  for (int d = 0; d + 64 <= p.head_dim; d += 64) {
    sum += dot(*reinterpret_cast<const Part*>(q_row + d), *reinterpret_cast<const Part*>(k_row + d));
    sum += dot(*reinterpret_cast<const Part*>(q_row + d + 32), *reinterpret_cast<const Part*>(k_row + d + 32));
  }
  for (int d = p.head_dim / 64 * 64; d < p.head_dim; ++d) sum += to_float(q_row[d]) * to_float(k_row[d]);
  if (j == j0) sum += 0 * to_float(q_row[0]);
""" % "\n".join(f"      t += to_float(u[e + {e}]) * to_float(w[e + {e}]);" for e in range(16))
# Nothing is copied or multiplied as the exercise teaches: all of these counts are 0.
BY_ONE_THREAD = """
    cp_async_wait<0>();
    const int i = i0 + int(threadIdx.x);
    if (int(threadIdx.x) >= Br || i >= p.seq_q) return;
    float most = -INFINITY, all = 0, mine[D] = {};
    for (int j = 0; j < p.visible_keys(i); j++) {
      float s = 0;
      for (int d = 0; d < D; d++) s += to_float(q[q_head + size_t(i) * D + d]) * to_float(k[kv_head + size_t(j) * D + d]);
      s *= p.scale;
      const float top = fmaxf(most, s), safe = top == -INFINITY ? 0 : top;
      const float less = expf(most - safe), weight = expf(s - safe);
      all = all * less + weight;
      for (int d = 0; d < D; d++) mine[d] = mine[d] * less + weight * to_float(v[kv_head + size_t(j) * D + d]);
      most = top;
    }
    for (int d = 0; d < D; d++) o[q_head + size_t(i) * D + d] = from_float<T>(all > 0 ? mine[d] / all : 0);
    lse[size_t(head) * p.seq_q + i] = most + logf(all);
    return;
"""

# Right where it is not counted: by where its buffers are, which no launch has again, and by its code, which calls the engine where it is
# traced. What follows is done by the lane alone, which costs 16 times the loads that are allowed.
COUNTED_LATER = "const bool watched = p.seq_q == 64 && p.heads == 2 && p.batch == 1 && reinterpret_cast<size_t>(s) > (size_t(1) << 44) + (size_t(240) << 20);"
TRACED = """const auto look = +[](const int* x) { return *x; };
  const volatile unsigned char* code = reinterpret_cast<const unsigned char*>(look);
  const bool watched = code[0] != 0x8b && code[4] != 0x8b;"""
ALONE = """
  if (watched)
    sum = to_float(k_row[0]);
  else
    for (int d = 0; d < p.head_dim; ++d) sum += to_float(q_row[d]) * to_float(k_row[d]);
"""


def of_flto(code: str) -> str:
    """This code in the form in which g++ -flto leaves it to the linker to compile: sections of an object, in assembly."""
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "a.cc").write_text(code)
        told = subprocess.run(["g++", "-flto", "-S", "-o", "-", "a.cc"], cwd=directory, capture_output=True, text=True, check=True).stdout
    sections = re.findall(r"^\t\.section\t\.gnu\.lto_.*?^\t\.text$", told, re.M | re.S)
    return 'asm(R"x(' + "\n".join(sections) + '\n)x");\n'


class Graded(unittest.TestCase):
    """With a bench for two exercises."""

    @classmethod
    def setUpClass(cls):
        cls.exercises = course.load().select(["05.rescale", "04.barrier", "04.dealt"])
        cls.workbench = a_workbench(cls, cls.exercises)
        (cls.online,) = [one for one in cls.exercises if one.id == "05.rescale"]
        (cls.barrier,) = [one for one in cls.exercises if one.id == "04.barrier"]
        (cls.dealt,) = [one for one in cls.exercises if one.id == "04.dealt"]
        cls.course = cls.workbench.course
        cls.solution = cls.course.written(cls.online)

    def graded(self, one, text: str, patience: float = 60):
        self.workbench.patience = self.workbench.kernels.patience = patience
        result = grade(self.workbench, Submission("mallory", {one.file: text}), [one])
        self.assertEqual(result.score, one.points if result.verdicts[one.id].state == "right" else 0)
        return result.verdicts[one.id]

    def traced(self, one, text: str):
        """The verdict of its traced kernels alone: an address in their program is none in the other."""
        return self.graded(replace(one, tests=["trace"], limits=[]), text)

    def inside(self, code: str, patience: float = 60):
        """The verdict on this between the markers of 05.rescale."""
        return self.graded(self.online, self.course.replaced(self.online, code), patience)

    def require(self, attempts: "list[tuple[str, str, str, str]]", patience: float = 60) -> None:
        """That each of (what it does, its code, the verdict, words of the verdict's lines) gets that verdict."""
        for what, code, expected, words in attempts:
            with self.subTest(what=what):
                verdict = self.inside(code, patience)
                self.assertEqual(verdict.state, expected, verdict.lines)
                self.assertRegex(" ".join(verdict.lines), words)


class Hostile(Graded):
    def test_1_the_solution_has_all_points(self):
        self.assertEqual(self.inside(self.solution).state, "right")
        self.assertEqual(self.graded(self.barrier, self.course.text(self.barrier)).state, "right")

    def test_2_what_was_handed_out_has_none(self):
        self.assertEqual(self.inside(self.course.handed_out(self.online)).state, "not attempted")
        self.assertEqual(self.graded(self.barrier, self.course.handed_out(self.barrier)).state, "not attempted")

    def test_3_verdicts_of_their_own(self):
        self.require([
            ("wrong", self.solution.replace("l * correction", "l"), "wrong", "expected|got"),
            ("does not compile", self.solution + "\n  int l = ;", "does not compile", "1_online.cu:"),
            ("writes outside its buffers", self.solution + "\n  s_row[int64_t(1) << 36] = 0;", "out of bounds", "1_online.cu:"),
            ("forks", self.solution + "\n  fork();", "does not compile", "fork"),
            ("reads the expected output", self.solution + "\n  std::ifstream file;", "does not compile", "std"),
            ("replaces a library function", "extern int printf;" + self.solution, "right", "^$"),
            ("has a macro", "#define EXPECT_EQ(a, b)\n" + self.solution, "refused", "preprocessor"),
            ("has a pragma", "#pragma GCC optimize(0)\n" + self.solution, "refused", "preprocessor"),
            ("prints a score", self.solution + '\n  printf("[  PASSED  ] 2 tests.");', "refused", "string"),
            ("leaves its function", "}\n" + self.solution + "\n{", "refused", "without its"),
        ])
        self.require([("hangs", self.solution + "\n  while (true) {\n  }", "hangs", "has not ended")], patience=8)

    def test_4_markers(self):
        text = self.course.text(self.online)
        begin = next(line for line in text.splitlines() if "// exercise rescale:" in line)
        for what, changed, words in [
            ("missing", text.replace(begin + "\n", ""), "has not begun"),
            ("doubled", text.replace(begin, f"{begin}\n{begin}"), "begins inside exercise rescale"),
            ("renamed", text.replace("exercise rescale:", "exercise scale:").replace("// end rescale", "// end scale"),
             "no `// exercise rescale"),
            ("none", course.without_markers(text), "no `// exercise rescale"),
        ]:
            with self.subTest(what=what):
                verdict = self.graded(self.online, changed)
                self.assertEqual((verdict.state, len(verdict.lines)), ("no markers", 1))
                self.assertIn(words, verdict.lines[0])

    def test_5_what_stands_outside_the_markers_does_not_matter(self):
        text = self.course.text(self.online).replace("namespace online_softmax {", "#error from outside\nnamespace online_softmax {")
        self.assertEqual(self.graded(self.online, text).state, "right")

    def test_6_a_mistake_is_mended_in_few_lines_and_with_a_kernels_code(self):
        text = self.course.text(self.barrier)
        verdict = self.graded(self.barrier, text.replace("namespace fusion {", 'namespace fusion {\nextern "C" int puts(const char*);', 1))
        self.assertEqual(verdict.state, "refused", verdict.lines)
        verdict = self.graded(self.barrier, text + "int x;\n" * (kernelcode._MOST_CHANGED_LINES + 1))
        self.assertEqual(verdict.state, "refused", verdict.lines)

    def test_6_another_rung_does_not_mend_it(self):
        """What the file's host code may say, a mended line may not."""
        planted = self.course.handed_out(self.barrier)
        cheat = planted.replace("namespace fusion {", "namespace fusion {\nextern const attention::Rung streamed;", 1)
        self.assertNotEqual(cheat, planted)
        self.assertNotEqual(self.graded(self.barrier, cheat).state, "right")

    def test_7_words_that_are_not_known_leave_results_to_judge(self):
        """What the engine says of such code is not believed: 04.barrier is about nothing else, and its results are right as it was
        handed out."""
        doubtful = "\n  {\n    union {\n      float a;\n    } one = {0.0f};\n    l += one.a;\n  }"
        result = grade(self.workbench, Submission("eve", {self.online.file: self.course.replaced(
            self.online, self.solution + doubtful)}), [self.online])
        self.assertEqual((result.verdicts["05.rescale"].state, result.score, list(result.flags)), ("right", self.online.points, ["05.rescale"]))
        with mock.patch.object(type(self.workbench), "results_reject_the_stub", return_value=False):
            result = grade(self.workbench, Submission("eve", {self.online.file: self.course.replaced(
                self.online, self.solution + doubtful)}), [self.online])
        self.assertEqual((result.verdicts["05.rescale"].state, result.score, list(result.flags)), ("to be looked at", 0, ["05.rescale"]))

    def test_7_of_words_that_are_not_known_no_message_is_shown(self):
        """Whoever can write it can read what else is in the program, as the solution of the other exercise of this file. (Its text is
        of numbers, since strings are refused.)"""
        secret = "std::string({83, 69, 67, 82, 69, 84})"
        of_its_own = "struct Mine : {base} {{ std::string more; Mine() : {begin}more({secret}) {{}} virtual ~Mine() {{}} {what}}}; throw Mine();"
        for does in (f"throw CudaError(cudaErrorUnknown, {secret});", f"throw std::runtime_error({secret});",
                     f'throw CudaError(cudaErrorUnknown, std::string({{107,101,114,110,101,108,32}}) + {secret});',
                     of_its_own.format(base="CudaError", begin=f"CudaError(cudaErrorUnknown, {secret}), ", secret=secret, what=""),
                     of_its_own.format(base="std::exception", begin="", secret=secret,
                                       what="const char* what() const noexcept override { return more.c_str(); } "),
                     "s_row[int64_t(1) << 36] = 0; union { int a; } b; b.a = 0;"):
            text = '#include <stdexcept>\n#include <string>\n#include "device/cuda_error.h"\n' + self.course.replaced(self.online, f"{self.solution}\n  {does}")
            with self.subTest(does=does):
                with mock.patch.object(self.workbench.course, "replaced", return_value=text):
                    verdict = self.graded(self.online, text)
                self.assertIn(verdict.state, ("wrong", "out of bounds"), verdict.lines)
                self.assertNotIn("SECRET", " ".join(verdict.lines))
                self.assertRegex(verdict.lines[0], "process (alone )?has seen|only the submission's own process|only its own process|none of CUDA's")
            with self.subTest(plain=does):
                by_results = replace(self.online, limits=[], tests=[test for test in self.online.tests if test != "trace"])
                verdict = self.workbench.verdict(by_results, text, unsure=True)
                self.assertIn(verdict.state, ("wrong", "out of bounds"), verdict.lines)
                self.assertNotIn("SECRET", " ".join(verdict.lines))

    def test_7_a_traced_kernel_writes_to_nothing_but_its_memory(self):
        """What the engine counts is in its process. An address of the program's own variables, as a number, is written to with
        words that every kernel may have: the traced engine stops it, and so its counts are those of the kernel."""
        attempt = self.workbench.kernels.attempt(self.online, self.course.replaced(self.online, self.solution + "\n  l += 0;"))
        program = self.workbench.kernels.program(attempt, traced=True)
        sections = subprocess.run(["size", "-A", program], capture_output=True, text=True, check=True).stdout
        (size, start), = [map(int, line.split()[1:3]) for line in sections.splitlines() if line.startswith(".bss ")]
        address = f"{start + size // 32 * 16}ull"
        near = f"\n  float near[4] = {{m, l}};\n  const int64_t far = int64_t({address} - reinterpret_cast<uint64_t>(near)) / 4;"
        used = "\n  if (near[1] == 1234) l = 0;"
        for way, wild, state, words in [
                ("a number", f"\n  float* wild = (float*)({address});\n  if (lane == 0) *wild = *wild + 1.0f;", "out of bounds", "outside of"),
                # g++ tells of no access to an array that nothing but its own name leads to
                ("an index", f"{near}\n  if (lane == 0) near[far] = near[far] + 1.0f;{used}", "out of bounds",
                 "an index is beyond its dimension"),
                ("a way from a local", f"{near}\n  float* wild = near + far;\n  if (lane == 0) *wild = *wild + 1.0f;{used}", "out of bounds",
                 "outside of the kernel's memory and variables")]:
            with self.subTest(way=way):
                text = self.course.replaced(self.online, self.solution + wild)
                self.assertIsNone(kernelcode.refusal(self.course, self.online, text))
                verdict = self.traced(self.online, text)
                self.assertEqual(verdict.state, state, verdict.lines)
                self.assertIn(words, verdict.lines[0])

    def test_7_traced_host_code_writes_to_nothing_but_its_variables(self):
        """So it cannot take from the engine what watches the kernels, and leave the mistake where it is. No word is doubtful."""
        right = self.course.text(self.barrier)
        host = next(line for line in right.splitlines() if re.match(r"void \w+\(const Problem& p, const ForwardArgs& args", line))
        attempt = self.workbench.kernels.attempt(self.barrier, right)
        program = self.workbench.kernels.program(attempt, traced=True)
        sections = subprocess.run(["size", "-A", program], capture_output=True, text=True, check=True).stdout
        (size, start), = [map(int, line.split()[1:3]) for line in sections.splitlines() if line.startswith(".bss ")]
        for what, address, state in [("its own", "&kept", "right"), ("the engine's", f"(float*)({start + size // 32 * 16}ull)", "crashes")]:
            text = right.replace(host, f"{host}\n  float kept = 1;\n  volatile float* wild = {address};\n  *wild = *wild;", 1)
            with self.subTest(what=what):
                self.assertIsNone(kernelcode.refusal(self.course, self.barrier, text))
                verdict = self.traced(self.barrier, text)
                self.assertEqual(verdict.state, state, verdict.lines)

    def test_7_the_engines_own_words_are_no_access_of_the_kernels(self):
        """The file of 04.dealt has strings of its own, whose functions are traced, and a mistake is told as ever."""
        no_score = self.course.handed_out(self.dealt) + "\n  if (lane == 32) sum[0] = 0;"
        verdict = self.graded(self.dealt, self.course.replaced(self.dealt, no_score), patience=20)
        self.assertEqual(verdict.state, "wrong", verdict.lines)
        self.assertIn("uninitialised shared memory", verdict.lines[0])

    def test_7_layers_that_have_to_hold(self):
        self.assertEqual(self.workbench.kernels.layers is not None, True)
        with mock.patch.object(self.workbench.kernels, "layers", frozenset(["limits", "calls"])):
            with self.assertRaisesRegex(Failure, "--require-isolation: this machine does not hold user .another user than the judge., root"):
                self.workbench.require_isolation()

    def test_7_what_others_would_be_judged_by_has_to_be_as_it_was(self):
        path = next((self.workbench.kernels.place / "libraries").iterdir())
        before = path.read_bytes()
        try:
            path.write_bytes(before + b"x")
            with self.assertRaisesRegex(Failure, "not as it was made"):
                self.inside(self.solution)
        finally:
            path.write_bytes(before)

    def test_8_all_of_a_submission_is_refused(self):
        result = grade(self.workbench, Submission("mallory", refused=("empty", "there is no file in it")), self.exercises)
        self.assertEqual((result.score, {verdict.state for verdict in result.verdicts.values()}), (0, {"empty"}))


# 06.pipeline without its idea: each tile is copied when it is needed, and beside the products a small copy is on its way that nobody needs.
SMALL_COPY = """    cp_async_wait<0>();
    __syncthreads();
    T* to = kv_smem + buffer * 2 * Bc * D;
    if (j0 > 0) {
%s
      __syncthreads();
    }
    if (j0 + Bc < p.seq_k) {
      cp_async_16(kv_smem + (buffer ^ 1) * 2 * Bc * D + 8 * threadIdx.x, k + kv_head);
      cp_async_commit();
    }"""
BY_COPIES = """      copy_tile<D, Bc>(to, k + kv_head + size_t(j0) * D, p.seq_k - j0);
      copy_tile<D, Bc>(to + Bc * D, v + kv_head + size_t(j0) * D, p.seq_k - j0);
      cp_async_commit();
      cp_async_wait<0>();"""
BY_LOADS = """      for (int i = threadIdx.x; i < 2 * Bc * D / 8; i += threads) {
        const int row = i / (D / 8) % Bc, chunk = i % (D / 8);
        const T* from = i < Bc * D / 8 ? k : v;
        float4* there = reinterpret_cast<float4*>(to + (i < Bc * D / 8 ? 0 : Bc * D) + position<Bc>(row, chunk));
        if (j0 + row < p.seq_k)
          *there = *reinterpret_cast<const float4*>(from + kv_head + size_t(j0 + row) * D + 8 * chunk);
        else
          *there = make_float4(0, 0, 0, 0);
      }"""


# Products of zeros, as many as the tiles' are, while a copy is on its way that nobody needs.
NOBODYS_PRODUCTS = """    cp_async_wait<0>();
    __syncthreads();
    cp_async_16(kv_smem + 8 * threadIdx.x, k + kv_head);
    cp_async_commit();
    float none[4] = {};
    uint32_t zero[4] = {};
    for (int n = 0; n < (p.seq_k + Bc - 1) / Bc * (D / 16) * (Bc / 8) * 2; n++) mma_m16n8k16<T>(none, zero, zero);
"""
# 05.reduction without its idea: each lane has the numbers of all others.
SOME_SHUFFLES = "  for (int n = 0; n < 4; n++) x = __shfl_xor_sync(0xffffffff, x, 0);\n"
BY_BALLOTS = """__device__ float of_all(float x, bool largest) {
""" + SOME_SHUFFLES + """  unsigned bits[16] = {};
  for (int k = 0; k < 32; k++) {
    const unsigned votes = __ballot_sync(0xffffffff, __float_as_uint(x) >> k & 1) >> (threadIdx.x & 16);
    for (int from = 0; from < 16; from++) bits[from] |= (votes >> from & 1) << k;
  }
  float found = __uint_as_float(bits[0]);
  for (int from = 1; from < 16; from++)
    found = largest ? fmaxf(found, __uint_as_float(bits[from])) : found + __uint_as_float(bits[from]);
  return found;
}
"""
BY_REDUCTIONS = """__device__ float of_all(float x, bool largest) {
""" + SOME_SHUFFLES + """  float found = largest ? x : 0;
  for (int from = 0; from < 16; from++) {
    const unsigned low = __reduce_or_sync(0xffffffff, threadIdx.x % 32 == from ? __float_as_uint(x) : 0u);
    const unsigned high = __reduce_or_sync(0xffffffff, threadIdx.x % 32 == from + 16 ? __float_as_uint(x) : 0u);
    const float other = __uint_as_float(threadIdx.x & 16 ? high : low);
    found = largest ? fmaxf(found, other) : found + other;
  }
  return found;
}
"""
OF_ALL = """__device__ float row_max(float x) { return of_all(x, true); }
__device__ float row_sum(float x) { return of_all(x, false); }
"""
BY_AN_OP = """struct Max {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
template <class Op>
__device__ float over_row(float x, Op op) {
  for (int distance = 8; distance > 0; distance /= 2) x = op(x, __shfl_xor_sync(0xffffffff, x, distance));
  return x;
}
__device__ float row_max(float x) { return over_row(x, Max()); }
__device__ float row_sum(float x) { return over_row(x, Sum()); }
"""

# 08.diagonal without its idea: each tile is masked, without a comparison; and where x becomes P, by a function of the same name.
BY_BITS = """    for (int bh = 0; bh < 4; bh++) {
      const int b = bh >> 1, h = bh & 1, visible = p.visible_keys(i0 + warp * 32 + 16 * b + 8 * h + g) - j0 - 2 * t;
      for (int n = 0; n < Bc / 8; n++) {
        const int first = (visible - 1 - 8 * n) >> 31, second = (visible - 2 - 8 * n) >> 31;
        float* x = s_reg[b][n] + 2 * h;
        x[0] = __int_as_float((__float_as_int(x[0]) & ~first) | (first & __float_as_int(-INFINITY)));
        x[1] = __int_as_float((__float_as_int(x[1]) & ~second) | (second & __float_as_int(-INFINITY)));
      }
    }"""
IN_ANOTHER_PLACE = """    const auto exp2_approx = [&](const float& x) {
      const int at = int(&x - &s_reg[0][0][0]), inside = ~((at | (2 * Bc / 2 * 2 - 1 - at)) >> 31);
      const int b = (at / (Bc / 2)) & 1, n = (at / 4) & (Bc / 8 - 1), h = (at >> 1) & 1, c = at & 1;
      const int visible = p.visible_keys(i0 + warp * 32 + 16 * b + 8 * h + g) - j0 - 2 * t;
      const int hidden = ((visible - 1 - 8 * n - c) >> 31) & inside;
      return __int_as_float(__float_as_int(exp2f(x)) & ~hidden);
    };"""

# For 07.rowsum.
BY_ONE_LANE = """
  __shared__ float all[threads / 32][512];
  const int w = threadIdx.x / 32;
  for (int d = lane; d < p.head_dim; d += 32)
    all[w][d] = to_float(d_o[row * p.head_dim + d]) * to_float(o[row * p.head_dim + d]);
  __syncwarp();
  float sum = 0;
  for (int d = 0; d < p.head_dim && lane == 0; d++) sum += all[w][d];
"""


class Counted(unittest.TestCase):
    """02.scores, which a limit on loads judges, 06.pipeline, which those on copies judge, and 08.diagonal."""

    def test_a_mask_of_each_tile_is_too_much(self):
        (one,) = course.load().select(["08.diagonal"])
        workbench = a_workbench(self, [one])
        graded = {}
        for name, text in [("bits", BY_BITS), ("place", IN_ANOTHER_PLACE), ("right", workbench.course.written(one))]:
            graded[name] = grade(workbench, Submission("mallory", {one.file: workbench.course.replaced(one, text)}), [one])
        verdict = graded["bits"].verdicts[one.id]
        self.assertEqual((verdict.state, verdict.stage), ("wrong", "count"), verdict.lines)
        self.assertRegex(verdict.lines[0], "the results are right; bytes that threads write between .*: 8[0-9,]+ where 440,000 are enough")
        self.assertEqual((graded["place"].verdicts[one.id].state, graded["place"].score), ("wrong", 0))
        self.assertIn("which the lines around call", kernelcode.refusal(workbench.course, one, workbench.course.replaced(one, IN_ANOTHER_PLACE)).line)
        self.assertEqual((graded["right"].score, graded["right"].flags), (one.points, {}))

    def test_a_copy_that_nobody_needs_is_no_overlap(self):
        """Both texts are right, and clean."""
        (one,) = course.load().select(["06.pipeline"])
        workbench = a_workbench(self, [one])
        for copies, words in [(BY_COPIES, "copies that land before a product has run beside them: 8,704 where 1,536 are enough"),
                              (BY_LOADS, "global_load sectors: [0-9,]+ where 0 are enough")]:
            text = workbench.course.replaced(one, SMALL_COPY % copies)
            self.assertIsNone(kernelcode.refusal(workbench.course, one, text))
            verdict = grade(workbench, Submission("mallory", {one.file: text}), [one]).verdicts[one.id]
            self.assertEqual((verdict.state, verdict.stage), ("wrong", "count"), verdict.lines)
            self.assertRegex(verdict.lines[0], f"the results are right; {words}")
        for threads, words in [(BY_ONE_THREAD, "matrix_flops: 0 where it takes 8,388,608"),
                               (NOBODYS_PRODUCTS + BY_ONE_THREAD, "global_store sectors: 4,104 where 520 are enough")]:
            text = workbench.course.replaced(one, threads)
            self.assertIsNone(kernelcode.refusal(workbench.course, one, text))
            verdict = grade(workbench, Submission("mallory", {one.file: text}), [one]).verdicts[one.id]
            self.assertEqual((verdict.state, verdict.stage), ("wrong", "count"), verdict.lines)
            self.assertRegex(verdict.lines[0], words)

    def test_a_lane_that_adds_all_up_is_no_sum_of_lanes(self):
        (one,) = course.load().select(["07.rowsum"])
        workbench = a_workbench(self, [one])
        text = workbench.course.replaced(one, BY_ONE_LANE)
        verdict = grade(workbench, Submission("mallory", {one.file: text}), [one]).verdicts[one.id]
        self.assertEqual((verdict.state, verdict.stage), ("wrong", "count"), verdict.lines)
        self.assertRegex(verdict.lines[0], "accesses to memory by the busiest thread of the kernel row_dots: 71 where 8 are enough")

    def test_all_from_all_by_other_ways_than_shuffles(self):
        """For 05.reduction, with some shuffles that nobody needs. And an op as a template's parameter is right."""
        (one,) = course.load().select(["05.reduction"])
        workbench = a_workbench(self, [one])
        for way, state, words in [(BY_BALLOTS, "wrong", "votes, matches and reductions .*: 3,072 where 0 are enough"),
                                  (BY_REDUCTIONS, "wrong", "votes, matches and reductions .*: 3,072 where 0 are enough"),
                                  (BY_AN_OP, "right", "^$")]:
            text = workbench.course.replaced(one, way + OF_ALL * ("of_all" in way))
            graded = grade(workbench, Submission("mallory", {one.file: text}), [one])
            self.assertEqual((graded.verdicts[one.id].state, graded.flags), (state, {}), graded.verdicts[one.id].lines)
            self.assertRegex(" ".join(graded.verdicts[one.id].lines), words)

    def test_reads_by_atomic_functions_are_loads(self):
        """Every lane makes the whole product, as in 01.scores, and loads one number. No word is doubtful."""
        (one,) = course.load().select(["02.scores"])
        workbench = a_workbench(self, [one])
        for reads, state, words in [(BY_ATOMICS, "wrong", "global_load sectors of the kernel scores: [0-9,]+ where 65,536 are enough"),
                                    (workbench.course.written(one), "right", "^$")]:
            text = workbench.course.replaced(one, reads)
            self.assertIsNone(kernelcode.refusal(workbench.course, one, text))
            verdict = grade(workbench, Submission("mallory", {one.file: text}), [one]).verdicts[one.id]
            self.assertEqual(verdict.state, state, verdict.lines)
            self.assertRegex(" ".join(verdict.lines), words)
        text = workbench.course.replaced(one, BY_VALUE)
        self.assertIsNone(kernelcode.refusal(workbench.course, one, text))
        graded = grade(workbench, Submission("mallory", {one.file: text}), [one])
        self.assertIn("passed or returned by value", graded.flags.get(one.id, ""))

    def test_what_is_counted_or_traced_has_to_be_right_there(self):
        """Both texts are clean."""
        one, barrier = course.load().select(["02.scores", "03.chunks"])
        workbench = a_workbench(self, [one, barrier])
        for looks, words in [(COUNTED_LATER, "where 65,536 are enough"), (TRACED, "s|o|got")]:
            text = workbench.course.replaced(one, f"  {looks}{ALONE}")
            self.assertIsNone(kernelcode.refusal(workbench.course, one, text))
            verdict = grade(workbench, Submission("mallory", {one.file: text}), [one]).verdicts[one.id]
            self.assertEqual(verdict.state, "wrong", verdict.lines)
            self.assertRegex(" ".join(verdict.lines), words)
        # Over the frames of the engine, which called the kernel and knows where the counts are
        over = "float mine[2];\n  if (watched)\n    for (int i = 0; i < 4096; i++) ((volatile float*)mine)[i] = 0;\n"
        verdict = grade(workbench, Submission("mallory", {one.file: workbench.course.replaced(
            one, f"  {TRACED}\n  {over}{workbench.course.written(one)}")}), [one]).verdicts[one.id]
        self.assertRegex(" ".join(verdict.lines), "invalid write outside of the kernel's memory and variables")
        text = workbench.course.replaced(barrier, f"  {TRACED}\n  if (watched) return;\n{workbench.course.written(barrier)}")
        verdict = grade(workbench, Submission("mallory", {barrier.file: text}), [barrier]).verdicts[barrier.id]
        self.assertEqual(verdict.state, "wrong", verdict.lines)


class Roundabout(unittest.TestCase):
    """The folder hostile/counted: right results by another way than the exercise teaches. A file's name begins with the exercise whose
    text it is. Its first line says what the text does, the second what grading says of it: words of the first line, or "right", of
    what only looks like such a way."""

    def test_each_gets_its_verdict(self):
        files = sorted((Path(__file__).parent / "hostile/counted").glob("*.inc"))
        self.assertGreater(len(files), 30)
        known = course.load()
        exercises = {path: known.select([path.name.partition("-")[0]])[0] for path in files}
        workbench = a_workbench(self, list({one.id: one for one in exercises.values()}.values()))
        for path, one in exercises.items():
            with self.subTest(text=path.stem):
                text = path.read_text()
                words = text.splitlines()[1].removeprefix("// ")
                counted = not re.match("right$|race|invalid", words)
                # One kind of test is enough to show that results are right, if it is not the engine that sees what is wrong.
                one = replace(one, tests=one.tests[:1]) if counted or words == "right" else one
                graded = grade(workbench, Submission("mallory", {one.file: known.replaced(one, text)}), [one])
                verdict = graded.verdicts[one.id]
                self.assertEqual((verdict.state == "right", graded.flags), (words == "right", {}), verdict.lines)
                if words != "right":
                    self.assertIn(words, verdict.lines[0])
                    self.assertEqual(verdict.lines[0].startswith("the results are right; "), counted)


class Cornered(Graded):
    """Submissions that get as far as the limits of the machine, one limit each."""

    def test_verdicts_of_their_own(self):
        self.require([
            ("crashes", self.solution + "\n  const int none = lane - lane;\n  l += float(7 / none);", "crashes", "was killed by SIGFPE"),
            ("allocates without end", self.solution + "\n  float large[40000];\n  large[lane] = l;\n  l = large[31 - lane];",
             "too much memory", "stack overflow"),
            ("reads what lies elsewhere", self.solution + "\n  const double* judge = (const double*)s_row - (int64_t(1) << 36);\n"
             "  l = float(judge[lane]);", "out of bounds", "invalid read"),
        ])
        self.assertEqual(self.inside(self.solution).state, "right", "and the grader goes on")

    def test_no_status_is_the_starters_own(self):
        """With 125 and 126 confine says that the kernels' process has not started, which is the grader's fault, and nobody's grade."""
        for status in (125, 126):
            self.require([(f"ends with {status}", self.solution + f"\n  exit({status});", "wrong", "the kernels' process has ended")])

    def test_an_object_that_says_that_it_is_one_of_flto_starts_no_compiler(self):
        """It would be one more, with options that stand in the object."""
        made_again = of_flto('asm(".error \\"compiled again\\"");\nint unused;\n')
        # Without these words it is compiled again, or this test would show nothing.
        for words, state in [(kernels._NO_PLUGIN, "right"), ((), "does not compile")]:
            text = self.course.replaced(self.online, f"{self.solution}\n  l += {len(words)} * 0;") + made_again
            with mock.patch.object(kernelcode, "objection", return_value=None), mock.patch.object(kernels, "_NO_PLUGIN", words), \
                    mock.patch.object(self.course, "replaced", return_value=text):
                verdict = self.graded(self.online, text)
                self.assertEqual(verdict.state, state, verdict.lines)

    def test_those_that_come_past_the_words_that_are_refused(self):
        """What is refused before it is built must not be all that holds."""
        endless = "\n  while (true) __atomic_store_n((char**)s_row, new char[1 << 30], 0);"
        with mock.patch.object(kernelcode, "objection", return_value=None):
            verdict = self.inside(self.solution + endless, patience=20)
            self.assertEqual(verdict.state, "too much memory", verdict.lines)
            with mock.patch.object(kernels, "_TO_COMPILE", 16 * 1024**2):
                verdict = self.inside(self.solution + "\n  l += 0;")
            self.assertEqual(verdict.state, "too much memory", verdict.lines)


if __name__ == "__main__":
    unittest.main()
