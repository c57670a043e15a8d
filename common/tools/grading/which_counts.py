"""Which of one student's submissions counts: for each exercise the one that has the most points for it, late days
subtracted.

So nobody loses anything by handing in again, in time or late, all or a part. Of a class all submissions are there.
Gradescope runs the autograder on one submission, counts the last, and tells the results of those before.
"""

import datetime
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tools.course import Course, Plan, Verdict
from tools.grading.kernels import as_line
from tools.grading.late_days import days_late, lost_after
from tools.grading.one_submission import Grade, attempts
from tools.grading.roster import Person
from tools.grading.speed import Graded, Timed
from tools.grading.submission import Submission, metadata_of

_FROM = "of your submission of "


def best_of(course: Course, submissions: Sequence[Submission], exercises: Sequence[Graded], plan: Plan,
            dates: dict[str, datetime.date], person: "Person | None",
            graded: Callable[[Submission], Grade]) -> tuple[Grade, dict[str, list[Graded]]]:
    """(The grade of one student's submissions, {submission: the exercises for which it counts}), in the order in which
    they came. None is graded that can give no more points than others have given."""
    if len(submissions) == 1:
        return graded(submissions[0]), {submissions[0].name: list(exercises)}
    by_id = {one.id: one for one in exercises}

    def most(submission: Submission, one: Graded) -> float:
        """How many points this may give."""
        due, day = plan.due(one.id), dates.get(submission.name)
        days = days_late(day, due) - (person.days if person else 0) if due and day else 0
        return round(one.points * (100 - lost_after(days, plan)) / 100, 2)

    def attempted(submission: Submission, one: Graded) -> bool:
        return attempts(course, submission, by_id[one.of] if isinstance(one, Timed) else one)

    may = {each.name: {one.id: most(each, one) for one in exercises if attempted(each, one)} for each in submissions}
    best: dict[str, Grade] = {}  # by the exercise's id
    # What may give most comes first, and of the same the last one, whose verdict is the one that the student knows.
    least_first = sorted(submissions, key=lambda one: sum(may[one.name].values()))
    for each in least_first[::-1]:
        if best and all(id in may[best[id].name] and points <= best[id].points[id]
                        for id, points in may[each.name].items()):
            continue
        grade = graded(each)
        for id in by_id:
            if id not in best or grade.points[id] > best[id].points[id] or \
                    id in may[each.name] and id not in may[best[id].name]:
                best[id] = grade
    parts = {each.name: its for each in submissions if (its := [one for one in exercises
                                                               if best[one.id].name == each.name])}
    result = Grade(list(parts)[-1], refused=next(iter(best.values())).refused if len(parts) == 1 else None,
                   seconds=sum({grade.name: grade.seconds for grade in best.values()}.values()))
    for id, grade in best.items():
        verdict = grade.verdicts[id]
        result.verdicts[id] = Verdict(verdict.state, [f"handed in as {grade.name}", *verdict.lines])
        result.points[id] = grade.points[id]
        result.late |= {id: grade.late[id]} if id in grade.late else {}
        result.flags |= {id: grade.flags[id]} if id in grade.flags else {}
    return result, parts


def with_earlier(grade: Grade, submission: Path, exercises: Iterable[Graded]) -> Grade:
    """With what had more points in one of the student's earlier submissions, as Gradescope tells."""
    most = {one.id: one.points for one in exercises}
    metadata = metadata_of(submission)
    verdicts, points, late = dict(grade.verdicts), dict(grade.points), dict(grade.late)
    for when, test in _earlier_tests(metadata):
        id, score = test.get("number"), test.get("score")
        if id in most and isinstance(score, (int, float)) and points[id] < score <= most[id]:
            state, *lines = str(test.get("output", "")).splitlines() or [""]
            said = [] if lines and lines[0].startswith(_FROM) else [f"{_FROM}{when}"]
            verdicts[id] = Verdict(as_line(state), [as_line(line) for line in (*said, *lines)])
            points[id] = score
            late.pop(id, None)
    return replace(grade, verdicts=verdicts, points=points, late=late)


def _earlier_tests(metadata: Any) -> "list[tuple[str, dict[str, Any]]]":
    """(when it was handed in, one of its results) of all earlier submissions; none of what has another form."""
    found = []
    before = metadata.get("previous_submissions") if isinstance(metadata, dict) else None
    for one in before if isinstance(before, list) else []:
        results = one.get("results") if isinstance(one, dict) else None
        tests = results.get("tests") if isinstance(results, dict) else None
        when = str(one.get("submission_time"))[:16].replace("T", ", ") if tests else ""
        found += [(when, test) for test in tests or [] if isinstance(test, dict)]
    return found
