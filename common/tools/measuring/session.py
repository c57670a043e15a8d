"""What run and bench share: choosing where to run, building the chapters, measuring them on the problems."""

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.base import Failure, Progress, build, chapters, cuda, good, say
from tools.measuring import engine_counts, problem_flags
from tools.measuring.timing import Outcome, measure, only, read_report
from tools.record import LENGTHS, Problem


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="number or name: 01 05 (default: all)")
    parser.add_argument("--preset", choices=["cpu", "cuda"], help="default: cuda if there is a GPU and nvcc, else cpu")
    problem_flags.add_arguments(parser, several=True)
    problem_flags.add_device(parser)


@dataclass(frozen=True)
class Step:
    """A line of a ladder: one rung of a chapter, in one direction."""

    name: str
    chapter: chapters.Chapter
    direction: str  # forward, backward
    rung: "str | None"  # None leaves the choice to the program


@dataclass
class Session:
    choice: cuda.Choice
    chapters: list[chapters.Chapter]
    named: bool  # the chapters are those that the user names, or that have the rung that the user names
    problems: list[tuple[Problem, list[str]]]  # [(Problem, the flags that ask a program for it)]
    direction: "str | None"  # that the user asks for; None is for each, with the chapters that have it
    rung: "str | None"  # that the user names
    flags: list[str]  # more of them, for the programs
    build_directory: Path

    @property
    def on_gpu(self) -> bool:
        return self.choice.gpu is not None

    @property
    def device(self) -> str:
        return self.choice.gpu.name if self.choice.gpu else "SIMT engine"

    def ladders(self, all_rungs: bool = False) -> list[list[Step]]:
        """The steps of each direction: the chapters' results, which are their last rungs (or the one that the user
        names), or every rung; of backwards, which share one chapter, always every rung."""
        described = [(chapter, chapters.describe(chapter, [self.build_directory])) for chapter in self.chapters]
        passes = engine_counts.passes(self.chapters, self.direction, self.rung, self.build_directory)
        ladders = []
        for direction in ("forward", "backward"):
            steps = []
            for chapter, description in described:
                rungs = description.rungs_with(direction) if description else []
                if (chapter, direction) not in passes or not rungs and not self.named:
                    continue
                if (all_rungs or direction == "backward") and not self.rung and len(rungs) > 1:
                    steps += [Step(f"{chapter.name}/{rung}", chapter, direction, rung) for rung in rungs]
                else:
                    rung = self.rung or (rungs[-1] if rungs else None)
                    name = chapter.name + (f"/{self.rung}" if self.rung else "")
                    steps.append(Step(name, chapter, direction, rung))
            if steps:
                ladders.append(steps)
        return ladders

    def measure_all(self, steps: list[Step]) -> list[list[Outcome]]:
        """outcomes[step][problem]"""
        outcomes: list[list[Any]] = [[None] * len(self.problems) for _ in steps]
        with Progress("Checking and timing") as progress:

            def run(name: str, step: Step, problem: Problem, flags: list[str]) -> Outcome:
                where = f"{name} N={problem.length()}"
                progress.show(where)
                return measure(step.chapter.program(self.build_directory),
                               [*flags, f"--direction={step.direction}", *self.flags],
                               lambda seconds: progress.show(f"{where} ({seconds:.0f} s)"))

            for first, count in _together(steps):
                for number, (problem, flags) in enumerate(self.problems):
                    if count > 1:
                        # All rungs in one process, which makes and checks its inputs once. It ends at the first rung
                        # that is wrong or does not take the problem: then one at a time. Those that lack an extra of
                        # the problem are left out, and say so themselves.
                        every = run(steps[first].chapter.name, steps[first], problem, flags)
                        for i in range(first, first + count) if every.verdict == "correct" else ():
                            report = only(every.report, steps[i].rung)
                            outcomes[i][number] = read_report(report) if report["benchmarks"] else None
                    for i in range(first, first + count):
                        if outcomes[i][number]:
                            continue
                        rung = [f"--rung={steps[i].rung}"] if steps[i].rung else []
                        outcomes[i][number] = run(steps[i].name, steps[i], problem, [*flags, *rung])
        return outcomes


def _together(steps: list[Step]) -> list[tuple[int, int]]:
    """[(first, count)]: neighbours that are rungs of one chapter. A ladder has one rung of it, or all."""
    groups: list[tuple[int, int]] = []
    for number, step in enumerate(steps):
        if groups and step.rung and steps[number - 1].chapter == step.chapter:
            groups[-1] = (groups[-1][0], groups[-1][1] + 1)
        else:
            groups.append((number, 1))
    return groups


def choose_device(preset: "str | None") -> cuda.Choice:
    """The device to run on; Failure if that is a GPU and there is none."""
    choice = cuda.choose_preset(preset)
    if choice.preset == "cuda" and not choice.gpu:
        raise Failure(f"preset cuda needs a GPU to run on: {choice.why}; --preset cpu uses the SIMT engine")
    return choice


def say_device(choice: cuda.Choice) -> None:
    if choice.gpu:
        say(f"On the GPU ({choice.why}).")
    else:
        say(f"On the SIMT engine: g++ builds the CUDA kernels for {build.cores()} CPU cores ({choice.why}).")


def begin(arguments: argparse.Namespace, more_flags: Sequence[str] = ()) -> Session:
    """Chooses preset and problems, says so, and builds the programs of the chapters that are asked for."""
    chosen = problem_flags.chosen_chapters(arguments, exercises_too=True)
    if not chosen:
        raise Failure("there are no chapters here: is the checkout complete?")
    choice = choose_device(arguments.preset)
    wanted = problem_flags.problems(arguments, LENGTHS if choice.gpu else None)
    say_device(choice)
    directory = build.ensure_built(choice.preset, [chapter.name for chapter in chosen])
    if not arguments.chapters:
        chosen = chapters.with_rung(arguments.rung, chosen, [directory])
    problems = [(problem_flags.resolved(chosen[0].program(directory), flags)[0], flags) for flags in wanted]
    return Session(choice, chosen, bool(arguments.chapters or arguments.rung), problems, arguments.direction,
                   arguments.rung, list(more_flags), directory)


def measure_ladders(current: Session, show: Callable[[Session, list[Step], list[list[Outcome]]], object],
                    all_rungs: bool = False) -> tuple[list[Step], list[list[Outcome]]]:
    """Every ladder, one after the other, each shown as it is there: show(session, steps, outcomes). Returns all
    steps and their outcomes. A problem that nobody takes is bad input, not a result: the first one's reason will do."""
    steps, outcomes, unseen = [], [], []
    for ladder_steps in current.ladders(all_rungs):
        measured = current.measure_all(ladder_steps)
        steps += ladder_steps
        outcomes += measured
        unseen.append((ladder_steps, measured))
        if any(outcome.verdict != "refused" for row in outcomes for outcome in row):
            for one in unseen:
                show(current, *one)
            unseen = []
    if unseen:
        raise Failure(f"{steps[0].name}: {outcomes[0][0].detail}", status=2)
    return steps, outcomes


def conclude(steps: list[Step], outcomes: list[list[Outcome]]) -> int:
    """The closing line and the exit status."""
    often = Counter(step.name for step in steps)
    names = [step.name + f" ({step.direction})" * (often[step.name] > 1) for step in steps]
    taken = [[outcome for outcome in row if outcome.verdict != "refused"] for row in outcomes]
    bad = [any(outcome.bad for outcome in row) for row in taken]
    wrong = [name for name, is_bad in zip(names, bad) if is_bad]
    refused = [name for name, row in zip(names, taken) if not row]
    waiting = [f"{name} ({next(outcome.verdict for outcome in row if outcome.open)})" for name, row in zip(names, taken)
               if any(outcome.open for outcome in row)]
    right = len(names) - len(wrong) - len(refused) - len(waiting)
    agree = f"{right} of {len(names)} agree with the fp64 reference"
    line = (good(agree) if right == len(names) else agree) + (f"; not yet: {', '.join(waiting)}" if waiting else "")
    say(line + (f"; {', '.join(refused)} did not take the problem." if refused else "."))
    if wrong:
        test = " ".join(dict.fromkeys(step.chapter.name for step, is_bad in zip(steps, bad) if is_bad))
        raise Failure(f"not right: {', '.join(wrong)}; ./workbook test {test} shows where")
    return 0
