"""Every stub and planted mistake, alone, compiles, is not attempted, is rejected by its exercise's tests, and is in no earlier
chapter's; every wrong solution is judged wrong, by a test that the table of common/course/wrong names."""

import os
import re
import subprocess
import unittest
from types import SimpleNamespace

import trials

from tools import course
from tools.base import ROOT, chapters
from tools.course import wrong

ROW = re.compile(r"\| (\d\d\.\w+) \| `(\w+)` \| (.*) \| (.*) \| (.*) \|")


class Trials:
    """What is expected of the trials of some exercises: `exercises` are their ids."""

    thorough = False

    @classmethod
    def setUpClass(cls):
        cls.trials = trials.trials(cls.exercises, cls.thorough)

    def test_stubs_and_planted_mistakes(self):
        stubs = [trial for trial in self.trials if trial.name == trials.STUB]
        self.assertEqual({trial.exercise for trial in stubs}, set(self.exercises))
        for trial in stubs:
            with self.subTest(exercise=trial.exercise):
                self.assertEqual(trial.state, "not attempted")
                self.assertTrue(trial.rejected_by, "its tests let the stub pass")

    def test_wrong_solutions_are_wrong_for_a_reason_that_the_table_names(self):
        in_the_table = {row[:2]: row[3].split(", ") for row in ROW.findall((ROOT / wrong.WRONG / "README.md").read_text())}
        for trial in self.trials:
            if trial.name != trials.STUB:
                with self.subTest(exercise=trial.exercise, solution=trial.name):
                    self.assertEqual(trial.state, "wrong")
                    self.assertIn(trial.rejected_by[0], in_the_table[trial.exercise, trial.name])


class Lines(Trials, unittest.TestCase):
    """Of an exercise of lines to write."""

    exercises = ["05.lse"]
    thorough = True

    def test_check_names_what_is_wrong_first_and_asks_what_leads_to_it(self):
        told = {(trial.exercise, trial.name): trial for trial in self.trials}
        for one in wrong.wrong_solutions(course.load()):
            if one.exercise.id in self.exercises:
                with self.subTest(solution=one.title):
                    trial = told[one.exercise.id, one.name]
                    self.assertEqual(trial.stage, one.stage)
                    self.assertEqual([line for line in trial.lines if line.endswith("?") and "cause" not in line],
                                     [one.sentence])


class Mistake(Lines):
    """Of a mistake to find."""

    exercises = ["04.barrier"]


class All(Trials, unittest.TestCase):
    exercises = [one.id for one in trials.with_kernels(course.load())]


class EarlierChapters(unittest.TestCase):
    def sources_of(self, program: str) -> set:
        """The kernels' files that the program of the build is made of, as ninja knows it."""
        done = subprocess.run(["ninja", "-t", "inputs", program], cwd=os.environ["WORKBOOK_BUILD"], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=True)
        return {line[len(f"{ROOT}/"):] for line in done.stdout.splitlines() if line.endswith(".cu")}

    def test_do_not_contain_an_exercise(self):
        """A stub, or what a student writes, changes the program of its own chapter, and of later ones that link its kernels."""
        made_of = {chapter.name: self.sources_of(f"{chapter.name}/{chapter.name}_tests") for chapter in chapters.all_chapters()}
        for one in course.load().exercises:
            with self.subTest(exercise=one.id):
                self.assertIn(one.file, self.sources_of(f"{one.place}/{one.chapter}_tests"))
                self.assertEqual([name for name, files in made_of.items() if name[:2] < one.id[:2] and one.file in files], [])


class TheTable(unittest.TestCase):
    def test_a_product_in_an_index_is_none_of_two_numbers(self):
        def told(product: str) -> "str | None":
            there = SimpleNamespace(root=ROOT, written=lambda _: f"  for (int d = 0; d < p.head_dim; ++d) sum += {product};")
            return wrong.sentence_of_code(there, SimpleNamespace(id="01.scores"), ["S[0, 0] is 1.281 and should be -0.847"])

        self.assertIsNone(told("to_float(q_row[d]) * to_float(k[j * p.head_dim + d])"))
        self.assertRegex(told("q_row[d] * k[j * p.head_dim + d]") or "", "^In which type do you multiply")

    def test_says_that_check_names_the_right_stage_of_nine_in_ten(self):
        rows = {row[:2]: row[4] for row in ROW.findall((ROOT / wrong.WRONG / "README.md").read_text())}
        named = [rows[one.exercise.id, one.name] for one in wrong.wrong_solutions(course.load())
                 if one.exercise.kind == "code" and one.stage]
        self.assertGreaterEqual(sum(", not " not in cell for cell in named), 0.9 * len(named))

    def test_has_every_wrong_solution_and_no_other(self):
        there = course.load()
        rows = ROW.findall((ROOT / wrong.WRONG / "README.md").read_text())
        solutions = [(one.exercise.id, one.name, one.mistake) for one in wrong.wrong_solutions(there)]
        self.assertEqual([row[:3] for row in rows], solutions, "./workbook dev mutants --exercises --write makes it anew")
        for exercise in there.exercises:
            names = [name for of, name, _ in solutions if of == exercise.id]
            self.assertGreaterEqual(len(set(names)), 2, f"{exercise.id} needs two wrong solutions")


if __name__ == "__main__":
    unittest.main()
