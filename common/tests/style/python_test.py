"""Are common/tools and the Python package written as pyproject.toml says? Asks ruff and mypy, which are installed
into build/style/venv, once."""

import subprocess
import unittest
from pathlib import Path

from tools.base import BUILD, ROOT, Failure, pythons

HOME = BUILD / "style"


class Python(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        try:
            cls.python = pythons.with_packages(Path(__file__).with_name("requirements.txt"), HOME / "venv", (3, 9))
        except Failure as failure:
            raise unittest.SkipTest(f"NOT RUN: needs ruff and mypy, which are not to be had: {failure}") from None

    def ask(self, *words: str) -> None:
        done = subprocess.run([str(self.python), "-m", *words], cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, f"\n{done.stdout}{done.stderr}")

    def test_ruff(self) -> None:
        self.ask("ruff", "check", "--quiet", "--output-format=concise", f"--cache-dir={HOME / 'ruff'}", "common/tools",
                 "workbook")

    def test_mypy(self) -> None:
        self.ask("mypy", "--no-error-summary", f"--cache-dir={HOME / 'mypy'}")


if __name__ == "__main__":
    unittest.main()
