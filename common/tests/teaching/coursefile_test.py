"""The course file: what it says, and one line for each way of saying it wrongly."""

import json
import subprocess
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.tiers import at_length
from tools import course
from tools.base import Failure, file_trees
from tools.course import read_plan
from tools.handout import hand_out

WEEK = {"title": "memory", "begins": "2027-02-01", "due": "2027-02-08", "exercises": ["01", "02.scores"]}
PLAN = {"title": "Spring", "late": {"percent_a_day": 10, "days": 3}, "points": {"02.scores": 7},
        "weeks": [WEEK, {**WEEK, "exercises": ["05.rescale"]}]}


class CourseFile(unittest.TestCase):
    def setUp(self):
        directory = TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = Path(directory.name) / "course.json"
        self.course = course.load()

    def read(self, content):
        if not isinstance(content, bytes):
            content = (content if isinstance(content, str) else json.dumps(content, indent=1)).encode()
        self.path.write_bytes(content)
        return read_plan(self.path, self.course)

    def test_weeks_points_and_selections(self):
        plan = self.read(PLAN)
        of_01 = [one.id for one in self.course.select(["01"])]
        self.assertEqual([[one.id for one in week.exercises] for week in plan.weeks],
                         [[*of_01, "02.scores"], ["05.rescale"]])
        self.assertEqual([one.points for one in plan.exercises if one.id == "02.scores"], [7])
        second = plan.only(2, {one.id for one in plan.exercises})
        self.assertEqual([one.id for one in second.exercises], ["05.rescale"])
        self.assertEqual(len(second.weeks), 2, "a week keeps its number")

    def test_fractions_and_hours(self):
        plan = self.read({**PLAN, "points": {"02.scores": 2.5}, "late": {"percent_a_day": 7.5, "days": 3},
                          "weeks": [{**WEEK, "due": "2027-02-08T18:00"}]})
        self.assertEqual((plan.late["percent_a_day"], plan.weeks[0].due, [one.points for one in plan.exercises][-1]),
                         (7.5, "2027-02-08T18:00", 2.5))

    @at_length
    def test_with_fractions_the_students_tree_starts(self):
        for points, said in [(2.5, "2.5"), (3.0, "3")]:
            week = {**WEEK, "exercises": ["01.scores", "02.scores"]}
            plan = self.read({**PLAN, "points": {"01.scores": 1, "02.scores": points}, "weeks": [week]})
            tree = self.path.parent / said
            file_trees.write(tree, hand_out(self.course, plan).student)
            for words, line in [(["list", "--exercises"], rf"(?m)^02\.scores .* {said} "), (["list", "--exercises"], f"0 of {points + 1:g} p"),
                                (["next"], "01.scores")]:
                with self.subTest(points=points, words=words):
                    done = subprocess.run([tree / "workbook", *words], cwd=tree, stdin=subprocess.DEVNULL, capture_output=True, text=True)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    self.assertRegex(done.stdout, line)

    def test_an_editors_mark_at_the_beginning(self):
        self.assertEqual(self.read(b"\xef\xbb\xbf" + json.dumps(PLAN).encode()).title, "Spring")

    def test_one_line_that_names_the_file_and_what_is_wrong(self):
        for content, expected in [
            ("{", ":1: Expecting"),
            ({**PLAN, "weeks": [{**WEEK, "exercises": ["01.nothing"]}]},
             "no exercise 01.nothing (exercises: 01.scores"),
            ({**PLAN, "weeks": [{**WEEK, "exercises": ["99"]}]}, "no chapter 99"),
            ({**PLAN, "weeks": [WEEK, WEEK]}, "01.scores is in two weeks"),
            ({**PLAN, "weeks": [{**WEEK, "due": "soon"}]}, "due of week 1 is soon: it must be a date"),
            ({**PLAN, "weeks": [{**WEEK, "due": "2027-02-08T6"}]}, "due of week 1 is 2027-02-08T6: it must be a date"),
            *[({**PLAN, "weeks": [{**WEEK, "due": f"2027-02-15T18:00{offset}"}]},
               f"due of week 1 is 2027-02-15T18:00{offset}: it must be a date, as 2027-02-01, perhaps with an hour, as 2027-02-01T18:00")
              for offset in ("+01:00", "Z")],
            ({**PLAN, "weeks": [{**WEEK, "due": "20270208"}]}, "due of week 1 is 20270208: it must be a date"),
            ({**PLAN, "weeks": [{**WEEK, "due": "2027-01-01"}]}, "week 1 is due before it begins"),
            ({**PLAN, "points": {"01": 3}}, "points of 01 are 3"),
            ({**PLAN, "points": {"01.scores": -1}}, "points of 01.scores are -1"),
            ({**PLAN, "points": {"01.scores": 3, "08.bounds": 3}}, "points of 08.bounds, which is in no week"),
            ({"title": "x"}, "the course has no weeks"),
            ({**PLAN, "term": 1}, "the course has a key term"),
            ({**PLAN, "late": {"days": 1}}, "late has no percent_a_day"),
            ({**PLAN, "late": {"percent_a_day": -10, "days": 3}}, "percent_a_day of late is -10: it must be 0 to 100"),
            ({**PLAN, "late": {"percent_a_day": 10, "days": -1}}, "days of late is -1: it must be 0 to 366"),
            (b'{"title": "\xff"}', ":1: it is not UTF-8: byte 11 is 0xff"),
            ([], "the course must be an object"),
        ]:
            with self.subTest(expected=expected), self.assertRaises(Failure) as caught:
                self.read(content)
            self.assertIn(expected, str(caught.exception))
            self.assertIn("course.json:", str(caught.exception))
            self.assertEqual((caught.exception.status, "\n" in str(caught.exception)), (2, False))

    def test_the_line_of_an_unknown_exercise(self):
        with self.assertRaises(Failure) as caught:
            self.read({**PLAN, "weeks": [{**WEEK, "exercises": ["01.nothing"]}]})
        number = next(i for i, line in enumerate(self.path.read_text().splitlines(), 1) if "01.nothing" in line)
        self.assertIn(f"course.json:{number}:", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
