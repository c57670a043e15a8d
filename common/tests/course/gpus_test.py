"""A student's own GPU: what is compiled for it, whether all kernels can be, and whether they fit into its shared memory.

A free T4 has compute capability 7.5: the chapters up to 05 are compiled for it, and the others, which need 8.0, for 8.0, so that they
say so when they are run; 10_hopper and two files of 11_split_kv for 9.0a as ever. Nothing runs on a GPU here: nvcc compiles, and the
engine runs the kernels with each GPU's limits.

Compiling for all GPUs costs little in this form: without the host's code, nothing optimised (but for wgmma, where nvcc 13.0 breaks
down without), and the front end only for 7.5, 8.0 and 9.0, of which all other machine code is made. That is what nvcc would make of the front ends in between, as long as the sources ask for
nothing else."""

import json
import os
import re
import subprocess
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.base import GPUS, ROOT, build, chapters, cuda

NVCC = cuda.find_nvcc()
LAST_FOR_ALL = "05"
MADE_OF = {"75": "75", "80": "80", "86": "80", "89": "80", "90": "90", "90a": "90a", "120": "90"}  # {machine code: front end}
ALL = ["75", "80", "86", "89", "90", "120"]
DEVICES = ["t4", "a100", "3060", "4060", "h100", "5070"]  # one for each
KERNELS = [*chapters.all_chapters(), *chapters.of_exercises()]

needs_nvcc = unittest.skipIf(NVCC is None or NVCC.version < cuda.LOWEST_NVCC, "NOT RUN: needs nvcc")
needs_newest = unittest.skipIf(NVCC is None or NVCC.version < (12, 8), "NOT RUN: needs nvcc 12.8 or later, which knows sm_120")


def compiled_for(asked_for: str) -> "dict[Path, set[str]]":
    """{file of kernels: the machine code that the build makes of it} where the user asks for these architectures."""
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(["cmake", "--preset", "cuda", "-B", directory], cwd=ROOT, env={**os.environ, "CUDAARCHS": asked_for},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            raise AssertionError(done.stderr)
        commands = json.loads((Path(directory) / "compile_commands.json").read_text())
    found = {Path(entry["file"]): set(re.findall(r"\bsm_(\d+a?)", entry["command"])) for entry in commands}
    places = [ROOT / one.place for one in KERNELS]
    return {file: codes for file, codes in found.items() if codes and any(file.is_relative_to(place) for place in places)}


def place_of(file: Path) -> str:
    return str(file.relative_to(ROOT).parent).removesuffix("/wide")


def needs_ampere(place: str) -> bool:
    """What a chapter from 06 on has; its programs for several ranks have kernels for all GPUs."""
    return place[:2].isdigit() and place[:2] > LAST_FOR_ALL and "/" not in place


class OfPlaces(unittest.TestCase):
    def of_places(self, asked_for: str) -> "dict[str, set[str]]":
        found: dict = {}
        for file, codes in compiled_for(asked_for).items():
            found.setdefault(place_of(file), set()).update(codes)
        self.assertLessEqual({str(one.place) for one in KERNELS}, found.keys())
        return found


@needs_nvcc
class ForAT4(OfPlaces):
    def test_for_a_t4(self):
        others = {"10_hopper": {"90a"}, "13_fp8": {"90a"}, "11_split_kv": {"80", "90a"}, "12_variants": {"80", "90a"}}
        for place, codes in self.of_places("75").items():
            self.assertEqual(codes, others.get(place, {"80" if needs_ampere(place) else "75"}), place)


@needs_newest
class ForAll(OfPlaces):
    def test_for_all(self):
        later = {*ALL} - {"75"}
        others = {"10_hopper": {"90a"}, "13_fp8": {"90a"}, **dict.fromkeys(["11_split_kv", "12_variants"], {*later, "90a"})}
        for place, codes in self.of_places(";".join(f"{code}-real" for code in ALL)).items():
            self.assertEqual(codes, others.get(place, later if needs_ampere(place) else {*ALL}), place)

    def test_front_ends_differ_where_it_is_thought(self):
        asked = {number for path in [*ROOT.glob("common/device/*.h"), *ROOT.glob("common/attention/*"), *ROOT.glob("[01]*/**/*.cu")]
                 for number in re.findall(r"__CUDA_ARCH__[^\n]*?(\d{3,})", path.read_text())}
        self.assertLessEqual(asked, {"800", "900"})


class Compiling(unittest.TestCase):
    def compile(self, *beginnings: str) -> None:
        """Every kernel of these chapters, for each GPU for which the build compiles it."""
        wanted = {file: codes for file, codes in compiled_for(";".join(f"{code}-real" for code in ALL)).items()
                  if place_of(file).startswith(beginnings)}
        self.assertTrue(wanted)
        with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(build.cores()) as at_once:
            def done(file: Path) -> "subprocess.CompletedProcess[str]":
                front_ends: dict = {}
                for code in sorted(wanted[file]):
                    front_ends.setdefault(MADE_OF[code], []).append(f"sm_{code}")
                flags = [f"--generate-code=arch=compute_{front},code=[{','.join(codes)}]" for front, codes in front_ends.items()]
                quickly = [] if "90a" in wanted[file] else ["-Xcicc", "-O0", "-Xptxas", "-O0"]  # it breaks down at wgmma so
                return subprocess.run([NVCC.path, "-std=c++20", *flags, *quickly, "-I", ROOT / "common", "-fatbin",
                                       "-o", Path(directory) / f"{file.parent.name}-{file.stem}", file],
                                      stdin=subprocess.DEVNULL, capture_output=True, text=True)

            for file, made in zip(wanted, at_once.map(done, wanted)):
                with self.subTest(file=file.name):
                    self.assertEqual(made.returncode, 0, made.stderr)


@needs_newest
class Compile01to05(Compiling):
    def test_for_all_gpus(self):
        self.compile("01", "02", "03", "04", "05", "common")


@needs_newest
class Compile06to09(Compiling):
    def test_for_all_gpus_from_ampere_on(self):
        self.compile("06", "07", "08", "09")


@needs_newest
class Compile10to13(Compiling):
    def test_for_hopper_and_for_all_gpus_from_ampere_on(self):
        self.compile("10", "11", "12", "13")


class SharedMemory(unittest.TestCase):
    """Each rung, with the limits of each GPU: it is right, or refuses in one line."""

    SHAPES = ["--head-dim=64 --causal --dtype=fp16", "--head-dim=128 --no-causal --dtype=bf16", "--head-dim=256 --causal --dtype=fp16"]

    def test_every_rung_is_right_or_refuses_in_one_line(self):
        directory = Path(os.environ["WORKBOOK_BUILD"])
        right: dict = {}
        for kernels in KERNELS:
            described = chapters.describe(kernels, [directory])
            if not described:
                self.fail(f"{kernels.name} is not built in {directory}")
            for direction in ("forward", "backward"):
                for rung in described.rungs_with(direction):
                    for device in DEVICES:
                        for shape in self.SHAPES:
                            if self.is_right(kernels, directory, [f"--rung={rung}", f"--direction={direction}", f"--device={device}",
                                                                  *shape.split()]):
                                right.setdefault((kernels.name, GPUS[device].capability), set()).add(shape)
        for kernels in KERNELS:
            for device in DEVICES:
                capability = GPUS[device].capability
                takes = capability == 90 if kernels.number == "10" else capability >= 80 or not needs_ampere(kernels.name)
                self.assertEqual({*self.SHAPES[:2]} <= right.get((kernels.name, capability), set()), takes, f"{kernels.name} {device}")

    def is_right(self, kernels: chapters.Chapter, directory: Path, flags: "list[str]") -> bool:
        done = subprocess.run([kernels.program(directory), "--check", "--batch=1", "--heads=1", "--seq-q=70", "--seq-k=200", *flags],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        said = f"{kernels.name} {' '.join(flags)}\n{done.stdout}{done.stderr}"
        if done.returncode == 0:
            self.assertRegex(done.stdout, r"(?m)^.*: PASS\b", said)
            return True
        self.assertEqual((done.returncode, done.stdout), (2, ""), said)
        self.assertRegex(done.stderr, rf"^{kernels.name}: [^\n]*(compute capability|shared memory|head-dim)[^\n]*: supported [^\n]+\n$", said)
        return False


if __name__ == "__main__":
    unittest.main()
