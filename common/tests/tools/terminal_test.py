"""What a terminal gets: lines as wide as it is, and colours; and that nobody else gets them."""

import os
import pty
import re
import subprocess
import unittest
from unittest import mock

from tools.base import ROOT, in_columns, lost, table, terminal, width_of


def on_a_terminal(columns: int, *words: str, **environment: str) -> list:
    """The lines that the command prints there."""
    ours, theirs = pty.openpty()
    try:
        subprocess.run(["stty", "cols", str(columns), "rows", "40"], stdin=theirs, check=True)
        kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
        process = subprocess.Popen([ROOT / "workbook", *words], stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT,
                                   env={**kept, "TERM": "xterm", **environment})
    finally:
        os.close(theirs)
    said = b""
    with open(ours, "rb", buffering=0) as answers:
        try:
            while part := answers.read(4096):
                said += part
        except OSError:  # so a terminal ends
            pass
    process.wait()
    return said.decode().replace("\r", "").splitlines()


class Wrapped(unittest.TestCase):
    def test_at_words_and_below_where_the_line_began(self):
        for line, columns, wanted in [
                ("one two three four", 18, ["one two three four"]),
                ("one two three four", 17, ["one two three", "four"]),
                ("  one two three four", 11, ["  one two", "  three", "  four"]),
                ("a-very-long-word-alone", 10, ["a-very-long-word-alone"]),
                ("name      what it does and why", 34, ["name      what it does and why"]),
                ("name      what it does and why it does it", 34, ["name      what it does and why it", "          does it"])]:
            with self.subTest(line=line, columns=columns):
                self.assertEqual(in_columns(line, columns).split("\n"), wanted)

    def test_every_line_by_itself(self):
        self.assertEqual(in_columns("one two\n\nthree four", 7), "one two\n\nthree\nfour")

    def test_a_row_of_many_columns_stays(self):
        row = "a  1  2  3  4"
        self.assertEqual(in_columns(row, 8), row)

    def test_colours_take_no_room(self):
        painted = "\033[32mone two\033[0m three"
        self.assertEqual(width_of(painted), 13)
        self.assertEqual(in_columns(painted, 13), painted)
        self.assertEqual(in_columns(painted, 12), "\033[32mone two\033[0m\nthree")


class Tables(unittest.TestCase):
    rows = [["step", "a, ms", "b, ms", "faster"], ["first", 1.5, 3.25, "\033[33m0.46x\033[0m"]]

    def shown(self, columns: int) -> list:
        with mock.patch.object(terminal, "columns", return_value=columns):
            return table(self.rows).split("\n")

    def test_coloured_cells_are_aligned(self):
        header, row = self.shown(80)
        self.assertEqual((header, width_of(row)), ("step   a, ms  b, ms  faster", len(header)))

    def test_columns_without_room_stand_below(self):
        self.assertEqual(self.shown(20), ["step   a, ms  b, ms", "first    1.5   3.25", "", "step   faster",
                                          "first   \033[33m0.46x\033[0m"])
        self.assertEqual(len(self.shown(1)), 8)  # a column is never split


class OnATerminal(unittest.TestCase):
    COMMANDS = ((), ("list", "06"), ("check", "--help"), ("compare", "03", "99"))  # pages, hints, a failure

    def test_no_line_is_wider_than_it(self):
        for words in self.COMMANDS:
            with self.subTest(words=words):
                lines = on_a_terminal(72, *words)
                self.assertTrue(lines)
                self.assertLessEqual(max(map(width_of, lines)), 72)

    def test_colours_are_for_a_terminal_that_wants_them(self):
        self.assertIn("\033[1m", "".join(on_a_terminal(80, "list")))
        self.assertNotIn("\033", "".join(on_a_terminal(80, "list", NO_COLOR="1")))
        self.assertNotIn("\033", "".join(on_a_terminal(80, "list", TERM="dumb")))
        with mock.patch.object(terminal, "is_terminal", return_value=False):
            self.assertEqual(lost("1"), "1")

    def test_elsewhere_each_line_is_whole(self):
        done = subprocess.run([ROOT / "workbook", "list"], capture_output=True, text=True, check=True,
                              env={**os.environ, "COLUMNS": "40"})
        self.assertNotIn("\033", done.stdout)
        self.assertGreater(max(map(len, done.stdout.splitlines())), 100)
        self.assertTrue(re.search(r"^01_naive +S = QK\^T.* global memory$", done.stdout, re.MULTILINE))


if __name__ == "__main__":
    unittest.main()
