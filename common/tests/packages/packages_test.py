"""Other projects find what `cmake --install` puts there, or add the sources: of the engine alone, and of the whole workbook."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from email import message_from_string
from email.message import Message
from pathlib import Path

BUILD = Path(os.environ["WORKBOOK_BUILD"])
ROOT = Path(__file__).resolve().parents[3]
SIMT = ROOT / "common" / "simt"
OUTSIDE = Path(__file__).resolve().parent / "outside"
PYTHON = ROOT / "common" / "python" / "flash_attention_workbook"
HEADER = ROOT / "common" / "capi" / "flash_attention_workbook.h"
VERSION = ".".join(re.findall(r"^#define FAW_VERSION_[A-Z]+ (\d+)$", HEADER.read_text(), re.MULTILINE))
FROM_C = f"-DFROM_C={ROOT / 'common' / 'tests' / 'capi' / 'from_c.c'}"

REVERSE = """#include <cstdio>
__global__ void reverse(int* x) {
  __shared__ int s[64];
  s[threadIdx.x] = x[threadIdx.x];
  BARRIER
  x[threadIdx.x] = s[63 - threadIdx.x];
}
int main() {
  int* x;
  cudaMallocManaged(&x, 64 * sizeof(int));
  for (int i = 0; i < 64; ++i) x[i] = i;
  reverse<<<1, 64>>>(x);
  cudaDeviceSynchronize();
  std::printf("first %d\\n", x[0]);
  cudaFree(x);
}
"""


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

    def require_commands(self, simt: Path) -> None:
        """`simt run` and `simt trace` do what they say, with nothing but g++ on the path."""
        right, wrong = (self.prefix.parent / name for name in ("right.cu", "wrong.cu"))
        right.write_text(REVERSE.replace("BARRIER", "__syncthreads();"))
        wrong.write_text(REVERSE.replace("BARRIER", ""))
        for words, status, out, err in [
            (["run", right], 0, r"\Afirst 63\nNo mistake found\.\n\Z", r"\A\Z"),
            (["trace", right], 0, r"first 63\n(.*\n)*reverse .*1 barrier(.*\n)*No races", r"\A\Z"),
            (["trace", wrong], 1, r"\Afirst -?\d+\n", r"at \S*wrong.cu:4: race on shared memory: no barrier .* at \S*wrong.cu:6\n(.*\n)*simt: .*wrong.cu: 1 of 1 launches failed\n"),
            (["run", right, "--blocks", "0"], 2, r"\A\Z", r"\Asimt: --blocks 0: must be .*\n\Z"),
            (["run", "right"], 2, r"\A\Z", r"\Asimt: right: must be a CUDA file, as in mine.cu\n\Z"),
        ]:
            done = subprocess.run([simt, *words], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertRegex(done.stdout, out)
            self.assertRegex(done.stderr, err)


class Installed(Packages):
    def test_the_command_where_it_has_been_moved(self) -> None:
        self.install("simt")
        moved = self.prefix.parent / "a place"
        self.prefix.rename(moved)
        self.require_commands(moved / "bin" / "simt")

    def test_the_engine(self) -> None:
        self.require_passes(SIMT / "example", 2, self.install("simt"))

    def test_the_whole(self) -> None:
        self.require_passes(OUTSIDE, 1, self.install("library"), FROM_C)

    def test_the_whole_by_pkg_config(self) -> None:
        if not shutil.which("pkg-config"):
            self.skipTest("NOT RUN: needs pkg-config")
        self.install("library")
        moved = self.prefix.parent / "moved"
        self.prefix.rename(moved)
        environment = {**os.environ, "PKG_CONFIG_PATH": str(moved / "lib/pkgconfig"), "LD_LIBRARY_PATH": str(moved / "lib")}

        def asked(*flags: str) -> list[str]:
            words = ["pkg-config", *flags, "flash_attention_workbook"]
            return subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout.split()

        program = moved / "from_c"
        self.run_command("gcc", FROM_C.partition("=")[2], *asked("--cflags", "--libs"), "-o", program)
        subprocess.run([program], env=environment, check=True, stdout=subprocess.DEVNULL)
        self.assertEqual(asked("--modversion"), [VERSION])
        major = VERSION.partition(".")[0]
        self.assertRegex(self.run_command("objdump", "-p", program), rf"NEEDED +libflash_attention_workbook\.so\.{major}\n")

    def test_the_python_package_has_the_library_once_as_it_loads_it(self) -> None:
        self.install("wheel")
        loaded = re.search(r'^LIBRARY = "(.*)"$', (PYTHON / "library.py").read_text(), re.MULTILINE)
        assert loaded
        self.assertEqual([path.name for path in (self.prefix / PYTHON.name).glob("lib*")], [loaded[1]])


class Added(Packages):
    """Compiles the engine, and then every chapter, once more; the first time only, where there is ccache."""

    def setUp(self) -> None:
        super().setUp()
        cached = {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache", "CCACHE_BASEDIR": str(self.prefix.parent), "CCACHE_NOHASHDIR": "1"}
        patched = unittest.mock.patch.dict(os.environ, cached if shutil.which("ccache") else {})
        patched.start()
        self.addCleanup(patched.stop)

    def test_the_engine(self) -> None:
        self.require_passes(SIMT / "example", 2, f"-DSIMT={SIMT}")

    def test_the_whole(self) -> None:
        self.require_passes(OUTSIDE, 1, f"-DWORKBOOK={ROOT}", FROM_C)


class Wheel(Packages):
    """With what pip installs for that."""

    def setUp(self) -> None:
        super().setUp()
        self.run_command(sys.executable, "-m", "venv", self.prefix)
        self.pip = [self.prefix / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--no-input"]
        done = subprocess.run([*self.pip, "install", "--quiet", "scikit-build-core>=0.10"], capture_output=True, text=True)
        if done.returncode:
            self.skipTest(f"pip has no scikit-build-core: {done.stderr.strip().splitlines()[-1]}")

    def metadata(self, project: Path, address: str) -> "tuple[Message, str]":
        """What an index would show of it, and the page."""
        make = "import scikit_build_core.build as it; it.prepare_metadata_for_build_wheel('DIRECTORY')"
        with tempfile.TemporaryDirectory(dir=self.prefix) as made:
            subprocess.run([self.pip[0], "-c", make.replace("DIRECTORY", made)], cwd=project, check=True, capture_output=True,
                           env={**os.environ, "WORKBOOK_ADDRESS": address})
            (file,) = Path(made).glob("*/METADATA")
            read = message_from_string(file.read_text())
            return read, read.get_payload()

    def test_what_an_index_shows(self) -> None:
        for project, name in ((ROOT, "flash-attention-workbook"), (SIMT, "simt-engine")):
            shown, page = self.metadata(project, "")
            self.assertEqual((shown["Name"], shown["Author"], shown["License"]),
                             (name, "The FlashAttention workbook authors", "MIT"))
            self.assertTrue(shown.get_all("Classifier"))
            self.assertTrue(page.strip().startswith(f"# {name}\n"), page)
            self.assertIsNone(shown["Project-URL"])
        shown, _ = self.metadata(ROOT, "there/it/is")
        self.assertEqual(shown["Version"], VERSION)
        self.assertEqual(shown.get_all("Project-URL"), ["Repository, there/it/is", "Changes, there/it/is/blob/main/CHANGELOG.md"])

    def test_commands_and_engine(self) -> None:
        """Compiles the engine once more."""
        pip = self.pip
        self.run_command(*pip, "wheel", "--no-deps", "--wheel-dir", self.prefix, SIMT)
        (wheel,) = self.prefix.glob("simt_engine-*.whl")
        self.run_command(*pip, "install", "--no-deps", wheel)
        self.require_commands(self.prefix / "bin" / "simt")
        where = self.run_command(self.prefix / "bin" / "simt", "--prefix").strip()
        self.require_passes(SIMT / "example", 2, f"-DCMAKE_PREFIX_PATH={where}")


if __name__ == "__main__":
    unittest.main()
