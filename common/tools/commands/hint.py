"""the next hint for an exercise

Each call shows one more; every hint helps a bit more than the one before.
"""

from tools.course import Progress, load
from tools.machine import Failure, say


def add_arguments(parser) -> None:
    parser.add_argument("exercise", metavar="EXERCISE", help="05.rescale, or 05 if the chapter has one exercise")


def run(arguments) -> int:
    chosen = load().select([arguments.exercise])
    if len(chosen) > 1:
        raise Failure(f"chapter {arguments.exercise} has several exercises: {', '.join(one.id for one in chosen)}", status=2)
    (exercise,) = chosen
    hint = Progress().next_hint(exercise)
    if hint:
        number, text = hint
        say(f"{exercise.id}, hint {number} of {len(exercise.hints)}: {text}")
    else:
        say(f"{exercise.id} has no more hints: " + ("there are none" if not exercise.hints else "here are all of them again"))
        for number, text in enumerate(exercise.hints, 1):
            say(f"  {number}. {text}")
    return 0
