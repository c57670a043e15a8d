"""What the engine counts for exercises: the solutions keep their limits, and every question has an answer. Of the programs that
are built (WORKBOOK_BUILD)."""

import dataclasses
import os
import re
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tests.tiers import at_length
from tools import course
from tools.base import ROOT, build
from tools.course import exercises, judging, wrong
from tools.course.questions import TOLERANCE

_counts, _known = judging.counts, {}


def counted_once(place: Path, rung: str, direction: str, problem: dict, workshop=judging.HERE):
    """As judging.counts; several questions and wrong answers ask for the same."""
    key = (place, rung, direction, *sorted(problem.items()))
    if key not in _known:
        _known[key] = _counts(place, rung, direction, problem, workshop)
    return _known[key]


# Limits with room for right ways that take more than the book's, as one that adds up l over the lanes in every tile, or that has
# one barrier more. Ways without the idea take far more.
OTHER_WAYS = {"shuffles", "barriers", "votes_alone", "accesses_of_a_thread", "flops_of_a_block", "comparisons_after_votes"}
# Here grading compiles the book's kernel to more loads (judging.AS_GRADED), in a loop of another phase.
AS_GRADED = {("04.dealt", "shared_load wavefronts")}


class OfTheWorkbook(unittest.TestCase):
    def setUp(self):
        here = mock.patch.object(build, "ensure_built", return_value=Path(os.environ["WORKBOOK_BUILD"]))
        here.start()
        self.addCleanup(here.stop)
        once = mock.patch.object(judging, "counts", counted_once)
        once.start()
        self.addCleanup(once.stop)
        self.exercises = course.load().exercises


class Limits(OfTheWorkbook):
    @at_length
    def test_solutions_keep_the_limits_and_come_close_to_them(self):
        for exercise in self.exercises:
            for limit in exercise.limits:
                launches = judging.counts(exercise.place, exercise.rung, exercise.direction, limit["problem"])
                self.assertIsInstance(launches, list, launches)
                for count, least, most in judging.bounds_of(limit):
                    with self.subTest(exercise=exercise.id, count=count):
                        number = judging.sum_of(launches, count, limit["kernel"]) or 0
                        self.assertTrue(least <= number <= most, f"{least} <= {number} <= {most}")
                        close = 0.49 if count in OTHER_WAYS else 0.1 if (exercise.id, count) in AS_GRADED else 0.8
                        self.assertGreaterEqual(number, close * most)

    def test_the_counts_that_a_limit_may_name_are_the_engines(self):
        text = (ROOT / "common/simt/trace/counts.cc").read_text()
        listed = re.search(r"names\[\] = \{(.*?)\}", text, re.S)
        self.assertEqual({*exercises.GLOBAL, *exercises.SHARED}, set(re.findall(r'"(\w+)"', listed[1])))
        written = set(re.findall(r'\\"(\w+)\\": ', text))
        self.assertEqual({count for count in exercises.COUNTS if " " not in count} - written, {"others"})


class Questions(OfTheWorkbook):
    """In the slow tier: each question is counted for two students."""

    def test_questions_have_answers_that_differ_from_student_to_student(self):
        for exercise in self.exercises:
            if exercise.kind == "measure":
                with self.subTest(exercise=exercise.id):
                    problems = [course.problem_of(exercise, f"student {i}") for i in range(100)]
                    self.assertGreater(len({str(problem) for problem in problems}), 20, "too few problems are drawn")
                    numbers = {course.expected(exercise, problem) for problem in problems[:2]}
                    self.assertTrue(all(number > 0 for number in numbers))

    def test_wrong_answers_are_wrong(self):
        there = course.load()
        for one in wrong.wrong_solutions(there):
            if one.exercise.kind == "measure":
                with self.subTest(answer=one.title):
                    problem = course.problem_of(one.exercise, "student 0")
                    right = course.expected(one.exercise, problem)
                    said = course.expected(dataclasses.replace(one.exercise, answer=one.answer), problem)
                    self.assertGreater(abs(said - right), TOLERANCE * right)

    def test_a_wrong_answer_that_is_known_gets_its_own_sentence(self):
        there = course.load()
        for one in wrong.wrong_solutions(there):
            if one.exercise.kind == "measure" and one.sentence:
                with self.subTest(answer=one.title), tempfile.TemporaryDirectory() as directory:
                    (Path(directory) / wrong.WRONG.parent).mkdir(parents=True)
                    (Path(directory) / wrong.WRONG).symlink_to(there.root / wrong.WRONG)
                    answers = course.Answers(Path(directory))
                    answers.begin("student 0", there)
                    problem = course.problem_of(one.exercise, "student 0")
                    answers.predict(one.exercise, 1)
                    answers.give(one.exercise, course.expected(dataclasses.replace(one.exercise, answer=one.answer), problem))
                    self.assertIn(one.sentence, course.verdict_with_prediction(one.exercise, answers).lines)


if __name__ == "__main__":
    unittest.main()
