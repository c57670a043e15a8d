"""A free T4 has compute capability 7.5: with CUDAARCHS=75 the chapters up to 05 are compiled for it, and the others, which need 8.0,
for 8.0, so that they say so when they are run; 10_hopper and a file of 11_split_kv for 9.0a as ever. Nothing runs here; nvcc compiles the
last kernels of these chapters."""

import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from tools.base import ROOT, cuda

NVCC = cuda.find_nvcc()
LAST_FOR_ALL = "05"
OLD, NEW, HOPPER = "sm_75", "sm_80", "sm_90"


needs_nvcc = unittest.skipIf(NVCC is None or NVCC.version < cuda.LOWEST_NVCC, "NOT RUN: needs nvcc")


@needs_nvcc
class Architectures(unittest.TestCase):
    def test_for_which_gpu_each_chapter_is_compiled(self):
        with tempfile.TemporaryDirectory() as directory:
            done = subprocess.run(["cmake", "--preset", "cuda", "-B", directory], cwd=ROOT, env={**os.environ, "CUDAARCHS": "75"},
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            commands = json.loads((Path(directory) / "compile_commands.json").read_text())
        found = {}
        for entry in commands:
            chapter = Path(entry["file"]).parent.name
            if re.match(r"\d\d_", chapter) and (architectures := set(re.findall(r"\bsm_\d+", entry["command"]))):
                found.setdefault(chapter, set()).update(architectures)
        self.assertGreaterEqual(len(found), 9)
        others = {"10_hopper": {HOPPER}, "11_split_kv": {NEW, HOPPER}}
        for chapter, architectures in found.items():
            self.assertEqual(architectures, others.get(chapter, {OLD if chapter[:2] <= LAST_FOR_ALL else NEW}), chapter)


@needs_nvcc
class FirstChapters(unittest.TestCase):
    def test_they_compile_for_it(self):
        for chapter in sorted(path.name for path in ROOT.glob("0[1-5]_*")):
            last = max((ROOT / chapter).glob("[0-9]*.cu"), default=ROOT / chapter / "attention.cu")
            with self.subTest(source=last.name), tempfile.TemporaryDirectory() as directory:
                done = subprocess.run([NVCC.path, "-std=c++20", f"-arch={OLD}", "-Xcicc", "-O0", "-Xptxas", "-O0", "-I", ROOT / "common",
                                       "-cubin", "-o", f"{directory}/kernel.cubin", last],
                                      stdin=subprocess.DEVNULL, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
