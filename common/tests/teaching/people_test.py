"""Whose questions are whose: the roster's id and the course's secret make a name, and Gradescope's users hold to it."""

import argparse
import csv
import io
import json
import tempfile
import types
import unicodedata
import unittest
import zipfile
from pathlib import Path
from unittest import mock

from tools import course
from tools.base import Failure
from tools.commands import grade as grade_command
from tools.commands import handout
from tools.course import Plan, Verdict, Week, problem_of, read_plan, same_name
from tools.grading import bound, grade, in_the_roster, names_for, users_of
from tools.grading.one_submission import ANSWERS, Grade
from tools.grading.question_names import name_for
from tools.grading.roster import Person, plain
from tools.grading.submission import Submission
from tools.handout import hand_out

SECRET = "only the instructor has this"
ADA, EVE = Person("1001", "Ada Ex\u00e4mple", "ada@school.example"), Person("1002", "Eve Example", "eve@school.example")
PLAN = {"title": "T", "secret": SECRET, "weeks": [{"title": "", "begins": "2027-02-01", "due": "2027-02-08", "exercises": ["01"]}]}


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.course = course.load()
        (cls.question,) = cls.course.select(["01.sectors"])

    def points(self, student: str, people: list, secret: str = SECRET) -> float:
        """For a right answer to the question of this student, in a submission of these people."""
        answers = json.dumps({"student": student, "answers": {self.question.id: 1}})
        right = Grade("x", {self.question.id: Verdict("right")}, {self.question.id: 3})
        result = bound(right, Submission("x", {ANSWERS: answers}), people, secret, [self.question])
        if not result.score:
            self.assertEqual(result.verdicts[self.question.id].state, "another's questions")
            self.assertEqual(len(result.verdicts[self.question.id].lines), 1)
        return result.score

    def test_a_name_is_the_ids_and_the_secrets_and_nobody_elses(self):
        names = {name_for(one, secret) for one in (ADA, EVE) for secret in (SECRET, SECRET + ".")}
        self.assertEqual(len(names), 4)
        self.assertEqual(name_for(ADA, SECRET), name_for(Person("1001", "Another", "x@y"), SECRET), "the id alone counts")
        self.assertRegex(name_for(ADA, SECRET), r"^1001-[a-z2-7]{10}$")
        self.assertEqual(names_for([ADA], SECRET).splitlines()[1], f"1001,{ADA.name},ada@school.example,{name_for(ADA, SECRET)}")

    def test_questions_are_drawn_from_it(self):
        people = [Person(str(1000 + number), "x", "") for number in range(30)]
        shapes = {json.dumps(problem_of(self.question, name_for(one, SECRET))) for one in people}
        self.assertGreater(len(shapes), 1)

    def test_who_takes_anothers_name_has_no_points(self):
        mine, hers = name_for(ADA, SECRET), name_for(EVE, SECRET)
        for student, people, points in [(mine, [ADA], 3), (mine.upper(), [ADA], 3), (hers, [ADA], 0), (ADA.name, [ADA], 0),
                                        ("1001", [ADA], 0), (mine, [EVE], 0), (mine, [], 0), (hers, [ADA, EVE], 3)]:
            with self.subTest(student=student, people=people):
                self.assertEqual(self.points(student, people), points)

    def test_without_a_secret_it_is_the_students_name(self):
        for student, points in [(ADA.name, 3), (unicodedata.normalize("NFD", ADA.name), 3), ("ada", 3), ("1001", 3), ("Eve Example", 0),
                                ("\u3164", 3)]:  # in which nothing can be seen: no name, and so not answered
            with self.subTest(student=student):
                self.assertEqual(self.points(student, [ADA], secret=""), points)

    def test_gradescope_says_who_has_handed_it_in(self):
        with tempfile.TemporaryDirectory() as directory:
            submission, metadata = Path(directory) / "submission", Path(directory) / "submission_metadata.json"
            self.assertIsNone(users_of(submission))
            for text in ("{", "[]", '{"users": [1]}', '{"users": null}', "[" * 100_000):
                metadata.write_text(text)
                self.assertIsNone(users_of(submission), text[:20])
            metadata.write_text(json.dumps({"users": [{"id": 7, "name": "A", "email": "Ada@School.example"}]}))
            users = users_of(submission)
        self.assertEqual(in_the_roster(users, [ADA, EVE]), [ADA])
        self.assertEqual(in_the_roster(users, [EVE, Person("3", "none", "")]), [])

    def not_answered(self, student: str) -> "tuple[str, float]":
        """(verdict, points) on a submission with a number under this name."""
        bench = types.SimpleNamespace(course=self.course, kernels=mock.Mock(), answer=mock.Mock(side_effect=AssertionError("counted")))
        text = json.dumps({"student": student, "answers": {self.question.id: 1}})
        result = grade(bench, Submission("x", {ANSWERS: text}), [self.question])
        return result.verdicts[self.question.id].state, result.score

    def test_names_in_which_nothing_can_be_seen(self):
        with tempfile.TemporaryDirectory() as directory:
            answers = course.Answers(Path(directory))
            for name in ("", " ", "\u200b", "\u00a0", "\u3164", "\u2800", "\uffa0", "\u115f", "\ufe0f", "\u0301", "...", "\U000e0041"):
                with self.subTest(name=ascii(name)), self.assertRaisesRegex(Failure, "a name has at least one letter or digit"):
                    answers.begin(name, self.course)
                self.assertEqual(plain(name), "")
                self.assertEqual(self.not_answered(name), ("not answered", 0))
        self.assertTrue(same_name("Ada\u3164", " ada"))
        self.assertTrue(same_name("Exa\u0308mple", "ex\u00e4mple"))
        self.assertFalse(same_name("\u674e", "\u738b"))


class OneSubmission(unittest.TestCase):
    """As Gradescope's archive grades it, with a roster at the top of the tree."""

    def results(self, student: str, user: str) -> dict:
        there = course.load()
        (question,) = there.select(["01.sectors"])
        with tempfile.TemporaryDirectory() as directory:
            place = Path(directory)
            (place / "roster.csv").write_text("1001,Ada Example,ada@school.example,1\n1002,Eve Example,eve@school.example\n")
            (place / "submission_metadata.json").write_text(json.dumps({"created_at": "2027-02-09T10:00:00.0-08:00",
                                                                        "users": [{"id": 7, "name": "?", "email": user}]}))
            (place / "submission").mkdir()
            (place / "submission" / ANSWERS).write_text(json.dumps({"student": student, "answers": {question.id: 1}}))
            plan = Plan("T", [Week("", "2027-02-01", "2027-02-08", [question])], {"percent_a_day": 50, "days": 3}, SECRET)
            asked = argparse.Namespace(submission=place / "submission", out=place / "results.json", dates=None, format="gradescope")
            right = Grade("submission", {question.id: Verdict("right")}, {question.id: 4})
            with mock.patch.object(grade_command, "ROOT", place), mock.patch.object(grade_command, "grade", return_value=right), \
                    mock.patch.object(grade_command, "_workbench", return_value=mock.Mock(held={})), \
                    mock.patch.object(grade_command, "say"):
                grade_command._one(asked, there, plan, [question])
            return json.loads(asked.out.read_text())

    def test_users_and_the_roster_bind_the_answers_and_give_more_days(self):
        ada, eve = name_for(ADA, SECRET), name_for(EVE, SECRET)
        for student, user, score in [(ada, "ada@school.example", 4), (eve, "eve@school.example", 2), (eve, "ada@school.example", 0),
                                     (ada, "eve@school.example", 0), (ada, "nobody@school.example", 0)]:
            with self.subTest(student=student, user=user):
                self.assertEqual(self.results(student, user)["score"], score)
        self.assertIn("answers.json names 1002 ", self.results(eve, "ada@school.example")["tests"][0]["output"])
        self.assertIn("the roster has nobody of this e-mail address", self.results(ada, "nobody@school.example")["tests"][0]["output"])


class HandedOut(unittest.TestCase):
    def test_the_secret_is_in_no_students_tree(self):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "course.json"
            path.write_text(json.dumps(PLAN))
            there = course.load()
            plan = read_plan(path, there)
            self.assertEqual(plan.secret, SECRET)
            made = hand_out(there, plan, {"course.json": path.read_bytes(), "roster.csv": b"1001,Ada,ada@school.example\n"})
        for file, content in made.student.items():
            self.assertNotIn(SECRET.encode(), content, file)
            self.assertNotIn(b"ada@school", content, file)
        self.assertNotIn("course.json", made.student)
        self.assertLessEqual({"workbook/course.json", "workbook/roster.csv"}, set(made.autograder))
        self.assertIn("NAME is the one that you were given", made.student["README.md"].decode())

    def handed_out(self, plan: dict, roster: "str | None") -> "tuple[dict, list[str]]":
        """({file: content} of the command's, with the names in the archive; what it says)"""
        with tempfile.TemporaryDirectory() as directory:
            place, out = Path(directory), Path(directory) / "out"
            (place / "course.json").write_text(json.dumps(plan))
            (place / "roster.csv").write_text(roster or "")
            parser = argparse.ArgumentParser()
            handout.add_arguments(parser)
            words = [f"--out={out}", f"--course={place}/course.json", *([f"--roster={place}/roster.csv"] if roster else [])]
            with mock.patch.object(handout, "say") as said:
                self.assertEqual(handout.run(parser.parse_args(words)), 0)
            files = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}
        return files, [call[0][0] for call in said.call_args_list]

    def test_names_csv_has_the_name_of_each_and_is_the_instructors_alone(self):
        roster = f"id,name,e-mail\n1001,{ADA.name},ada@school.example\n1002,=HYPERLINK(0),eve@school.example\n"
        files, said = self.handed_out(PLAN, roster)
        self.assertEqual(list(csv.reader(io.StringIO(files["names.csv"].decode()))), [
            ["id", "name", "e-mail", "student"], ["1001", ADA.name, "ada@school.example", name_for(ADA, SECRET)],
            ["1002", "'=HYPERLINK(0)", "eve@school.example", name_for(EVE, SECRET)]])
        self.assertEqual(len([line for line in said if "names.csv has the names" in line]), 1)
        drawn = name_for(ADA, SECRET).encode()
        self.assertEqual([file for file, content in files.items() if drawn in content], ["names.csv"])
        with zipfile.ZipFile(io.BytesIO(files["autograder.zip"])) as archive:
            self.assertEqual([name for name in archive.namelist() if "names.csv" in name or drawn in archive.read(name)], [])

    def test_without_a_secret_there_are_no_such_names_and_with_one_a_roster(self):
        without = {key: value for key, value in PLAN.items() if key != "secret"}
        files, said = self.handed_out(without, "1001,Ada,ada@school.example\n")
        self.assertEqual(([file for file in files if "names.csv" in file], [line for line in said if "names" in line]), ([], []))
        with self.assertRaisesRegex(Failure, "the course has a secret: --roster says for whom names are made"):
            self.handed_out(PLAN, None)

    def test_a_secret_that_is_none(self):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "course.json"
            for secret, words in [("short", "secret has 5 characters: it must have at least 12"), (" " * 20, "secret has 0 characters"),
                                  (7, "secret of the course is 7: it must be of type str")]:
                path.write_text(json.dumps({**PLAN, "secret": secret}))
                with self.subTest(secret=secret), mock.patch("tools.course.plan.shown", return_value="c"), \
                        self.assertRaisesRegex(Failure, words):
                    read_plan(path, course.load())


if __name__ == "__main__":
    unittest.main()
