"""The ladder: what each step gained over the one before it and over the first. Arithmetic and tables."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tools.base import RESULTS, amount_of_memory, bad, bold, good, lost, say, significant, table
from tools.record import THE_BOOKS, Counts, Missing, Problem, Record


def over_first(times: "Sequence[float | None]") -> "list[float | None]":
    """How many times faster each step is than the first one with a time; None for a step without a time."""
    known = [time for time in times if time is not None]
    return [known[0] / time if time is not None else None for time in times]


def over_previous(times: "Sequence[float | None]") -> "list[float | None]":
    """How many times faster each step is than the nearest earlier step with a time; None for the first."""
    gains: "list[float | None]" = []
    previous: "float | None" = None
    for time in times:
        gains.append(previous / time if time is not None and previous is not None else None)
        previous = previous if time is None else time
    return gains


@dataclass(frozen=True)
class KnownStep:
    """What is known of a step without a GPU: the bytes that the engine counts, and the time recorded on a GPU."""

    moved: "float | None" = None  # by all requests to global memory
    seconds: "float | None" = None


class KnownSteps:
    """Recorded times and counts of all steps."""

    RECORDED_LENGTH = 4096

    def __init__(self, record: "Record | None" = None, counts: "Counts | None" = None):
        self._record, self._counts = record or Record(RESULTS / THE_BOOKS), counts or Counts()

    def of(self, chapter: str, rung: str, direction: str) -> KnownStep:
        step, moved, seconds = f"{chapter}/{rung}", None, None
        with suppress(Missing):
            moved = sum(self._counts.sum(step, f"bytes {what} warps", direction=direction)
                        for what in ("read", "written"))
        for name in (step, *self._instead(chapter, rung, direction)):
            with suppress(Missing):
                seconds = seconds or self._record.row("ladder", name, direction, seq_q=self.RECORDED_LENGTH).seconds
        return KnownStep(moved, seconds)

    def _instead(self, chapter: str, rung: str, direction: str) -> list[str]:
        """`chosen` has no kernels of its own: where it was not measured, the chapter's last rung that was."""
        with suppress(Missing):
            return [self._record.step(chapter, direction)] if rung == "chosen" else []
        return []

    def notes(self) -> list[str]:
        """What the columns mean."""
        lines = [f"Bytes moved: all loads and stores of global memory, before any cache; counted for {Counts.PROBLEM}."]
        try:
            gpu, problems = self._record.gpu, [row.problem for row in self._record.rows if row.source == "ladder"]
        except Missing:
            return lines
        of = [str(problem) for problem in problems if problem.seq_q == self.RECORDED_LENGTH][:1]
        return lines + [f"Recorded: on an {gpu}, for {problem}. Gain: over the line above, as recorded."
                        for problem in of]


def checked(names: list[str], outcomes: list[Any], known: "list[KnownStep] | None" = None) -> str:
    """One problem, a line for each chapter: error, tolerance, verdict, seconds, memory, and what is known besides."""
    rows = [["chapter", "error", "allowed", "verdict", "seconds", "device memory"]]
    for name, outcome in zip(names, outcomes):
        rows.append(
            [
                name,
                "" if outcome.error is None else f"{outcome.error:.1e}",
                "" if outcome.tolerance is None else f"{outcome.tolerance:.1e}",
                (bad if outcome.bad else good if outcome.verdict == "correct" else str)(outcome.verdict),
                "" if outcome.seconds is None else significant(outcome.seconds),
                "" if outcome.peak_bytes is None else amount_of_memory(outcome.peak_bytes),
            ]
        )
    if known:
        gains = over_previous([one.seconds for one in known])
        rows[0] += ["bytes moved", "recorded ms", "gain"]
        for row, one, gain in zip(rows[1:], known, gains):
            row += ["-" if one.moved is None else amount_of_memory(one.moved),
                    "-" if one.seconds is None else significant(1e3 * one.seconds),
                    "-" if gain is None else (lost if gain < 1 else str)(f"{significant(gain)}x")]
    return table(rows)


def measured(names: list[str], lengths: list[str], outcomes: list[list[Any]]) -> str:
    """Several lengths: outcomes[step][length]. Times, gains, rates and memory, each a block of one line a step."""

    def values(attribute: str, scale: float = 1.0) -> "list[list[float | None]]":
        return [
            [None if value is None else value * scale for outcome in row for value in [getattr(outcome, attribute)]]
            for row in outcomes
        ]

    times = values("seconds", 1e3)
    columns = list(zip(*times))
    gains_over_previous = list(zip(*map(over_previous, columns)))
    gains_over_first = list(zip(*map(over_first, columns)))

    def number(value: "float | None", outcome: Any) -> str:
        return significant(value) if value is not None else outcome.verdict

    def factor(value: "float | None", _: Any) -> str:
        return (lost if value < 1 else str)(f"{significant(value)}x") if value is not None else "-"

    def memory(value: "float | None", _: Any) -> str:
        return amount_of_memory(value) if value is not None else "-"

    blocks: list[tuple[str, Sequence[Sequence[Any]], Callable[[Any, Any], str]]] = [
        ("ms", times, number),
        ("faster than the step before", gains_over_previous, factor),
        ("faster than the first step", gains_over_first, factor),
        ("TFLOP/s", values("flop_rate", 1e-12), number),
        ("device memory", values("peak_bytes"), memory),
    ]
    rows = []
    for title, block, text in blocks:
        rows.append([title, *(f"N={length}" for length in lengths)])
        for name, row, row_outcomes in zip(names, block, outcomes):
            rows.append([f"  {name}", *(text(value, outcome) for value, outcome in zip(row, row_outcomes))])
    lines = table(rows, may_split=False).split("\n")
    step = len(names) + 1
    for start in range(0, len(lines), step):
        lines[start] = bold(lines[start]) if start else lines[start]
    return "\n\n".join("\n".join(lines[start : start + step]) for start in range(0, len(lines), step))


def remarks(names: list[str], problems: list[Problem], outcomes: list[list[Any]]) -> list[str]:
    """Why times are missing: one line for each chapter and reason."""
    lines = []
    for name, row in zip(names, outcomes):
        reasons: dict[tuple[str, str], list[str]] = {}
        for problem, outcome in zip(problems, row):
            if outcome.verdict != "correct":
                reasons.setdefault((outcome.verdict, outcome.detail), []).append(problem.length())
        lines += [f"{name} {verdict} at N={', '.join(at)}: {why}" for (verdict, why), at in reasons.items()]
    return lines


def show(session: Any, steps: list[Any], outcomes: list[list[Any]], known_steps: "KnownSteps | None" = None) -> None:
    """Prints the tables of what was measured or checked, and why anything is missing in them."""
    names, problems = [step.name for step in steps], [problem for problem, _ in session.problems]
    title = f"{session.device}, {steps[0].direction}"
    if session.on_gpu:
        say(f"\n{title}, {problems[0].without_length()}\n")
        say(measured(names, [problem.length() for problem in problems], outcomes))
    else:
        for number, problem in enumerate(problems):
            say(f"\n{title}, {problem}\n")
            known = [known_steps.of(step.chapter.name, step.rung, step.direction)
                     for step in steps] if known_steps else None
            say(checked(names, [row[number] for row in outcomes], known))
    say()
    for line in remarks(names, problems, outcomes):
        say(line)
