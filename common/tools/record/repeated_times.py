"""The second measurement: its times, in one file beside the pieces of the first.

    pieces   of each piece: its name, where it comes from, and of one beside peers the ceilings and the summary
    times    of each piece, direction and problem: ms {step or peer: median}; and p10_ms, the fastest tenth, of times
             that were not steady

Nothing else differs between two measurements of one commit. So a piece of the second one is that of the first with
these times.
"""

from functools import cached_property
from pathlib import Path

from tools.base import JsonObject
from tools.record import result_files
from tools.record.measurements import DIRECTIONS, REPEATED_TIMES, SECONDS_PER, Missing, Record, steady
from tools.record.problem import Problem, label

DIGITS = 7  # of a time: more than the table and the lessons show of two times' ratio
ORIGIN = ("commit", "machine_code", "machine", "piece")  # of a piece's context
WHOLE = ("ceilings", "summary")  # small parts of a piece, which are kept as they are


def context(directory: Path, piece: str) -> JsonObject:
    """Where the second measurement of the piece comes from; nothing if it is not there."""
    kept = result_files.read(directory / REPEATED_TIMES) or {"pieces": []}
    return next((one["context"] for one in kept["pieces"] if one["piece"] == piece), {})


def keep(directory: Path, piece: str, report: JsonObject) -> None:
    """Instead of what was there of this piece."""
    kept = result_files.read(directory / REPEATED_TIMES) or {"pieces": [], "times": []}
    about = {"piece": piece, "context": {key: report["context"][key] for key in ORIGIN if key in report["context"]},
             **{part: report[part] for part in WHOLE if part in report}}
    others = [one for one in kept["pieces"] if one["piece"] != piece]
    times = [one for one in kept["times"] if one["piece"] != piece]
    result_files.write(directory / REPEATED_TIMES, {
        "pieces": sorted([*others, about], key=lambda one: one["piece"]),
        "times": sorted([*times, *_times(piece, report)], key=lambda one: one["piece"])})


def _place(run: JsonObject) -> tuple[str, str, str]:
    """Of one of Google Benchmark's runs: the direction, the problem and the step."""
    chapter, rung, direction, problem = run["name"].split("/")[:4]
    return DIRECTIONS[direction], problem, f"{chapter}/{rung}"


def _problem(point: JsonObject) -> str:
    return label(Problem(**point["problem"]), bool(point.get("rope")))


def _ms(seconds: float) -> float:
    return float(f"{1e3 * seconds:.{DIGITS}g}")


def _times(piece: str, report: JsonObject) -> list[JsonObject]:
    found: dict[tuple[str, str], JsonObject] = {}
    for run in result_files.slim(report).get("benchmarks", []):
        direction, problem, step = _place(run)
        one = found.setdefault((direction, problem), {"ms": {}})
        one["ms"][step] = _ms(SECONDS_PER[run["time_unit"]] * run["real_time"])
    for point in report.get("points", []):
        one = found.setdefault((point["direction"], _problem(point)), {"ms": {}})
        for result in point["results"]:
            if "seconds" in result:
                one["ms"][result["name"]] = _ms(result["seconds"]["median"])
                if not steady(**result["seconds"]):
                    one.setdefault("p10_ms", {})[result["name"]] = _ms(result["seconds"]["p10"])
    return [{"piece": piece, "direction": direction, "problem": problem, **one}
            for (direction, problem), one in found.items()]


class SecondMeasurement(Record):
    """The second measurement as a record: what was not timed twice is missing."""

    def __init__(self, first: Record):
        super().__init__(first.directory)
        self._first = first

    @cached_property
    def _kept(self) -> JsonObject:
        return result_files.read(self.directory / REPEATED_TIMES) or {"pieces": [], "times": []}

    @cached_property
    def pieces(self) -> list[str]:
        """Those that both measurements have."""
        return [one["piece"] for one in self._kept["pieces"] if one["piece"] in self._first.pieces]

    def file(self, name: str) -> JsonObject:
        piece = name.removesuffix(".json")
        if piece not in self.pieces:
            raise Missing(f"{name} was not measured twice")
        if name not in self._files:
            about = next(one for one in self._kept["pieces"] if one["piece"] == piece)
            times = {(one["direction"], one["problem"]): one for one in self._kept["times"] if one["piece"] == piece}
            self._files[name] = {**with_times(self._first.file(name), times), **about}
        return self._files[name] or {}


def with_times(piece: JsonObject, times: dict[tuple[str, str], JsonObject]) -> JsonObject:
    """The piece with these times in the place of its own; without what has none of them."""
    made = dict(piece)
    if "benchmarks" in piece:
        made["benchmarks"] = []
        for run in result_files.slim(piece)["benchmarks"]:
            direction, problem, step = _place(run)
            ms = times.get((direction, problem), {"ms": {}})["ms"].get(step)
            if ms is not None:
                faster = SECONDS_PER[run["time_unit"]] * run["real_time"] / (1e-3 * ms)
                made["benchmarks"].append({**run, "real_time": ms, "time_unit": "ms", "FLOP/s": faster * run["FLOP/s"]})
    if "points" in piece:
        made["points"] = []
        for point in piece["points"]:
            of = times.get((point["direction"], _problem(point)), {"ms": {}})
            timed = [result for result in point["results"] if "seconds" in result and result["name"] in of["ms"]]
            made["points"].append({**point, "results": [_with_time(result, of) for result in timed]})
    return made


def _with_time(result: JsonObject, times: JsonObject) -> JsonObject:
    ms = times["ms"][result["name"]]
    fastest = times.get("p10_ms", {}).get(result["name"], ms)
    return {"name": result["name"], "seconds": {"median": 1e-3 * ms, "p10": 1e-3 * fastest},
            "flop_rate": result["flop_rate"] * result["seconds"]["median"] / (1e-3 * ms)}


def repeated(record: Record) -> dict[str, list[float]]:
    """{source: [second time / first time]} of everything that has been timed twice."""
    ratios: dict[str, list[float]] = {}
    second = SecondMeasurement(record)
    for row in record.rows:
        if row.source == "memory":  # one launch, for its bytes
            continue
        try:
            other = second.row(row.source, row.step, row.direction, **vars(row.problem))
        except Missing:
            continue
        ratios.setdefault(row.source, []).append(other.seconds / row.seconds)
    return ratios
