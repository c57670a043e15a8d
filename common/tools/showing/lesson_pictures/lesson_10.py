"""10_hopper: the ring, its phases as time, a descriptor, turns; the backward's products, its time, and dQ's order; a
cluster."""

from tools.showing.lesson_pictures.canvas import Drawing, width_of
from tools.showing.lesson_pictures.constants import constant

_FORWARD, _BACKWARD = "10_hopper/6_pingpong.cu", "10_hopper/16_ordered_backward.cu"
_CHUNKS = 8  # of 16 bytes in a row of 128 bytes


def ring() -> Drawing:
    picture = Drawing(284, "A ring of four places",
                      "Place 0 has tile 4, which has come. Tile 5 is on its way to place 1, where the producer is. "
                      "Place 2 is empty. Consumers read tile 3 in place 3.")
    places = [(156, 28, "place 0", "tile 4", "blue"), (278, 96, "place 1", "tile 5", "orange"),
              (156, 164, "place 2", "empty", "empty"), (34, 96, "place 3", "tile 3", "blue")]
    for x, y, name, what, color in places:
        picture.box(x, y, 88, 48, color, pale=color != "empty")
        picture.text(x + 44, y + 19, name, at="middle", size=12.5, color="note")
        picture.text(x + 44, y + 38, what, at="middle", size=14, bold=True)
    for begin, end in [((246, 54), (300, 93)), ((300, 147), (246, 186)), ((154, 186), (100, 147)),
                       ((100, 93), (154, 54))]:
        picture.arrow(begin, end, color="line")
    picture.text(322, 26, "producer", at="middle", size=15, bold=True)
    picture.text(322, 43, "fills tile 5", at="middle", size=12.5)
    picture.arrow((322, 50), (322, 93))
    picture.text(78, 26, "consumers", at="middle", size=15, bold=True)
    picture.text(78, 43, "read tile 3", at="middle", size=12.5)
    picture.arrow((78, 50), (78, 93))
    picture.text(200, 116, "all go round", at="middle", size=13, color="note")
    picture.text(200, 133, "this way", at="middle", size=13, color="note")
    picture.lines(14, 242, ["The producer waits for empty, then fills a place.",
                            "Consumers wait for full, then read it."], size=13.5, spacing=1.5)
    return picture


def phases() -> Drawing:
    """Copies and readings of a place take turns. Copies end phases of full, readings those of empty."""
    picture = Drawing(400, "Phases of full and empty of one place",
                      "Time runs from left to right. A copy ends a phase of full, and the consumers' last reading ends "
                      "a phase of empty. The producer's first wait returns at once.")
    begin, end, copy, read = 84.0, 392.0, 54.0, 46.0
    times = [begin]  # of changes: copy, read, copy, read, ..
    while times[-1] < end:
        times.append(min(end, times[-1] + (copy if len(times) % 2 else read)))
    copied, was_read = times[1::2], times[2::2]

    def row(y: float, name: str) -> None:
        picture.text(76, y + 19, name, at="end", size=13.5, bold=True)

    for moment in times[1:-1]:
        picture.line((moment, 34), (moment, 330), dashed=True)
    row(40, "the place")
    for number, (left, right) in enumerate(zip(times, times[1:])):
        tile, copies = number // 2 * 2, number % 2 == 0
        picture.box(left, 40, right - left, 28, "orange" if copies else "blue",
                    f"tile {tile}" if right - left > 40 else "", pale=True, size=12.5)
    picture.text(begin, 30, "copied", size=12.5, color="orange")
    picture.text(times[1] + 4, 30, "read", size=12.5, color="blue")

    for y, name, ends in [(88, "full", copied), (128, "empty", was_read)]:
        row(y, name)
        edges = [begin, *[one for one in ends if one < end], end]
        for phase, (left, right) in enumerate(zip(edges, edges[1:])):
            picture.box(left, y, right - left, 28, "purple" if phase % 2 else "green",
                        f"phase {phase}" if right - left > 50 else "", pale=True, size=12.5)
    picture.text(76, 184, "who waits", at="end", size=13.5, bold=True)
    picture.text(76, 200, "and for", at="end", size=12.5, color="note")
    picture.text(76, 216, "which", at="end", size=12.5, color="note")
    picture.text(76, 232, "parity", at="end", size=12.5, color="note")
    waits = [("producer, 1: at once", begin, begin + 8), ("consumers, 0", begin, times[1]),
             ("producer, 0", times[1], times[2]), ("consumers, 1", times[2], times[3]),
             ("producer, 1", times[3], times[4])]
    for step, (words, since, until) in enumerate(waits):
        line = 190.0 + 32 * step
        picture.box(since + 1, line - 12, width_of(words, 12.5) - 4, 16, "page", frame=False)
        picture.text(since + 2, line, words, size=12.5)
        picture.arrow((since, line + 7), (until, line + 7), dashed=step > 0)
    picture.lines(14, 356, ["Green, even: whoever waits for parity 0 waits here.",
                            "Purple, odd: whoever waits for parity 1 waits here."], size=13, color="note",
                  spacing=1.5)
    return picture


def descriptor() -> Drawing:
    picture = Drawing(452, "A descriptor of K",
                      "Of the 64 bits, the low 14 are the address in units of 16 bytes, 14 more the distance of eight "
                      "rows, and the top two the swizzle. Below, the chunks of the first 16 columns in sixteen rows.")
    left, bit = 20.0, 360 / 64
    picture.text(14, 24, "64 bits", size=15, bold=True)
    fields = [(62, 64, "1", "orange"), (46, 62, "", "empty"), (32, 46, "1024 / 16", "green"), (30, 32, "", "empty"),
              (16, 30, "0", "grey"), (14, 16, "", "empty"), (0, 14, "address / 16", "blue")]
    for low, high, words, color in fields:
        picture.box(left + (64 - high) * bit, 36, (high - low) * bit, 28, color, words, pale=color != "empty",
                    size=12.5)
    for low, x in [(62, left + bit), (32, left + 25 * bit), (16, left + 41 * bit), (0, left + 57 * bit)]:
        high = {62: 63, 32: 45, 16: 29, 0: 13}[low]
        picture.text(max(x, 34), 80, f"{high}–{low}", at="middle", size=12.5, color="note")
    picture.text(14, 104, "swizzle", size=13, color="orange")
    picture.text(160, 104, "eight rows on", size=13, color="green", at="middle")
    picture.text(250, 104, "not for K", size=13, color="note", at="middle")
    picture.text(342, 104, "where it begins", size=13, color="blue", at="middle")

    picture.text(14, 140, "K in shared memory", size=15, bold=True)
    x0, y0, wide, tall = 96.0, 168.0, 26.0, 13.0

    def of_step(column: int, row: int) -> str:
        chunk = column ^ row % _CHUNKS
        return {0: "orange", 1: "orange"}.get(chunk, "orange-pale" if chunk in (2, 3) else "empty")

    picture.cells(x0, y0, _CHUNKS, 16, (wide, tall), of_step, gap=1)
    picture.text(x0, 162, "a row: 128 bytes, 64 columns", size=13)
    picture.arrow((58, y0 + 6), (x0 - 2, y0 + 6), color="blue")
    picture.text(54, y0 + 10, "address", at="end", size=12.5, color="blue")
    picture.text(88, y0 + 46, "rows", at="end", size=12.5, color="note")
    picture.text(88, y0 + 62, "0 to 7", at="end", size=12.5, color="note")
    picture.text(88, y0 + 46 + 104, "rows", at="end", size=12.5, color="note")
    picture.text(88, y0 + 62 + 104, "8 to 15", at="end", size=12.5, color="note")
    right = x0 + _CHUNKS * wide + 8
    picture.arrow((right, y0), (right, y0 + 8 * tall), color="green", both=True)
    picture.text(right + 6, y0 + 50, "1024", size=13, color="green")
    picture.text(right + 6, y0 + 66, "bytes", size=13, color="green")
    picture.lines(14, 400, ["Full orange: columns 0 to 15, the first step.",
                            "Pale: columns 16 to 31, the next step, 32 bytes on.",
                            "Chunk c of row r lies in place c XOR r % 8."], size=13, color="note", spacing=1.45)
    return picture


_Bar = tuple[float, float, str]


def _shared(starts: list[float], products: float, exponentials: float, end: float) -> list[list[_Bar]]:
    """Each consumer's bars, if those that need a unit at the same time share it."""
    step = 0.01
    state = [("products", products) for _ in starts]
    began, bars = list(starts), [[] for _ in starts]  # type: list[float], list[list[_Bar]]
    for tick in range(round(end / step)):
        now = tick * step
        using = {what: sum(state[each][0] == what and now >= starts[each] for each in range(len(starts)))
                 for what in ("products", "exponentials")}
        for each, (what, left) in enumerate(state):
            if now < starts[each]:
                continue
            left -= step / using[what]
            if left <= 1e-9:
                bars[each].append((began[each], now + step, what))
                other = "exponentials" if what == "products" else "products"
                state[each], began[each] = (other, exponentials if other == "exponentials" else products), now + step
            else:
                state[each] = (what, left)
    for each, (what, _) in enumerate(state):
        bars[each].append((began[each], end, what))
    return bars


def _in_turn(consumers: int, products: float, exponentials: float, end: float) -> list[list[_Bar]]:
    """The same with turns: products of one consumer after those of another, always in the same order."""
    bars: list[list[_Bar]] = [[] for _ in range(consumers)]
    free, ready = 0.0, [0.0] * consumers
    while free < end:
        for each in range(consumers):
            begin = max(free, ready[each])
            if begin > ready[each]:
                bars[each].append((ready[each], begin, "wait"))
            bars[each] += [(begin, begin + products, "products"),
                           (begin + products, begin + products + exponentials, "exponentials")]
            free, ready[each] = begin + products, begin + products + exponentials
    return [[(left, min(right, end), what) for left, right, what in one if left < end] for one in bars]


def turns() -> Drawing:
    consumers = constant(_FORWARD, "consumers")
    picture = Drawing(380, "Consumers without turns and with turns",
                      "Without turns, consumers share the tensor cores and then all exponentiate, while the tensor "
                      "cores stand idle. With turns, one multiplies while others exponentiate, and the tensor cores "
                      "always have work.")
    left, unit, end = 96.0, 12.0, 24.0
    drawn = {"Without turns": _shared([0.0, 0.4, 0.8], 3.0, 3.0, end), "With turns": _in_turn(consumers, 3.0, 3.0, end)}
    y = 12.0
    for title, bars in drawn.items():
        picture.text(14, y + 16, title, size=15, bold=True)
        y += 28
        for each, own in enumerate(bars):
            picture.text(88, y + 17, f"consumer {each}", at="end", size=12.5)
            for begin, stop, what in own:
                color = {"products": "blue", "exponentials": "orange", "wait": "none"}[what]
                picture.box(left + begin * unit, y, (stop - begin) * unit, 24, color, pale=what == "exponentials",
                            dashed=what == "wait")
            y += 29
        busy = [(begin, stop) for own in bars for begin, stop, what in own if what == "products"]
        picture.text(88, y + 13, "tensor cores", at="end", size=12.5, color="note")
        picture.box(left, y + 2, end * unit, 14, "empty")
        for begin, stop in busy:
            picture.box(left + begin * unit, y + 2, (stop - begin) * unit, 14, "blue", frame=False)
        y += 44
    picture.line((left, y - 14), (left + end * unit, y - 14))
    picture.arrow((left + end * unit - 40, y - 14), (left + end * unit, y - 14), color="line")
    picture.text(left, y + 4, "time", size=12.5, color="note")
    for x, color, words in [(14, "blue", "products"), (122, "orange", "exponentials"),
                            (256, "none", "waits for its turn")]:
        picture.box(x, y + 22, 16, 16, color, pale=color == "orange", dashed=color == "none")
        picture.text(x + 22, y + 35, words, size=13)
    return picture


def five_products() -> Drawing:
    picture = Drawing(392, "The five products of a tile",
                      "K and V stay. Q and dO pass by. Sᵀ and dPᵀ come from them, and Pᵀ and dSᵀ feed dV and dK from "
                      "registers. dSᵀ also goes to shared memory, for dQ.")

    def box(x: float, y: float, wide: float, words: str, color: str, full: bool = False) -> None:
        picture.box(x, y, wide, 32, color, words, pale=not full and color != "empty", size=13.5)

    picture.text(14, 24, "pass by", size=13, color="orange", bold=True)
    box(150, 10, 46, "Q", "orange")
    box(300, 10, 46, "dO", "orange")
    picture.text(14, 92, "stay", size=13, color="blue", bold=True)
    box(54, 74, 36, "K", "blue")
    box(208, 74, 36, "V", "blue")
    box(116, 74, 82, "Sᵀ = K Qᵀ", "empty")
    box(268, 74, 110, "dPᵀ = V dOᵀ", "empty")
    picture.arrow((172, 43), (172, 72))
    picture.arrow((323, 43), (323, 72))
    picture.arrow((92, 90), (114, 90))
    picture.arrow((246, 90), (266, 90))

    picture.text(14, 150, "registers", size=13, color="note", bold=True)
    box(102, 130, 118, "Pᵀ = e^(Sᵀ − LSE)", "empty")
    box(238, 130, 148, "dSᵀ = Pᵀ ∘ (dPᵀ − δ)", "empty")
    picture.arrow((158, 107), (158, 128))
    picture.arrow((323, 107), (323, 128))
    picture.arrow((221, 146), (236, 146))

    box(102, 196, 118, "dV += Pᵀ dO", "blue")
    box(238, 196, 106, "dK += dSᵀ Q", "blue")
    picture.arrow((158, 163), (158, 194))
    picture.arrow((286, 163), (286, 194))
    picture.text(14, 216, "stay", size=13, color="blue", bold=True)

    picture.arrow((366, 163), (366, 262))
    box(238, 264, 148, "dS of both consumers", "grey")
    picture.text(14, 284, "shared memory", size=13, color="note", bold=True)
    picture.arrow((312, 297), (312, 322))
    box(238, 324, 148, "dQᵀ = Kᵀ dSᵀ", "orange")
    picture.text(14, 338, "leaves, and is added to what", size=13, color="orange", bold=True)
    picture.text(14, 355, "other blocks have added", size=13, color="orange", bold=True)
    picture.text(14, 382, "A block owns 128 keys. A consumer has 64 of them.", size=13, color="note")
    return picture


def backward_time() -> Drawing:
    picture = Drawing(250, "A tile of the backward as time",
                      "Both consumers: S and dP, then P and dS, then dV. They wait for each other at a barrier, and go "
                      "on with dQ and dK. Another warp brings dQ to memory meanwhile.")
    left = 84.0
    parts: list[tuple[str, float, str, bool]] = [
        ("S dP", 52, "blue", False), ("P dS", 56, "orange", True), ("dV", 32, "blue", False), ("dQ", 32, "blue", False),
        ("dK", 34, "blue", False)]
    ends: list[float] = []
    for each, (y, late) in enumerate([(30.0, 0.0), (66.0, 12.0)]):
        picture.text(76, y + 19, f"consumer {each}", at="end", size=12.5)
        x = left
        for name, wide, color, pale in parts:
            if name == "P dS":
                wide = wide + late - 4  # one takes a little longer
            if name == "dQ":  # the barrier
                if x < left + 152:
                    picture.box(x, y, left + 152 - x, 28, "none", dashed=True)
                x = left + 152
            picture.box(x, y, wide, 28, color, name, pale=pale, size=12.5)
            x += wide
            if name == "dQ":
                ends.append(x)
        picture.box(x, y, 52, 28, "blue", "S dP", size=12.5)
        picture.box(x + 52, y, 392 - x - 52, 28, "orange", "", pale=True)
    picture.line((left + 152, 20), (left + 152, 104), color="purple", width=2)
    picture.text(left + 152, 14, "barrier: dS is there", at="middle", size=12.5, color="purple")
    picture.text(76, 118, "warps of", at="end", size=12.5)
    picture.text(76, 133, "dQ", at="end", size=12.5)
    picture.box(left, 110, 60, 28, "green", "", pale=True)
    picture.text(left + 30, 128, "dQ before", at="middle", size=12.3)
    picture.box(ends[0] + 4, 110, 392 - ends[0] - 4, 28, "green", "dQ to memory", pale=True, size=12.5)
    picture.arrow((ends[0], 60), (ends[0] + 4, 108))
    picture.arrow((left, 156), (392, 156), color="line")
    picture.text(left, 172, "time", size=12.5, color="note")
    for column, line, color, pale, words in [(14, 186, "blue", False, "tensor cores"),
                                             (134, 186, "orange", True, "exponentials, dS to shared memory"),
                                             (14, 214, "green", True, "bulk reduction"),
                                             (134, 214, "none", False, "waits at the barrier")]:
        picture.box(column, line, 16, 16, color, pale=pale, dashed=color == "none")
        picture.text(column + 22, line + 13, words, size=13)
    return picture


def _steps(blocks: int, tiles: int, tiles_of_a_block: int, from_the_end: bool
           ) -> tuple[dict[tuple[int, int], int], int]:
    """({(block, tile): the step in which it adds}, steps in which blocks wait), if all start together."""
    at: dict[tuple[int, int], int] = {}
    waited = 0
    for block in range(blocks):
        first = block * tiles_of_a_block
        order = range(tiles - 1, first - 1, -1) if from_the_end else range(first, tiles)
        free = 0
        for tile in order:
            begin = max(free, at.get((block - 1, tile), -1) + 1)
            waited += begin - free
            at[block, tile], free = begin, begin + 1
    return at, waited


def dq_order() -> Drawing:
    keys = constant("10_hopper/16_ordered_backward.cu", "consumers") * 64
    queries, length = 64, 512
    blocks, tiles = length // keys, length // queries
    cell, high, left = 34.0, 26.0, 84.0
    picture = Drawing(410, "When each block adds its part of dQ",
                      "From the first tile on, blocks wait longer and longer for the block before. From the last tile "
                      "on, each is one step behind.")
    y = 10.0
    for title, from_the_end in [("From the first tile on", False), ("From the last tile on", True)]:
        at, waited = _steps(blocks, tiles, keys // queries, from_the_end)
        last = max(at.values())
        picture.text(14, y + 14, title, size=15, bold=True)
        picture.text(left, y + 38, "tile of dQ", size=12.5, color="note", at="end")
        for tile in range(tiles):
            picture.text(left + 4 + (tile + 0.5) * cell, y + 38, str(tile), at="middle", size=12.5, color="note")
        for block in range(blocks):
            row = y + 46 + block * high
            picture.text(left - 4, row + 18, f"block {block}", at="end", size=13)
            for tile in range(tiles):
                step = at.get((block, tile))
                if step is not None:
                    late = step - (tiles - 1 - tile if from_the_end else tile - block * keys // queries)
                    picture.box(left + 4 + tile * cell + 0.5, row + 0.5, cell - 1, high - 1,
                                "orange" if late else "blue", str(step), pale=True, size=13.5)
        picture.text(14, y + 46 + blocks * high + 20,
                     f"Last step: {last}. Blocks wait for {waited} steps in all.", size=13.5)
        y += 190
    picture.text(14, 396, "Orange: later than it would be if nobody waited.", size=13, color="note")
    return picture


def cluster() -> Drawing:
    picture = Drawing(300, "A cluster shares a tile of K",
                      "The L2 cache has a tile of K. Block 0 copies its first half and block 1 its second half, and "
                      "each half goes to the shared memory of both blocks. A place is empty when the consumers of both "
                      "have read it.")
    picture.text(200, 24, "L2 cache: a tile of K", at="middle", size=15, bold=True)
    halves = [(118.0, "first half", "blue", 0), (202.0, "second half", "orange", 1)]
    for x, words, color, _ in halves:
        picture.box(x, 34, 80, 30, color, words, pale=True, size=12.5)
    for block, left in enumerate((14.0, 226.0)):
        picture.box(left, 118, 160, 126, "empty")
        for x, words, color, half in halves:
            picture.box(left + 8 + 74 * half, 126, 70, 30, color, words, pale=True, size=12.3)
            picture.arrow((x + 40 + 8 * (2 * block - 1), 65), (left + 43 + 74 * half, 124), color=color)
        picture.text(left + 80, 176, f"block {block}", at="middle", size=13.5, bold=True)
        picture.text(left + 80, 194, f"copies the {('first', 'second')[block]} half", at="middle", size=12.5)
        picture.text(left + 80, 212, "its consumers read both", at="middle", size=12.5)
        picture.text(left + 80, 230, "and tell both blocks: empty", at="middle", size=12.5)
    picture.arrow((176, 226), (224, 226), color="green", both=True)
    picture.lines(14, 266, ["Without a cluster each block copies the whole tile,",
                            "so it leaves the L2 cache twice."], size=13, color="note", spacing=1.5)
    return picture
