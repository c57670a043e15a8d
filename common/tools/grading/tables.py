"""Tables as CSV: those that an instructor writes, and those that one reads."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tools.base import Failure, shown

_TITLE = re.compile(r"([^\W_]+[ _])*(id|name|e-?mail|submission)([ _][^\W_]+)*", re.IGNORECASE)

def lines_of(path: Path) -> Iterator[tuple[str, list[str]]]:
    """(where it is, its cells) of each line but empty ones, and a first one that says what the columns are."""
    try:
        lines = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
    except (OSError, ValueError, csv.Error) as error:
        raise Failure(f"cannot read {shown(path)}: {getattr(error, 'strerror', None) or 'it is no table in UTF-8'}",
                      status=2) from None
    for number, line in enumerate(lines, 1):
        cells = [cell.strip() for cell in line]
        if any(cells) and not (number == 1 and _says_what_the_columns_are(cells)):
            yield f"{shown(path)}:{number}", cells


def _says_what_the_columns_are(cells: Sequence[str]) -> bool:
    """Whether they are titles, as Student ID, Name or E-mail address, and have no id, address or date."""
    return cells[0].casefold() in ("id", "submission") or \
        any(map(_TITLE.fullmatch, cells)) and not any(re.search(r"[\d@]", cell) for cell in cells)


def as_csv(rows: Iterable[Sequence[object]]) -> str:
    """No cell of it is such that a spreadsheet takes it for a formula."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell for cell in row]
        for row in rows)
    return text.getvalue()
