"""The roster: who is in the class, and whose each submission is.

    id,name,e-mail,days
    1001,Ada Example,ada@school.example,
    1002,Grace Example,grace@school.example,2

`days` are those by which everything is due later for this student; it may be missing. A submission is somebody's if
its name has the id, the e-mail address or the name in it, as learning platforms write them: `exampleada_1001_hw1`,
`Ada Example_77_assignsubmission`. Names are compared without case, marks between words, and ways to write the same
letter; where they are run together, as Canvas does, with accents or without.

A person gives the points for the log, up to 10 each week. These are in a table of their own, by the id of the roster or
the name of the submission, with a column for each log:

    1001,8.5
    1002,10,7
"""

import datetime
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.base import Failure, say, shown
from tools.course import plain
from tools.grading.tables import as_csv, lines_of

LOG_POINTS = 10  # of the rubric in common/course/log.md


@dataclass(frozen=True)
class Person:
    id: str
    name: str
    mail: str
    days: int = 0

    def is_called(self, name: str) -> bool:
        """Whether an answers.json may name this student so."""
        names = (self.id, self.name, self.mail, self.mail.partition("@")[0])
        return plain(name) in {plain(one) for one in names if one}


def read_roster(path: Path, tell: Callable[[str], None] = say) -> list[Person]:
    """Failure if it cannot be read; of two lines with one id the first counts, and `tell` hears so."""
    people: dict[str, Person] = {}
    for where, cells in lines_of(path):
        days = cells[3] if len(cells) > 3 else ""
        if len(cells) not in (3, 4) or not plain(cells[0]) or not plain(cells[1]) or not re.fullmatch(r"\d{0,3}", days):
            raise Failure(f"{where}: it must be id, name, e-mail and perhaps days, as "
                          "1001,Ada Example,ada@school.example,2", status=2)
        id, called, mail = (unicodedata.normalize("NFC", cell) for cell in cells[:3])
        if plain(id) in people:  # its questions would be those of the other
            tell(f"{where}: the id {id} stands there a second time: this line does not count.")
            continue
        people[plain(id)] = Person(id, called, mail, int(days or 0))
    if not people:
        raise Failure(f"{shown(path)} has nobody in it", status=2)
    return list(people.values())


@dataclass(frozen=True)
class Log:
    """Points for the logs, and how many there can be."""

    points: dict[str, float] = field(default_factory=dict)  # by the roster's id, or the submission's name
    of: float = 0

    def of_student(self, person: "Person | None", submissions: Iterable[str]) -> float:
        """By the id; else by the name of one of their submissions."""
        names = [*([person.id] if person else []), *submissions]
        return next((self.points[name] for name in names if name in self.points), 0)


def read_log(path: Path, people: Sequence[Person], names: Sequence[str], tell: Callable[[str], None] = say) -> Log:
    """Failure if it cannot be read; `tell` hears of each student that nobody is, or that stands there twice."""
    known, points, most = {*names, *(one.id for one in people)}, {}, 0
    for where, cells in lines_of(path):
        who, given = unicodedata.normalize("NFC", cells[0]), cells[1:]
        if not given or not all(re.fullmatch(r"(\d+(\.\d+)?)?", one) and float(one or 0) <= LOG_POINTS
                                for one in given):
            raise Failure(f"{where}: it must be an id and points for each log, 0 to {LOG_POINTS}, as 1001,8.5",
                          status=2)
        most = max(most, len(given))
        if who not in known or who in points:
            tell(f"{where}: {who} {'stands there a second time' if who in points else 'is nobody here'}: this line "
                 "does not count.")
            continue
        points[who] = sum(float(one or 0) for one in given)
    return Log(points, LOG_POINTS * most)


def person_of(submission: str, people: Iterable[Person]) -> "Person | None":
    """Whose it is by its name; None if nobody's, or more than one's. An id tells those apart whom one name in it
    can be; beside the name of somebody else it does not count, since students choose what their files are called."""
    words = plain(submission).split()
    people = list(people)
    places = [_places(one, words) for one in people]
    # What is only a part of what names another, as grace of ada-grace, names nobody.
    whole = [{(begin, end) for begin, end in mine
              if not any(first <= begin and end <= last and (first, last) != (begin, end)
                         for other in places if other is not mine for first, last in other)} for mine in places]
    found = [(one, mine) for one, mine in zip(people, whole) if mine]
    by_id = [(one, mine - _where(one.id, words)) for one, mine in found if mine & _where(one.id, words)]
    if len(by_id) == 1 and all(by_id[0][1] & other for one, other in found if one is not by_id[0][0]):
        return by_id[0][0]
    return found[0][0] if len(found) == 1 else None


def _places(one: Person, words: list[str]) -> set[tuple[int, int]]:
    """(begin, end) of each part of a submission's name, in words, that names this person."""
    found = _where(one.id, words) | _where(one.mail, words) | _where(one.name, words)
    names = plain(one.name).split()
    # As Canvas has it, who is called so begins with any of their words: the family's are not known, nor their number.
    run_together = {"".join([*names[at:], *names[:at]]) for at in range(len(names))}
    if words and words[0] in run_together | {_in_ascii(name) for name in run_together}:
        found.add((0, 1))
    if words and "".join(words) == "".join(names):
        found.add((0, len(words)))
    return found


def _in_ascii(name: str) -> str:
    """Without what letters have above or below them."""
    return "".join(each for each in unicodedata.normalize("NFKD", name) if not unicodedata.combining(each))


def _where(part: str, words: list[str]) -> set[tuple[int, int]]:
    looked_for = plain(part).split()
    size = len(looked_for)
    return {(at, at + size) for at in range(len(words)) if looked_for and words[at : at + size] == looked_for}


def _how_surely(name: str, names: Sequence[str], one: Person) -> int:
    """2: but for what all names begin and end with it is nothing but the person's id; 1: or name, or address. An
    account on GitHub is called as its owner likes, and its clones hw1-z-ada, or hw1-ada-example, beside hw1-ada."""
    words = [plain(each).split() for each in names]
    mine = plain(name).split()
    begin = len(os.path.commonprefix(words))
    ends = {len(mine), len(mine) - len(os.path.commonprefix([each[::-1] for each in words]))}
    for sure, places in ((2, _where(one.id, mine)), (1, _places(one, mine))):
        if any((begin, end) in places for end in ends):
            return sure
    return 0


def _strange(names: Sequence[str], one: Person, tell: Callable[[str], None]) -> set[str]:
    """Which of these, that all name this person, may be another's: a platform begins them with who has handed them in,
    and behind that they are called as somebody liked. hw1-ada and hw2-ada begin alike. `tell` hears so."""
    begin: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        words = plain(name).split()
        before = words[: min(place for place, _ in _places(one, words))]
        begin.setdefault(tuple(re.sub(r"(?<=[^\W\d])\d+", "", word) for word in before), []).append(name)
    shortest = [same for before, same in begin.items() if len(before) == min(map(len, begin))]
    kept = shortest[0] if len(shortest) == 1 else []
    strange = [name for name in names if name not in kept]
    if strange:
        alone = len(strange) == 1
        how = f"otherwise than {', '.join(kept)}" if kept else "differently"
        tell(f"{', '.join(strange)}: {'it names' if alone else 'these name'} {one.name}, and "
             f"{'begins' if alone else 'begin'} {how}. What may be another's does not count for this student, and has "
             "a row of its own.")
    return set(strange)


def whose(names: Sequence[str], people: list[Person], tell: Callable[[str], None]) -> dict[str, Person]:
    """{submission: person}; `tell` hears of the others."""
    found = {name: one for name in names if (one := person_of(name, people))}
    best: dict[str, int] = {}
    for name, one in found.items():
        best[one.id] = max(best.get(one.id, 0), _how_surely(name, names, one))
    found = {name: one for name, one in found.items() if _how_surely(name, names, one) == best[one.id]}
    strange: set[str] = set()
    for one in people:
        strange |= _strange([name for name, its in found.items() if its is one], one, tell)
    found = {name: one for name, one in found.items() if name not in strange}
    others = [name for name in names if name not in found and name not in strange]
    if others:
        tell(f"Not in the roster, or not one person's alone: {', '.join(others)}. These have rows of their own; with "
             "the roster's id in its name, as in exampleada_1001_hw1, a submission is that person's.")
    return found


def in_order(names: Iterable[str], dates: dict[str, datetime.date]) -> list[str]:
    """One student's submissions by their dates; where none is known, by their names, since platforms count them:
    attempt_10 comes after attempt_9."""
    def place(name: str) -> "tuple[str, list[str | int]]":
        counted = [int(part) if at % 2 else part for at, part in enumerate(re.split(r"(\d+)", name))]
        return str(dates.get(name, "")), counted  # a day alone comes before its hours

    return sorted(names, key=place)


def for_canvas(title: str, points: dict[str, float], total: float, people: list[Person]) -> str:
    """A gradebook that Canvas imports: a column for the assignment, a row for each student."""
    rows = [["Student", "ID", "SIS User ID", "SIS Login ID", "Section", title],
            ["    Points Possible", "", "", "", "", f"{total:g}"]]
    rows += [[one.name, "", one.id, one.mail, "", f"{points[one.id]:g}" if one.id in points else ""] for one in people]
    return as_csv(rows)


def for_moodle(title: str, points: dict[str, float], people: list[Person]) -> str:
    """Grades that Moodle imports, by ID number or e-mail address."""
    return as_csv([["ID number", "Email address", title],
                    *[[one.id, one.mail, f"{points[one.id]:g}" if one.id in points else ""] for one in people]])
