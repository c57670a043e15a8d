"""Are common/tools and the Python package written as pyproject.toml says? Asks ruff and, in the slow tier, mypy, which are
installed into build/style, once, in versions that run on Python 3.9 and later ones."""

import subprocess
import unittest
from pathlib import Path

from tools.base import BUILD, ROOT, Failure, pythons

HOME = BUILD / "style"


class Python(unittest.TestCase):
    def ask(self, tool: str, *words: str) -> None:
        try:
            python = pythons.with_packages(Path(__file__).with_name(f"{tool}.txt"), HOME / tool / "venv", (3, 9))
        except Failure as failure:
            self.skipTest(f"NOT RUN: needs {tool}, which is not to be had: {failure}")
        done = subprocess.run([str(python), "-m", tool, *words], cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, f"\n{done.stdout}{done.stderr}")

    def test_ruff(self) -> None:
        self.ask("ruff", "check", "--quiet", "--output-format=concise", f"--cache-dir={HOME / 'ruff/cache'}", "common/tools",
                 "workbook")

    def test_mypy(self) -> None:
        self.ask("mypy", "--no-error-summary", f"--cache-dir={HOME / 'mypy/cache'}")


if __name__ == "__main__":
    unittest.main()
