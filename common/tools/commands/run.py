"""build and run the chapters, check each against the reference, print the ladder

Without a GPU every kernel runs on the SIMT engine, on a problem small enough for it. With one the chapters are
timed too, on the regime of the published ladder: B=2 H=16 D=64 fp16 causal, N = 512 ... 8192. Forwards make one
ladder, the last rung of every chapter; backwards another, with every rung.
"""

from tools.machine import say
from tools.measuring import asked, session
from tools.showing import ladder


def add_arguments(parser) -> None:
    session.add_arguments(parser)
    asked.add_rung(parser, default="its last; of a backward: all")


def run(arguments) -> int:
    current = session.begin(arguments)
    steps, outcomes = session.measure_ladders(current, ladder.show)
    if not current.on_gpu:
        say("Seconds are the engine's: they say that a kernel ran, not how fast a GPU would run it.")
    return session.conclude(steps, outcomes)
