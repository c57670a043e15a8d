"""compare: which recorded times are taken, and what is summed."""

import argparse
import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tools.base import RESULTS
from tools.base.chapters import Chapter
from tools.commands import compare
from tools.record import THE_BOOKS, Record


def recorded(name: str, milliseconds: float) -> dict:
    return {"name": f"{name}/iterations:9/repeats:11/manual_time_median", "aggregate_name": "median",
            "real_time": milliseconds, "time_unit": "ms", "peak_bytes": 1024, "FLOP/s": 1.0}


class Compare(unittest.TestCase):
    steps = [compare.Step(Chapter("03_tiling"), "tiling"), compare.Step(Chapter("05_online_softmax"), "tiles")]

    def test_recorded_times(self):
        with tempfile.TemporaryDirectory() as scratch:
            gpu = Path(scratch) / "some-gpu"
            gpu.mkdir()

            def piece(name: str, steps: list, lengths: tuple) -> None:
                runs = [recorded(f"{step}/fwd/B1_H2_N{n}_D64_fp16_full", n * (self.steps.index(step) + 1))
                        for step in steps for n in lengths]
                (gpu / f"{name}.json").write_text(json.dumps({"benchmarks": runs}))

            piece("memory", self.steps, (1024, 512))
            piece("other", self.steps, (512,))
            where, times = compare._recorded(self.steps, "forward", Path(scratch))
            self.assertEqual(where, gpu / "memory")
            self.assertEqual([problem.seq_q for problem in times], [512, 1024])
            self.assertEqual(list(times.values())[0], [(0.512, 1024), (1.024, 1024)])
            # The ladder comes first, whose chapters have a file each.
            piece("ladder-03_tiling", self.steps[:1], (512, 2048))
            piece("ladder-05_online_softmax", self.steps[1:], (512, 4096))
            compare._rows.cache_clear()
            where, times = compare._recorded(self.steps, "forward", Path(scratch))
            self.assertEqual((where, [problem.seq_q for problem in times]), (gpu / "ladder", [512]))
            self.assertEqual(compare._recorded(self.steps, "backward", Path(scratch)), (None, {}))

    def test_every_two_neighbours_have_recorded_times(self):
        for direction in ("forward", "backward"):
            steps = [compare.Step(Chapter(name), rung) for name, _, rung in
                     (step.partition("/") for step in Record(RESULTS / THE_BOOKS).steps(direction))]
            for two in zip(steps, steps[1:]):
                self.assertTrue(compare._recorded(list(two), direction, RESULTS)[1], two)

    def test_counters_are_sums_over_launches(self):
        launch = {"bytes": {"read": {"warps": 64, "launch": 32}, "written": {"warps": 0, "launch": 0}},
                  "totals": {"shared_load": {"requests": 2, "wavefronts": 10, "ideal": 4}},
                  "barriers": 3, "shuffles": 0, "matrix_flops": 0}
        sums = compare.counters({"launches": [launch, launch]})
        self.assertEqual(sums["launches"], 2)
        self.assertEqual(sums["shared load wavefronts"], 20)
        self.assertEqual(sums["shared load bank conflicts"], 12)
        self.assertEqual(sums["bytes read, different in the launch"], 64)
        self.assertEqual(sums["barriers"], 6)

    def test_machine_instructions_that_are_not_counted_are_no_0(self):
        launch = {"bytes": {"read": {"warps": 0, "launch": 0}, "written": {"warps": 0, "launch": 0}}, "totals": {},
                  "barriers": 0, "shuffles": 0, "matrix_flops": 0}
        counted = {**launch, "instructions": {"executed": 900, "kinds": {"fp32": 600, "integer": 300}}}
        whole, part = (compare.counters({"launches": launches}) for launches in ([counted, counted], [counted, launch]))
        self.assertEqual(compare.counter_rows(whole, part), [
            ["launches", "2", "2", "1.00"], ["machine instructions", "1,800", "not counted", "-"]])
        self.assertEqual(compare.counter_rows(whole, whole)[1:], [
            ["machine instructions", "1,800", "1,800", "1.00"], ["  fp32", "1,200", "1,200", "1.00"],
            ["  integer", "600", "600", "1.00"]])
        self.assertEqual(compare.counter_rows(part, part), [["launches", "2", "2", "1.00"]])

    def test_the_summary_comes_last_and_the_diff_when_asked_for(self):
        def said(*flags: str) -> list:
            parser = argparse.ArgumentParser()
            compare.add_arguments(parser)
            arguments = parser.parse_args(["08/earlystop", "08/balanced", "--direction=forward", *flags])
            steps = {"earlystop": "2_earlystop", "balanced": "3_balanced"}

            def counted(step, *_) -> dict:
                lines = [{"line": f"08_causal_earlystop/{steps[step.rung]}.cu:7", "requests": 1}]
                moved = {"read": {"warps": 64, "launch": 32}, "written": {"warps": 0, "launch": 0}}
                launch = {"bytes": moved, "totals": {}, "lines": lines, "barriers": 8 * len(step.rung), "shuffles": 0,
                          "matrix_flops": 0}
                return {"problem": "B1_H2_N256_D64_fp16_causal", "rungs": [{"rung": step.rung, "launches": [launch]}]}

            out = io.StringIO()
            with contextlib.ExitStack() as stack:
                for patch in (mock.patch.object(compare.build, "ensure_built"),
                              mock.patch.object(compare, "_counted", counted),
                              mock.patch.object(compare, "_step", lambda chapter, rung, *_: compare.Step(chapter, rung)),
                              mock.patch.object(compare.engine_counts, "wrong_rungs", return_value=[]),
                              mock.patch.object(compare, "add_instructions", return_value=["No instructions."]),
                              mock.patch.object(compare.cuda, "choose_preset",
                                                return_value=mock.Mock(gpu=None, why="no GPU")),
                              contextlib.redirect_stdout(out)):
                    stack.enter_context(patch)
                self.assertEqual(compare.run(arguments), 0)
            return out.getvalue().splitlines()

        plain = said()
        begin = plain.index("In short: 08_causal_earlystop/balanced against 08_causal_earlystop/earlystop, forward")
        self.assertRegex("\n".join(plain[begin:]), r"times as fast.*\n  barriers: 1\.12 times fewer\n  \d+ lines of "
                                                   r"code added .*--diff shows them$")
        self.assertFalse([line for line in plain if line.startswith(("diff ", "+", "@@"))])
        whole = said("--diff")
        self.assertIn("diff 08_causal_earlystop/2_earlystop.cu 08_causal_earlystop/3_balanced.cu", whole)
        self.assertLess(max(at for at, line in enumerate(whole) if line.startswith("@@")),
                        whole.index(plain[begin]))

    def test_in_short_those_that_differ_most(self):
        first = {"launches": 3, "barriers": 64, "shuffles": 10, "global load requests": 800, "global load sectors": 100,
                 "shared load bank conflicts": 9, "machine instructions": 900, "  fp32": 9, "global store requests": 7}
        second = {"launches": 1, "barriers": 64, "shuffles": 40, "global load requests": 100, "global load sectors": 50,
                  "ldmatrix requests": 5, "machine instructions": 9, "global store requests": 5}
        self.assertEqual(compare.most_different(first, second), [
            "global load requests: 8.00 times fewer", "shuffles: 4.00 times as many",
            "global load sectors: 2.00 times fewer", "global store requests: 1.40 times fewer",
            "not any more: shared load bank conflicts", "new: ldmatrix requests"])
        self.assertEqual(compare.most_different({"barriers": 64}, {"barriers": 64}), [])

    def test_in_short_how_much_faster(self):
        def speed(ratios: dict) -> list:
            return compare._speed(ratios, "recorded")

        self.assertEqual(speed({}), [])
        self.assertEqual(speed({"N=512 D=64": 1.25}), ["1.25 times as fast at N=512 D=64 (recorded)"])
        self.assertEqual(speed({"N=512 D=64": 1.5, "N=8192 D=64": 0.5, "N=64 D=64": 1}),
                         ["0.500 to 1.50 times as fast, at N=8192 and N=512 (recorded)"])
        self.assertEqual(speed({"N=512 D=64": 1, "N=512 D=128": 2}),
                         ["1.00 to 2.00 times as fast, at N=512 D=64 and N=512 D=128 (recorded)"])

    def test_in_short_what_lines_differ(self):
        def said(**flags) -> str:
            return compare._source_in_short("08_causal_earlystop/2_earlystop.cu", "08_causal_earlystop/3_balanced.cu",
                                            argparse.Namespace(steps=["08/earlystop", "08"], **flags))

        self.assertRegex(said(diff=False), r"^\d+ lines of code added and \d+ taken away, from .*; "
                                           r"\./workbook compare 08/earlystop 08 --diff shows them$")
        self.assertTrue(said(diff=True).endswith("3_balanced.cu"))

    def test_the_source_is_where_the_kernels_are(self):
        def counted(**requests):
            return {"launches": [{"lines": [{"line": f"{file}:{number}", "requests": count}]}
                                 for number, (file, count) in enumerate(requests.items())]}

        step = compare.Step(Chapter("08_causal_earlystop"), "earlystop")
        own, lent = {"08_causal_earlystop/2_earlystop.cu": 3,
                     "08_causal_earlystop/2_other.cu": 2}, {"07_backward/7_atomic.cu": 9}
        shared = {"common/device/mma.h": 99}
        self.assertEqual(compare.source(step, counted(**own, **lent, **shared)), "08_causal_earlystop/2_earlystop.cu")
        self.assertEqual(compare.source(step, counted(**lent, **shared)), "07_backward/7_atomic.cu")

    def test_the_source_of_an_exercises_own_kernels_can_be_read(self):
        step = compare.Step(Chapter("rows"), "rows")
        file = compare.source(step, {"launches": [{"lines": [{"line": "rows/rows.cu:7", "requests": 1}]}]})
        self.assertEqual(file, "common/course/rows/rows.cu")
        self.assertIn("+++ 01_naive/attention.cu", compare._diff(file, "01_naive/attention.cu"))


if __name__ == "__main__":
    unittest.main()
