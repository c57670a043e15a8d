"""Few queries and many keys, H = 32, no mask: times beside the peers', and beside a copy of K's and V's bytes."""

import statistics

from tools.base import NotUnderstood
from tools.record.measurements import DECODING, Missing, Record, Row

PEERS = ("FLASH", "CUDNN")
OF_A_COPY = 0.95  # of its rate: what counts as reading as fast as memory allows


class Decoding:
    def __init__(self, record: Record):
        self._record = record

    def summary(self, step: str, what: str, queries: "int | None", floor_from: float, floor_to: float) -> float:
        """Over the points of all pieces where it and both peers were timed, with so many queries (all without a
        number) and a floor in these limits."""
        name, gains, of_floor = self._record.step(step, "forward"), [], []
        for row in self._record.rows:
            if row.source.startswith(DECODING) and row.step == name and queries in (None, row.problem.seq_q):
                try:
                    faster = min(self._record.row(row.source, peer, "forward", **vars(row.problem)).seconds
                                 for peer in PEERS)
                except Missing:
                    continue
                floor = self._floor(row)
                if floor_from <= floor < floor_to:
                    gains.append(faster / row.seconds)
                    of_floor.append(floor / row.seconds)
        if not gains:
            raise Missing(f"{step} beside {' and '.join(PEERS)} is not in the pieces {DECODING}..")
        found = {"points": len(gains), "mean": statistics.geometric_mean(gains), "least": min(gains),
                 "ahead": sum(one >= 1 for one in gains),
                 "at_the_floor": sum(one >= OF_A_COPY for one in of_floor), "least_of_floor": min(of_floor)}
        if what not in found:
            raise NotUnderstood(f"there is no {what} (there are {', '.join(found)})")
        return found[what]

    def _floor(self, row: Row) -> float:
        """Seconds that K and V take at the rate of a long copy, which was timed in the same process."""
        of = row.problem
        bytes_of_k_and_v = 2 * 2 * of.batch * of.kv_heads * of.seq_k * of.head_dim
        return bytes_of_k_and_v / self._record.piece(row.source)["ceilings"]["copy"]["byte_rate"]
