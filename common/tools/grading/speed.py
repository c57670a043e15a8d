"""Is a submission's kernel as fast as the reference solution's, on the same GPU in the same run?

`performance` in exercises.json says of which exercises that is asked:

    {"id": "06.pipeline", "points": 2, "at_most": 1.1, "problem": {"seq_q": 8192, ..}}

`points` come on top of the exercise's own, which the engine can judge. The kernel may take `at_most` times as long as the
solution's for the `problem`, whose keys are the flags of common/harness/judge/main.cc. That program times both, and says which results
of the timed launches are wrong; what that means is said here.
"""

import json
import statistics
from dataclasses import dataclass

from tools.base import Failure
from tools.course import FILE, Course, Verdict

RUNS, TIMES = 5, 11  # of the program, and timed launches in each
_ENTRIES = [{"id": str, "points": int, "at_most": number, "problem": dict} for number in (int, float)]
_FASTER = 0.9  # a kernel with wrong results that takes less than this share of the solution's time has left out work
_LATER, _LATER_MS = 1.25, 0.05  # that much after its stream a device may be idle: some launches and calls


@dataclass(frozen=True)
class Timed:
    """A line of its own in the results; it stands behind that of its exercise."""

    of: str  # the exercise's id
    file: str
    title: str
    points: int
    at_most: float
    problem: dict
    kind: str = "speed"

    @property
    def id(self) -> str:
        return f"{self.of}.speed"

    @property
    def handed_in(self) -> str:  # the file that common/harness/judge/CMakeLists.txt compiles
        return f"handed_in/{self.of}.cu"

    @property
    def target(self) -> str:
        return f"judge_{self.of}"


def with_performance(course: Course, exercises: list) -> list:
    """The exercises, and behind each what is asked of its time."""
    declared, known = {}, {one.id: one for one in course.exercises}
    for entry in json.loads((course.root / FILE).read_text()).get("performance", []):
        if not isinstance(entry, dict) or {key: type(value) for key, value in entry.items()} not in _ENTRIES:
            raise Failure(f"{FILE}: each entry of performance must have id, points, at_most and problem: {json.dumps(entry)}", status=2)
        name = entry["id"]
        declared[name] = entry
        if name not in known or known[name].kind != "code" or known[name].direction != "forward":
            raise Failure(f"{FILE}: performance of {name}, which is no code exercise of a forward", status=2)
    found = []
    for one in exercises:
        found.append(one)
        if one.id in declared:
            entry = declared[one.id]
            title = f"at most {entry['at_most']:g} times as long as the reference solution"
            found.append(Timed(one.id, one.file, title, entry["points"], entry["at_most"], entry["problem"]))
    return found


def ratio(run: dict) -> float:
    """Of a run's times to the solution's: the median over the pairs, without the first, which warms up."""
    return statistics.median(turn["device_ms"] / turn["solution_ms"] for turn in run["turns"][1:])


def verdict_of(runs: list, at_most: float) -> Verdict:
    """Of what the program said in each run."""
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
            return Verdict("work skipped", [what + (f": {unwritten} have not been written" if unwritten else ""), times])
        return Verdict("wrong when timed", [what, times])
    device, stream = (statistics.median(turn[key] for turn in turns) for key in ("device_ms", "stream_ms"))
    if device > _LATER * stream + _LATER_MS:
        return Verdict("side stream", [f"its stream is idle after {stream:.3f} ms, the device only after {device:.3f} ms", times])
    if device < runs[0]["floor_ms"]:
        return Verdict("too fast", [f"{device:.3f} ms, where the GPU's rates allow no less than {runs[0]['floor_ms']:.3f} ms", times])
    return Verdict("right" if statistics.median(ratios) <= at_most else "too slow", [times])
