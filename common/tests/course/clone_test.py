"""A clone, as a learner meets it: started, tried with every command while an exercise is open, solved, and undone."""

import json
import os
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock
from pathlib import Path

from tools import course
from tools.base import ROOT, file_trees
from tools.course import markers


class Clone(unittest.TestCase):
    def setUp(self):
        parent = tempfile.TemporaryDirectory()
        self.addCleanup(parent.cleanup)
        self.place = Path(parent.name) / "clone"
        self.tree = file_trees.read(ROOT)
        file_trees.write(self.place, self.tree)

    def workbook(self, *words, status: int = 0) -> str:
        launcher = [sys.executable, "-I", "-S", "-B", str(ROOT / "common/tests/new_chapter/reuse.py"), str(ROOT), str(self.place)]
        done = subprocess.run(["./workbook", *words], cwd=self.place, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True,
                              env={**os.environ, "NO_COLOR": "1", "CMAKE_CXX_COMPILER_LAUNCHER": ";".join(launcher)})
        self.assertEqual(done.returncode, status, f"./workbook {' '.join(words)}\n{done.stdout}{done.stderr}")
        return done.stdout if status == 0 else done.stdout + done.stderr



class AClone(Clone):
    def changed(self) -> list:
        """The workbook's files that are not as they were."""
        return [file for file, content in self.tree.items() if (self.place / file).read_bytes() != content]

    def solve(self, name: str) -> Path:
        """Writes the book's solution where the learner's stands."""
        (exercise,) = course.load().select([name])
        path = self.place / exercise.file
        path.write_text(markers.filled(path.read_text(), course.load().region(exercise, path.read_text()),
                                       course.load().written(exercise)))
        return path

    def test_from_start_to_undo(self):
        self.assertIn("01_naive  ", self.workbook("list"))
        self.assertIn("the book's own", self.workbook("check", status=1))
        self.assertIn("Next: 01.scores", self.workbook("start"))
        kernels = {one.file for one in course.load().exercises if one.kind != "measure"}
        self.assertEqual(sorted(self.changed()), sorted(kernels))

        self.assertIn("01.scores not attempted", self.workbook("check", "01.scores", status=1))
        self.assertIn("not yet: 01_naive (open: 01.scores).", self.workbook("run", "01"))
        self.assertIn("wait for what is open: 01.scores", self.workbook("test", "01"))
        for words in (["trace", "01/naive"], ["walk", "01", "--no-browser"], ["compare", "01/swapped", "01"]):
            self.assertIn("01_naive/naive, open: 01.scores\n  not right: o[", self.workbook(*words))
        for words in (["trace", "rows"], ["walk", "rows", "--no-browser"], ["compare", "rows", "split"]):
            self.assertIn("rows/rows, open: 01.heads\n  not right: o[", self.workbook(*words))
        said = self.workbook("compare", "01", "03/tiles")  # where the engine stops, nothing can be counted
        self.assertIn("03_tiling/tiles, open: 03.chunks, 03.tail\n  03_tiling: ", said)
        self.assertIn("Recorded in", said)
        self.assertIn("So there are no counts to compare; ./workbook trace 03 names the lines, too.", said)
        self.assertIn("open: 01.heads", self.workbook("run", "rows"))
        said = self.workbook("run", "03")  # its last rung, which is right for this problem
        self.assertIn("Open, though nothing here shows it: 03.chunks, 03.tail, 03.slow.", said)
        self.assertIn("1 of 1 agree", said)
        self.assertTrue((self.place / "build/walk/01_naive-naive-forward.html").stat().st_size > 100000)

        self.solve("01.scores")
        said = self.workbook("check", "01.scores")
        self.assertIn("01.scores right", said)
        self.assertIn("Next: 01.sectors", said)
        self.assertIn("1 of 1 agree", self.workbook("run", "01"))

        # 03.chunks, in the same kernel, is open: 03.tail is judged with the book's text of it, and the file stays.
        file = self.solve("03.tail")
        text = file.read_bytes()
        self.assertIn("03.tail right", self.workbook("check", "03.tail"))
        self.assertIn("03.chunks not attempted", self.workbook("check", "03.chunks", status=1))
        self.assertEqual(file.read_bytes(), text)
        self.workbook("start", "--undo")
        self.assertEqual(self.changed(), [])


class Notebook(Clone):
    """Without Jupyter: what a cell asks of it is what a test can put in its place."""

    def run_cell(self, source: str, names: dict) -> str:
        """Lines of Python, and commands behind a !, as a notebook runs them; what was printed."""
        said, python = "", ""
        for line in [*source.splitlines(), "!"]:
            if not line.startswith("!"):
                python += line + "\n"
                continue
            exec(python, names)
            python = ""
            command, *words = line[1:].split() or [""]
            if command:
                self.assertEqual(command, "./workbook")
                said += self.workbook(*words, status=self.statuses.get(" ".join(words), 0))
        return said

    statuses = {"trace build/mine.cu": 1, "check 01.scores": 1}

    def test_a_first_visit(self):
        directory = Path("common/course")
        book = json.loads((self.place / directory / "first_visit.ipynb").read_text())
        codes = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
        self.assertFalse([cell for cell in book["cells"] if cell.get("outputs") or cell.get("execution_count")])
        self.assertEqual(len({cell["id"] for cell in book["cells"]}), len(book["cells"]))
        display = types.ModuleType("IPython.display")
        display.HTML = list  # anything that takes the page
        names: dict = {}
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.place / directory)
        with unittest.mock.patch.dict(sys.modules, {"IPython.display": display}):
            said = [self.run_cell(code, names) for code in codes]
        first, run, trace, walk, mine, start, check = said
        self.assertEqual(first, "")
        self.assertIn("2 of 2 agree with the fp64 reference.", run)
        self.assertIn("01_naive/attention.cu:", trace)
        self.assertIn("&lt;svg", names["page"])
        self.assertIn("race on shared memory: no barrier", mine)
        self.assertIn("Next: 01.scores", start)
        self.assertIn("01.scores not attempted", check)


if __name__ == "__main__":
    unittest.main()
