"""Is a submission's kernel as fast as the reference solution's, on the same GPU in the same run?

`performance` in exercises.json says of which exercises that is asked:

    {"id": "06.pipeline", "points": 2, "at_most": 1.1, "problem": {"seq_q": 8192, ..}}

`points` come on top of the exercise's own, which the engine can judge. The kernel may take `at_most` times as long as
the solution's for the `problem`, whose keys are the flags of common/harness/judge/timing_judge.cc. That program has
both timed, each in a process of its own, and says which results of the timed launches are wrong. What that means is
said here.
"""

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Union

from tools.base import Failure, JsonObject
from tools.course import FILE, Course, Exercise, Verdict

RUNS, TIMES = 5, 11  # of the program, and timed launches in each
_ENTRIES = [{"id": str, "points": int, "at_most": number, "problem": dict} for number in (int, float)]
_FASTER = 0.9  # a kernel with wrong results that takes less than this share of the solution's time has left out work
_BUSY = 1.2  # so much longer than alone, the solution takes only if something else runs
_LATER, _LATER_MS = 1.25, 0.05  # that much after its stream a device may be idle: some launches and calls


@dataclass(frozen=True)
class Timed:
    """A line of its own in the results, after that of its exercise."""

    of: str  # the exercise's id
    file: str
    title: str
    points: int
    at_most: float
    problem: JsonObject
    kind: str = "speed"

    @property
    def id(self) -> str:
        return f"{self.of}.speed"

    @property
    def handed_in(self) -> str:  # the file that common/harness/judge/CMakeLists.txt compiles
        return f"handed_in/{self.of}.cu"

    @property
    def target(self) -> str:
        return f"timed_{self.of}"


Graded = Union[Exercise, Timed]  # what has points, and a line in the results


def with_performance(course: Course, exercises: Sequence[Exercise]) -> list[Graded]:
    """The exercises, each followed by what is asked of its speed."""
    declared: dict[str, JsonObject] = {}
    known = {one.id: one for one in course.exercises}
    for entry in json.loads((course.root / FILE).read_text()).get("performance", []):
        if not isinstance(entry, dict) or {key: type(value) for key, value in entry.items()} not in _ENTRIES:
            raise Failure(f"{FILE}: each entry of performance must have id, points, at_most and problem: "
                          f"{json.dumps(entry)}", status=2)
        name = entry["id"]
        declared[name] = entry
        if name not in known or known[name].kind != "code" or known[name].direction != "forward":
            raise Failure(f"{FILE}: performance of {name}, which is no code exercise of a forward", status=2)
    found: list[Graded] = []
    for one in exercises:
        found.append(one)
        if one.id in declared:
            entry = declared[one.id]
            title = f"at most {entry['at_most']:g} times as long as the reference solution"
            found.append(Timed(one.id, one.file, title, entry["points"], entry["at_most"], entry["problem"]))
    return found


def ratio(run: JsonObject) -> float:
    """The ratio of the run's times to the solution's: the median over all pairs but the first, which warms up. What the
    kernel's process says of itself is exact, and may be a lie; what the judge saw is no lie, and has more in it."""
    turns = run["turns"][1:]
    return max(statistics.median(turn["device_ms"] / turn["solution_ms"] for turn in turns),
               statistics.median(turn["apart_ms"] / turn["solution_apart_ms"] for turn in turns))


def solution_ms(runs: list[JsonObject]) -> float:
    return statistics.median(turn["solution_ms"] for run in runs for turn in run["turns"][1:])


def verdict_of(runs: list[JsonObject], at_most: float, alone_ms: "float | None" = None) -> Verdict:
    """The verdict on what the program reported in each run. `alone_ms` is the solution's time beside nothing that was
    handed in: who makes it slower is not faster."""
    ratios = [ratio(run) for run in runs]
    times = f"{statistics.median(ratios):.2f} times the reference solution's time (in {len(runs)} runs: " \
            f"{', '.join(f'{one:.2f}' for one in ratios)})"
    turns = [turn for run in runs for turn in run["turns"]]
    rows = runs[0]["rows"]
    worst = max(turns, key=lambda turn: turn["unwritten"] + turn["earlier"] + turn["wrong"])
    unwritten, earlier, wrong = worst["unwritten"], worst["earlier"], worst["wrong"]
    if unwritten + earlier + wrong:
        what = f"{unwritten + earlier + wrong} of {rows} rows are wrong after a timed launch with new inputs"
        if earlier > unwritten + wrong:
            return Verdict("cached results", [f"{what}: {earlier} are what an earlier launch left", times])
        if unwritten or statistics.median(ratios) < _FASTER:
            return Verdict("work skipped", [what + (f": {unwritten} have not been written" if unwritten else ""),
                                            times])
        return Verdict("wrong when timed", [what, times])
    device, stream = (statistics.median(turn[key] for turn in turns) for key in ("device_ms", "stream_ms"))
    if device > _LATER * stream + _LATER_MS:
        return Verdict("side stream", [f"its stream is idle after {stream:.3f} ms, the device only after {device:.3f} "
                                       "ms", times])
    reference = solution_ms(runs)
    if alone_ms and reference > _BUSY * alone_ms:
        return Verdict("busy", [f"the reference solution takes {reference:.3f} ms, and alone {alone_ms:.3f} ms: "
                                "something else runs on the GPU", times])
    if device < runs[0]["floor_ms"]:
        return Verdict("too fast", [f"{device:.3f} ms, where the GPU's rates allow no less than "
                                    f"{runs[0]['floor_ms']:.3f} ms", times])
    return Verdict("right" if statistics.median(ratios) <= at_most else "too slow", [times])
