"""put an exercise back to what it was at the beginning

What you had written is kept, in a file that is named. In the whole workbook, where the solutions are, this makes a place for
your own; git brings the solution back.
"""

from tools.base import say, shown
from tools.course import KEPT, load


def add_arguments(parser) -> None:
    parser.add_argument("exercises", nargs="+", metavar="EXERCISE", help="05.rescale, or 05 for all exercises of a chapter")


def run(arguments) -> int:
    course = load()
    for exercise in course.select(arguments.exercises):
        if exercise.kind == "measure":
            say(f"{exercise.id} is a question: its answer is in answers.json")
            continue
        kept = course.reset(exercise, KEPT)
        if kept:
            say(f"{exercise.id} is as it was at the beginning ({exercise.file}); what you had is in {shown(kept)}")
        else:
            say(f"{exercise.id} is as it was at the beginning already")
    return 0
