"""Tables of the rungs of chapters 10 and 11 on the sweep."""

import unittest
from typing import Any

from tools.base import RESULTS, NotUnderstood, chapters
from tools.record import THE_BOOKS, Missing, Quantities, Record
from tools.showing import experiment_tables
from tools.showing.experiment_tables import Sweep


def point(n: int, rates: dict[str, Any], direction: str = "forward", rope: bool = False) -> dict[str, Any]:
    return {"problem": {"seq_q": n, "head_dim": 128, "causal": False}, "direction": direction, "rope": rope,
            "results": [{"name": name, **({"flop_rate": 1e12 * rate} if rate else {"error": "too slow"})}
                        for name, rate in rates.items()]}


class Tables(unittest.TestCase):
    sweep = Sweep({"points": [
        point(512, {"CUDNN": 500, "10_hopper/tma": 300, "10_hopper/overlap": 400, "10_hopper/pingpong": 390}),
        point(8192, {"CUDNN": 600, "10_hopper/overlap": 700, "10_hopper/pingpong": 690, "10_hopper/stored": 714}),
        point(8192, {"10_hopper/stored": 1}, rope=True), point(8192, {"10_hopper/stored": 2}, "backward")]}, "forward")

    def rows(self, table: str) -> dict[str, list[str]]:
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
        return {row[0]: row[1:] for row in cells}

    def test_a_rate_that_was_not_measured_is_missing(self):
        self.assertEqual(self.sweep.rate("10/tma", (512, 128, "full")), 300)
        for step, where in [("10/tma", (8192, 128, "full")), ("10/tma", (512, 128, "causal")),
                            ("FA4", (512, 128, "full"))]:
            self.assertRaises(Missing, self.sweep.rate, step, where)

    def test_every_rung_has_a_line_measured_or_not(self):
        rows = self.rows(experiment_tables.rungs_of(self.sweep, "10", "forward"))
        self.assertEqual(rows["`overlap`"], ["700", "–", "400"])
        self.assertEqual(rows["`narrow`"], ["–", "–", "–"])
        self.assertEqual(rows["cuDNN"], ["600", "–", "500"])

    def test_a_step_is_over_the_rung_that_it_starts_from(self):
        rows = self.rows(experiment_tables.steps_of(self.sweep, "10", "forward"))
        self.assertEqual(rows["`stored` over `overlap`"], ["1.02", "–", "–", "–", "–", "–"])  # not over pingpong
        self.assertEqual(rows["`pingpong` over `overlap`"], ["0.99", "–", "–", "–", "0.97", "–"])

    def test_rungs_that_were_one_at_first_have_a_line_together(self):
        sweep = Sweep({"points": [point(2048, {"10_hopper/overlap": 400, "10_hopper/persistent": 500})]}, "forward")
        rows = self.rows(experiment_tables.steps_of(sweep, "10", "forward"))
        self.assertEqual(rows["`persistent` over `overlap`"], ["–", "–", "–", "–", "–", "1.25"])
        self.assertEqual(rows["`persistent` over `listed`"], ["–", "–", "–", "–", "–", "–"])

    def test_only_what_was_measured_has_a_column(self):
        head = experiment_tables.points_of(self.sweep, "10", "forward").splitlines()[0]
        self.assertEqual(head, "| TFLOP/s | cuDNN | `tma` | `overlap` | `pingpong` | `stored` |")

    def test_the_mean_counts_points_that_both_have(self):
        table = experiment_tables.again({"once": lambda: self.sweep}, "10/overlap", "forward")
        self.assertEqual(self.rows(table)["`overlap` over cuDNN"], ["0.97 (0.800)"])
        self.assertEqual(self.rows(table)["`overlap` over FlashAttention-4"], ["–"])

    def test_an_unknown_chapter_or_experiment_is_named(self):
        self.assertRaisesRegex(NotUnderstood, "no list of the rungs of 09, forward", experiment_tables.rungs_of,
                               self.sweep, "09", "forward")
        self.assertRaisesRegex(NotUnderstood, "no experiment x .there are counters of 10", experiment_tables.experiment,
                               Quantities(Record(RESULTS / THE_BOOKS)), "x")

    def test_each_experiment_is_in_the_record(self):
        of = Quantities(Record(RESULTS / THE_BOOKS))
        for name in experiment_tables.EXPERIMENTS:
            table = experiment_tables.experiment(of, name)
            self.assertGreater(len(table.splitlines()), 4, name)
            self.assertLess(table.count("| – |"), 8, name)

    def test_the_rungs_are_those_of_the_chapter(self):
        chapter = next(one for one in chapters.all_chapters() if one.name == "10_hopper")
        for direction in ("forward", "backward"):
            for name in experiment_tables.RUNGS["10", direction].split():
                self.assertTrue(chapters.names_a_rung(chapter, name), name)


if __name__ == "__main__":
    unittest.main()
