"""Points of a measurement beside peers: who is how much faster than whom."""

import statistics
from dataclasses import dataclass

from tools.base import JsonObject
from tools.record.problem import DEFAULT, Problem

B2B = "-b2b"  # so ends the name of a piece that is timed back to back, not launch by launch
FASTEST_PEER, FASTEST_OWN = "the fastest peer", "the fastest own rung"


def times(point: JsonObject) -> dict[str, float]:
    """{name: seconds of a launch} of what was timed."""
    return {result["name"]: result["seconds"]["median"] for result in point["results"] if "seconds" in result}


def alone(points: list[JsonObject]) -> list[JsonObject]:
    """With the times of the launches that had the GPU to themselves, which clock, power and joules are of."""
    return [{**point, "results": [{**one, "seconds": {**one["seconds"], "median": one["alone_seconds"]}}
                                  for one in point["results"] if one.get("alone_seconds")]} for point in points]


def ours(points: list[JsonObject]) -> "str | None":
    """Of the results the one that counts as ours: the default, or else the last of our candidates."""
    chapters = [result["name"] for point in points for result in point["results"] if result["kind"] == "chapter"]
    return DEFAULT if DEFAULT in chapters else chapters[-1] if chapters else None


def rivals(point: JsonObject, than: str) -> dict[str, float]:
    """{name: seconds} of those that `than` means: a candidate's name, FASTEST_PEER or FASTEST_OWN."""
    kinds = {result["name"]: result["kind"] for result in point["results"]}
    kind = {FASTEST_PEER: "peer", FASTEST_OWN: "chapter"}.get(than)
    return {name: seconds for name, seconds in times(point).items()
            if (kinds[name] == kind and name != DEFAULT if kind else name == than)}


def faster(point: JsonObject, name: str, than: str) -> "float | None":
    """How many times faster; None where one of them has no time."""
    mine, others = times(point).get(name), rivals(point, than)
    return min(others.values()) / mine if mine and others else None


@dataclass(frozen=True)
class Comparison:
    """Of one candidate over several points."""

    points: int
    mean: float  # geometric
    least: float
    least_at: Problem
    behind: int  # points


def compared(points: list[JsonObject], name: str, than: str) -> "Comparison | None":
    """None where no point has both."""
    ratios = [(ratio, Problem(**point["problem"])) for point in points if (ratio := faster(point, name, than))]
    if not ratios:
        return None
    least, least_at = min(ratios, key=lambda pair: pair[0])
    return Comparison(len(ratios), statistics.geometric_mean([ratio for ratio, _ in ratios]), least, least_at,
                      sum(ratio < 1 for ratio, _ in ratios))
