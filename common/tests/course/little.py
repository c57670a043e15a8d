"""A little tree with exercises, for tests."""

import json
import tempfile
import unittest
from pathlib import Path

from tools import course

CODE = {"id": "05.rescale", "title": "a title", "kind": "code", "file": "05_online/1_online.cu", "rung": "online", "points": 4,
        "difficulty": 1, "minutes": 10, "required": True, "needs_gpu": False, "hints": ["first", "second"], "tests": ["inputs"]}
DEBUG = {**CODE, "id": "06.barrier", "kind": "debug", "file": "06_flash/1_mma.cu", "rung": "mma", "tests": ["trace"]}
MEASURE = {"id": "05.sectors", "title": "a title", "kind": "measure", "file": "05_online/1_online.cu", "rung": "online", "points": 2,
           "difficulty": 1, "minutes": 10, "required": True, "needs_gpu": False, "hints": [], "question": "How many, of {seq_q} rows?",
           "problem": {"heads": 2}, "draw": {"seq_q": [70, 85, 99]}, "answer": 'counted("sectors") / counted("requests")'}
SOLUTION = "  l = l * correction + sum;\n"
ONLINE = f"void f() {{ a(l, sum);\n  // exercise rescale: correct the sum\n{SOLUTION}  // end rescale | correction = 1;\nb(); }}\n"
MMA = "load();\n__syncthreads();\nuse();\n"
PLANTED = [{"right": ["load();", "__syncthreads();", "use();"], "planted": ["load();", "use();"]}]
KINDS = 'solving("inputs", "x", y), kind("trace",\n  "y", z), {"moved", "z", w}'


class LittleTree(unittest.TestCase):
    """A directory with chapters 05 (two exercises), 06 (a planted mistake) and 07 (none)."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)
        for file, text in {"05_online/1_online.cu": ONLINE, "06_flash/1_mma.cu": MMA, "07_back/1_x.cu": "x();\n",
                           "05_online/CMakeLists.txt": "", "06_flash/CMakeLists.txt": "", "07_back/CMakeLists.txt": "",
                           "common/tests/chapter/kinds.cc": KINDS,
                           "common/course/debug/06.barrier.json": json.dumps(PLANTED)}.items():
            self.write(file, text)
        self.declare(CODE, DEBUG, MEASURE)

    def write(self, file: str, text: str) -> None:
        path = self.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def read(self, file: str) -> str:
        return (self.root / file).read_text()

    def declare(self, *exercises) -> None:
        self.write(str(course.FILE), json.dumps({"exercises": list(exercises)}, indent=1))

    def loaded(self, **how) -> course.Course:
        return course.load(self.root, **how)

    def exercise(self, name: str) -> course.Exercise:
        (found,) = self.loaded().select([name])
        return found

    def hand_out(self) -> None:
        """Makes a student's tree of it, as a handout does."""
        there = self.loaded()
        for file, text in there.student_files(there.exercises).items():
            self.write(file, text)
            self.write(str(course.HANDED_OUT / file), text)
        (self.root / "common/course/debug/06.barrier.json").unlink()
