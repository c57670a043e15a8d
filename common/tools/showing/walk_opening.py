"""Where the page of a walk opens: the block, the row and the step at which most is to be seen, and a sentence that
says what."""

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
    step: int  # -1: the last, of all launches that the block rests on
    row: "str | None"  # "q96", of all heads
    watch: str
    alone: bool = False  # without the blocks of other launches

    def as_json(self) -> JsonObject:
        return asdict(self)


def opening(problem: Problem, direction: str, launches: list[JsonObject],
            block: "int | None" = None) -> Optional[Opening]:
    """Of what add_tiles() has been through; `block` is the one that has to be shown. None: nothing stands out."""
    with_tiles = [number for number, launch in enumerate(launches) if any(each["tiles"] for each in launch["blocks"])]
    launch = max(with_tiles, default=0)
    ways = (_of_waits, _of_merge, _of_skipped, _of_correction, _of_owners,
            _of_sum) if direction == "forward" else (_of_waits, _of_gradients)
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


# --- Waits, and threads ----------------------------------------------------------------------------------------------


def _party(by: list[int]) -> str:
    first, last = by
    if first % 4 == 0 and last == first + 3:
        return f"warpgroup {first // 4}"
    return f"warp {first}" if first == last else f"warps {first} to {last}"


def _of_waits(problem: Problem, launches: list[JsonObject], launch: int, only: "int | None") -> Optional[Opening]:
    """The first step of a party that has waited for what another one copies."""
    for number, block in _blocks(launches[launch], only):
        steps = block["steps"]
        for at, step in enumerate(steps):
            copied = [steps[each] for waited in step.get("after", []) for each in waited.get("steps", [])
                      if steps[each].get("fills")]
            landed = [name for name in ("Q", "K", "V", "dO") if name in step.get("landed", {})]
            if not (step.get("by") and {"K", "V"} & set(landed) and copied and copied[0].get("by")):
                continue
            copies = _party(copied[0]["by"])
            return Opening(launch, number, at, None,
                           f"Nobody does everything here. {copies.capitalize()} only "
                           f"{'start' if ' to ' in copies else 'starts'} copies, and {_party(step['by'])} only "
                           f"computes. Here it has just waited for {' and '.join(landed)}, which the copies have "
                           "brought. Follow the lines under “Who waits for whom”.")
    return None


def _of_owners(problem: Problem, launches: list[JsonObject], _: int, only: "int | None") -> Optional[Opening]:
    """Of a kernel without tensor cores that leaves its scores in memory, if a thread has several rows and columns."""
    if len(launches) == 1:
        return None
    for launch, of in enumerate(launches):
        runs = of.get("owners", [])
        mine = [(row, column + at) for row, column, threads in runs for at, thread in enumerate(threads) if thread == 0]
        rows, columns = len({row for row, _ in mine}), len({column for _, column in mine})
        on_tensor_cores = any(step["work"][4] for block in of["blocks"] for step in block["steps"])
        if min(rows, columns) < 2 or rows * columns != len(mine) or on_tensor_cores:
            continue
        for number, block in _blocks(of, only):
            at = next((at for at, step in enumerate(block["steps"]) if "S" in step.get("watched", {})), None)
            if at is not None:
                return Opening(launch, number, at, None,
                               f"Watch one thread, under “Who makes which score”. It makes {len(mine)} scores "
                               f"of a tile: {rows} queries by {columns} keys. Of each column it loads {rows} + "
                               f"{columns} numbers into registers, and they serve {len(mine)} multiply-adds. The "
                               "chunks of Q and K in shared memory serve all threads of the block.", alone=True)
    return None


# --- A correction ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Correction:
    factor: float
    launch: int
    block: int
    step: int
    row: int
    number: int  # of the tiles of this row: from 1 on

    def opening(self, problem: Problem) -> Opening:
        which = {1: "second", 2: "third"}.get(self.number, f"{self.number + 1}th")
        return Opening(self.launch, self.block, self.step, f"q{self.row}",
                       f"Watch {_row_words(problem, self.row)}. Its {which} tile has a score above m, the largest so "
                       "far. All that the row has summed up, l and O, was made with the old m: one multiplication by "
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
    best = (1, -1, 0, 0, 0)  # tiles, query, block, step, row
    for number, block in _blocks(launches[launch], only):
        tiles: dict[int, int] = {}
        for at, step in enumerate(block["steps"]):
            for row, column, _ in step.get("watched", {}).get("O", []):
                tiles[row] = tiles.get(row, 0) + (column == 0)
                if tiles[row] > 1:
                    best = max(best, (tiles[row], row % problem.seq_q, number, at, row))
    tiles_of_row, _, number, at, row = best
    if tiles_of_row == 1:
        return None
    return Opening(launch, number, at, f"q{row}",
                   f"Watch {_row_words(problem, row)}. {tiles_of_row} times P V of a tile has been added to its O, and "
                   "m has never had to rise: so nothing that was added before had to be corrected. The marks in the "
                   "bars are the exact row.")


# --- Tiles that are skipped ------------------------------------------------------------------------------------------


def _of_skipped(problem: Problem, launches: list[JsonObject], launch: int, only: "int | None") -> Optional[Opening]:
    blocks = [(number, block) for number, block in _blocks(launches[launch], only)
              if block["skipped"] and block["tiles"]]
    if not blocks:
        return None
    number, block = max(blocks, key=lambda each: len(each[1]["skipped"]) / len(each[1]["tiles"]))
    keys = max(tile["keys"][1] for tile in block["tiles"])
    tiles, skipped = len(block["tiles"]), len(block["skipped"])
    corrected = min(_corrections(launches, launch, number), key=lambda each: each.factor, default=None)
    row = f"q{corrected.row}" if corrected else None
    is_one = skipped == 1
    return Opening(launch, number, len(block["steps"]) - 1, row,
                   f"Block {number} has stopped after {'1 tile' if tiles == 1 else f'{tiles} tiles'}, at key {keys}. "
                   "Its queries see no key beyond their diagonal, so "
                   f"{'the dotted tile is' if is_one else f'the {skipped} dotted tiles are'} never loaded and never "
                   "multiplied. Every block stops at its own diagonal: see the whole launch.")


# --- Parts that are merged -------------------------------------------------------------------------------------------


def _of_merge(problem: Problem, launches: list[JsonObject], _: int, only: "int | None") -> Optional[Opening]:
    """Where the second part of a row has most weight."""
    best: "tuple[float, Opening] | None" = None
    for launch, of in enumerate(launches):
        for number, block in _blocks(of, only):
            for step in block["steps"]:
                for row, weights in _weights(step).items():
                    first, second = sorted(weights, reverse=True)[:2]
                    if best is not None and second <= best[0]:
                        continue
                    parts = " and ".join(map(_number, weights)) if len(weights) < 4 else f"up to {_number(first)}"
                    best = second, Opening(launch, number, -1, f"q{row}",
                                           f"Watch {_row_words(problem, row)}. Its keys were in {len(weights)} parts, "
                                           "each with an O and an LSE of its own. The row’s O is their mean, with "
                                           f"weights of {parts}: each is exp(LSE of the part − LSE of the row).")
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
                rows = [row % problem.seq_q for row, *_ in shown["dQ"]]
                return Opening(launch, number, at, _largest_gradient(block["steps"][:at + 1]),
                               f"Block {number} owns keys {first} to {last}: their dK and dV stay with it, and "
                               "grow with every tile of queries. dQ does not stay: every block of keys has a part of "
                               f"it, and here this one adds its part for queries {min(rows)} to {max(rows)}.")
    return None


def _largest_gradient(steps: list[JsonObject]) -> "str | None":
    """The key of which most is to be seen: the one with the largest number in what these steps have summed up of dV."""
    sums: dict[int, float] = {}
    for step in steps:
        for row, _, values in step.get("watched", {}).get("dV", []):
            sums[row] = max([sums.get(row, 0.0), *(abs(float(value)) for value in values)])
    key = max(sums, key=sums.__getitem__, default=None)
    return f"k{key}" if key is not None else None
