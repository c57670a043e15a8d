"""What a text can have its compiler read: of the system what compiling takes, and of nobody a file. Each way in which that is held
is tried alone, without the check of words, which would refuse most of these; and that they do read where it is not held."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from workbenches import headers_of_the_system

from tools.base import ROOT
from tools.grading import sandbox
from tools.grading.compiler_root import CompilerRoot
from tools.grading.sandbox import MADE, Limits, Sandbox

SECRET = "nobody-may-read-this"
READS = {
    "takes a file's bytes into the program": 'asm(".pushsection .rodata\\n.incbin \\"FILE\\"\\n.popsection");\nint main() {}\n',
    "includes it in assembly, to see it in an error": 'asm(".include \\"FILE\\"");\nint main() {}\n',
    "includes it, to see it in an error": '#include "FILE"\nint main() {}\n',
    "asks whether it is there": '#if __has_include("FILE")\nconst char said[] = "nobody-may-read-this";\nint main() { return said[0]; }\n#endif\n',
}
# {how a root directory is had here: the words that its way has, and those that it does not have}
WAYS = {"bubblewrap": (["bwrap"], []), "namespaces": (["unshare", "--pid"], ["--user"]),
        "a namespace of users": (["unshare", "--user", "--pid"], []), "root alone": (["unshare"], ["--net", "--user"])}


def shown(result) -> str:
    """What whoever sees the compiler's messages, and the program, has seen."""
    done, program = result
    return done.output + (program.read_bytes().decode("latin-1") if program.exists() else "")


class CompilerReads(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.place = Path(directory.name)
        cls.place.chmod(0o755)
        cls.root = cls.place / "root"
        cls.root.mkdir()
        filled = CompilerRoot(cls.root)
        filled.add_compiler("g++", ["-static", "-pthread"])
        filled.add_headers(headers_of_the_system(""))
        cls.box = Sandbox()
        # As they lie about: what others may read.
        (cls.place / "class").mkdir(mode=0o755)
        cls.files = [cls.place / "class" / name for name in ("roster.csv", "eve.txt")]
        for file in cls.files:
            file.write_text(f"{SECRET}\n")
            file.chmod(0o644)

    def compiled(self, code: str):
        """(what the compiler says, what it has made)"""
        shutil.rmtree(self.root / MADE, ignore_errors=True)
        (self.root / MADE).mkdir()
        self.box.own(self.root / MADE)
        source, program = self.root / "source.cc", self.root / MADE / "program"
        source.write_text(code)
        environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TMPDIR": str(self.root / MADE)}
        done = self.box.run_within(self.root, ["g++", "-static", "-o", program, source], Limits(60, file_bytes=1 << 28), environment)
        return done, program

    @contextlib.contextmanager
    def only(self, way: str):
        """As if there were no other way here; SkipTest if there is not this one."""
        has, has_not = WAYS[way]
        works, bubblewrap = sandbox._works, sandbox._bubblewrap()

        def fits(*words):
            names = [Path(word).name for word in words]
            return all(word in names for word in has) and not any(word in names for word in has_not) and works(*words)

        with mock.patch.object(sandbox, "_works", side_effect=fits), mock.patch.object(sandbox, "_bubblewrap", return_value=bubblewrap):
            if self.box._walls_of(self.root) is None:
                self.skipTest(f"NOT RUN: needs {way}")
            yield

    def require_nothing_is_read(self, way: str):
        with self.only(way):
            done, program = self.compiled("int main() { return 0; }\n")
            self.assertEqual((done.status, done.output, program.exists()), (0, "", True), "it does compile")
            others = [ROOT / "common/tests/teaching/hostile/README.md", Path("/etc/passwd"), Path("/proc/self/environ"),
                      Path("/proc/1/cmdline")]
            for what, code in READS.items():
                for file in [*self.files, *others, Path("/root/../../../../../..") / self.files[0].relative_to("/")]:
                    with self.subTest(what=what, file=file):
                        result = self.compiled(code.replace("FILE", str(file)))
                        self.assertNotEqual(result[0].status, 0, result[0].output)
                        self.assertFalse(result[1].exists())
                        self.assertNotIn(SECRET, shown(result))
            left = self.root / MADE
            self.assertTrue(all(path.is_relative_to(left) for path in left.rglob("*")))

    def test_bubblewrap(self):
        self.require_nothing_is_read("bubblewrap")

    def test_namespaces(self):
        self.require_nothing_is_read("namespaces")

    def test_a_namespace_of_users(self):
        self.require_nothing_is_read("a namespace of users")

    def test_root_alone(self):
        """As in a container that may have no namespaces."""
        self.require_nothing_is_read("root alone")

    def test_without_any_of_these_all_of_it_is_read(self):
        """Or the tests above would show nothing. As of an ordinary user without namespaces: `held` says so."""
        with mock.patch.object(Sandbox, "_walls_of", return_value=None), mock.patch.object(sandbox, "_bubblewrap", return_value=False):
            for what, code in READS.items():
                for file in self.files:
                    with self.subTest(what=what, file=file):
                        self.assertIn(SECRET, shown(self.compiled(code.replace("FILE", str(file)))))

    def test_what_is_there_is_what_compiling_takes(self):
        there = [path.relative_to(self.root).parts[0] for path in self.root.iterdir()]
        self.assertLessEqual(set(there), {"bin", "etc", "lib", "lib32", "lib64", "libx32", "sbin", "usr", MADE, "source.cc"})
        self.assertEqual([path for path in self.root.glob("etc/*") if path.name not in ("alternatives", "ld.so.cache")], [])


@unittest.skipUnless(shutil.which("nvcc"), "NOT RUN: needs nvcc")
class CompilesForAGpu(unittest.TestCase):
    def test_all_that_nvcc_starts_is_there(self):
        with tempfile.TemporaryDirectory() as directory:
            place = Path(directory)
            place.chmod(0o755)
            (root := place / "root").mkdir()
            source, made = root / "kernel.cu", root / MADE / "kernel.o"
            (place / "kernel.cu").write_text("#include <cuda_fp16.h>\n__global__ void one(__half* p) { p[threadIdx.x] = 1; }\n")
            filled = CompilerRoot(root)
            filled.add_compiler("nvcc", [])
            read = subprocess.run(["nvcc", "-M", place / "kernel.cu"], capture_output=True, text=True).stdout
            filled.add_headers(word for word in read.split() if word.startswith("/") and not Path(word).is_relative_to(place))
            (root / MADE).mkdir()
            box = Sandbox()
            box.own(root / MADE)
            shutil.copy(place / "kernel.cu", source)
            done = box.run_within(root, [shutil.which("nvcc"), "-c", "-o", made, source], Limits(60, file_bytes=1 << 28),
                                  {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TMPDIR": str(root / MADE)})
            self.assertEqual((done.status, made.exists()), (0, True), done.output)


@unittest.skipIf(os.geteuid() != 0 or not shutil.which("setpriv"), "NOT RUN: needs root, to be somebody else")
class AsAnOrdinaryUser(unittest.TestCase):
    def test_a_namespace_of_users(self):
        """The test of that name above, by a user who is nobody."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "common"), "HOME": "/"}
        done = subprocess.run(["setpriv", "--reuid", "60999", "--regid", "60999", "--clear-groups", sys.executable, "-B", "-m", "unittest",
                               "compiler_root_test.CompilerReads.test_a_namespace_of_users"], cwd=Path(__file__).parent,
                              capture_output=True, text=True, env=environment)
        if "skipped=1" in done.stderr:
            self.skipTest("NOT RUN: needs namespaces of users")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
