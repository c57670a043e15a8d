"""The folder hostile: submissions that want something else than to be right, files and archives. None scores: not as grading is, and
not with any one layer taken away. Where a layer is taken away, the check of words is, too, or the code would not run at all.

    HOSTILE_TABLE=1 PYTHONPATH=../.. python3 -B -m unittest -v hostile_folder_test.All

writes the table of what becomes of them.
"""

import contextlib
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from workbenches import a_workbench, headers_of_the_system

from tools import course
from tools.base import ROOT
from tools.course import kernelcode
from tools.grading import grade
from tools.grading.kernels import LAYERS
from tools.grading.sandbox import left_by
from tools.grading.submission import Submission, read_submission

HERE = Path(__file__).parent / "hostile"
sys.path.insert(0, str(HERE))
from archives import ARCHIVES, HIDDEN  # noqa: E402

TABLE = HERE / "README.md"
BEGIN, END = "<!-- table -->\n", "<!-- /table -->\n"
OF_THE_SYSTEM = "".join(f"#include <{name}>\n" for name in (
    "arpa/inet.h", "fcntl.h", "glob.h", "netinet/in.h", "pthread.h", "signal.h", "stdio.h", "stdlib.h", "string.h", "sys/ipc.h",
    "sys/mman.h", "sys/mount.h", "sys/ptrace.h", "sys/resource.h", "sys/shm.h", "sys/socket.h", "sys/stat.h", "sys/syscall.h",
    "sys/uio.h", "sys/un.h", "sys/wait.h", "unistd.h", "cfloat", "cmath", "stdexcept", "string"))
THREADS = "#include <thread>\n"  # nearly half of what all these headers take the compiler
HEADERS = OF_THE_SYSTEM + "".join(f'#include "{name}.h"\n' for name in ("device/cuda_error", "simt/engine/device_memory", "simt/engine/launch"))
# Where reading or compiling is what fails, it does so with whatever layers a program would have had.
NEVER_RUN = ("does not compile", "hangs the compiler", "too many messages", *{becomes for _, becomes, _ in ARCHIVES.values() if becomes})
COLUMNS = {"all layers": None, "no check of words": (), **{f"and no {layer}": (layer,) for layer in LAYERS}}


class Hidden(unittest.TestCase):
    """What is refused before anything is built."""

    def test_the_character_that_hides_it_is_refused_also_where_words_are_not(self):
        known = course.load()
        (exercise,) = known.select(["01.scores"])
        (debug,) = known.select(["01.heads"])
        for name, code in HIDDEN.items():
            for one, text in ((exercise, known.text(exercise).replace(known.written(exercise), code)), (debug, known.text(debug) + code)):
                with self.subTest(name=name, exercise=one.id), mock.patch.object(kernelcode, "objection", return_value=None):
                    found = kernelcode.refusal(known, one, text)
                    self.assertTrue(found and found.refused)
                    self.assertRegex(found.line, r"\(U\+[0-9A-F]{4}\): remove it")


class Folder(unittest.TestCase):
    patience = 5
    columns = COLUMNS

    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("NOT RUN: needs root, to take one layer away from all that there are")
        (cls.exercise,) = course.load().select(["01.scores"])
        cls.bench = a_workbench(cls, [cls.exercise], cls.patience)
        cls.bench.kernels.patience = cls.patience
        cls.bench.kernels.compiler.add_headers(headers_of_the_system(OF_THE_SYSTEM + THREADS))
        cls.bench.kernels._digest = cls.bench.kernels._found()
        cls.files = {path.stem: path.read_text() for path in sorted(HERE.glob("*.inc"))} | HIDDEN

    def submission(self, name: str, text: str) -> Submission:
        if name not in ARCHIVES:
            return Submission("mallory", {self.exercise.file: text})
        with tempfile.TemporaryDirectory() as directory:
            return read_submission(ARCHIVES[name][2](Path(directory), self.exercise.file, text), [self.exercise.file])

    def verdict(self, name: str, without: "tuple[str, ...] | None") -> str:
        """The state of this between the markers, in an archive or not, without these layers; None: as grading is."""
        code = self.files.get(name, self.files["results-zeros"])
        text = code.replace("ROOT", str(ROOT)).replace("TREE", str(self.bench.tree))
        whole = HEADERS + (THREADS if "std::thread" in code else "") + self.bench.course.text(self.exercise)
        whole = whole.replace(self.bench.course.written(self.exercise), text)
        self.bench.kernels.without = frozenset(without or ())
        # What stands outside of the markers is not taken from a submission: the headers have to come in by another way.
        with mock.patch.object(self.bench.course, "replaced", return_value=whole):
            with mock.patch.object(kernelcode, "objection", return_value=None) if without is not None else contextlib.nullcontext():
                result = grade(self.bench, self.submission(name, whole), [self.exercise])
        self.assertEqual(result.score, 0, f"{code}\n\n{result}")
        lines = result.verdicts[self.exercise.id].lines
        self.assertTrue(all(len(line) <= 300 and line.isprintable() for line in lines), lines)
        return result.verdicts[self.exercise.id].state

    def tried(self, names: "list[str]") -> "dict[str, list[str]]":
        """{name: its state in each column}; and what comes after them is graded as ever."""
        found = {}
        for name in names:
            with self.subTest(name=name):
                states: list[str] = []
                for without in self.columns.values():
                    states.append(states[-1] if without and states[-1] in NEVER_RUN else self.verdict(name, without))
                found[name] = states
        for without in filter(lambda layers: layers is not None, self.columns.values()):
            with self.subTest(without=without):
                self.bench.kernels.without = frozenset(without)
                verdict = self.bench.verdict(self.exercise, self.bench.course.text(self.exercise))
                self.assertEqual(verdict.state, "right", verdict.lines)
                self.assertEqual(self.bench.kernels.layers, LAYERS.keys() - set(without), "the others hold")
        self.assertEqual([left_by(self.bench.sandbox.user(number)) for number in range(3)], [[], [], []], "nothing is left behind")
        self.bench.kernels.require_as_prepared()
        return found


class OneOfEachKind(Folder):
    columns = {"no check of words": ()}  # so that all of it runs; layers are taken away in All, which takes minutes
    busy = ("resources-loop", "resources-memory")  # until the judge loses patience: resources-sleep does so without work

    def test_none_scores(self):
        kinds = {name.partition("-")[0]: name for name in reversed(self.files) if name not in self.busy}
        self.tried(sorted(kinds.values()))


class All(Folder):
    def test_none_scores(self):
        found = self.tried([*self.files, *ARCHIVES])
        if os.environ.get("HOSTILE_TABLE"):
            rows = ["| submission | what it tries | " + " | ".join(COLUMNS) + " |", "|---|---|" + "---|" * len(COLUMNS)]
            for name, states in found.items():
                what = ARCHIVES[name][0] if name in ARCHIVES else self.files[name].splitlines()[0].removeprefix("// ").rstrip(".")
                rows.append(f"| `{name}` | {what[0].lower() + what[1:]} | " + " | ".join(states) + " |")
            text = TABLE.read_text()
            first, last = text.index(BEGIN) + len(BEGIN), text.index(END)
            TABLE.write_text(text[:first] + "\n" + "\n".join(rows) + "\n\n" + text[last:])

    def test_the_table_has_all_of_them(self):
        table = TABLE.read_text()
        self.assertEqual([name for name in (*self.files, *ARCHIVES) if f"| `{name}` |" not in table], [])
        self.assertGreaterEqual(len(self.files), 40)
        rows = [line for line in table.splitlines() if line.startswith("| `")]
        self.assertFalse([row for row in rows if "| right |" in row])


if __name__ == "__main__":
    unittest.main()
