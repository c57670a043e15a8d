"""Ladders that somebody measured on a GPU of their own: ./workbook run --save NAME. They are no part of the project.

NAME is a directory that is a record as those of common/results are, with a piece for each chapter. Besides the median
of its repetitions a run has the fastest and the slowest of them.
"""

import re
import time
from pathlib import Path

from tools.base import ROOT, Failure, JsonObject, shown
from tools.record import result_files
from tools.record.measurements import Missing, Record

OWN = ROOT / ".learner" / "measured"  # git ignores it
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,39}")


def place(name: str, gpu: str, below: Path = OWN) -> Path:
    """Where the ladder of this name goes; Failure if it may not, before anything is measured."""
    if not _NAME.fullmatch(name):
        raise Failure(f"--save is {name!r}: a name has letters, digits, '-', '_' and '.', at most 40", status=2)
    directory = below / name
    try:
        before = Record(directory).gpu
    except Missing:
        before = gpu
    if before != gpu:
        raise Failure(f"--save {name}: {shown(directory)} is of an {before}, and this is an {gpu}; take another name",
                      status=2)
    return directory


def keep(directory: Path, reports: list[JsonObject], machine: JsonObject) -> None:
    """In place of what was there of the same rungs and problems; everything else stays."""
    of_chapter: dict[str, list[JsonObject]] = {}
    for report in reports:
        for run in _with_spread(report["benchmarks"]):
            of_chapter.setdefault(run["name"].partition("/")[0], []).append(run)
    for chapter, runs in of_chapter.items():
        path = directory / f"ladder-{chapter}.json"
        new = {_of(run) for run in runs}
        old = [run for run in (result_files.read(path) or {"benchmarks": []})["benchmarks"] if _of(run) not in new]
        result_files.write(path, {"context": {"commit": result_files.commit(), "machine": machine,
                                              "date": time.strftime("%Y-%m-%dT%H:%M:%S%z")},
                                  "benchmarks": [*old, *runs]})


def records(below: Path = OWN) -> list[Record]:
    return [Record(path) for path in sorted(below.glob("*")) if any(path.glob("ladder-*.json"))]


def _of(run: JsonObject) -> tuple[str, ...]:
    """The chapter, rung, direction and problem."""
    return tuple(run["name"].split("/")[:4])


def _with_spread(runs: list[JsonObject]) -> list[JsonObject]:
    times: dict[tuple[str, ...], list[float]] = {}
    for run in runs:
        if run.get("run_type", "iteration") == "iteration":
            times.setdefault(_of(run), []).append(run["real_time"])
    return [{**run, "fastest": min(times.get(_of(run), [run["real_time"]])),
             "slowest": max(times.get(_of(run), [run["real_time"]]))}
            for run in result_files.slim({"benchmarks": runs})["benchmarks"]]
