"""Every stub and planted mistake compiles, is not attempted, and its exercise's tests reject it; every wrong solution is judged
wrong, by a test that the table of common/course/wrong names."""

import re
import unittest

import trials

from tools import course
from tools.course import wrong
from tools.machine import ROOT

ROW = re.compile(r"\| (\d\d\.\w+) \| `(\w+)` \| (.*) \| (.*) \|")


class Trials(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.trials = trials.trials()

    def test_stubs_and_planted_mistakes(self):
        stubs = [trial for trial in self.trials if trial.name == trials.STUB]
        self.assertEqual({trial.exercise for trial in stubs},
                         {one.id for one in course.load().exercises if one.kind != "measure" and not one.needs_gpu})
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


class TheTable(unittest.TestCase):
    def test_has_every_wrong_solution_and_no_other(self):
        there = course.load()
        rows = ROW.findall((ROOT / wrong.WRONG / "README.md").read_text())
        solutions = [(one.exercise.id, one.name, one.mistake) for one in wrong.wrong_solutions(there)]
        self.assertEqual([row[:3] for row in rows], solutions, "./workbook mutants --exercises --write makes it anew")
        for exercise in there.exercises:
            names = [name for of, name, _ in solutions if of == exercise.id]
            self.assertGreaterEqual(len(set(names)), 2, f"{exercise.id} needs two wrong solutions")


if __name__ == "__main__":
    unittest.main()
