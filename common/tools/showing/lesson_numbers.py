"""The lessons against the record: what stands between markers, and every number that says where it comes from.

    <!-- report: ladder("forward") -->        a table of tools/showing/lesson_tables.py, written by ./workbook dev
                                              report
    <!-- /report -->
                                              Or its name in numbers.json: <!-- report: every_rung -->

    2.67×<!-- = gain("02", "03", 8192) -->    a number of tools/record/quantities.py, right after the number and its
                                              unit: measured, counted(..) by the engine, or calculated. It has to agree
                                              to as many places as are shown.
    1.20×<!-- gain_over_04 -->                the same, by its name in numbers.json beside the lesson (number_names.py)
    – ms<!-- = ms("02/mine", 8192) -->        a number that nobody has measured yet: ./workbook dev report writes it
                                              once somebody has

Every question of a lesson has its answer, folded away, with the command or the calculation that shows it:

    1. How many ..?

       <details><summary>Answer</summary>

       16.8 million<!-- = 0.000001 * 4096 * 4096 -->; `./workbook trace 01` counts them.

       </details>
"""

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.base import NotUnderstood, evaluate, significant
from tools.record import Missing, Quantities, Record, SecondMeasurement
from tools.showing.lesson_tables import Tables
from tools.showing.number_names import FILE, NAME, NumberNames

TABLE = re.compile(r"<!-- report: (.*?) -->\n(.*?)<!-- /report -->", re.DOTALL)
OPENING, CLOSING = re.compile(r"<!-- report: .*? -->"), re.compile(r"<!-- /report -->")
NOT_MEASURED = "–"
NUMBER = re.compile(r"(?<![\w.])([+−-]?\d+(?:[ \u202f,]\d{3})*(?:\.\d+)?(?:e[+−-]?\d+)?|" + NOT_MEASURED + r")"
                    rf"([^\d\n<{NOT_MEASURED}]{{0,12}})<!-- (= .*?|[^\s/]\S*) -->")
REFERENCE = re.compile(r"<!-- = .*?-->|<!-- [^\s/]\S* -->")
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
                              root / "common" / "results" / "README.md",
                              root / "common" / "simt" / "README.md",
                              *sorted((root / "common" / "book").glob("*.md"))] if path.exists()]


def folders(root: Path) -> Iterator[tuple[NumberNames, list[Path]]]:
    """The lessons by their folders, each with the names of its numbers."""
    for _, group in itertools.groupby(lessons(root), key=lambda path: path.parent):
        pages = list(group)
        yield NumberNames.beside(pages[0]), pages


def expression_of(reference: str, names: NumberNames) -> str:
    """What stands in a number's comment is "= EXPRESSION", or a name."""
    return reference[2:] if reference.startswith("= ") else names.expression(reference)


def rewritten(text: str, record: Record, file: Path = Path(""), names: "NumberNames | None" = None
              ) -> tuple[str, list[Difference]]:
    """(the text as it should be, [where it is not, and why])"""
    differences, quantities, names = [], Quantities(record), names or NumberNames()
    shielded = FENCED.sub(lambda found: re.sub(r"<!--", "\0\0\0\0", found[0]), text)  # examples in code say nothing

    def note(position: int, what: str) -> None:
        differences.append(Difference(file, shielded.count("\n", 0, position) + 1, what))

    def table(found: re.Match[str]) -> str:
        try:
            expression = names.expression(found[1]) if NAME.fullmatch(found[1]) else found[1]
            wanted = "\n" + evaluate(expression, Tables(record)) + "\n\n"  # apart from the comments, for Markdown
        except (NotUnderstood, Missing) as error:
            note(found.start(), str(error))
            return found[0]
        if wanted != found[2]:
            note(found.start(), f"the table {found[1]} is not what was measured")
        return f"<!-- report: {found[1]} -->\n{wanted}<!-- /report -->"

    def number(found: re.Match[str]) -> str:
        try:
            expression = expression_of(found[3], names)
            right = shown_like(found[1], evaluate(expression, quantities))
        except (NotUnderstood, Missing) as error:
            if not (found[1] == NOT_MEASURED and isinstance(error, Missing)):
                note(found.start(), str(error))
            return found[0]
        if right != found[1]:
            what = expression if found[3].startswith("= ") else f"{found[3]} = {expression}"
            note(found.start(), f"{found[1]} should be {right}: {what}")
        return f"{right}{found[2]}<!-- {found[3]} -->"

    tables = len(TABLE.findall(shielded))
    for pattern in (OPENING, CLOSING):
        if len(pattern.findall(shielded)) != tables:
            note(0, "a table's markers do not match: <!-- report: NAME(...) --> and, on a line of its own below, "
                    "<!-- /report -->")
            return text, differences
    ends = {found.end() for found in NUMBER.finditer(shielded)}
    for stray in REFERENCE.finditer(shielded):
        if stray.end() not in ends:
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
    return bool(NUMBER.search(answer)) or any(COMMAND.search(code[2]) for code in CODE.finditer(answer))


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
    for names, pages in folders(root):
        for path in pages:
            text, file = path.read_text(), path.relative_to(root)
            found += rewritten(text, record, file, names)[1] + unanswered(text, file)
        found += _wrong_names(names, file)
    return found


def _wrong_names(names: NumberNames, page: Path) -> list[Difference]:
    """Of the folder of this page, once all its pages have been looked at."""
    return [Difference(page.with_name(FILE), line, what) for line, what in names.wrong()]


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


def _value(expression: str, quantities: Quantities) -> Any:
    """None if it is not in the record."""
    try:
        return evaluate(expression, quantities)
    except (NotUnderstood, Missing):
        return None


def repeated(root: Path, record: Record) -> list[Repeated]:
    """Every measured number of the lessons that the second measurement has too, the least steady first."""
    found, measurements = [], [Quantities(one) for one in (record, SecondMeasurement(record), Record(Path("nothing")))]
    for names, path in ((names, path) for names, pages in folders(root) for path in pages):
        text = FENCED.sub(lambda code: "\n" * code[0].count("\n"), path.read_text())
        for number in NUMBER.finditer(text):
            try:
                expression = expression_of(number[3], names)
            except NotUnderstood:
                continue
            first, second, unmeasured = (_value(expression, one) for one in measurements)
            if None in (first, second) or unmeasured is not None or "again=True" in expression:
                continue
            where = f"{path.relative_to(root)}:{text.count(chr(10), 0, number.start()) + 1}"
            found.append(Repeated(where, expression, first, second))
    return sorted(found, key=lambda one: -one.apart)


def rewrite(root: Path, record: Record) -> tuple[list[Path], list[Difference]]:
    """([files that were changed], [what could not be mended])"""
    changed, left = [], []
    for names, pages in folders(root):
        for path in pages:
            text = path.read_text()
            right, _ = rewritten(text, record, path, names)
            if right != text:
                path.write_text(right)
                changed.append(path)
            left += rewritten(right, record, path.relative_to(root), names)[1]
        left += _wrong_names(names, path.relative_to(root))
    return changed, left
