"""Other projects find what `cmake --install` puts there, or add the sources: of the engine alone, and of the whole workbook."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ["WORKBOOK_BUILD"])
ROOT = Path(__file__).resolve().parents[3]
SIMT = ROOT / "common" / "simt"
OUTSIDE = Path(__file__).resolve().parent / "outside"
FROM_C = f"-DFROM_C={ROOT / 'common' / 'tests' / 'capi' / 'from_c.c'}"


class Packages(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.prefix, self.built = Path(place.name) / "prefix", Path(place.name) / "build"

    def run_command(self, *command: "str | Path") -> str:
        words = [str(word) for word in command]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def install(self, component: str) -> str:
        self.run_command("cmake", "--install", BUILD, "--component", component, "--prefix", self.prefix)
        return f"-DCMAKE_PREFIX_PATH={self.prefix}"

    def require_passes(self, project: Path, tests: int, *settings: str) -> None:
        self.run_command("cmake", "-S", project, "-B", self.built, "-G", "Ninja", "-DCMAKE_CXX_COMPILER=g++", *settings)
        self.run_command("cmake", "--build", self.built)
        self.assertIn(f"100% tests passed, 0 tests failed out of {tests}", self.run_command("ctest", "--test-dir", self.built))


class Installed(Packages):
    def test_the_engine(self) -> None:
        self.require_passes(SIMT / "example", 2, self.install("simt"))

    def test_the_whole(self) -> None:
        self.require_passes(OUTSIDE, 1, self.install("library"), FROM_C)


class Added(Packages):
    """Compiles the engine, and then every chapter, once more."""

    def test_the_engine(self) -> None:
        self.require_passes(SIMT / "example", 2, f"-DSIMT={SIMT}")

    def test_the_whole(self) -> None:
        self.require_passes(OUTSIDE, 1, f"-DWORKBOOK={ROOT}", FROM_C)


if __name__ == "__main__":
    unittest.main()
