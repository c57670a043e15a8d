"""Each exercise's stub, or planted mistake, alone: it compiles, and the exercise's own tests reject it. In a copy of the tree, on
the engine; whatever the preset cpu has compiled already is not compiled again."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools import course

ROOT = Path(__file__).resolve().parents[3]
NOT_COPIED = shutil.ignore_patterns("build", ".*", "__pycache__", "results")


def rounds(exercises: list) -> list:
    """Lists of exercises, none of which has two of one file: each is alone in its kernel."""
    found = []
    for exercise in exercises:
        free = next((some for some in found if exercise.file not in [one.file for one in some]), None)
        if free is None:
            found.append(free := [])
        free.append(exercise)
    return found


class Stubs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        parent = tempfile.TemporaryDirectory()
        cls.addClassCleanup(parent.cleanup)
        cls.tree = Path(parent.name) / "copy"
        shutil.copytree(ROOT, cls.tree, ignore=NOT_COPIED)
        launcher = [sys.executable, "-B", str(ROOT / "common/tests/new_chapter/reuse.py"), str(ROOT), str(cls.tree)]
        cls.environment = {**os.environ, "CMAKE_CXX_COMPILER_LAUNCHER": ";".join(launcher), "CXX": os.environ.get("CXX", "g++")}
        cls.build = cls.tree / "build" / "cpu"
        if (ROOT / "build/cpu/references").is_dir():  # what the kernels should answer
            cls.build.mkdir(parents=True)
            (cls.build / "references").symlink_to(ROOT / "build/cpu/references")
        cls.must_succeed(["cmake", "--preset", "cpu"])

    @classmethod
    def must_succeed(cls, command: list) -> None:
        done = subprocess.run(command, cwd=cls.tree, env=cls.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(command)} ended with status {done.returncode}\n{done.stdout}{done.stderr}")

    def rejected(self, exercise) -> str:
        """The tests' output; empty if they all pass."""
        program = self.build / exercise.chapter / f"{exercise.chapter}_tests"
        tests = ":".join(f"All/Rungs.Pass/{test}" for test in exercise.tests)
        done = subprocess.run([program, f"--gtest_filter={tests}", "--gtest_fail_fast"], capture_output=True, text=True, timeout=120,
                              env={**self.environment, "WORKBOOK_PASS": f"{exercise.rung} {exercise.direction}"})
        self.assertIn(done.returncode, (0, 1), f"{exercise.id}: {done.stderr}")
        return done.stdout if done.returncode == 1 else ""

    def test_each_compiles_and_is_rejected(self):
        there = course.load(self.tree)
        for exercises in rounds([one for one in there.exercises if one.kind != "measure" and not one.needs_gpu]):
            solved = {one.file: there.text(one) for one in exercises}
            for one in exercises:
                there.reset(one, self.tree / "build" / "kept")
            programs = sorted({f"{one.chapter}_tests" for one in exercises})
            self.must_succeed(["cmake", "--build", "build/cpu", "--target", *programs])
            with ThreadPoolExecutor(2) as pool:
                for exercise, said in zip(exercises, pool.map(self.rejected, exercises)):
                    with self.subTest(exercise=exercise.id):
                        self.assertIn("[  FAILED  ]", said, "its tests let the stub pass")
                        self.assertNotIn("there is no ", said)
            for file, text in solved.items():
                (self.tree / file).write_text(text)


if __name__ == "__main__":
    unittest.main()
