"""build and run the chapters, check each against the reference, print the ladder

Without a GPU every kernel runs on the SIMT engine, on a problem small enough for it. With one the chapters are
timed too, on the regime of the published ladder: B=2 H=16 D=64 fp16 causal, N = 512 ... 8192.
"""

from tools import ladder, session
from tools.terminal import say


def add_arguments(parser) -> None:
    session.add_arguments(parser)


def run(arguments) -> int:
    current = session.begin(arguments, more_flags=[])
    steps = current.steps()
    outcomes = current.measure_all(steps)
    names = [step.name for step in steps]

    say()
    if current.on_gpu:
        say(f"{current.device}, {current.direction}, {current.problems[0].without_length()}")
        say()
        say(ladder.measured(names, [problem.length() for problem in current.problems], outcomes))
    else:
        say(f"{current.device}, {current.direction}, {current.problems[0]}")
        say()
        say(ladder.checked(names, [row[0] for row in outcomes]))
    say()
    for line in ladder.remarks(names, current.problems, outcomes):
        say(line)
    status = session.conclude(names, outcomes)
    if not current.on_gpu:
        say("Seconds are the engine's: they say that a kernel ran, not how fast a GPU would run it.")
    return status
