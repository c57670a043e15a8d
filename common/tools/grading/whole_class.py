"""Grading a whole class: several submissions at a time, each once, and what the instructor reads afterwards."""

import datetime
import hashlib
import json
import queue
import unicodedata
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from tools.base import Failure, file_trees, say
from tools.course import Plan, Verdict, student_of
from tools.grading import grade_reports
from tools.grading.late_days import without_late_points
from tools.grading.one_submission import ANSWERS, Grade, Workbench, grade, not_graded, taken_from
from tools.grading.question_names import bound
from tools.grading.roster import Log, Person, for_canvas, for_moodle, in_order, whose
from tools.grading.similarity import alike
from tools.grading.speed import Graded
from tools.grading.submission import Submission, is_submission, name_of, read_submission
from tools.grading.which_counts import best_of

_KEPT = "graded"  # below the directory of the results: what need not be done again


@dataclass(frozen=True)
class Class:
    grades: list[Grade]
    failed: list[str]  # names of submissions that could not be graded, through no fault of theirs


@dataclass
class _Row:
    """What one student has handed in, or a submission of nobody in the roster."""

    person: "Person | None"
    submissions: list[Submission]  # the last one last
    # {submission: the exercises for which it counts}, once they are graded
    parts: dict[str, list[Graded]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return list(self.parts)[-1]


def submissions_in(directory: Path, wanted: list[str]) -> list[Submission]:
    """The submissions of a class, each a directory or an archive, no two with the same name."""
    paths = [path for path in sorted(directory.iterdir()) if is_submission(path) or path.is_symlink()]
    if not paths:
        raise Failure(f"{directory} has no submissions: no directories, and no zip or tar archives", status=2)
    read = [read_submission(path, wanted) for path in paths]
    for one in read:  # a Mac writes an umlaut as two letters
        one.name = unicodedata.normalize("NFC", one.name)
    names = [one.name for one in read]
    used: set[str] = set()
    for one, path in zip(read, paths):
        name = name_of(path) if names.count(one.name) > 1 else one.name
        one.name, number = name, 1
        while one.name in used:
            number += 1
            one.name = f"{name} ({number})"
        used.add(one.name)
    return read


def no_submissions_in(directory: Path) -> list[str]:
    """The names of everything else there but hidden files: somebody may have handed in a file that is no archive."""
    return sorted(name_of(path) for path in directory.iterdir()
                  if not (is_submission(path) or path.is_symlink() or path.name.startswith(".")))


def grade_class(workbenches: list[Workbench], submissions: list[Submission], exercises: Sequence[Graded], out: Path,
                plan: Plan, dates: dict[str, datetime.date], others: Sequence[str] = (),
                people: Sequence[Person] = (), log: "Log | None" = None, notes: Sequence[str] = ()) -> Class:
    """With as many at a time as there are workbenches. Writes a page for each student, grades.csv and class.md. What
    is kept of a submission has all its points, whenever it was handed in. `others` are names of what is no
    submission; `notes` are what was said before of whose submissions are and when they came. With a roster, each of its
    people has one row, of what counts of their submissions."""
    log, notes = log or Log(), list(notes)
    (out / _KEPT).mkdir(parents=True, exist_ok=True)
    (out / "students").mkdir(exist_ok=True)
    free: queue.SimpleQueue[Workbench] = queue.SimpleQueue()
    failed: list[str] = []
    done: list[str] = []
    for workbench in workbenches:
        free.put(workbench)

    def tell(line: str) -> None:
        notes.append(line)
        say(line)

    of = whose([one.name for one in submissions], list(people), tell) if people else {}
    there = {one.id for one in of.values()}
    absent = [one for one in people if one.id not in there]
    if absent:
        tell(f"Nothing was handed in by {', '.join(one.name or one.id for one in absent)}.")
    rows = _rows(submissions, of, dates)
    handed_in = {one.name: one for one in submissions}
    tree = _digest(sorted((file, _digest(content)) for file, content in file_trees.read(workbenches[0].root).items()))

    held = workbenches[0].held

    def judged(submission: Submission) -> Grade:
        path = out / _KEPT / f"{submission.name}.json"
        key = _digest([submission.texts, submission.wrong, submission.refused, [asdict(one) for one in exercises], tree,
                       workbenches[0].no_gpu, held])
        result = _kept(path, key)
        if result is None:
            workbench = free.get()
            try:
                result = grade(workbench, submission, exercises)
                path.write_text(json.dumps({"key": key, "grade": asdict(result)}, indent=1) + "\n")
            finally:
                free.put(workbench)
        return result

    def as_it_counts(submission: Submission, person: "Person | None") -> Grade:
        try:
            result = judged(submission)
            if person:
                result = bound(result, submission, [person], plan.secret, exercises)
            return without_late_points(result, plan, dates.get(submission.name), person.days if person else 0)
        except Exception as error:  # whatever it is: the rest of the class is graded
            failed.append(submission.name)
            return not_graded(submission, exercises, f"the grader failed: {error or type(error).__name__}")

    def graded(row: _Row) -> Grade:
        result, row.parts = best_of(workbenches[0].course, row.submissions, exercises, plan, dates, row.person,
                                    lambda each: as_it_counts(each, row.person))
        result.log = log.of_student(row.person, [each.name for each in reversed(row.submissions)])
        (out / "students" / f"{row.name}.md").write_text(grade_reports.page_of(result, exercises, log, held))
        done.append(row.name)
        say(f"{len(done)} of {len(rows)}: {result.name}, {result.score} points"
            + (f", {result.refused[0]}" if result.refused else ""))
        return result

    def taken(row: _Row) -> dict[str, str]:
        return {id: text for name, its in row.parts.items() if name not in failed
                for id, text in taken_from(workbenches[0].course, handed_in[name], its).items()}

    with ThreadPoolExecutor(len(workbenches)) as pool:
        grades = list(pool.map(graded, rows))
    for line in filter(None, map(_what_counts, rows)):
        tell(line)
    names = {row.name for row in rows}
    for kept in (out / _KEPT).glob("*.json"):  # of what is no longer there, or does not count
        if kept.stem not in names:
            (out / "students" / f"{kept.stem}.md").unlink(missing_ok=True)
    found, without = alike({row.name: taken(row) for row in rows}, workbenches[0].course)
    lines: "list[tuple[Grade, Person | None]]" = [(grade, row.person) for grade, row in zip(grades, rows)]
    lines += [(replace(_nothing(exercises), log=log.of_student(one, [])), one) for one in absent]
    (out / "grades.csv").write_text(grade_reports.table_of_class(lines, exercises, log))
    if people:
        points = {person.id: grade.score for grade, person in lines
                  if person and (person.id in there or person.id in log.points)}
        total = grade_reports.total(exercises, log)
        title = plan.title or "Exercises"
        (out / "canvas.csv").write_text(for_canvas(title, points, total, list(people)))
        (out / "moodle.csv").write_text(for_moodle(title, points, list(people)))
    (out / "class.md").write_text(grade_reports.page_of_class(grades, exercises, found, without, held,
                                                              _namesakes(rows), others, notes))
    return Class(grades, failed)


def _rows(submissions: list[Submission], of: dict[str, Person], dates: dict[str, datetime.date]) -> list[_Row]:
    theirs: "dict[Person | str, dict[str, Submission]]" = {}
    for one in submissions:
        theirs.setdefault(of.get(one.name, one.name), {})[one.name] = one
    return [_Row(None if isinstance(who, str) else who, [several[name] for name in in_order(several, dates)])
            for who, several in theirs.items()]


def _what_counts(row: _Row) -> str:
    """Of several submissions of one student, for what each counts; empty if there is one."""
    if len(row.submissions) == 1:
        return ""
    of_each = [f"{each.name} counts for {' '.join(one.id for one in row.parts.get(each.name, [])) or 'nothing'}"
               + (f" ({each.refused[0]}: {each.refused[1]})" if each.refused else "") for each in row.submissions]
    return f"Of the same student {', '.join(of_each)}."


def _nothing(exercises: Sequence[Graded]) -> Grade:
    """Of who has handed in nothing."""
    return Grade("", {one.id: Verdict("not handed in") for one in exercises}, {one.id: 0 for one in exercises})


def _namesakes(rows: list[_Row]) -> tuple[tuple[str, ...], ...]:
    """Groups of rows whose answers.json name the same student."""
    of_student: dict[str, set[str]] = {}
    for row in rows:
        for each in row.submissions:
            if student := student_of(each.texts.get(ANSWERS, "")):
                of_student.setdefault(student, set()).add(row.name)
    return tuple(tuple(sorted(names)) for names in of_student.values() if len(names) > 1)


def _digest(what: object) -> str:
    content = what if isinstance(what, bytes) else json.dumps(what, sort_keys=True).encode()
    return hashlib.sha256(content).hexdigest()


def _kept(path: Path, key: str) -> "Grade | None":
    """The earlier result, if nothing has changed since."""
    try:
        kept = json.loads(path.read_text())
        if kept["key"] != key:
            return None
        entry = kept["grade"]
        verdicts = {id: Verdict(verdict["state"], verdict["lines"]) for id, verdict in entry["verdicts"].items()}
        return Grade(entry["name"], verdicts, entry["points"], tuple(entry["refused"]) if entry["refused"] else None,
                     entry["seconds"], flags=entry["flags"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
