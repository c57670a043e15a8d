"""./workbook dev new, as a user would: the chapter builds with both presets, passes the suite, and is in every command."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
NOT_COPIED = shutil.ignore_patterns("build", ".*", "__pycache__", "results")


class InACopy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.parent = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.parent.cleanup)
        cls.tree = Path(cls.parent.name) / "copy"
        shutil.copytree(ROOT, cls.tree, ignore=NOT_COPIED)
        launcher = [sys.executable, "-I", "-S", "-B", str(Path(__file__).with_name("reuse.py")), str(ROOT), str(cls.tree)]
        cls.environment = {**os.environ, "NO_COLOR": "1", "CMAKE_CXX_COMPILER_LAUNCHER": ";".join(launcher)}
        cls.before = cls.files()
        cls.workbook(cls, "dev", "new", "14_mine", "--from", "05")

    @classmethod
    def files(cls) -> set:
        return {path.relative_to(cls.tree) for path in cls.tree.rglob("*")
                if path.is_file() and not {"build", "__pycache__"} & set(path.relative_to(cls.tree).parts)}

    def run_command(self, *command) -> subprocess.CompletedProcess:
        return subprocess.run([str(word) for word in command], cwd=self.tree, env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def workbook(self, *words) -> str:
        """What the command prints; it has to succeed."""
        done = InACopy.run_command(self, self.tree / "workbook", *words)
        if done.returncode != 0:
            raise AssertionError(f"./workbook {' '.join(words)} ended with status "
                                 f"{done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout


class Made(InACopy):
    def test_it_is_a_directory_and_its_counts(self):
        made = {str(path) for path in self.files() - self.before}
        self.assertEqual(made, {"14_mine/1_online.cu", "14_mine/2_tiles.cu", "14_mine/example.cu",
                                "14_mine/attention.cu",
                                "14_mine/CMakeLists.txt", "14_mine/README.md", "common/tests/trace/14_mine.json"})

    def test_bad_names_are_refused_and_nothing_is_written(self):
        left = self.tree / "common/tests/trace/14_gone.json"  # of a chapter whose directory has been removed
        left.write_text("{}")
        self.addCleanup(left.unlink)
        before = self.files()
        for words, what in [(["14_mine", "--from", "05"], "14_mine exists already"),
                            (["14_gone", "--from", "05"], "common/tests/trace/14_gone.json is left of a chapter that "
                                                          "is gone: remove it"),
                            (["05_mine", "--from", "05"], "the number 05 is taken by 05_online_softmax"),
                            (["15_mine", "--from", "05"], "namespace mine"),
                            (["15_other", "--from", "77"], "no chapter 77"),
                            (["15-other", "--from", "05"], "two digits"), (["15_new", "--from", "05"], "namespace new"),
                            (["15_simt", "--from", "05"], "namespace simt")]:
            done = self.run_command(self.tree / "workbook", "dev", "new", *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertIn(what, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertEqual(self.files(), before)


class OnTheEngine(InACopy):
    def test_1_it_passes_the_suite(self):
        said = self.workbook("test", "14")
        self.assertRegex(said, r"cpu: (\d+) of \1 tests passed")

    def test_2_it_is_in_every_command(self):
        self.assertIn("14_mine", self.workbook("list"))
        self.assertRegex(self.workbook("run", "05", "14"), r"14_mine +\S+ +\S+ +correct")
        self.assertIn("mine::", self.workbook("trace", "14"))
        self.assertIn("namespace mine", self.workbook("compare", "05", "14", "--diff"))
        self.assertIn("14_mine", self.workbook("dev", "bench", "14", "--out", Path(self.parent.name) / "bench.json"))

    def test_3_its_counts_are_made_by_the_command_that_the_failing_test_names(self):
        counts = self.tree / "common/tests/trace/14_mine.json"
        expected = counts.read_text()
        counts.unlink()
        failed = self.run_command(self.tree / "workbook", "test", "14")
        self.assertNotEqual(failed.returncode, 0)
        self.assertIn("./workbook dev counts 14", failed.stdout)
        self.workbook("dev", "counts", "14")
        self.assertEqual(counts.read_text(), expected)


class WithNvcc(InACopy):
    def test_nvcc_compiles_it(self):
        if shutil.which("nvcc", path=os.environ.get("PATH", "") + ":/usr/local/cuda/bin") is None:
            self.skipTest("there is no nvcc")
        for command in (["cmake", "--preset", "cuda", "-DWORKBOOK_ONE_ARCHITECTURE=ON"],
                        ["cmake", "--build", "--preset", "cuda", "--target", "14_mine_kernels"]):
            done = self.run_command(*command)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
