"""Measurements in pieces: the plan, and that a piece is there whole or not at all."""

import contextlib
import io
import json
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tools import cli
from tools.base import RESULTS, Failure, chapters
from tools.measuring import pieces, session, timed_code
from tools.measuring.ncu import one_pass
from tools.measuring.profile import METRICS, sums
from tools.measuring.timing import only
from tools.record import commit, read_label, result_files

NAMES = ["01_a", "02_b"]
NOW = pieces.Measured("abc")


def fake(status=0, report=None, says="workbook: no such luck"):
    """Instead of ./workbook: writes this report to where it is told to."""
    calls = []

    def runner(command, log_path, on_line):
        calls.append(command)
        log_path.write_text(f"{says}\n")
        if report is not None:
            Path(command[-1].removeprefix("--out=")).write_text(report if isinstance(report, str) else json.dumps(report))
        return status

    runner.calls = calls
    return runner


class Plans(unittest.TestCase):
    def test_every_piece_is_a_command_line_that_is_understood(self):
        planned = pieces.pieces(NAMES) + pieces.rehearsal(NAMES)
        for piece in planned:
            words = ["dev", *piece.command, "--out=x"]
            with mock.patch(f"tools.commands.{piece.command[0]}.run", return_value=0) as run:
                status = cli.main(words)
            self.assertEqual((status, run.called), (0, True), piece)

    def test_every_chapter_there_is_has_its_pieces(self):
        names = [chapter.name for chapter in chapters.all_chapters()]
        planned = {piece.name for piece in pieces.pieces(names)}
        for name in names:
            self.assertLessEqual({f"ladder-{name}", f"profile-{name}"}, planned)
        self.assertEqual(len(planned), len(pieces.pieces(names)))

    def test_choosing(self):
        planned = pieces.pieces(NAMES)
        self.assertEqual(pieces.chosen(planned, []), planned)
        self.assertEqual([p.name for p in pieces.chosen(planned, ["ladder", "mem"])], ["ladder-01_a", "ladder-02_b", "memory"])
        with self.assertRaisesRegex(Failure, "no piece is called speed"):
            pieces.chosen(planned, ["speed"])

    def test_what_is_measured_twice(self):
        planned = pieces.pieces(NAMES)
        self.assertEqual([piece.name for piece in pieces.chosen(planned, [], again=True)],
                         ["ladder-01_a", "ladder-02_b", "peers-ladder", "sweep-fp16-forward", "sweep-fp16-backward",
                          "sweep-bf16-forward", "sweep-bf16-backward", "sweep-fp16-forward-b2b", "sweep-fp16-backward-b2b",
                          "sweep-bf16-forward-b2b", "sweep-bf16-backward-b2b", "models-forward", "models-backward",
                          "models-forward-b2b", "models-backward-b2b", "extras-forward", "extras-backward", "extras-forward-b2b",
                          "extras-backward-b2b", "extras-fp16-forward", "extras-fp16-backward", "extras-fp16-forward-b2b",
                          "extras-fp16-backward-b2b", "packed", "packed-b2b", "blocks", "blocks-b2b", "fp8", "fp8-b2b", "decode-fp16",
                          "decode-bf16", "dims"])
        with self.assertRaisesRegex(Failure, "no piece that is measured twice is called machine .pieces: ladder-01_a"):
            pieces.chosen(planned, ["machine"], again=True)
        self.assertTrue(pieces.chosen(pieces.rehearsal(NAMES), [], again=True))

    def test_what_must_be_built(self):
        planned = pieces.pieces(NAMES)
        self.assertEqual(pieces.targets(planned[:1], NAMES), ["01_a"])
        self.assertEqual(pieces.targets(pieces.chosen(planned, ["sweep"]), NAMES), ["flash_attention_workbook"])
        self.assertEqual(pieces.targets(planned, NAMES), ["01_a", "02_b", "flash_attention_workbook", "machine", "trace_patterns"])

    def test_without_a_gpu_there_is_one_line(self):
        stderr = io.StringIO()
        with contextlib.redirect_stderr(stderr), mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": ""}):
            self.assertEqual(cli.main(["dev", "measure"]), 1)
            self.assertEqual(cli.main(["dev", "measure", "--within=0"]), 2)
            self.assertEqual(cli.main(["dev", "measure", "--engine=/nowhere"]), 2)
        self.assertEqual(stderr.getvalue().count("\n"), 3, stderr.getvalue())


class Pieces(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.directory = Path(scratch.name)
        build = mock.patch.object(pieces, "BUILD", self.directory / "build")
        build.start()
        self.addCleanup(build.stop)
        self.piece = pieces.Piece("p", "", ("bench", "01"), 7)

    def take(self, runner, piece=None):
        pieces.take(piece or self.piece, self.directory, NOW, lambda line: None, runner=runner)

    def files(self):
        return sorted(path.name for path in self.directory.glob("*.json*"))

    def test_a_piece_says_where_it_comes_from(self):
        runner = fake(report={"context": {"device": "D"}, "points": []})
        self.take(runner)
        self.assertEqual(runner.calls[0][:2], ["bench", "01"])
        context = json.loads((self.directory / "p.json").read_text())["context"]
        self.assertEqual((context["commit"], context["device"], context["piece"]["command"]), ("abc", "D", "./workbook dev bench 01"))
        self.assertEqual(set(context["machine"]), {"gpu", "driver", "cuda", "sm_clock_max_mhz", "power_limit_w"})
        self.assertIn("power_w", context["piece"]["after"])

    def test_two_measurements_at_once_have_logs_of_their_own(self):
        for again, says in ((False, "first"), (True, "second")):
            runner = fake(report={"context": {}}, says=says)
            pieces.take(self.piece, self.directory / "gpu", NOW, lambda line: None, again, runner)
        logs = self.directory / "build" / "measure"
        said = [(logs / name / "p.log").read_text().strip() for name in ("gpu", "gpu-again")]
        self.assertEqual(said, ["first", "second"])

    def test_of_a_second_measurement_the_times_are_kept_in_one_file(self):
        problem = "B1_H1_N8_D8_fp16_full"
        run = {"name": f"01_a/x/fwd/{problem}/manual_time", "real_time": 2.0, "time_unit": "us", "FLOP/s": 1.0}
        runner = fake(report={"context": {}, "benchmarks": [run]})
        pieces.take(self.piece, self.directory, NOW, lambda line: None, True, runner)
        self.assertEqual(self.files(), ["repeated-times.json"])
        (times,) = result_files.read(self.directory / "repeated-times.json")["times"]
        self.assertEqual(times, {"piece": "p", "direction": "forward", "problem": problem, "ms": {"01_a/x": 0.002}})
        self.assertTrue(pieces.state(self.piece, self.directory, NOW, again=True).done)
        self.assertFalse(pieces.state(self.piece, self.directory, pieces.Measured("def"), again=True).done)
        self.assertFalse(pieces.state(self.piece, self.directory, NOW).done)

    def test_a_failure_leaves_nothing_and_says_why(self):
        for runner in (fake(status=1, report={"context": {}}), fake(status=0), fake(status=0, report='{"context": '),
                       fake(status=-9)):
            with self.assertRaises(Failure):
                self.take(runner)
            self.assertEqual(self.files(), [])
        with self.assertRaisesRegex(Failure, "^no such luck .ended with status 1"):
            self.take(fake(status=1))

    def test_a_finding_is_no_failure(self):
        self.take(fake(status=1, report={"context": {}}), pieces.Piece("f", "", ("trace",), 7, may_say_1=True))
        self.assertEqual(self.files(), ["f.json"])

    def test_what_is_there_is_not_taken_again(self):
        self.assertFalse(pieces.state(self.piece, self.directory, NOW).done)
        self.take(fake(report={"context": {}}))
        self.assertTrue(pieces.state(self.piece, self.directory, NOW).done)
        self.assertFalse(pieces.state(self.piece, self.directory, pieces.Measured("def")).done)
        (self.directory / "p.json").write_text('{"context"')
        self.assertEqual(pieces.state(self.piece, self.directory, NOW), pieces.State(False, 7))

    def test_what_has_the_same_machine_code_is_not_taken_again(self):
        code = {"01_a": "1", "02_b": "2", pieces.MICROBENCHMARKS: "3"}
        for command, found, other, done in [(("bench", "01"), ["01_a/x"], {"01_a": "x"}, False), (("bench", "01"), ["01_a/x"], {"02_b": "x"}, True),
                                            (("peers",), ["01_a", "02_b"], {"02_b": "x"}, False), (("machine",), [], {"01_a": "x"}, True),
                                            (("machine",), [], {pieces.MICROBENCHMARKS: "x"}, False)]:
            piece = pieces.Piece("p", "", command, 7)
            pieces.take(piece, self.directory, pieces.Measured("abc", code), lambda line: None,
                        runner=fake(report={"context": {}, "benchmarks": [{"name": name} for name in found]}))
            with self.subTest(command=command, other=other):
                self.assertEqual(pieces.state(piece, self.directory, pieces.Measured("def", {**code, **other})).done, done)
                self.assertFalse(pieces.state(piece, self.directory, pieces.Measured("def")).done, "it is not known")

    def test_a_chapters_machine_code(self):
        """Whatever its kernels are called, and in whatever order they come."""
        def kernel(name, number, source="1234abcd"):
            return (f"\t\tFunction : {name}\n\t.headerflags\t@\"x\"\n        /*0000*/   IADD R1, R1, {number} ;   /* 0x0123456789abcdef */\n"
                    f"                                        /* 0x{number:016x} */\n        /*0010*/   CALL `(_ZN12_GLOBAL__N__{source}_4_a_cu_f) ;\n")

        one, two = timed_code.digests("code for sm_90\n" + kernel("f", 1) + kernel("g", 2))
        self.assertNotEqual(one, two)
        self.assertEqual(timed_code.digests(kernel("other", 2, "00000000") + kernel("f", 1)), [two, one])
        self.assertEqual(timed_code.of(["01_a"], self.directory), {})

    def test_a_failed_piece_does_not_stop_the_others_and_is_taken_next_time(self):
        planned = [pieces.Piece(name, "", (), 1) for name in "abc"]
        taken = []

        def take(piece, directory, measured, on_line, again):
            taken.append(piece.name)
            if piece.name == "b" and taken.count("b") == 1:
                raise Failure("no luck")
            result_files.write(directory / f"{piece.name}.json", {"context": {"commit": measured.commit, "piece": {}}})

        with contextlib.redirect_stdout(io.StringIO()), self.assertRaisesRegex(Failure, "1 of 3 pieces failed: b;"):
            pieces.measure(planned, self.directory, None, take_piece=take)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(pieces.measure(planned, self.directory, None, take_piece=take), 0)
        self.assertEqual("".join(taken), "abcb")
        self.assertIn("3 of 3 pieces", said.getvalue())

    def test_within(self):
        planned = [pieces.Piece("long", "", (), 100), pieces.Piece("short", "", (), 1)]

        def take(piece, directory, measured, on_line, again):
            result_files.write(directory / f"{piece.name}.json", {"context": {"commit": measured.commit, "piece": {}}})

        with contextlib.redirect_stdout(io.StringIO()) as said:
            pieces.measure(planned, self.directory, 50, take_piece=take)
        self.assertEqual(self.files(), ["short.json"])
        self.assertIn("Left for the next time: long", said.getvalue())


class Files(unittest.TestCase):
    def test_a_record_takes_one_line(self):
        record = {"name": "x", "seconds": {"median": 2e-05, "p10": 1.5}, "of": [1, 2]}
        report = {"what": "w" * 500, "empty": [], "points": [{"n": 1, "results": [record, record]}],
                  "plain": [{"why": "w" * 500, "n": 3}], "numbers": [0.5] * 500, "steps": [[1, 2], [3]]}
        text = result_files.compact(report)
        self.assertEqual(json.loads(text), report)
        self.assertEqual(text.count(json.dumps(record)), 2)
        self.assertEqual(text.count("\n"), 18)
        self.assertEqual([line for line in text.splitlines() if "[1, 2], [3]" in line], [' "steps": [[1, 2], [3]]'])

    def test_what_is_kept_of_a_report(self):
        def run(kind, **more):
            of_all = {"run_name": "n", "real_time": 1.0, "time_unit": "ms", "FLOP/s": 2.0}
            own = {"name": f"n_{kind}", "run_type": "aggregate", "aggregate_name": kind} if kind else {
                "name": "n", "run_type": "iteration"}
            return {**of_all, **own, **more}

        seconds = {"median": 1, "p10": 1, "p90": 2, "min": 1, "max": 2}
        kept = result_files.slim({
            "benchmarks": [run(""), run(""), run("mean"), run("median"), run("cv"), run("", name="alone")],
            "points": [{"results": [{"name": "a", "samples": [1, 2], "seconds": seconds}]}],
            "modes": {"median": 1, "min": 1}})
        self.assertEqual(kept["benchmarks"], [
            {"name": "n_median", "real_time": 1.0, "time_unit": "ms", "FLOP/s": 2.0, "aggregate_name": "median"},
            {"name": "alone", "real_time": 1.0, "time_unit": "ms", "FLOP/s": 2.0}])
        self.assertEqual(kept["points"], [{"results": [{"name": "a", "seconds": {"median": 1, "p10": 1}}]}])
        self.assertEqual(kept["modes"], {"median": 1, "min": 1})
        self.assertEqual(result_files.slim(kept), kept)

    def test_only_what_goes_into_common_results_is_made_slim(self):
        with tempfile.TemporaryDirectory() as scratch, \
                mock.patch.object(result_files, "RESULTS", Path(scratch) / "results"):
            for directory, kept in (("results/gpu", {}), ("elsewhere", {"samples": [1]})):
                path = Path(scratch) / directory / "x.json"
                result_files.write(path, {"samples": [1]})
                self.assertEqual(result_files.read(path), kept)

    def test_everything_in_common_results_is_slim(self):
        for path in sorted(RESULTS.rglob("*.json")):
            report = result_files.read(path)
            written = result_files.slim(report) == report and path.read_text() == result_files.compact(report)
            self.assertTrue(written, f"{path} was not written by common/tools/record/result_files.py")

    def test_results_and_lessons_do_not_change_what_is_measured(self):
        with mock.patch.dict(os.environ, {"WORKBOOK_COMMIT": " abc\n"}):
            self.assertEqual(commit(), "abc")
        with mock.patch.dict(os.environ), mock.patch("tools.record.result_files.output_of", side_effect=["abc\n", " M x.cu\n"]) as asked:
            os.environ.pop("WORKBOOK_COMMIT", None)
            self.assertEqual(commit(), "abc-dirty")
            self.assertIn(":(exclude)common/results", asked.call_args[0][0])


class Rungs(unittest.TestCase):
    """All rungs of a chapter in one process."""

    def run_ladder(self, wrong):
        commands = []

        def measure(program, flags, on_wait):
            rungs = [flag[7:] for flag in flags if flag.startswith("--rung=")] or ["x", "y"]
            commands.append(rungs)
            if wrong in rungs:
                return session.read_report({"benchmarks": []})
            return session.read_report({"benchmarks": [
                {"name": f"06_b/{rung}/fwd/B1", "real_time": 1.0 + ord(rung), "time_unit": "s", "error": 0, "tolerance": 1}
                for rung in rungs]})

        chapter = chapters.Chapter("06_b")
        steps = [session.Step(f"06_b/{rung}", chapter, "forward", rung) for rung in "xy"]
        problem, _ = read_label("B1_H2_N256_D64_fp16_causal")
        current = session.Session(None, [chapter], False, [(problem, [])], None, None, [], Path("."))
        with mock.patch.object(session, "measure", measure), contextlib.redirect_stdout(io.StringIO()):
            return commands, [[one.seconds for one in row] for row in current.measure_all(steps)]

    def test_each_gets_its_own_times(self):
        self.assertEqual(self.run_ladder(""), ([["x", "y"]], [[1.0 + ord("x")], [1.0 + ord("y")]]))

    def test_one_that_fails_does_not_take_the_others_along(self):
        self.assertEqual(self.run_ladder("y"), ([["x", "y"], ["x"], ["y"]], [[1.0 + ord("x")], [None]]))

    def test_names_are_compared_whole(self):
        runs = [{"name": "06_b/mma/fwd/p"}, {"name": "06_b/mma2/fwd/p"}]
        self.assertEqual(only({"benchmarks": runs}, "mma")["benchmarks"], runs[:1])


class Profiles(unittest.TestCase):
    def test_one_pass_of_two(self):
        for kernels, expected in [("abab", "ab"), ("aa", "a"), ("fpkpk", "pk"), ("aaaa", "aa"), ("fgkk", "k")]:
            launches = [{"kernel": kernel} for kernel in kernels]
            self.assertEqual("".join(launch["kernel"] for launch in one_pass(launches)), expected)
        with self.assertRaisesRegex(Failure, "no pass is there twice"):
            one_pass([{"kernel": "a"}, {"kernel": "b"}])

    def test_sums(self):
        launch = dict.fromkeys(METRICS, 2e9)
        self.assertEqual(sums([launch, launch]), {"seconds": 4.0, "dram_bytes": 8 * 10**9, "l2_bytes": 4 * 10**9})


if __name__ == "__main__":
    unittest.main()
