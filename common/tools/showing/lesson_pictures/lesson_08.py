"""08_causal_earlystop: the staircase, one thread block, which block starts when, and turns under the mask."""

import re

from tools.base import ROOT
from tools.showing.lesson_pictures.canvas import Drawing
from tools.showing.lesson_pictures.constants import constant

_KERNEL = "08_causal_earlystop/3_balanced.cu"
_TILES = 4  # of the small example


def _keys_of_a_tile(head_dim: int) -> int:
    """Bc of Shape<head_dim>."""
    found = re.search(rf"struct Shape<{head_dim}> {{.*?\bBc = (\d+)", (ROOT / _KERNEL).read_text(), re.DOTALL)
    if found is None:
        raise LookupError(f"{_KERNEL} has no Bc of Shape<{head_dim}>")
    return int(found[1])


def staircase() -> Drawing:
    picture = Drawing(366, "The causal staircase", "Four tiles of queries against four tiles of keys. Tiles below the "
                      "diagonal are computed, those on it are computed and half masked, those above it are left out. "
                      "The rows have 1, 2, 3 and 4 tiles, 10 of 16.")
    left, top, size = 92.0, 60.0, 58.0
    picture.text(left, 50, "keys →", color="note")
    for row in range(_TILES):
        y = top + row * size
        picture.text(left - 10, y + size / 2 + 5, f"block {row}", size=14, at="end")
        for column in range(_TILES):
            x = left + column * size
            if column < row:
                picture.box(x + 1, y + 1, size - 2, size - 2, "blue")
            elif column == row:
                picture.box(x + 1, y + 1, size - 2, size - 2, "orange", pale=True)
                picture.area((x + 1, y + 1), (x + size - 1, y + size - 1), (x + 1, y + size - 1), color="orange",
                             pale=False)
            else:
                picture.box(x + 1, y + 1, size - 2, size - 2, dashed=True)
        picture.text(left + _TILES * size + 14, y + size / 2 + 6, str(row + 1), size=17, bold=True)
    picture.text(left + _TILES * size + 36, 50, "tiles", color="note", at="end")
    picture.text(14, 26, f"{_TILES * (_TILES + 1) // 2} of {_TILES ** 2} tiles are computed", size=15, bold=True)
    y = top + _TILES * size + 22
    for x, color, words in [(14, "blue", "no mask"), (112, "orange", "masked in part"), (262, "empty", "left out")]:
        picture.box(x, y - 12, 16, 16, color, dashed=color == "empty")
        picture.text(x + 23, y + 1, words)
    picture.text(14, y + 32, "A block is a row: it goes along the keys, and stops.", color="note")
    return picture


def one_block() -> Drawing:
    """Block 2 of `balanced` at D = 128, N = 512."""
    rows, warps, keys = constant(_KERNEL, "Br"), constant(_KERNEL, "warps"), _keys_of_a_tile(128)
    first, length, n = 2 * rows, rows // warps, 512
    picture = Drawing(290, "What each warp does with each tile", "Warps 0 to 3 of block 2 against eight tiles of 64 "
                      "keys. Tiles 0 to 3 need no mask. In tile 4 warps 0 and 1 mask, warps 2 and 3 need no mask. In "
                      "tile 5 warps 0 and 1 compute nothing and warps 2 and 3 mask. Tiles 6 and 7 are never copied.")
    left, top, wide, high = 112.0, 66.0, 34.0, 38.0

    def kind(tile: int, warp: int) -> str:
        j0, sees = tile * keys, first + warp * length + 1  # the warp's first row; its last sees length - 1 more
        if j0 >= first + rows:
            return "empty"
        if j0 >= sees + length - 1:
            return "grey-pale"
        return "orange" if j0 + keys > sees else "blue"

    picture.text(14, 26, f"Rows {first} to {first + rows - 1} against {n // keys} tiles", size=15, bold=True)
    picture.text(left - 10, 58, "first key", size=12.5, color="note", at="end")
    for tile in range(n // keys):
        picture.text(left + (tile + 0.5) * wide, 58, str(tile * keys), size=12.5, color="note", at="middle")
    picture.cells(left, top, n // keys, warps, (wide, high), kind, gap=2)
    for warp in range(warps):
        y = top + warp * high
        picture.text(14, y + 17, f"warp {warp}", size=13)
        row = first + warp * length
        picture.text(14, y + 32, f"{row} to {row + length - 1}", size=12.5, color="note")
    y = top + warps * high + 26
    for x, row, color, words in [(14, 0, "blue", "computed, no mask"), (200, 0, "orange", "computed, masked"),
                                 (14, 1, "grey", "left out by the warp"), (200, 1, "empty", "not even copied")]:
        picture.box(x, y - 12 + 28 * row, 16, 16, color, pale=color == "grey")
        picture.text(x + 23, y + 1 + 28 * row, words)
    return picture


def longest_first() -> Drawing:
    """The blocks of the staircase on two multiprocessors."""
    picture = Drawing(322, "Which block starts first", "Two multiprocessors and blocks of 1, 2, 3 and 4 steps. "
                      "Shortest first, one multiprocessor ends after 4 steps and the other after 6. Longest first, "
                      "both end after 5.")
    left, unit, high = 116.0, 42.0, 34.0

    def panel(top: float, words: str, order: "list[int]", color: str) -> None:
        picture.text(14, top, words, size=15, bold=True)
        ends = [0, 0]
        for length in order:
            place = ends.index(min(ends))
            y = top + 14 + place * high
            picture.box(left + ends[place] * unit + 1, y + 2, length * unit - 2, high - 4, color, str(length), size=15,
                        bold=True)
            ends[place] += length
        last = left + max(ends) * unit
        for place, end in enumerate(ends):
            y = top + 14 + place * high
            picture.text(left - 10, y + 22, f"processor {place}", at="end")
            if end < max(ends):
                picture.box(left + end * unit + 1, y + 2, (max(ends) - end) * unit - 2, high - 4, "grey", "idle",
                            pale=True)
        picture.line((last, top + 10), (last, top + 18 + 2 * high), color="ink", width=2)
        picture.text(last, top + 36 + 2 * high, f"done after {max(ends)} steps", at="end")

    panel(28, "In the order of the rows", [1, 2, 3, 4], "blue")
    panel(176, "Longest first", [4, 3, 2, 1], "blue")
    picture.line((14, 150), (386, 150))
    picture.text(14, 308, "The number in a block is its length in steps.", color="note")
    return picture


def turns_under_the_mask() -> Drawing:
    picture = Drawing(390, "Turns under the mask", "Four blocks of keys with 4, 3, 2 and 1 steps of work. Started "
                      "together, block c waits c steps and all end after 4. Started one after the other, no block "
                      "waits.")
    left, unit, high = 84.0, 29.0, 30.0

    def panel(top: float, words: str, starts: "list[int]", waits: "list[int]") -> None:
        picture.text(14, top, words, size=15, bold=True)
        for block in range(_TILES):
            y = top + 12 + block * high
            picture.text(left - 10, y + 19, f"keys {block}", at="end")
            work = _TILES - block
            x = left + starts[block] * unit
            if waits[block]:
                picture.cells(x, y + 1, waits[block], 1, (unit, high - 2), "grey-pale", gap=2)
            picture.cells(x + waits[block] * unit, y + 1, work, 1, (unit, high - 2), "blue", gap=2)

    panel(28, "Started together", [0, 0, 0, 0], [0, 1, 2, 3])
    picture.lines(left + 4 * unit + 16, 76,
                  ["6 of 16 steps are", "waiting. It takes as", "long as without the", "early stop."])
    picture.line((14, 178), (386, 178))
    panel(204, "One after the other", [0, 4, 7, 9], [0, 0, 0, 0])
    picture.lines(14, 358, ["Grey: the block waits for its turn, and keeps its place.",
                            "Below, other heads use the places that are free."], color="note")
    return picture
