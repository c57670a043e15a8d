"""The example trains: 20 steps of the tiny model, whose losses are those of PyTorch's attention whichever chapter's it is.

Exits with status 77, which CTest takes for "skipped", where there is no PyTorch, or no GPU for a library that wants one.
"""

import os
import sys
import unittest
from pathlib import Path

try:
    import torch
except ImportError:
    print("NOT RUN: there is no PyTorch")
    sys.exit(77)

import flash_attention_workbook as faw

if faw.DEVICE == "cuda" and not torch.cuda.is_available():
    print("NOT RUN: PyTorch finds no GPU")
    sys.exit(1 if os.environ.get("REQUIRE_GPU") == "1" else 77)

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples"))
import gpt


class Training(unittest.TestCase):
    def test_losses_lie_on_one_another(self):
        gpt.workbook = faw
        losses = {}
        for name in gpt.ATTENTIONS:
            report = gpt.train(gpt.arguments(["--tiny", "--steps=20", f"--attention={name}"]), faw.DEVICE)
            losses[name] = torch.tensor(report["losses"])
        expected = losses.pop("sdpa")
        self.assertEqual(expected.shape, (20,))
        self.assertLess(expected[-5:].mean(), 0.85 * expected[0])
        for name, got in losses.items():
            with self.subTest(name):
                apart = (got - expected).abs()
                print(f"{name}: losses are at most {apart.max():.1e} from PyTorch's", flush=True)
                self.assertLess(apart[0], 1e-3)  # bf16 tells them apart by 1e-4; a scale that is a fifth too large, by 2e-3
                self.assertLess(apart.max(), 2e-2)


if __name__ == "__main__":
    unittest.main()
