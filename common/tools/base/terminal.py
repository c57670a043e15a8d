"""Talking to whoever reads: lines as wide as the terminal, emphasis, a progress line, tables, numbers.

Everything is plain when the output is not a terminal; colours also stay away when NO_COLOR is set.
"""

import math
import os
import re
import shutil
import sys
import time
from collections.abc import Sequence
from typing import TextIO

ROOM = 24  # that words need to be wrapped beside others
COLUMNS_OF_A_TABLE = 3  # gaps in a line: a row so wide could not be read in pieces


def is_terminal(stream: "TextIO | None" = None) -> bool:
    """Of stdout, if none is given."""
    return (stream or sys.stdout).isatty() and os.environ.get("TERM") != "dumb"


def columns() -> int:
    """The longest line that fits: the terminal's width; no limit elsewhere."""
    return shutil.get_terminal_size().columns if is_terminal() else sys.maxsize


def _styled(code: str, text: str) -> str:
    if not is_terminal() or os.environ.get("NO_COLOR"):
        return text
    return f"\033[{code}m{text}\033[0m"


def bold(text: str) -> str:
    return _styled("1", text)


def good(text: str) -> str:
    return _styled("32", text)


def bad(text: str) -> str:
    return _styled("1;31", text)


def lost(text: str) -> str:
    """What is no mistake and costs something: bank conflicts, a step that is slower."""
    return _styled("33", text)


def width_of(text: str) -> int:
    """Without what colours it."""
    return len(re.sub(r"\033\[[0-9;]*m", "", text))


def say(text: str = "", code: bool = False) -> None:
    """On a terminal no line is wider than it, if it is made of words; lines of code stay as they are."""
    print(text if code or not is_terminal() else in_columns(text, columns()), flush=True)


def complain(text: str) -> None:
    """The same, on stderr."""
    print(in_columns(text, shutil.get_terminal_size().columns) if is_terminal(sys.stderr) else text, file=sys.stderr,
          flush=True)


def in_columns(text: str, most: int) -> str:
    """Each line that is wider is wrapped at words, and goes on below where it began: behind the last gap that leaves
    room for words, else behind the spaces that it begins with. A row of many columns stays as it is."""
    return "\n".join(_wrapped(line, most) if width_of(line) > most else line for line in text.split("\n"))


def _wrapped(line: str, most: int) -> str:
    begins = [gap.end() for gap in re.finditer(r"(?<=\S) {2,}(?=\S)", line)]
    if len(begins) >= COLUMNS_OF_A_TABLE:
        return line
    indent = len(line) - len(line.lstrip(" "))
    begin = max((place for place in begins if width_of(line[:place]) <= most - ROOM), default=indent)
    hang = " " * width_of(line[:begin])
    first, *words = line[begin:].split(" ")
    lines = [line[:begin] + first]
    for word in words:
        if width_of(f"{lines[-1]} {word}") > most:
            lines.append(hang + word)
        else:
            lines[-1] += f" {word}"
    return "\n".join(lines)


class Progress:
    """A progress line: what is going on, and how far it has come.

    On a terminal one line is rewritten in place and erased at the end. Elsewhere the title is printed when there is
    something to show, then a line whenever `quiet_seconds` have passed: a log shows life without being flooded.
    """

    quiet_seconds = 20.0

    def __init__(self, title: str):
        self.title = title
        self.started = time.monotonic()
        self.last_line: "float | None" = None  # when a line of a log was printed

    def __enter__(self) -> "Progress":
        if is_terminal():
            self._rewrite(self.title)
        return self

    def __exit__(self, *_: object) -> None:
        if is_terminal():
            sys.stdout.write("\r\033[K")
            sys.stdout.flush()

    def seconds(self) -> float:
        return time.monotonic() - self.started

    def show(self, state: str) -> None:
        if is_terminal():
            self._rewrite(f"{self.title}: {state}")
        elif self.last_line is None:
            self.last_line = time.monotonic()
            say(f"{self.title} ...")
        elif time.monotonic() - self.last_line > self.quiet_seconds:
            self.last_line = time.monotonic()
            say(f"  {state}")

    def say(self, text: str) -> None:
        """Prints a line that stays above the progress line."""
        if is_terminal():
            sys.stdout.write("\r\033[K")
        say(text)

    def _rewrite(self, text: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        sys.stdout.write("\r\033[K" + text[:width])
        sys.stdout.flush()


def flush_left(text: str, width: int) -> str:
    return text + " " * (width - width_of(text))


def flush_right(text: str, width: int) -> str:
    return " " * (width - width_of(text)) + text


def table(rows: Sequence[Sequence[object]], left_columns: int = 1, may_split: bool = True) -> str:
    """Rows of cells in aligned columns, the first row being the header: `left_columns` flush left, the rest right.
    Columns of numbers for which a terminal is too narrow stand below, in a table with the same first column."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(width_of(row[i]) for row in cells if i < len(row)) for i in range(max(map(len, cells)))]
    blocks, used = [list(range(left_columns))], sum(widths[:left_columns]) + 2 * (left_columns - 1)
    for i in range(left_columns, len(widths)):
        if may_split and used + 2 + widths[i] > columns() and blocks[-1] not in ([0], []):
            blocks.append([0])
            used = widths[0]
        blocks[-1].append(i)
        used += 2 + widths[i]
    lines = []
    for number, block in enumerate(blocks):
        lines += [""] * (number > 0)
        for header, row in enumerate(cells):
            line = "  ".join(flush_left(row[i], widths[i]) if i < left_columns else flush_right(row[i], widths[i])
                             for i in block if i < len(row)).rstrip()
            lines.append(line if header else bold(line))
    return "\n".join(lines)


def significant(value: float, digits: int = 3) -> str:
    """0.01849 -> "0.0185", 44.99 -> "45.0", 1234.5 -> "1234": no exponent, no digits that mean nothing."""
    if value == 0:
        return "0"
    return f"{value:.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"


def amount_of_memory(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if size >= 10 or unit == "B" else f"{size:.1f} {unit}"
