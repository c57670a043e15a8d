"""./workbook dev accuracy: what is compared with fp64, how it is judged, and the tables of it."""

import contextlib
import importlib
import io
import math
import os
import sys
import tempfile
import unittest
from dataclasses import asdict
from pathlib import Path
from unittest import mock

from tools import cli
from tools.base import cuda, evaluate
from tools.measuring import accuracy
from tools.record import Missing, Problem, Record, result_files
from tools.record.quantities import Quantities
from tools.showing import Tables, accuracy_tables
from tools.showing.lesson_tables import NOT_YET

RUNGS = {"07_b": {"mma": {"forward": False, "backward": True, "lse": False, "rope": False}},
         "06_a": {"final": {"forward": True, "backward": False, "lse": True, "rope": False}},
         "09_c": {"both": {"forward": True, "backward": True, "lse": True, "rope": True}}}


def problem(keys, dtype="fp16", head_dim=128, extras=""):
    return Problem(1, 4, 4, 256, keys, head_dim, dtype, False, extras)


def measured(keys, rope=False, dtype="fp16", extras="", **norms):
    """{name: {tensor: norm}} of one problem; chapters have a / in their names, written __."""
    named = {name.replace("__", "/").replace("_det", "-det").replace("rotated_", "rotated+"): found
             for name, found in norms.items()}
    return {"problem": asdict(problem(keys, dtype, extras=extras)), "rope": rope, "results": [
        {"name": name, "kind": "chapter" if "/" in name else "peer",
         **({"norms": found} if isinstance(found, dict) else {"skipped": found})}
        for name, found in named.items()]}


class Judgements(unittest.TestCase):
    def test_ratios_are_to_flash_on_the_same_problem(self):
        found = [measured(1024, FLASH={"o": 2e-4, "dq": 3e-4}, FLASH_det={"dq": 3e-4},
                          **{"08_x__y": {"o": 3e-4, "dq": None}}),
                 measured(4096, rope=True, rotated_FLASH={"o": 4e-4}, **{"09_x__y": {"o": 2e-4}})]
        accuracy.add_ratios(found)
        self.assertEqual([one["baseline"] for one in found], ["FLASH", "rotated+FLASH"])
        ratios = {result["name"]: result["ratios"] for one in found for result in one["results"]}
        self.assertEqual(ratios, {"FLASH": {"o": 1, "dq": 1}, "FLASH-det": {"dq": 1},
                                  "08_x/y": {"o": 1.5, "dq": None},
                                  "rotated+FLASH": {"o": 1}, "09_x/y": {"o": 0.5}})

    def test_with_extras_the_ratio_is_to_flash_on_the_same_problem_or_without_them(self):
        found = [measured(1024, FLASH={"o": 2e-4}), measured(4096, FLASH={"o": 4e-4}),
                 measured(4096, extras="sink", **{"12_x__y": {"o": 6e-4}}),
                 measured(4096, extras="window5_0", FLASH={"o": 3e-4}, **{"12_x__y": {"o": 3e-4}})]
        accuracy.add_ratios(found)
        self.assertEqual([one["results"][-1]["ratios"]["o"] for one in found[2:]], [1.5, 1])
        self.assertEqual(accuracy.too_inaccurate(found), ["12_x/y: o is 1.50 times as far from fp64 as "
                                                          "FlashAttention-2's, at Nk=4096 D=128 fp16 sink"])

    def test_the_largest_ratio_counts(self):
        found = [measured(keys, FLASH={"dq": 1.0, "dv": 1.0}, **{"07_b__mma": {"dq": of, "dv": 1.0}})
                 for keys, of in ((1024, 1.04), (4096, 1.06), (16384, 0.9))]
        accuracy.add_ratios(found)
        self.assertEqual(accuracy.worst(found), {("07_b/mma", "dq"): (1.06, problem(4096)),
                                                 ("07_b/mma", "dv"): (1.0, problem(1024))})
        self.assertEqual(accuracy.too_inaccurate(found),
                         ["07_b/mma: dq is 1.06 times as far from fp64 as FlashAttention-2's, at Nk=4096 D=128 fp16"])

    def test_what_cannot_be_told_is_not_accurate(self):
        for flash, ours in (({"dq": 1.0}, {"dq": None}), ({"dq": None}, {"dq": 1.0}), ("too old", {"dq": 1.0})):
            found = [measured(1024, FLASH={"dq": 1.0}, **{"07_b__mma": {"dq": 1.0}}),
                     measured(4096, FLASH=flash, **{"07_b__mma": ours})]
            accuracy.add_ratios(found)
            self.assertEqual(len(accuracy.too_inaccurate(found)), 1, (flash, ours))

    def test_what_is_printed(self):
        found = [measured(keys, FLASH={"o": 1.0, "dq": 1.0},
                          **{"07_b__mma": {"dq": 1.25}, "04_x__y": f"{keys} keys do not fit"})
                 for keys in (1024, 4096)]
        accuracy.add_ratios(found)
        report = {"errors": found, "absent": {"CUDNN": "No module"}}
        lines = accuracy_tables.table_of_ratios(accuracy.worst(found)).split("\n")
        self.assertEqual([line.split() for line in lines], [["o", "dq", "dk", "dv"], ["07_b/mma", "1.250"]])
        self.assertEqual(accuracy_tables.remarks(report),
                         ["CUDNN is not here: No module", "04_x/y skipped at Nk=1024, 4096: 1024 keys do not fit"])


class Vector(list):
    """As much of a tensor as the comparison needs."""

    def double(self):
        return self

    def __sub__(self, other):
        return Vector(a - b for a, b in zip(self, other))

    def abs(self):
        return Vector(map(abs, self))

    def norm(self):
        return Number(math.sqrt(sum(x * x for x in self)))

    def max(self):
        return Number(math.nan if any(map(math.isnan, self)) else max(self))


class Number(float):
    def __truediv__(self, other):
        return Number(float(self) / other if other else math.nan)

    def item(self):
        return float(self)


class BesideAStandInForTorch(unittest.TestCase):
    def setUp(self):
        self.torch = mock.MagicMock(__version__="2")
        self.torch.cuda.OutOfMemoryError = MemoryError
        self.torch.cuda.get_device_capability.return_value = (9, 0)
        modules = dict.fromkeys(("torch", "torch.nn", "torch.nn.functional", "torch.nn.attention"), self.torch)
        modules |= {"tools.measuring.peers_check": mock.MagicMock()}
        loaded = mock.patch.dict(sys.modules, modules)
        loaded.start()
        self.addCleanup(loaded.stop)
        for name in ("peers_main", "accuracy_main"):
            sys.modules.pop(f"tools.measuring.{name}", None)
        self.main = importlib.import_module("tools.measuring.accuracy_main")
        self.workbook = mock.MagicMock()
        self.workbook.chapters.return_value = RUNGS
        self.workbook.default_rung.return_value = "09_c", "both"

    def test_every_rung_beside_its_peers(self):
        every, absent = self.main.candidates(self.workbook, ["06_a", "07_b", "09_c"])
        self.assertEqual([(one.name, one.kind, one.rope) for one in every], [
            ("FLASH", "peer", False), ("FLASH-deterministic", "peer", False), ("CUDNN", "peer", False),
            ("rotated+FLASH", "peer", True), ("06_a/final", "chapter", False), ("07_b/mma", "chapter", False),
            ("09_c/both", "chapter", True)])
        self.assertEqual(absent, {})

    def test_a_rung_makes_what_it_has_from_the_books_last_forward(self):
        self.workbook.forward.side_effect = lambda *_, chapter=None, **__: (f"o of {chapter}", "lse")
        self.workbook.backward.return_value = ("dq", "dk", "dv")
        made = {chapter: self.main.Rung(self.workbook, chapter, rung, has).results("q", "k", "v", "dO", "tables")
                for chapter, rungs in RUNGS.items() for rung, has in rungs.items()}
        gradients = {"dq": "dq", "dk": "dk", "dv": "dv"}
        self.assertEqual(made, {"06_a": {"o": "o of 06_a"}, "07_b": gradients, "09_c": {"o": "o of 09_c", **gradients}})
        self.workbook.backward.assert_called_with("q", "k", "v", "o of None", "lse", "dO", rope="tables",
                                                  chapter="09_c", rung="both")

    def test_the_deterministic_backward_alone(self):
        every, _ = self.main.candidates(self.workbook, ["06_a"])
        self.torch.autograd.grad.return_value = ("dq", "dk", "dv")
        found = [list(one.results(*[mock.MagicMock()] * 4, None)) for one in every[:2]]
        self.assertEqual(found, [["o", "dq", "dk", "dv"], ["dq", "dk", "dv"]])

    def test_errors_are_relative(self):
        for got, expected in (([3.0, 4.0], (0, 0)), ([3.0, 5.0], (0.2, 0.25)), ([3.0, math.nan], (None, None)),
                              ([math.inf, 4.0], (None, None))):
            self.assertEqual(self.main.relative(Vector(got), Vector([3.0, 4.0])), expected)

    def test_what_is_refused_is_skipped_and_a_lost_device_is_an_error(self):
        def that(error):
            return mock.MagicMock(kind="chapter", results=mock.Mock(side_effect=error))

        def skipped(error):
            return self.main.compared(that(error), [], {}, None)["skipped"]

        self.assertEqual(skipped(ValueError("seq-k is 9\nmore")), "seq-k is 9")
        self.assertEqual(skipped(MemoryError()), "there is not enough device memory")
        with self.assertRaises(RuntimeError):
            skipped(RuntimeError("CUDA error: an illegal memory access"))

    def run_with(self, chapters):
        """Everything is 0.1 away from 1."""
        exact = {tensor: Vector([1.0]) for tensor in accuracy.TENSORS}
        self.main.Reference.return_value.of_every_head.return_value = exact
        near = Vector([1.1])
        self.workbook.forward.side_effect = self.workbook.forward.side_effect or (lambda *_, **__: (near, None))
        self.workbook.backward.return_value = (near,) * 3
        peers = mock.patch.object(self.main.Peer, "results", lambda self, *_: dict.fromkeys(accuracy.TENSORS, near))
        with mock.patch.dict(sys.modules, {"flash_attention_workbook": self.workbook}), peers, \
                contextlib.redirect_stdout(io.StringIO()) as said:
            return self.main.run({"chapters": chapters, "seed": 0, "commit": "abc"}), said.getvalue()

    def test_the_report(self):
        self.workbook.default_rung.return_value = "12_v", "all"
        report, said = self.run_with(["06_a", "07_b", "09_c"])
        self.assertEqual(len(report["errors"]), 2 * len(accuracy.problems()))
        self.assertEqual({one["problem"]["seq_k"] for one in report["errors"]}, {1024, 4096, 16384, 65536, 131072})
        plain, rope = report["errors"][:2]
        self.assertEqual([result["name"] for result in plain["results"]],
                         ["FLASH", "FLASH-deterministic", "CUDNN", "06_a/final", "07_b/mma"])
        self.assertEqual([result["name"] for result in rope["results"]], ["rotated+FLASH", "09_c/both"])
        self.assertEqual({round(norm, 6) for result in plain["results"] for norm in result["norms"].values()}, {0.1})
        self.assertEqual(accuracy.too_inaccurate(report["errors"]), [])
        self.assertEqual([(one["problem"]["dtype"], [result["name"] for result in one["results"]])
                          for one in report["loss_scaling"]],
                         [("fp16", ["FLASH", "07_b/mma"]), ("bf16", ["FLASH", "07_b/mma"])])
        for one in report["loss_scaling"]:
            self.assertEqual({len(norms) for result in one["results"] for norms in result["norms"].values()},
                             {len(accuracy.EXPONENTS)})
        self.assertLessEqual({"gpu", "torch", "commit", "before", "after"}, set(report["context"]))
        self.assertEqual(said.count("progress\t"), len(report["errors"]) + 2)

    def test_extras_are_asked_of_what_runs_where_no_chapter_is_named(self):
        asked = []
        self.workbook.forward.side_effect = lambda *_, **said: asked.append(said) or (Vector([1.1]), None)
        report, _ = self.run_with(["09_c"])
        found = [one for one in report["errors"] if one["problem"]["extras"]]
        self.assertEqual([one["problem"] for one in found], [asdict(one) for one in accuracy.problems_with_extras()])
        self.assertEqual({one["problem"]["extras"]: [result["name"] for result in one["results"]] for one in found},
                         {"views": ["FLASH", "FLASH-deterministic", "CUDNN", "09_c/both"],
                          "window1024_0": ["FLASH", "FLASH-deterministic", "09_c/both"],
                          **dict.fromkeys(("softcap20", "alibi", "sink"), ["09_c/both"])})
        of_window = {"rope": None, "chapter": "09_c", "rung": "both", "window": (1024, 0)}
        self.assertEqual(sum(said == of_window for said in asked), 8)
        self.assertEqual(self.workbook.backward.call_args.kwargs.keys(), {"rope", "chapter", "rung", "sink"})
        self.assertEqual({name for said in asked for name in said}, {*of_window, "softcap", "alibi", "sink"})

    def test_forwards_alone(self):
        report, _ = self.run_with(["06_a"])
        self.assertEqual({one["rope"] for one in report["errors"]}, {False})
        self.assertEqual(report["loss_scaling"], [])


class OfTheRecord(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.directory = Path(scratch.name)
        found = [measured(keys, FLASH={"o": 2e-4, "dq": 3e-4, "dk": 3e-4, "dv": 3e-4}, **{
            "07_b__mma": {"dq": 3e-4 * worse, "dk": 3e-4, "dv": 1.4e-3}})
                 for keys, worse in ((1024, 1.2), (131072, 1.0))]
        accuracy.add_ratios(found)
        scaled = [{"problem": asdict(problem(1024, dtype, 64)), "exponents": [-24, 0], "results": [
            {"name": "07_b/mma", "kind": "chapter",
             "norms": dict.fromkeys(("dq", "dk", "dv"), [small, None if dtype == "fp16" else 3e-3])}]}
            for dtype, small in (("fp16", 0.71), ("bf16", 3e-3))]
        result_files.write(self.directory / "accuracy.json", {"context": {}, "errors": found, "loss_scaling": scaled})
        median = {"name": "07_b/mma/bwd/B1_H8_N512_D64_fp16_causal", "real_time": 1, "time_unit": "ms", "FLOP/s": 1.0}
        result_files.write(self.directory / "ladder-07_b.json", {"context": {}, "benchmarks": [median]})
        self.record = Record(self.directory)

    def value(self, text, of=Quantities):
        return evaluate(text, of(self.record))

    def test_numbers(self):
        for text, expected in [('1e4 * relative_error("07/mma", "dq", 1024)', 3.6),
                               ('error_against("07", "dq", 1024)', 1.2),
                               ('most_error_against("07", "dq")', 1.2), ('relative_error("FLASH", "o", 131072)', 2e-4),
                               ('scaled_error("07", "dk", -24)', 0.71), ('scaled_error("07", "dk", 0)', math.inf)]:
            self.assertAlmostEqual(self.value(text), expected, msg=text)
        for text in ('relative_error("07", "dq", 4096)', 'relative_error("07", "o", 1024)',
                     'error_against("07", "dq", 1024, "bf16")',
                     'most_error_against("07", "dq", head_dim=64)', 'scaled_error("07", "dk", 3)'):
            with self.assertRaises(Missing, msg=text):
                self.value(text)

    def test_tables(self):
        self.assertEqual(self.value('accuracy("backward", "FLASH", "07/mma")', Tables).split("\n"), [
            "| fp16, D = 128 | FlashAttention-2 | `07_b` |", "|---|--:|--:|",
            "| dQ, 1024 keys | 3.0e-4 | 3.6e-4 |", "| dK, 1024 keys | 3.0e-4 | 3.0e-4 |",
            "| dV, 1024 keys | 3.0e-4 | 1.4e-3 |",
            "| dQ, 131072 keys | 3.0e-4 | 3.0e-4 |", "| dK, 131072 keys | 3.0e-4 | 3.0e-4 |",
            "| dV, 131072 keys | 3.0e-4 | 1.4e-3 |"])
        self.assertEqual(self.value('accuracy("forward", "FLASH")', Tables).split("\n")[2], "| O, 1024 keys | 2.0e-4 |")
        self.assertEqual(self.value('accuracy("backward", "07/mma", dtype="bf16")', Tables).split("\n")[2],
                         "| dQ, 1024 keys | – |")
        self.assertEqual(self.value('loss_scaling("07")', Tables).split("\n"), [
            "| dO times | `07_b`, fp16, dQ | `07_b`, fp16, dK | `07_b`, bf16, dQ | `07_b`, bf16, dK |",
            "|---|--:|--:|--:|--:|",
            "| 2^-24 | 7.1e-1 | 7.1e-1 | 3.0e-3 | 3.0e-3 |", "| 2^0 | ∞ | ∞ | 3.0e-3 | 3.0e-3 |"])

    def test_with_extras(self):
        path = self.directory / "accuracy.json"
        report = result_files.read(path)
        self.assertEqual(self.value("accuracy_with_extras()", Tables), NOT_YET)
        ours = {"12_x__y": dict.fromkeys(accuracy.TENSORS, 6e-4)}
        found = report["errors"] + [measured(1024, extras=extra, **ours) for extra in ("sink", "window1024_0")]
        found.append(measured(1024, extras="sink", **{"12_x__y": {"o": 8e-4, "dq": 3e-4}}))
        accuracy.add_ratios(found)
        result_files.write(path, {**report, "errors": found})
        self.record = Record(self.directory)
        self.assertAlmostEqual(self.value('most_error_with("sink", "o")'), 4.0)
        self.assertAlmostEqual(self.value('relative_error("FLASH", "o", 1024)'), 2e-4)
        self.assertEqual(self.value("accuracy_with_extras()", Tables).split("\n")[2:],
                         ["| sink | 4.000 | 2.000 | – | – |", "| window of 1024 keys | 3.000 | 2.000 | 2.000 | 2.000 |"])

    def test_of_nothing(self):
        nothing = Tables(Record(self.directory / "nowhere"))
        for text in ('accuracy("backward", "07")', 'loss_scaling("07")'):
            self.assertEqual(evaluate(text, nothing), NOT_YET)


class BadInput(unittest.TestCase):
    def test_one_line(self):
        for words, status, expected in [([], 1, "accuracy needs a GPU: CUDA_VISIBLE_DEVICES hides every GPU"),
                                        (["99"], 2, "no chapter 99"),
                                        (["--seq-q=7"], 2, "unknown argument --seq-q"),
                                        (["--seed=-1"], 2, "-1 is not a whole number")]:
            stderr = io.StringIO()
            with contextlib.redirect_stderr(stderr), mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": ""}):
                self.assertEqual(cli.main(["dev", "accuracy", *words]), status, words)
            self.assertIn(expected, stderr.getvalue())
            self.assertEqual(stderr.getvalue().count("\n"), 1, stderr.getvalue())


class Endings(unittest.TestCase):
    """What the command says and how it ends: a rung that is too far from fp64 is a finding, and the file is there."""

    def ending(self, ratio):
        found = [measured(1024, FLASH={"dq": 1.0}, **{"07_b__mma": {"dq": ratio}})]
        accuracy.add_ratios(found)
        report = {"context": {"gpu": "G", "torch": "2"}, "absent": {}, "errors": found, "loss_scaling": []}
        from tools.commands import accuracy as command
        with tempfile.TemporaryDirectory() as scratch, contextlib.redirect_stdout(io.StringIO()) as said, \
                contextlib.redirect_stderr(said), \
                mock.patch.object(cuda, "find_gpu", return_value=(cuda.Gpu("G", "1"), "")), \
                mock.patch.object(cuda, "choose_preset"), mock.patch.object(command.build, "ensure_built",
                                                                            return_value=Path(scratch)), \
                mock.patch.multiple(command.peers, python_with_torch=mock.Mock(),
                                    measure=mock.Mock(return_value=report)):
            status = cli.main(["dev", "accuracy", f"--out={scratch}/x.json"])
            return status, said.getvalue(), result_files.read(Path(scratch) / "x.json")

    def test_near_enough(self):
        status, said, report = self.ending(1.04)
        self.assertEqual((status, report["errors"][0]["baseline"]), (0, "FLASH"))
        self.assertIn("1.040", said)

    def test_too_far(self):
        status, said, report = self.ending(1.06)
        self.assertEqual((status, report["errors"][0]["results"][1]["ratios"]), (1, {"dq": 1.06}))
        self.assertIn("further from fp64 than 1.05 times FlashAttention-2: 07_b/mma: dq is 1.06 times", said)


if __name__ == "__main__":
    unittest.main()
