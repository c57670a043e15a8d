"""What the first tier leaves to the second one, ./workbook test --all: CTest sets WORKBOOK_TIER=first. By hand all of it runs."""

import os
import unittest
from collections.abc import Iterable

FIRST = os.environ.get("WORKBOOK_TIER") == "first"

# A test that asks at length, or of a rare thing, what others ask in short.
at_length = unittest.skipIf(FIRST, "in the second tier: ./workbook test --all")


def some(cases: Iterable, one_in: int) -> list:
    """All of them; in the first tier a sample."""
    return list(cases)[:: one_in if FIRST else 1]
