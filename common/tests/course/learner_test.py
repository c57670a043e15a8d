"""Whose the exercises are: a clone is started, undone, reset and brought up to date, and nothing is ever lost."""

import argparse
import contextlib
import io
import json
import os
import subprocess
import unittest
from unittest import mock

from little import CODE, DEBUG, MEASURE, MMA, ONLINE, SOLUTION, LittleTree

from tools import course
from tools.base import Failure
from tools.commands import check, hint, next, reset, start
from tools.commands import list as listing
from tools.course import Learner, LearnersPath, judging

STUB = "  correction = 1;\n"
STARTED, PLANTED = ONLINE.replace(SOLUTION, STUB), "load();\nuse();\n"
FILES = ("05_online/1_online.cu", "06_flash/1_mma.cu")


class ATree(LittleTree):
    """With what the commands say."""

    def command(self, module, *words) -> str:
        parser = argparse.ArgumentParser()
        module.add_arguments(parser)
        with contextlib.ExitStack() as stack:
            said = stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
            for name, stand_in in (("LearnersPath", self.path), ("load", self.loaded)):
                if hasattr(module, name):
                    stack.enter_context(mock.patch.object(module, name, stand_in))
            self.status = module.run(parser.parse_args([str(word) for word in words]))
        return said.getvalue()

    def path(self, there=None) -> LearnersPath:
        return LearnersPath(there or self.loaded(of_a_learner=True))

    def refusal(self, module, *words) -> str:
        """The one line with which the command refuses; all files stay as they are."""
        before = self.files()
        with self.assertRaises(Failure) as caught:
            self.command(module, *words)
        self.assertEqual((caught.exception.status, str(caught.exception).count("\n")), (2, 0))
        self.assertEqual(self.files(), before)
        return str(caught.exception)

    def files(self) -> dict:
        return {str(path.relative_to(self.root)): path.read_bytes() for path in sorted(self.root.rglob("*"))
                if path.is_file() and ".git" not in path.parts}

    def right(self, *names) -> None:
        for name in names:
            self.path().checked(self.exercise(name), "right")

    def git(self, *words, where=None) -> str:
        name = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main"]
        done = subprocess.run(["git", *name, *map(str, words)], cwd=where or self.root, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def commit(self, where=None) -> None:
        self.git("add", "-A", where=where)
        self.git("commit", "-qm", "the course", where=where)


class Starting(ATree):
    def test_a_clone_that_nobody_has_started_says_so(self):
        self.assertEqual(self.command(check),
                         "The solutions here are the book's own, and right. ./workbook start takes them out, and makes "
                         "this clone yours.\n")
        self.assertEqual(self.status, 1)
        self.assertIn("Nothing is started", self.command(next))
        self.assertEqual([self.path().state(one) for one in self.loaded().exercises],
                         ["the book's", "the book's", "not answered"])

    def test_every_exercise_begins_and_the_first_thing_to_do_is_said(self):
        with mock.patch.object(start.build, "directory", return_value=self.root):  # built already
            said = self.command(start)
        self.assertEqual([self.read(file) for file in FILES], [STARTED, PLANTED])
        self.assertEqual(said.splitlines(), [
            "Started: 2 exercises, in 2 files. ./workbook start --undo puts the solutions back.",
            "Next: 05.rescale: a title (about 10 minutes)", "  read   05_online/README.md",
            "  write  05_online/1_online.cu:2, correct the sum", "  check  ./workbook check 05.rescale",
            "0 of 3 right, about 30 minutes to go"])
        self.assertEqual(said.split("\n", 1)[1], self.command(next))

    def test_a_chapter_alone(self):
        self.command(start, "06")
        self.assertEqual([self.read(file) for file in FILES], [ONLINE, PLANTED])
        self.assertEqual(self.path().learner.theirs(self.exercise("05.rescale")), False)
        self.assertIn("05.rescale: not started", self.command(check, "05.rescale"))
        self.write(FILES[1], MMA)
        self.right("06.barrier")
        self.assertIn("All that you have started is right (1 of 3 right, about 20 minutes to go): ./workbook start 05",
                      self.command(next))

    def test_undo_gives_every_byte_back(self):
        odd = {FILES[0]: ONLINE.replace("\n", "\r\n").encode()[:-2], FILES[1]: MMA.encode() + b"\n\n"}
        for file, content in odd.items():
            (self.root / file).write_bytes(content)
            (self.root / file).chmod(0o754)
        self.command(start)
        self.write(FILES[0], self.read(FILES[0]).replace(STUB, "  mine();\n"))
        self.assertIn("05.rescale", self.command(start, "--undo"))
        self.assertEqual({file: (self.root / file).read_bytes() for file in FILES}, odd)
        self.assertEqual({(self.root / file).stat().st_mode & 0o777 for file in FILES}, {0o754})
        self.assertEqual({name for name in self.files() if "kept" in name}, {".learner/kept/05.rescale-1.cu"})
        self.assertEqual(self.read(".learner/kept/05.rescale-1.cu"), "  mine();\n")

    def test_undo_leaves_what_stands_outside_of_the_exercises(self):
        self.command(start)
        self.write(FILES[0], self.read(FILES[0]).replace("b();", "c();"))
        self.assertIn(f"In {FILES[0]} you have changed something else, too", self.command(start, "--undo"))
        self.assertEqual(self.read(FILES[0]), ONLINE.replace("b();", "c();"))

    def test_twice_changes_nothing(self):
        self.command(start)
        self.write(FILES[0], self.read(FILES[0]).replace(STUB, "  mine();\n"))
        before = self.files()
        self.assertTrue(self.command(start).startswith("Started already; nothing was changed.\nNext: 05.rescale"))
        self.assertEqual(self.files(), before)

    def test_another_exercise_of_a_file_that_is_started_already(self):
        self.write(FILES[0], ONLINE + ONLINE.replace("rescale", "other"))
        self.declare(CODE, {**CODE, "id": "05.other"}, MEASURE)
        before = self.read(FILES[0])
        self.command(start, "05.rescale")
        self.assertEqual(self.read(FILES[0]), STARTED + ONLINE.replace("rescale", "other"))
        self.command(start, "05.other")
        self.assertEqual(self.read(FILES[0]), STARTED + STARTED.replace("rescale", "other"))
        self.command(start, "--undo")
        self.assertEqual(self.read(FILES[0]), before)

    def test_nothing_is_changed_if_one_file_cannot_be_written(self):
        before = self.files()
        with mock.patch.object(os, "access", lambda path, _: "06_flash" not in str(path)):
            self.assertIn("cannot write", self.refusal(start))
        real = Learner._write

        def full(path, content):
            if path == self.root / FILES[1]:
                raise OSError(28, "No space left on device", str(path))
            real(path, content)

        with mock.patch.object(Learner, "_write", staticmethod(full)), self.assertRaises(Failure) as caught:
            self.command(start)
        self.assertRegex(str(caught.exception), r"^cannot write .*1_mma.cu: No space left on device; no exercise was")
        self.assertEqual({file: before[file] for file in FILES}, {file: self.files()[file] for file in FILES})
        self.assertFalse(self.path().learner.has_started())
        self.assertFalse([name for name in self.files() if "planted" in name])
        self.command(start)
        self.command(start, "--undo")
        self.assertEqual({file: before[file] for file in FILES}, {file: self.files()[file] for file in FILES})

    def test_a_tree_in_which_nothing_can_be_remembered(self):
        self.write(".learner", "a file\n")
        self.assertRegex(self.refusal(start), "cannot write .*; no exercise was changed$")

    def test_bad_input(self):
        for words, expected in [(["07"], "chapter 07_back has no exercises (chapters that have some: 05, 06)"),
                                (["05.nothing"], "no exercise 05.nothing"), (["--undo"], "nothing is started"),
                                (["--undo", "05"], "--undo is for all exercises"),
                                (["--pull", "05"], "--pull is for all exercises"), (["--pull"], "is no git clone")]:
            with self.subTest(words=words):
                self.assertIn(expected, self.refusal(start, *words))
        self.write(".learner/started.json", "{")
        self.assertRegex(self.refusal(next), r"started.json cannot be read: remove it, and ./workbook start goes on")

    def test_nobody_hands_out_or_grades_with_what_a_learner_has_written(self):
        self.path().learner.require_none_started("grading")
        self.command(start, "05")
        with self.assertRaisesRegex(Failure, "^grading needs the book's solutions, and exercises are started here "
                                             r"\(1\); ./workbook start --undo") as caught:
            self.path().learner.require_none_started("grading")
        self.assertEqual(caught.exception.status, 2)

    def test_a_tree_that_was_handed_out_is_started(self):
        self.hand_out()
        before = self.files()
        self.assertIn("Started already; nothing was changed.\nNext: 05.rescale", self.command(start))
        self.assertEqual(self.files(), before)
        self.assertIn("there are no solutions", self.refusal(start, "--undo"))
        self.assertIn("it has no solutions", self.refusal(reset, "05.rescale", "--book"))


class TheNextOne(ATree):
    def test_when_all_is_done(self):
        self.command(start)
        for file, text in zip(FILES, (ONLINE, MMA)):
            self.write(file, text)
        self.write("answers.json", '{"student": "Ada", "answers": {"05.sectors": 3}}')
        self.right("05.rescale", "05.sectors", "06.barrier")
        said = self.command(next)
        self.assertRegex(said, r"^All 3 exercises are right\. [^\n]+\n$")
        self.assertEqual(self.command(start), "Started already; nothing was changed.\n" + said)

    def test_in_the_order_of_the_lesson(self):
        self.write(FILES[0], ONLINE + ONLINE.replace("rescale", "other"))
        self.declare({**CODE, "id": "05.other"}, CODE, MEASURE)
        self.write("05_online/README.md", "# 05\n\n## The idea\n\n<!-- exercise 05.rescale -->\n<!-- /exercise -->\n\n"
                                          "<!-- exercise 05.other -->\n<!-- /exercise -->\n")
        self.command(start)
        self.assertEqual([one.id for one in self.path().in_order], ["05.rescale", "05.other", "05.sectors"])
        self.assertIn('read   05_online/README.md up to line 5, the box in "The idea"', self.command(next))
        self.right("05.rescale")
        self.write(FILES[0], self.read(FILES[0]).replace(STUB, SOLUTION, 1))
        self.right("05.rescale")
        self.assertIn("Next: 05.other", self.command(next))

    def test_a_right_exercise_stays_right_while_another_one_of_its_file_is_written(self):
        self.write(FILES[0], ONLINE + ONLINE.replace("rescale", "other"))
        self.declare(CODE, {**CODE, "id": "05.other"})
        self.command(start)
        self.write(FILES[0], self.read(FILES[0]).replace(STUB, SOLUTION, 1))
        self.right("05.rescale")
        self.write(FILES[0], self.read(FILES[0]).replace(STUB, "  mine();\n"))
        self.assertEqual([self.path().state(one) for one in self.loaded().exercises], ["right", "not checked"])


class WhatIsOpen(ATree):
    def test_an_exercise_that_is_started_and_not_right_is(self):
        self.assertEqual(self.path().open, [])
        self.command(start)
        self.assertEqual([one.id for one in self.path().open], ["05.rescale", "06.barrier"])
        self.write(FILES[1], MMA)
        self.right("06.barrier")
        self.assertEqual([one.id for one in self.path().open], ["05.rescale"])
        self.assertEqual(self.path().open_behind("05_online"), ["05.rescale"])
        self.assertEqual(self.path().open_behind("06_flash"), [])

    def test_a_rung_is_excused_by_what_stands_behind_it_alone(self):
        self.write("05_online/2_two.cu", "extern const attention::Rung two;\nconstinit const attention::Rung two = "
                                         '{.name = "two"};\n')
        self.write("05_online/3_one.cu", "")
        self.write(FILES[0], ONLINE + "extern const attention::Rung one;\nconstinit const attention::Rung one = "
                                      '{.name = "one"};\n')
        self.write("05_online/attention.cu", "namespace online {\nextern const attention::Rung one, two;\nconst "
                                             "attention::Chapter chapter = {.rungs = {one, two}};\n}\n")
        self.command(start)
        self.assertEqual(self.path().excused("05_online", "one", "wrong"), "05_online/one, open: 05.rescale\n  wrong")
        with self.assertRaisesRegex(Failure, "^05_online/two: wrong$"):
            self.path().excused("05_online", "two", "wrong")


    def test_an_exercise_is_judged_with_the_books_text_of_those_that_are_open_beside_it(self):
        self.write(FILES[0], ONLINE + "// exercise lse: write it\nlse = m + log(l);\n// end lse | lse = 0;\n")
        lse = {**CODE, "id": "05.lse"}
        self.declare(CODE, lse, DEBUG)
        workshop = self.path().workshop(self.exercise("05.lse"))
        self.assertEqual((workshop.books, workshop._texts, list(workshop._as_graded)), ((), {}, [FILES[0]]))
        self.command(start)
        before = self.read(FILES[0])
        workshop = self.path().workshop(self.exercise("05.lse"))
        self.assertEqual(workshop.books, ("05.rescale",))
        self.assertIn(SOLUTION, workshop._texts[FILES[0]])
        self.assertIn("lse = 0;", workshop._texts[FILES[0]])
        self.assertNotIn("log(l)", workshop._texts[FILES[0]])
        self.assertEqual((list(workshop._if_need_be), self.read(FILES[0])), ([FILES[1]], before))
        self.assertEqual(workshop._if_need_be[FILES[1]].partition("\n")[2], MMA)
        self.write(FILES[0], before.replace(STUB, SOLUTION))
        self.right("05.rescale")
        self.assertEqual((self.path().workshop(self.exercise("05.lse")).books, workshop._if_need_be.keys()),
                         ((), {FILES[1]}))


class Reset(ATree):
    def test_begins_again_and_gives_either_version_back(self):
        self.assertIn("05.rescale is as it was at the beginning", self.command(reset, "05.rescale"))
        self.assertEqual([self.read(file) for file in FILES], [STARTED, MMA])
        self.write(FILES[0], self.read(FILES[0]).replace(STUB, "  mine();\n"))
        self.assertIn("what you had is in", self.command(reset, "05.rescale"))
        self.assertEqual(self.read(FILES[0]), STARTED)
        self.assertIn("is the book's solution", self.command(reset, "05.rescale", "--book"))
        self.assertEqual(self.read(FILES[0]), ONLINE)
        self.assertEqual(self.path().state(self.exercise("05.rescale")), "the book's")
        self.command(reset, "05.rescale", "--mine")
        self.assertEqual(self.read(FILES[0]), ONLINE.replace(SOLUTION, "  mine();\n"))
        self.assertEqual(self.path().state(self.exercise("05.rescale")), "not checked")

    def test_no_version_takes_the_place_of_another(self):
        self.command(start)
        for version in ("one", "two"):
            self.write(FILES[0], STARTED.replace(STUB, f"  {version}();\n"))
            self.command(reset, "05.rescale")
        self.write(FILES[0], STARTED.replace(STUB, "  three();\n"))
        self.command(reset, "05.rescale", "--mine")
        self.assertIn("two();", self.read(FILES[0]))
        self.assertEqual([self.read(f".learner/kept/05.rescale-{number}.cu") for number in (1, 2, 3)],
                         ["  one();\n", "  two();\n", "  three();\n"])

    def test_a_mistake_is_planted_and_known_wherever_it_is_mended(self):
        self.command(reset, "06")
        self.assertEqual(self.read(FILES[1]), PLANTED)
        self.assertFalse(self.loaded().attempted(self.exercise("06.barrier")))
        for another_way in ("load();\nbarrier();\nuse();\n", "__syncwarp();\nload();\nuse();\n"):
            self.write(FILES[1], another_way)
            self.assertTrue(self.loaded().attempted(self.exercise("06.barrier")))
        self.command(reset, "06.barrier")
        self.assertEqual(self.read(FILES[1]), PLANTED)
        self.command(reset, "06.barrier", "--book")
        self.assertEqual(self.read(FILES[1]), MMA)

    def test_in_a_tree_that_was_handed_out(self):
        self.hand_out()
        for name, mine in (("05.rescale", "// exercise rescale: correct the sum\nmine();\n// end rescale\n"),
                           ("06.barrier", MMA)):
            exercise = self.exercise(name)
            handed_out = self.read(exercise.file)
            self.write(exercise.file, mine)
            self.command(reset, name)
            self.assertFalse(self.loaded().attempted(exercise))
            if exercise.kind == "debug":
                self.assertEqual(self.read(exercise.file), handed_out)
            self.command(reset, name, "--mine")
            self.assertEqual(self.read(exercise.file), mine)

    def test_bad_input(self):
        self.assertIn("no version of 05.rescale has been kept", self.refusal(reset, "05.rescale", "--mine"))
        self.assertIn("05.rescale has not been started", self.refusal(reset, "05.rescale", "--book"))


class Damaged(ATree):
    """A learner's file in which a marker is gone: only who needs the file is told."""

    OTHER = {**CODE, "id": "06.other", "file": "06_flash/2_other.cu", "rung": "other"}
    END = "  // end rescale | correction = 1;\n"

    def setUp(self):
        super().setUp()
        self.write("06_flash/2_other.cu", "  // exercise other: do it\n  right();\n  // end other | wrong();\n")
        self.declare(CODE, DEBUG, MEASURE, self.OTHER)
        self.command(start)
        self.write(FILES[0], STARTED.replace(self.END, "  mine();\n"))

    def check(self, *words) -> str:
        verdict = judging.Verdict("right")
        with mock.patch.object(check, "judge", return_value=verdict), \
             mock.patch.object(check.kernelcode, "refusal", return_value=None):
            return self.command(check, *words)

    WHY = ("05_online/1_online.cu:2: exercise rescale has no end, a line `// end rescale` with all that stood behind it; put "
           "`// end rescale | correction = 1;` back, or ./workbook reset 05.rescale begins the whole file again")

    def test_other_exercises_go_on(self):
        self.assertIn("06.other right", self.check("06.other"))
        self.assertEqual(self.status, 0)
        self.assertIn("06.barrier", self.command(hint, "06.barrier"))
        self.assertIn(self.WHY, self.command(next))
        self.assertIn("damaged", self.command(listing, "--exercises"))
        self.assertEqual(self.path().open_behind("05_online"), ["05.rescale"])
        self.command(reset, "06.other")
        self.assertIn("Started already", self.command(start))

    def test_its_own_says_what_is_wrong_in_one_line(self):
        self.assertEqual(self.check("05.rescale").splitlines(), ["05.rescale damaged: a title", f"  {self.WHY}"])
        self.assertEqual(self.status, 1)
        self.assertEqual(self.check("05.rescale", "06.other").splitlines()[-1], "1 of 2 right")
        self.assertEqual(self.refusal(start, "--undo"), self.WHY)

    def test_the_course_itself_is_refused(self):
        with self.assertRaisesRegex(Failure, "exercise rescale has no end"):
            self.loaded()

    def test_what_is_missing_is_named(self):
        for text, why in ((STARTED.replace(" | correction = 1;", ""), "1_online.cu:4: the end of exercise rescale has no bar"),
                          (STARTED.replace("// exercise rescale:", "// rescale:"), "1_online.cu:4: the end of exercise rescale, which"),
                          (STARTED.replace("// end", "//end of").replace("// exercise rescale:", "// rescale:"), "exercises.json:")):
            self.write(FILES[0], text)
            said = self.check("05.rescale").splitlines()[1]
            self.assertIn(why, said)
            self.assertIn("` back, or ./workbook reset 05.rescale begins", said)

    def test_reset_begins_the_file_again_and_keeps_it(self):
        damaged = self.read(FILES[0])
        self.assertIn("all of it is as it was at the beginning", self.command(reset, "05.rescale"))
        self.assertEqual(self.read(FILES[0]), STARTED)
        self.assertEqual(self.read(".learner/kept/05_online/1_online-1.cu"), damaged)
        self.command(start, "--undo")
        self.assertEqual(self.read(FILES[0]), ONLINE)

    def test_reset_in_other_trees(self):
        self.write(FILES[0], STARTED)
        self.command(start, "--undo")
        self.write(FILES[0], ONLINE.replace(self.END, ""))
        self.assertIn("exercise rescale has no end", self.refusal(reset, "05.rescale"))  # nobody knows what stood there
        self.write(FILES[0], ONLINE)
        self.git("init", "-q")
        self.commit()
        self.write(FILES[0], ONLINE.replace(self.END, ""))
        self.command(reset, "05.rescale")
        self.assertEqual(self.read(FILES[0]), STARTED)
        self.command(start, "--undo")
        self.hand_out()
        begun = self.read(FILES[0])
        self.write(FILES[0], begun.replace("  // end rescale\n", ""))
        self.command(reset, "05.rescale")
        self.assertEqual(self.read(FILES[0]), begun)


class Clones(ATree):
    """A course that goes on, and a student's clone of it."""

    def setUp(self):
        super().setUp()
        self.upstream = self.root / "upstream"
        self.write(".gitignore", "/.learner/\n/upstream/\n")
        self.git("init", "-q", self.upstream)
        for file in [path for path in self.files() if not path.startswith("upstream")]:
            target = self.upstream / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((self.root / file).read_bytes())
        self.commit(self.upstream)
        student = self.root / "student"
        self.git("clone", "-q", self.upstream, student)
        self.root = student

    def change(self, file: str, change) -> None:
        path = self.upstream / file
        path.write_text(change(path.read_text()))
        self.commit(self.upstream)

    def pulled(self) -> str:
        """start --pull: its second half is another process, which has the new version's modules."""
        there = self.path()
        there.learner.pull()
        return self.command(start, "--pull")

    def mine(self) -> None:
        self.command(start)
        self.write(FILES[0], self.read(FILES[0]).replace(STUB, "  mine();\n"))

    def test_a_file_with_changes_in_an_exercise_stays_as_it_is(self):
        self.write(FILES[0], ONLINE.replace(SOLUTION, "  mine();\n"))
        said = self.command(start)
        self.assertIn("05.rescale stays as it is, for you have changed it", said)
        self.assertEqual([self.read(file) for file in FILES], [ONLINE.replace(SOLUTION, "  mine();\n"), PLANTED])
        self.command(reset, "05.rescale")
        self.assertEqual(self.read(FILES[0]), STARTED)
        self.command(start, "--undo")
        self.assertEqual([self.read(file) for file in FILES], [ONLINE.replace(SOLUTION, "  mine();\n"), MMA])
        self.command(start, "05")
        self.command(reset, "05.rescale", "--book")
        self.assertEqual(self.read(FILES[0]), ONLINE)

    def test_what_the_course_changes_comes_and_what_the_student_has_written_stays(self):
        self.mine()
        self.change(FILES[0], lambda text: "// newer\n" + text.replace(SOLUTION, "  another(solution);\n"))
        self.change(FILES[1], lambda text: "// newer\n" + text)
        self.assertIn("Your lines stand in the newest version.", self.pulled())
        self.assertEqual([self.read(file) for file in FILES],
                         ["// newer\n" + ONLINE.replace(SOLUTION, "  mine();\n"), "// newer\n" + PLANTED])
        self.assertFalse(self.loaded().attempted(self.exercise("06.barrier")))
        self.command(start, "--undo")
        self.assertEqual(self.git("status", "--porcelain"), "")

    def test_a_plain_pull_harms_nothing(self):
        self.mine()
        before = [self.read(file) for file in FILES]
        self.change("07_back/1_x.cu", lambda text: "y();\n")
        self.git("pull", "-q")
        self.assertEqual([self.read(file) for file in FILES], before)
        self.change(FILES[0], lambda text: "// newer\n" + text)
        done = subprocess.run(["git", "pull", "-q"], cwd=self.root, capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual([self.read(file) for file in FILES], before)

    def test_a_mistake_that_was_mended_stays_mended(self):
        self.command(start)
        self.write(FILES[1], "load();\nbarrier();\nuse();\n")
        self.change(FILES[1], lambda text: "// newer\n\n\n" + text)
        self.pulled()
        self.assertEqual(self.read(FILES[1]), "// newer\n\n\nload();\nbarrier();\nuse();\n")
        self.change(FILES[1], lambda text: text.replace("use();", "use_it();"))
        self.change("common/course/debug/06.barrier.json", lambda text: text.replace("use();", "use_it();"))
        self.assertIn("06.barrier begins again", self.pulled())
        self.assertIn("barrier();", self.read(f".learner/kept/{FILES[1]}"))
        self.assertEqual(self.read(FILES[1]), "// newer\n\n\nload();\nuse_it();\n")

    def test_a_stub_that_nobody_has_touched_becomes_the_new_one(self):
        self.command(start)
        self.change(FILES[0], lambda text: text.replace("| correction = 1;", "| correction = 0;"))
        self.pulled()
        self.assertIn("  correction = 0;\n", self.read(FILES[0]))
        self.assertFalse(self.loaded().attempted(self.exercise("05.rescale")))

    def test_an_exercise_that_is_gone_is_kept(self):
        self.mine()
        self.change(FILES[0], lambda text: "a(l, sum);\nb();\n")
        self.change(str(course.FILE), lambda _: json.dumps({"exercises": [DEBUG, MEASURE]}))
        self.assertIn(f"{FILES[0]} has no exercise of yours any more: your file is .learner/kept/{FILES[0]}", self.pulled())
        self.assertIn("mine();", self.read(f".learner/kept/{FILES[0]}"))

    def test_if_git_fails_all_is_as_it_was(self):
        self.mine()
        self.write(FILES[0], "// a change of the student's, outside\n" + self.read(FILES[0]))
        self.change(FILES[0], lambda text: "// newer\n" + text)
        before = self.files()
        with self.assertRaises(Failure) as caught:
            self.command(start, "--pull")
        self.assertRegex(str(caught.exception), r"^git pull failed, and all is as it was: error: [^\n]+$")
        self.assertEqual(self.files(), before)

    def committed(self) -> None:
        self.mine()
        for key, value in (("user.name", "Ada"), ("user.email", "ada@example.org")):
            self.git("config", key, value)
        self.commit(self.root)

    def test_what_the_student_has_committed_git_merges(self):
        self.committed()
        self.change(FILES[0], lambda text: "// newer\n" + text)
        self.pulled()
        self.assertEqual(self.read(FILES[0]), "// newer\n" + ONLINE.replace(SOLUTION, "  mine();\n"))
        self.write(FILES[0], self.read(FILES[0]).replace("mine", "mine_again"))
        self.assertIn("you have committed a part of your changes to 05_online/1_online.cu", self.refusal(start, "--pull"))

    def test_a_merge_that_conflicts_is_taken_back(self):
        self.committed()
        self.change(FILES[0], lambda text: text.replace(SOLUTION, "  another(solution);\n"))
        before = self.files()
        with self.assertRaisesRegex(Failure, "^git pull failed, and all is as it was: CONFLICT"):
            self.command(start, "--pull")
        self.assertEqual(self.files(), before)
        self.assertFalse((self.root / ".git/MERGE_HEAD").exists())
        self.assertEqual(self.git("status", "--porcelain"), "")

    def test_a_pull_that_was_interrupted_is_ended_by_the_next_start(self):
        self.mine()
        before = [self.read(file) for file in FILES]
        self.change(FILES[0], lambda text: text + "// newer\n")
        self.path().learner.pull()
        self.assertEqual(self.read(FILES[0]), ONLINE + "// newer\n")
        self.assertIn("Your lines stand in the newest version.", self.command(start))
        self.assertEqual([self.read(file) for file in FILES], [before[0] + "// newer\n", before[1]])


if __name__ == "__main__":
    unittest.main()
