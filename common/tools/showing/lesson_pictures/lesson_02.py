"""02_coalescing: lanes onto sectors before and after, a sum by shuffles, and who owns what."""

from tools.showing.lesson_pictures.canvas import Drawing

_LANES, _SECTOR, _D, _BYTES = 32, 32, 64, 2  # of a warp; bytes of a sector; numbers of a row, and bytes of one


def lanes_on_sectors() -> Drawing:
    row_sectors = _D * _BYTES // _SECTOR
    together = _LANES * _BYTES // _SECTOR
    picture = Drawing(420, "One load of a warp, before and after",
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
