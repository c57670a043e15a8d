"""A whole course, played through: it is handed out, a student does a part of it, checks it, hands it in, and the class is graded.
In the first tier it has one exercise, a student who has solved it and one who cheats."""

import csv
import json
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

from tools import course
from tools.base import BUILD, ROOT, Failure
from tools.course import markers
from tools.grading import ANSWERS
from tools.grading.sandbox import Sandbox

PLAN = {"title": "A short course", "late": {"percent_a_day": 10, "days": 3}, "points": {"01.scores": 3, "01.sectors": 5, "05.rescale": 7},
        "weeks": [{"title": "memory", "begins": "2027-02-01", "due": "2027-02-08", "exercises": ["01.scores", "01.sectors"]},
                  {"title": "FlashAttention", "begins": "2027-02-08", "due": "2027-02-15", "exercises": ["05.rescale"]}]}
CHEATS = Path(__file__).parent / "hostile" / "engine-at-exit.inc"
RESCALE = "l = l * correction + warp_sum(l_tile);"


class ACourse(unittest.TestCase):
    def setUp(self):
        self.master = course.load()
        parent = tempfile.TemporaryDirectory()
        self.addCleanup(parent.cleanup)
        self.place = Path(parent.name)
        self.plan = self.place / "course.json"
        self.out = self.place / "out"
        self.student = self.out / "student"

    def workbook(self, tree: Path, *words, status: int = 0) -> str:
        launcher = [sys.executable, "-I", "-S", "-B", str(ROOT / "common/tests/new_chapter/reuse.py"), str(ROOT), str(tree)]
        environment = {**os.environ, "NO_COLOR": "1"}
        if tree != ROOT:
            environment["CMAKE_CXX_COMPILER_LAUNCHER"] = ";".join(launcher)
        done = subprocess.run([tree / "workbook", *map(str, words)], cwd=tree, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, status, f"./workbook {' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
        return done.stdout

    def write_solution(self, exercise: str, change=lambda text: text) -> None:
        """Into the student's file, between the markers."""
        (one,) = self.master.select([exercise])
        path = self.student / one.file
        text = path.read_text()
        path.write_text(markers.filled(text, self.master.region(one, text), change(self.master.written(one))))

    def counted_by_hand(self, student: str) -> float:
        """What ./workbook trace says in the student's tree, for the student's problem."""
        (one,) = self.master.select(["01.sectors"])
        problem = course.problem_of(one, student)
        flags = [f"--{key.replace('_', '-')}={value}" for key, value in problem.items() if key != "causal"]
        self.workbook(self.student, "trace", "01", "--rung=naive", "--no-causal", *flags)
        program = self.student / "build/cpu/01_naive/01_naive_traced"
        told = subprocess.run([program, "--trace", *flags, "--no-causal", "--rung=naive"], capture_output=True, text=True, check=True)
        launches = json.loads(told.stdout[told.stdout.index("{"):])["rungs"][0]["launches"]
        loads = next(launch["totals"]["global_load"] for launch in launches if "scores" in launch["kernel"])
        return loads["sectors"] / loads["requests"]

    def hand_in(self, name: str) -> None:
        classroom = self.place / "class"
        classroom.mkdir(exist_ok=True)
        with zipfile.ZipFile(classroom / f"{name}.zip", "w") as archive:
            for path in [*self.student.glob("[0-9]*_*/*.cu"), *self.student.glob(ANSWERS)]:
                archive.write(path, path.relative_to(self.student))

    def grades(self, submissions: int) -> list:
        """The rows of grades.csv, as far as there are no dates."""
        try:
            Sandbox().require_entry(BUILD / "grading" / "0")
        except Failure as failure:
            self.skipTest(f"NOT RUN: needs a tree that others may enter, or bubblewrap: {failure}")
        graded = self.workbook(ROOT, "grade", self.place / "class", "--course", self.plan, "--out", self.place / "grades")
        self.assertIn(f"{submissions} submissions in", graded)
        columns = 3 + len(json.loads(self.plan.read_text())["points"])
        return [row[:columns] for row in csv.reader((self.place / "grades/grades.csv").read_text().splitlines())]

    def hand_out(self, weeks: list) -> None:
        points = {exercise: PLAN["points"][exercise] for week in weeks for exercise in week["exercises"]}
        self.plan.write_text(json.dumps({**PLAN, "points": points, "weeks": weeks}))
        self.workbook(ROOT, "handout", "--out", self.out, "--course", self.plan)

    def hand_out_and_attempt(self) -> None:
        """Ada has written 01.scores and a wrong 05.rescale, has answered the question, and knows what is right."""
        self.hand_out(PLAN["weeks"])
        readme = (self.student / "README.md").read_text()
        for words in ("# A short course", "## Week 2: FlashAttention", "**Due 2027-02-15.**", "All together are 15 points.", "loses 10 %"):
            self.assertIn(words, readme)

        said = self.workbook(self.student, "check", "--student", "Ada", status=1)  # nothing has been done yet, all compiles
        self.assertEqual((said.count("not attempted"), said.count("not answered")), (2, 1), said)

        self.write_solution("01.scores")
        self.write_solution("05.rescale", lambda text: text.replace(RESCALE, RESCALE.replace(" * correction", "")))
        answers = json.loads((self.student / ANSWERS).read_text())
        answers["predictions"] = {"01.sectors": 32}
        answers["answers"]["01.sectors"] = round(self.counted_by_hand("Ada"), 2)
        (self.student / ANSWERS).write_text(json.dumps(answers))
        said = self.workbook(self.student, "check", status=1)
        self.assertIn("2 of 3 right", said)
        self.assertIn("05.rescale wrong", said)


class AnExercise(ACourse):
    def test_from_the_handout_to_the_grades(self):
        self.hand_out([{**PLAN["weeks"][0], "exercises": ["01.scores"]}])
        self.write_solution("01.scores")
        self.hand_in("ada")
        self.write_solution("01.scores", lambda _: CHEATS.read_text())
        self.hand_in("mallory")
        self.assertEqual(self.grades(2), [["submission", "points", "of", "01.scores"],
                                          ["ada", "3", "3", "right"],
                                          ["mallory", "0", "3", "refused"]])


class AClass(ACourse):
    def test_from_the_handout_to_the_grades(self):
        self.hand_out_and_attempt()
        self.hand_in("ada")

        self.write_solution("05.rescale")  # another one has all but the question
        (self.student / ANSWERS).write_text(json.dumps({"student": "Grace", "answers": {"01.sectors": 1}}))
        self.hand_in("grace")
        with zipfile.ZipFile(self.place / "class/nobody.zip", "w"):
            pass
        (self.place / "class/broken.zip").write_bytes(b"x")

        self.assertEqual(self.grades(4), [["submission", "points", "of", "01.scores", "01.sectors", "05.rescale"],
                                          ["ada", "8", "15", "right", "right", "wrong"],  # 3 + 5 + 0
                                          ["broken", "0", "15", *["not readable"] * 3],
                                          ["grace", "10", "15", "right", "wrong", "right"],  # 3 + 0 + 7
                                          ["nobody", "0", "15", *["empty"] * 3]])


if __name__ == "__main__":
    unittest.main()
