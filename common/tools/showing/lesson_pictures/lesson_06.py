"""06_flashattn2_fwd: a fragment by lane, the swizzle, copies that do not wait, and the lazy reference."""

from functools import partial

from tools.showing.lesson_pictures.canvas import Drawing
from tools.showing.lesson_pictures.constants import constant


def fragments() -> Drawing:
    lane = 6
    g, t = lane // 4, lane % 4
    picture = Drawing(360, "A product's result is the next product's operand",
                      f"Lane {lane} has rows {g} and {g + 8}, columns {2 * t}, {2 * t + 1} and {2 * t + 8}, "
                      f"{2 * t + 9} of two C fragments side by side, and the same of an A fragment.")
    # which register: of C by row and fragment, of A by row and half (device/mma.h)
    colors = {(g, 0): "blue", (g + 8, 0): "orange", (g, 1): "green", (g + 8, 1): "purple"}

    cell, top = 10.2, 92.0
    for left, title, note in [(34.0, "S: two C fragments", "fp32, from Q Kᵀ"),
                              (226.0, "P: an A fragment", "fp16, for P V")]:
        picture.text(left, 28, title, size=14, bold=True)
        picture.text(left, 46, note, color="note")
        picture.box(left, top, 16 * cell, 16 * cell)
        for place in range(1, 16):
            picture.line((left + cell * place, top), (left + cell * place, top + cell * 16), width=0.6)
            picture.line((left, top + cell * place), (left + cell * 16, top + cell * place), width=0.6)
        for (row, half), color in colors.items():
            picture.box(left + cell * (8 * half + 2 * t), top + cell * row, 2 * cell, cell, color, frame=False)
        for column in (0, 2 * t, 2 * t + 8):
            picture.text(left + cell * (column + (1 if column else 0.5)), top - 6, str(column), at="middle", size=12.5,
                         color="note")
    picture.line((34 + cell * 8, top - 20), (34 + cell * 8, top + cell * 16 + 4), color="ink", width=1.6)
    for row in (g, g + 8):
        picture.text(28, top + cell * (row + 1), str(row), at="end", size=12.5, color="note")
    picture.arrow((201, top + cell * 8), (221, top + cell * 8))
    y = top + cell * 16 + 26
    picture.text(34, y, f"Lane {lane} is g = {g}, t = {t}:", bold=True)
    for place, (color, of_c, of_a) in enumerate([("blue", "c0, c1 of the left one", "a0"),
                                                 ("orange", "c2, c3 of the left one", "a1"),
                                                 ("green", "c0, c1 of the right one", "a2"),
                                                 ("purple", "c2, c3 of the right one", "a3")]):
        line = y + 18 + 15.5 * place
        picture.box(34, line - 9, 11, 11, color, frame=False)
        picture.text(52, line, of_c, size=12.5)
        picture.arrow((204, line - 4), (222, line - 4), width=1.1)
        picture.text(230, line, of_a, size=12.5)
    return picture


def _marked(chunks: list[int], place: int, _: int) -> str:
    return "empty" if chunks[place] else "orange"


def _named(chunks: list[int], place: int, _: int) -> str:
    return str(chunks[place])


def swizzle() -> Drawing:
    picture = Drawing(322, "The swizzle",
                      "Without it chunk 0 of eight rows lies in place 0, in the same four banks: eight "
                      "wavefronts. With it "
                      "chunk c of row r lies in place c xor r, so chunk 0 lies in eight places: one wavefront.")
    cell, top = 20.5, 84.0
    for left, title, turned in [(36.0, "as they come", False), (222.0, "swizzled", True)]:
        picture.text(left, 28, title, size=15, bold=True)
        picture.text(left, 52, "place", color="note", size=12.5)
        for place in range(8):
            picture.text(left + cell * (place + 0.5), 74, str(place), at="middle", size=12.5, color="note")

        chunks = [[place ^ row if turned else place for place in range(8)] for row in range(8)]
        for row, line in enumerate(chunks):
            picture.cells(left, top + cell * row, 8, 1, cell, partial(_marked, line), partial(_named, line), font=12.5)
    for row in range(8):
        picture.text(26, top + cell * (row + 0.5) + 5, str(row), at="end", size=12.5, color="note")
    picture.text(14, 74, "row", size=12.5, color="note", at="start")
    bottom = top + 8 * cell
    picture.text(36, bottom + 22, "4 banks: 8 wavefronts", size=12.5, bold=True)
    picture.text(222, bottom + 22, "32 banks: 1 wavefront", size=12.5, bold=True)
    picture.lines(14, bottom + 46, ["The number in a cell is its chunk: 8 numbers, 16 bytes.",
                                    "A place is four banks."], color="note")
    return picture


def pipeline() -> Drawing:
    picture = Drawing(338, "Copies that do not wait",
                      "Above, a tile is copied, then computed on, then the next one is copied. Below, "
                      "with two buffers, "
                      "the copy of the next tile runs while this one is computed on, with one barrier a tile.")
    left, copy, compute, high = 92.0, 46.0, 52.0, 26.0

    def rows(y: float, title: str, names: tuple[str, ...]) -> None:
        picture.text(14, y, title, size=15, bold=True)
        for place, name in enumerate(names):
            picture.text(14, y + 34 + place * (high + 6), name)

    rows(28, "swizzle: copy, then compute", ("copies", "products"))
    x = left
    for tile in range(3):
        picture.box(x, 44, copy, high, "orange", str(tile), size=14)
        picture.line((x + copy + 1.5, 40), (x + copy + 1.5, 108), color="ink", width=2)
        picture.box(x + copy + 3, 44 + high + 6, compute - 3, high, "blue", str(tile), size=14)
        picture.line((x + copy + compute + 1.5, 40), (x + copy + compute + 1.5, 108), color="ink", width=2)
        x += copy + compute + 3
    picture.text(14, 130, "Two barriers a tile. While copies run, no product does.", color="note", size=12.5)
    picture.line((14, 146), (386, 146))

    y = 172.0
    rows(y, "pipeline: copy beside compute", ("buffer 0", "buffer 1", "products"))
    x = left
    for tile in range(5):
        start = x if tile == 0 else x + 3
        wide = copy - (3 if tile else 0)
        picture.box(start, y + 16 + tile % 2 * (high + 6), wide, high, "orange", str(tile), size=14)
        if tile:
            picture.box(x + 3, y + 16 + 2 * (high + 6), compute - 3, high, "blue", str(tile - 1), size=14)
        x += copy + 1 if tile == 0 else compute + 1
        if tile < 4:
            picture.line((x + 0.5, y + 12), (x + 0.5, y + 16 + 3 * (high + 6)), color="ink", width=2)
    picture.text(14, y + 132, "One barrier a tile: the tile has arrived, and all are", color="note", size=12.5)
    picture.text(14, y + 149, "done with the buffer that is filled next.", color="note", size=12.5)
    return picture


def reference() -> Drawing:
    start, headroom = (constant("06_flashattn2_fwd/6_lazy.cu", name) for name in ("start", "headroom"))
    picture = Drawing(332, "How much room P has in fp16",
                      "fp16 keeps all its bits from 2 to the -14 to 2 to the 16. With the maximum as reference P is at "
                      f"most 1. With the lazy reference the first tile's heaviest key has 2 to the {start}, and P may "
                      f"grow to 2 to the {headroom}.")

    def at(power: float) -> float:
        return 22 + (power + 25) * 356 / 41

    picture.text(14, 28, "fp16, by powers of two", size=15, bold=True)
    picture.box(at(-25), 42, at(-14) - at(-25), 26, "grey", "loses bits", pale=True)
    picture.box(at(-14), 42, at(16) - at(-14), 26, "blue", "all 11 bits", pale=True)
    for power, words in [(-25, "2⁻²⁵"), (-14, "2⁻¹⁴"), (0, "1"), (start, "2⁷"), (16, "2¹⁶")]:
        picture.line((at(power), 68), (at(power), 74), color="ink")
        picture.text(at(power), 88, words, at="middle", size=13)
        picture.line((at(power), 94), (at(power), 296), width=0.7, dashed=True)

    picture.text(14, 122, "m = the maximum: P is at most 1", size=14, bold=True)
    picture.box(at(-14), 134, at(0) - at(-14), 26, "blue", "all bits: 2¹⁴ lighter", size=12.5)
    picture.box(at(0), 134, at(16) - at(0), 26, "none", "never used", dashed=True)

    picture.text(14, 198, "lazy: the first tile's maximum gets P = 2⁷", size=14, bold=True)
    picture.box(at(-14), 210, at(start) - at(-14), 26, "blue", "all bits: 2²¹ lighter", size=12.5)
    picture.box(at(start), 210, at(headroom) - at(start), 26, "green", "room: 2⁸", size=12.5)
    picture.arrow((at(headroom), 262), (at(headroom), 239))
    picture.text(at(headroom) + 6, 278, "m must move", at="end")
    picture.text(14, 318, "Until a P passes 2¹⁵, nothing is rescaled.", color="note", size=12.5)
    return picture
