"""build and run the chapters, check each against the reference, print the ladder; or run any CUDA file

Without a GPU every kernel runs on the SIMT engine, on a problem small enough for it. Beside each verdict stand the
bytes that the kernel moves, as counted by the engine, and its time on the GPU that the lessons tell of, as recorded.
With a GPU the chapters are timed, on the regime of the published ladder: B=2 H=16 D=64 fp16 causal, N = 512 ... 8192.
Forwards make one ladder, the last rung of every chapter; backwards another, with every rung.

--save NAME keeps what a GPU of your own measured: ./workbook compare and ./workbook dev report --gpu NAME then show it
beside what is recorded.

./workbook run mine.cu compiles any CUDA file for the SIMT engine and runs its main. It names the mistakes that it
sees, and races above all; --no-races is faster, and does not look for these.
"""

import argparse

from tools.base import Failure, cuda, say, shown
from tools.course import LearnersPath
from tools.measuring import Outcome, problem_flags, session
from tools.record import own
from tools.showing import ladder
from tools.user_files import (
    add_file_arguments,
    add_no_races,
    files_of,
    goes_to_a_compiler,
    in_one_word,
    refuse_without_files,
    run_and_conclude,
)

TAKES_WORDS_AFTER = True
passes_on = goes_to_a_compiler
read = in_one_word


def add_arguments(parser: argparse.ArgumentParser) -> None:
    session.add_arguments(parser)
    problem_flags.add_rung(parser, default="its last; of a backward: all")
    parser.add_argument("--save", metavar="NAME",
                        help="on a GPU: time every rung, and keep the times under this name, in .learner")
    add_file_arguments(parser, seconds=0)
    add_no_races(parser)


def run(arguments: argparse.Namespace) -> int:
    files = files_of(arguments, problem_flags.NAMES | {"preset": "--preset"}, seconds=0)
    if files:
        if arguments.save:
            raise Failure("--save keeps times of chapters, and none is run here", status=2)
        return run_and_conclude(files)
    refuse_without_files(arguments)
    choice = session.choose_device(arguments.preset)
    if arguments.save and not choice.gpu:
        raise Failure(f"--save keeps times of a GPU, and none is used here: {choice.why}", status=2)
    saved = own.place(arguments.save, choice.gpu.name) if arguments.save and choice.gpu else None
    current = session.begin(arguments)
    known_steps = None if current.on_gpu else ladder.KnownSteps()
    path = LearnersPath()

    def show(one: session.Session, of_one: list[session.Step], made: list[list[Outcome]]) -> None:
        for step, row in zip(of_one, made):
            behind = path.open_behind(step.chapter.name, step.rung)
            for outcome in (outcome for outcome in row if outcome.bad and behind):
                outcome.verdict = f"open: {', '.join(behind)}"
        ladder.show(one, of_one, made, known_steps)

    steps, outcomes = session.measure_ladders(current, show, all_rungs=bool(saved))
    if saved:
        own.keep(saved, [outcome.report for row in outcomes for outcome in row if outcome.verdict == "correct"],
                 cuda.machine())
        say(f"Kept in {shown(saved)}: ./workbook compare shows it, ./workbook dev report --gpu {saved.name} draws it.")
    if known_steps:
        for line in ["Seconds are the engine's: they say that a kernel ran, not how fast a GPU would run it.",
                     *known_steps.notes()]:
            say(line)
    seen = {id for step, row in zip(steps, outcomes) if any(outcome.open for outcome in row)
            for id in path.open_behind(step.chapter.name, step.rung)}
    others = [id for chapter in dict.fromkeys(step.chapter.name for step in steps if arguments.chapters)
              for id in path.open_behind(chapter) if id not in seen]
    if others:
        say(f"Open, though nothing here shows it: {', '.join(others)}. ./workbook check judges each by itself.")
    return session.conclude(steps, outcomes)
