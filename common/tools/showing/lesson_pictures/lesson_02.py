"""02_coalescing: lanes onto sectors before and after, a sum by shuffles, and who owns what."""

from tools.showing.lesson_pictures.canvas import Drawing
from tools.showing.lesson_pictures.constants import constant

_VECTORS = "02_coalescing/2_vectors.cu"
_LANES, _SECTOR, _D, _BYTES = 32, 32, 64, 2  # of a warp; bytes of a sector; numbers of a row, and bytes of one


def lanes_on_sectors() -> Drawing:
    row_sectors = _D * _BYTES // _SECTOR
    together = _LANES * _BYTES // _SECTOR
    picture = Drawing(424, "One load of a warp, before and after",
                      "Before: each of 32 lanes wants two bytes of a row of its own, so "
                      "32 sectors are fetched and a sixteenth of them is used. After: the lanes want "
                      f"neighbours in one row, {together} sectors, all used.")
    left, wide = 96.0, 68.0  # where a row begins, and its sectors' width

    picture.text(14, 26, "Before: a row for each lane", size=15, bold=True)
    for lane, y in [("lane 0", 42), ("lane 1", 72), ("lane 2", 102), ("lane 31", 150)]:
        picture.text(70, y + 15, lane, at="end")
        picture.cells(left, y, row_sectors, 1, (wide, 22),
                      lambda column, _: "orange-pale" if column == 0 else "empty", gap=2)
        picture.box(left + 1, y + 1, wide / 16, 20, "orange", frame=False)
        picture.arrow((74, y + 11), (left - 1, y + 11))
    picture.text(56, 142, "⋮", at="middle", size=15)
    picture.text(left + wide / 2, 142, "⋮", at="middle", size=15)
    picture.text(14, 196, f"{_LANES} sectors come; of each, 2 of {_SECTOR} bytes are used.", size=14)

    picture.line((14, 212), (386, 212))
    picture.text(14, 238, "After: one row for all lanes", size=15, bold=True)
    picture.text(70, 275, "lanes", at="end")
    lane_wide = wide * together / _LANES
    for number in range(_LANES):
        x = left + number * lane_wide
        picture.box(x, 262, lane_wide - 0.8, 16, "blue", frame=False)
        if number % 4 == 1:
            picture.arrow((x + lane_wide, 280), (x + lane_wide, 300), width=1)
    picture.text(left, 258, "0", size=12.5, color="note")
    picture.text(left + wide * together, 258, "31", size=12.5, color="note", at="end")
    picture.text(70, 317, "a row", at="end")
    picture.cells(left, 302, row_sectors, 1, (wide, 22),
                  lambda column, _: "blue-pale" if column < together else "empty", gap=2)
    picture.bracket(left, 328, wide * together, f"{together} sectors, {_LANES * _BYTES} bytes, all used")
    picture.lines(14, 376, [f"The other {together} sectors are the next load of the same lanes.",
                            "A sector is 32 bytes, the least that memory moves.",
                            "A row is 64 numbers of fp16: 4 sectors, one cache line."], size=13, color="note")
    return picture


def four_keys_a_load() -> Drawing:
    lanes, keys, elements = (constant(_VECTORS, name) for name in ("lanes_per_key", "keys_per_load", "elements"))
    colors = ["blue", "orange", "green", "purple"]
    picture = Drawing(306, "Which lane reads what in the rung vectors",
                      f"Each of {keys} rows of K, {elements} numbers long, is read by {lanes} lanes, 16 bytes a lane: "
                      f"lanes 0 to {lanes - 1} the first row, and so on. One load of the warp brings all {keys} rows.")
    picture.text(12, 24, "One load of K by a warp", size=15, bold=True)
    picture.text(64, 50, "key", at="end", color="note")
    picture.text(232, 50, f"{elements} numbers, 128 bytes, one cache line", at="middle", color="note", size=12.5)
    for key in range(keys):
        y = 58 + 34 * key
        picture.text(64, y + 18, f"j + {key}" if key else "j", at="end")
        picture.cells(76, y, lanes, 1, (39, 28), f"{colors[key]}-pale",
                      lambda column, _: str(key * lanes + column))
    picture.text(232, 212, "in each box: the lane that reads it", at="middle", color="note")
    picture.text(12, 246, f"A lane: {elements // lanes} numbers, 16 bytes, one instruction.")
    picture.text(12, 268, f"The warp: {keys} keys, {32 * 16} bytes, {32 * 16 // _SECTOR} sectors, all used.")
    picture.text(12, 290, f"{lanes} lanes share a dot product.")
    return picture


def a_sum_by_shuffles() -> Drawing:
    lanes = constant(_VECTORS, "lanes_per_key")
    distances = [1 << step for step in range(lanes.bit_length() - 1)]
    have = [[1 << lane for lane in range(lanes)]]
    for distance in distances:
        have.append([one + have[-1][lane ^ distance] for lane, one in enumerate(have[-1])])
    picture = Drawing(112 + 82 * len(distances), "Eight lanes add up their numbers with three shuffles",
                      f"Each lane begins with a number. In each step a lane adds the number of the lane at distance "
                      f"{', '.join(map(str, distances))}. After {len(distances)} steps every lane has the sum of all.")
    picture.text(70, 24, "lane", at="end", color="note")
    picture.text(70, 53, "begins", at="end", size=12.5)
    for lane in range(lanes):
        picture.text(98 + 38 * lane, 24, str(lane), at="middle", color="note")
    for step, sums in enumerate(have):
        y = 34 + 82 * step
        picture.cells(79, y, lanes, 1, (38, 28), "blue" if step == len(distances) else "blue-pale",
                      lambda column, _: str(sums[column]))
        if step:
            picture.text(70, y - 24, "distance", at="end", size=12.5)
            picture.text(70, y - 8, str(distances[step - 1]), at="end", bold=True)
            for lane in range(lanes):
                x, other = 98 + 38 * lane, 98 + 38 * (lane ^ distances[step - 1])
                picture.arrow((other, y - 53), (x + (4 if other > x else -4), y - 1), color="orange", width=1)
                picture.line((x, y - 53), (x, y - 6), color="line")
    picture.lines(12, picture.height - 32, ["Orange: a shuffle brings another lane's number.",
                                            "Grey: the lane's own, which is added to it."], color="note", size=12.5)
    return picture
