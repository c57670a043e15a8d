"""Few queries and many keys, H = 32, no mask: times beside FlashAttention-2 and cuDNN, and beside a copy of as many bytes as K and V have."""

import statistics

from tools.machine import NotUnderstood
from tools.record.rows import DECODING, Missing, Record

PEERS = ("FLASH", "CUDNN")
OF_A_COPY = 0.95  # of its rate: what counts as reading as fast as memory allows


class Decoding:
    def __init__(self, record: Record):
        self._record = record

    def problems(self, **of) -> list:
        """Of one dtype the problems that were timed, shortest first, that have these fields."""
        source = f"{DECODING}{of['dtype']}"
        found = dict.fromkeys(row.problem for row in self._record.rows if row.source == source and of.items() <= vars(row.problem).items())
        return sorted(found, key=lambda one: (one.batch, -one.kv_heads, one.seq_k, one.seq_q))

    def seconds(self, step: str, **problem) -> float:
        return self._record.row(f"{DECODING}{problem['dtype']}", self._record.step(step, "forward"), "forward", **problem).seconds

    def floor(self, dtype: str, **problem) -> float:
        """Seconds of K and V at the rate of a long copy, which was timed in the same process."""
        elements = 2 * problem["batch"] * problem["kv_heads"] * problem["seq_k"] * problem["head_dim"]
        return 2 * elements / self._record.piece(f"{DECODING}{dtype}")["ceilings"]["copy"]["byte_rate"]

    def summary(self, step: str, what: str, queries, floor_from: float, floor_to: float) -> float:
        """Over the points of all pieces where it and both peers were timed, with so many queries (all without a number) and a floor in
        these limits."""
        name, gains, of_floor = self._record.step(step, "forward"), [], []
        for row in self._record.rows:
            if row.source.startswith(DECODING) and row.step == name and queries in (None, row.problem.seq_q):
                problem, floor = vars(row.problem), self.floor(**vars(row.problem))
                try:
                    faster = min(self.seconds(peer, **problem) for peer in PEERS)
                except Missing:
                    continue
                if floor_from <= floor < floor_to:
                    gains.append(faster / row.seconds)
                    of_floor.append(floor / row.seconds)
        if not gains:
            raise Missing(f"{step} beside {' and '.join(PEERS)} is not in the pieces {DECODING}..")
        found = {"points": len(gains), "mean": statistics.geometric_mean(gains), "least": min(gains), "ahead": sum(one >= 1 for one in gains),
                 "at_the_floor": sum(one >= OF_A_COPY for one in of_floor), "least_of_floor": min(of_floor)}
        if what not in found:
            raise NotUnderstood(f"there is no {what} (there are {', '.join(found)})")
        return found[what]
