"""Reading what a chapter's program leaves behind."""

import json
import math
import unittest

from tools.measuring.timing import interpret


def report(**changes) -> str:
    run = {
        "name": "05_online_softmax/online_softmax/fwd/B2_H16_N512_D64_fp16_causal",
        "run_type": "iteration",
        "real_time": 2.0,
        "time_unit": "ms",
        "error": 1e-4,
        "tolerance": 1e-3,
        "FLOP/s": 5e12,
        "peak_bytes": 4096.0,
    }
    run.update(changes)
    return json.dumps({"context": {}, "benchmarks": [run]})


class Interpretation(unittest.TestCase):
    def test_correct(self):
        outcome = interpret(0, report(), "")
        self.assertEqual((outcome.verdict, outcome.seconds, outcome.flop_rate), ("correct", 2e-3, 5e12))
        self.assertEqual((outcome.error, outcome.tolerance, outcome.peak_bytes), (1e-4, 1e-3, 4096))

    def test_the_median_of_the_repetitions(self):
        runs = json.loads(report())["benchmarks"][0]
        repeated = [dict(runs, real_time=time) for time in (1.0, 9.0, 2.0)]
        self.assertEqual(interpret(0, json.dumps({"benchmarks": repeated}), "").seconds, 2e-3)
        median = dict(runs, run_type="aggregate", aggregate_name="median", real_time=3.0)
        self.assertEqual(interpret(0, json.dumps({"benchmarks": [*repeated, median]}), "").seconds, 3e-3)

    def test_nan_and_too_large_errors_are_wrong(self):
        self.assertEqual(interpret(0, report(error=math.nan), "").verdict, "wrong")
        self.assertEqual(interpret(0, report(error=2e-3), "").verdict, "wrong")

    def test_a_time_without_a_check_is_no_result(self):
        unchecked = json.loads(report())
        del unchecked["benchmarks"][0]["error"]
        self.assertEqual(interpret(0, json.dumps(unchecked), "").verdict, "failed")

    def test_google_benchmark_exits_0_after_an_error(self):
        outcome = interpret(0, report(error_occurred=True, error_message="launch failed"), "")
        self.assertEqual((outcome.verdict, outcome.detail), ("failed", "launch failed"))

    def test_wrong_refused_and_failed_programs(self):
        wrong = interpret(1, "", "01_naive/naive: FAIL  o error 0.5, tolerance 0.001\n")
        self.assertEqual(wrong.verdict, "wrong")
        self.assertIn("error 0.5", wrong.detail)
        self.assertEqual(interpret(1, "", "01_naive: cudaErrorNoDevice\n").verdict, "failed")
        self.assertEqual(interpret(2, "", "warning\nseq-k is 9: at most 8\n").detail, "seq-k is 9: at most 8")
        self.assertEqual(interpret(2, "", "x").verdict, "refused")
        diagnosis = "01_naive/naive: PASS\n01_naive: block (0,0,0):\n  invalid global access\n"
        self.assertEqual(interpret(1, "", diagnosis).detail, "01_naive: block (0,0,0): invalid global access")
        self.assertEqual(interpret(-11, "", "").detail, "was killed by SIGSEGV")

    def test_an_unreadable_report(self):
        for text in ("", "{", "{}", '{"benchmarks": []}'):
            self.assertEqual(interpret(0, text, "").verdict, "failed")
