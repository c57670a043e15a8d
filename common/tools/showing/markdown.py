"""Tables in Markdown, and their cells. What has not been measured is a dash."""

import math

from tools.base import significant
from tools.record import Missing

NOT_YET = "*Not measured yet.*"


def markdown(rows: list) -> str:
    """The first row is the header, the first column text, the others numbers."""
    if len(rows) < 2:
        return NOT_YET
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|---|" + "--:|" * (len(rows[0]) - 1), *lines[1:]])


def known(compute, text=significant) -> str:
    """What it computes, as text; a dash if something is missing for it."""
    try:
        return text(compute())
    except Missing:
        return "–"


def factor(value: float) -> str:
    return f"{significant(value)}×"


def power(value: float) -> str:
    """2.7e-4, for errors."""
    return "∞" if math.isinf(value) else f"{value:.1e}".replace("e-0", "e-").replace("e+0", "e+")
