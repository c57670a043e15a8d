"""Late days: how many points the course file's policy takes from an exercise that was handed in late.

Days are those of the place where it was handed in. Gradescope writes beside the submission when that was; of a class a
table says it, with a line for each submission: ada,2027-02-17.
"""

import datetime
import math
import re
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tools.base import Failure, say
from tools.course import Plan, Verdict
from tools.grading.kernels import as_line
from tools.grading.one_submission import Grade
from tools.grading.submission import metadata_of
from tools.grading.tables import lines_of

_DAY = re.compile(r"(?P<day>\d{4}-\d\d-\d\d)([T ](?P<hour>\d\d:\d\d)(:\d\d([.]\d+)?)? ?(Z|[+-]\d\d:?\d\d)?)?")


def read_dates(path: Path, tell: Callable[[str], None] = say) -> dict[str, datetime.date]:
    """Reads {submission: date, with the hour if it has one}; of two lines with one submission the first counts, and
    `tell` hears so."""
    dates: dict[str, datetime.date] = {}
    for where, line in lines_of(path):
        try:
            called, when = line
            day = _day(when)
        except ValueError:
            raise Failure(f"{where}: it must be a submission and a date, as ada,2027-02-17 or ada,2027-02-17T18:00, "
                          f"and is {as_line(','.join(line))}", status=2) from None
        name = unicodedata.normalize("NFC", called)
        if name in dates:
            tell(f"{where}: {name} stands there a second time: this line does not count.")
            continue
        dates[name] = day
    return dates


def date_of_gradescope(submission: Path) -> "datetime.date | None":
    try:
        return _day(metadata_of(submission)["created_at"])
    except (ValueError, KeyError, TypeError):
        return None


def _day(when: str) -> datetime.date:
    """Of the clock where it was handed in, whose offset does not matter. ValueError if it is none."""
    found = _DAY.fullmatch(when)
    if not found:
        raise ValueError
    day, hour = datetime.date.fromisoformat(found["day"]), found["hour"]
    return datetime.datetime.combine(day, datetime.time.fromisoformat(hour)) if hour else day


def days_late(handed_in: datetime.date, due: str) -> int:
    """How many days have begun since then; 0 or less if it was in time. A day without an hour is due until it ends."""
    day = handed_in.date() if isinstance(handed_in, datetime.datetime) else handed_in
    days = (day - datetime.date.fromisoformat(due[:10])).days
    if "T" not in due or not isinstance(handed_in, datetime.datetime):
        return days
    return math.ceil((handed_in - datetime.datetime.fromisoformat(due)) / datetime.timedelta(days=1))


def lost_after(days: int, plan: Plan) -> float:
    """How many percent of an exercise's points so many late days cost."""
    if days <= 0 or not plan.late:
        return 0
    return 100 if days > plan.late["days"] else min(100, days * plan.late["percent_a_day"])


def without_late_points(grade: Grade, plan: Plan, handed_in: "datetime.date | None", extension: int = 0) -> Grade:
    """The grade without the points that late days cost; unchanged if nothing was late, or no date is known. `extension`
    are days that this student has more."""
    if not plan.late or handed_in is None:
        return grade
    points, verdicts = dict(grade.points), dict(grade.verdicts)
    for id, full in grade.points.items():
        due = plan.due(id)
        days = days_late(handed_in, due) - extension if due else 0
        if days > 0 and full > 0:
            lost = lost_after(days, plan)
            grade.late[id] = days
            points[id] = round(full * (100 - lost) / 100, 2)
            line = f"{days} day{'s' if days > 1 else ''} late: {lost:g} % of {full:g} points less"
            verdicts[id] = Verdict(verdicts[id].state, [*verdicts[id].lines, line])
    return replace(grade, points=points, verdicts=verdicts)
