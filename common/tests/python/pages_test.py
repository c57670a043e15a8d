"""The lines of Python that pages show, as they stand there, on the library's device. Their values are compared elsewhere.

Exits with status 77, which CTest takes for "skipped", where there is no PyTorch, or no GPU for a library that wants
one.
"""

import os
import re
import sys
import unittest
from pathlib import Path

try:
    import torch
except ImportError:
    print("NOT RUN: there is no PyTorch")
    sys.exit(77)

import flash_attention_workbook as faw

ROOT = Path(__file__).resolve().parents[3]
PAGES = ("README.md", "common/book/reference.md", "common/python/README.md")
if faw.DEVICE == "cuda" and not torch.cuda.is_available():
    print("NOT RUN: PyTorch finds no GPU")
    sys.exit(1 if os.environ.get("REQUIRE_GPU") == "1" else 77)
HOPPER = faw.DEVICE == "cpu" or torch.cuda.get_device_capability() == (9, 0)
N = 40


def names(packed: bool) -> dict:
    """What the lines take for granted."""
    torch.manual_seed(1)
    q, k, v = (torch.randn((2 * N, 2, 64) if packed else (1, 2, N, 64), dtype=torch.float16, device=faw.DEVICE)
               for _ in range(3))
    q8, k8, v8 = (torch.randn(1, 2, N, 64, device=faw.DEVICE).to(torch.float8_e4m3fn) for _ in range(3))
    return {"torch": torch, "faw": faw, "q": q, "k": k, "v": v, "query": q, "key": k, "value": v, "N": N, "n": N,
            "q8": q8, "k8": k8, "v8": v8, "a": 1.0, "b": 0.5, "c": 0.25, "longest": N,
            "begin": torch.tensor([0, N, 2 * N], dtype=torch.int32, device=faw.DEVICE),
            "seen": lambda b, h, i, j: (i - j).abs() < 9, "sink": torch.zeros(2, device=faw.DEVICE),
            "slopes": torch.ones(2, device=faw.DEVICE), "numbers": torch.zeros(2, device=faw.DEVICE),
            "mask": torch.ones(N, N, dtype=torch.bool, device=faw.DEVICE).tril(2)}


class Pages(unittest.TestCase):
    def require(self, line: str) -> None:
        with self.subTest(line=line):
            if "fp8" in line and not HOPPER:
                self.skipTest("NOT RUN: eight bits are for Hopper")
            known = names("packed" in line)
            exec(line, known)
            if line.startswith("o = "):
                self.assertEqual(known["o"].shape, known["q"].shape)
                self.assertTrue(known["o"].isfinite().all())

    def test_every_line(self):
        for page in PAGES:
            blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
            self.assertTrue(blocks, page)
            for line in filter(None, "".join(blocks).splitlines()):
                self.require(line)

    def test_what_the_comments_offer(self):
        """also alibi=slopes, sink=numbers"""
        text = (ROOT / "common/book/reference.md").read_text()
        offered = re.search(r"also (alibi=\w+), (sink=\w+)$", text, re.MULTILINE)
        for option in offered.groups():
            self.require(f"o = faw.attention(q, k, v, {option})")

    def test_the_modules_own_text(self):
        lines = re.findall(r"^    (o = .*)$", faw.__doc__, re.MULTILINE)
        self.assertGreater(len(lines), 5)
        for line in lines:
            self.require(line)


if __name__ == "__main__":
    unittest.main()
