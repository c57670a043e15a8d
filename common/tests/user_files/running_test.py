"""Files of the user's own, compiled and run on the engine that counts."""

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
from dataclasses import replace
from pathlib import Path

from tests.tiers import at_length, some
from tools.base import Failure
from tools.user_files import Asked, Ran, cccl
from tools.user_files.file_flags import Buffer, Launch
from tools.user_files.running import conclude_files, messages, program_of, run_program

HERE = Path(__file__).parent
BUILD = Path(os.environ["WORKBOOK_BUILD"])


def asked(*files, launch=None, arguments=(), flags=(), seconds=30) -> Asked:
    return Asked([str(HERE / file) for file in files], list(flags), launch, seconds, list(arguments))


def ran(what: Asked) -> Ran:
    with tempfile.TemporaryDirectory() as place:
        return run_program(program_of(what, True, BUILD, Path(place)), what, Path(place), quietly=True)


def line_with(file: str, text: str) -> str:
    lines = (HERE / file).read_text().splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if text in line]
    return f"user_files/{file}:{number}"


def state_of(process: int) -> str:
    """As ps shows it: S of one that sleeps, Z of a zombie; empty if there is none."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def complaint(what: Asked) -> tuple:
    """(what the Failure says, what was printed before)"""
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        try:
            ran(what)
        except Failure as failure:
            assert failure.status == 2, failure.status
            return str(failure), errors.getvalue()
    raise AssertionError("it compiles")


class Programs(unittest.TestCase):
    @at_length
    def test_launches_before_main_and_counts_that_the_program_wants_for_itself(self):
        reported = ran(asked("early.cu"))
        self.assertEqual((reported.status, reported.launched, len(reported.launches)), (0, 2, 1))
        self.assertEqual(len(reported.failures), 1)
        self.assertIn(line_with("early.cu", "s[threadIdx.x ^ 32];"), reported.failures[0])

    def test_a_program_that_is_stopped_while_it_reports(self):
        with tempfile.TemporaryDirectory() as place:
            program = Path(place) / "program"
            program.write_text('#!/bin/sh\nprintf \'{"launched": 1, "fail\' > "$SIMT_REPORT"\nkill -9 $$\n')
            program.chmod(0o755)
            with self.assertRaisesRegex(Failure, "stopped while it wrote .*SIGKILL"):
                run_program(program, asked("early.cu"), Path(place), quietly=True)

    @at_length
    def test_the_program_ends_with_a_command_that_is_killed(self):
        with tempfile.TemporaryDirectory() as place:
            source = Path(place) / "waits.cu"
            source.write_text("#include <cstdio>\n#include <unistd.h>\n"
                              'int main() { std::printf("%d\\n", getpid()), std::fflush(stdout), sleep(100); }\n')
            program = program_of(asked(source), False, BUILD, Path(place))
            run = ("import pathlib, sys; from tools.user_files import Asked, running\n"
                   "running.run_program(sys.argv[1], Asked(['waits.cu'], [], None, 30), pathlib.Path(sys.argv[2]), False)")
            words = [sys.executable, "-c", run, program, place]
            with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as command:
                child = int(command.stdout.readline())
                command.kill()
            deadline = time.monotonic() + 30
            while (state := state_of(child)) not in ("", "Z", "X") and time.monotonic() < deadline:
                time.sleep(0.05)
            if state:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            self.assertIn(state, ("", "Z", "X"))

    def test_every_style(self):
        reported = ran(asked("styles.cu"))
        self.assertEqual((reported.status, reported.failures), (0, []))
        kernels = [launch["kernel"] for launch in reported.launches]
        self.assertEqual(kernels[:4], ["apply", "mirror<float, 32, int, double>", "mirror<float, 32>", "mirror<float, 32, int>"])
        self.assertEqual(kernels[6:], ["overloaded", "overloaded", "through_outside", "through_outside", "twice<float>", "weigh"])
        weigh = {(line["line"], line["op"]): line["requests"] for line in reported.launches[-1]["lines"]}
        self.assertEqual(weigh[line_with("styles.cu", "d_weights<float>[i % 2]"), "global_load"], 2)  # x, and a template
        self.assertEqual(weigh[line_with("styles.cu", "atomicAdd(&calls"), "global_atomic"], 1)  # a kernel's own
        apply = {(line["line"], line["op"]): line for line in reported.launches[0]["lines"]}
        self.assertEqual(apply[line_with("styles.cu", "atomicAdd(&d_count"), "global_atomic"]["requests"], 2)
        self.assertIn((line_with("styles.cu", "d_table[1][1]"), "global_load"), apply)  # and no c_factor, which is constant
        self.assertEqual(conclude_files(asked("styles.cu"), reported), 0)

    @at_length
    def test_several_files_directories_macros_and_words_for_main(self):
        with tempfile.TemporaryDirectory() as place:
            files = {"include/scale.h": "extern __constant__ float factor;\nvoid scale(float* x);\n",
                     "scale.cu": '#include "scale.h"\n__constant__ float factor;\n__global__ void k(float* x) { x[threadIdx.x] *= N * factor; }\n'
                                 "void scale(float* x) {\n  const float two = 2;\n  cudaMemcpyToSymbol(factor, &two, sizeof two);\n"
                                 "  k<<<1, 32>>>(x);\n}\n",
                     "main.cpp": '#include <cuda_runtime.h>\n#include <cstdlib>\n#include "scale.h"\nint main(int, char** words) {\n'
                                 "  float host = std::atof(words[1]), *x;\n  cudaMalloc(&x, 128);\n"
                                 "  cudaMemcpy(x, &host, 4, cudaMemcpyHostToDevice);\n  scale(x);\n"
                                 "  cudaMemcpy(&host, x, 4, cudaMemcpyDeviceToHost);\n  return int(host);\n}\n"}
            for name, text in files.items():
                (Path(place) / name).parent.mkdir(exist_ok=True)
                (Path(place) / name).write_text(text)
            reported = ran(Asked([f"{place}/scale.cu", f"{place}/main.cpp"], [f"-I{place}/include", "-DN=5"], None, 30, ["7"]))
            self.assertEqual((reported.status, reported.failures), (70, []))

    @at_length
    def test_what_programs_use_of_the_api(self):
        reported = ran(asked("api.cu"))
        self.assertEqual((reported.status, reported.failures), (0, []))

    @at_length
    def test_c_is_c_and_flags_go_on_and_a_path_may_have_blanks(self):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "two words"
            folder.mkdir()
            (folder / "old.c").write_text("/* <<< __global__ */ // \"<<<\n#include <math.h>\n#include <cuda_runtime_api.h>\n#include \"driver_types.h\"\n"
                                          "int grown(x) int x; { int *class = &x; return (int)sqrt(*class * x) + 1; }\n"
                                          "int through_device(int new) {\n  struct cudaDeviceProp device;\n  cudaStream_t s;\n"
                                          "  int4 v = {0, 0, 0, new}, *there;\n  const char *sign = \"\\\"<<<\"; /*\n#include <cuda_fp16.h> */\n"
                                          "  if (cudaGetDeviceProperties(&device, 0) || device.warpSize != 32) return 0;\n"
                                          "  cudaMallocHost((void**)&there, sizeof v), cudaFreeHost(there);\n"
                                          "  cudaMalloc((void**)&there, sizeof v), cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);\n"
                                          "  cudaMemcpyAsync(there, &v, sizeof v, cudaMemcpyHostToDevice, s), v.w = 0;\n"
                                          "  cudaMemcpy(&v, there, sizeof v, cudaMemcpyDeviceToHost);\n"
                                          "  return cudaFree(&v) == cudaErrorInvalidValue ? v.w : 0;\n}\n")
            (folder / "main.cu").write_text("#include <omp.h>\nextern \"C\" int grown(int), through_device(int);\nint main() {\n"
                                            "  int threads = 0;\n"
                                            "#pragma omp parallel num_threads(2)\n#pragma omp atomic\n  threads += 1;\n"
                                            "  int* p;\n  cudaMalloc(&p, 4);\n  return grown(threads) + through_device(10 * DEEP);\n}\n")
            what = Asked([f"{folder}/main.cu", f"{folder}/old.c"], ["-fopenmp", "-DDEEP=4"], None, 30, libraries=["-lm"])
            reported = ran(what)
            self.assertEqual((reported.status, reported.failures, reported.launched), (43, [], 0))
            with self.assertRaisesRegex(Failure, "ended with status 43"):
                conclude_files(what, reported)
            (folder / "kernel.cpp").write_text("__global__ void k(int* p) { *p = 5; }\nint main() { int *p, n; cudaMalloc(&p, 4); k<<<1, 1>>>(p);\n"
                                               "  cudaMemcpy(&n, p, 4, cudaMemcpyDeviceToHost), cudaFree(p);\n  return n; }\n")
            reported = ran(Asked([f"{folder}/kernel.cpp"], [], None, 30, all_are_cuda=True))  # -x cu
            self.assertEqual((reported.status, reported.launched), (5, 1))
            (folder / "wild.cu").write_text("__global__ void k(int* p) { p[1000] = 1; }\n"
                                            "int main() { int* p; cudaMalloc(&p, 4); k<<<1, 2>>>(p); }\n")
            reported = ran(Asked([f"{folder}/wild.cu"], [], None, 30))
            self.assertIn("at two words/wild.cu:1: ", reported.failures[0])

    @at_length
    def test_a_kernel_that_a_kernel_launches_comes_after_it(self):
        with tempfile.TemporaryDirectory() as place:
            file = Path(place) / "nested.cu"
            file.write_text("""
__global__ void halve(int* x, int n) {
  for (int i = 0; i < n; ++i) x[i] += 1;
  if (n == 1) return;
  cudaStream_t own;
  cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
  halve<<<1, 1, 0, own>>>(x, n / 2);
  cudaStreamDestroy(own);
}
int main() {
  int *x, first;
  cudaMalloc(&x, 16 * sizeof(int));
  cudaMemset(x, 0, 16 * sizeof(int));
  halve<<<1, 1>>>(x, 16);
  cudaMemcpy(&first, x, sizeof first, cudaMemcpyDeviceToHost);
  cudaFree(x);
  return first;
}
""")
            reported = ran(Asked([str(file)], [], None, 30))
            self.assertEqual((reported.status, reported.failures, reported.mistakes), (5, [], []))

    @at_length
    def test_widths_of_a_file_in_a_folder_with_a_blank(self):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "two words"
            folder.mkdir()
            (folder / "pairs.cu").write_text("__global__ void k(float* x, float* y) {\n  for (int i = 0; i < 64; ++i) "
                                             "y[64 * threadIdx.x + i] = x[64 * threadIdx.x + i];\n}\n"
                                             "int main() {\n  float* x;\n  cudaMalloc(&x, 1 << 14);\n"
                                             "  cudaMemset(x, 0, 1 << 14);\n  k<<<1, 32>>>(x, x + 2048);\n  cudaFree(x);\n}\n")
            (Path(place) / "widths").write_text("two words/pairs.cu:2 global_load 8\n")
            what = Asked([str(folder / "pairs.cu")], [], None, 30)
            with unittest.mock.patch.dict(os.environ, {"SIMT_WIDTHS": f"{place}/widths"}):
                program = program_of(what, True, BUILD, Path(place))
                (launch,) = run_program(program, what, Path(place), counted=True, quietly=True).launches
            self.assertEqual(launch["totals"]["global_load"]["requests"], 32)

    @at_length
    def test_a_program_that_launches_nothing_is_fine(self):
        with tempfile.TemporaryDirectory() as place:
            file = Path(place) / "query.cu"
            file.write_text("int main() { cudaDeviceProp p; return cudaGetDeviceProperties(&p, 0); }\n")
            what = Asked([str(file)], [], None, 30)
            reported, said = ran(what), io.StringIO()
            with contextlib.redirect_stderr(said):
                self.assertEqual(conclude_files(what, reported), 0)
            self.assertIn("query.cu: it launched no kernel", said.getvalue())
            file.write_text("__global__ void k() {}\nint main() { k<<<0, 32>>>(); }\n")  # a launch that is refused is one that failed
            reported = ran(what)
            with self.assertRaisesRegex(Failure, "query.cu: 1 of 1 launches failed"):
                conclude_files(what, reported)

    @at_length
    def test_kernels_of_a_library_that_is_loaded_late(self):
        """Its thread-local variables lie among the host's memory, which kernels must not touch."""
        settings = json.loads((BUILD / "common/simt/front/settings.json").read_text())
        with tempfile.TemporaryDirectory() as place:
            file, library = Path(place) / "late.cu", Path(place) / "late.so"
            file.write_text("__global__ void turn(int* x) { __shared__ int s[64]; s[threadIdx.x] = x[threadIdx.x];\n"
                            "  __syncthreads(); x[threadIdx.x] = s[63 - threadIdx.x]; }\n"
                            'extern "C" int last() { int* x; cudaMallocManaged(&x, 256); x[0] = 7; turn<<<1, 64>>>(x);\n'
                            "  cudaDeviceSynchronize(); int last = x[63]; cudaFree(x); return last; }\n")
            subprocess.run([settings["front"], settings["compiler"], *settings["traced"], "-fPIC", "-c", file, "-o", f"{library}.o"],
                           check=True)
            subprocess.run([settings["compiler"], "-shared", "-o", library, f"{library}.o", "-Wl,--whole-archive",
                            settings["link"][0], "-Wl,--no-whole-archive", *settings["link"][1:]], check=True)
            call = f"import ctypes; print(ctypes.CDLL({str(library)!r}).last())"
            done = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True)
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("7\n", "", 0))

    @at_length
    def test_a_shift_by_all_bits_is_named_once(self):
        with tempfile.TemporaryDirectory() as place:
            file = Path(place) / "shift.cu"
            # What says so uses functions of the C++ library, traced ones if the program has them, too.
            file.write_text("__global__ void k(unsigned* x, int n) {\n  for (int i = 0; i < 3; ++i)\n    x[i] = (x[i] << n) + (x[i] >> (n - 1));\n}\n"
                            "#include <set>\n#include <string>\nint main() {\n  std::set<std::pair<std::string, unsigned>> names;\n"
                            "  for (unsigned i = 0; i < 3; ++i) names.emplace(\"a\" + std::to_string(i), i);\n"
                            "  unsigned* x;\n  cudaMalloc(&x, 12);\n  cudaMemset(x, 1, 12);\n  k<<<1, 1>>>(x, 31);\n"
                            "  k<<<1, 1>>>(x, 32);\n  return 1 << (x == nullptr ? 32 : 0) - cudaDeviceSynchronize();\n}\n")
            what = Asked([str(file)], [], None, 30)
            program = program_of(what, True, BUILD, Path(place))
            environment = {**os.environ, "SIMT_REPORT": str(Path(place) / "report.json")}
            done = subprocess.run([program], env=environment, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr.count("a shift by")), (1, 1), done.stderr)
            self.assertNotIn("invalid", done.stderr)
            self.assertIn("shift.cu:3: a shift by 32 of a number of 32 bits", done.stderr)

    def test_every_mistake_is_found_at_its_line(self):
        expected = {
            "race": ("race on shared memory", "// race"),
            "barrier": ("race on shared memory", "// missing barrier"),
            "out of bounds": ("0 bytes past the end of a 256-byte allocation", "// out of bounds"),
            "uninitialised": ("read of 4 bytes of uninitialised shared memory", "// uninitialised"),
            "misaligned": ("misaligned", "// misaligned"),
            "divergent": ("barrier divergence", "// divergent"),
        }
        with tempfile.TemporaryDirectory() as place:
            program = program_of(asked("mistakes.cu"), True, BUILD, Path(place))
            for mistake, (words, mark) in expected.items():
                what = asked("mistakes.cu", arguments=[mistake])
                with self.subTest(mistake):
                    reported = run_program(program, what, Path(place), quietly=True)
                    self.assertEqual((reported.status, len(reported.failures)), (0, 1))
                    self.assertIn(words, reported.failures[0])
                    self.assertIn(line_with("mistakes.cu", mark), reported.failures[0])
                    with self.assertRaises(Failure) as failure:
                        conclude_files(what, reported)
                    self.assertEqual(failure.exception.status, 1)
            reported = run_program(program, asked("mistakes.cu"), Path(place), quietly=True)
            with self.assertRaisesRegex(Failure, "its program ended with status 4"):
                conclude_files(asked("mistakes.cu"), reported)


class Harness(unittest.TestCase):
    transpose = Launch("transpose<float>", (1, 1, 1), (32, 32, 1), 0,
                       {"out": Buffer(1024, "float", "zero"), "in": Buffer(1024, "float", "random"), "n": "32"})

    def test_counts_need_no_host_code(self):
        (launch,) = ran(asked("kernels.cu", launch=self.transpose)).launches
        self.assertEqual(launch["kernel"], "transpose<float>")
        load = next(line for line in launch["lines"] if line["op"] == "shared_load")
        self.assertEqual(load["line"], line_with("kernels.cu", "tile[x][y]"))
        self.assertEqual((load["requests"], load["wavefronts"]), (32, 32 * 32))

    @at_length
    def test_a_wrong_variable_is_all_that_is_said(self):
        with tempfile.TemporaryDirectory() as place:
            file = Path(place) / "a.cu"
            file.write_text("__global__ void k() {}\nint main() { int* x; cudaMalloc(&x, 12); k<<<1, 1>>>(); }\n")
            program = program_of(Asked([str(file)], [], None, 30), False, BUILD, Path(place))
            report = Path(place) / "report.json"
            environment = {**os.environ, "SIMT_REPORT": str(report), "SIMT_ORDER": "sideways"}
            done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stdout, report.exists()), (2, "", False))
            self.assertRegex(done.stderr, r"^SIMT_ORDER=sideways: must be forward, .*\n$")

    @at_length
    def test_writes_outside_shared_variables_end_the_launch_without_races_too(self):
        with tempfile.TemporaryDirectory() as place:
            file = Path(place) / "shared.cu"
            file.write_text("#include <cstdlib>\n__global__ void k(int* out, int by) {\n  __shared__ int a[32], b[32];\n  b[threadIdx.x] = 1;\n"
                            "  a[threadIdx.x] = 2;\n  __syncthreads();\n  b[int(threadIdx.x) + by] = 3;\n  out[threadIdx.x] = a[0] + b[0];\n}\n"
                            "int main(int, char** by) {\n  int* out;\n  cudaMalloc(&out, 128);\n  k<<<4, 32>>>(out, std::atoi(by[1]));\n"
                            "  cudaDeviceSynchronize();\n  cudaFree(out);\n}\n")
            plain = program_of(Asked([str(file)], [], None, 30, races=False), False, BUILD, Path(place))
            for by, words in (("0", None), ("64", "bytes past the end of the shared variable"),
                              ("1000", "shared.cu:7: invalid write at byte"), ("500000000", "shared.cu:7: invalid write at 0x")):
                what = Asked([str(file)], [], None, 30, [by], races=False)
                with self.subTest(by):
                    reported = run_program(plain, what, Path(place), quietly=True)
                    self.assertEqual((reported.status, len(reported.failures)), (0, int(words is not None)))
                    self.assertIn(words or "", "".join(reported.failures))

    def test_limits_count_processor_time(self):
        with tempfile.TemporaryDirectory() as place:
            file = Path(place) / "nap.cu"
            file.write_text("#include <unistd.h>\n__global__ void nap() { usleep(300000); }\nint main() { nap<<<3, 1>>>(); }\n")
            reported = ran(Asked([str(file)], [], None, 0.3))
            self.assertEqual((reported.status, reported.launched, reported.failures), (0, 1, []))

    @at_length
    def test_a_type_that_there_is_not(self):
        values = {"x": Buffer(256, "flaot", "zero"), "a": "2.0", "n": "256"}
        said, printed = complaint(asked("kernels.cu", launch=Launch("scale", (1, 1, 1), (256, 1, 1), 0, values)))
        self.assertRegex(said, r"user_files/kernels.cu does not compile")
        self.assertRegex(printed, r"\A--buffer x=256xflaot: .flaot. does not name a type.*\n\Z")

    def test_what_does_not_fit_the_kernel(self):
        values = self.transpose.values
        for kernel, given, words in [
            ("none", values, "there is no such kernel (kernels: transpose, scale)"),
            ("transpose", values, "it is a template over <typename T>: say which"),
            ("scale", {"a": "1", "n": "3"}, "needs a value for x: --buffer x=COUNTxfloat"),
            ("scale", {"x": Buffer(3, "float", "zero"), "a": "1", "n": "3", "m": "3"}, "has no parameter m (parameters: x, a, n)"),
            ("scale", {"x": "3", "a": "1", "n": "3"}, "its parameter x is a pointer: --buffer x=.."),
        ]:
            with self.subTest(words):
                said, _ = complaint(asked("kernels.cu", launch=Launch(kernel, (1, 1, 1), (1, 1, 1), 0, given)))
                self.assertIn(words, said)
        said, _ = complaint(asked("kernels.cu"))
        self.assertIn("no main in it; name a kernel to launch", said)
        said, _ = complaint(asked("styles.cu", launch=self.transpose))
        self.assertIn("has a main", said)


class Long(unittest.TestCase):
    large = Launch("scale", (1 << 15, 1 << 15, 1), (256, 1, 1), 0, {"x": Buffer(256, "float", "zero"), "a": "2.0", "n": "256"})

    def test_a_launch_that_would_take_too_long_says_so_before_and_can_be_sampled(self):
        what = asked("kernels.cu", launch=self.large, seconds=1)
        with tempfile.TemporaryDirectory() as place, tempfile.TemporaryFile("w+") as said:
            program = program_of(what, True, BUILD, Path(place))
            errors = os.dup(2)
            os.dup2(said.fileno(), 2)
            try:
                reported = run_program(program, what, Path(place), quietly=True)
            finally:
                os.dup2(errors, 2)
            said.seek(0)
            self.assertRegex(said.read(), r"^kernel scale: its 1073741824 blocks of 256 threads would take about .*; at most \d+ blocks fit, "
                                          r"a grid of (\d+) x \1\. Make .* --blocks N")
            self.assertEqual(conclude_files(what, reported), 2)
            what = replace(what, seconds=20, blocks=5)
            reported = run_program(program, what, Path(place), quietly=True)
        self.assertEqual((reported.status, reported.launched, reported.sampled), (0, 1, 1))
        load = next(line for line in reported.launches[0]["lines"] if line["op"] == "global_load")
        self.assertEqual(load["requests"], 8)  # of the first block alone: there is no more of x
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            self.assertEqual(conclude_files(what, reported), 0)
        self.assertRegex(errors.getvalue(), r"a sample: 5 blocks of each launch that has more \(1 of 1\); what the other")

    def test_a_launch_that_takes_long_says_so_and_goes_on(self):
        with tempfile.TemporaryDirectory() as place:
            program = program_of(asked("kernels.cu", launch=self.large, seconds=0), False, BUILD, Path(place))
            environment = {**os.environ, "SIMT_REPORT": str(Path(place) / "report.json"), "SIMT_SECONDS": "0"}
            process = subprocess.Popen([program], env=environment, stderr=subprocess.PIPE, text=True)
            try:
                said = process.stderr.readline()
                time.sleep(1)
                self.assertIsNone(process.poll(), said)
            finally:
                process.kill()
                rest = process.communicate()[1]
            self.assertRegex(said, r"^note: kernel scale: its 1073741824 blocks of 256 threads will take about \d+ (min|h); "
                                   r"--blocks N runs a sample of them, --seconds S ends what takes longer$")
            self.assertEqual(rest, "")

    def test_five_known_kernels_optimized_as_run_does(self):
        what = Asked([str(HERE.parents[1] / "simt" / "example" / "speed.cu")], [], None, 60, ["all", "1"])
        with tempfile.TemporaryDirectory() as place:  # not traced: no observer, and atomics that need not be atomic
            program = program_of(what, False, BUILD, Path(place))
            for threads in "1", "2":
                with unittest.mock.patch.dict(os.environ, SIMT_THREADS=threads):
                    reported = run_program(program, what, Path(place), quietly=True)
                self.assertEqual((reported.status, reported.launched, reported.failures), (0, 10, []))


class Wrong(unittest.TestCase):
    both = "#include <algorithm>\nint helper(int x) { return x; }\ntemplate <class T>\nT twice(T x) { return 2 * x; }\n"

    def test_the_compilers_words_have_the_users_line(self):
        with tempfile.TemporaryDirectory() as place:
            file = Path(place) / "wrong.cu"
            file.write_text("__global__ void k(int* a) {}\nint main() {\n  k<<<1,\n    32>>>(nothing);\n}\n")
            said, printed = complaint(Asked([str(file)], [], None, 30))
            self.assertIn("wrong.cu does not compile", said)
            self.assertRegex(printed, r"wrong.cu:4:\d+: error: .nothing. was not declared")
            self.assertIn("    32>>>(nothing);", printed)
            file.write_text("int other() { return 1; }\n")
            self.assertIn("no kernel (a function with __global__) in it, and no main", complaint(Asked([str(file)], [], None, 30))[0])
            toolkit = Path(place) / "toolkit"
            (toolkit / "crt").mkdir(parents=True)
            (toolkit / "crt" / "host_defines.h").write_text("#define __global__\n")
            (toolkit / "library.h").write_text('#include "crt/host_defines.h"\n')
            file.write_text('#include "library.h"\n')
            _, printed = complaint(Asked([str(file)], [f"-I{toolkit}"], None, 30))
            self.assertIn(f"error: it includes {toolkit}/library.h, which is not part of the engine", printed)
            file.write_text("__global__ void k() {}\nint other();\nint main() { return other(); }\n")
            self.assertIn("does not link", complaint(Asked([str(file)], [], None, 30))[0])

    def test_what_the_engine_lacks_is_said_in_one_line(self):
        expected = {
            "#include <thrust/sort.h>\n#include <thrust/device_vector.h>\n":
                ["{}:1: error: Thrust needs NVIDIA's CCCL headers: python3 -m pip install --target build/nvidia nvidia-cuda-cccl"],
            "#include <cub/block/unknown.cuh>\n": ["{}:1: error: cub/block/unknown.cuh is not part of the engine"],
            "#include <cufft.h>\ncufftHandle handle;\n": ["{}:2: error: the engine lacks the toolkit's libraries: cufftHandle"],
            "__device__ float f(float x) { return __shfl_xor(x, 1); }\n":
                ["{}:1: error: the engine lacks warp functions without a mask, as CUDA has since version 9 (write the one with _sync): __shfl_xor"],
            "void f(cudaTextureObject_t t) { float x = tex2D<float>(t, 0, 0) + wrong; }\n":
                ["{}:1: error: the engine lacks textures, surfaces and CUDA arrays: cudaTextureObject_t"],
        }
        with tempfile.TemporaryDirectory() as place:
            file = Path(place) / "lacks.cu"
            for text, lines in some(expected.items(), 3):
                with self.subTest(text), unittest.mock.patch.object(cccl, "headers", return_value=None):
                    file.write_text(text + "__global__ void k() {}\nint main() { k<<<1, 1>>>(); }\n")
                    said, printed = complaint(Asked([str(file)], [], None, 30))
                    self.assertIn("lacks.cu does not compile", said)
                    self.assertEqual([line for line in printed.splitlines() if not line.startswith("    ")], [line.format(file) for line in lines])

    def test_what_nvcc_refuses_is_said_in_one_line(self):
        expected = {
            self.both + "__global__ void k(int* x) {\n  *x = helper(3);\n}\n": "6:1: error: device code calls helper(), which is the host's: it needs __device__",
            self.both + "__device__ int f(int x) { return twice(x); }\n": "5:1: error: device code calls twice(), which is the host's: it needs __device__",
            "__global__ void k(int* x) { *x = std::rand() % 3; }\n": "1:1: error: device code calls rand(), which is the host's",
            "__global__ void k(int* x) {}\nvoid f() { k<<<1>>>(nullptr); }\n":
                "2:1: error: a launch says two to four things, <<<blocks, threads, shared bytes, stream>>>, and this one 1",
            "__global__ void k(int* x) {}\nvoid f() { k<<<1, 2, 3, 0, 5>>>(nullptr); }\n":
                "2:1: error: a launch says two to four things, <<<blocks, threads, shared bytes, stream>>>, and this one 5",
            "__global__ void k(int* x) {}\nvoid f() { k<<<1, 1>>>(nullptr);\n  k(nullptr); }\n":
                "3:1: error: host code calls the kernel k() as a function: a launch says <<<blocks, threads>>>",
            "template <class T> __global__ void k(T* x) {}\nvoid f() { k<int>(nullptr); }\n":
                "2:1: error: host code calls the kernel k() as a function: a launch says <<<blocks, threads>>>",
            "__device__ int depth(int n) { return n; }\nint f(int n) { return n + 2 * depth(n); }\n":
                "2:1: error: host code calls depth(), which is the device's: it needs __host__ __device__",
            "const float weights[3] = {1, 2, 1};\n__global__ void k(float* x) {\n  *x = weights[threadIdx.x]; }\n":
                "3:1: error: device code uses weights, an array of the host's: it needs __constant__ or __device__",
            "__global__ void k(int* x) {}\n__global__ void l(int* x) {\n  k(x); }\n":
                "3:1: error: device code calls the kernel k() as a function: a launch says <<<blocks, threads>>>, a function that both may "
                "call has __device__",
            "struct S {\n  static __global__ void k(int* x) {}\n};\n":
                "2:1: error: the kernel k() is a member of a class: nvcc takes kernels outside classes",
            self.both + "template <int (*F)(int)> __global__ void k(int* x) { *x = F(3); }\nvoid f() {\n  k<helper><<<1, 1>>>(nullptr); }\n":
                "7:1: error: a kernel has helper() as a template argument, which is the host's: it needs __device__",
            "__global__ void k(float* x) { extern __shared__ float s[]; *s = *x; }\n__global__ void l(int* x) { extern __shared__ int s[]; *s = *x; }\n":
                "2:1: error: extern __shared__ s[] is of int here and of float above: nvcc takes one type for one name",
            "__constant__ float3 g = make_float3(0, 1, 0);\n":
                "1:1: error: a call, make_float3(), in the initial value of a variable of the device: it has to be known when the program is compiled",
            "__device__ float root[] = {sqrtf(2)};\n":
                "1:1: error: a call, sqrtf(), in the initial value of a variable of the device: it has to be known when the program is compiled",
            "__global__ void k(float* x, int n) {\n  float own[4][n]; *x = own[0]; }\n":
                "2:1: error: an array of n elements in device code: their number has to be a constant",
            "constexpr int square(int x) { return x * x; }\n__global__ void k(int* x) { *x = square(*x); }\n":
                "2:1: error: device code calls square(), which is the host's, though constexpr: it needs __device__, or "
                "--expt-relaxed-constexpr, which may be said here, too",
            "template <class F> __global__ void k(F f) { f(1); }\nvoid g() {\n  k<<<1, 1>>>([=](int i) {}); }\n":
                "3:1: error: a kernel's argument is a lambda function of the host's: it needs __device__, [=] __device__ (..) {..}",
            "#include <iostream>\n__global__ void k() { std::cout << threadIdx.x; }\n":
                "2:1: error: device code uses cout, which is the host's: kernels print with printf()",
            self.both + "__global__ void k(int* x) { *x = std::max(*x, 3); }\n":
                "5:1: error: device code calls std::max(), which is the host's: nvcc takes it with --expt-relaxed-constexpr, which may be said "
                "here, too",
            "__host__ __device__ int f(int x) { if (x < 0) throw 3; return x; }\n": "1:1: error: throw: device code has no exceptions",
            "__global__ void k(int* x) {\n  __constant__ int a[2] = {1, 2}; *x = a[*x]; }\n":
                "2:1: error: a __constant__ variable within a function has to be static",
            "int total;\nvoid f() { atomicAdd(&total, 1); }\n": "2:1: error: host code uses atomicAdd, which only device code has",
            "int place() {\n  return threadIdx.x; }\n": "2:1: error: host code uses threadIdx, which only device code has",
            "__global__ void k(int* x) {\n  cudaMemcpy(x, x + 1, 4, cudaMemcpyDefault); }\n": "2:1: error: device code calls cudaMemcpy(), which is the host's",
            "__global__ void k() {\n  threadIdx.x += blockDim.x; }\n": "2:1: error: device code changes threadIdx.x, which it can only read",
            "__global__ void k() {\n  for (;; blockIdx.y++) {} }\n": "2:1: error: device code changes blockIdx.y, which it can only read",
        }
        with tempfile.TemporaryDirectory() as place:
            file = Path(place) / "refused.cu"
            for text, line in some(expected.items(), 7):
                with self.subTest(text):
                    file.write_text(text + "int main() {}\n")
                    said, printed = complaint(Asked([str(file)], [], None, 30))
                    self.assertEqual(printed.splitlines()[0], f"{file}:{line}")
                    self.assertEqual(len(printed.splitlines()), 2)  # with the source line
            file.write_text("namespace a { __constant__ int large[16 * 1024]; }\nint other;\nstatic __constant__ char one[1];\nint main() {}\n")
            said, printed = complaint(Asked([str(file)], [], None, 30))
            self.assertRegex(printed.splitlines()[0], re.escape(f"{file}:3:") + ".*the file's __constant__ variables take more than 65536 bytes")

    @at_length
    def test_what_nvcc_takes(self):
        with tempfile.TemporaryDirectory() as place:
            file = Path(place) / "taken.cu"
            file.write_text("#include <cstdlib>\n__constant__ char all[64 * 1024];\n__global__ void step(int* x, int n) { all[0] < n ? *x = n : 0; }\n"
                            "__device__ int next(int x) { return x + 1; }\n__device__ int abs(int x, int y) { return x - y; }\n"
                            "template <class T> __device__ T area(T x) { return x * x; }\n"
                            "struct Field { int next(int x) { return x; } int step(int n) { return next(n); } int area; };\n"
                            "const float weights[2] = {1, 2}, scale = 2;\nconstexpr int lengths[] = {3, 4};\n"
                            "__global__ void k(int* x, const int* lengths) { float weights[2] = {scale}; *x = int(weights[0]) + lengths[0] + sizeof(::lengths); }\n"
                            "__host__ __device__ int both(int x) { return x; }\n"
                            "__global__ void l() { uint3 t = threadIdx; t.x += 1, t.y = blockIdx.x == 1 && blockDim.x >= t.x; }\n"
                            "template <class T> int unused(T x) { return next(x); }\n"
                            "int main() { int *x, y[2] = {lengths[0], 0}, area = 3; Field f; auto step = [](int* x, int n) { return n; };\n"
                            "  cudaMalloc(&x, 4); cudaMemcpy(x, y, 4, cudaMemcpyHostToDevice); k<<<1, 1>>>(x, x); ::step<<<1, 1>>>(x, 0);\n"
                            "  cudaMemcpy(y, x, 4, cudaMemcpyDeviceToHost); cudaFree(x);\n"
                            "  return y[0] + f.step(1) + f.next(1) + abs(-1) + step(x, 2) + area + both(int(weights[0])) - 6 - 8; }\n")
            reported = ran(Asked([str(file)], [], None, 30))
            self.assertEqual((reported.status, reported.failures, reported.mistakes), (8, [], []))
            file.write_text(self.both + "__host__ __device__ int both(int x) { return x == 3 ? helper(x) : x; }\n"
                            "struct S { int helper(int) { return 1; } __device__ int time() { return 2; } __device__ int all() { return time(); } };\n"
                            "__device__ constexpr int constant(int x) { return x; }\n"
                            "float max(float x) { return x; }\n"
                            "template <class F> __global__ void k(int* x, F helper) { *x = helper(both(1)) + S().all() + constant(2) + max(1, 2); }\n"
                            "__global__ void l(int* x) { auto twice = [](int v) { return 2 * v; }; *x = twice(3); assert(*x == 6); }\n"
                            "int main() { int *x, y = helper(0); cudaMalloc(&x, 4); k<<<1, 1>>>(x, [] __device__ (int v) { return v; });\n"
                            "  cudaMemcpy(&y, x, 4, cudaMemcpyDeviceToHost); l<<<1, 1>>>(x); cudaFree(x); return y; }\n")
            reported = ran(Asked([str(file)], [], None, 30))
            self.assertEqual((reported.status, reported.failures, reported.mistakes), (7, [], []))
            file.write_text(self.both + "#include <iostream>\n__device__ int one(int x) { return x + 1; }\n"
                            "template <int (*F)(int)> __global__ void k(int* x) { extern __shared__ float s[]; *s = 2; *x = F(int(*s)); }\n"
                            "template <class T> __global__ void l(T* x) { extern __shared__ float s[]; *s = 2; *x = std::max(*x, T(3)); }\n"
                            "__global__ void m(unsigned* x) { extern __shared__ unsigned u[]; *u = 2; }\n"
                            "__global__ void n(unsigned int* x) { extern __shared__ unsigned int u[]; *u = 2; }\n"
                            "class S { int n; friend __global__ void m(unsigned* x); __device__ void n_() { this->n = 2; } };\n"
                            "struct Grid { dim3 blockDim; int cout; int threads() { return blockDim.x; } __device__ int m() { return cout << 1; } };\n"
                            "__device__ int lengths[2] = {sizeof(int), int(3)};\n"
                            "__host__ __device__ int halved(int x) {\n#ifndef __CUDA_ARCH__\n  if (x < 0) throw 3;\n#endif\n  return x / 2; }\n"
                            "__device__ int next(int x) { static __constant__ int a[2] = {1, 2}; auto f = [] __host__ __device__ (int x) { return x; };\n"
                            "  return a[f(x)]; }\n"
                            "inline int unused() { return threadIdx.x; }\nint sum(dim3 gridDim) { dim3 threadIdx(2); return gridDim.x + threadIdx.x; }\n"
                            "int main() { int *x, y; cudaMalloc(&x, 4); auto f = [=] __device__ (int* x) { atomicAdd(x, threadIdx.x); };\n"
                            "  k<one><<<1, 1, 4>>>(x); l<<<1, 1, 4>>>(x); cudaMemcpy(&y, x, 4, cudaMemcpyDeviceToHost); cudaFree(x);\n"
                            "  std::cout << helper(2) << '\\n'; return std::max(y, 2) + sum(dim3(3)) + Grid{{4}}.threads(); }\n")
            reported = ran(Asked([str(file)], ["-DSIMT_RELAXED_CONSTEXPR"], None, 30))
            self.assertEqual((reported.status, reported.failures, reported.mistakes), (12, [], []))

    def test_a_long_complaint_is_cut(self):
        self.assertEqual(len(messages("\n".join(f"a.cu:{n}:1: error: no" for n in range(99)))), 21)


if __name__ == "__main__":
    unittest.main()
