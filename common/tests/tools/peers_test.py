"""./workbook peers: what is measured, and the arithmetic on it."""

import contextlib
import importlib
import io
import os
import subprocess
import sys
import tempfile
import unittest
from dataclasses import asdict
from pathlib import Path
from unittest import mock

from tools import cli
from tools.machine import ROOT, Failure, system, with_python_path
from tools.measuring import peers
from tools.record import Problem
from tools.showing import beside_peers


DEFAULT = Problem(2, 16, 16, 4096, 4096, 64, "fp16", True)


class Sweeps(unittest.TestCase):
    def test_flash_attentions(self):
        points = peers.sweep("fa", {}, DEFAULT)
        self.assertEqual(len(points), 24)
        self.assertEqual(points[0], Problem(32, 32, 32, 512, 512, 64, "fp16", False))
        self.assertEqual(points[-1], Problem(1, 16, 16, 16384, 16384, 128, "fp16", True))
        for point in points:
            self.assertEqual((point.batch * point.seq_q, point.heads * point.head_dim), (16384, 2048))

    def test_the_ladders(self):
        points = peers.sweep("ladder", {"dtype": "bf16"}, DEFAULT)
        self.assertEqual([point.seq_k for point in points], [512, 1024, 2048, 4096, 8192])
        self.assertEqual({(p.batch, p.heads, p.head_dim, p.dtype, p.causal) for p in points}, {(2, 16, 64, "bf16", True)})

    def test_restrictions(self):
        self.assertEqual(len(peers.sweep("fa", {"head_dim": 128, "causal": True}, DEFAULT)), 6)
        self.assertEqual(peers.sweep("ladder", {"head_dim": 128, "causal": False}, DEFAULT)[0],
                         Problem(2, 16, 16, 512, 512, 128, "fp16", False))
        self.assertEqual(peers.sweep("fa", {"head_dim": 96, "seq_q": [32768]}, DEFAULT)[0], Problem(1, 21, 21, 32768, 32768, 96, "fp16", False))

    def test_what_the_user_says(self):
        for name, said, count, word in [
            ("fa", {}, 24, "fa-fp16"),
            ("ladder", {"dtype": "bf16"}, 5, "ladder-bf16"),
            ("fa", {"head_dim": 64, "causal": False}, 6, "fa-fp16-d64-full"),
            ("ladder", {"seq_q": [1000], "kv_heads": 4}, 1, "custom-fp16"),
            ("ladder", {"seq_q": [1000, 7], "seq_k": 9, "batch": 3}, 2, "custom-fp16"),
        ]:
            points = peers.sweep(name, said, DEFAULT)
            self.assertEqual((len(points), peers.word_for(name, said, points)), (count, word))
        self.assertEqual(points[1], Problem(3, 16, 16, 7, 9, 64, "fp16", True))

    def test_as_many_kv_heads_as_heads_unless_said(self):
        heads = {(p.heads, p.kv_heads) for p in peers.sweep("ladder", {"heads": 8}, DEFAULT)}
        self.assertEqual(heads, {(8, 8)})
        heads = {(p.heads, p.kv_heads) for p in peers.sweep("ladder", {"kv_heads": 4}, DEFAULT)}
        self.assertEqual(heads, {(16, 4)})


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

    def test_percentiles(self):
        self.assertEqual(peers.percentiles([3.0, 1.0, 2.0]), {"median": 2, "p10": 1.2, "p90": 2.8, "min": 1, "max": 3})
        self.assertEqual(set(peers.percentiles([5.0]).values()), {5.0})
        ten = peers.percentiles([float(i) for i in range(11)])
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
                result.update(seconds=peers.percentiles([value, value]), samples=[value, value], flop_rate=1e12 / value)
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
            return cli.main(["peers", *words]), stderr.getvalue()

    def test_one_line(self):
        hidden = {"CUDA_VISIBLE_DEVICES": ""}
        for words, status, expected in [
            (["--preset=cpu"], 2, "unknown argument --preset=cpu"),
            (["--benchmark_filter=x"], 2, "unknown argument --benchmark_filter=x"),
            (["--keep"], 2, "unknown argument --keep"),
            (["--rung=x", "--all-rungs"], 2, "not allowed with argument --rung"),
            (["--patience=-1"], 2, "-1 is not a number of seconds above 0"),
            (["--patience=nan"], 2, "nan is not a number of seconds above 0"),
            (["--sweep=x"], 2, "invalid choice: 'x'"),
            (["--heads=3", "--kv-heads=2"], 2, "heads must be a multiple of kv-heads"),
            (["99"], 2, "no chapter 99"),
            ([], 1, "peers needs a GPU: CUDA_VISIBLE_DEVICES hides every GPU"),
        ]:
            with mock.patch.dict(os.environ, hidden):
                ended, stderr = self.ending_of(*words)
            self.assertEqual(ended, status, words)
            self.assertIn(expected, stderr)
            self.assertEqual(stderr.count("\n"), 1, stderr)

    def test_no_pytorch(self):
        for named, expected in [("", "^peers needs PyTorch with CUDA, which .* lack: install it"),
                                ("/nowhere/python", "which /nowhere/python .WORKBOOK_PYTHON. lacks")]:
            with mock.patch.dict(os.environ, {"WORKBOOK_PYTHON": named}), mock.patch.object(system, "output_of", return_value=None):
                with self.assertRaisesRegex(Failure, expected):
                    peers.python_with_torch()


class Environment(unittest.TestCase):
    def test_the_users_python_path_is_kept(self):
        with tempfile.TemporaryDirectory() as scratch, mock.patch.dict(os.environ, {"PYTHONPATH": scratch}):
            (Path(scratch) / "only_the_users.py").touch()
            (Path(scratch) / "tools.py").touch()  # ours comes first
            program = "import only_the_users, tools.machine; print(tools.__file__)"
            found = subprocess.run([sys.executable, "-B", "-c", program], env=with_python_path(ROOT / "common"),
                                   text=True, capture_output=True)
        self.assertEqual((found.returncode, found.stderr), (0, ""))
        self.assertIn(str(ROOT / "common"), found.stdout)
        with mock.patch.dict(os.environ):
            os.environ.pop("PYTHONPATH", None)
            self.assertEqual(with_python_path("/a", "/b")["PYTHONPATH"], "/a:/b")


if __name__ == "__main__":
    unittest.main()
