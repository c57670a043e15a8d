"""All measurements of one GPU, from the pieces of ./workbook dev measure: times, rates and sizes by step and problem.

A step is a rung of a chapter, "06_flashattn2_fwd/mma", or a peer, "FLASH". Which chapters and rungs there are, and in
which order, the files say.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tools.base import JsonObject
from tools.record import result_files
from tools.record.problem import Problem, read_label

# A median this many times the fastest tenth is not steady: the CPU was late to enqueue the launches, or the GPU went
# slower on the way. On an H200 96 of 100 results stay below it, and nearly all others are of long launches at the power
# limit.
UNSTEADY = 1.05

THE_BOOKS = "nvidia-h200"  # the directory of the GPU that the lessons tell of
MACHINE = "machine"  # the piece about the GPU itself, which has no rows: microbenchmarks.py reads it
REPEATED_TIMES = "repeated-times.json"  # the second measurement: repeated_times.py reads and writes it
DECODING = "decode-"  # so begin the names of the pieces with few queries and many keys, one for each dtype
SECONDS_PER = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}  # Google Benchmark's units
DIRECTIONS = {"fwd": "forward", "bwd": "backward"}


class Missing(Exception):
    """Raised when a result is absent; the message names it."""


@dataclass(frozen=True)
class Row:
    """One step on one problem."""

    source: str  # the piece; "ladder" for those of all chapters
    step: str
    direction: str
    problem: Problem
    rope: bool
    seconds: float
    flop_rate: float
    peak_bytes: "float | None" = None
    seconds_from_to: "tuple[float, float] | None" = None  # the fastest and the slowest repetition, where they are kept


def steady(median: float, p10: float, **_: float) -> bool:
    return median <= UNSTEADY * p10


def rows_of(source: str, report: JsonObject) -> list[Row]:
    rows, runs = [], report.get("benchmarks", [])
    repeated = result_files.repetitions(runs)
    for run in runs:
        if run["name"] in repeated:
            continue
        chapter, rung, direction, label = run["name"].split("/")[:4]
        unit = SECONDS_PER[run["time_unit"]]
        rows.append(Row(source, f"{chapter}/{rung}", DIRECTIONS[direction], *read_label(label),
                        run["real_time"] * unit, run["FLOP/s"], run.get("peak_bytes"),
                        (run["fastest"] * unit, run["slowest"] * unit) if "fastest" in run else None))
    for point in report.get("points", []):
        for result in point["results"]:
            if "seconds" in result and steady(**result["seconds"]):
                rows.append(Row(source, result["name"], point["direction"], Problem(**point["problem"]),
                                bool(point.get("rope")), result["seconds"]["median"], result["flop_rate"]))
    return rows


class Record:
    def __init__(self, directory: Path):
        self.directory = directory
        self._files: "dict[str, JsonObject | None]" = {}

    def file(self, name: str) -> JsonObject:
        """A file of the directory: a piece, or an older measurement."""
        if name not in self._files:
            self._files[name] = result_files.read(self.directory / name)
        found = self._files[name]
        if found is None:
            raise Missing(f"{name} is not in {self.directory.name}")
        return found

    def piece(self, name: str) -> JsonObject:
        return self.file(f"{name}.json")

    @cached_property
    def pieces(self) -> list[str]:
        """The names of the pieces that are there. Single experiments and the second measurement are none."""
        return sorted(path.stem for path in self.directory.glob("[a-z]*.json") if path.name != REPEATED_TIMES)

    @cached_property
    def gpu(self) -> str:
        """The GPU's full name: "NVIDIA H200"."""
        for name in self.pieces:
            machine = self.piece(name).get("context", {}).get("machine")
            if machine:
                return machine["gpu"]
        raise Missing(f"no piece of {self.directory.name} says which GPU it is")

    @cached_property
    def rows(self) -> list[Row]:
        return [Row(row.source, self._last.get((row.step, row.direction), row.step), *list(vars(row).values())[2:])
                for row in self._as_written]

    @cached_property
    def _as_written(self) -> list[Row]:
        return [row for name in self.pieces if name != MACHINE
                for row in rows_of("ladder" if name.startswith("ladder-") else name, self.piece(name))]

    @cached_property
    def _last(self) -> dict[tuple[str, str], str]:
        """{(chapter, direction): step}: a chapter's name alone means its last rung with that direction."""
        return {(row.step.split("/")[0], row.direction): row.step for row in self._as_written
                if "/" in row.step and row.source == "ladder"}

    @cached_property
    def _index(self) -> dict[tuple[str, str, str], dict[Problem, Row]]:
        index: dict[tuple[str, str, str], dict[Problem, Row]] = {}
        for row in self.rows:
            index.setdefault((row.source, row.step, row.direction), {})[row.problem] = row
        return index

    def row(self, source: str, step: str, direction: str, **problem: object) -> Row:
        """The one whose problem has these fields."""
        rows = self._index.get((source, step, direction), {}).values()
        found = [row for row in rows if problem.items() <= vars(row.problem).items()]
        if len(found) != 1:
            where = " ".join(f"{field}={value}" for field, value in problem.items())
            raise Missing(f"{step}, {direction}, {where} is {f'{len(found)} times' if found else 'not'} in {source}")
        return found[0]

    def steps(self, direction: str, source: str = "ladder") -> list[str]:
        """Every rung of every chapter, in order. A chapter about few queries and many keys is in the pieces with
        these alone: on the ladder it launches another chapter's kernel."""
        left_out = set() if source.startswith(DECODING) else self._decoding
        steps = dict.fromkeys(row.step for row in self.rows if row.source == source and row.direction == direction
                              and row.step[0].isdigit() and row.step.split("/")[0] not in left_out)
        return sorted(steps, key=lambda step: step.split("/")[0])  # stable: the rungs stay in the chapter's order

    @cached_property
    def _decoding(self) -> set[str]:
        """The chapters about few queries and many keys."""
        return {row.step.split("/")[0] for row in self.rows if row.source.startswith(DECODING)
                and row.step[0].isdigit()}

    def peers(self, direction: str, source: str) -> list[str]:
        """FlashAttention-2 and cuDNN, and of the other fast ones those that were there."""
        there = {row.step for row in self.rows if row.source == source and row.direction == direction}
        there |= {"FLASH", "CUDNN"}
        return [peer for peer in ("FLASH", "FLASH-deterministic", "CUDNN", "FA3", "FA4", "FA4-deterministic")
                if peer in there]

    def results(self, direction: str, source: str = "ladder") -> list[str]:
        """The last rung of every chapter."""
        return list({step.split("/")[0]: step for step in self.steps(direction, source)}.values())

    def rungs(self, chapter: str, direction: str, source: str = "ladder") -> list[str]:
        return [step for step in self.steps(direction, source) if step.startswith(chapter)]

    def step(self, word: str, direction: str) -> str:
        """"06" or "06/mma" -> "06_flashattn2_fwd/final", "06_flashattn2_fwd/mma"; a peer's name stays."""
        if not word[0].isdigit():
            return word
        chapter, _, rung = word.partition("/")
        of_chapter = [step for step in self._known.get(direction, ())
                      if step.split("/")[0].split("_")[0] == chapter.split("_")[0]]
        chosen = [step for step in of_chapter if step.partition("/")[2] == rung] if rung else of_chapter[-1:]
        if not chosen:
            raise Missing(f"{word}, {direction}, is not in {self.directory.name}")
        return chosen[-1] if rung else self._last.get((of_chapter[0].split("/")[0], direction), chosen[-1])

    @cached_property
    def _known(self) -> dict[str, dict[str, None]]:
        """{direction: its steps, in order}"""
        known: dict[str, dict[str, None]] = {}
        for row in self.rows:
            known.setdefault(row.direction, {})[row.step] = None
        return known

    def rope(self, step: str) -> bool:
        """Whether the step solves problems with RoPE."""
        return any(row.rope for row in self.rows if row.step == step)

    def profile(self, step: str, direction: str) -> JsonObject:
        """Of the step under Nsight Compute: flops, seconds, dram_bytes, l2_bytes."""
        chapter, _, rung = step.partition("/")
        for one in self.piece(f"profile-{chapter}")["rungs"]:
            if one["rung"] == rung and one["direction"] == direction:
                return one
        raise Missing(f"{step}, {direction} is not in profile-{chapter}")

    def ceiling(self, which: str) -> float:
        """What the GPU itself reached: FLOP/s of a "matmul", bytes/s of a "copy"."""
        try:
            return self.piece("peers-ladder")["ceilings"][which]["flop_rate" if which == "matmul" else "byte_rate"]
        except KeyError:
            raise Missing(f"peers-ladder has no ceiling {which}") from None
