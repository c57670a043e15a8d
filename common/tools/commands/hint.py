"""the next hint for an exercise

Each call shows one more; every hint helps a bit more than the one before. For a chapter, it is the next hint for its
first exercise that is not known to be right.
"""

import argparse

from tools.base import in_words, say
from tools.course import Exercise, LearnersPath


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("exercise", metavar="EXERCISE", help="05.rescale, or 05")


def run(arguments: argparse.Namespace) -> int:
    path = LearnersPath()
    chosen = path.course.select([arguments.exercise])
    exercise = next((one for one in chosen if path.state(one) != "right"), chosen[-1])
    try:
        hint = path.progress.next_hint(exercise)
    except OSError as error:
        say(f"{exercise.id}: it cannot be noted which hints you have seen ({in_words(error)}), so here are all")
        _say_all(exercise)
        return 0
    if hint:
        number, text = hint
        say(f"{exercise.id}, hint {number} of {len(exercise.hints)}: {text}")
    else:
        say(f"{exercise.id} has no more hints: " + ("here are all of them again" if exercise.hints
                                                    else "there are none"))
        _say_all(exercise)
    return 0


def _say_all(exercise: Exercise) -> None:
    for number, text in enumerate(exercise.hints, 1):
        say(f"  {number}. {text}")
