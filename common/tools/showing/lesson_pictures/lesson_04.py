"""04_fusion: what leaves the chip, the rows that fit, sums that are dealt out, and warps that wait."""

from tools.showing.lesson_pictures.canvas import Drawing
from tools.showing.lesson_pictures.constants import constant

_LIMIT = 227 * 1024  # bytes of shared memory that a thread block of an H200 can have
_GB = 2 * 16 * 4096 * 4096 * 4 / 1e9  # S, or P, of the ladder's problem at N = 4096


def _flow(picture: Drawing, x: float, start: float, end: float, gigabytes: float, color: str) -> None:
    """An arrow up or down, as thick as what passes."""
    wide = max(2.2 * gigabytes, 1.2)
    tip = 7 + wide / 2
    down = 1 if end > start else -1
    top, bottom = sorted([start, end - down * tip])
    picture.box(x - wide / 2, top, wide, bottom - top, color, frame=False)
    wings = (x - tip * 0.7, end - down * tip), (x + tip * 0.7, end - down * tip)
    picture.area(*wings, (x, end), color=color, pale=False)


def leaves_chip() -> Drawing:
    picture = Drawing(486, "What leaves the chip",
                      "Chapter 03: scores are written to DRAM once, read three times by softmax, P is written and read "
                      f"again, {_GB:.1f} GB each. Chapter 04: S and P stay in shared memory; Q, K, V and O alone pass.")
    top, dram = 44.0, 172.0

    picture.text(14, 28, "Chapter 03: three kernels", size=15, bold=True)
    for x, wide, words in [(14.0, 112.0, "S = Q Kᵀ"), (144.0, 112.0, "softmax"), (274.0, 112.0, "O = P V")]:
        picture.box(x, top, wide, 34, "blue", words, pale=True, size=14)
    picture.box(14, dram, 372, 28, "grey", "DRAM", pale=True, size=14, bold=True)
    for x, gigabytes, down, label, side in [(100.0, _GB, True, "S", 1), (166.0, 3 * _GB, False, "S, 3 ×", 1),
                                            (240.0, _GB, True, "P", 1), (294.0, _GB, False, "P", 1)]:
        start, end = (top + 36, dram - 2) if down else (dram - 2, top + 36)
        _flow(picture, x, start, end, gigabytes, "orange")
        picture.text(x + side * (12 if gigabytes < 5 else 14), 118, label, at="start" if side > 0 else "end")
    for x, down in [(30.0, False), (334.0, False), (366.0, True)]:
        start, end = (top + 36, dram - 2) if down else (dram - 2, top + 36)
        _flow(picture, x, start, end, 0.017, "blue")
    for x, words in [(36.0, "Q, K"), (320.0, "V"), (372.0, "O")]:
        picture.text(x, 148, words)
    picture.text(14, 222, f"Orange: {_GB:.1f} GB, or three times that. Blue: 0.02 GB each.", color="note")

    picture.line((14, 240), (386, 240))
    picture.text(14, 266, "Chapter 04: one kernel, three phases", size=15, bold=True)
    picture.box(14, 280, 372, 88, "blue", pale=True)
    for x, words in [(28.0, "1. S"), (150.0, "2. P and l"), (272.0, "3. O")]:
        picture.box(x, 288, 100, 24, "blue", words, size=14)
    picture.box(28, 336, 344, 24, "orange", "shared memory: S, and then P", pale=True)
    for x in (78.0, 200.0):
        picture.arrow((x, 313), (x, 335), both=x == 200.0)
    picture.arrow((322, 335), (322, 313))
    picture.box(14, 436, 372, 28, "grey", "DRAM", pale=True, size=14, bold=True)
    for x, down in [(60.0, False), (200.0, False), (322.0, True)]:
        start, end = (370.0, 434.0) if down else (434.0, 370.0)
        _flow(picture, x, start, end, 0.017, "blue")
    for x, words in [(68.0, "Q, K"), (208.0, "V"), (330.0, "O")]:
        picture.text(x, 408, words)
    return picture


def _rows(keys: int) -> int:
    """Br of 1_fused.cu: as many rows as fit."""
    file = "04_fusion/1_fused.cu"
    tile, depth, pad, s_pad = (constant(file, name) for name in ("tile", "depth", "pad", "s_pad"))
    rows = 64
    while (rows * (-(-keys // depth) * depth + s_pad + 1) + (rows + tile) * (depth + pad)) * 4 > _LIMIT:
        rows //= 2
    return rows


def rows_fit() -> Drawing:
    picture = Drawing(372, "The score rows that fit",
                      "Rectangles drawn to scale, all of the same area: "
                      + ", ".join(f"{_rows(keys)} rows of {keys} keys" for keys in (512, 1024, 2048, 4096)) + ".")
    picture.text(14, 26, "The score rows of a block, to scale", size=15, bold=True)
    y, scale = 42.0, 360 / 4096
    for keys in (512, 1024, 2048, 4096):
        rows = _rows(keys)
        high = 1.7 * rows
        picture.box(20, y, scale * keys, high, "blue", pale=True)
        for row in range(1, rows):
            picture.line((20, y + 1.7 * row), (20 + scale * keys, y + 1.7 * row), color="blue", width=0.3)
        words = f"N = {keys}: {rows} rows"
        if keys < 4096:
            picture.text(28 + scale * keys, y + high / 2 + 5, words, size=14)
        else:
            picture.text(20, y + high + 18, words, size=14)
        y += high + 18
    picture.text(20, y + 24, "Each takes about 140 KiB of the 227 that a block can have.", size=12.5, color="note")
    return picture


def dealt() -> Drawing:
    lanes = constant("04_fusion/2_streamed.cu", "lanes_per_key")
    picture = Drawing(530, "Sums that are dealt out",
                      "Eight lanes, each with partial sums of eight rows. After step 1 a lane keeps four, over two "
                      "lanes each; after step 2 two, over four lanes; after step 3 one, over all eight.")
    left, wide, high = 62.0, 40.0, 10.5
    names = [("Start: eight sums, each over 1 lane", ""), ("Step 1: lanes 4 apart, 4 shuffles", "2 lanes in a sum"),
             ("Step 2: lanes 2 apart, 2 shuffles", "4 lanes in a sum"),
             ("Step 3: neighbours, 1 shuffle", "all 8 lanes in a sum")]
    for stage, (title, note) in enumerate(names):
        y = 40.0 + 126 * stage
        picture.text(14, y - 10, title, size=13.5, bold=True)
        if note:
            picture.text(386, y - 10, note, at="end", color="note")
        kept, inside = lanes >> stage, 1 << stage
        for lane in range(lanes):
            first = lane // kept * kept  # the upper lanes of a pair keep the upper half
            x = left + wide * lane
            picture.box(x, y, wide - 4, high * lanes)
            for row in range(first, first + kept):
                picture.box(x, y + high * row + 1, (wide - 4) * inside / lanes, high - 2, "blue", frame=False)
            if stage == len(names) - 1:
                picture.text(left + wide * (lane + 0.5) - 1, y + high * lanes + 18, str(lane), at="middle")
        picture.text(14, y + 10, "row 0", size=12.5, color="note")
        picture.text(14, y + high * lanes, "row 7", size=12.5, color="note")
    picture.text(14, 40 + 126 * 3 + high * lanes + 18, "lane", size=13)
    return picture


def phases() -> Drawing:
    warps = constant("04_fusion/3_unrolled.cu", "warps")
    rows = 8
    picture = Drawing(344, "Sixteen warps and eight rows",
                      "In phases 1 and 3 all 16 warps work. In phase 2 eight of them take a row each, and the others "
                      "wait. All wait for the last one at the barriers between.")
    left, top, high = 62.0, 60.0, 14.0
    starts = {1: left, 2: left + 132, 3: left + 216}
    lengths = {1: 118.0, 2: 70.0, 3: 108.0}
    for phase, words in [(1, "1. S"), (2, "2. P, l"), (3, "3. O")]:
        picture.text(starts[phase] + lengths[phase] / 2, 26, words, size=14, bold=True, at="middle")
    picture.text(starts[1] + 59, 46, "keys shared out", at="middle", color="note")
    picture.text(starts[2] + 35, 46, "one row each", at="middle", color="note", size=12.3)
    picture.text(starts[3] + 56, 46, "keys shared out", at="middle", color="note", size=12.3)
    for warp in range(warps):
        y = top + high * warp
        for phase in (1, 2, 3):
            wait = (warp * 5 + phase * 3) % 7 * 1.6  # warps are not equally fast
            if phase != 2 or warp < rows:
                color = ("blue", "green", "orange")[phase - 1]
                picture.box(starts[phase], y + 1, lengths[phase] - wait, high - 2, color, frame=False)
    for x in (starts[2] - 7, starts[3] - 7):
        picture.line((x, top - 4), (x, top + high * warps + 4), color="ink", width=2)
        picture.text(x, top + high * warps + 20, "barrier", at="middle")
    picture.text(14, top + 11, "warp 0", size=12.5)
    picture.text(14, top + high * (warps - 1) + 11, "warp 15", size=12.5)
    picture.box(starts[2], top + high * rows + 2, lengths[2], high * (warps - rows) - 3, "none", "nothing", dashed=True)
    picture.text(14, top + high * warps + 44, "time goes to the right; not to scale", color="note")
    return picture
