"""The file with which an instructor plans a course:

    {"title": "GPU programming, spring",
     "late": {"percent_a_day": 10, "days": 3},
     "points": {"01.scores": 3},
     "secret": "what only the instructor knows",
     "weeks": [{"title": "memory", "begins": "2027-02-01", "due": "2027-02-08", "exercises": ["01", "02.scores"]}, ..]}

`late`, `points` and `secret` need not be there; an exercise has the points of exercises.json unless `points` says
otherwise. From the secret come the names that questions are drawn from (../grading/question_names.py).
Points and percents may be fractions, and `due` may have an hour of the course's clock: 2027-02-08T18:00. Exercises are
named as for ./workbook check: 01 means all of chapter 01.
"""

import datetime
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from tools.base import Failure, JsonObject, shown
from tools.course import Course, Exercise

_WEEK: dict[str, type] = {"title": str, "begins": str, "due": str, "exercises": list}
_FILE: dict[str, type] = {"title": str, "weeks": list}
_MAY: dict[str, type] = {"late": dict, "points": dict, "secret": str}
_SHORTEST_SECRET = 12
_LATE: dict[str, Any] = {"percent_a_day": (int, float), "days": int}


@dataclass(frozen=True)
class Week:
    title: str
    begins: str
    due: str
    exercises: list[Exercise]  # of Exercise, with the course's points


@dataclass(frozen=True)
class Plan:
    title: str
    weeks: list[Week]
    late: dict[str, float] = field(default_factory=dict)
    secret: str = ""

    @property
    def exercises(self) -> list[Exercise]:
        return [exercise for week in self.weeks for exercise in week.exercises]

    def due(self, id: str) -> str:
        """When this exercise is due; empty if nothing says it. 06.pipeline.speed is due with 06.pipeline."""
        of_each = {one.id: week.due for week in self.weeks for one in week.exercises}
        return of_each.get(id) or of_each.get(id.rpartition(".")[0], "")

    def only(self, week: "int | None", ids: set[str]) -> "Plan":
        """These exercises of this week, or of all; a week without exercises keeps its number."""
        return replace(self, weeks=[replace(one, exercises=[exercise for exercise in one.exercises
                                                            if exercise.id in ids]
                                            if week in (None, number) else [])
                                    for number, one in enumerate(self.weeks, 1)])


def without_a_file(exercises: list[Exercise]) -> Plan:
    return Plan("The FlashAttention workbook", [Week("", "", "", exercises)] if exercises else [])


def read_plan(path: Path, course: Course) -> Plan:
    """Reads the plan; Failure names the file and the error in it."""
    def fail(what: str, line: int = 1) -> NoReturn:
        raise Failure(f"{shown(path)}:{line}: {what}", status=2)

    def typed(what: str, entry: Any, must: dict[str, Any], may: dict[str, Any]) -> JsonObject:
        if not isinstance(entry, dict):
            fail(f"{what} must be an object with {', '.join(must)}")
        for key in must:
            if key not in entry:
                fail(f"{what} has no {key}")
        for key, value in entry.items():
            kind = must.get(key) or may.get(key)
            if kind is None:
                fail(f"{what} has a key {key}, which it cannot have (it can have {', '.join([*must, *may])})")
            kinds = kind if isinstance(kind, tuple) else (kind,)
            if type(value) not in kinds:
                fail(f"{key} of {what} is {json.dumps(value)}: it must be of type {kinds[-1].__name__}")
        return entry

    def line_of(word: object) -> int:
        return next((i for i, line in enumerate(text.splitlines(), 1) if json.dumps(word) in line), 1)

    try:
        text = path.read_text(encoding="utf-8-sig")
        entry = json.loads(text)
    except OSError as error:
        raise Failure(f"cannot read {shown(path)}: {error.strerror}", status=2) from None
    except UnicodeDecodeError as error:
        fail(f"it is not UTF-8: byte {error.start} is {error.object[error.start]:#04x}")
    except ValueError as error:
        fail(str(error.args[0]), getattr(error, "lineno", 1))
    except RecursionError:
        fail("it is nested too deeply")
    typed("the course", entry, _FILE, _MAY)
    late = typed("late", entry.get("late", {"percent_a_day": 0, "days": 0}), _LATE, {})
    for key, most in (("percent_a_day", 100), ("days", 366)):
        if not 0 <= late[key] <= most:
            fail(f"{key} of late is {late[key]}: it must be 0 to {most}", line_of(key))
    points, secret = entry.get("points", {}), entry.get("secret", "")
    if "secret" in entry and len(secret.strip()) < _SHORTEST_SECRET:
        fail(f"secret has {len(secret.strip())} characters: it must have at least {_SHORTEST_SECRET}",
             line_of("secret"))

    def selected(words: Iterable[str]) -> Iterator[Exercise]:
        for word in words:
            try:
                found = course.select([str(word)])
            except Failure as failure:
                fail(str(failure), line_of(word))
            yield from found

    for word, number in points.items():
        if [one.id for one in selected([word])] != [word] or type(number) not in (int, float) or \
                not 0 <= number < 1e6:
            fail(f"points of {word} are {json.dumps(number)}: it must be an exercise and a number", line_of(word))
    weeks: list[Week] = []
    seen: set[str] = set()
    for number, week in enumerate(entry["weeks"], 1):
        typed(f"week {number}", week, _WEEK, {})
        for key in ("begins", "due"):
            try:
                # Newer Pythons accept other formats too.
                day, at, hour = week[key].partition("T")
                if datetime.date.fromisoformat(day).isoformat() != day or (at and key != "due") or \
                        (at and datetime.time.fromisoformat(hour).replace(tzinfo=None).isoformat("minutes") != hour):
                    raise ValueError  # also for an offset: the hour is that of the course's clock
            except ValueError:
                fail(f"{key} of week {number} is {week[key]}: it must be a date, as 2027-02-01"
                     + (", perhaps with an hour, as 2027-02-01T18:00" if key == "due" else ""), line_of(week[key]))
        if week["due"][:10] < week["begins"]:
            fail(f"week {number} is due before it begins", line_of(week["due"]))
        exercises = [replace(one, points=points.get(one.id, one.points)) for one in selected(week["exercises"])]
        for one in exercises:
            if one.id in seen:
                fail(f"{one.id} is in two weeks, or twice in week {number}", line_of(one.id))
            seen.add(one.id)
        weeks.append(Week(week["title"], week["begins"], week["due"], exercises))
    for word in sorted(points.keys() - seen):
        fail(f"points of {word}, which is in no week", line_of(word))
    return Plan(entry["title"], weeks, late if late["percent_a_day"] else {}, secret)
