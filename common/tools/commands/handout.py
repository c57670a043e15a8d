"""what students get, what the instructor keeps, and the autograder's archive

Writes four things into a new directory: student, the workbook with stubs instead of solutions; instructor, the whole
workbook; autograder.zip, which Gradescope takes as it is; and known.md, how much of each solution students have read in
earlier chapters. In the student's tree the tests are visible, and nothing shows a solution, under its names or others:
not a later rung, not a comment, not a lesson, not the git history, which the tree does not have. Making it twice gives
the same bytes.

A course file (its format is in common/tools/course/plan.py) gives title, weeks, points, dates and what late answers
cost. With --week, the exercises of one of its weeks are handed out. Those of earlier weeks are there with their
solutions, and those of later weeks are not there.

With --roster, the autograder knows whose a submission is, and takes only this person's answers to questions. If the
course file has a secret, questions are drawn from names that nobody can guess: names.csv says which, and you send each
student their own.
"""

import argparse
from pathlib import Path

from tools.base import Failure, complain, file_trees, say, shown
from tools.course import Course, Learner, Plan, load, read_plan, without_a_file
from tools.grading import names_for, read_roster
from tools.handout import hand_out, page_of_known

ROSTER = "roster.csv"  # at the top of the instructor's tree
_MUCH = 0.5  # of a solution


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("exercises", nargs="*", metavar="EXERCISE",
                        help="05.rescale, or 05 for all exercises of a chapter (default: all, or all of the course)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="a directory that is not there yet")
    parser.add_argument("--course", type=Path, metavar="FILE", help="the course: title, weeks, points, dates")
    parser.add_argument("--roster", type=Path, metavar="FILE", help="who is in the class: id,name,e-mail, a line each")
    parser.add_argument("--week", type=int, metavar="N", help="only this week of the course")


def run(arguments: argparse.Namespace) -> int:
    course = load()
    Learner(course).require_none_started("handing out")
    plan = chosen_plan(course, arguments)
    people = read_roster(arguments.roster) if arguments.roster else []
    if plan.secret and not people:
        raise Failure("the course has a secret: --roster says for whom names are made", status=2)
    file_trees.require_a_new(arguments.out)
    weeks = read_plan(arguments.course, course).weeks if arguments.course else []
    so_far = weeks[: arguments.week]  # all weeks if none is named
    later = [one for week in weeks[len(so_far) :] for one in week.exercises]
    last = max((one.id[:2] for week in so_far for one in week.exercises), default="")
    with_it = {"course.json": arguments.course, ROSTER: arguments.roster}
    complain("Searching the tree for what shows a solution.")
    made = hand_out(course, plan, {name: file.read_bytes() for name, file in with_it.items() if file}, tuple(later),
                    last)
    for exercise, why in made.left_out:
        say(f"{exercise.id} is left out: {why}. Hand it out later, with --week or alone.")
    complain(f"Writing {shown(arguments.out)}.")
    file_trees.write(arguments.out / "student", made.student)
    file_trees.write(arguments.out / "instructor", made.instructor)
    file_trees.write_archive(arguments.out / "autograder.zip", made.autograder)
    if plan.secret:
        (arguments.out / "names.csv").write_text(names_for(people, plan.secret))
        say(f"{shown(arguments.out)}/names.csv has the names that questions are drawn from: send each student their "
            "own")
    (arguments.out / "known.md").write_text(page_of_known(made.known))
    if made.beyond:
        say(f"not in the student's tree, for the class has not come to them: {', '.join(made.beyond)}")
    if made.rungs:
        say(f"not in the student's tree, for they show or need a solution: {', '.join(made.rungs)}")
    most = sorted((one for one in made.known if one.share >= _MUCH), key=lambda one: -one.share)
    if most:
        say("students have read much of these solutions before (known.md says where): "
            + ", ".join(f"{one.exercise} {one.share:.0%}" for one in most))
    points = sum(exercise.points for exercise in made.plan.exercises)
    number = len(made.plan.exercises)
    say(f"{number} exercise{'s' if number > 1 else ''}, {points:g} points: {shown(arguments.out)}/student, instructor, "
        "autograder.zip, known.md")
    return 0


def chosen_plan(course: Course, arguments: argparse.Namespace) -> Plan:
    """The plan that the course file and the command line ask for together."""
    chosen = course.select(arguments.exercises)
    if arguments.course is None:
        if getattr(arguments, "week", None) is not None:
            raise Failure("--week needs --course", status=2)
        return without_a_file(chosen)
    plan = read_plan(arguments.course, course)
    week = getattr(arguments, "week", None)
    if week is not None and not 1 <= week <= len(plan.weeks):
        raise Failure(f"--week is {week}: the course has weeks 1 to {len(plan.weeks)}", status=2)
    return plan.only(week, {one.id for one in chosen})
