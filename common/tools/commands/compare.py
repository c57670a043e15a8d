"""two steps side by side: time, bytes, counters, and what is most different; with --diff their kernels, too

A step is a chapter, whose last rung is meant, or a rung of one: 03, 05, 06/swizzle. Times are measured if a GPU
answers, else those recorded in common/results are shown, with the GPU that they come from; beside them those that were
kept with ./workbook run --save, and how far their repetitions lie apart. Counters are the SIMT
engine's (./workbook trace), for the problem asked for or a small one; where nvcc and nvdisasm are, executed machine
instructions, too.
"""

import argparse
import difflib
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import log
from pathlib import Path
from typing import Any

from tools.base import (
    GPUS,
    RESULTS,
    ROOT,
    Failure,
    JsonObject,
    amount_of_memory,
    bold,
    build,
    chapters,
    cuda,
    good,
    lost,
    say,
    shown,
    significant,
    table,
)
from tools.course import LearnersPath
from tools.machine_code import add_instructions
from tools.measuring import engine_counts, measure, problem_flags
from tools.record import LENGTHS, Problem, Record, Row, own, read_label
from tools.showing import trace_report

DIFFERENCES = 4  # counters that are named in short


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("steps", nargs=2, metavar="STEP", help="chapter or chapter/rung: 03 06/mma")
    problem_flags.add_arguments(parser, several=False,
                                direction="default: the forward if both have one, else the backward")
    parser.add_argument("--diff", action="store_true", help="show which lines of the kernels differ, too")


@dataclass(frozen=True)
class Step:
    chapter: chapters.Chapter
    rung: str

    def __str__(self) -> str:
        return f"{self.chapter.name}/{self.rung}"


def run(arguments: argparse.Namespace) -> int:
    (small,) = problem_flags.problems(arguments)
    known = chapters.all_chapters() + chapters.of_exercises()
    chosen = [chapters.select([word.partition("/")[0]], known)[0] for word in arguments.steps]
    problem_flags.require_takers(chosen, arguments)
    counting = build.ensure_built("cpu", sorted({chapter.traced for chapter in chosen}))
    words = [(chapter, word.partition("/")[2]) for chapter, word in zip(chosen, arguments.steps)]
    direction = arguments.direction or _shared_direction(words, counting)
    steps = [_step(chapter, rung, direction, counting) for chapter, rung in words]

    # Counting comes first, as it refuses what the steps do not take.
    path = LearnersPath()
    counted = [_counted(step, small, direction, counting, path) for step in steps]
    for wrong in [each for one in counted if one for each in engine_counts.wrong_rungs(one)]:
        say(path.excused(*wrong))
    say(bold(f"\n{steps[0]} and {steps[1]}, {direction}") + "\n")
    ratios, source_of_times = _say_times(steps, direction, arguments)
    _say_saved(steps, direction, own.records())
    if not counted[0] or not counted[1]:
        stopped = next(step for step, one in zip(steps, counted) if not one)
        say(f"\nSo there are no counts to compare; ./workbook trace {stopped.chapter.number} names the lines, too.")
        return 0
    say(f"\nCounted by the SIMT engine, {read_label(counted[0]['problem'])[0]}\n")
    rungs = [counted[0]["rungs"][0], counted[1]["rungs"][0]]
    notes = add_instructions([rung["launches"] for rung in rungs], GPUS["h200"].architecture)
    _say_counters(steps, rungs)
    say("\n" + "\n".join(notes))
    first, second = (source(step, rung) for step, rung in zip(steps, rungs))
    if first == second:  # a loop that rungs share: they differ in their own files
        first, second = (own_file(step, first) for step in steps)
    if arguments.diff:
        say(bold(f"\ndiff {first} {second}") + "\n")
        say(_diff(first, second), code=True)
    say(bold(f"\nIn short: {steps[1]} against {steps[0]}, {direction}") + "\n")
    for line in (*_speed(ratios, source_of_times), *most_different(*map(counters, rungs)),
                 _source_in_short(first, second, arguments)):
        say(f"  {line}")
    return 0


# --- In short --------------------------------------------------------------------------------------------------------


def _speed(ratios: dict[str, float], where: str) -> list[str]:
    """{N of a problem: how many times as fast}, and where the times are from."""
    if not ratios:
        return []
    (slow_at, slow), *_, (fast_at, fast) = [*sorted(ratios.items(), key=lambda item: item[1])] * 2
    if slow_at.split()[0] != fast_at.split()[0]:  # they differ in N
        slow_at, fast_at = slow_at.split()[0], fast_at.split()[0]
    paint = good if slow >= 1 else lost
    if slow_at == fast_at or significant(slow) == significant(fast):
        words = f"{paint(significant(slow) + ' times as fast')}{f' at {slow_at}' if len(ratios) == 1 else ''}"
    else:
        words = f"{paint(f'{significant(slow)} to {significant(fast)} times as fast')}, at {slow_at} and {fast_at}"
    return [f"{words} ({where})"]


def most_different(first: dict[str, int], second: dict[str, int]) -> list[str]:
    """The counters that differ most, those of machine instructions aside."""
    names = [name for name in dict.fromkeys([*first, *second])
             if name != "launches" and not name.startswith(("  ", "machine"))]
    new = [name for name in names if second.get(name) and not first.get(name)]
    gone = [name for name in names if first.get(name) and not second.get(name)]
    ratios = {name: second[name] / first[name] for name in names if first.get(name) and second.get(name)}
    words = []
    for name in sorted(ratios, key=lambda name: -abs(log(ratios[name])))[:DIFFERENCES]:
        ratio = ratios[name]
        if significant(ratio) != significant(1):
            words.append(f"{name}: " + (good(f"{significant(1 / ratio)} times fewer") if ratio < 1
                                        else lost(f"{significant(ratio)} times as many")))
    return words + [f"{what}: {', '.join(some)}" for what, some in (("not any more", gone), ("new", new)) if some]


def _source_in_short(first: str, second: str, arguments: argparse.Namespace) -> str:
    if first == second:
        return f"both are in {first}"
    before, after = ([line.strip() for line in (ROOT / file).read_text().splitlines()
                      if line.strip() and not line.lstrip().startswith("//")] for file in (first, second))
    changed = Counter(line[0] for line in list(difflib.unified_diff(before, after, n=0, lineterm=""))[2:])
    shows = "" if arguments.diff else f"; ./workbook compare {' '.join(arguments.steps)} --diff shows them"
    return f"{changed['+']} lines of code added and {changed['-']} taken away, from {first} to {second}{shows}"


def _description(chapter: chapters.Chapter, directory: Path) -> chapters.Description:
    description = chapters.describe(chapter, [directory])
    if not description:
        raise Failure(f"{chapter.name} does not say what it has")
    return description


def _step(chapter: chapters.Chapter, rung: str, direction: str, directory: Path) -> Step:
    description = _description(chapter, directory)
    rungs = description.rungs_with(direction)
    if not rungs:
        raise Failure(f"{chapter.name} has no {direction}", status=2)
    if rung and rung not in rungs:
        raise Failure(f"{chapter.name} has no rung {rung} with a {direction} (rungs: {', '.join(rungs)})", status=2)
    return Step(chapter, rung or rungs[-1])


def _shared_direction(words: list[tuple[chapters.Chapter, str]], directory: Path) -> str:
    """The first direction that all of [(chapter, rung or "")] have."""
    for chapter, rung in words:
        known = [each["name"] for each in _description(chapter, directory).rungs]
        if rung and rung not in known:
            raise Failure(f"{chapter.name} has no rung {rung} (rungs: {', '.join(known)})", status=2)

    def has(chapter: chapters.Chapter, rung: str, direction: str) -> bool:
        rungs = _description(chapter, directory).rungs_with(direction)
        return rung in rungs if rung else bool(rungs)

    for direction in ("forward", "backward"):
        if all(has(chapter, rung, direction) for chapter, rung in words):
            return direction
    names = " and ".join(chapter.name + (f"/{rung}" if rung else "") for chapter, rung in words)
    raise Failure(f"{names} have no direction in common: one is a forward, the other a backward", status=2)


# --- Times -----------------------------------------------------------------------------------------------------------


def _say_times(steps: list[Step], direction: str, arguments: argparse.Namespace) -> tuple[dict[str, float], str]:
    """({problem: how many times as fast the second one is}, where the times are from)"""
    choice = cuda.choose_preset(None)
    if choice.gpu:
        directory = build.ensure_built("cuda", sorted({step.chapter.name for step in steps}))
        wanted = problem_flags.problems(arguments, LENGTHS)
        measured = {str(problem_flags.resolved(steps[0].chapter.program(directory), flags)[0]):
                    [_measured(step, flags, direction, directory) for step in steps] for flags in wanted}
        return _say_time_table(f"Measured now, {choice.gpu.name}", steps, measured), f"measured now, {choice.gpu.name}"
    where, times = _recorded(steps, direction, RESULTS)
    if where:
        others = problem_flags.said(arguments) or arguments.seq_q
        return _say_time_table(f"Recorded in {shown(where.parent)}, {where.name} (not measured here: {choice.why})"
                               + ("; of these problems, not of the one that was asked for" if others else ""), steps,
                               times), f"recorded in {shown(where.parent)}"
    say(f"No times: {choice.why}, and nothing in {shown(RESULTS)} has both.")
    return {}, ""


def _say_saved(steps: list[Step], direction: str, records: list[Record]) -> None:
    """The ladders of the user's own GPUs that have both steps."""
    for record in records:
        times = [{row.problem: row for row in record.rows if (row.direction, row.step) == (direction, str(step))}
                 for step in steps]
        both = sorted(times[0].keys() & times[1].keys(), key=str)
        both.sort(key=lambda problem: (problem.head_dim, problem.seq_q, problem.seq_k))
        if not both:
            continue
        rows = [["", *(f"{step.rung}, ms" for step in steps), "faster",
                 *(f"{step.rung}, repeated" for step in steps)]]
        for problem in both:
            first, second = (of[problem] for of in times)
            rows.append([str(problem), significant(first.seconds * 1e3), significant(second.seconds * 1e3),
                         _faster(first.seconds / second.seconds), _spread(first), _spread(second)])
        say(f"\nKept as {record.directory.name}, {record.gpu}\n\n{table(rows)}")


def _spread(row: Row) -> str:
    """"0.981 to 1.02": the fastest and the slowest repetition."""
    return " to ".join(significant(seconds * 1e3) for seconds in row.seconds_from_to) if row.seconds_from_to else "-"


def _measured(step: Step, flags: list[str], direction: str, directory: Path) -> "tuple[float | None, float | None]":
    outcome = measure(step.chapter.program(directory), [*flags, f"--direction={direction}", f"--rung={step.rung}"])
    if outcome.verdict != "correct":
        raise Failure(f"{step}: {outcome.detail}", status=2 if outcome.verdict == "refused" else 1)
    return outcome.seconds, outcome.peak_bytes


@cache
def _rows(results: Path) -> list[tuple[Path, Row]]:
    """[(the directory of a GPU, one of its rows)]"""
    return [(gpu, row) for gpu in sorted(path for path in results.glob("*") if path.is_dir())
            for row in Record(gpu).rows]


def _recorded(steps: list[Step], direction: str,
              results: Path) -> "tuple[Path | None, dict[Problem, list[tuple[float, float | None]]]]":
    """Where both steps were timed, and {problem: [(seconds, device memory), ..]}: the ladder, else the best piece."""
    found: dict[tuple[bool, Path], dict[Problem, dict[str, tuple[float, "float | None"]]]] = {}
    for gpu, row in _rows(results):
        if row.direction == direction and row.step in map(str, steps):
            times = found.setdefault((row.source == "ladder", gpu / row.source), {}).setdefault(row.problem, {})
            times[row.step] = (row.seconds, row.peak_bytes)
    both = {where: {problem: [times[str(step)] for step in steps] for problem, times in of.items()
                    if all(str(step) in times for step in steps)} for where, of in found.items()}
    if not any(both.values()):
        return None, {}
    best = max(both, key=lambda where: (bool(both[where]), where[0], len(both[where])))
    return best[1], dict(sorted(both[best].items(), key=lambda item: (item[0].head_dim, item[0].seq_q, item[0].seq_k)))


def _say_time_table(title: str, steps: list[Step],
                    times: Mapping[Any, Sequence[tuple[Any, Any]]]) -> dict[str, float]:
    """{problem: how many times as fast the second one is}, after the table."""
    say(title + "\n")
    rows = [["", *(f"{step.rung}, ms" for step in steps), "faster", *(f"{step.rung}, memory" for step in steps)]]
    ratios = {}
    for problem, ((first, first_bytes), (second, second_bytes)) in times.items():
        ratios[str(problem)] = first / second
        rows.append([str(problem), significant(first * 1e3), significant(second * 1e3), _faster(first / second),
                     *(amount_of_memory(size) if size else "-" for size in (first_bytes, second_bytes))])
    say(table(rows))
    return ratios


def _faster(ratio: float) -> str:
    return (lost if ratio < 1 else good)(f"{significant(ratio)}x")


# --- Counters --------------------------------------------------------------------------------------------------------


def _counted(step: Step, flags: list[str], direction: str, directory: Path,
             path: LearnersPath) -> "JsonObject | None":
    """None if the engine stops at a mistake of the step's kernels, in which an exercise is open."""
    try:
        return engine_counts.counts_of(step.chapter.traced_program(directory), "--trace", *flags,
                                       f"--direction={direction}", f"--rung={step.rung}")
    except Failure as failure:
        if failure.status == 2 or not path.open_behind(step.chapter.name, step.rung):
            raise
        say(path.excused(step.chapter.name, step.rung, str(failure)))
        return None


def counters(rung: JsonObject) -> dict[str, int]:
    """Sums over the launches: {"shared load wavefronts": 65536, ..}; of machine instructions only if all launches'
    were counted."""
    whole = all("instructions" in launch for launch in rung["launches"])
    sums = {"launches": len(rung["launches"])}

    def add(name: str, value: int) -> None:
        sums[name] = sums.get(name, 0) + value

    for launch in rung["launches"]:
        for what in ("read", "written"):
            add(f"bytes {what}, all requests", launch["bytes"][what]["warps"])
            add(f"bytes {what}, different in the launch", launch["bytes"][what]["launch"])
        for op, of_op in launch["totals"].items():
            name = trace_report.OP_NAMES[op]
            add(f"{name} requests", of_op["requests"])
            unit = "sectors" if trace_report.is_global(of_op) else "wavefronts"
            add(f"{name} {unit}", trace_report.units(of_op))
            if not trace_report.is_global(of_op):
                add(f"{name} bank conflicts", trace_report.units(of_op) - of_op["ideal"])
        for what in ("barriers", "shuffles"):
            add(what, launch[what])
        add("FLOP in mma", launch["matrix_flops"])
        if whole:
            add("machine instructions", launch["instructions"]["executed"])
            for kind, count in launch["instructions"]["kinds"].items():
                add(f"  {kind}", count)
    return sums


def _say_counters(steps: list[Step], counted: list[JsonObject]) -> None:
    say(table([["", *(f"{step.chapter.number}/{step.rung}" for step in steps), "ratio"],
               *counter_rows(*map(counters, counted))]))


def counter_rows(first: dict[str, int], second: dict[str, int]) -> list[list[str]]:
    """What is counted in one of them. Machine instructions may be counted in one alone: only their sum is a row then,
    and the other is no 0."""
    instructions = "machine instructions"
    in_both = instructions in first and instructions in second
    rows = []
    for name in dict.fromkeys([*first, *second]):
        a, b = first.get(name, 0), second.get(name, 0)
        if name == instructions and not in_both:
            rows.append([name, *(f"{of[name]:,}" if name in of else "not counted" for of in (first, second)), "-"])
        elif (a or b) and (in_both or not name.startswith("  ")):
            rows.append([name, f"{a:,}", f"{b:,}", f"{significant(a / b)}" if a and b else "-"])
    return rows


# --- Source ----------------------------------------------------------------------------------------------------------


def source(step: Step, counted: JsonObject) -> str:
    """The file with the kernels that did most, if possible one of the chapter's own rather than a lent one."""
    requests: Counter[tuple[bool, str]] = Counter()
    for launch in counted["launches"]:
        for line in launch["lines"]:
            file = line["line"].rpartition(":")[0]
            if not file.startswith("common/"):
                requests[file.startswith(step.chapter.name), file] += line["requests"]
    own, file = max(requests, key=lambda own_and_file: (own_and_file[0], requests[own_and_file]))
    return str(step.chapter.place.parent / file) if own else file  # the engine names a file by its directory alone


def own_file(step: Step, shared: str) -> str:
    """The rung's file, which sets constants of a loop that it shares; without one, the file with the loop."""
    own = sorted((ROOT / step.chapter.place).glob(f"[0-9]*_{step.rung}.cu"))
    return str(step.chapter.place / own[0].name) if own else shared


def _diff(first: str, second: str) -> str:
    """Side by side where the terminal is wide enough to read it, else unified."""
    width = shutil.get_terminal_size().columns
    wide = (["--side-by-side", "--expand-tabs", f"--width={width}"] if width >= 160
            else ["--unified=2", f"--label={first}", f"--label={second}"])
    done = subprocess.run(["diff", *wide, first, second], cwd=ROOT, capture_output=True, text=True)
    if done.returncode > 1:
        raise Failure(done.stderr.strip() or "diff failed")
    return done.stdout if done.stdout else "The same source."
