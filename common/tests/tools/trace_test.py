"""trace: its table of source lines, as wide as the terminal allows."""

import contextlib
import io
import unittest
from unittest import mock

from tools.base import GPUS
from tools.commands import trace
from tools.showing import trace_report


class LinesOnATerminal(unittest.TestCase):
    launch = {"lines": [{"line": "05_online_softmax/2_tiles.cu:153", "within": "05_online_softmax/2_tiles.cu:79",
                         "op": "shared_load", "requests": 512, "wavefronts": 2048, "ideal": 2048}]}
    SOURCE = "for (int n = 0; n < cols; ++n) k_reg[n] = load_float4(kv_smem + (tx + 16 * n) * row_stride + d);"

    def lines(self, columns: int) -> list:
        with mock.patch.object(trace_report, "columns",
                               return_value=columns), mock.patch.object(trace_report, "source_text",
                                                                        return_value=self.SOURCE):
            return trace_report.lines_table(self.launch, 8).splitlines()

    def test_no_line_is_longer_than_the_terminal_is_wide(self):
        for columns in (80, 100, 120, 160):
            lines = self.lines(columns)
            self.assertLessEqual(max(map(len, lines)), columns, columns)
            self.assertIn(self.SOURCE[:20], lines[-1], columns)

    def test_the_source_stands_beside_its_line_or_under_it(self):
        self.assertEqual([len(self.lines(columns)) for columns in (80, 120)], [3, 2])
        self.assertEqual(["source" in self.lines(columns)[0] for columns in (80, 120)], [False, True])
        self.assertTrue(self.lines(10000)[1].endswith(self.SOURCE[:73] + "..."))


class WorstLine(unittest.TestCase):
    @staticmethod
    def line(name: str, op: str, **counts: int) -> dict:
        return {"line": name, "within": "", "op": op, "requests": 10, **counts}

    def test_it_loses_most_cycles_of_all_launches(self):
        load = self.line("a.cu:1", "global_load", sectors=320, lines=80, ideal=40)  # 70 of 80 cycles
        store = self.line("a.cu:2", "shared_store", wavefronts=100, ideal=40)  # 60 of 100
        busy = self.line("a.cu:3", "shared_load", wavefronts=220, ideal=220)
        self.assertEqual(trace_report.worst_line([{"lines": [busy]}, {"lines": [store, load]}]),
                         "Worst line: a.cu:1, global load, 32.00 sectors a request, ideal 4.00: 18% of the cycles of "
                         "the load and store units are lost here.")

    def test_each_rung_begins_with_it(self):
        load = self.line("a.cu:1", "global_load", sectors=320, lines=80, ideal=40)
        moved = {what: {level: 1 for level in ("warps", "blocks", "launch")} for what in ("read", "written")}
        launch = {"kernel": "k", "grid": [1, 1, 1], "block": [32, 1, 1], "lines": [load], "totals": {"global_load": load},
                  "bytes": moved, "matrix_flops": 0}
        counted = {"chapters": [{"chapter": "01_naive", "direction": "forward", "problem": "", "flops": 1.0,
                                 "rungs": [{"rung": name, "launches": [launch]} for name in ("one", "two")]}]}
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            trace._say(counted, GPUS["h200"], 8)
        lines = [line for line in out.getvalue().splitlines() if line]
        heads = [at for at, line in enumerate(lines) if line.startswith("=== ")]
        self.assertEqual(len(heads), 2)
        for at in heads:
            self.assertTrue(lines[at + 1].startswith("Worst line: a.cu:1, global load, 32.00 sectors"), lines[at + 1])

    def test_where_nothing_is_lost_it_is_the_busiest(self):
        lines = [self.line("a.cu:1", "shared_load", wavefronts=n, ideal=n) for n in (10, 30)]
        self.assertEqual(trace_report.worst_line([{"lines": lines}]), "No line loses anything. The busiest: a.cu:1, "
                         "shared load, 75% of the cycles of the load and store units.")

    def test_where_nothing_is_accessed_there_is_none(self):
        self.assertEqual(trace_report.worst_line([{"lines": []}]), "")


if __name__ == "__main__":
    unittest.main()
