"""watch() is no instruction on a GPU: a kernel has the same machine code with its calls and without them."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# One with calls of nearly every form, and one whose loops nvcc unrolled in another way when a loop held nothing but a call.
KERNELS = ("06_flashattn2_fwd/9_final.cu", "04_fusion/2_streamed.cu")
CALL = re.compile(r"^ *(?:for \(.*\) )?watch\w*\([^;]*\);.*\n", re.MULTILINE)
MISSING = 77  # CTest counts it as skipped


def tool(name: str) -> "str | None":
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/local/cuda/bin")


def machine_code(source: str) -> str:
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "kernel.cu").write_text(source)
        subprocess.run([tool("nvcc"), "-std=c++20", "-O3", "-arch=sm_90", "-I", ROOT / "common", "-cubin", "-o", "kernel.cubin", "kernel.cu"],
                       cwd=directory, check=True)
        code = subprocess.run([tool("cuobjdump"), "-sass", "kernel.cubin"], cwd=directory, check=True, capture_output=True, text=True).stdout
    return re.sub(r"_GLOBAL__N__[0-9a-f]+_\w*?(?=\d)", "", re.sub(r"[0-9a-f]{8}_\d+_kernel_cu_[0-9a-f]{8}(_\d+)?", "", code))


class Watch(unittest.TestCase):
    def test_is_no_instruction(self):
        for kernel in KERNELS:
            with self.subTest(kernel):
                source = (ROOT / kernel).read_text()
                without, calls = CALL.subn("", source)
                self.assertGreaterEqual(calls, 4)
                self.assertNotRegex(without, r"\bwatch\w*\(\"")
                code = machine_code(source)
                self.assertRegex(code, "HMMA|FFMA")
                self.assertEqual(code, machine_code(without))


if __name__ == "__main__":
    if not (tool("nvcc") and tool("cuobjdump")):
        print("SKIPPED, machine code with and without watch() was not compared: no nvcc and cuobjdump")
        sys.exit(MISSING)
    unittest.main(verbosity=2)
