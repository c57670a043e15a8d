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
# One with calls of nearly every form, one whose loops nvcc unrolled in another way when a loop held nothing but a call,
# and one that calls a header's functions which show something; with its architecture, and that header.
KERNELS = (("06_flashattn2_fwd/11_final.cu", "sm_90", None), ("04_fusion/2_streamed.cu", "sm_90", None),
           ("10_hopper/9_persistent.cu", "sm_90a", "device/lazy_softmax.h"))
CALL = re.compile(r'^ *(?:for \(.*\) )?watch\w*\((?:"[^"]*"|[^";])*\);.*\n', re.MULTILINE)
MISSING = 77  # CTest counts it as skipped


def tool(name: str) -> "str | None":
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/local/cuda/bin")


def machine_code(sources: dict, architecture: str) -> str:
    """Of kernel.cu, one of {name: text}."""
    with tempfile.TemporaryDirectory() as directory:
        for name, text in sources.items():
            (Path(directory) / name).parent.mkdir(exist_ok=True)
            (Path(directory) / name).write_text(text)
        subprocess.run([tool("nvcc"), "-std=c++20", "-O3", f"-arch={architecture}", "-I", ROOT / "common", "-cubin",
                        "-o", "kernel.cubin", "kernel.cu"], cwd=directory, check=True)
        code = subprocess.run([tool("cuobjdump"), "-sass", "kernel.cubin"], cwd=directory, check=True,
                              capture_output=True, text=True).stdout
    return re.sub(r"_GLOBAL__N__[0-9a-f]+_\w*?(?=\d)", "", re.sub(r"[0-9a-f]{8}_\d+_kernel_cu_[0-9a-f]{8}(_\d+)?", "",
                                                                  code))


class Watch(unittest.TestCase):
    def test_is_no_instruction(self):
        for kernel, architecture, header in KERNELS:
            with self.subTest(kernel):
                sources = {"kernel.cu": (ROOT / kernel).read_text(),
                           **({header: (ROOT / "common" / header).read_text()} if header else {})}
                without = {name: CALL.sub("", text) for name, text in sources.items()}
                self.assertGreaterEqual(sum(len(CALL.findall(text)) for text in sources.values()), 4)
                for text in without.values():
                    self.assertNotRegex(text, r"\bwatch\w*\(\"")
                code = machine_code(sources, architecture)
                self.assertRegex(code, "HMMA|FFMA|HGMMA")
                self.assertEqual(code, machine_code(without, architecture))


if __name__ == "__main__":
    if not (tool("nvcc") and tool("cuobjdump")):
        print("SKIPPED, machine code with and without watch() was not compared: no nvcc and cuobjdump")
        sys.exit(MISSING)
    unittest.main(verbosity=2)
