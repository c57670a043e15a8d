"""A class: each submission once, the rest when one fails, and what the instructor reads. Nothing is built here."""

import argparse
import csv
import dataclasses
import datetime
import json
import shutil
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

from tools import course
from tools.base import Failure, pythons
from tools.commands import grade as grade_command
from tools.course import Verdict
from tools.course.plan import Plan, Week
from tools.grading import (
    ANSWERS,
    date_of_gradescope,
    grade_reports,
    late_days,
    no_submissions_in,
    not_held,
    one_submission,
    read_dates,
    read_log,
    read_roster,
    similarity,
    submissions_in,
    whole_class,
    with_earlier,
)
from tools.grading.kernels import LAYERS
from tools.grading.one_submission import Grade, layers_in_words
from tools.grading.roster import Log, Person, in_order, person_of, whose
from tools.grading.submission import Submission


class OfAClass(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.out = Path(directory.name)
        self.course = course.load()
        self.exercises = self.course.select(["01.scores", "05.rescale"])
        self.graded, self.no_gpu, self.layers = [], "", frozenset(LAYERS)

    def grade_class(self, states: dict, plan=Plan("", []), dates={}, others=(), people=(), answers={}, log=None, files={},
                    flags={}, notes=()):
        """With a grader that finds these states {student: [of 01.scores, of 05.rescale]}; an exception is raised."""
        def grade(workbench, submission, exercises):
            self.graded.append(submission.name)
            found = states[submission.name]
            if isinstance(found, Exception):
                raise found
            found = {one.id: state for one, state in zip(self.exercises, found)}
            return Grade(submission.name, {one.id: Verdict(found[one.id], ["a line"]) for one in exercises},
                         {one.id: one.points if found[one.id] == "right" else 0 for one in exercises},
                         flags=dict(flags.get(submission.name, {})))

        held = {"runs": True, "network": "none", "other files": "not seen", "kernels": layers_in_words(self.layers)}
        workbenches = [types.SimpleNamespace(root=self.course.root, course=self.course, no_gpu=self.no_gpu, held=held)
                       for _ in range(2)]
        with mock.patch.object(whole_class, "grade", side_effect=grade), mock.patch.object(whole_class, "say"), \
                mock.patch.object(whole_class.file_trees, "read", return_value={"a": b"b"}):
            submissions = [Submission(name, {"x": name, **dict.fromkeys(files.get(name, ()), name),
                                             **({ANSWERS: answers[name]} if name in answers else {})}) for name in states]
            return whole_class.grade_class(workbenches, submissions, self.exercises, self.out, plan, dates, others, people, log, notes)

    def test_the_table_the_pages_and_what_went_wrong_most(self):
        self.grade_class({"ada": ["right", "right"], "grace": ["right", "wrong"], "=cmd()": ["not attempted", "hangs"]})
        total = sum(one.points for one in self.exercises)
        first, second = (one.points for one in self.exercises)
        rows = list(csv.reader((self.out / "grades.csv").read_text().splitlines()))
        self.assertEqual(rows, [["submission", "points", "of", "01.scores", "05.rescale", "01.scores points", "05.rescale points",
                                 "late days"],
                                ["ada", str(first + second), str(total), "right", "right", str(first), str(second), "0"],
                                ["grace", str(first), str(total), "right", "wrong", str(first), "0", "0"],
                                ["'=cmd()", "0", str(total), "not attempted", "hangs", "0", "0", "0"]])
        page = (self.out / "class.md").read_text()
        self.assertLess(page.index("05.rescale"), page.index("01.scores"), "the one that most got wrong comes first")
        self.assertIn("| 1 | 0 | 2 | hangs 1, wrong 1 |", page)
        self.assertIn("**wrong**, 0 of", (self.out / "students/grace.md").read_text())

    def test_a_name_that_is_no_plain_text(self):
        self.grade_class({"a|b [c]; d": ["right", "right"]})
        self.assertIn(r"| [a\|b \[c\]; d](students/a%7Cb%20%5Bc%5D%3B%20d.md) |", (self.out / "class.md").read_text())

    def test_a_name_that_is_a_page_s_code(self):
        name, escaped = "<img src=x onerror=alert(1)>", r"\<img src=x onerror=alert(1)\>"
        result = Grade(name, {one.id: Verdict("right") for one in self.exercises}, {one.id: 1 for one in self.exercises})
        page = grade_reports.page_of_class([result], self.exercises, [(name, "ada", "01.scores", 1.0)], "", {}, [[name, "eve"]])
        own = grade_reports.page_of(result, self.exercises, Log({}, 0), {})
        result.refused = ("other files", f"it has {name}")
        refused = grade_reports.page_of(result, self.exercises, Log({}, 0), {})
        for text in (page, own, refused):
            self.assertNotRegex(text, r"(?<!\\)<img")
        self.assertIn(f"{escaped}, ada: all of 01.scores", page)
        self.assertIn(f"- {escaped}, eve: the questions", page)
        self.assertTrue(own.startswith(f"# {escaped}: 2.0 of"), own)
        self.assertIn(f"it has {escaped}.", refused)

    def test_what_has_been_graded_is_not_graded_again(self):
        self.grade_class({"ada": ["right", "right"], "grace": ["right", "wrong"]})
        before = (self.out / "grades.csv").read_text()
        self.graded.clear()
        self.grade_class({"ada": ["right", "right"], "grace": ["right", "wrong"]})
        self.assertEqual((self.graded, (self.out / "grades.csv").read_text()), ([], before))
        (self.out / "graded/ada.json").write_text("{")
        self.grade_class({"ada": ["right", "right"], "grace": ["right", "wrong"]})
        self.assertEqual(self.graded, ["ada"])
        self.no_gpu = "there was none"  # and there will be one
        self.grade_class({"ada": ["right", "right"]})
        self.assertEqual(self.graded, ["ada", "ada"])
        self.layers = frozenset()  # the same machine, but not as root
        self.grade_class({"ada": ["right", "right"]})
        self.assertEqual(self.graded, ["ada", "ada", "ada"])

    def test_the_pages_say_what_kept_submissions_apart(self):
        self.grade_class({"ada": ["right", "right"]})
        of_class, of_ada = (self.out / "class.md").read_text(), (self.out / "students/ada.md").read_text()
        for layer in LAYERS.values():
            self.assertIn(f"- {layer}: held\n", of_class)
        self.assertIn("- compiler, network: none\n", of_class)
        self.assertNotRegex(of_class + of_ada, "Nothing is isolated|not by")
        self.layers = frozenset()
        self.grade_class({"ada": ["right", "right"]})
        of_class, of_ada = (self.out / "class.md").read_text(), (self.out / "students/ada.md").read_text()
        for page in (of_class, of_ada):
            self.assertIn("Nothing is isolated here: ", page)
        self.assertEqual(of_class.count(": NOT HELD\n"), len(LAYERS))

    def test_the_rest_of_the_class_is_graded_when_the_grader_fails(self):
        done = self.grade_class({"ada": Failure("no space"), "grace": ["right", "right"]})
        self.assertEqual(done.failed, ["ada"])
        self.assertIn("not graded", (self.out / "grades.csv").read_text())
        self.graded.clear()
        self.grade_class({"ada": ["right", "right"], "grace": ["right", "right"]})
        self.assertEqual(self.graded, ["ada"], "and the next time it is graded")

    def test_whatever_fails_for_one_the_rest_is_graded(self):
        with mock.patch.object(whole_class, "bound", side_effect=lambda result, submission, *_: result if submission.name == "grace"
                               else 1 / 0):
            done = self.grade_class({"ada": ["right", "right"], "grace": ["right", "right"]},
                                    people=[Person("1", "ada", "a@b"), Person("2", "grace", "g@b")])
        self.assertEqual(done.failed, ["ada"])
        self.assertIn("the grader failed: division by zero", (self.out / "students/ada.md").read_text())
        self.assertEqual([row[3] for row in csv.reader((self.out / "grades.csv").read_text().splitlines()[1:])],
                         ["0", str(sum(one.points for one in self.exercises))])

    def test_who_hangs_the_compiler_does_so_twice(self):
        """It takes minutes each time. The next student's is compiled again."""
        exercises = [one for one in self.course.exercises if one.kind == "code"][:5]
        texts = {one.file: self.course.text(one) for one in exercises}
        bench = types.SimpleNamespace(course=self.course, kernels=mock.Mock())
        for hangs, states in [({0, 1, 2, 3, 4}, ["hangs the compiler"] * 2 + ["not compiled"] * 3),
                              ({1, 3}, ["right", "hangs the compiler", "right", "hangs the compiler", "not compiled"]),
                              ({4}, ["right"] * 4 + ["hangs the compiler"])]:
            hanging = {exercises[number].id for number in hangs}
            with mock.patch.object(one_submission, "_judged", side_effect=lambda _, one, written, hanging=hanging: (Verdict(
                    "hangs the compiler" if one.id in hanging else "right"), "")) as judged:
                result = one_submission.grade(bench, Submission("mallory", texts), exercises)
            self.assertEqual([result.verdicts[one.id].state for one in exercises], states)
            self.assertEqual(judged.call_count, 5 - states.count("not compiled"))
            self.assertEqual(result.score, sum(one.points for one, state in zip(exercises, states) if state == "right"))

    def test_late_days(self):
        first, second = self.exercises
        weeks = [Week("one", "2027-02-01", "2027-02-08", [first]), Week("two", "2027-02-08", "2027-02-15", [second])]
        plan = Plan("", weeks, {"percent_a_day": 10, "days": 3})
        table = self.out / "dates.csv"
        table.write_text(
            "ada,2027-02-08T23:59\ngrace,2027-02-10\n\nlate,2027-02-16\nwrong,2027-02-18\nlater,2027-02-19\n")
        states = {name: ["right", "right"] for name in ("ada", "grace", "late", "later", "nobody")}
        self.grade_class({**states, "wrong": ["right", "wrong"]}, plan, read_dates(table))
        points = {row[0]: float(row[1]) for row in csv.reader((self.out / "grades.csv").read_text().splitlines()[1:])}
        one, two = first.points, second.points
        self.assertEqual(points, {"ada": one + two, "grace": one * 0.8 + two, "late": two * 0.9, "wrong": 0,
                                  "later": 0, "nobody": one + two})
        self.assertIn(f"2 days late: 20 % of {one} points less", (self.out / "students/grace.md").read_text())
        kept = json.loads((self.out / "graded/later.json").read_text())
        self.assertEqual(kept["grade"]["points"], {first.id: one, second.id: two}, "the policy may change")

    def test_one_row_a_student_and_of_each_exercise_the_most_points(self):
        (one, two), plan = self.exercises, Plan("Spring", [Week("", "2027-02-01", "2027-02-08", self.exercises)],
                                                {"percent_a_day": 10, "days": 3})
        people = [Person("1001", "Ada Ex\u00e4mple", "ada@school.example"), Person("1002", "Grace Example", "grace@school.example", 2),
                  Person("1003", "Nobody Else", "nobody@school.example")]
        states = {"1001_first": ["right", "wrong"], "Ada Exa\u0308mple_77_second": ["right", "right"], "adaex\u00e4mple_third": ["wrong", "wrong"],
                  "grace@school.example": ["right", "right"], "a stranger": ["right", "right"]}
        dates = {"1001_first": "2027-02-01", "Ada Exa\u0308mple_77_second": "2027-02-08", "adaex\u00e4mple_third": "2027-02-09",
                 "grace@school.example": "2027-02-11"}
        self.grade_class(states, plan, {name: datetime.date.fromisoformat(day) for name, day in dates.items()}, people=people,
                         files=dict.fromkeys(states, [one.file, two.file]))
        rows = {row[0]: row[1:5] + row[-1:] for row in csv.reader((self.out / "grades.csv").read_text().splitlines()[1:])}
        total, late = str(one.points + two.points), str(round((one.points + two.points) * 0.9, 2))
        self.assertEqual(rows, {"Ada Exa\u0308mple_77_second": ["1001", people[0].name, total, total, "0"],
                                "grace@school.example": ["1002", people[1].name, late, total, "1"],
                                "a stranger": ["", "", total, total, "0"], "": ["1003", people[2].name, "0", total, "0"]})
        canvas = list(csv.reader((self.out / "canvas.csv").read_text().splitlines()))
        self.assertEqual([canvas[0][-1], *(row[-1] for row in canvas[1:])], ["Spring", total, total, late, ""])
        moodle = list(csv.reader((self.out / "moodle.csv").read_text().splitlines()))
        self.assertEqual(moodle[1], ["1001", "ada@school.example", total])

    def of_two_weeks(self, handed_in: dict, states: dict, files={}, flags={}) -> "tuple[list, str]":
        """(Ada's row of grades.csv, her page), who has handed these in then: {name: date}. Each week has one exercise."""
        first, second = self.exercises
        plan = Plan("", [Week("one", "2027-02-01", "2027-02-08", [first]), Week("two", "2027-02-08", "2027-02-15", [second])],
                    {"percent_a_day": 10, "days": 3})
        dates = {name: datetime.date.fromisoformat(day) for name, day in handed_in.items() if day}
        self.grade_class({name: states[name] for name in handed_in}, plan, dates, people=[Person("7", "Ada", "ada@b")], files=files,
                         flags=flags)
        (row,) = list(csv.reader((self.out / "grades.csv").read_text().splitlines()))[1:]
        return row, (self.out / f"students/{row[0]}.md").read_text()

    def test_each_exercise_has_the_most_points_of_all_submissions(self):
        first, second = (one.points for one in self.exercises)
        states = {"7_a": ["right", "wrong"], "7_b": ["wrong", "right"], "7_c": ["wrong", "wrong"], "7_d": ["right", "right"]}
        for handed_in, name, points, late, graded in [
                ({"7_a": "02-07", "7_b": "02-08"}, "7_b", [first, second], 0, "ba"),  # a late part takes nothing from what was in time
                ({"7_a": "02-07", "7_d": "02-16"}, "7_d", [first, 0.9 * second], 1, "ad"),
                ({"7_a": "02-10", "7_b": "02-14"}, "7_b", [0.8 * first, second], 2, "ab"),
                ({"7_a": "02-07", "7_c": "02-14"}, "7_a", [first, 0], 0, "ac"),
                ({"7_a": "02-07", "7_d": "02-08"}, "7_d", [first, second], 0, "d"),  # none is graded that can change nothing
                ({"7_d": "02-08", "7_a": "02-17"}, "7_d", [first, second], 0, "d"),
                ({"7_a": "", "7_b": "", "7_c": ""}, "7_b", [first, second], 0, "cba"),
                ({"7_c": "02-07", "7_d": "02-19"}, "7_c", [0, 0], 0, "c")]:
            with self.subTest(handed_in=handed_in):
                self.graded.clear()
                dates = {each: day and f"2027-{day}" for each, day in handed_in.items()}
                row, page = self.of_two_weeks(dates, states, dict.fromkeys(states, [one.file for one in self.exercises]))
                shutil.rmtree(self.out / "graded")
                self.assertEqual((row[0], [float(one) for one in row[7:9]], int(row[9])), (name, [round(one, 2) for one in points], late))
                self.assertEqual("".join(each[-1] for each in self.graded), graded)
                self.assertIn(f"handed in as {name}", page)

    def test_what_is_no_longer_there_has_no_page(self):
        both = {one: ["right", "right"] for one in ("ada", "grace")}
        self.grade_class(both)
        (self.out / "students/mine.md").write_text("of the instructor")
        self.grade_class({"grace": both["grace"]})
        self.assertEqual(sorted(page.name for page in (self.out / "students").iterdir()), ["grace.md", "mine.md"])

    def test_the_page_of_the_class_says_whose_nothing_is(self):
        files = dict.fromkeys(("7_a", "7_b", "hal_[1]"), [self.exercises[0].file])
        self.grade_class({"7_a": ["wrong", "wrong"], "7_b": ["right", "wrong"], "hal_[1]": ["right", "right"]},
                         people=[Person("7", "Ada", "ada@b"), Person("8", "Bo", "bo@b")], files=files, notes=["dates.csv has gil, and nothing of that name was handed in."])
        page = (self.out / "class.md").read_text().partition("## Whose, and when\n\n")[2].partition("\n\n")[0].splitlines()
        self.assertEqual(page[0], "- dates.csv has gil, and nothing of that name was handed in.")
        self.assertRegex(page[1], r"^- Not in the roster, or not one person's alone: hal\\_\\\[1\\\]\. ")
        self.assertEqual(page[2:], ["- Nothing was handed in by Bo.", "- Of the same student 7\\_a counts for nothing, 7\\_b counts for 01.scores 05.rescale."])

    def earlier(self, *submissions: object, points: float = 0) -> Grade:
        """What Gradescope's autograder says of 01.scores after these earlier results."""
        (one, _) = self.exercises
        (self.out / "submission_metadata.json").write_text(json.dumps({"previous_submissions": list(submissions)}))
        now = Grade("submission", {one.id: Verdict("wrong", ["now"])}, {one.id: points}, late={one.id: 2})
        return with_earlier(now, self.out / "submission", [one])

    def test_on_gradescope_earlier_results_count_if_they_have_more_points(self):
        (one, _) = self.exercises
        def before(score, number=one.id, when="2027-02-07T10:00:00.0-08:00", output="right\na line"):
            return {"submission_time": when, "results": {"tests": [{"number": number, "score": score, "output": output}]}}

        most = one.points
        for given, points, lines in [
                ([before(most)], most, ["of your submission of 2027-02-07, 10:00", "a line"]),
                ([before(most, output="right\nof your submission of x\ny")], most, ["of your submission of x", "y"]),
                ([before(most / 2), before(most, when="2027-02-08T11:30")], most, ["of your submission of 2027-02-08, 11:30", "a line"]),
                ([before(most + 1)], 0, ["now"]), ([before(most, "05.rescale")], 0, ["now"]), ([before(-1), before("3"), before(None)], 0, ["now"]),
                ([None, {}, {"results": None}, {"results": {"tests": [1]}}, {"results": {"tests": [{}]}}], 0, ["now"])]:
            with self.subTest(given=given):
                result = self.earlier(*given)
                self.assertEqual((result.points[one.id], result.verdicts[one.id].lines), (points, lines))
                self.assertEqual(result.late, {} if points else {one.id: 2})
        self.assertEqual(self.earlier(before(most / 2), points=most).verdicts[one.id].lines, ["now"])
        now = Grade("ada", {one.id: Verdict("wrong")}, {one.id: 0})
        (self.out / "submission_metadata.json").write_text(json.dumps({"previous_submissions": [before(most)]}))
        self.assertEqual(with_earlier(now, self.out / "ada", [one]).points[one.id], 0, "among a class's archives it is a student's file")

    def test_a_stub_and_a_question_without_an_answer_are_no_attempt(self):
        code, question = self.course.select(["01.scores", "01.sectors"])
        (debug,) = self.course.select(["01.heads"])
        stub, done = self.course.student_files([code])[code.file], self.course.text(code)
        (planted,) = self.course.student_files([debug]).values()
        for one, text, expected in [(code, None, False), (code, stub, False), (code, done, True), (code, "no markers", True), (question, "{", False),
                                    (question, '{"student": "a", "answers": {"01.sectors": null}}', False), (question, "[]", False),
                                    (question, '{"student": "a", "answers": {"01.sectors": 0}}', True), (debug, planted, False),
                                    (debug, self.course.text(debug), True)]:
            with self.subTest(exercise=one.id, text=str(text)[:60]):
                texts = {} if text is None else {one_submission.file_of(one): text}
                self.assertEqual(one_submission.attempts(self.course, Submission("x", texts), one), expected)

    def test_what_has_nothing_of_a_week_does_not_count_for_it(self):
        (first, second), states = (one.file for one in self.exercises), {"7_1": ["right", "not handed in"], "7_2": ["not handed in", "right"]}
        for handed_in in ({"7_1": "", "7_2": ""}, {"7_1": "2027-02-07", "7_2": "2027-02-08"}):
            with self.subTest(handed_in=handed_in):
                row, _ = self.of_two_weeks(handed_in, states, {"7_1": [first], "7_2": [second]}, {"7_1": {self.exercises[0].id: "an asm"}})
                self.assertEqual(row[5:7], ["right", "right"])
                self.assertIn("- 7\\_2, 01.scores (", (self.out / "class.md").read_text())
                self.assertNotIn("the questions", (self.out / "class.md").read_text())

    def test_where_no_date_is_known_it_is_by_their_names(self):
        for names, last in [(["1001_attempt_9", "1001_attempt_10"], "1001_attempt_10"),
                            (["1001_hw1-2", "1001_hw1-10", "1001_hw1"], "1001_hw1-10"),
                            (["1001_77_900_hw1-9", "1001_77_1000_hw1"], "1001_77_1000_hw1"), (["1001_b", "1001_a10", "1001_a9"], "1001_b")]:
            with self.subTest(names=names):
                self.assertEqual(in_order(names, {})[-1], last)

    def test_whose_a_submission_is(self):
        """Students choose what their files are called: nobody becomes another by that."""
        ada, grace = Person("1001", "Ada Example", "ada@b"), Person("1002", "Grace Sample", "grace@b")
        namesakes = [Person("7", "Eve Example", "eve@b"), Person("8", "Eve Example", "eve2@b")]
        users = [Person("grace", "Grace Sample", ""), Person("ada-grace", "Ada Example", ""), Person("ada", "Ada", "")]
        jose, jean, bo, li = (Person(id, name, "") for id, name in [("3", "Jos\u00e9 N\u00fa\u00f1ez"), ("4", "Jean-Luc O'Neil"),
                                                                  ("5", "Bo Li"), ("6", "Li Bo")])
        canvas = [jose, jean, bo, li, Person("9", "Li Bo Chen", "")]
        for name, people, expected in [
                ("nunezjose_55_1000_hw1", canvas, jose), ("n\u00fa\u00f1ezjos\u00e9_55_1000_hw1", canvas, jose),
                ("oneiljeanluc_56_1001_h", canvas, jean), ("oneiljeanluc_LATE_56_1001_h", canvas, jean), ("chenlibo_57_1002_h", canvas, canvas[4]),
                ("libo_58_1003_h", canvas, None), ("libo_5_1003_h", canvas, bo), ("libo_6_1003_h", canvas, li), ("Bo Li_77_6", canvas, None),
                ("exampleada_77_888_hw1", [ada, grace], ada), ("hw1_1002", [ada, grace], grace),
                ("exampleada_77_888_1001", [ada, grace], ada), ("exampleada_77_888_1002", [ada, grace], None),
                ("Ada Example_77_1002", [ada, grace], None), ("ada@b_1002", [ada, grace], None),
                ("Eve Example_8", namesakes, namesakes[1]), ("Eve Example_9", namesakes, None),
                ("hw1-ada-grace", users, users[1]), ("hw1-grace", users, users[0]), ("hw1-ada", users, users[2]),
                ("ada-grace_grace", users, None), ("", users, None)]:
            with self.subTest(name=name):
                self.assertEqual(person_of(name, people), expected)

    def test_who_is_called_like_another_takes_nothing_from_them(self):
        """An account on GitHub ends as another's id, or is another's name."""
        people = [Person("ada", "Ada Example", ""), Person("grace", "Grace Sample", "")]
        for names, adas in [(["hw1-ada", "hw1-z-ada", "hw1-grace"], ["hw1-ada"]), (["hw1-ada", "hw1-z-ada"], ["hw1-ada"]),
                            (["hw1-a-ada", "hw1-ada"], ["hw1-ada"]), (["ada-hw1", "z-ada-hw1", "grace-hw1"], ["ada-hw1"]),
                            (["hw1-ada", "hw1-ada-example", "hw1-grace"], ["hw1-ada"]),
                            (["exampleada_7_8_hw1", "exampleada_LATE_7_9_hw1-2"], ["exampleada_7_8_hw1", "exampleada_LATE_7_9_hw1-2"])]:
            with self.subTest(names=names):
                self.assertEqual([name for name, one in whose(names, people, str).items() if one.id == "ada"], adas)

    def test_a_file_s_name_takes_no_row_of_somebody_else(self):
        """A platform begins with who has handed it in. Of two that begin otherwise nobody knows whose they are."""
        people = [Person("1001", "Ada Example", "ada@b"), Person("1002", "Grace Example", "grace@b")]
        hers = "examplegrace_1002_88_hw1"
        for names, graces, said in [
                ([hers, "bo_9_77_grace example hw1"], [hers],
                 "bo_9_77_grace example hw1: it names Grace Example, and begins otherwise than " + hers),
                ([hers, "zoe_9_77_1002"], [hers], "zoe_9_77_1002: it names"),
                ([hers, "zoe_9_77_1002", "yan_8_hw_grace-example"], [hers], "zoe_9_77_1002, yan_8_hw_grace-example: these name"),
                (["Grace Example_77_assignsubmission_file_", "Bo Li_78_grace example"], ["Grace Example_77_assignsubmission_file_"], "Bo Li_78"),
                ([hers, "examplegrace_LATE_1002_89_hw1-1"], [hers, "examplegrace_LATE_1002_89_hw1-1"], ""),
                (["hw1-grace-example", "hw2-grace-example", "hw1-ada-example"], ["hw1-grace-example", "hw2-grace-example"], ""),
                (["gracie_1002", "bo_1002"], [], "gracie_1002, bo_1002: these name Grace Example, and begin differently"),
                (["501_1002", "502_1002"], [], "begin differently"), (["bo_9_77_grace example hw1"], ["bo_9_77_grace example hw1"], "")]:
            for order in (names, names[::-1]):
                with self.subTest(names=order):
                    lines = []
                    self.assertEqual(sorted(name for name, one in whose(order, people, lines.append).items() if one.id == "1002"), sorted(graces))
                    self.assertEqual(len(lines), 1 if said else 0, lines)
                    if order is names:
                        self.assertIn(said, "".join(lines))

    def test_a_result_says_what_does_not_hold(self):
        kernels = layers_in_words(frozenset(LAYERS))
        self.assertEqual(not_held({"kernels": kernels, "other files": "not seen"}), [])
        (line,) = not_held({"kernels": layers_in_words(frozenset(LAYERS) - {"namespaces"}), "other files": "not seen"})
        self.assertEqual(line, "Submissions' kernels are kept apart, but not by: no network, no other processes.")
        for held in ({"kernels": layers_in_words(frozenset({"limits", "calls"})), "other files": "seen"},
                     {"kernels": layers_in_words(frozenset()), "other files": "not seen"}):
            self.assertRegex(not_held(held)[0], "^Nothing is isolated here: ")

    def test_a_roster_that_is_none(self):
        table = self.out / "roster.csv"
        for text, words in [("1,Ada\n", "roster.csv:1: it must be id"), ("1,A\0da,a@b\n2,\n", "roster.csv"),
                            ("id,name,e-mail\n", "has nobody in it"), ("id,name,e-mail\n1,\u200b,a@b\n", "roster.csv:2: it must be id"),
                            ("1,Ada,a@b,soon\n", "roster.csv:1"), ("", "has nobody in it")]:
            table.write_text(text)
            with self.subTest(text=text), self.assertRaisesRegex(Failure, words):
                read_roster(table)
        for titles, there in [("Student ID,Name,Email", 1), ("ID,NAME,E-Mail", 1), ("SIS User ID,Full name,E-mail address", 1),
                              ("student_id,name,email,days", 1), ("id-software,Ada,", 2), ("name,Ada,ada@name", 2), ("7,Id,", 2)]:
            table.write_text(f"{titles}\n1001,Grace,g@b\n")
            with self.subTest(titles=titles):
                self.assertEqual(len(read_roster(table)), there)
        for first, second in [("1", "1"), ("Zo\u00eb", "Zoe\u0308"), ("a-1", "A 1"), ("7", "\uff17")]:
            table.write_text(f"{first},Ada,a@b\n2,Grace,g@b\n{second},Eve,e@b\n")
            with self.subTest(id=ascii(second)):
                said = []
                self.assertEqual([one.name for one in read_roster(table, said.append)], ["Ada", "Grace"])
                self.assertRegex(said[0], "roster.csv:3: the id .* stands there a second time")

    def test_log_points(self):
        one, two = (one.points for one in self.exercises)
        people = [Person("1001", "Ada", "ada@b"), Person("1002", "Grace", "grace@b"), Person("1003", "Mary", "mary@b")]
        roster = self.out / "roster.csv"
        roster.write_text("Zoe\u0308,Zoe\u0308,z@b\n")  # as a Mac writes it
        self.assertEqual([one.id for one in read_roster(roster)], ["Zo\u00eb"])
        table = self.out / "log.csv"
        table.write_text("id,first,second\n1001,8.5,10\n1003,,4\n1001,10\nnobody,3\nZoe\u0308 X,7\n")
        said = []
        log = read_log(table, people, ["ada", "grace", "Zo\u00eb X"], said.append)
        self.assertEqual([line.partition("log.csv")[2] for line in said],
                         [":4: 1001 stands there a second time: this line does not count.",
                          ":5: nobody is nobody here: this line does not count."])
        self.grade_class({"ada": ["right", "wrong"], "grace": ["right", "right"], "Zo\u00eb X": ["wrong", "wrong"]}, people=people, log=log)
        rows = {row[0]: row[3:5] + row[-2:] for row in csv.reader((self.out / "grades.csv").read_text().splitlines())}
        of = str(one + two + 20)
        self.assertEqual(rows, {"submission": ["points", "of", "log points", "late days"], "ada": [str(one + 18.5), of, "18.5", "0"],
                                "grace": [str(one + two), of, "0", "0"], "Zo\u00eb X": ["7.0", of, "7.0", "0"],
                                "": ["4.0", of, "4.0", "0"]})
        self.assertIn("The log has 18.5 of 20 points.", (self.out / "students/ada.md").read_text())
        self.assertEqual([row.rpartition(",")[2] for row in (self.out / "canvas.csv").read_text().splitlines()[1:]],
                         [of, f"{one + 18.5:g}", f"{one + two:g}", "4"])
        for text, words in [("1001\n", "log.csv:1: it must be an id and points"), ("1001,11\n", "0 to 10"), ("a,1\n1001,-1\n", "log.csv:2"),
                            ("1001,nan\n", "0 to 10")]:
            table.write_text(text)
            with self.subTest(text=text), self.assertRaisesRegex(Failure, words):
                read_log(table, people, [], str)

    def test_what_is_kept_has_its_flags(self):
        kept = self.out / "x.json"
        graded = Grade("ada", {"01.scores": Verdict("right", ["a line"])}, {"01.scores": 3}, flags={"01.scores": "an asm"})
        kept.write_text(json.dumps({"key": "k", "grade": dataclasses.asdict(graded)}))
        self.assertEqual(whole_class._kept(kept, "k"), graded)

    def run_grade(self, *words: str) -> "tuple[int, list[str]]":
        """(status, lines) of the command on the class, whose submissions are all found right, with nothing built."""
        parser = argparse.ArgumentParser()
        grade_command.add_arguments(parser)
        arguments = parser.parse_args([str(self.out / "class"), f"--out={self.out}/grades", *words])
        arguments.passed_on = []
        bench = types.SimpleNamespace(root=self.course.root, course=self.course, no_gpu="", held={})
        with mock.patch.object(grade_command, "_workbench", return_value=bench), \
                mock.patch.object(grade_command.packages, "require_versions"), \
                mock.patch.object(grade_command.packages, "install_for_grading"), \
                mock.patch.object(whole_class, "grade", side_effect=lambda _, submission, exercises: Grade(
                    submission.name, {one.id: Verdict("right") for one in exercises}, {one.id: one.points for one in exercises})), \
                mock.patch("builtins.print") as printed:
            status = grade_command.run(arguments)
        return status, [str(call[0][0]) for call in printed.call_args_list]

    def test_a_week_and_what_is_said_of_wrong_tables(self):
        """One line each, and the class is graded."""
        one, two = self.exercises
        for name in ("1001_ada", "1002_grace", "a stranger"):
            (self.out / "class" / name / Path(two.file).parent).mkdir(parents=True)
            (self.out / "class" / name / two.file).write_text("// x\n")
        for file, text in {"course.json": json.dumps({
                "title": "T", "late": {"percent_a_day": 10, "days": 3}, "points": {two.id: 2.5}, "weeks": [
                    {"title": "one", "begins": "2027-02-01", "due": "2027-02-08", "exercises": [one.id]},
                    {"title": "two", "begins": "2027-02-08", "due": "2027-02-15T18:00", "exercises": [two.id]}]}),
                "roster.csv": "id,name,e-mail\n1001,Ada,a@b\n1002,Grace,g@b\n1001,Eve,e@b\n1003,Mary,m@b\n",
                "dates.csv": "1001_ada,2027-02-16T17:00\n1002_grace,2027-02-15T18:00\na stranger,2027-02-09\nnobody,2027-02-09\n",
                "log.csv": "1001,8\n7777,9\n"}.items():
            (self.out / file).write_text(text)
        tables = [f"--{name}={self.out / name}.csv" for name in ("roster", "dates", "log")]
        status, said = self.run_grade(f"--course={self.out}/course.json", "--week=2", *tables)
        self.assertEqual(status, 0)
        rows = list(csv.reader((self.out / "grades/grades.csv").read_text().splitlines()))
        self.assertEqual(rows, [
            ["submission", "id", "name", "points", "of", two.id, f"{two.id} points", "log points", "late days"],
            ["1001_ada", "1001", "Ada", "10.25", "12.5", "right", "2.25", "8.0", "1"],
            ["1002_grace", "1002", "Grace", "2.5", "12.5", "right", "2.5", "0", "0"],
            ["a stranger", "", "", "2.5", "12.5", "right", "2.5", "0", "0"],
            ["", "1003", "Mary", "0", "12.5", "not handed in", "0", "0", "0"]])
        for words in ("roster.csv:4: the id 1001 stands there a second time", "log.csv:2: 7777 is nobody here",
                      "dates.csv has nobody, and nothing of that name", "Not in the roster, or not one person's alone: a stranger."):
            self.assertEqual(len([line for line in said if words in line]), 1, said)
        with self.assertRaisesRegex(Failure, "--week is 3: the course has weeks 1 to 2") as caught:
            self.run_grade(f"--course={self.out}/course.json", "--week=3")
        self.assertEqual(caught.exception.status, 2)

    def test_questions_that_were_asked_of_somebody_else(self):
        self.exercises = self.course.select(["01.sectors", "05.rescale"])
        self.exercises.sort(key=lambda one: one.id)
        people = [Person("1", "Ada", "ada@b"), Person("2", "Eve", "eve@b")]
        states = {"ada": ["right", "right"], "eve": ["right", "right"]}
        self.grade_class(states, people=people, answers={name: json.dumps({"student": "Ada", "answers": {}}) for name in states})
        rows = {row[0]: row[5:7] for row in csv.reader((self.out / "grades.csv").read_text().splitlines()[1:])}
        self.assertEqual(rows, {"ada": ["right", "right"], "eve": ["another's questions", "right"]})

    def test_alike_in_groups(self):
        pairs = [("a", "b", "x", 0.9), ("c", "d", "x", 0.95), ("b", "e", "y", 0.85)]
        self.assertEqual(similarity.groups(pairs), [(["a", "b", "e"], ["x", "y"], 0.85), (["c", "d"], ["x"], 0.95)])

    def test_dates_that_are_none(self):
        table = self.out / "dates.csv"
        for text in ("ada\n", "ada,yesterday\n", "x,2027-02-08\nada,2027-02-30\n"):
            table.write_text(text)
            with self.assertRaises(Failure) as caught:
                read_dates(table)
            self.assertIn(f"dates.csv:{len(text.splitlines())}: it must be a submission and a date",
                          str(caught.exception))
        self.assertRaises(Failure, read_dates, self.out / "none")
        for when in ("2027-02-17 6pm", "2027-02-17T9:00", "2027-02-17T18.30", "2027-02-17xyz", "2027-02-17T24:00", "2027-W07-3",
                     "20270217", "2027-02-17T18:00\nx"):
            table.write_text(f'x,2027-02-08\nada,"{when}"\n')
            with self.subTest(when=when), self.assertRaises(Failure) as caught:
                read_dates(table)
            self.assertTrue(str(caught.exception).endswith(
                "dates.csv:2: it must be a submission and a date, as ada,2027-02-17 or ada,2027-02-17T18:00, and is ada,"
                + when.replace("\n", "?")), caught.exception)
            self.assertEqual((caught.exception.status, "\n" in str(caught.exception)), (2, False))

    def test_dates_as_platforms_write_them(self):
        table = self.out / "dates.csv"
        for when, expected in [("2027-02-17", "2027-02-17"), ("2027-02-17 18:30", "2027-02-17 18:30:00"),
                               ("2027-02-17T18:30:59.25-08:00", "2027-02-17 18:30:00"), ("2027-02-17 18:30:59 -0800", "2027-02-17 18:30:00")]:
            table.write_text(f"submission,date\nada,{when}\n")
            self.assertEqual({name: str(day) for name, day in read_dates(table).items()}, {"ada": expected})
        table.write_text("Zoe\u0308,2027-02-08\nZo\u00eb,2027-03-08\n")
        said = []
        self.assertEqual({name: str(day) for name, day in read_dates(table, said.append).items()}, {"Zo\u00eb": "2027-02-08"})
        self.assertTrue(said[0].endswith("dates.csv:2: Zo\u00eb stands there a second time: this line does not count."))

    def test_gradescope_says_when(self):
        (self.out / "submission").mkdir()
        self.assertIsNone(date_of_gradescope(self.out / "submission"))
        (self.out / "submission_metadata.json").write_text('{"created_at": "2027-02-17T23:30:00.365935-08:00"}')
        self.assertEqual(str(date_of_gradescope(self.out / "submission")), "2027-02-17 23:30:00")

    def test_an_hour_at_which_something_is_due(self):
        for handed_in, due, days in [("2027-02-08T17:59", "2027-02-08T18:00", 0), ("2027-02-08T18:01", "2027-02-08T18:00", 1),
                                     ("2027-02-09T18:00", "2027-02-08T18:00", 1), ("2027-02-09T18:01", "2027-02-08T18:00", 2),
                                     ("2027-02-08T23:59", "2027-02-08", 0), ("2027-02-09T00:01", "2027-02-08", 1),
                                     ("2027-02-08", "2027-02-08T18:00", 0)]:
            with self.subTest(handed_in=handed_in, due=due):
                self.assertEqual(max(0, late_days.days_late(late_days._day(handed_in), due)), days)

    def test_two_submissions_of_one_name(self):
        (self.out / "in/ada").mkdir(parents=True)
        (self.out / "in/ada.zip").write_bytes(b"")
        self.assertEqual([one.name for one in submissions_in(self.out / "in", ["x"])], ["ada", "ada.zip"])
        self.assertRaises(Failure, submissions_in, self.out / "in/ada", ["x"])

    def test_what_is_no_submission_is_named(self):
        (self.out / "in/ada").mkdir(parents=True)
        for name in ("grace.rar", "1_online.cu", ".DS_Store"):
            (self.out / "in" / name).write_bytes(b"")
        self.assertEqual(no_submissions_in(self.out / "in"), ["1_online.cu", "grace.rar"])
        self.grade_class({"ada": ["right", "right"]}, others=["1_online.cu", "grace.rar"])
        self.assertIn("Not graded, because each is neither a directory nor a zip or tar archive: 1\\_online.cu, "
                      "grace.rar.",
                      (self.out / "class.md").read_text())

    def test_results_lie_where_they_lose_nothing(self):
        (self.out / "class/ada").mkdir(parents=True)
        (self.out / "ada.zip").write_bytes(b"")
        (self.out / "notes.csv").write_text("hi")
        for submission, out, words in [("ada.zip", "grades",
                                        "of one submission it must be a file that ends with .json"),
                                       ("class", "notes.csv", "which is a file"),
                                       ("class", "class", "among the submissions"),
                                       ("class", "class/grades", "among the submissions")]:
            with self.subTest(out=out), self.assertRaises(Failure) as caught:
                grade_command.require_a_place(self.out / submission, self.out / out)
            self.assertIn(words, str(caught.exception))
            self.assertEqual(caught.exception.status, 2)
        for submission, out in [("ada.zip", "ada.json"), ("class", "ada.json"), ("class", "grades")]:
            grade_command.require_a_place(self.out / submission, self.out / out)

    def test_a_class_s_tables_are_not_for_one_submission(self):
        for option in ("roster", "log"):
            with self.subTest(option=option), self.assertRaises(Failure) as caught:
                self.run_grade(f"--out={self.out}/ada.json", f"--{option}={self.out}/x.csv")
            self.assertEqual((str(caught.exception), caught.exception.status), (
                f"--{option} is for a class: --out must be a directory, and is {self.out}/ada.json", 2))

    def test_who_cannot_be_compared(self):
        long = "float x = 1;\n" * 20
        with mock.patch.object(pythons, "with_packages", side_effect=Failure("pip could not install x")):
            self.assertEqual(similarity.alike({"a": {"05.rescale": long}, "b": {"05.rescale": long + "y"}},
                                              self.course),
                             ([], "Not compared: pip could not install x."))
            self.assertEqual(similarity.alike({"a": {"05.rescale": long}, "b": {"05.rescale": "short"}}, self.course),
                             ([], ""))


class Formats(unittest.TestCase):
    def setUp(self):
        self.exercises = course.load().select(["01.scores", "05.rescale"])
        self.first, self.second = (one.points for one in self.exercises)
        self.grade = Grade("ada", {"01.scores": Verdict("right"), "05.rescale": Verdict("hangs", ["it has not ended"])},
                           {"01.scores": self.first, "05.rescale": 0}, seconds=12.4)

    def test_gradescope(self):
        written = json.loads(grade_reports.written(self.grade, self.exercises, {"network": "none"}))
        self.assertEqual((written["score"], written["execution_time"], written["stdout_visibility"]),
                         (self.first, 12, "hidden"))
        self.assertEqual(written["extra_data"]["sandbox"], {"network": "none"})
        self.assertEqual([(test["number"], test["score"], test["max_score"], test["status"])
                          for test in written["tests"]],
                         [("01.scores", self.first, self.first, "passed"), ("05.rescale", 0, self.second, "failed")])
        self.assertEqual(written["tests"][1]["output"], "hangs\nit has not ended")
        self.assertNotIn("isolated", written["output"])
        written = grade_reports.gradescope(self.grade, self.exercises, {"timed kernels": "apart from the judge"})
        self.assertIn("apart from the judge, but less isolated", written["output"])


if __name__ == "__main__":
    unittest.main()
