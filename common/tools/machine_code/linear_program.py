"""The cheapest x >= 0 with A x = b: the simplex method, for equations of which each has few unknowns."""

from collections.abc import Hashable, Mapping

Unknown = Hashable
TOO_SMALL = 1e-9
MOST_STEPS = 20000


class LinearProgram:
    """Each equation names an unknown that stands in it alone, with the factor 1: what makes up for all others."""

    def __init__(self) -> None:
        self._rows: list[dict[Unknown, float]] = []
        self._sides: list[float] = []
        self._basis: list[Unknown] = []
        self._cost: dict[Unknown, float] = {}

    def add_cost(self, unknown: Unknown, cost: float) -> None:
        self._cost[unknown] = self._cost.get(unknown, 0.0) + cost

    def add_equation(self, factors: Mapping[Unknown, float], side: float, more: Unknown, less: "Unknown | None" = None,
                     ) -> None:
        """factors + more - less = side; without `less`, side may not be negative."""
        row = {unknown: factor for unknown, factor in factors.items() if factor}
        row[more] = 1.0
        if less is not None:
            row[less] = -1.0
            if side < 0:
                row, side, more = {unknown: -factor for unknown, factor in row.items()}, -side, less
        self._rows.append(row)
        self._sides.append(side)
        self._basis.append(more)

    def solve(self) -> dict[Unknown, float]:
        """All unknowns that are not 0."""
        rows, sides, basis = [dict(row) for row in self._rows], list(self._sides), list(self._basis)
        columns: dict[Unknown, set[int]] = {}
        gain = dict(self._cost)  # what one more of an unknown costs, all told
        for number, row in enumerate(rows):
            for unknown, factor in row.items():
                columns.setdefault(unknown, set()).add(number)
                gain[unknown] = gain.get(unknown, 0.0) - self._cost.get(basis[number], 0.0) * factor
        for unknown in basis:
            gain[unknown] = 0.0
        for _ in range(MOST_STEPS):
            enters = min(gain, key=gain.__getitem__)
            if gain[enters] > -TOO_SMALL:
                break
            leaves = [(sides[number] / rows[number][enters], number) for number in columns[enters]
                      if rows[number][enters] > TOO_SMALL]
            if not leaves:  # as cheap as one likes: no cost is negative, so this is rounding
                gain[enters] = 0.0
                continue
            pivot = min(leaves)[1]
            _pivot(rows, sides, columns, gain, pivot, enters)
            basis[pivot] = enters
        return {unknown: side for unknown, side in zip(basis, sides) if side > TOO_SMALL}


def _pivot(rows: list[dict[Unknown, float]], sides: list[float], columns: dict[Unknown, set[int]],
           gain: dict[Unknown, float], pivot: int, enters: Unknown) -> None:
    """Solves the equation for the unknown, and puts the solution into all others."""
    row, by = rows[pivot], rows[pivot][enters]
    for unknown in row:
        row[unknown] /= by
    sides[pivot] /= by
    for number in columns[enters] - {pivot}:
        other, times = rows[number], rows[number][enters]
        for unknown, factor in row.items():
            left = other.get(unknown, 0.0) - times * factor
            if abs(left) < 1e-11:
                if other.pop(unknown, None) is not None:
                    columns[unknown].discard(number)
            else:
                other[unknown] = left
                columns[unknown].add(number)
        sides[number] = max(0.0, sides[number] - times * sides[pivot])
    columns[enters] = {pivot}
    times = gain[enters]
    for unknown, factor in row.items():
        gain[unknown] = gain.get(unknown, 0.0) - times * factor
    gain[enters] = 0.0
