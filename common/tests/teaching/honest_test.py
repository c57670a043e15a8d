"""Honest students lose nothing: what editors, archives and platforms do to a solution, and what kernels use, each alone. One
compilation says that the engine has the intrinsics; nothing else is built."""

import io
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest
import zipfile
from pathlib import Path

from tools import course
from tools.base import ROOT
from tools.course import kernelcode
from tools.grading import read_submission
from tools.grading.one_submission import taken_from

ID, FILE = "05.rescale", "05_online_softmax/1_online.cu"
SOLUTION = "      const float correction = expf(m - m_safe);\n      // für alle Zeilen\n      l = l * correction + warp_sum(s_row[lane]);"

# What an editor may do to the whole file.
EDITORS = {
    "Latin-1 in a comment outside": lambda text: b"// f\xfcr alle\n" + text.encode(),
    "Latin-1 in a comment inside": lambda text: text.replace("für", "f\x00r").encode().replace(b"\x00", b"\xfc"),
    "a mark of UTF-8 at the beginning": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "UTF-16, little end first": lambda text: text.encode("utf-16"),
    "UTF-16, big end first": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
    "lines of Windows": lambda text: text.replace("\n", "\r\n").encode(),
    "lines of an old Mac": lambda text: text.replace("\n", "\r").encode(),
    "no end of the last line": lambda text: text.rstrip().encode(),
    "blanks behind each line": lambda text: text.replace("\n", "  \n").encode(),
    "tabs": lambda text: text.replace("      ", "\t").encode(),
    "another task behind the marker": lambda text: re.sub(r"(// exercise rescale:).*", r"\1 done!", text).encode(),
    "no blank in the markers": lambda text: re.sub(r"// (exercise|end) ", r"//\1 ", text).encode(),
    "many blanks in the markers": lambda text: re.sub(r"// (exercise|end) (\w+)", r"//   \1\t \2  ", text).encode(),
    "what else the student tried, outside": lambda text: text.replace("namespace {", "namespace {\nint x = system(0);").encode(),
}
# Where the file may lie: {name: where, and what lies beside it}.
FOLDERS = {
    "as it was handed out": (FILE, []),
    "flat": ("1_online.cu", ["notes.txt"]),
    "in a directory": (f"homework/{FILE}", ["homework/README.md"]),
    "in two": (f"a/b/{FILE}", ["a/b/x", "a/y"]),
    "without the chapter's": ("homework/1_online.cu", []),
    "beside what a Mac adds": (FILE, ["__MACOSX/05_online_softmax/._1_online.cu", ".DS_Store"]),
    "with the directories of Windows": (FILE.replace("/", "\\"), []),
    "with what was built": (FILE, ["build/cpu/05_online_softmax/1_online.cu.o"]),
    "beside the copy that was handed out": (FILE, [f"common/course/handed_out/{FILE}"]),
    "in a directory, with that copy": (f"mine/{FILE}", [f"mine/common/course/handed_out/{FILE}"]),
}
ENDINGS = (".zip", ".ZIP", ".Zip", ".tar", ".tar.gz", ".TGZ", ".TAR.GZ", ".tar.xz", ".tar.bz2", ".tbz2", ".txz")
# Ordinary CUDA: of each a line. The engine compiles them all, and grading refuses none.
INTRINSICS = r"""
l = fma(l, m, rsqrt(l)) + fmaf(l, m, l) + rsqrtf(l) + __fsqrt_rn(l) + __frsqrt_rn(l) + __frcp_rn(l);
l = __fdiv_rn(l, m) + __fadd_rn(l, m) + __fsub_rn(l, m) + __fmul_rn(l, m) + __fmaf_rn(l, m, l) + __fdividef(l, m);
l = __expf(l) + __logf(l) + __powf(l, m) + __sinf(l) + __cosf(l) + __exp10f(l) + __saturatef(l);
l = isnan(l) + isinf(l) + isfinite(l) + signbit(l) + tanhf(l) + erff(l) + fmodf(l, m) + exp10f(l) + hypotf(l, m);
l = rintf(l) + truncf(l) + lrintf(l) + roundf(l) + floorf(l) + ceilf(l) + log1pf(l) + expm1f(l) + exp2f(l) + log2f(l);
l = __int_as_float(__float_as_int(l)) + __int2float_rn(lane) + __float2int_rn(l);
const __half2 h = __float2half2_rn(l); l = __low2float(h) + __high2float(h) + __half22float2(__hmul2(h, __hadd2(h, h))).x;
const __half a = __float2half(l), b = __float2half_rn(m); l = __half2float(__hfma(__hadd(a, b), __hsub(a, b), __hmax(a, __hmin(a, b))));
l = __bfloat162float(__float2bfloat16(l)) + __bfloat1622float2(__float22bfloat162_rn(make_float2(l, m))).y;
const unsigned sum = __reduce_add_sync(0xffffffff, unsigned(lane)), most = __reduce_max_sync(0xffffffff, sum); l = sum + most;
l = __popc(lane) + __ffs(lane) + __clz(lane) + __any_sync(0xffffffff, 1) + __ballot_sync(0xffffffff, lane) + __activemask();
l = __shfl_sync(0xffffffff, l, 0) + __shfl_up_sync(0xffffffff, l, 1) + __shfl_down_sync(0xffffffff, l, 1);
const float4 v = *reinterpret_cast<const float4*>(s_row + 4 * lane); l = v.x + __ldg(s_row);
volatile float seen = l; l = seen;
static constexpr int thousand = 1'000; l = thousand;
constexpr int depth = 4;\n#pragma unroll depth\nfor (int i = 0; i < depth; i++) l += i;
#pragma unroll (4)\nfor (int i = 0; i < 4; ++i) l += i;
const auto twice = [](float x) { return 2 * x; }; l = twice(l);
struct Pair { float first, second; }; Pair pair = {l, m}; l = pair.second;
using Row = float*; Row row = s_row; l = row[0];
enum { lanes = 32 }; l = lanes;
float part[4] = {}; for (float& x : part) x = l; l = part[0] + sizeof(part) / sizeof(float);
__threadfence_block(); __syncwarp(); atomicAdd(s_row, l); atomicExch(s_row, l);
__shared__ __half kept[32]; kept[lane] = __float2half(l); __syncwarp(); l = __half2float(kept[0]);
l = ldexpf(l, 2) + copysignf(l, m) + cbrtf(l) + tanf(l) + fdimf(l, m) + asinf(l) + acosf(l) + atanf(l) + atan2f(l, m) + sinhf(l) + coshf(l);
l = __uint_as_float(__float_as_uint(l)) + __umulhi(3u, 4u) + __mul24(3, 4) + __brev(lane) + __clzll(3) + __ffsll(3) + __popcll(3);
__nanosleep(10); assert(lane < 32); static_assert(sizeof(float) == 4, "it's // four /* bytes");
#pragma GCC unroll 4\nfor (int i = 0; i < 4; ++i) l += i;
switch (int(l)) { case 0: l = 1; [[fallthrough]]; case 1: l = 2; }
[[maybe_unused]] int gleb = 0; if (l > 0) [[likely]] l = m; else [[unlikely]] l = 0;
#pragma nounroll\nfor (int gleb = 0; gleb < 4; ++gleb) l += gleb;
#pragma unroll 2 * 2\nfor (int gleb = 0; gleb < 4; ++gleb) l += gleb;
#pragma unroll(8 / (1 + 1))\nfor (int gleb = 0; gleb < 4; ++gleb) l += gleb;
const Pack8<__half> wump = load_pack8(reinterpret_cast<const __half*>(s_row)); l = __half2float(wump.x[0]);
struct Zork { float hot, cold; __device__ float sum(const Zork& other) const { return hot + other.cold; } }; Zork wump = {l, m}; l = wump.sum(Zork{m, l});
struct alignas(16) Zork { float hot[4]; }; Zork wump[2] = {}; const Zork &quib = wump[1], *gleb = &quib; l = quib.hot[0] + gleb->hot[1];
struct Zork { float hot; __device__ Zork(float first) { hot = first; } [[nodiscard]] __device__ float twice() const { return 2 * hot; } }; l = Zork(l).twice();
const float *wump = s_row, *gleb = s_row + 1, &quib = l; l = *wump + *gleb + quib;
enum { wump = 4, gleb }; float quib[wump] = {}; l = quib[gleb % wump];
enum class Zork : int { wump, gleb }; const Zork quib = Zork::wump; if (quib == Zork::gleb) l = 0;
auto quib = [wump = lane, gleb = l + 1, &l](float zork) mutable { wump += 1; l = zork; return wump * gleb; }; l = quib(m);
float wump[4] = {}; float (&gleb)[4] = wump; const auto (&quib)[4] = gleb; l = gleb[0] + quib[1];
typedef const float* Zork; Zork wump = s_row; const Zork gleb = wump; l = Zork(gleb)[0];
struct Zork { __device__ float operator()(float hot, float cold) const { return fmaxf(hot, cold); } }; const Zork wump; l = wump(l, m) + Zork()(l, m);
struct Zork { float hot; __device__ Zork operator+(Zork cold) const { return {hot + cold.hot}; } }; Zork wump = {l}; l = (wump + wump).hot;
struct Zork { float hot; __device__ float get() const noexcept { return hot; } __device__ float twice() const { return 2 * get(); } }; l = Zork{m}.twice();
struct Zork { float hot, cold; __device__ explicit Zork(float wump) : hot(wump), cold{1} {} }; l = Zork(l).hot;
const auto gleb = [](auto op, float wump) { return op(wump, wump); }; l = gleb([](float hot, float cold) { return hot + cold; }, l);
float wump[2][3] = {}; float (*gleb)[3] = wump; const float (*quib)[3] = wump; l = gleb[1][2] + quib[0][0];
typedef unsigned int zork; zork wump = 1; typedef unsigned char gleb; gleb quib = 2; l = wump + quib;
uchar4 wump = make_uchar4(1, 2, 3, 4); const double2 gleb = make_double2(1, 2); uint quib = wump.x; ushort zork = 1; l = quib + gleb.x + zork;
l = __ldcg(s_row) + __ldcs(s_row) + __ldca(s_row) + __ldlu(s_row) + __ldcv(s_row) + __ldg(s_row); __stcs(s_row, l); __stcg(s_row, l); __stwb(s_row, l);
const unsigned wump = __byte_perm(1, 2, 3) + __funnelshift_r(1, 2, 3) + __dp4a(1, 2, 3) + __sad(1, 2, 3); l = __uint2float_rn(wump) + __float2uint_rz(l);
atomicAdd_block(s_row, l); unsigned wump = 0; l = __reduce_or_sync(0xffffffff, wump) + __tanf(l) + __log2f(l) + __fmul_rn(l, m) + rcbrtf(l) + erfcf(m);
const __nv_bfloat162 wump = __floats2bfloat162_rn(l, m); l = __low2float(wump) + __bfloat162float(__low2bfloat16(wump)) + __half2float(__habs(__float2half(l)));
l = std::min(l, m) + ::max(l, m); if (::min(l, std::max(l, m)) > 0) l = std::exp(l) + std::isnan(m) + std::abs(l); const auto gleb = [](float hot) { return ::max(hot, 0.0f); }; l = gleb(l);
struct Zork { float hot; __host__ __device__ __inline__ float twice() const { return 2 * hot; } }; l = Zork{l}.twice();
std::uint32_t wump = 1; const std::size_t gleb = wump; std::int8_t quib[2] = {}; l = std::uint64_t(gleb) + quib[0];
""".strip().splitlines()


class Honest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.course = course.load()
        (cls.exercise,) = cls.course.select([ID])
        cls.handed_out = cls.course.student_files([cls.exercise])[FILE]
        region = cls.course.region(cls.exercise, cls.handed_out)
        cls.mine = course.markers.filled(cls.handed_out, region, SOLUTION)

    def taken(self, path: Path) -> "list[str]":
        """The words of the solution, without comments, that grading takes from there; what it says if it takes none."""
        read = read_submission(path, [FILE])
        if read.refused or read.wrong:
            return [str(read.refused or read.wrong)]
        refused = kernelcode.refusal(self.course, self.exercise, read.texts[FILE])
        if refused:
            return [refused.line]
        written = taken_from(self.course, read, [self.exercise]).get(ID, "not attempted")
        return re.sub(r"//.*", "", written).split()

    def archive(self, directory: Path, ending: str, files: dict) -> Path:
        path = directory / f"ada{ending}"
        if ending.lower() == ".zip":
            with zipfile.ZipFile(path, "w") as archive:
                for name, content in files.items():
                    archive.writestr(name, content)
            return path
        how = {"z": "gz", "2": "bz2"}.get(ending[-1].lower(), "xz") if ending.lower() != ".tar" else ""
        with tarfile.open(path, f"w:{'gz' if ending.lower().endswith('gz') else how}") as archive:
            for name, content in files.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        return path

    def test_each_loses_nothing(self):
        right = re.sub(r"//.*", "", SOLUTION).split()
        tried = {f"editor: {name}": (".zip", {FILE: change(self.mine)}) for name, change in EDITORS.items()}
        tried.update({f"folder: {name}": (".zip", {place: self.mine.encode(), **{other: (
            self.handed_out.encode() if "handed_out" in other else b"x") for other in beside}})
            for name, (place, beside) in FOLDERS.items()})
        tried.update({f"ending: {ending}": (ending, {FILE: self.mine.encode()}) for ending in ENDINGS})
        for name, (ending, files) in tried.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as directory:
                path = self.archive(Path(directory), ending, files)
                self.assertEqual(self.taken(path), right)
                moodles = Path(directory) / "Ada Example_77_assignsubmission_file_"
                moodles.mkdir()
                path.rename(moodles / path.name)
                self.assertEqual(self.taken(moodles), right)

    def test_what_writes_through_pointers_or_is_not_all_code_is_not_ordinary(self):
        """The engine traces no such writes; and what looks like a comment is none in a string."""
        for line in ("float gleb; sincosf(l, &m, &gleb);", "l = modff(l, &m);", "int gleb; l = frexpf(l, &gleb);", "memcpy(&l, s_row, 4);",
                     'static_assert(1, "/*"); vfork(); static_assert(1, "*/");', "static_assert(1, R\"(\")\"); vfork(); static_assert(1, \"\");",
                     'puts(l, "x");', "[[gnu::constructor]] int gleb;", "#pragma unroll int vfork(int)\n{ vfork(1); }",
                     "{ struct vfork { float hot; }; } vfork();", "template <class vfork> float gleb(); vfork();", "l = std::vfork();", "l = ::vfork();", "l = Zork::min(l, m);", "l = (m)::min(l, m);", "std::min = 1;",
                     "{ enum { vfork }; } vfork();", "enum { vfork }; vfork();", "l = [vfork = l] { return 1; }(); vfork();", "s_row[vfork = 1] = 2;",
                     "void (&gleb)(int) = vfork;", "l = (m, *vfork);", "using Zork = int; Zork::vfork();", "typedef int Zork; l = vfork;"):
            with self.subTest(line=line):
                self.assertIsNotNone(kernelcode.refusal(self.course, self.exercise, self.mine.replace(SOLUTION, line)))

    def test_what_the_engine_does_not_know_names_what_it_knows(self):
        found = kernelcode.refusal(self.course, self.exercise, self.mine.replace(SOLUTION, "extern __shared__ float all[];"))
        self.assertTrue(found.refused)
        self.assertRegex(found.line, r"1_online.cu:\d+: extern __shared__: here a kernel gets its dynamic shared memory as dynamic_shared<float>")

    def test_of_ordinary_cuda_nothing_is_refused(self):
        for line in INTRINSICS:
            with self.subTest(line=line):
                text = self.mine.replace(SOLUTION, line.replace("\\n", "\n"))
                self.assertIsNone(kernelcode.refusal(self.course, self.exercise, text))

    @unittest.skipIf(shutil.which("g++") is None, "NOT RUN: needs g++")
    def test_the_engine_has_ordinary_cuda(self):
        kernels = [f"__global__ void line_{number}(float* s_row, float l, float m, int lane) {{\n{line}\n  s_row[0] = l;\n}}"
                   for number, line in enumerate(INTRINSICS)]
        with tempfile.TemporaryDirectory() as directory:
            source = Path(directory) / "a.cc"
            headers = [f'#include "device/{name}.h"' for name in ("math", "numeric")]
            source.write_text("\n".join([*headers, *kernels]).replace("\\n", "\n"))
            compiled = source.with_suffix(".o")
            done = subprocess.run(["g++", "-std=c++20", "-DWORKBOOK_SIMT", f"-I{ROOT / 'common'}", "-w", "-c", source, "-o", compiled],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            # Such a variable beside a shared one would be written by the kernel, and grading takes that for a wild write.
            self.assertNotIn(b"_ZGV", compiled.read_bytes())


if __name__ == "__main__":
    unittest.main()
