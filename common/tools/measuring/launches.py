"""How often a candidate beside peers is launched, when it is not, and what is kept of the launches' times."""

import math
import statistics

from tools.base import significant
from tools.record import Problem

# How long the launches of one candidate at one point may take together (--patience), and how many they are. They are
# meant to take a fifth of it; a candidate whose fewest launches would take longer is left out there.
PATIENCE, FEWEST, MOST = 2.5, 3, 40

# Back to back: how many launches are a burst, and how many seconds a slice of such bursts takes at least; of launches
# with which a burst would be longer than the longest slice it has fewer. So many slices each candidate has at a point
# (fewer where there are many points), and then so many seconds alone.
MANY, SLICE, LONGEST_SLICE = 20, 1 / 30, 0.15
ROUNDS, ROUNDS_OF_MODELS = 5, 3
ALONE = 0.3


def predicted_seconds(known: list[tuple[Problem, float]], problem: Problem) -> "float | None":
    """One launch, at the pace of the most similar launch known: [(problem, seconds)]. Work that is not skipped counts
    whole: kernels that do the masked half too are the slow ones."""
    def work(one: Problem) -> int:
        return one.batch * one.heads * one.seq_q * one.seq_k * one.head_dim

    if not known:
        return None
    nearest, seconds = min(known, key=lambda pair: (pair[0].head_dim != problem.head_dim,
                                                    pair[0].causal != problem.causal,
                                                    abs(math.log(work(pair[0]) / work(problem)))))
    return seconds * work(problem) / work(nearest)


def too_slow(seconds: float, patience: float = PATIENCE) -> "str | None":
    """Why a launch of that many seconds is not timed; None if it is."""
    if seconds * (FEWEST + 1) <= patience:  # and one to check
        return None
    return f"one launch would take about {significant(seconds, 2)} s: more than this benchmark waits for"


def launches(seconds: float, patience: float = PATIENCE) -> int:
    return max(FEWEST, min(MOST, int(patience / 5 / seconds)))


def launches_in_a_burst(seconds: float) -> int:
    return max(1, min(MANY, int(LONGEST_SLICE / seconds)))


def has_turn(count: int, rounds: int, number: int) -> bool:
    """Whether one with `count` launches in `rounds` rounds has one in round `number`: evenly spread."""
    return (number + 1) * count // rounds > number * count // rounds


def percentiles(samples: list[float]) -> dict[str, float]:
    ordered = sorted(samples)

    def percentile(share: float) -> float:  # linear between neighbours
        place = share * (len(ordered) - 1)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        return ordered[low] + (ordered[high] - ordered[low]) * (place - low)

    return {"median": statistics.median(ordered), "p10": percentile(0.1), "p90": percentile(0.9), "min": ordered[0],
            "max": ordered[-1]}
