"""09_rope_fused: a rotated pair, where the pairs of a row lie, who reads a row, and a kernel that starts early."""

import math

from tools.showing.lesson_pictures.canvas import Drawing

_DEGREES = 30  # a position, in the example


def rotated_pair() -> Drawing:
    picture = Drawing(282, "A query and a key, turned by their positions", "Left: the query at position 3 is turned by "
                      "90 degrees, the key at position 1 by 30. Right: both two positions further, at 150 and 90 "
                      "degrees. The angle between them is 60 degrees in both.")
    radius, middle = 72.0, 136.0
    picture.text(14, 26, "Both move on by two positions", size=15, bold=True)
    for x, query, key in ((104.0, 3, 1), (294.0, 5, 3)):
        circle = [(x + radius * math.cos(step * math.pi / 36), middle - radius * math.sin(step * math.pi / 36))
                  for step in range(73)]
        picture.line(*circle)
        picture.line((x - radius - 8, middle), (x + radius + 8, middle))
        picture.line((x, middle + radius + 8), (x, middle - radius - 8))
        turned = [_DEGREES * one * math.pi / 180 for one in (key, query)]
        arc = [(x + 0.42 * radius * math.cos(angle), middle - 0.42 * radius * math.sin(angle))
               for angle in (turned[0] + (turned[1] - turned[0]) * step / 12 for step in range(13))]
        picture.area((x, middle), *arc, color="green")
        picture.line(*arc, color="green", width=2)
        half = sum(turned) / 2
        picture.text(x + 0.64 * radius * math.cos(half), middle - 0.64 * radius * math.sin(half) + 5,
                     f"{_DEGREES * (query - key)}°", size=13, color="green", at="middle", bold=True)
        for angle, color, name in ((turned[1], "blue", "q"), (turned[0], "orange", "k")):
            tip = (x + radius * math.cos(angle), middle - radius * math.sin(angle))
            picture.arrow((x, middle), tip, color=color, width=2.6)
            picture.text(x + 1.17 * radius * math.cos(angle) + 6, middle - 1.17 * radius * math.sin(angle) + 5, name,
                         size=16, bold=True, color=color, at="middle")
        picture.text(x, middle + radius + 32, f"q at {query}, k at {key}", size=14, at="middle")
        picture.text(x, middle + radius + 52, f"q · k = {math.cos(turned[1] - turned[0]):.1f}", size=14, at="middle",
                     bold=True)
    picture.arrow((188, 60), (212, 60))
    return picture


def pairs_of_a_row() -> Drawing:
    """D = 64: a row in chunks of 8 numbers, two of which a thread has."""
    head_dim, chunk = 64, 8
    half = head_dim // 2 // chunk  # chunks
    colors = ["blue", "orange", "green", "purple"]
    picture = Drawing(330, "Which numbers of a row make pairs", "A row of 64 numbers in eight chunks. Chunk 0 and "
                      "chunk 4 belong to one thread, chunks 1 and 5 to the next, and so on. Below, element 0 makes a "
                      "pair with element 32, element 1 with element 33, up to 7 and 39.")
    left, wide, top = 20.0, 45.0, 88.0
    picture.text(14, 26, "A row of 64 numbers, 4 threads", size=15, bold=True)
    for thread in range(half):
        x = left + (thread + 0.5) * wide
        y = 46 + 7 * thread
        picture.line((x, top), (x, y), (x + half * wide, y), (x + half * wide, top), color=colors[thread], width=1.6)
    picture.cells(left, top, 2 * half, 1, (wide, 36), lambda column, _: colors[column % half],
                  lambda column, _: f"{column * chunk}..", gap=2, font=12.5)
    picture.text(left, 144, "a box is 8 numbers, 16 bytes; a colour is a thread", size=13, color="note")

    picture.text(14, 184, "The eight pairs of the blue thread", size=15, bold=True)
    cell, upper, lower = 38.0, 198.0, 266.0
    begin = 60.0
    picture.cells(begin, upper, chunk, 1, (cell, 30), "blue-pale", lambda column, _: str(column), gap=2)
    picture.cells(begin, lower, chunk, 1, (cell, 30), "blue-pale", lambda column, _: str(half * chunk + column), gap=2)
    picture.text(begin - 8, upper + 20, "x₁", size=15, at="end", italic=True)
    picture.text(begin - 8, lower + 20, "x₂", size=15, at="end", italic=True)
    for pair in range(chunk):
        x = begin + (pair + 0.5) * cell
        picture.arrow((x, upper + 31), (x, lower - 1), color="blue", both=True)
    picture.text(14, 318, "Element i turns together with element i + D/2.", color="note")
    return picture


def readers() -> Drawing:
    picture = Drawing(330, "How many blocks meet a row", "The staircase twice. Forward: a row of tiles of Q is met by "
                      "one block, a column of K by three. Backward: a column of K is met by one block, a row of Q by "
                      "four.")
    number, size, top = 4, 38.0, 78.0

    def grid(left: float, once: "set[tuple[int, int]]", often: "set[tuple[int, int]]") -> None:
        for row in range(number):
            for column in range(number):
                place = column, row
                x, y, side = left + column * size + 1, top + row * size + 1, size - 2
                if column > row:
                    picture.box(x, y, side, side, dashed=True)
                elif place in once | often:
                    picture.box(x, y, side, side, "green" if place in once else "orange")
                else:
                    picture.box(x, y, side, side, "blue", pale=True)
                if place in once & often:
                    picture.area((x, y), (x + side, y), (x, y + side), color="orange", pale=False)

    row = {(column, 3) for column in range(number)}
    column = {(1, one) for one in range(number)}
    picture.text(14, 26, "Forward", size=15, bold=True)
    picture.text(14, 46, "a block is a row", color="note")
    picture.text(214, 26, "Backward", size=15, bold=True)
    picture.text(214, 46, "a block is a column", color="note")
    for left in (14, 214):
        picture.text(left, 70, "keys →", size=12.5, color="note")
    grid(14, row, column)
    grid(214, column, row)
    y = top + number * size
    picture.lines(14, y + 22, ["Q: one block"], color="green", size=14)
    picture.lines(14, y + 42, ["K: three blocks"], color="orange", size=14)
    picture.lines(214, y + 22, ["K and dK: one block"], color="green", size=14)
    picture.lines(214, y + 42, ["Q: four blocks"], color="orange", size=14)
    picture.lines(14, y + 72, ["Green: turn it on the chip. Orange: turn it once, in", "memory, before the blocks "
                               "read it."], color="note")
    return picture


def dependent_launch() -> Drawing:
    """Not to scale."""
    picture = Drawing(372, "Two kernels, one after the other", "With an ordinary launch attention starts when the "
                      "rotation has ended and all it wrote can be seen; then its blocks start and load Q, V and K. "
                      "With a dependent launch its blocks start earlier and load Q and V, and only K waits.")
    high = 30.0

    def bar(y: float, begin: float, end: float, color: str, words: str, pale: bool = False) -> None:
        picture.box(begin + 1, y, end - begin - 2, high, color, words, pale=pale, size=12.5)

    written = 212.0
    picture.text(14, 26, "An ordinary launch", size=15, bold=True)
    picture.text(14, 60, "rotate")
    picture.text(14, 100, "attention")
    picture.line((written, 36), (written, 114), color="ink", dashed=True)
    bar(40, 84, 150, "blue", "rotate K")
    bar(40, 150, written, "blue", "writes", pale=True)
    bar(80, written, 246, "grey", "start", pale=True)
    bar(80, 246, 302, "green", "Q, V, K", pale=True)
    bar(80, 302, 386, "green", "products")
    picture.lines(written, 132, ["all is written: only now", "may a block start"], color="note", at="middle")

    picture.line((14, 166), (386, 166))
    picture.text(14, 194, "A dependent launch", size=15, bold=True)
    picture.text(14, 228, "rotate")
    picture.text(14, 268, "attention")
    picture.line((written, 204), (written, 282), color="ink", dashed=True)
    bar(208, 84, 150, "blue", "rotate K")
    bar(208, 150, written, "blue", "writes", pale=True)
    bar(248, 150, 182, "grey", "", pale=True)
    bar(248, 182, written, "green", "Q, V", pale=True)
    bar(248, written, 236, "orange", "K", pale=True)
    bar(248, 236, 320, "green", "products")
    picture.lines(written, 300, ["all is written: only now", "may a block read K"], color="note", at="middle")
    picture.arrow((384, 263), (324, 263), color="orange", width=2)
    picture.text(386, 292, "sooner", color="orange", at="end")
    picture.text(14, 356, "Not to scale: what is saved is 1 to 2 µs.", color="note")
    return picture
