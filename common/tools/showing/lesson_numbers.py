"""The lessons against the record: what stands between markers, and every number that says where it comes from.

    <!-- report: ladder("forward") -->        a table of tools/showing/lesson_tables.py, written by ./workbook dev
                                              report
    <!-- /report -->

    2.67×<!-- = gain("02", "03", 8192) -->    a number of tools/record/quantities.py, right after the number and its
                                              unit: measured, counted(..) by the engine, or calculated. It has to agree
                                              to as many places as are shown.
    – ms<!-- = ms("02/mine", 8192) -->        a number that nobody has measured yet: ./workbook dev report writes it
                                              once somebody has

Every question of a lesson has its answer, folded away, with the command or the calculation that shows it:

    1. How many ..?

       <details><summary>Answer</summary>

       16.8 million<!-- = 0.000001 * 4096 * 4096 -->; `./workbook trace 01` counts them.

       </details>
"""

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.base import NotUnderstood, evaluate, significant
from tools.record import Missing, Quantities, Record
from tools.showing.lesson_tables import Tables

TABLE = re.compile(r"<!-- report: (.*?) -->\n(.*?)<!-- /report -->", re.DOTALL)
OPENING, CLOSING = re.compile(r"<!-- report: .*? -->"), re.compile(r"<!-- /report -->")
NOT_MEASURED = "–"
NUMBER = re.compile(r"(?<![\w.])([+−-]?\d+(?:[ \u202f,]\d{3})*(?:\.\d+)?(?:e[+−-]?\d+)?|" + NOT_MEASURED + r")"
                    rf"([^\d\n<{NOT_MEASURED}]{{0,12}})<!-- = (.*?) -->")
REFERENCE = re.compile(r"<!-- = .*?-->")
FENCED = re.compile(r"^ *```.*?^ *```[ \t]*$", re.DOTALL | re.MULTILINE)
QUESTIONS = re.compile(r"^## Questions\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
QUESTION = re.compile(r"^\d+\. .*?(?=^\S|\Z)", re.DOTALL | re.MULTILINE)
ANSWER = re.compile(r"\n\n   <details><summary>Answer</summary>\n\n(.*?)\n\n   </details>\n", re.DOTALL)
CODE = re.compile(r"(`+)(.+?)\1", re.DOTALL)
COMMAND = re.compile(r"(?:^|\s)(?:\./workbook|build/\S+|ncu|nvcc|cuobjdump|diff|python3?) ")


@dataclass(frozen=True)
class Difference:
    file: Path
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


def lessons(root: Path) -> list[Path]:
    return [path for path in [root / "README.md", *sorted(root.glob("[0-9][0-9]_*/*.md")),
                              root / "common" / "python" / "examples" / "README.md",
                              root / "common" / "results" / "README.md"] if path.exists()]


def rewritten(text: str, record: Record, file: Path = Path("")) -> tuple[str, list[Difference]]:
    """(the text as it should be, [where it is not, and why])"""
    differences = []
    shielded = FENCED.sub(lambda found: re.sub(r"<!--", "\0\0\0\0", found[0]), text)  # examples in code say nothing

    def note(position: int, what: str) -> None:
        differences.append(Difference(file, shielded.count("\n", 0, position) + 1, what))

    def table(found: re.Match[str]) -> str:
        try:
            wanted = "\n" + evaluate(found[1], Tables(record)) + "\n\n"  # apart from the comments, as Markdown wants it
        except (NotUnderstood, Missing) as error:
            note(found.start(), str(error))
            return found[0]
        if wanted != found[2]:
            note(found.start(), f"the table {found[1]} is not what was measured")
        return f"<!-- report: {found[1]} -->\n{wanted}<!-- /report -->"

    def number(found: re.Match[str]) -> str:
        try:
            value = evaluate(found[3], Quantities(record))
            right = shown_like(found[1], value)
        except (NotUnderstood, Missing) as error:
            if not (found[1] == NOT_MEASURED and isinstance(error, Missing)):
                note(found.start(), str(error))
            return found[0]
        if right != found[1]:
            note(found.start(), f"{found[1]} should be {right}: {found[3]}")
        return f"{right}{found[2]}<!-- = {found[3]} -->"

    tables = len(TABLE.findall(shielded))
    for pattern in (OPENING, CLOSING):
        if len(pattern.findall(shielded)) != tables:
            note(0, "a table's markers do not match: <!-- report: NAME(...) --> and, on a line of its own below, "
                    "<!-- /report -->")
            return text, differences
    for stray in REFERENCE.finditer(shielded):
        if not any(found.end() == stray.end() for found in NUMBER.finditer(shielded)):
            note(stray.start(), f"no number stands before {stray[0]}")
    after = TABLE.sub(table, NUMBER.sub(number, shielded))  # numbers do not move the lines that are noted
    return after.replace("\0\0\0\0", "<!--"), sorted(differences, key=lambda one: one.line)


def shown_like(shown: str, value: object) -> str:
    """The value with as many decimals as the number has that is shown, and with its marks between thousands."""
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        raise NotUnderstood(f"{value!r} is no number")
    if shown == NOT_MEASURED:
        return significant(value)
    digits, _, exponent = shown.partition("e")
    decimals = len(digits.partition(".")[2])
    mark = re.search(r"[ \u202f,]", digits)
    if exponent:
        digits, _, power = f"{value:.{decimals}e}".partition("e")
        text = f"{digits}e{'-' if int(power) < 0 else ''}{abs(int(power)):0{len(exponent.lstrip('+−-'))}}"
    else:
        text = f"{value:,.{decimals}f}" if mark else f"{value:.{decimals}f}"
    return text.replace(",", mark[0] if mark else "").replace("-", "−" if "−" in shown else "-")


def _is_shown(answer: str) -> bool:
    return bool(REFERENCE.search(answer)) or any(COMMAND.search(code[2]) for code in CODE.finditer(answer))


def unanswered(text: str, file: Path = Path("")) -> list[Difference]:
    """The questions without an answer, and the answers that neither calculate nor name a command."""
    found = []
    for section in QUESTIONS.finditer(text):
        for question in QUESTION.finditer(section[1]):
            answers = ANSWER.findall(question[0])
            wrong = ("has no answer, folded away as common/tools/showing/lesson_numbers.py shows it"
                     if len(answers) != 1 else
                     "has an answer without a command or a calculation" if not _is_shown(answers[0]) else "")
            if wrong:
                line = text.count("\n", 0, section.start(1) + question.start()) + 1
                found.append(Difference(file, line, f"question {question[0].partition('.')[0]} {wrong}"))
    return found


def shown_pictures(text: str) -> list[str]:
    return re.findall(r"!\[[^\]]*\]\(([^)]+\.svg)\)", text)


def check(root: Path, record: Record) -> list[Difference]:
    """Everything in the lessons that is not what was measured, and every question without an answer."""
    found = []
    for path in lessons(root):
        text, file = path.read_text(), path.relative_to(root)
        found += rewritten(text, record, file)[1] + unanswered(text, file)
    return found


@dataclass(frozen=True)
class Repeated:
    """A number of a lesson, and what it would be by the second measurement."""

    where: str
    expression: str
    first: float
    second: float

    @property
    def apart(self) -> float:
        """Percent."""
        return 100 * abs(self.second / self.first - 1)


def _value(expression: str, record: Record) -> Any:
    """None if it is not in the record."""
    try:
        return evaluate(expression, Quantities(record))
    except (NotUnderstood, Missing):
        return None


def repeated(root: Path, record: Record) -> list[Repeated]:
    """Every measured number of the lessons that the second measurement has too, the least steady first."""
    found, nothing = [], Record(Path("nothing"))
    for path in lessons(root):
        text = FENCED.sub(lambda code: "\n" * code[0].count("\n"), path.read_text())
        for number in NUMBER.finditer(text):
            first, second, unmeasured = (_value(number[3], one) for one in (record, record.again, nothing))
            if None in (first, second) or unmeasured is not None:
                continue
            where = f"{path.relative_to(root)}:{text.count(chr(10), 0, number.start()) + 1}"
            found.append(Repeated(where, number[3], first, second))
    return sorted(found, key=lambda one: -one.apart)


def rewrite(root: Path, record: Record) -> tuple[list[Path], list[Difference]]:
    """([files that were changed], [what could not be mended])"""
    changed, left = [], []
    for path in lessons(root):
        text = path.read_text()
        right, _ = rewritten(text, record)
        if right != text:
            path.write_text(right)
            changed.append(path)
        left += rewritten(right, record, path.relative_to(root))[1]
    return changed, left
