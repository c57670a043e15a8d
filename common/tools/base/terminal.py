"""Talking to whoever reads: a progress line while something takes long, emphasis, tables, numbers.

Everything is plain when the output is not a terminal; colours also stay away when NO_COLOR is set.
"""

import math
import os
import shutil
import sys
import time


def is_terminal() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def columns() -> int:
    """How long a line may be: as the terminal is wide; elsewhere as it likes."""
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


def say(text: str = "") -> None:
    print(text, flush=True)


class Progress:
    """What is going on, and how far it is.

    On a terminal one line is rewritten in place and erased at the end. Elsewhere the title is printed when there is
    something to show, then a line whenever `quiet_seconds` have passed: a log shows life without being flooded.
    """

    quiet_seconds = 20.0

    def __init__(self, title: str):
        self.title = title
        self.started = time.monotonic()
        self.last_line = None  # when a line of a log was printed

    def __enter__(self):
        if is_terminal():
            self._rewrite(self.title)
        return self

    def __exit__(self, *_):
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
        """A line that stays, above the progress line."""
        if is_terminal():
            sys.stdout.write("\r\033[K")
        say(text)

    def _rewrite(self, text: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        sys.stdout.write("\r\033[K" + text[:width])
        sys.stdout.flush()


def table(rows: list, left_columns: int = 1) -> str:
    """Rows of cells in aligned columns, the first row being the header: `left_columns` flush left, the rest right."""
    widths = [max(len(str(row[i])) for row in rows if i < len(row)) for i in range(max(map(len, rows)))]
    lines = []
    for number, row in enumerate(rows):
        cells = [
            str(cell).ljust(width) if i < left_columns else str(cell).rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths))
        ]
        line = "  ".join(cells).rstrip()
        lines.append(bold(line) if number == 0 else line)
    return "\n".join(lines)


def significant(value: float, digits: int = 3) -> str:
    """0.01849 -> "0.0185", 44.99 -> "45.0", 1234.5 -> "1234": no exponent, no digits that mean nothing."""
    if value == 0:
        return "0"
    return f"{value:.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"


def amount_of_memory(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:.0f} {unit}" if size >= 10 or unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
