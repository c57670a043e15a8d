"""05_online_softmax: m, l and O as tiles arrive, what a block must hold, and what a thread owns."""

from math import exp, log2

from tools.showing.lesson_pictures.canvas import Drawing
from tools.showing.lesson_pictures.constants import constant

_LIMIT = 227 * 1024  # bytes of shared memory that a thread block of an H200 can have


def tiles_arrive() -> Drawing:
    scores, values = (1, 3, 4, 2), (10, 20, 30, 40)

    def sums(count: int, reference: float) -> tuple[list[float], float, float]:
        weights = [exp(score - reference) for score in scores[:count]]
        return weights, sum(weights), sum(weight * value for weight, value in zip(weights, values))

    first, second = sums(2, 3), sums(2, 4)
    whole = sums(4, 4)
    c = exp(3 - 4)
    picture = Drawing(574, "m, l and O as tiles arrive",
                      f"Tile 1: m is 3, l is {first[1]:.2f}, O is {first[2]:.2f}. A score of 4 arrives: the weights, "
                      f"l and O shrink by the factor {c:.2f}. Tile 2 is added: l is "
                      f"{whole[1]:.2f}, O is {whole[2]:.2f}.")

    def panel(y: float, title: str, seen: int, m: int, now: tuple[list[float], float, float],
              before: "tuple[list[float], float, float] | None") -> None:
        picture.text(14, y, title, size=15, bold=True)
        picture.text(14, y + 30, "S")
        for place in range(4):
            x = 66 + 38.0 * place
            new = place >= 2
            if place < seen:
                picture.box(x, y + 14, 32, 24, "orange" if new else "blue", str(scores[place]), size=14, bold=True,
                            pale=new and len(now[0]) == 2)
            else:
                picture.box(x, y + 14, 32, 24, "none", "?", dashed=True, size=14)
        picture.text(14, y + 98, "weight")
        picture.text(14, y + 124, "V")
        base = y + 108
        picture.line((60, base), (218, base))
        for place, value in enumerate(values):
            picture.text(82 + 38.0 * place, y + 124, str(value), at="middle", color="note")
        for place, weight in enumerate(now[0]):
            x = 66 + 38.0 * place
            if before:
                picture.box(x, base - 50 * before[0][place], 32, 50 * before[0][place], "none", dashed=True)
            picture.box(x, base - 50 * weight, 32, 50 * weight, "orange" if place >= 2 else "blue", frame=False)
            tall = before[0][place] if before else weight
            if tall < 0.6:
                picture.text(x + 16, base - 50 * tall - 5, f"{weight:.2f}", at="middle", size=12.3)
            elif weight < 0.6:
                picture.text(x + 16, base - 50 * weight - 6, f"{weight:.2f}", at="middle", size=12.3)
            else:
                picture.box(x, base - 30, 32, 14, "orange" if place >= 2 else "blue", f"{weight:.0f}", frame=False,
                            size=12.5, bold=True)
        picture.text(238, y + 31, f"m = {m}", size=15, bold=True)
        for name, top, scale, total, remains, earlier in [
                ("l", y + 46.0, 110 / whole[1], now[1], second[1], before[1] if before else 0.0),
                ("O", y + 84.0, 110 / whole[2], now[2], second[2], before[2] if before else 0.0)]:
            picture.text(238, top + 14, name, italic=True, size=15)
            old = remains if len(now[0]) == 4 else total
            if earlier:
                picture.box(254, top, scale * earlier, 18, "none", dashed=True)
            picture.box(254, top, scale * old, 18, "blue", frame=False)
            if total > old:
                picture.box(254 + scale * old, top, scale * (total - old), 18, "orange", frame=False)
            picture.text(386, top + 32, f"{total:.4f}" if name == "l" else f"{total:.2f}", at="end", size=12.5)

    panel(30, "Tile 1 arrives", 2, 3, first, None)
    picture.line((14, 170), (386, 170))
    panel(200, f"A larger score arrives: everything × {c:.2f}", 4, 4, second, first)
    picture.line((14, 340), (386, 340))
    panel(370, "Tile 2 is added", 4, 4, whole, None)
    picture.box(14, 514, 372, 44, "grey", pale=True)
    result = f"{whole[2]:.2f} / {whole[1]:.4f} = {whole[2] / whole[1]:.2f}"
    picture.text(200, 532, f"at the end: O / l = {result},", at="middle")
    picture.text(200, 550, "as from the whole row at once", at="middle")
    return picture


def _whole_rows(keys: int) -> tuple[int, int]:
    """(rows, bytes) of a block of 04_fusion/3_unrolled.cu: 0 rows, if none fits."""
    file = "04_fusion/3_unrolled.cu"
    warps, part, pad = (constant(file, name) for name in ("warps", "slice", "pad"))
    for rows in (8, 4, 2, 1):
        size = rows * (-(-keys // 32) * 32 + pad + warps * part + 1) * 4
        if size <= _LIMIT:
            return rows, size
    return 0, 0


def shared_memory() -> Drawing:
    online, tiles, head_dim = "05_online_softmax/1_online.cu", "05_online_softmax/2_tiles.cu", 64
    rows, part, pad, warps = (constant(online, name) for name in ("Br", "slice", "pad", "warps"))
    of_online = rows * (1024 + pad + warps * part + head_dim + 2) * 4
    keys, depth, pad, p_pad = (constant(tiles, name) for name in ("Bc", "depth", "pad", "p_pad"))
    of_tiles = (64 * (head_dim + pad) + 64 * (keys + p_pad) + keys * (depth + pad)) * 4
    longest = max(n for n in range(32, 80000, 32) if _whole_rows(n)[0])

    picture = Drawing(332, "Shared memory of a thread block",
                      f"With whole score rows it grows with N up to 227 KiB, then the number of rows halves; beyond "
                      f"{longest:,} keys nothing fits. With tiles it is {of_online // 1024} or {of_tiles // 1024} KiB "
                      "for every N.")
    left, right, top, base = 52.0, 386.0, 64.0, 276.0

    def at(n: float, size: float) -> tuple[float, float]:
        return left + (right - left) * (log2(n) - 10) / 7, base - (base - top) * size / _LIMIT

    picture.text(14, 26, "Shared memory of a block: 227 KiB at most", size=15, bold=True)
    for size in (0, 50, 100, 150, 200):
        x, y = at(1024, size * 1024)
        picture.line((left, y), (right, y), width=0.6)
        picture.text(left - 6, y + 4, str(size), at="end", size=12.5, color="note")
    picture.line((left, top), (right, top), color="ink", width=1.6)
    for power in (10, 12, 14, 16):
        picture.text(at(2**power, 0)[0], base + 17, f"{2**power:,}", at="start" if power == 10 else "middle", size=12.5,
                     color="note")
    picture.text(right, base + 36, "keys N", at="end", color="note")
    for count in (8, 4, 2, 1):
        points = [at(n, _whole_rows(n)[1]) for n in range(1024, longest + 1, 32) if _whole_rows(n)[0] == count]
        picture.line(*points[:: max(1, len(points) // 40)], points[-1], color="orange", width=2.6)
        words = {8: "8 rows", 4: "4", 2: "2", 1: "1"}[count]
        picture.text((points[0][0] + points[-1][0]) / 2, top - 8, words, at="middle", size=12.5)
    x, _ = at(longest, 0)
    picture.line((x, top), (x, base), color="orange", dashed=True)
    picture.text(x + 5, top + 60, "no", size=12.5)
    picture.text(x + 5, top + 76, "row", size=12.5)
    for size in (of_online, of_tiles):
        picture.line(at(1024, size), at(131072, size), color="blue", width=2.6)
    picture.text(left + 100, at(1024, of_online)[1] - 6, f"online, 8 rows: {of_online / 1024:.0f}", size=12.5)
    picture.text(left + 100, at(1024, of_tiles)[1] + 17, f"tiles, 64 rows: {of_tiles / 1024:.0f}", size=12.5)
    picture.box(left, base + 28, 12, 8, "orange", frame=False)
    picture.text(left + 18, base + 37, "chapter 04")
    picture.box(left + 106, base + 28, 12, 8, "blue", frame=False)
    picture.text(left + 124, base + 37, "chapter 05")
    return picture


def owners() -> Drawing:
    file = "05_online_softmax/2_tiles.cu"
    keys, rows, head_dim = constant(file, "Bc"), 64, 64
    tx, ty, cell = 5, 2, 2.6
    own_rows, own_keys = range(ty, rows, 8), range(tx, keys, 16)
    picture = Drawing(322, "What a thread owns",
                      f"Thread (tx, ty) = ({tx}, {ty}) owns {len(own_rows)} rows, every eighth. Of S it has "
                      f"{len(own_keys)} keys in each, every sixteenth; of O the same rows, and four "
                      "neighbouring columns.")
    top, s_left, o_left = 78.0, 18.0, 214.0
    size = cell * rows
    picture.text(14, 26, f"Thread tx = {tx}, ty = {ty} of 16 × 8", size=15, bold=True)
    picture.text(s_left, 50, "S, then P", size=14, bold=True)
    picture.text(s_left, 68, "64 keys", color="note")
    picture.text(o_left, 50, "O", size=14, bold=True)
    picture.text(o_left, 68, "64 columns", color="note")
    picture.box(s_left, top, cell * keys, size)
    picture.box(o_left, top, cell * head_dim, size)
    for row in own_rows:
        y = top + cell * (row + 0.5)
        picture.line((s_left, y), (o_left + cell * head_dim, y), color="line", width=0.6)
        for key in own_keys:
            picture.box(s_left + cell * key - 1.2, y - 2.5, 5, 5, "blue", frame=False)
        picture.box(o_left + cell * 4 * tx, y - 2.5, cell * 4, 5, "orange", frame=False)
    picture.text(s_left, top + size + 18, f"{len(own_rows)} rows, {len(own_keys)} keys in each", size=13)
    picture.text(o_left, top + size + 18, "the same rows, 4 columns", size=13)
    picture.lines(14, top + size + 46, ["16 threads share a row: they agree on its m.",
                                        "O needs P of all keys: P goes through shared memory."], color="note")
    return picture
