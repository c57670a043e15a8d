"""11_split_kv: keys dealt out and merged, packed rows, warps that share keys, and even shares of a list."""

import math

from tools.showing.lesson_pictures.canvas import Drawing
from tools.showing.lesson_pictures.constants import constant

_COLORS = ("blue", "orange", "green", "purple")


def dealt_and_merged() -> Drawing:
    tiles, parts = 12, 4
    weights = [0.25, 0.6, 0.1, 0.4]  # exp(LSE) of each, of the largest that it may be
    picture = Drawing(372, "Keys dealt out, and merged",
                      "Twelve tiles of keys are dealt to four blocks. Each makes its own O and LSE. A second kernel "
                      "adds them up, each with the weight exp(LSE).")
    left, wide = 14.0, 31.0
    picture.text(left, 24, "the keys of one row", size=14, bold=True)
    picture.cells(left, 34, tiles, 1, (wide, 28), lambda column, _: f"{_COLORS[column * parts // tiles]}-pale",
                  lambda column, _: str(column))
    for part, color in enumerate(_COLORS):
        x = left + part * wide * tiles / parts
        middle = x + wide * tiles / parts / 2
        picture.arrow((middle, 66), (middle, 88))
        picture.text(middle, 106, f"block {part}", at="middle", size=13, bold=True, color=color)
        picture.box(middle - 40, 114, 34, 28, color, f"O{'₀₁₂₃'[part]}", pale=True, size=14)
        picture.box(middle - 2, 114, 44, 28, color, f"LSE{'₀₁₂₃'[part]}", pale=True, size=13)
        picture.box(middle - 14, 238 - 80 * weights[part], 28, 80 * weights[part], color, frame=False)
        picture.arrow((middle, 240), (middle, 264) if part in (1, 2) else (middle, 262))
    picture.text(left, 166, "weights: exp(LSE)", size=13, color="note")
    picture.line((left, 238), (386, 238))
    picture.box(left, 266, wide * tiles, 34, "grey", "second kernel", pale=True, size=14, bold=True)
    picture.arrow((200, 302), (200, 322))
    picture.text(200, 342, "O = Σ weight · O  /  Σ weight", at="middle", size=14)
    picture.text(200, 362, "LSE = log Σ weight", at="middle", size=14)
    return picture


def packed_rows() -> Drawing:
    heads, queries = 4, 2
    picture = Drawing(330, "Rows of four heads are one tile",
                      "Four query heads with two queries each lie one after the other in Q. Taken one head at a time, "
                      "K and V are read four times. Taken as one tile of eight rows, they are read once.")
    left, wide, high = 14.0, 132.0, 24.0
    picture.text(left, 24, "Q in memory", size=14, bold=True)
    for row in range(heads * queries):
        head, query = divmod(row, queries)
        picture.box(left, 34 + row * high, wide, high - 1, _COLORS[head], f"head {head}, query {query}", pale=True)
        picture.text(left + wide + 8, 34 + row * high + 17, f"r = {row}", size=12.5, color="note")
    picture.text(214, 24, "split: a tile a head", size=14, bold=True)
    for head in range(heads):
        y = 34 + head * 2 * high
        picture.box(214, y + 4, 70, 2 * high - 8, _COLORS[head], f"head {head}", pale=True)
        picture.arrow((322, y + high), (287, y + high))
        picture.box(324, y + 8, 62, 2 * high - 16, "grey", "K, V", pale=True)
    picture.text(214, 250, "packed: one tile", size=14, bold=True)
    picture.box(214, 260, 70, 42, "empty")
    for head in range(heads):
        picture.box(216, 262 + head * 9.5, 66, 9, _COLORS[head], pale=True)
    picture.arrow((322, 281), (287, 281))
    picture.box(324, 265, 62, 32, "grey", "K, V", pale=True)
    picture.text(left, 258, "Row r is one of two", size=13)
    picture.text(left, 275, "queries. Which one?", size=13)
    picture.text(left, 322, "K and V are read once for four heads, not four times.", size=13, color="note")
    return picture


def warps_share_keys() -> Drawing:
    warps = constant("11_split_kv/4_narrow.cu", "warps")
    picture = Drawing(360, "Warps share rows, or they share keys",
                      "Above, each of four warps has 32 rows of the tile and reads all keys. Below, the tile has 16 "
                      "rows, all warps have them, and each reads a quarter of the keys of a stage.")
    left, wide = 104.0, 280.0
    picture.text(14, 24, "packed: warps share rows", size=15, bold=True)
    picture.text(14, 46, "32 rows each", size=12.5, color="note")
    picture.text(left, 46, "keys of a stage", size=12.5, color="note")
    picture.arrow((left + 96, 42), (left + wide, 42), color="line")
    for warp in range(warps):
        picture.text(left - 8, 52 + warp * 26 + 18, f"warp {warp}", at="end",
                     size=12.5, color=_COLORS[warp])
        picture.box(left, 52 + warp * 26, wide, 25, _COLORS[warp], "all keys", pale=warp > 0)
    picture.text(14, 176, "Most of the 128 rows do not exist.", size=13, color="note")
    picture.line((14, 192), (386, 192))
    picture.text(14, 218, "narrow: warps share keys", size=15, bold=True)
    picture.text(left - 8, 252, "16 rows", at="end", size=12.5)
    for warp in range(warps):
        x = left + warp * wide / warps
        picture.box(x, 232, wide / warps - 1, 32, _COLORS[warp], f"warp {warp}", pale=warp > 0)
        picture.text(x + wide / warps / 2, 284, "m, l, O", at="middle", size=12.5)
        picture.arrow((x + wide / warps / 2, 290), (x + wide / warps / 2, 306))
    picture.box(left, 308, wide, 26, "grey", "merged once, at the end", pale=True)
    picture.text(14, 352, "Each warp is a part of its own.", size=13, color="note")
    return picture


def even_shares() -> Drawing:
    rows, tiles, shares = 4, 9, 6
    colors = (*_COLORS, "grey", "blue")
    picture = Drawing(300, "A list of tiles cut into even shares",
                      f"{rows} rows of {tiles} tiles of keys are one list of {rows * tiles} tiles, cut into {shares} "
                      f"shares of {rows * tiles // shares} tiles each. Most rows have pieces of two shares.")
    left, wide, high = 118.0, 29.0, 34.0
    each = rows * tiles // shares
    picture.text(left, 24, "tiles of keys", size=13, color="note")
    picture.arrow((left + 84, 20), (left + wide * tiles, 20), color="line")
    for row in range(rows):
        picture.text(left - 8, 30 + row * high + 21, f"query rows {row}", at="end", size=13)

    def share(column: int, row: int) -> int:
        return (row * tiles + column) // each

    picture.cells(left, 30, tiles, rows, (wide, high),
                  lambda column, row: colors[share(column, row)] + ("" if share(column, row) == 5 else "-pale"),
                  lambda column, row: str(share(column, row)))
    picture.text(14, 196, f"A number is the share, a block. Each has {each} tiles.", size=13)
    whole = math.ceil(rows / shares) * tiles
    picture.text(14, 222, "Time, in tiles:", size=13, bold=True)
    picture.text(116, 244, "whole rows", at="end", size=13)
    picture.box(left + 4, 230, wide * whole, 20, "orange", f"{whole}, two blocks idle", pale=True)
    picture.text(116, 272, "even shares", at="end", size=13)
    picture.box(left + 4, 258, wide * each, 20, "blue", str(each), pale=True)
    return picture
