"""the next hint for an exercise

Each call shows one more; every hint helps a bit more than the one before. For a chapter, it is the next hint for its first exercise
that is not known to be right.
"""

from tools.base import say
from tools.commands.list import known_state
from tools.course import Answers, Exercise, StudentProgress, load


def add_arguments(parser) -> None:
    parser.add_argument("exercise", metavar="EXERCISE", help="05.rescale, or 05")


def run(arguments) -> int:
    course, progress = load(), StudentProgress()
    chosen = course.select([arguments.exercise])
    answers = Answers(course.root)
    exercise = next((one for one in chosen if known_state(course, answers, progress, one) != "right"), chosen[-1])
    try:
        hint = progress.next_hint(exercise)
    except OSError as error:
        say(f"{exercise.id}: it cannot be noted which hints you have seen ({error}), so here are all")
        _say_all(exercise)
        return 0
    if hint:
        number, text = hint
        say(f"{exercise.id}, hint {number} of {len(exercise.hints)}: {text}")
    else:
        say(f"{exercise.id} has no more hints: " + ("here are all of them again" if exercise.hints else "there are none"))
        _say_all(exercise)
    return 0


def _say_all(exercise: Exercise) -> None:
    for number, text in enumerate(exercise.hints, 1):
        say(f"  {number}. {text}")
