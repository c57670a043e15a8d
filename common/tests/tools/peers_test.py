"""./workbook bench --peers: what is measured, and the arithmetic on it."""

import argparse
import contextlib
import importlib
import io
import os
import sys
import unittest
from dataclasses import asdict
from unittest import mock

from tools import cli
from tools.machine import Failure, system
from tools.measuring import peers
from tools.record import Problem
from tools.showing import beside_peers


def parsed(*words):
    parser = argparse.ArgumentParser()
    from tools.commands import bench

    bench.add_arguments(parser)
    return parser.parse_args(words)


class Sweeps(unittest.TestCase):
    def test_flash_attentions(self):
        points = peers.sweep("fa")
        self.assertEqual(len(points), 24)
        self.assertEqual(points[0], Problem(32, 32, 32, 512, 512, 64, "fp16", False))
        self.assertEqual(points[-1], Problem(1, 16, 16, 16384, 16384, 128, "fp16", True))
        for point in points:
            self.assertEqual((point.batch * point.seq_q, point.heads * point.head_dim), (16384, 2048))

    def test_the_published_regime(self):
        points = peers.sweep("seed", "bf16")
        self.assertEqual([point.seq_k for point in points], [512, 1024, 2048, 4096, 8192])
        self.assertEqual({(p.batch, p.heads, p.head_dim, p.dtype, p.causal) for p in points}, {(2, 16, 64, "bf16", True)})

    def test_restrictions(self):
        self.assertEqual(len(peers.sweep("fa", head_dim=128, causal=True)), 6)
        self.assertEqual(peers.sweep("seed", head_dim=128, causal=False)[0], Problem(2, 16, 16, 512, 512, 128, "fp16", False))
        with self.assertRaisesRegex(Failure, "head-dim is 96"):
            peers.sweep("fa", head_dim=96)

    def test_what_the_user_says(self):
        for words, count, what in [
            ([], 24, "fa-fp16"),
            (["--sweep=seed", "--dtype=bf16"], 5, "seed-bf16"),
            (["--head-dim=64", "--no-causal"], 6, "fa-fp16-d64-full"),
            (["--sweep=seed", "--seq-q=1000", "--kv-heads=4"], 1, "custom-fp16"),
        ]:
            points, word = peers.problems(parsed("--peers", *words))
            self.assertEqual((len(points), word), (count, what))


class Launches(unittest.TestCase):
    """With a stand-in for PyTorch, whose events say when the GPU was there first."""

    def setUp(self):
        self.torch = mock.MagicMock()
        modules = {name: self.torch for name in ("torch", "torch.nn", "torch.nn.functional")}
        modules |= {"tools.measuring.peers_check": mock.MagicMock()}
        loaded = mock.patch.dict(sys.modules, modules)
        loaded.start()
        self.addCleanup(loaded.stop)
        sys.modules.pop("tools.measuring.peers_main", None)
        self.peers_main = importlib.import_module("tools.measuring.peers_main")
        self.flush = mock.Mock(seconds=1e-4)
        self.lane = self.peers_main.Lane(mock.MagicMock(), "forward", [[], []], False)
        self.lane.cover = 2e-4

    def gpu_was_there(self, *answers):
        self.torch.cuda.Event.return_value.query.side_effect = answers

    def test_one_in_time_counts(self):
        self.gpu_was_there(False)
        self.lane.take_turn(self.flush)
        self.assertEqual((len(self.lane.events), self.lane.turn, self.lane.late), (1, 1, 0))
        self.flush.assert_called_once_with(2e-4)

    def test_late_ones_are_repeated_with_more_time(self):
        self.gpu_was_there(True, True, False)
        self.lane.take_turn(self.flush)
        self.assertEqual((len(self.lane.events), self.lane.turn, self.lane.late), (1, 1, 2))
        self.assertEqual([round(call.args[0] * 1e6) for call in self.flush.call_args_list], [200, 300, 450])

    def test_what_never_is_in_time_is_left_out(self):
        self.gpu_was_there(*[True] * self.lane.ATTEMPTS)
        with self.assertRaisesRegex(self.peers_main.Skipped, "does not enqueue it"):
            self.lane.take_turn(self.flush)
        self.assertEqual(self.lane.events, [])


class Arithmetic(unittest.TestCase):
    full = Problem(1, 16, 16, 16384, 16384, 128, "fp16", False)
    causal = Problem(1, 16, 16, 16384, 16384, 128, "fp16", True)
    short = Problem(4, 16, 16, 4096, 4096, 128, "fp16", False)
    other = Problem(1, 32, 32, 16384, 16384, 64, "fp16", False)

    def test_flops(self):
        self.assertEqual(peers.flops(self.full, "forward"), 4 * 16 * 16384**2 * 128)
        self.assertEqual(peers.flops(self.causal, "forward") * 2, peers.flops(self.full, "forward"))
        self.assertEqual(peers.flops(self.full, "backward"), 2.5 * peers.flops(self.full, "forward"))

    def test_predictions(self):
        self.assertIsNone(peers.predicted_seconds([], self.full))
        self.assertAlmostEqual(peers.predicted_seconds([(self.short, 0.1)], self.full), 0.4)
        known = [(self.other, 9.0), (self.causal, 2.0), (self.short, 0.1)]
        self.assertAlmostEqual(peers.predicted_seconds(known, self.full), 0.4)
        self.assertAlmostEqual(peers.predicted_seconds(known[:2], self.full), 2.0)
        self.assertAlmostEqual(peers.predicted_seconds(known[:1], self.full), 9.0)

    def test_how_many_launches(self):
        self.assertEqual([peers.launches(seconds) for seconds in (1e-5, 0.05, 0.6)], [40, 10, 3])
        self.assertIsNone(peers.too_slow(0.5))
        self.assertRegex(peers.too_slow(1.234), "about 1.2 s")

    def test_turns_are_spread_evenly(self):
        for count, rounds in [(3, 40), (40, 40), (7, 10), (1, 5)]:
            turns = [number for number in range(rounds) if peers.has_turn(count, rounds, number)]
            self.assertEqual(len(turns), count)
            gaps = [after - before for before, after in zip(turns, turns[1:])]
            self.assertLessEqual(max(gaps, default=1) - min(gaps, default=1), 1)

    def test_spread(self):
        self.assertEqual(peers.spread([3.0, 1.0, 2.0]), {"median": 2, "p10": 1.2, "p90": 2.8, "min": 1, "max": 3})
        self.assertEqual(set(peers.spread([5.0]).values()), {5.0})
        ten = peers.spread([float(i) for i in range(11)])
        self.assertEqual((ten["p10"], ten["p90"]), (1, 9))


def report(*rows) -> dict:
    """rows: {name: seconds, "skipped" text or "wrong" text} for N = 512, 1024, ..."""
    points = []
    for number, row in enumerate(rows):
        problem = Problem(1, 16, 16, 512 << number, 512 << number, 128, "fp16", False)
        results = []
        for name, value in row.items():
            result = {"name": name, "kind": "peer" if name.isupper() else "chapter"}
            if isinstance(value, float):
                result.update(seconds=peers.spread([value, value]), samples=[value, value], flop_rate=1e12 / value)
            else:
                result["wrong" if value.startswith("o ") else "skipped"] = value
            results.append(result)
        points.append({"problem": asdict(problem), "direction": "forward", "flops": 1e12, "results": results})
    peers.add_ratios(points)
    return {"what": "fa-fp16", "absent": {"FA3": "No module"}, "points": points, "summary": peers.summary(points)}


class Reports(unittest.TestCase):
    def test_ratios_are_speed_against_flash(self):
        made = report({"FLASH": 2.0, "MATH": 8.0, "06": 1.0}, {"FLASH": 2.0, "MATH": "no memory", "06": 4.0})
        ratios = [[result.get("ratio") for result in point["results"]] for point in made["points"]]
        self.assertEqual(ratios, [[1, 0.25, 2], [1, None, 0.5]])
        by_name = {one["name"]: one for one in made["summary"]}
        self.assertEqual(set(by_name), {"MATH", "06"})
        self.assertEqual((by_name["06"]["points"], by_name["06"]["lowest"], by_name["06"]["highest"]), (2, 0.5, 2))
        self.assertAlmostEqual(by_name["06"]["geometric_mean"], 1)

    def test_without_flash_there_are_no_ratios(self):
        made = report({"FLASH": "too old", "06": 1.0})
        self.assertIsNone(made["points"][0]["results"][1]["ratio"])
        self.assertEqual(made["summary"], [])
        self.assertIn("06", beside_peers.tables(made))

    def test_the_table_and_the_remarks(self):
        made = report({"FLASH": 2.0, "01": "one launch would take about 1.2 s", "06": 1.0},
                      {"FLASH": 2.0, "01": "one launch would take about 4.7 s", "06": "o differs by 1"})
        lines = beside_peers.tables(made).split("\n")
        self.assertEqual(lines[0].split(), ["forward,", "D=128", "fp16", "full,", "TFLOP/s", "N=512", "N=1024"])
        self.assertEqual([line.split() for line in lines[1:]],
                         [["FLASH", "0.500", "0.500"], ["01", "-", "-"], ["06", "1.00", "wrong"], ["x", "FLASH", "2.00", "-"]])
        said = "\n".join(beside_peers.remarks(made))
        self.assertIn("06, forward: 2.000 x FLASH (geometric mean of 1 points, 2.00 to 2.00)", said)
        self.assertIn("01 skipped at N=512, N=1024: one launch would take about 1.2 s", said)
        self.assertIn("06 wrong at N=1024: o differs by 1", said)
        self.assertIn("FA3 is not here: No module", said)


class BadInput(unittest.TestCase):
    def ending_of(self, *words) -> tuple:
        stderr = io.StringIO()
        with contextlib.redirect_stderr(stderr):
            return cli.main(["bench", "--peers", *words]), stderr.getvalue()

    def test_one_line(self):
        hidden = {"CUDA_VISIBLE_DEVICES": ""}
        for words, status, expected in [
            (["--preset=cpu"], 2, "--peers needs a GPU, and --preset cpu leaves it out"),
            (["--benchmark_filter=x"], 2, "--peers does not use Google Benchmark"),
            (["--keep"], 2, "--keep does not go with --peers"),
            (["--rung=x", "--all-rungs"], 2, "exclude each other"),
            (["--sweep=x"], 2, "invalid choice: 'x'"),
            (["99"], 2, "no chapter 99"),
            ([], 1, "--peers needs a GPU: CUDA_VISIBLE_DEVICES hides every GPU"),
        ]:
            with mock.patch.dict(os.environ, hidden):
                ended, stderr = self.ending_of(*words)
            self.assertEqual(ended, status, words)
            self.assertIn(expected, stderr)
            self.assertEqual(stderr.count("\n"), 1, stderr)

    def test_no_pytorch(self):
        with mock.patch.object(system, "output_of", return_value=None):
            with self.assertRaisesRegex(Failure, "^--peers needs PyTorch with CUDA, which .* lack: install it"):
                peers.python_with_torch()
        with mock.patch.dict(os.environ, {"WORKBOOK_PYTHON": "/nowhere/python"}):
            with self.assertRaisesRegex(Failure, "which /nowhere/python .WORKBOOK_PYTHON. lacks"):
                peers.python_with_torch()


if __name__ == "__main__":
    unittest.main()
