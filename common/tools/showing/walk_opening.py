"""Where the page of a walk opens: the block, the row and the step at which most is to be seen, and a sentence that says what."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Optional

from tools.base import JsonObject
from tools.record import Problem


@dataclass(frozen=True)
class Opening:
    launch: int
    block: int
    step: int
    row: "str | None"  # "q96", of all heads
    watch: str

    def as_json(self) -> JsonObject:
        return asdict(self)


def opening(problem: Problem, direction: str, launches: list[JsonObject], block: "int | None" = None) -> Optional[Opening]:
    """Of what add_tiles() has been through; `block` is the one that has to be shown. None: nothing stands out."""
    with_tiles = [number for number, launch in enumerate(launches) if any(each["tiles"] for each in launch["blocks"])]
    launch = max(with_tiles, default=0)
    ways = (_of_merge, _of_skipped, _of_correction, _of_sum) if direction == "forward" else (_of_gradients, )
    for way in ways:
        found = way(problem, launches, launch, block)
        if found:
            return found
    return None


def _blocks(launch: JsonObject, only: "int | None") -> Iterator[tuple[int, JsonObject]]:
    return ((number, block) for number, block in enumerate(launch["blocks"]) if only in (None, number))


def _row_words(problem: Problem, row: int) -> str:
    head, query = divmod(row, problem.seq_q)
    if problem.batch * problem.heads == 1:
        return f"query {query}"
    batch, of_batch = divmod(head, problem.heads)
    return f"query {query} of {f'batch {batch}, ' if problem.batch > 1 else ''}head {of_batch}"


def _number(x: float) -> str:
    return f"{x:.4g}".replace("-", "−")


# --- A correction ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Correction:
    factor: float
    launch: int
    block: int
    step: int
    row: int
    number: int  # of the tiles of this row: from 1 on

    def opening(self, problem: Problem, before: str = "") -> Opening:
        which = {1: "second", 2: "third"}.get(self.number, f"{self.number + 1}th")
        return Opening(self.launch, self.block, self.step, f"q{self.row}",
                       f"{before}Watch {_row_words(problem, self.row)}. Its {which} tile has a score above m, the largest so far. "
                       f"All that the row has summed up, l and O, was made with the old m: one multiplication by "
                       f"{_number(self.factor)} corrects it.")


def _corrections(launches: list[JsonObject], launch: int, only: "int | None") -> Iterator[_Correction]:
    """Every factor below 1 by which an l and an O that are not 0 any more are multiplied."""
    for number, block in _blocks(launches[launch], only):
        tiles: dict[int, int] = {}  # of each row, until then
        for at, step in enumerate(block["steps"]):
            shown = step.get("watched", {})
            for row, _, (factor, *_) in shown.get("correction", []):
                if tiles.get(row) and 0 < float(factor) < 1:
                    yield _Correction(float(factor), launch, number, at, row, tiles[row])
            for row in {row for row, *_ in (shown.get("m") or shown.get("m base 2") or [])}:
                tiles[row] = tiles.get(row, 0) + 1


def _of_correction(problem: Problem, launches: list[JsonObject], launch: int, only: "int | None") -> Optional[Opening]:
    found = min(_corrections(launches, launch, only), key=lambda each: each.factor, default=None)
    return found.opening(problem) if found else None


def _of_sum(problem: Problem, launches: list[JsonObject], launch: int, only: "int | None") -> Optional[Opening]:
    """Where nothing is corrected: the last tile of a row that has several."""
    best: "tuple[int, int, int, int] | None" = None  # tiles, block, step, row
    for number, block in _blocks(launches[launch], only):
        tiles: dict[int, int] = {}
        for at, step in enumerate(block["steps"]):
            for row, column, _ in step.get("watched", {}).get("O", []):
                tiles[row] = tiles.get(row, 0) + (column == 0)
                if tiles[row] > 1 and (best is None or tiles[row] > best[0]):
                    best = tiles[row], number, at, row
    if best is None:
        return None
    tiles_of_row, number, at, row = best
    return Opening(launch, number, at, f"q{row}",
                   f"Watch {_row_words(problem, row)}. {tiles_of_row} times P V of a tile has been added to its O, and m has never had to rise: so "
                   "nothing that was added before had to be corrected. The marks in the bars are the exact row.")


# --- Tiles that are skipped ------------------------------------------------------------------------------------------


def _of_skipped(problem: Problem, launches: list[JsonObject], launch: int, only: "int | None") -> Optional[Opening]:
    blocks = [(number, block) for number, block in _blocks(launches[launch], only) if block["skipped"] and block["tiles"]]
    if not blocks:
        return None
    number, block = max(blocks, key=lambda each: len(each[1]["skipped"]) / len(each[1]["tiles"]))
    keys = max(tile["keys"][1] for tile in block["tiles"])
    tiles, skipped = len(block["tiles"]), len(block["skipped"])
    corrected = min(_corrections(launches, launch, number), key=lambda each: each.factor, default=None)
    row = f"q{corrected.row}" if corrected else None
    is_one = skipped == 1
    return Opening(launch, number, len(block["steps"]) - 1, row,
                   f"This block has stopped after {'1 tile' if tiles == 1 else f'{tiles} tiles'}, at key {keys}. Its queries see no key "
                   f"beyond their diagonal, so {'the dotted tile is' if is_one else f'the {skipped} dotted tiles are'} never loaded "
                   f"and never multiplied. All other blocks do the same: see the whole launch.")


# --- Parts that are merged -------------------------------------------------------------------------------------------


def _of_merge(problem: Problem, launches: list[JsonObject], _: int, only: "int | None") -> Optional[Opening]:
    """Where the second part of a row has most weight."""
    best: "tuple[float, Opening] | None" = None
    for launch, of in enumerate(launches):
        for number, block in _blocks(of, only):
            for at, step in enumerate(block["steps"]):
                for row, weights in _weights(step).items():
                    first, second = sorted(weights, reverse=True)[:2]
                    if best is None or second > best[0]:
                        parts = " and ".join(_number(each) for each in weights) if len(weights) < 4 else f"up to {_number(first)}"
                        best = second, Opening(launch, number, at, f"q{row}",
                                               f"Watch {_row_words(problem, row)}. Its keys were in {len(weights)} parts, each with an O and an LSE "
                                               f"of its own. The row's O is their mean, with the weights {parts}: each is exp(LSE of the part − "
                                               "LSE of the row).")
    return best[1] if best else None


def _weights(step: JsonObject) -> dict[int, list[float]]:
    """{row: the weights of its parts}, of rows with two or more."""
    of_rows: dict[int, list[float]] = {}
    for row, _, values in step.get("watched", {}).get("LSE of a part", []):
        of_rows.setdefault(row, []).extend(float(value) for value in values)
    weights = {}
    for row, parts in of_rows.items():
        top = max(parts)
        if len(parts) > 1 and top > -math.inf:
            powers = [math.exp(part - top) for part in parts]
            weights[row] = [power / sum(powers) for power in powers]
    return weights


# --- Gradients -------------------------------------------------------------------------------------------------------


def _of_gradients(problem: Problem, launches: list[JsonObject], launch: int, only: "int | None") -> Optional[Opening]:
    """The first step in which a block that owns keys adds to dQ after having added to dK."""
    for number, block in _blocks(launches[launch], only):
        keys: Any = sorted({tuple(tile["keys"]) for tile in block["tiles"]})
        if len(keys) != 1:
            continue
        for at, step in enumerate(block["steps"]):
            shown = step.get("watched", {})
            if "dQ" in shown and any("dK" in before.get("watched", {}) for before in block["steps"][:at + 1]):
                first, last = keys[0]
                return Opening(launch, number, at, None,
                               f"This block owns keys {first} to {last}: their dK and dV stay with it, and grow with every tile of queries. "
                               "dQ does not stay: every block of keys has a part of it, and here this one adds its part for the tile.")
    return None
