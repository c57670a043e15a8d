"""What exercises.json and the sources say of one another, and what a student's file looks like."""

import json
import re
import unittest

from little import CODE, DEBUG, MEASURE, MMA, ONLINE, SOLUTION, LittleTree

from tools import course
from tools.base import ROOT, Failure
from tools.course import wrong


def limit(count: str, bounds: object) -> dict:
    return {"problem": {}, "kernel": "", "counts": {count: bounds}}


class Reading(LittleTree):
    def failure(self) -> str:
        with self.assertRaises(Failure) as caught:
            self.loaded()
        self.assertEqual(caught.exception.status, 2)
        self.assertNotIn("\n", str(caught.exception))
        return str(caught.exception)

    def test_they_are_there(self):
        self.assertEqual([one.id for one in self.loaded().exercises], ["05.rescale", "06.barrier", "05.sectors"])
        rescale = self.exercise("05.rescale")
        self.assertEqual((rescale.chapter, rescale.name, rescale.direction), ("05_online", "rescale", "forward"))

    def test_a_chapter_stands_for_its_exercises(self):
        self.assertEqual([one.id for one in self.loaded().select(["5"])], ["05.rescale", "05.sectors"])
        self.assertEqual(len(self.loaded().select([])), 3)

    def test_who_asks_for_what_is_not_there_learns_what_is(self):
        for word, expected in [("05.nothing", "no exercise 05.nothing (exercises: 05.rescale, 06.barrier, 05.sectors)"),
                               ("5.rescal", "no exercise 5.rescal; did you mean 05.rescale?"),
                               ("07", "chapter 07_back has no exercises (chapters that have some: 05, 06)"),
                               ("99", "no chapter 99")]:
            with self.assertRaises(Failure) as caught:
                self.loaded().select([word])
            self.assertIn(expected, str(caught.exception))
            self.assertEqual(caught.exception.status, 2)

    def test_file_and_line_of_what_is_wrong_in_the_declarations(self):
        for entries, expected in [
            ([CODE, {**CODE, "id": "5x"}], "an exercise's id must be a chapter's number and a name"),
            ([CODE, CODE], "exercise 05.rescale stands there twice"),
            ([{**CODE, "kind": "essay"}], "the kind of 05.rescale is essay: it must be code, debug, measure"),
            ([{**CODE, "tests": ["inputs", "no_such_kind"]}],
             "there is no kind of test no_such_kind (there are inputs, trace, moved)"),
            ([{**CODE, "points": "four"}], 'points of 05.rescale is "four": it must be of type float'),
            ([{key: value for key, value in CODE.items() if key != "minutes"}], "05.rescale has no minutes"),
            ([{**CODE, "points": True}], "points of 05.rescale is true: it must be of type float"),
            ([{**CODE, "colour": "red"}], "05.rescale has a key colour, which it cannot have"),
            ([{key: value for key, value in CODE.items() if key != "title"}], "05.rescale has no title"),
            ([{**CODE, "file": "05_online/9_gone.cu"}], "which is no file of chapter 05"),
            ([{**CODE, "file": "06_flash/1_mma.cu"}], "which is no file of chapter 05"),
            ([{**CODE, "shown_in": ["05_online/9_gone.cu"]}], "05.rescale is shown in 05_online/9_gone.cu, which is no file"),
            ([{**CODE, "direction": "sideways"}], "it must be forward or backward"),
            ([{**CODE, "limits": [{"counts": {}}]}], "a limit of 05.rescale has no"),
            ([{**CODE, "limits": [limit("barrier", 1)]}], "a limit of 05.rescale is on barrier, which the engine does not count (it counts "),
            ([{**CODE, "limits": [limit("barriers", "1")]}], 'barriers of 05.rescale is "1": it must be the most that may be counted, or'),
            ([{**CODE, "limits": [limit("barriers", [1])]}], "barriers of 05.rescale is [1]: it must be the most that may be counted, or"),
            ([CODE, {**CODE, "id": "05.missing"}], "05_online/1_online.cu has no `// exercise missing: ..`"),
        ]:
            with self.subTest(expected=expected):
                self.declare(*entries)
                said = self.failure()
                self.assertIn(expected, said)
                self.assertRegex(said, r"^common/course/exercises\.json:\d+: ")

    def test_the_line_is_that_of_the_word(self):
        self.declare(CODE, {**DEBUG, "tests": ["inputs", "wrong_kind"]})
        line = int(self.failure().split(":")[1])
        self.assertIn("wrong_kind", self.read(str(course.FILE)).splitlines()[line - 1])

    def test_what_is_no_json(self):
        self.write(str(course.FILE), '{"exercises": [\n{]}')
        self.assertRegex(self.failure(), r"exercises\.json:2: ")

    def test_file_and_line_of_what_is_wrong_in_a_source(self):
        for text, expected in [
            (ONLINE + ONLINE, "1_online.cu:7: exercise rescale begins a second time"),
            (ONLINE.replace("// end", "// the end"), "1_online.cu:2: exercise rescale has no end"),
            (ONLINE + "// exercise other: x\n// end other |\n",
             "1_online.cu:6: exercise other is not in common/course/exercises.json"),
            (ONLINE.replace(" | correction = 1;", ""), "1_online.cu:4: the end of exercise rescale has no bar"),
        ]:
            self.write("05_online/1_online.cu", text)
            self.assertIn("05_online/" + expected, self.failure())

    def test_a_planted_mistake_has_its_file_to_itself(self):
        self.write("06_flash/1_mma.cu", ONLINE)
        self.declare(CODE, DEBUG, {**CODE, "id": "06.rescale", "file": "06_flash/1_mma.cu"})
        self.assertIn("06.barrier plants a mistake in this file", self.failure())

    def test_a_planted_mistake_that_is_not_there(self):
        (self.root / "common/course/debug/06.barrier.json").unlink()
        self.assertIn("cannot read common/course/debug/06.barrier.json", self.failure())

    def test_planted_lines_that_stand_in_the_right_file_too(self):
        self.write("common/course/debug/06.barrier.json",
                   '[{"right": ["load();", "__syncthreads();"], "planted": ["load();"]}]')
        self.assertIn("common/course/debug/06.barrier.json:1: the planted lines stand in 06_flash/1_mma.cu as it is",
                      self.failure())

    def test_a_source_that_is_no_text(self):
        (self.root / "05_online/1_online.cu").write_bytes(b"\xff\xfe\x00")
        self.assertIn("05_online/1_online.cu is not UTF-8", self.failure())


class TheRealOnes(unittest.TestCase):
    def test_are_as_they_have_to_be(self):
        there = course.load()
        for exercise in there.exercises:
            self.assertRegex(exercise.title, {"debug": "^find ", "measure": "^count ", "code": "^(?!find |count )"}[exercise.kind])
            self.assertLessEqual(len(exercise.title), 70, exercise.id)
            self.assertIn(exercise.difficulty, (1, 2, 3), exercise.id)
            self.assertFalse(exercise.required and exercise.needs_gpu, exercise.id)
            self.assertGreater(exercise.points, 0, exercise.id)
            self.assertIn(exercise.minutes, range(5, 121), exercise.id)
            self.assertEqual(len(exercise.hints), 3, f"{exercise.id}: hints come in three steps")
            for line in course.lines_of(there, exercise):
                for hint in exercise.hints:
                    self.assertNotIn(course.bare(line), course.bare(hint), f"{exercise.id}: a hint is no solution")
            if exercise.kind != "measure":
                self.assertTrue(there.attempted(exercise), exercise.id)
                self.assertNotEqual(there.handed_out(exercise), None, exercise.id)

    def test_their_kinds_of_tests_are_those_of_the_suite(self):
        self.assertEqual(course.kinds_of_tests()[:3], ["trace", "lengths", "inputs"])
        self.assertIn("moved", course.kinds_of_tests())


class TheCoursePage(unittest.TestCase):
    """What common/course/README.md says of the exercises."""

    def test_its_weeks_and_their_points(self):
        exercises = {one.id: one.points for one in course.load().exercises}
        text = (ROOT / "common/course/README.md").read_text()
        self.assertIn(f"There are {len(exercises)}, with {sum(exercises.values())} points.", text)
        for page in ("README.md", "common/book/reference.md"):
            self.assertIn(f"There are {len(exercises)} exercises:", (ROOT / page).read_text())
        self.assertIn("Each chapter up to 12 has exercises of all three kinds. In the chapters from 07 to 10 at least three are about "
                      "the backward.", text)
        for number in range(1, 13):
            of_chapter = [one for one in course.load().exercises if int(one.id[:2]) == number]
            self.assertEqual({one.kind for one in of_chapter}, set(course.KINDS), number)
            backwards = [one.id for one in of_chapter if one.direction == "backward"]
            least = 3 if 7 <= number <= 10 else 2 if number == 12 else 0
            (self.assertGreaterEqual if least else self.assertEqual)(len(backwards), least)
        elsewhere = [one.id for one in course.load().exercises if one.file.startswith("common/course/")]
        self.assertIn("Twelve exercises are about kernels that no chapter has", text)
        self.assertEqual(len(elsewhere), 12)
        for weeks in (4, 8, 13):
            rows = re.findall(r"^\| (\d+) \| .* \| (.*) \| ?(\d*) \|$",
                              text.partition(f"**{weeks} weeks**")[2].partition("**")[0], re.M)
            self.assertEqual([int(week) for week, _, _ in rows], list(range(1, weeks + 1)))
            handed_in = []
            for week, names, points in rows:
                names = re.findall(r"\d\d\.\w+", names)
                self.assertEqual(sum(exercises[name] for name in names), int(points or 0), f"week {week} of {weeks}")
                handed_in += names
            self.assertEqual(len(handed_in), len(set(handed_in)))
        self.assertEqual(set(handed_in), set(exercises), "in 13 weeks there is time for all")


class InATreeWithSolutions(LittleTree):
    def test_solutions_are_attempts(self):
        there = self.loaded()
        self.assertTrue(all(there.attempted(one) for one in there.exercises if one.kind != "measure"))


class InAStudentsTree(LittleTree):
    def setUp(self):
        super().setUp()
        self.hand_out()
        self.rescale, self.barrier = self.exercise("05.rescale"), self.exercise("06.barrier")

    def test_it_has_stubs_and_mistakes_and_no_bars(self):
        self.assertEqual(self.read("05_online/1_online.cu"),
                         ONLINE.replace(SOLUTION, "  correction = 1;\n").replace(" | correction = 1;", ""))
        self.assertEqual(self.read("06_flash/1_mma.cu"), "load();\nuse();\n")

    def test_whitespace_is_no_attempt(self):
        text = self.read("05_online/1_online.cu")
        self.write("05_online/1_online.cu", text.replace("  correction = 1;", "\n\n\tcorrection  = 1;\n"))
        self.write("06_flash/1_mma.cu", "load();\n\nuse();\n")
        self.assertFalse(self.loaded().attempted(self.rescale))
        self.assertFalse(self.loaded().attempted(self.barrier))

    def test_anything_else_is(self):
        text = self.read("05_online/1_online.cu")
        self.write("05_online/1_online.cu", text.replace("correction = 1;", "correction = 2;"))
        self.write("06_flash/1_mma.cu", MMA)
        self.assertTrue(self.loaded().attempted(self.rescale))
        self.assertTrue(self.loaded().attempted(self.barrier))

    def test_code_elsewhere_in_the_file_does_not_count(self):
        self.write("05_online/1_online.cu", self.read("05_online/1_online.cu").replace("a(l, sum);", "other();"))
        self.assertFalse(self.loaded().attempted(self.rescale))

    def test_a_marker_that_is_gone(self):
        self.write("05_online/1_online.cu", "a();\n")
        with self.assertRaisesRegex(Failure,
                                    "05_online/1_online.cu has no `// exercise rescale: ..`, which 05.rescale needs"):
            self.loaded()


class SomeOfThem(LittleTree):
    def test_what_is_not_chosen_stands_there_as_ordinary_code(self):
        text = ONLINE + "// exercise other: x\n  solved();\n// end other |\n"
        self.write("05_online/1_online.cu", text)
        self.declare(CODE, {**CODE, "id": "05.other"}, MEASURE)
        there = self.loaded()
        files = there.student_files(there.select(["05.other", "05.sectors"]))
        self.assertEqual(files, {"05_online/1_online.cu": "void f() { a(l, sum);\n" + SOLUTION
                                 + "b(); }\n// exercise other: x\n// end other\n"})


class Solutions(LittleTree):
    def test_lines_that_say_nothing_do_not_count(self):
        self.assertEqual(course.lines_of(self.loaded(), self.exercise("06.barrier")), [])
        self.assertEqual(course.lines_of(self.loaded(), self.exercise("05.rescale")), ["l = l * correction + sum;"])


class WrongSolutions(LittleTree):
    def declare_wrong(self, entry: dict) -> None:
        for one in self.loaded().exercises:
            self.write(str(wrong.WRONG / f"{one.id}.json"), json.dumps([entry] if one.id == "05.rescale" else []))

    def test_they_are_solutions_with_a_change(self):
        self.declare_wrong({"name": "not_corrected", "mistake": "x", "right": ["l * correction"], "wrong": ["l"]})
        (one,) = wrong.wrong_solutions(self.loaded())
        self.assertEqual((one.title, one.text), ("05.rescale not_corrected", ONLINE.replace("l * correction", "l")))

    def test_what_is_wrong_with_their_file(self):
        entry = {"name": "not_corrected", "mistake": "x", "right": ["not there"], "wrong": ["l"]}
        for wrong_entry, expected in [(entry, "not_corrected: what is called right stands 0 times in the solution, not "
                                              "once"),
                                      ({**entry, "right": ["l"]}, "stands 2 times"),
                                      ({"name": "x"}, "a list of entries with mistake, name")]:
            self.declare_wrong(wrong_entry)
            with self.assertRaises(Failure) as caught:
                wrong.wrong_solutions(self.loaded())
            self.assertRegex(str(caught.exception), f"^common/course/wrong/05.rescale.json:1: .*{expected}")
        (self.root / wrong.WRONG / "05.rescale.json").unlink()
        with self.assertRaisesRegex(Failure, "cannot read common/course/wrong/05.rescale.json"):
            wrong.wrong_solutions(self.loaded())


if __name__ == "__main__":
    unittest.main()
