"""Grading a whole class: several submissions at a time, each once, and what the instructor reads afterwards."""

import datetime
import hashlib
import json
import queue
import unicodedata
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tools.base import Failure, file_trees, say
from tools.course import Plan, Verdict, student_of
from tools.grading import grade_reports
from tools.grading.late_days import without_late_points
from tools.grading.one_submission import ANSWERS, Grade, Workbench, grade, not_graded, taken_from
from tools.grading.question_names import bound
from tools.grading.roster import Log, Person, for_canvas, for_moodle, last_in_time, whose
from tools.grading.similarity import alike
from tools.grading.speed import Graded
from tools.grading.submission import Submission, is_submission, name_of, read_submission

_KEPT = "graded"  # below the directory of the results: what need not be done again


@dataclass(frozen=True)
class Class:
    grades: list[Grade]
    failed: list[str]  # names of submissions that could not be graded, through no fault of theirs


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
                people: Sequence[Person] = (), log: "Log | None" = None) -> Class:
    """With as many at a time as there are workbenches. Writes a page for each student, grades.csv and class.md. What
    is kept of a submission has all its points, whenever it was handed in. `others` are names of what is no
    submission. With a roster, each of its people has one row, of the submission that counts, or of none."""
    log = log or Log()
    (out / _KEPT).mkdir(parents=True, exist_ok=True)
    (out / "students").mkdir(exist_ok=True)
    free: queue.SimpleQueue[Workbench] = queue.SimpleQueue()
    failed: list[str] = []
    done: list[str] = []
    for workbench in workbenches:
        free.put(workbench)
    of = whose([one.name for one in submissions], list(people)) if people else {}
    due = max((week.due for week in plan.weeks if week.due and week.exercises), default="")
    counts = last_in_time([one.name for one in submissions], of, dates, due)
    passed_over = {name: counts[one.id] for name, one in of.items() if counts[one.id] != name}
    submissions = [one for one in submissions if one.name not in passed_over]
    for name, instead in sorted(passed_over.items()):
        say(f"{name} does not count: {instead} does, of the same student.")
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

    def as_it_counts(result: Grade, submission: Submission, person: "Person | None") -> Grade:
        if person:
            result = bound(result, submission, [person], plan.secret, exercises)
        return without_late_points(result, plan, dates.get(submission.name), person.days if person else 0)

    def graded(submission: Submission) -> Grade:
        person = of.get(submission.name)
        try:
            result = as_it_counts(judged(submission), submission, person)
        except Exception as error:  # whatever it is: the rest of the class is graded
            failed.append(submission.name)
            result = not_graded(submission, exercises, f"the grader failed: {error or type(error).__name__}")
        result.log = log.of_student(person, submission.name)
        (out / "students" / f"{submission.name}.md").write_text(grade_reports.page_of(result, exercises, log, held))
        done.append(submission.name)
        say(f"{len(done)} of {len(submissions)}: {result.name}, {result.score} points"
            + (f", {result.refused[0]}" if result.refused else ""))
        return result

    with ThreadPoolExecutor(len(workbenches)) as pool:
        grades = list(pool.map(graded, submissions))
    found, without = alike({one.name: taken_from(workbenches[0].course, one, exercises) for one in submissions
                            if one.name not in failed}, workbenches[0].course)
    rows: "list[tuple[Grade, Person | None]]" = [(grade, of.get(grade.name)) for grade in grades]
    there = {person.id for _, person in rows if person}
    rows += [(replace(_nothing(exercises), log=log.of_student(one, "")), one) for one in people if one.id not in there]
    (out / "grades.csv").write_text(grade_reports.table_of_class(rows, exercises, log))
    if people:
        points = {person.id: grade.score for grade, person in rows
                  if person and (person.id in there or person.id in log.points)}
        total = grade_reports.total(exercises, log)
        title = plan.title or "Exercises"
        (out / "canvas.csv").write_text(for_canvas(title, points, total, list(people)))
        (out / "moodle.csv").write_text(for_moodle(title, points, list(people)))
    (out / "class.md").write_text(grade_reports.page_of_class(grades, exercises, found, without, held,
                                                              namesakes(submissions), others))
    return Class(grades, failed)


def _nothing(exercises: Sequence[Graded]) -> Grade:
    """Of who has handed in nothing."""
    return Grade("", {one.id: Verdict("not handed in") for one in exercises}, {one.id: 0 for one in exercises})


def namesakes(submissions: list[Submission]) -> tuple[tuple[str, ...], ...]:
    """Groups of submissions whose answers.json name the same student."""
    of_student: dict[str, list[str]] = {}
    for one in submissions:
        student = student_of(one.texts.get(ANSWERS, ""))
        if student:
            of_student.setdefault(student, []).append(one.name)
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
