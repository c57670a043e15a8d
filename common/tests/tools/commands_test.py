"""The command line: one clear line and status 2 for what is wrong; and what the commands decide before they start."""

import argparse
import contextlib
import errno
import io
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tools import cli, commands
from tools.base import ROOT, Failure, build, chapters, cuda, file_trees, in_words, with_python_path
from tools.base.cuda import Choice, Gpu
from tools.commands import GROUPS, bench, test
from tools.measuring import engine_counts, problem_flags, session
from tools.measuring.timing import Outcome
from tools.record import LENGTHS


def ending_of(*words) -> tuple:
    stderr = io.StringIO()
    with contextlib.redirect_stderr(stderr):
        return cli.main(list(words)), stderr.getvalue()


class Words(unittest.TestCase):
    def test_a_value_may_begin_with_a_minus(self):
        for words in (["--window", "-1,0"], ["--window=-1,0"]):
            with mock.patch("tools.commands.run.run", return_value=0) as run:
                self.assertEqual(ending_of("run", "12", *words), (0, ""))
            self.assertEqual(run.call_args[0][0].window, "-1,0")


class HeadDims(unittest.TestCase):
    """They are told in two places, and refused by each chapter."""

    def numbers(self, text: str) -> set:
        """"01 to 05, 08 and 10" -> {1, 2, 3, 4, 5, 8, 10}"""
        text = re.sub(r"(\d\d) to (\d\d)", lambda found: " ".join(f"{one:02}" for one in range(int(found[1]), int(found[2]) + 1)), text)
        return set(map(int, re.findall(r"\b\d\d\b", text)))

    def test_the_pages_say_what_the_chapters_do(self):
        largest = {}
        for chapter in chapters.all_chapters():
            done = subprocess.run([Path(os.environ["WORKBOOK_BUILD"]) / chapter.name / chapter.name, "--head-dim=264"],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True)
            if "compute capability" in done.stderr:
                self.skipTest("no Hopper")
            (number,) = re.findall(r"head-dim is 264: supported are the multiples of 8 up to (\d+)$", done.stderr, re.M)
            largest.setdefault(int(number), set()).add(int(chapter.number))
        page = (ROOT / "README.md").read_text()
        said = re.search(r"D is a multiple of 8, up to 128; up to 256 in ([^\[]*),\s+and\s+when you", page)[1]
        self.assertEqual(self.numbers(said), largest[256])
        page = (ROOT / "common/python/README.md").read_text()
        said = re.search(r"plain attention: (.*) for D up to 256, (.*) for D up to 128\.", page)
        with_a_row = set(map(int, re.findall(r"`(\d\d)_\w+` \|$", page, re.M)))
        self.assertEqual({256: self.numbers(said[1]), 128: self.numbers(said[2])},
                         {number: those - with_a_row for number, those in largest.items()})


class BadInput(unittest.TestCase):
    def test_one_line_and_status_2(self):
        for words, expected in [
            (["rnu"], "unknown command rnu; did you mean run? (see ./workbook --help: run, test, "),
            (["ev"], "unknown command ev; did you mean dev?"),
            (["dev", "bnech"], "unknown command bnech; did you mean bench? (see ./workbook dev --help: bench, peers, "),
            (["--sead"], "unknown argument --sead (see ./workbook --help)"),
            (["dev", "--sead"], "unknown argument --sead (see ./workbook dev --help)"),
            (["run", "--cusal"], "did you mean --causal"),
            (["run", "99"], "no chapter 99"),
            (["run", "--batch", "0"], "0 is not a whole number of at least 1"),
            (["run", "--seq-q=-3"], "-3 is not a whole number"),
            (["run", "--dtype", "fp8"], "fp16"),
            (["run", "--heads", "6", "--kv-heads", "4"],
             "heads is 6 and kv-heads is 4: heads must be a multiple of kv-heads"),
            (["run", "--seed=-1"], "-1 is not a whole number of at least 0"),
            (["trace", "--lines=0"], "0 is not a whole number of at least 1"),
            (["trace", "--seq-q=512,1024"], "512,1024 is not a whole number"),
            (["trace", "--preset=cuda"], "unknown argument --preset=cuda"),
            (["compare", "03", "05", "--rung=mma"], "unknown argument --rung=mma"),
            (["run", "12", "--window", "-2,0"], "-2,0 is no window: LEFT,RIGHT are numbers of keys below 1000000000, or -1"),
            (["dev", "verify", "--engine=/nowhere"], "there is no file /nowhere"),
            (["dev", "verify", "--seq-q=7"], "unknown argument --seq-q=7"),
            (["dev", "profile", "--keep"], "unknown argument --keep"),
            (["dev", "report", "--check", "--again"], "not allowed with argument --check"),
            (["dev", "bench", "--seq-q=512,x"], "x is not a whole number"),
            (["dev", "bench", "--rung=x", "--all-rungs"], "not allowed with argument --rung"),
            (["dev", "bench", "--keep", "--out=x"], "not allowed with argument --keep"),
            (["dev", "bench", "--patience=1"], "unknown argument --patience=1"),
            (["dev", "bench", "--peers"], "unknown argument --peers"),
            (["dev", "bench", "--benchmark_out=x"], "unknown argument --benchmark_out=x"),
            (["dev", "bench", "--benchmark_format=csv"], "unknown argument --benchmark_format=csv"),
            (["dev", "bench", "--out=/"], "/ is not the name of a file"),
            (["dev", "bench", "--out="], "nothing is not the name of a file"),
            (["dev", "bench", "--out=/dev/null"], "/dev/null is not the name of a file"),
            (["dev", "bench", "--out=/dev/null/x.json"],
             "cannot write /dev/null/x.json: /dev/null is no directory that can be written"),
            (["dev", "accuracy", "--out=/"], "/ is not the name of a file"),
            (["dev", "peers", "--out=/"], "/ is not the name of a file"),
            (["dev", "profile", "--out=/"], "/ is not the name of a file"),
            (["dev", "verify", "--out=/"], "/ is not the name of a file"),
            (["dev", "machine", "--out=/"], "/ is not the name of a file"),
            (["dev", "peers", "--patience=inf"], "inf is not a number of seconds above 0"),
            (["run", "--rung="], "a rung has a name"),
            (["run", "10/ordered", "05"], "10/ordered names a rung: beside it there can be no other chapter or rung"),
            (["run", "10/ordered", "--rung=narrow"], "10/ordered names a rung"),
            (["dev", "bench", "10/ordered", "--all-rungs"], "10/ordered names a rung"),
            (["trace", "99/ordered"], "no chapter 99"),
            (["dev", "accuracy", "10/ordered"], "no chapter 10/ordered"),
            (["run", "07", "--direction=forward"], "07_backward: direction is forward: 07_backward has none"),
            (["run", "07/final", "--direction=forward"], "07_backward: rung final has no forward"),
            (["trace", "05", "--direction=backward"],
             "05_online_softmax: direction is backward: 05_online_softmax has none"),
            (["run", "05", "--head-dim=7"],
             "05_online_softmax: head-dim is 7: supported are the multiples of 8 up to 256"),
            (["dev", "bench", "06", "07", "--head-dim=264"],
             "06_flashattn2_fwd: head-dim is 264: supported are the multiples of 8 up to 128"),
            (["compare", "03", "07", "--direction=forward"], "07_backward: direction is forward: 07_backward has none"),
            (["walk", "05", "--head-dim=12"],
             "05_online_softmax: head-dim is 12: supported are the multiples of 8 up to 256"),
            (["run", "--seq-q=6_4"], "6_4 is not a whole number"),
            (["run", "--seq-q= 64"], " 64 is not a whole number"),
            (["run", "--seq-q=\u0663"], "\u0663 is not a whole number"),
            (["run", "--seq-q=7,"], "nothing is not a whole number"),
            (["run", "--batch=2147483648"], "2147483648 is not a whole number of at least 1 and at most 2147483647"),
            (["run", "--batch=" + 5000 * "9"], "9 is not a whole number of at least 1"),
            (["run", "--seed=9223372036854775807"], "9223372036854775807 is not a whole number of at least 0"),
            (["dev", "bench", "--keep", "--preset=cpu"], "--keep is for measurements from a GPU"),
            (["run", "--benchmark_filter=x"], "unknown argument"),
            (["test", "--preset", "gpu"], "invalid choice"),
            (["dev", "machine", "--keep"], "unknown argument --keep"),
            (["walk", "99"], "no chapter 99"),
            (["walk"], "the following arguments are required: STEP"),
            (["walk", "05", "--heads=6", "--kv-heads=4"], "heads must be a multiple of kv-heads"),
            (["walk", "05", "--out=/"], "/ is not the name of a file"),
            (["walk", "05", "--out=/dev/null/walk.html"],
             "cannot write /dev/null/walk.html: /dev/null is no directory"),
            (["check", "05.nothing"], "no exercise 05.nothing (exercises: 01.scores, "),
            (["check", "99"], "no chapter 99"),
            (["check", "05", "--student= "], "--student is ' ': a name has at least one letter or digit"),
            (["hint", "05.nothing"], "no exercise 05.nothing"),
            (["reset", "05.nothing"], "no exercise 05.nothing"),
            (["reset", "05.lse", "--mine", "--book"], "not allowed with argument --mine"),
            (["start", "05.nothing"], "no exercise 05.nothing"),
            (["start", "99"], "no chapter 99"),
            (["start", "05", "--undo"], "--undo is for all exercises"),
            (["start", "--undo", "--pull"], "not allowed with argument --undo"),
            (["next", "05"], "unknown argument 05"),
            (["list", "99"], "no chapter 99"),
            (["handout", "--out=/nowhere/x", "05.nothing"], "no exercise 05.nothing"),
            (["handout", "--out=/nowhere/x", "--week=1"], "--week needs --course"),
            (["handout", "--out=/nowhere/x", "--course=/nowhere/y"], "cannot read /nowhere/y"),
            (["handout", "--out=/tmp"], "/tmp is there already, and not empty"),
        ]:
            with mock.patch.object(build, "ensure_built", side_effect=AssertionError("nothing is built before that")):
                status, stderr = ending_of(*words)
            self.assertEqual(status, 2, words)
            self.assertIn(expected, stderr)
            self.assertEqual(stderr.count("\n"), 1, stderr)

    def test_a_command_that_moved_says_where_it_is(self):
        for group in GROUPS:
            for name in group.names:
                words, now = ([name], f"{name} is now ./workbook dev {name}") if group.word else (["dev", name],
                                                                                                  f"{name} is "
                                                                                                  f"./workbook {name}")
                self.assertEqual(ending_of(*words, "--whatever"), (2, f"workbook: {now}\n"))

    def test_benchmark_flags_are_for_bench(self):
        self.assertTrue(bench.passes_on("--benchmark_filter=x"))
        self.assertFalse(bench.passes_on("--benchmark_out=x"))
        self.assertFalse(bench.passes_on("--bench"))


class Groups(unittest.TestCase):
    def printed(self, *words) -> tuple:
        stdout = io.StringIO()
        with contextlib.redirect_stdout(stdout):
            return cli.main(list(words)), stdout.getvalue()

    def test_every_command_is_in_one_group(self):
        files = {path.stem for path in commands.DIRECTORY.glob("[a-z]*.py")}
        self.assertEqual(sorted(name for group in GROUPS for name in group.names), sorted(files))

    def test_the_front_page_has_the_learners_and_the_instructors_and_one_line_for_the_rest(self):
        status, front = self.printed("--help")
        self.assertEqual((status, self.printed()), (0, (2, front)))
        for group in GROUPS:
            for name, line in commands.help_lines(group).items():
                self.assertTrue(line, name)
                self.assertEqual(f"  {name:<10}{line}\n" in front, not group.word, name)
        self.assertEqual(len(re.findall("^  dev .*$", front, re.M)), 1)

    def test_dev_lists_its_own(self):
        status, page = self.printed("dev", "--help")
        self.assertEqual((status, self.printed("dev")), (0, (2, page)))
        for group in GROUPS:
            for name, line in commands.help_lines(group).items():
                self.assertEqual(f"  {name:<10}{line}\n" in page, bool(group.word), name)

    def test_the_reference_shows_the_same(self):
        rows = re.findall(r"^\| `\./workbook (?:(dev) )?(\w+)[^`]*` \| (.*) \|$", (ROOT / "common/book/reference.md").read_text(),
                          re.M)
        self.assertEqual(rows, [(group.word, name, line) for group in GROUPS
                                for name, line in commands.help_lines(group).items()])

    def test_every_page_and_message_calls_a_command_by_its_name(self):
        written = {".cc", ".cmake", ".cu", ".h", ".md", ".py", ".txt", ".yml"}
        for file, content in file_trees.read(ROOT).items():
            if Path(file).suffix not in written:
                continue
            for within, name in re.findall(r"\./workbook\s+(?:(dev)\s+)?([a-z]+)\b", content.decode()):
                group = commands.group_of(name)
                if group or within:
                    self.assertEqual(within, group.word if group else "a command's group",
                                     f"{file}: ./workbook {within} {name}")

    def test_only_the_chosen_command_is_imported(self):
        for words, expected in [(["list", "--help"], {"list"}), (["dev", "counts", "--help"], {"counts"}),
                                (["--help"], set()),
                                (["dev", "--help"], set()), (["report"], set()), (["nothing"], set())]:
            code = ("import sys, contextlib, io; from tools import cli\n"
                    "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit): "
                    "cli.main(sys.argv[1:])\n"
                    "print(*(name[15:] for name in sys.modules if name.startswith('tools.commands.')))")
            done = subprocess.run([sys.executable, "-B", "-c", code, *words], capture_output=True, text=True,
                                  env=with_python_path(ROOT / "common"))
            self.assertEqual(set(done.stdout.split()), expected, done.stderr)

    def test_a_tree_without_some_of_them_does_not_list_them(self):
        with tempfile.TemporaryDirectory() as directory:
            for name in ("run", "bench"):
                (Path(directory) / f"{name}.py").write_text(f'"""does {name}"""\n')
            with mock.patch.object(commands, "DIRECTORY", Path(directory)):
                front = self.printed("--help")[1]
                self.assertIn("does run", front)
                self.assertNotIn("instructor", front)
                self.assertIn("does bench", self.printed("dev", "--help")[1])
                self.assertIn("unknown command grade (see ./workbook --help: run, dev)", ending_of("grade")[1])


class Output(unittest.TestCase):
    def ending(self, redirected: str, *words: str) -> tuple[int, str]:
        done = subprocess.run(["sh", "-c", f'"$@" {redirected}', "sh", sys.executable, "-B", ROOT / "workbook", *words],
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        return done.returncode, done.stderr

    def test_one_that_nobody_can_read(self):
        for words in (["list"], ["--help"], ["run", "99"]):
            self.assertEqual(self.ending(">&-", *words),
                             (2, "workbook: standard output is closed: nothing can be printed\n"))

    def test_one_that_is_full(self):
        for words in (["list"], ["--help"]):
            self.assertEqual(self.ending(">/dev/full", *words), (1, "workbook: no space left on device\n"))

    def test_what_the_system_refuses_is_said_in_words(self):
        for number, in_tree, said in [(errno.EACCES, True, "permission denied"), (errno.ENOSPC, False, "no space left on device"),
                                      (errno.EACCES, False, "permission denied; you cannot write in this tree: work in a copy of it")]:
            with mock.patch("os.access", return_value=in_tree):
                self.assertRegex(in_words(OSError(number, os.strerror(number), str(ROOT / "answers.json"))),
                                 f"^(.*/)?answers.json: {said}$")

    def test_one_that_is_read_to_its_first_line(self):
        self.assertEqual(self.ending("| true", "list"), (0, ""))  # the status is that of `true`


class Problems(unittest.TestCase):
    def problems(self, *words, default_lengths=None):
        parser = argparse.ArgumentParser()
        problem_flags.add_arguments(parser, several=True)
        return [" ".join(flags) for flags in problem_flags.problems(parser.parse_args(words), default_lengths)]

    def test_what_is_not_said_is_left_to_the_program(self):
        self.assertEqual(self.problems(), [""])
        self.assertEqual(self.problems(default_lengths=LENGTHS),
                         [f"--seq-q={n}" for n in (512, 1024, 2048, 4096, 8192)])

    def test_what_is_said_goes_to_the_program_as_it_was_said(self):
        self.assertEqual(self.problems("--heads=4", "--no-causal", "--seed=7"), ["--heads=4 --seed=7 --no-causal"])
        self.assertEqual(self.problems("--kv-heads=3", "--seq-k=9", "--dtype=bf16", "--causal"),
                         ["--kv-heads=3 --seq-k=9 --dtype=bf16 --causal"])

    def test_lengths_that_are_said_replace_the_usual_ones(self):
        self.assertEqual(self.problems("--seq-q=100", default_lengths=LENGTHS), ["--seq-q=100"])
        self.assertEqual(self.problems("--seq-q=7,9,7", "--seq-k=3"), ["--seq-k=3 --seq-q=7", "--seq-k=3 --seq-q=9"])


class WhatIsTraced(unittest.TestCase):
    described = {
        "05_a": [{"name": "a", "forward": True, "backward": False}],
        "07_b": [{"name": "b", "forward": False, "backward": True}],
        "08_c": [{"name": "both", "forward": True, "backward": True},
                 {"name": "last", "forward": False, "backward": True}],
    }

    def passes(self, direction=None, rung=None):
        with mock.patch.object(chapters, "describe",
                               lambda chapter, _: chapters.Description("", self.described[chapter.name])):
            chosen = [chapters.Chapter(name) for name in self.described]
            return [(chapter.number, of) for chapter, of in engine_counts.passes(chosen, direction, rung, None)]

    def test_each_direction_that_a_chapter_has(self):
        self.assertEqual(self.passes(), [("05", "forward"), ("07", "backward"), ("08", "forward"), ("08", "backward")])

    def test_of_a_rung_those_that_it_has(self):
        self.assertEqual(self.passes(rung="last")[-1:], [("08", "backward")])

    def test_a_rung_of_all_chapters_is_that_of_those_that_have_it(self):
        with mock.patch.object(chapters, "describe",
                               lambda chapter, _: chapters.Description("", self.described[chapter.name])), \
                mock.patch.object(build, "ensure_built",
                                  return_value=Path("build")), contextlib.redirect_stdout(io.StringIO()), \
                mock.patch.object(engine_counts, "counts_of", lambda program, *_: program.parent.name):
            every = [chapters.Chapter(name) for name in self.described]
            self.assertEqual(engine_counts.count(every, [], rung="last", named=False), {"chapters": ["08_c"]})
            self.assertEqual(engine_counts.count(every, [], rung="last"), {"chapters": ["05_a", "07_b", "08_c"]})

    def test_what_nobody_has_is_left_to_the_programs_to_refuse(self):
        self.assertEqual(self.passes(rung="none"), [("05", "forward"), ("07", "forward"), ("08", "forward")])
        self.assertEqual(self.passes("backward"), [("05", "backward"), ("07", "backward"), ("08", "backward")])


class Ladders(unittest.TestCase):
    """05 has a forward, 06 two, 07 two backwards; 08, which only some tests know, has a rung of both and a backward."""

    described = {
        name: chapters.Description("", [{"name": rung, "forward": name[:2] != "07", "backward": name[:2] == "07"}
                                        for rung in rungs])
        for name, rungs in {"05_a": ["a"], "06_b": ["mma", "final"], "07_c": ["plain", "final"]}.items()
    }
    with_both = {**described, "08_d": chapters.Description("", [{"name": "both", "forward": True, "backward": True},
                                                               {"name": "last", "forward": False, "backward": True}])}

    def names(self, *words, **options):
        parser = argparse.ArgumentParser()
        session.add_arguments(parser)
        problem_flags.add_rung(parser, default="")
        arguments = parser.parse_args(words)
        chosen = chapters.select(arguments.chapters, [chapters.Chapter(name) for name in self.described])
        current = session.Session(None, chosen, bool(arguments.chapters), [], arguments.direction, arguments.rung, [],
                                  None)
        with mock.patch.object(chapters, "describe", lambda chapter, _: self.described[chapter.name]):
            return [[(step.name, step.direction, step.rung) for step in steps] for steps in current.ladders(**options)]

    results = [("05_a", "forward", "a"), ("06_b", "forward", "final")]
    backwards = [("07_c/plain", "backward", "plain"), ("07_c/final", "backward", "final")]

    def test_each_direction_with_the_chapters_that_have_it(self):
        self.assertEqual(self.names(), [self.results, self.backwards])
        self.assertEqual(self.names("07"), [self.backwards])
        self.assertEqual(self.names("--direction=backward"), [self.backwards])

    def test_every_rung(self):
        forwards = [self.results[0], ("06_b/mma", "forward", "mma"), ("06_b/final", "forward", "final")]
        self.assertEqual(self.names(all_rungs=True), [forwards, self.backwards])

    def test_one_rung(self):
        self.assertEqual(self.names("07", "--rung=plain"), [[("07_c/plain", "backward", "plain")]])

    def test_one_rung_in_the_directions_that_it_has(self):
        with mock.patch.object(self, "described", self.with_both):
            self.assertEqual(self.names("08", "--rung=last"), [[("08_d/last", "backward", "last")]])
            self.assertEqual(self.names("08", "--rung=both"),
                             [[("08_d/both", "forward", "both")], [("08_d/both", "backward", "both")]])
            self.assertEqual(self.names("08", "--rung=none"), [[("08_d/none", "forward", "none")]])
            self.assertEqual(self.names("08", "--rung=last", "--direction=forward"),
                             [[("08_d/last", "forward", "last")]])

    def test_a_rung_with_its_chapter(self):
        for word, chapter, rung in [("5/x", "05_online_softmax", "x"), ("naive/", "01_naive", None),
                                    ("10/", "10_hopper", None), ("10_hopper/a/b", "10_hopper", "a/b")]:
            arguments = argparse.Namespace(chapters=[word], rung=None)
            self.assertEqual([chosen.name for chosen in problem_flags.chosen_chapters(arguments)], [chapter])
            self.assertEqual(arguments.rung, rung)

    def test_kernels_of_exercises_are_chosen_where_they_are_named(self):
        def chosen(*words, **options):
            arguments = argparse.Namespace(chapters=list(words), rung=None)
            return problem_flags.chosen_chapters(arguments, **options)

        self.assertEqual([one.name for one in chosen("split/split", exercises_too=True)], ["split"])
        (rows,) = chosen("rows", exercises_too=True)
        self.assertEqual(rows.traced_program(Path("b")), Path("b/common/course/rows/rows_traced"))
        self.assertEqual(chosen(exercises_too=True), chapters.all_chapters())
        self.assertEqual([one.name for one in chosen("5", exercises_too=True)], ["05_online_softmax"])
        with self.assertRaisesRegex(Failure, "^no chapter rows "):
            chosen("rows")

    def test_of_all_chapters_those_that_have_the_rung(self):
        chosen = [chapters.Chapter(name) for name in self.described]
        with mock.patch.object(chapters, "describe", lambda chapter, _: self.described[chapter.name]):
            for rung, numbers in [("final", ["06", "07"]), ("plain", ["07"]), ("none", ["05", "06", "07"]),
                                  (None, ["05", "06", "07"])]:
                self.assertEqual([chapter.number for chapter in chapters.with_rung(rung, chosen, [])], numbers)

    def test_who_asks_a_chapter_for_what_it_has_not_is_told_by_its_program(self):
        self.assertEqual(self.names("05", "--direction=backward"), [[("05_a", "backward", None)]])


class CountsOfOpenExercises(unittest.TestCase):
    """A race in an open exercise ends the count of its rung alone."""

    def counted(self, *open_, rung=None):
        chapter, described = chapters.Chapter("04_d"), chapters.Description("", [
            {"name": name, "forward": True, "backward": False} for name in ("fused", "streamed")])

        def counts_of(program, *flags):
            if "--rung=streamed" not in flags:
                raise Failure("race on shared memory")
            return {"chapter": "04_d", "rungs": [{"rung": "streamed"}]}

        with mock.patch.object(build, "ensure_built"), mock.patch.object(chapters, "describe", return_value=described), \
                mock.patch.object(engine_counts, "counts_of", counts_of), \
                mock.patch.object(chapters.Chapter, "traced_program", lambda *_: Path("x")):
            return engine_counts.count([chapter], [], rung=rung, is_open=lambda _, name: name in open_)

    def test_the_other_rungs_are_counted(self):
        self.assertEqual(self.counted(None, "fused"),
                         {"chapters": [{"chapter": "04_d", "rungs": [{"rung": "streamed"}]}],
                          "stopped": [("04_d", "fused", "race on shared memory")]})
        self.assertEqual(self.counted("fused", rung="fused")["chapters"], [])

    def test_without_one_it_is_a_failure(self):
        for open_, rung in (((), None), (("streamed",), "fused")):
            with self.assertRaisesRegex(Failure, "race"):
                self.counted(*open_, rung=rung)


class Refusals(unittest.TestCase):
    """08 has a rung in both directions."""

    steps = [session.Step("08_d/both", chapters.Chapter("08_d"), direction, "both")
             for direction in ("forward", "backward")]

    def ending(self, *verdicts):
        """(what is shown, what is said, or the failure) where the first direction ends like this, and the second
        like that."""
        shown, said = [], io.StringIO()
        outcomes = iter([[[Outcome(verdict, "N is 7")]] for verdict in verdicts])
        with mock.patch.object(session.Session, "ladders", lambda *_: [[step] for step in self.steps]), \
                mock.patch.object(session.Session, "measure_all",
                                  lambda *_: next(outcomes)), contextlib.redirect_stdout(said):
            current = session.Session(*8 * [None])
            try:
                session.conclude(*session.measure_ladders(current,
                                                          lambda _, steps, __: shown.append(steps[0].direction)))
            except Failure as failure:
                return shown, f"{failure.status}: {failure}"
        return shown, said.getvalue()

    def test_a_direction_that_is_refused_hides_no_other(self):
        said = "1 of 2 agree with the fp64 reference; 08_d/both ({}) did not take the problem.\n"
        self.assertEqual(self.ending("correct", "refused"), (["forward", "backward"], said.format("backward")))
        self.assertEqual(self.ending("refused", "correct"), (["forward", "backward"], said.format("forward")))

    def test_what_nobody_takes_is_bad_input(self):
        self.assertEqual(self.ending("refused", "refused"), ([], "2: 08_d/both: N is 7"))

    def test_what_waits_for_an_exercise_is_no_failure(self):
        self.assertEqual(self.ending("correct", "open: 08.bounds")[1],
                         "1 of 2 agree with the fp64 reference; not yet: 08_d/both (backward) (open: 08.bounds).\n")
        self.assertEqual(self.ending("wrong", "open: 08.bounds")[1],
                         "1: not right: 08_d/both (forward); ./workbook test 08_d shows where")

    def test_what_is_wrong_names_the_direction_and_the_chapters_test(self):
        self.assertEqual(self.ending("correct", "wrong")[1],
                         "1: not right: 08_d/both (backward); ./workbook test 08_d shows where")


class TestsThatWait(unittest.TestCase):
    """A failed test is excused if exercises are open behind every rung that it names."""

    def waits(self) -> test._Waits:
        path = mock.Mock(open=["02.scores"])
        path.open_behind = lambda chapter, rung=None: ["02.scores"] if (chapter, rung) in (
            ("02_c", None), ("02_c", "mapping")) else []
        return test._Waits(path)

    def test_of_which_exercise(self):
        said = "chapter_test.cc:49: Failure\n  Which is: \"o is 1\"\n{} forward\n"
        for name, output, expected in [("02_c.All/Rungs.Pass/scale", said.format("mapping"), ["02.scores"]),
                                       ("02_c.All/Rungs.Pass/scale", said.format("vectors"), []),
                                       ("02_c.All/Rungs.Pass/scale", said.format("mapping") + said.format("vectors"), []),
                                       ("02_c.trace.counts", "82 counts differ", ["02.scores"]),
                                       ("03_d.trace.counts", "82 counts differ", [])]:
            with self.subTest(name=name, output=output):
                self.assertEqual(self.waits().explain(name, output), expected)

    def test_of_the_workbook_itself_none_is_run_while_an_exercise_is_open(self):
        (pattern,) = self.waits().left_out()[1:]
        for name, left_out in [("course.exercises", True), ("style.format", True), ("trace.walk", True),
                               ("02_c.trace.walk", False), ("simt.Kernel.runs", False), ("coursework.x", False)]:
            self.assertEqual(bool(re.search(pattern, name)), left_out, name)
        self.assertEqual(test._Waits(mock.Mock(open=[])).left_out(), [])

    def test_the_summary_names_them(self):
        result = test.Result("cpu", Path("log"), 10, 0, 1, 2, 0, 3, ("02.scores",))
        self.assertEqual((result.failed, result.line()),
                         (False, "6 of 9 tests passed in 2 s, 3 wait for what is open: 02.scores, 1 skipped"))

    def test_why_a_test_was_not_run(self):
        for output, why in [("test_a (x.Y) ... skipped 'NOT RUN: needs a GPU: no nvidia-smi'\n\nOK", "needs a GPU: no nvidia-smi"),
                            ("test_a ... skipped \"NOT RUN: needs ./workbook dev book's packages\"\ntest_b ... ok",
                             "needs ./workbook dev book's packages"),
                            ("NOT RUN: there is no PyTorch\n", "there is no PyTorch"),
                            ("SKIPPED, not compared: no nvcc\n", "not compared: no nvcc"), ("", "the log says why")]:
            with self.subTest(output):
                self.assertEqual(test.why_not(output), why)

    def printed(self, *lines) -> list:
        progress = mock.Mock()
        listener = test._Listener(progress, lambda name: name.startswith("02_c"))
        for line in lines:
            listener(line)
        return [call[0][0] for call in progress.say.call_args_list]

    def test_the_output_of_one_that_may_wait_is_not_printed(self):
        failed = "1/2 Test #7: {}.All/Rungs.Pass/scale ...***Failed 0.1 sec"
        self.assertEqual(self.printed(failed.format("02_c"), "its output", "", failed.format("03_d"), "of another")[1:],
                         ["of another"])
        self.assertEqual(self.printed(failed.format("02_c"), "its output", "50% tests passed, 1 tests failed out of 2",
                                      "The following tests FAILED:", "  7 - 02_c"), [])


class Beginnings(unittest.TestCase):
    def flags(self, choice, *words):
        parser = argparse.ArgumentParser()
        session.add_arguments(parser)
        problem_flags.add_rung(parser, default="")
        with mock.patch.object(cuda, "choose_preset", return_value=choice), mock.patch.object(build, "ensure_built"), \
                mock.patch.object(problem_flags, "resolved",
                                  return_value=("problem", {})), contextlib.redirect_stdout(io.StringIO()):
            current = session.begin(parser.parse_args(["05", *words]), ["--benchmark_min_time=1"])
        self.assertEqual(current.flags, ["--benchmark_min_time=1"])
        return [" ".join(flags) for _, flags in current.problems]

    def test_a_gpu_gets_the_ladder_and_the_engine_what_the_program_has_for_it(self):
        gpu, engine = Choice("cuda", "", Gpu("NVIDIA H200", "580.1")), Choice("cpu", "")
        self.assertEqual(self.flags(gpu, "--no-causal"), [f"--no-causal --seq-q={n}" for n in LENGTHS])
        self.assertEqual(self.flags(gpu, "--seq-q=7"), ["--seq-q=7"])
        self.assertEqual(self.flags(engine, "--batch=3"), ["--batch=3"])

    def test_cuda_without_a_gpu(self):
        with self.assertRaisesRegex(Failure, "^preset cuda needs a GPU to run on: none; --preset cpu uses"):
            self.flags(Choice("cuda", "none"))


class TestPlans(unittest.TestCase):
    gpu = Choice("cuda", "a GPU answers", Gpu("NVIDIA H200", "580.1"))
    no_gpu = Choice("cpu", "no GPU answers")

    def test_with_a_gpu_both_presets_run(self):
        self.assertEqual(test.plan(None, True, False, self.gpu, True), test.Plan(["cpu", "cuda"], [], ""))

    def test_without_one_cuda_is_only_compiled_if_nvcc_is_there(self):
        for has_nvcc, compiled in [(True, ["cuda"]), (False, [])]:
            planned = test.plan(None, False, False, self.no_gpu, has_nvcc)
            self.assertEqual(planned, test.Plan(["cpu"], compiled, "no GPU answers"))

    def test_require_gpu(self):
        with self.assertRaisesRegex(Failure, "no GPU answers"):
            test.plan(None, True, False, self.no_gpu, True)

    def test_which_tests_are_for_a_gpu(self):
        some = ["01_naive.Chapter.X", "device.Mma.Y", "harness.program.times_a_right_rung", "python.with_pytorch",
                "mutants.All/Mutants.AreRejectedByWhatTheTableSays/no_max", "03_tiling.sanitizer.memcheck.fp16"]
        others = ["simt.Barrier.Works", "style.format", "mutants.On/KillMatrix.NoMutantLives/gpu", "reference.A.B",
                  "tools.ladder", "03_tiling.refuses --heads=0", "03_tiling.trace.checks", "trace.Checks.X",
                  "03_tiling.All/Rungs.Pass/orders", "teaching.gradescope", "user_files.running",
                  "harness.program.refuses_a_negative_seed", "harness.Verdict.X", "python.without_pytorch",
                  "python.package"]
        self.assertEqual(test.for_a_gpu(others + some), some)


class Logs(unittest.TestCase):
    def test_the_compilers_first_errors(self):
        error = "a.cc:3:1: error: 'x' was not declared"
        log = f"[1/2] Building\nFAILED: a.o\ng++ -Werror=all a.cc\n{error}\n  3 | x\nninja: build stopped"
        self.assertEqual(build.first_errors(log), [error])

    def test_why_the_one_candidate_does_not_fit(self):
        error = "a.cu:9:1: error: no matching function for call to 'f(float [3][2])'"
        candidate = "a.cu:1:1: note: candidate: 'f(float*)'"
        why = "a.cu:9:2: note:   cannot convert 'x' (type 'float [3][2]') to type 'float*'"
        log = f"{error}\n 9 | f(x)\n{candidate}\na.cu:1:1: note:   template argument deduction failed:\n{why}\n"
        reason = f"{error} (cannot convert 'x' (type 'float [3][2]') to type 'float*')"
        self.assertEqual(build.first_errors(log), [reason])
        self.assertEqual(build.first_errors(f"{log}{error}\n"), [reason, error])
        self.assertEqual(build.first_errors(f"{log}{candidate}\n{why}\n"), [error])  # which of two is meant?

    def test_the_linkers(self):
        log = "FAILED: a\n/usr/bin/ld: a.o: undefined reference to `f()'\ncollect2: error: ld returned 1 exit status"
        self.assertIn("undefined reference", build.first_errors(log)[0])

    def test_what_cmake_says_follows_its_error_line(self):
        log = "-- ok\nCMake Error at CMakeLists.txt:3 (find_package):\n  Could not find Eigen\nmore\n"
        self.assertEqual(build.first_errors(log)[1], "  Could not find Eigen")

    def test_the_last_lines_if_nothing_looks_like_an_error(self):
        self.assertEqual(build.first_errors("a\nb\nc\n", limit=2), ["b", "c"])

    def test_slug(self):
        self.assertEqual(bench.slug("NVIDIA GeForce RTX 4090"), "nvidia-geforce-rtx-4090")
