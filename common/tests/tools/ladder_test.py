"""The arithmetic of the ladder and its tables."""

import tempfile
import unittest
from pathlib import Path

from tools.base import terminal
from tools.measuring.timing import Outcome
from tools.record import LENGTHS, Counts, Problem, Record, result_files
from tools.showing import ladder
from tools.showing.ladder import KnownStep, KnownSteps


class Gains(unittest.TestCase):
    def test_over_the_first_step(self):
        self.assertEqual(ladder.over_first([8.0, 4.0, 1.0]), [1.0, 2.0, 8.0])

    def test_the_first_step_is_the_first_that_has_a_time(self):
        self.assertEqual(ladder.over_first([None, 4.0, 1.0]), [None, 1.0, 4.0])

    def test_over_the_step_before(self):
        self.assertEqual(ladder.over_previous([8.0, 4.0, 1.0]), [None, 2.0, 4.0])

    def test_a_step_without_a_time_is_passed_over(self):
        self.assertEqual(ladder.over_previous([8.0, None, 2.0]), [None, None, 4.0])

    def test_a_slower_step_stays_below_one(self):
        self.assertEqual(ladder.over_previous([2.0, 4.0]), [None, 0.5])

    def test_nothing_measured(self):
        self.assertEqual(ladder.over_first([None, None]), [None, None])
        self.assertEqual(ladder.over_previous([]), [])


class Numbers(unittest.TestCase):
    def test_three_digits_that_mean_something(self):
        expected = {0: "0", 0.01849: "0.0185", 0.295: "0.295", 1.004: "1.00", 44.99: "45.0", 1234.4: "1234"}
        self.assertEqual({value: terminal.significant(value) for value in expected}, expected)

    def test_memory(self):
        expected = {0: "0 B", 1000: "1000 B", 1536: "1.5 KiB", 770 * 1024: "770 KiB", 2**31: "2.0 GiB"}
        self.assertEqual({size: terminal.amount_of_memory(size) for size in expected}, expected)


class Tables(unittest.TestCase):
    outcomes = [
        [Outcome("correct", seconds=4e-3, error=1e-4, tolerance=1e-3, flop_rate=1e12, peak_bytes=2**20)] * 2,
        [
            Outcome("correct", seconds=1e-3, error=1e-4, tolerance=1e-3, flop_rate=4e12, peak_bytes=2**20),
            Outcome("refused", "seq-k is 1024: at most 1000"),
        ],
    ]
    names = ["01_naive", "04_fusion"]

    def test_measured_shows_gains_and_refusals(self):
        blocks = ladder.measured(self.names, ["512", "1024"], self.outcomes).split("\n\n")
        self.assertEqual(len(blocks), 5)
        self.assertRegex(blocks[0], r"(?s)ms +N=512 +N=1024\n +01_naive +4.00 +4.00\n +04_fusion +1.00 +refused")
        self.assertRegex(blocks[1], r"04_fusion +4.00x +-")

    def test_checked_names_every_verdict(self):
        text = ladder.checked(self.names, [row[1] for row in self.outcomes])
        self.assertRegex(text, r"01_naive +1.0e-04 +1.0e-03 +correct")
        self.assertRegex(text, r"04_fusion +refused")

    def test_checked_shows_what_is_known_besides(self):
        outcomes = [self.outcomes[0][0]] * 4
        known = [KnownStep(549 * 2**20, 0.292), KnownStep(40 * 2**20, 0.0212), KnownStep(), KnownStep(None, 0.0424)]
        lines = ladder.checked(["01_naive", "02_coalescing", "12_mine", "13_slower"], outcomes, known).split("\n")
        self.assertRegex(lines[0], r" device memory +bytes moved +recorded ms +gain$")
        for line, end in zip(lines[1:], (r"549 MiB +292 +-$", r"40 MiB +21.2 +13.8x$", r" +- +- +-$",
                                         r" +- +42.4 +0.500x$")):
            self.assertRegex(line, r"1.0 MiB +" + end)
        self.assertEqual(len({len(line) for line in lines}), 1)
        self.assertNotIn("\033", "".join(lines))

    def test_the_table_stays_narrow(self):
        names = ["08_causal_earlystop/earlystop"]
        known = [KnownStep(1000 * 2**20, 22.9e-3)] * 2
        self.assertLessEqual(max(map(len, ladder.checked(names * 2, [self.outcomes[0][0]] * 2, known).split("\n"))),
                             120)

    def test_a_reason_is_given_once(self):
        refused = [Outcome("refused", "too long")] * 5
        self.assertEqual(
            ladder.remarks(["04_fusion"], [Problem(2, 16, 16, n, n, 64, "fp16", True) for n in LENGTHS], [refused]),
            ["04_fusion refused at N=512, 1024, 2048, 4096, 8192: too long"],
        )


class WhatIsKnown(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        result_files.write(self.root / "trace" / "02_two.json", {
            "a: ns::k, launch 1": {"bytes read warps": 100, "bytes written warps": 20, "bytes read launch": 7},
            "a: ns::l, launch 2": {"bytes read warps": 3, "bytes written warps": 0},
            "b: ns::k, launch 1": {"barriers": 1}})
        run = {"name": "02_two/a/fwd/B2_H16_N4096_D64_fp16_causal/manual_time", "real_time": 5.0, "time_unit": "ms",
               "FLOP/s": 1e12}
        result_files.write(self.root / "gpu" / "ladder-02_two.json",
                      {"context": {"machine": {"gpu": "NVIDIA H200"}}, "benchmarks": [run]})
        self.known_steps = KnownSteps(Record(self.root / "gpu"), Counts(self.root / "trace"))

    def test_bytes_of_all_launches_and_the_recorded_time(self):
        self.assertEqual(self.known_steps.of("02_two", "a", "forward"), KnownStep(123, 5e-3))

    def test_what_the_host_chooses_has_the_time_of_the_last_rung_that_was_recorded(self):
        self.assertEqual(self.known_steps.of("02_two", "chosen", "forward").seconds, 5e-3)
        self.assertEqual(self.known_steps.of("03_three", "chosen", "forward").seconds, None)

    def test_what_is_missing_is_not_made_up(self):
        self.assertEqual(self.known_steps.of("02_two", "b", "forward"), KnownStep())
        self.assertEqual(self.known_steps.of("12_mine", "a", "forward"), KnownStep())
        self.assertEqual(self.known_steps.of("02_two", "a", "backward").seconds, None)

    def test_notes_name_the_gpu_and_both_problems(self):
        counted, recorded = self.known_steps.notes()
        self.assertIn("N=256 B=1 H=2 D=64 fp16 full", counted)
        self.assertIn("NVIDIA H200, for N=4096 B=2 H=16 D=64 fp16 causal", recorded)
        (counted,) = KnownSteps(Record(self.root / "none"), Counts(self.root / "none")).notes()
        self.assertLessEqual(max(map(len, self.known_steps.notes())), 120)
