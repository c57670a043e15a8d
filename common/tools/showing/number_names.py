"""Numbers with a name: numbers.json beside a lesson says what each is, an expression of tools/record/quantities.py.

    {
     "gain_over_04": "gain('04', '05/tiles', 4096)"
    }

All pages of the folder share the file, so a number that two of them show is one entry. A table may have a name as well,
for an expression of lesson_tables.py.
"""

import json
import re
from pathlib import Path

from tools.base import NotUnderstood

FILE = "numbers.json"
NAME = re.compile(r"[a-z][a-z0-9_]*")
LONGEST = 40  # characters of a name: it has to be read in the middle of a sentence


class NumberNames:
    """The names that a folder's file has."""

    def __init__(self, text: str = "{}"):
        self._text = text
        self._wrong: list[tuple[int, str]] = []
        self._used: set[str] = set()
        self._expressions: dict[str, str] = {}
        try:
            entries = json.loads(self._text, object_pairs_hook=list)
        except ValueError as error:
            self._wrong.append((getattr(error, "lineno", 1), f"is no JSON: {error}"))
            return
        if not self._text.lstrip().startswith("{"):
            self._wrong.append((1, "must be a JSON object, {name: expression}"))
            return
        for name, expression in entries:
            self._add(name, expression)

    @staticmethod
    def beside(page: Path) -> "NumberNames":
        """No names, if there is no such file."""
        path = page.with_name(FILE)
        return NumberNames(path.read_text(errors="replace") if path.exists() else "{}")

    def _add(self, name: str, expression: object) -> None:
        same = next((other for other, known in self._expressions.items() if known == expression), None)
        wrong = ""
        if not NAME.fullmatch(name):
            wrong = f"the name {name} must be small letters, digits and _, and begin with a letter"
        elif len(name) > LONGEST:
            wrong = f"the name {name} has {len(name)} characters: {LONGEST} at most"
        elif not isinstance(expression, str):
            wrong = f"{name} must be an expression in quotes"
        elif name in self._expressions:
            wrong = f"{name} stands here twice"
        elif same:
            wrong = f"{name} and {same} are the same number: one name is enough"
        if wrong:
            self._wrong.append((self._line(name), wrong))
        if isinstance(expression, str):
            self._expressions.setdefault(name, expression)

    def _line(self, name: str) -> int:
        """Of the entry; of the last one, if there are two."""
        return self._text.count("\n", 0, max(self._text.rfind(json.dumps(name)), 0)) + 1

    def expression(self, name: str) -> str:
        self._used.add(name)
        if name not in self._expressions:
            raise NotUnderstood(f"{name} is not in {FILE}")
        return self._expressions[name]

    def wrong(self) -> list[tuple[int, str]]:
        """[(line, what)] of the file itself, and of entries that no page has asked for."""
        unused = [(self._line(name), f"no page of this folder uses {name}")
                  for name in self._expressions if name not in self._used]
        return sorted(self._wrong + unused)
