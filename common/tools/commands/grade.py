"""grade what students have handed in

A submission is a directory, a zip or a tar archive. Only the lines between the exercises' markers are taken from it,
and answers.json; they are put into this tree's files, built, and run on the SIMT engine in a process that can compute
and do nothing else. The results are written as Gradescope wants them. Which layers keep that process apart on this
machine, the results say; with --require-isolation nothing is graded unless all do that have to.

If --out is no file that ends with .json but a directory, SUBMISSION is a directory with those of a class. Then the
directory gets grades.csv, class.md (which exercise most got wrong, whose solutions are alike), and a page for each
student in students. What has been graded is not graded again, if neither the submission nor this tree has changed.

With --gpu the kernels of some exercises are timed too, beside the reference solution's on the same GPU, if they are
right. That gives points of its own.
"""

import argparse
import datetime
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.base import BUILD, ROOT, Failure, JsonObject, build, complain, packages, say, shown
from tools.commands.handout import ROSTER, chosen_plan
from tools.course import Course, Learner, Plan, load
from tools.grading import (
    Grade,
    Graded,
    Workbench,
    bound,
    date_of_gradescope,
    file_of,
    grade,
    grade_class,
    in_the_roster,
    is_submission,
    no_submissions,
    no_submissions_in,
    not_graded,
    not_held,
    read_dates,
    read_log,
    read_roster,
    read_submission,
    submissions_in,
    users_of,
    with_earlier,
    with_performance,
    without_late_points,
    written,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("submission", nargs="?", type=Path, metavar="SUBMISSION",
                        help="a directory or an archive, or a directory with those of a class")
    parser.add_argument("exercises", nargs="*", metavar="EXERCISE",
                        help="05.rescale, or 05 (default: all, or all of the course)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="results.json, or a directory for a class")
    parser.add_argument("--course", type=Path, metavar="FILE", help="the course, for its exercises and points")
    parser.add_argument("--dates", type=Path, metavar="FILE",
                        help="a table of when what was handed in, for a course with late days: ada,2027-02-17 or "
                             "ada,2027-02-17T18:00")
    parser.add_argument("--roster", type=Path, metavar="FILE",
                        help="of a class: id,name,e-mail and perhaps days more, a line each; gives one row a student, "
                             "canvas.csv and moodle.csv")
    parser.add_argument("--log", type=Path, metavar="FILE",
                        help="of a class: points for the logs, which a person gave: 1001,8.5")
    parser.add_argument("--patience", type=float, default=60, metavar="S",
                        help="seconds for one run (default: %(default)g)")
    parser.add_argument("--gpu", action="store_true", help="grade performance too, on this machine's GPU")
    parser.add_argument("--require-isolation", action="store_true",
                        help="refuse to grade where a layer that keeps submissions apart does not hold")
    parser.add_argument("--week", type=int, metavar="N", help="only this week of the course")
    parser.add_argument("--prepare", action="store_true", help="build what grading needs, and grade nothing")


def passes_on(word: str) -> bool:
    """Exercises may also follow the options, which argparse does not allow by itself."""
    return not word.startswith("-")


def run(arguments: argparse.Namespace) -> int:
    arguments.exercises += arguments.passed_on
    if arguments.prepare and arguments.submission:  # the first word is an exercise's then
        arguments.exercises.insert(0, str(arguments.submission))
    if not 0 < arguments.patience <= 3600:
        raise Failure(f"--patience is {arguments.patience:g}: it must be more than 0 and at most 3600 seconds",
                      status=2)
    for option in ("roster", "log"):
        if getattr(arguments, option) and arguments.out and arguments.out.suffix == ".json":
            raise Failure(f"--{option} is for a class: --out must be a directory, and is {arguments.out}", status=2)
    course = load()
    Learner(course).require_none_started("grading")
    plan = chosen_plan(course, arguments)
    exercises: Sequence[Graded] = plan.exercises
    if not exercises:
        raise Failure("there is no exercise to grade", status=2)
    timed = with_performance(course, plan.exercises)
    if arguments.gpu:
        exercises = timed
    packages.require_versions()
    packages.install_for_grading()
    if arguments.prepare:
        _workbench(course, exercises, 0, arguments)
        return 0
    if arguments.submission is None or arguments.out is None:
        raise Failure("grade needs a submission and --out", status=2)
    if not arguments.submission.exists() or not is_submission(arguments.submission):
        raise Failure(f"{arguments.submission} is neither a directory nor a zip or tar archive", status=2)
    require_a_place(arguments.submission, arguments.out)
    if len(timed) > len(exercises):
        say("Performance is not graded: that takes a GPU, and --gpu.")
    if arguments.out.suffix != ".json":
        return _class(arguments, course, plan, exercises)
    return _one(arguments, course, plan, exercises)


def require_a_place(submission: Path, out: Path) -> None:
    """Refuses an --out where the results would overwrite something, or be taken for submissions the next time."""
    if out.suffix == ".json":
        return
    if not submission.is_dir():
        raise Failure(f"--out is {out}: of one submission it must be a file that ends with .json", status=2)
    if out.exists() and not out.is_dir():
        raise Failure(f"--out is {out}, which is a file: of a class it must be a directory, of one submission a file "
                      "that ends with .json", status=2)
    if submission.resolve() in (out.resolve(), *out.resolve().parents):
        raise Failure(f"--out is {out}: it must not lie among the submissions in {submission}", status=2)


def _one(arguments: argparse.Namespace, course: Course, plan: Plan, exercises: Sequence[Graded]) -> int:
    submission, roster = read_submission(arguments.submission, wanted(exercises)), ROOT / ROSTER
    dates = _dates(arguments, plan, [submission.name], date_of_gradescope(arguments.submission))

    def put(result: Grade, held: JsonObject) -> None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(written(result, exercises, held))

    put(not_graded(submission, exercises, "the grader was stopped before it had ended"), {"runs": False})
    try:
        workbench = _workbench(course, exercises, 0, arguments)
        result = grade(workbench, submission, exercises)
        users = users_of(arguments.submission)
        whose = in_the_roster(users, read_roster(roster)) if users is not None and roster.exists() else users
        if whose is not None:
            result = bound(result, submission, whose, plan.secret, exercises)
        more = max((one.days for one in whose or []), default=0)
        result = without_late_points(result, plan, dates.get(submission.name), more)
        result = with_earlier(result, arguments.submission, exercises)
        put(result, workbench.held)
    except Exception as error:  # whatever it is: who waits for the results must be told
        put(not_graded(submission, exercises, f"the grader failed: {error or type(error).__name__}"), {"runs": False})
        raise
    say(f"{result.name}: {result.score} of {sum(one.points for one in exercises)} points, in {shown(arguments.out)}")
    return 0


def _dates(arguments: argparse.Namespace, plan: Plan, names: list[str],
           otherwise: "datetime.date | None" = None, tell: Callable[[str], None] = say) -> dict[str, datetime.date]:
    """{submission: date}, for those whose date is known; `tell` hears of the others."""
    given = read_dates(arguments.dates, tell) if arguments.dates else {}
    nobodys = [name for name in given if name not in names]
    if nobodys and arguments.out.suffix != ".json":
        tell(f"{shown(arguments.dates)} has {', '.join(nobodys)}, and nothing of that name was handed in.")
    dates = {**{name: otherwise for name in names if otherwise}, **given}
    unknown = [name for name in names if name not in dates] if plan.late else []
    if unknown:
        tell(f"It is not known when {', '.join(unknown)} {'was' if len(unknown) == 1 else 'were'} handed in: nothing "
             "is subtracted for late days (--dates says when).")
    return dates


def _class(arguments: argparse.Namespace, course: Course, plan: Plan, exercises: Sequence[Graded]) -> int:
    begin = time.monotonic()
    notes: list[str] = []  # that class.md has too

    def tell(line: str) -> None:
        notes.append(line)
        say(line)

    submissions = submissions_in(arguments.submission, wanted(exercises))
    others = no_submissions_in(arguments.submission)
    if others:
        say(no_submissions(others))
    people = read_roster(arguments.roster, tell) if arguments.roster else []
    if plan.secret and not people and any(one.kind == "measure" for one in exercises):
        tell("The course has a secret, and without --roster nobody knows whose questions are whose.")
    names = [one.name for one in submissions]
    log = read_log(arguments.log, people, names, tell) if arguments.log else None
    dates = _dates(arguments, plan, names, tell=tell)
    workbenches = [_workbench(course, exercises, number, arguments)
                   for number in range(min(build.cores(), len(submissions)))]
    for line in not_held(workbenches[0].held):
        say(line)
    complain(f"Grading {len(submissions)} submissions.")
    done = grade_class(workbenches, submissions, exercises, arguments.out, plan, dates, others, people, log, notes)
    minutes = (time.monotonic() - begin) / 60
    say(f"{len(done.grades)} submissions in {minutes:.1f} minutes: {shown(arguments.out)}/grades.csv, class.md, "
        "students")
    for name in done.failed:
        say(f"{name} could not be graded; the command does it again")
    return 1 if done.failed else 0


def wanted(exercises: Sequence[Graded]) -> list[str]:
    return sorted(set(map(file_of, exercises)))


def _workbench(course: Course, exercises: Sequence[Graded], number: int, arguments: argparse.Namespace) -> Workbench:
    complain(f"Preparing place {number + 1} to grade in: the tests are built, and the workbook's own solutions judged. "
             "The first time that takes minutes.")
    workbench = Workbench(ROOT, BUILD / "grading", number, arguments.patience)
    workbench.prepare(course, exercises)
    if arguments.require_isolation:
        workbench.require_isolation()
    if workbench.no_gpu and number == 0 and any(one.kind == "speed" for one in exercises):
        say(f"Performance is not graded: {workbench.no_gpu}.")
    return workbench
