"""The library that cmake --install makes: the example project finds it, builds, and its kernel keeps its promises."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ["WORKBOOK_BUILD"])
EXAMPLE = Path(__file__).parents[2] / "simt" / "example"


class Package(unittest.TestCase):
    def test_the_example_project(self):
        def run(*command) -> str:
            done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertEqual(done.returncode, 0, done.stdout)
            return done.stdout

        with tempfile.TemporaryDirectory() as place:
            prefix, built = Path(place) / "prefix", Path(place) / "build"
            run("cmake", "--install", BUILD, "--component", "simt", "--prefix", prefix)
            run("cmake", "-S", EXAMPLE, "-B", built, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_CXX_COMPILER=g++")
            run("cmake", "--build", built)
            self.assertIn("100% tests passed, 0 tests failed out of 2", run("ctest", "--test-dir", built))


if __name__ == "__main__":
    unittest.main()
