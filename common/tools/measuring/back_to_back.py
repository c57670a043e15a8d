"""Times candidates back to back: twenty launches of one, then of the next, in turn, without a pause and with the cache
as they left it. Needs PyTorch and a GPU.

Twenty launches may take less than a millisecond, and a GPU is slower than that to choose its clock. So they are
repeated until a slice takes a thirtieth of a second; of long launches there are fewer than twenty. Where the CPU
enqueues more slowly than the GPU works, the GPU waits at the start of each twenty until all of them are there, and only
the twenty are timed. After the slices each candidate has the GPU to itself for a moment: of that are clock, power and
energy, which are known too slowly for a slice.
"""

import math
import random
import time
from collections.abc import Callable
from typing import Any, Protocol

import torch

from tools.base import JsonObject
from tools.measuring.launches import ALONE, SLICE, launches_in_a_burst, percentiles
from tools.measuring.nvml import Look, Watching, mean_clock, mean_power

SETTLING = 0.05  # seconds, of those that a candidate has alone, before they count
BUSY = 0.9  # of that time: with less, clock and power are not those of the launches
CYCLES = 2e9  # a second, of a kernel that waits
ATTEMPTS = 8  # at twenty launches that are enqueued in time
TIME = ("CUDA events around twenty launches (fewer of long ones), repeated until a slice takes 1/30 s; slices of the "
        "candidates in turn, in another order each time; L2 as they left it; two sets of inputs. Clock, power and "
        "joules: of what it has alone")


class Lane(Protocol):
    def launch(self, number: int) -> Any: ...



class Bursts:
    """The launches of a lane."""

    def __init__(self, lane: Lane, seconds: float):
        self.lane, self.many, self.late, self.turn = lane, launches_in_a_burst(seconds), 0, 0
        self._enqueue()  # what is made at the first launches is there
        torch.cuda.synchronize()
        begin = time.perf_counter()
        first = self._timed()
        self.host = time.perf_counter() - begin
        torch.cuda.synchronize()
        seconds = 1e-3 * first[0].elapsed_time(first[1])
        self.covered = self.host > 0.8 * seconds
        self.burst = seconds + (2.5 * self.host if self.covered else 0)  # as long as it takes, with the wait

    def _enqueue(self) -> None:
        for _ in range(self.many):
            self.lane.launch(self.turn % 2)
            self.turn += 1

    def _timed(self, bursts: int = 1) -> tuple[Any, Any]:
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(bursts):
            self._enqueue()
        stop.record()
        return start, stop

    def _covered(self) -> tuple[Any, Any]:
        """One burst, all of which is enqueued before the GPU begins with it."""
        for _ in range(ATTEMPTS):
            torch.cuda._sleep(int(1.5 * self.host * CYCLES))
            events = self._timed()
            if not events[0].query():
                break
            self.late += 1
            self.host *= 1.5
        return events

    def slice(self, seconds: float = SLICE) -> tuple[float, float]:
        """(seconds of a launch, the share of the time in which the GPU worked)."""
        count = max(1, math.ceil(seconds / self.burst))
        torch.cuda.synchronize()
        begin = time.perf_counter()
        if self.covered:
            events = [self._covered() for _ in range(count)]
        else:
            torch.cuda._sleep(int(3 * self.host / self.many * CYCLES))  # until the first ones are enqueued
            events = [self._timed(count)]
        torch.cuda.synchronize()
        wall = time.perf_counter() - begin
        worked = sum(1e-3 * start.elapsed_time(stop) for start, stop in events)
        return worked / (count * self.many), worked / wall


def measure(bursts: list[tuple[Bursts, JsonObject]], flops: float, rounds: int, look: "Callable[[], Look] | None",
            at: Callable[[str], None]) -> None:
    """Completes the results of these candidates."""
    samples: list[list[float]] = [[] for _ in bursts]
    turns, shuffled = list(zip(bursts, samples)), random.Random(rounds)
    for _ in range(rounds):
        at("the slices in turn")
        shuffled.shuffle(turns)  # at the power limit, what ran just before sets the clock
        for (one, _), mine in turns:
            mine.append(one.slice()[0])
    for (one, result), mine in zip(bursts, samples):
        at(result["name"])
        result["launches"], result["late"] = one.many, one.late
        result["seconds"] = percentiles(mine)
        result["flop_rate"] = flops / result["seconds"]["median"]
        result["samples"] = [round(seconds, 9) for seconds in mine]
        result.update(alone(one, look))


def alone(bursts: Bursts, look: "Callable[[], Look] | None") -> JsonObject:
    """{"alone_seconds": of a launch, sm_clock_mhz, power_w, joules: of a launch}; None for what is not known."""
    with Watching(look) as watching:
        begin = time.perf_counter()
        seconds, busy = bursts.slice(ALONE)
        end = time.perf_counter()
    looks = [one for one in watching.looks if begin + SETTLING <= one.at <= end] if busy >= BUSY else []
    clock, power = mean_clock(looks), mean_power(looks)
    return {"alone_seconds": round(seconds, 9), "sm_clock_mhz": clock and round(clock, 1),
            "power_w": power and round(power, 1), "joules": power and round(power * seconds, 7)}
