"""run --save: a ladder of somebody's own GPU is kept, read as a record, and never lost."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

from tools.base import RESULTS, Failure
from tools.base.chapters import Chapter
from tools.commands import compare
from tools.record import THE_BOOKS, Record, own
from tools.showing import pictures

STEPS = [compare.Step(Chapter("04_fusion"), "unrolled"), compare.Step(Chapter("05_online_softmax"), "tiles")]


def report(step: compare.Step, times: list, n: int = 512) -> dict:
    """As Google Benchmark writes it: the repetitions, and their median."""
    name = f"{step}/fwd/B2_H16_N{n}_D64_fp16_causal/iterations:9/repeats:3/manual_time"
    runs = [{"name": name, "run_type": "iteration", "real_time": time, "time_unit": "ms", "FLOP/s": 1e12} for time in times]
    return {"benchmarks": [*runs, {**runs[0], "name": f"{name}_median", "run_type": "aggregate", "aggregate_name": "median",
                                   "real_time": sorted(times)[len(times) // 2]}]}


class Own(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.below = Path(scratch.name)
        self.directory = own.place("mine", "NVIDIA T4", self.below)

    def keep(self, *reports: dict) -> Record:
        own.keep(self.directory, list(reports), {"gpu": "NVIDIA T4"})
        (record,) = own.records(self.below)
        return record

    def test_the_median_is_kept_with_the_fastest_and_the_slowest_repetition(self):
        record = self.keep(report(STEPS[0], [2.0, 2.5, 1.5]))
        (row,) = record.rows
        self.assertEqual((record.gpu, row.step, row.seconds, row.seconds_from_to),
                         ("NVIDIA T4", "04_fusion/unrolled", 0.002, (0.0015, 0.0025)))

    def test_what_is_measured_again_takes_the_place_of_what_was_there_and_nothing_else_goes(self):
        self.keep(report(STEPS[0], [2.0]), report(STEPS[0], [4.0], n=1024), report(STEPS[1], [1.0]))
        record = self.keep(report(STEPS[0], [3.0]))
        self.assertEqual({(row.step, row.problem.seq_q): row.seconds for row in record.rows},
                         {(str(STEPS[0]), 512): 0.003, (str(STEPS[0]), 1024): 0.004, (str(STEPS[1]), 512): 0.001})

    def test_names_that_are_none_and_another_gpu_are_refused(self):
        self.keep(report(STEPS[0], [2.0]))
        for name, gpu, why in [("../x", "NVIDIA T4", "--save is '../x'"), ("", "NVIDIA T4", "--save is ''"),
                               ("mine", "NVIDIA L4", "is of an NVIDIA T4, and this is an NVIDIA L4")]:
            with self.subTest(name=name, gpu=gpu), self.assertRaises(Failure) as refused:
                own.place(name, gpu, self.below)
            self.assertIn(why, str(refused.exception))
            self.assertEqual(refused.exception.status, 2)

    def test_compare_shows_it_with_its_spread(self):
        record = self.keep(report(STEPS[0], [2.0, 2.5, 1.5]), report(STEPS[1], [1.0, 1.0, 1.25]))
        with contextlib.redirect_stdout(io.StringIO()) as said:
            compare._say_saved(STEPS, "forward", [record])
            compare._say_saved(STEPS, "backward", [record])
        self.assertRegex(said.getvalue(), r"Kept as mine, NVIDIA T4\n\n.*\nN=512.* 2\.00 +1\.00 +2\.00x +1\.50 to 2\.50 "
                                          r"+1\.00 to 1\.25\n$")

    def test_the_picture_has_it_beside_the_recorded_one(self):
        drawn = pictures.own_pictures(self.keep(report(STEPS[1], [1.0, 1.0, 1.25])), Record(RESULTS / THE_BOOKS))
        ((panel,),) = [one["panels"] for one in drawn.values()]
        mine, recorded = panel["series"]
        self.assertEqual((mine["x"], mine["y"], mine["from"], mine["to"]), ([512], [1.0], [1.0], [1.25]))
        self.assertEqual((mine["style"], recorded["style"], recorded["x"]), ("solid", "dashed", [512]))


if __name__ == "__main__":
    unittest.main()
