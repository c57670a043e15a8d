"""begin an exercise again, or take a version of it back: yours, or the book's

What you had written is kept, in a file of .learner/kept that is named; --mine gives the last one back. --book puts the
book's solution there, and the exercise is no longer yours: ./workbook reset begins it again.
"""

import argparse

from tools.base import say, shown
from tools.course import LearnersPath


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("exercises", nargs="+", metavar="EXERCISE",
                        help="05.rescale, or 05 for all exercises of a chapter")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--mine", action="store_true", help="what you had written last")
    which.add_argument("--book", action="store_true", help="the book's solution")


def run(arguments: argparse.Namespace) -> int:
    path = LearnersPath()
    learner = path.learner
    for exercise in path.course.select(arguments.exercises):
        kept, damaged = None, exercise.file in path.course.damaged
        if exercise.kind == "measure":
            say(f"{exercise.id} is a question: its answer is in answers.json")
            continue
        if arguments.mine:
            say(f"{exercise.id} is what you had written ({exercise.file}, from {shown(learner.mine(exercise))})")
            continue
        if arguments.book:
            kept = learner.book(exercise)
            what = f"{exercise.id} is the book's solution ({exercise.file})"
        else:
            kept = learner.reset(exercise)
            what = f"{'all of it' if damaged else exercise.id} is as it was at the beginning ({exercise.file})"
        say(what + (f"; what you had is in {shown(kept)}" if kept else ""))
    return 0
