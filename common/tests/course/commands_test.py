"""What ./workbook check does with its flags, and which line it says to who gives it something wrong."""

import argparse
import io
import os
import subprocess
import unittest
from contextlib import redirect_stdout
from unittest import mock

from little import CODE, DEBUG, SOLUTION, LittleTree

from tests.tiers import at_length
from tools import course
from tools.base import ROOT, Failure, cuda
from tools.commands import check, hint
from tools.course import judging


class Check(LittleTree):
    def setUp(self):
        super().setUp()
        self.judged = []
        there = self.loaded()
        course.Learner(there).start(there.exercises)
        self.write("05_online/1_online.cu", self.read("05_online/1_online.cu").replace("  correction = 1;\n", SOLUTION))
        for name, stand_in in [("load", self.loaded), ("judge", self.judge)]:
            patch = mock.patch.object(check, name, side_effect=stand_in)
            patch.start()
            self.addCleanup(patch.stop)

    def judge(self, there, exercise, gpu=False, **_):
        self.judged.append((exercise.id, gpu, SOLUTION in there.text(exercise)))
        return judging.Verdict("right" if self.judged[-1][2] else "wrong", [])

    def check(self, *words) -> tuple:
        """(exit status, what it says)"""
        parser = argparse.ArgumentParser()
        check.add_arguments(parser)
        with redirect_stdout(io.StringIO()) as said:
            status = check.run(parser.parse_args(words))
        return status, said.getvalue()

    def edited(self, *texts):
        """Stands in for a pause between two looks at the files: each time the file becomes another text; at last,
        Ctrl-C."""
        texts = enumerate(texts, 1)

        def sleep(_):
            number, text = next(texts, (0, None))
            if text is None:
                raise KeyboardInterrupt
            self.write("05_online/1_online.cu", text)
            os.utime(self.root / "05_online/1_online.cu", (number, number))  # no two times are rounded to the same

        return mock.patch.object(check.time, "sleep", side_effect=sleep)

    def test_the_status_says_whether_all_are_right(self):
        status, said = self.check("05.rescale")
        self.assertEqual((status, said.splitlines()[:2]), (0, ["05.rescale right: a title",
                                                               "Next: 05.sectors: a title (about 10 minutes)"]))
        self.write("05_online/1_online.cu", self.read("05_online/1_online.cu").replace(SOLUTION, "  l = 0;\n"))
        status, said = self.check("05.rescale", "06.barrier")
        self.assertEqual((status, said.splitlines()[-1]), (1, "0 of 2 right"))

    def test_a_right_kernel_that_grading_would_refuse_is_not_called_right(self):
        text = self.read("05_online/1_online.cu")
        self.write("05_online/1_online.cu", text.replace(SOLUTION, f'{SOLUTION}  printf("l");\n'))
        status, said = self.check("05.rescale")
        self.assertEqual((status, said.splitlines()[:2]), (1, [
            "05.rescale refused: a title", '  05_online/1_online.cu:4: a string or a character: printf("l");']))
        self.write("05_online/1_online.cu", text.replace(SOLUTION, f"{SOLUTION}  printf(l);\n"))
        status, said = self.check("05.rescale")  # what grading only doubts
        self.assertEqual((status, said.splitlines()[:2]), (0, [
            "05.rescale right: a title",
            "  (grading will show your instructor 05_online/1_online.cu:4: printf, which neither the file nor "
            "common/device offers, and which is not declared here)"]))

    def test_watching_checks_again_whenever_a_file_is_saved(self):
        right = self.read("05_online/1_online.cu")
        with self.edited(right.replace(SOLUTION, "  l = 0;\n"), right), self.assertRaises(KeyboardInterrupt):
            self.check("05.rescale", "--watch")
        self.assertEqual([right for _, _, right in self.judged], [True, False, True])

    def test_watching_goes_on_after_a_marker_has_been_damaged(self):
        right = self.read("05_online/1_online.cu")
        with self.edited(right.replace("// end rescale", "// the end"), right), self.assertRaises(KeyboardInterrupt), \
                redirect_stdout(io.StringIO()):
            self.check("05.rescale", "--watch")
        self.assertEqual(len(self.judged), 2, "the damaged file could not be judged, and the mended one was")

    def test_a_gpu_that_is_asked_for_has_to_be_there(self):
        choices = [("cpu", "no GPU answers: no nvidia-smi", "--gpu: no GPU answers: no nvidia-smi"),
                   ("cpu", "NVIDIA T4 answers, but there is no nvcc", "--gpu: NVIDIA T4 answers, but there is no nvcc")]
        for preset, why, expected in choices:
            with mock.patch.object(cuda, "choose_preset", return_value=cuda.Choice(preset, why)), \
                    self.assertRaises(Failure) as caught:
                self.check("05.rescale", "--gpu")
            self.assertEqual((str(caught.exception), self.judged), (expected, []))

    def test_a_gpu_is_used_if_it_is_asked_for_and_not_otherwise(self):
        with mock.patch.object(cuda, "choose_preset", return_value=cuda.Choice("cuda", "NVIDIA H200 answers")):
            self.check("05.rescale", "--gpu")
            self.check("05.rescale")
        self.assertEqual([gpu for _, gpu, _ in self.judged], [True, False])

    def test_a_name_is_needed_once_for_questions(self):
        status, said = self.check("05.sectors")
        self.assertEqual(status, 1)
        self.assertIn("./workbook check 05.sectors --student NAME", said)
        self.assertIn("predict first", self.check("05.sectors", "--student", "Ada")[1])
        for name, expected in ((" ", "a name has at least one letter or digit"), ("Grace", "has the answers of Ada")):
            with self.assertRaisesRegex(Failure, expected):
                self.check("05.sectors", "--student", name)


    def test_a_prediction_and_a_count_are_said_with_flags(self):
        self.check("05.sectors", "--student", "Ada")
        status, said = self.check("05.sectors", "--predict", "32")
        self.assertEqual(status, 1)
        self.assertIn("you predicted 32; now count", said)
        with mock.patch.object(judging, "counts", return_value=[("k", {"sectors": 40, "requests": 4})]):
            status, said = self.check("05.sectors", "--answer", "10", "--log", str(self.root / "log.md"))
        self.assertEqual(status, 0)
        self.assertIn("predicted 32, counted 10", said)
        self.assertIn("counted 10.\n", self.read("log.md"))

    def test_a_terminal_is_asked_for_what_is_missing(self):
        for typed, expected in [
                ([""], "--student NAME"), (["Ada", ""], "predict first"), (["32", ""], "you predicted 32; now count"), (EOFError, "now count"),
                (["10"], "predicted 32, counted 10"), ([], "predicted 32, counted 10")]:
            with mock.patch.object(check.sys, "stdin") as stdin, mock.patch("builtins.input", side_effect=typed), \
                    mock.patch.object(judging, "counts", return_value=[("k", {"sectors": 40, "requests": 4})]):
                stdin.isatty.return_value = True
                self.assertIn(expected, self.check("05.sectors")[1])

    def test_what_is_typed_must_be_a_number(self):
        self.check("05.sectors", "--student", "Ada")
        with mock.patch.object(check.sys, "stdin") as stdin, mock.patch("builtins.input", return_value="many"), \
                self.assertRaisesRegex(Failure, "^many is not a number from 0 to below 1e"):
            stdin.isatty.return_value = True
            self.check("05.sectors")

    def test_predictions_and_counts_are_of_one_question(self):
        self.check("05.sectors", "--student", "Ada")
        for words, expected in [
                (["05.rescale", "--predict", "3"], "--predict is about one question: name it, as in check 01.sectors --predict NUMBER"),
                (["05", "--answer", "3"], "--answer is about one question: name it, as in check 05.sectors --answer NUMBER")]:
            with self.assertRaisesRegex(Failure, f"^{expected}$") as caught:
                self.check(*words)
            self.assertEqual(caught.exception.status, 2)

    def test_a_log_that_is_there_stays(self):
        self.write("log.md", "mine\n")
        with self.assertRaisesRegex(Failure, "log.md is there already, and what you have written into it stays"):
            self.check("05", "--log", str(self.root / "log.md"))
        self.assertEqual((self.read("log.md"), self.judged), ("mine\n", []))


class Hint(LittleTree):
    def hint(self, *words) -> str:
        parser = argparse.ArgumentParser()
        hint.add_arguments(parser)
        with mock.patch.object(hint, "LearnersPath", lambda: course.LearnersPath(self.loaded())), \
                redirect_stdout(io.StringIO()) as said:
            hint.run(parser.parse_args(words))
        return said.getvalue()

    def test_of_an_exercise_and_of_the_first_of_a_chapter_that_is_not_right(self):
        self.declare(CODE, {**CODE, "id": "05.lse"}, DEBUG)
        text = self.read("05_online/1_online.cu")
        self.write("05_online/1_online.cu", text + text.replace("rescale", "lse"))
        self.assertIn("05.rescale, hint 1 of 2: first", self.hint("05"))
        self.assertIn("05.rescale, hint 2 of 2: second", self.hint("05.rescale"))
        there = self.loaded()
        course.Learner(there).start(there.exercises)
        self.write("05_online/1_online.cu", self.read("05_online/1_online.cu").replace("  correction = 1;\n", SOLUTION, 1))
        course.LearnersPath(there).checked(there.exercises[0], "right")
        self.assertIn("05.lse, hint 1 of 2: first", self.hint("05"))

    def test_all_in_a_tree_where_nothing_can_be_noted(self):
        self.declare(CODE)
        self.write(".learner", "a file, in which there can be no progress.json\n")
        said = self.hint("05.rescale")
        self.assertRegex(said, r"^05.rescale: it cannot be noted which hints you have seen \(.*file exists.*\), so "
                               r"here are all\n")
        self.assertIn("\n  1. first\n  2. second\n", said)


class BadInput(unittest.TestCase):
    """One line, and status 2, before anything is built."""

    @at_length
    def test_of_the_commands(self):
        for words, expected in [
            (["check", "05.nothing"], "no exercise 05.nothing (exercises: 01.scores, "),
            (["check", "77"], "no chapter 77 (chapters: 01_naive"),
            (["check", "--wach"], "unknown argument --wach; did you mean --watch?"),
            (["check", "01.sectors", "--predict", "many"], "many is not a number from 0 to below 1e+18"),
            (["check", "01.sectors", "--predict", "-3"], "-3 is not a number from 0 to below 1e+18"),
            (["check", "01.sectors", "--answer", "nan"], "nan is not a number from 0 to below 1e+18"),
            (["check", "01", "--log", str(ROOT)], "is not the name of a file"),
            (["hint", "05.nothing"], "no exercise 05.nothing"),
            (["reset", "05.nothing"], "no exercise 05.nothing"),
            (["handout", "05.nothing", "--out", "/nowhere/x"], "no exercise 05.nothing"),
            (["handout", "--week", "1", "--out", "/nowhere/x"], "--week needs --course"),
            (["handout", "--out", str(ROOT)], "is there already, and not empty"),
            (["grade", str(ROOT / "common"), "05.nothing", "--out", "/nowhere/r.json"], "no exercise 05.nothing"),
            (["grade", "/nowhere/x", "05.rescale", "06.pipeline", "--out", "/nowhere/r.json"],
             "/nowhere/x is neither a directory nor"),
            (["grade", str(ROOT / "common"), "--log", "x.csv", "--out", "/nowhere/r.json"],
             "--log is for a class: --out must be a directory, and is /nowhere/r.json"),
            (["grade", str(ROOT / "common"), "--patience", "nan", "--out", "/nowhere/r.json"],
             "--patience is nan: it must be more than 0"),
            (["handout"], "the following arguments are required: --out"),
            (["handout", "--out", "/nowhere/x", "--course", "/nowhere/course.json"],
             "cannot read /nowhere/course.json: No such file"),
        ]:
            with self.subTest(words=words):
                done = subprocess.run([ROOT / "workbook", *words], stdin=subprocess.DEVNULL, capture_output=True,
                                      text=True)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertRegex(done.stderr, r"^workbook: [^\n]+\n$")
                self.assertIn(expected, done.stderr)


if __name__ == "__main__":
    unittest.main()
