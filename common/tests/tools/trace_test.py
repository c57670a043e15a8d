"""trace: its table of source lines, as wide as the terminal allows."""

import unittest
from unittest import mock

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


if __name__ == "__main__":
    unittest.main()
