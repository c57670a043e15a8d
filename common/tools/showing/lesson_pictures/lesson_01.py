"""01_naive: attention in one example, who makes which number, what a load costs, and where a kernel runs."""

import math

from tools.base import RESULTS
from tools.record import THE_BOOKS, Quantities, Record
from tools.showing.lesson_pictures.canvas import Drawing
from tools.showing.lesson_pictures.constants import constant

_KERNEL = "01_naive/attention.cu"
_QUERY, _KEYS, _VALUES = (2, 0, 1, 1), ((1, 0, 0, 0), (1, 1, 1, 1), (0, 2, 0, 0)), (10, 20, 30)


def one_query() -> Drawing:
    products = [sum(q * k for q, k in zip(_QUERY, key)) for key in _KEYS]
    scores = [product / math.sqrt(len(_QUERY)) for product in products]
    weights = [math.exp(score) / sum(map(math.exp, scores)) for score in scores]
    result = sum(weight * value for weight, value in zip(weights, _VALUES))
    picture = Drawing(276, "Attention with one query and three keys",
                      f"The query is multiplied with each of three keys: the dot products are {products}. Divided by "
                      f"2 they are the scores. Softmax makes weights of them, {[round(one, 3) for one in weights]}, "
                      f"and the weighted mean of the values 10, 20 and 30 is {result:.2f}.")
    picture.text(12, 43, "query q", bold=True)
    picture.cells(76, 26, 4, 1, 26, "blue-pale", lambda column, _: str(_QUERY[column]))
    for x, words in [(128, "keys"), (204, "q · k"), (250, "÷ √4"), (302, "weight"), (366, "value")]:
        picture.text(x, 84, words, at="middle", color="note", size=12.5)
    for number, key in enumerate(_KEYS):
        y = 94 + 36 * number
        picture.text(12, y + 18, f"key {number + 1}", bold=True)
        picture.cells(76, y, 4, 1, 26, "empty", lambda column, _: str(key[column]))
        picture.text(204, y + 18, str(products[number]), at="middle")
        picture.text(250, y + 18, f"{scores[number]:g}", at="middle", bold=True)
        picture.box(276, y + 3, 52, 21, "empty", frame=False)
        picture.box(276, y + 3, 52 * weights[number], 21, "orange", pale=True)
        picture.text(302, y + 18, f"{weights[number]:.3f}", at="middle", size=12.5)
        picture.box(348, y, 36, 26, "green", str(_VALUES[number]), pale=True)
    picture.line((12, 212), (388, 212))
    picture.text(200, 236, " + ".join(f"{weight:.3f} · {value}" for weight, value in zip(weights, _VALUES)),
                 at="middle", size=14)
    picture.text(200, 260, f"= {result:.2f}, the result for this query", at="middle", size=15, bold=True)
    return picture


def a_number_for_each_thread() -> Drawing:
    tile = constant(_KERNEL, "tile")
    picture = Drawing(392, "Which thread makes which number of S",
                      f"The matrix S is cut into tiles of {tile} by {tile} numbers. A thread block makes a tile, and a "
                      "warp a line of it: a column in the rung naive, a row in the rung swapped.")
    picture.text(12, 24, "S: a row for each query, a column for each key", size=14, bold=True)
    picture.cells(92, 50, 6, 6, (19, 19), lambda column, row: "blue" if (column, row) == (3, 1) else "empty")
    picture.text(149, 44, "keys j", at="middle", color="note")
    picture.text(84, 110, "queries i", at="end", color="note")
    picture.lines(222, 54, ["A thread block", f"makes {tile} × {tile} numbers,", "one with each of its",
                            f"{tile * tile:,} threads."])
    picture.line((149, 89), (30, 214), color="blue", dashed=True)
    picture.line((168, 89), (370, 214), color="blue", dashed=True)
    for left, name, across in [(30, "naive", False), (230, "swapped", True)]:
        picture.box(left, 214, 140, 112, "blue", pale=True)
        for line in range(8):
            if across:
                picture.box(left + 2, 216 + 13.6 * line, 136, 12.4, "orange" if line == 2 else "empty", frame=line == 2)
            else:
                picture.box(left + 2 + 17 * line, 216, 15.6, 108, "orange" if line == 2 else "empty", frame=line == 2)
        picture.text(left + 70, 346, name, at="middle", size=14, bold=True)
        picture.text(left + 70, 364, f"a warp: {tile} {'keys' if across else 'queries'},", at="middle")
        picture.text(left + 70, 381, f"one {'query' if across else 'key'}", at="middle")
    return picture


def two_loads() -> Drawing:
    picture = Drawing(296, "What the two loads of a multiply-add cost in the rung naive",
                      "Left: the lanes of a warp load the same place of 32 rows of Q, 32 sectors in 32 cache lines, 32 "
                      "wavefronts. Right: all lanes load one number of K, 1 sector, 1 wavefront.")
    picture.text(12, 24, "a number of Q", size=14, bold=True)
    picture.text(236, 24, "a number of K", size=14, bold=True)
    for lane, y in [("lane 0", 38), ("lane 1", 66), ("lane 2", 94), ("lane 31", 146)]:
        picture.text(58, y + 15, lane, at="end")
        picture.cells(84, y, 4, 1, (30, 21), lambda column, _: "orange" if column == 0 else "empty", gap=1.5)
        picture.arrow((62, y + 10), (83, y + 10))
        picture.text(282, y + 15, lane, at="end")
        picture.arrow((286, y + 10), (322, 98 + (y - 92) / 12))
    for x in (44, 99, 268):
        picture.text(x, 135, "⋮", at="middle", size=15)
    picture.cells(324, 88, 2, 1, (30, 21), lambda column, _: "blue" if column == 0 else "empty", gap=1.5)
    picture.text(12, 196, "32 rows: 32 sectors", size=13.5)
    picture.text(12, 216, "in 32 cache lines", size=13.5)
    picture.text(12, 242, "32 wavefronts", size=15, bold=True)
    picture.text(236, 196, "one address:", size=13.5)
    picture.text(236, 216, "1 sector, a broadcast", size=13.5)
    picture.text(236, 242, "1 wavefront", size=15, bold=True)
    picture.text(12, 276, "Both loads bring every lane two bytes.", color="note")
    return picture


def where_a_kernel_runs() -> Drawing:
    gpu = Quantities(Record(RESULTS / THE_BOOKS)).gpu
    processors, l2, dram = gpu("multiprocessors"), gpu("l2_bytes") / 2**20, gpu("dram_bytes") / 2**30
    shared = gpu("shared_bytes_of_multiprocessor") / 2**10
    picture = Drawing(520, "Where a kernel runs",
                      "A launch is a grid of thread blocks, a block is some warps, a warp is 32 lanes. A block goes to "
                      f"one of {processors} multiprocessors, a warp to one of its four schedulers. The multiprocessor "
                      "has a load unit, and shared memory and the L1 cache in one place. All of them share the L2 "
                      "cache and DRAM.")
    picture.text(12, 24, "A launch: a grid", size=14, bold=True)
    picture.cells(12, 34, 5, 4, (30, 24), lambda column, row: "blue" if (column, row) == (3, 1) else "blue-pale", gap=4)
    picture.text(214, 24, "A thread block: warps", size=14, bold=True)
    picture.box(214, 34, 174, 94, "none")
    picture.line((132, 60), (214, 34), color="blue", dashed=True)
    picture.line((132, 82), (214, 128), color="blue", dashed=True)
    for warp in range(4):
        for lane in range(32):
            picture.box(220 + 5.1 * lane, 41 + 21.5 * warp, 4, 16, "orange" if warp == 1 else "blue", frame=False,
                        pale=warp != 1)
    picture.text(214, 148, "a warp: 32 lanes, one", color="note")
    picture.text(214, 165, "instruction for all of them", color="note")
    picture.text(12, 148, "Each block goes to", color="note")
    picture.text(12, 165, "one multiprocessor.", color="note")

    picture.text(12, 200, f"A multiprocessor, one of {processors:g}", size=14, bold=True)
    picture.box(12, 210, 376, 164, "none")
    for number in range(4):
        x = 20 + 91.5 * number
        picture.box(x, 218, 85, 78, "orange", pale=True)
        for line, words in enumerate(["scheduler", "64 KiB of", "registers"]):
            picture.text(x + 42.5, 236 + 18 * line, words, at="middle", size=12.5, bold=line == 0)
        picture.text(x + 42.5, 290, "32 × fp32", at="middle", size=12.5)
    picture.box(20, 304, 360, 26, "grey", "load unit: a wavefront each cycle, 128 bytes", pale=True)
    picture.box(20, 338, 360, 28, "green", f"shared memory ({shared:g} KiB) and L1 cache: 256 KiB", pale=True)
    picture.arrow((200, 374), (200, 398), both=True)
    picture.box(12, 400, 376, 40, "green", f"L2 cache: {l2:.0f} MiB, for all multiprocessors", pale=True, size=14)
    picture.arrow((200, 440), (200, 464), both=True)
    picture.box(12, 466, 376, 40, "green", f"DRAM: {dram:.0f} GiB, CUDA's global memory", pale=True, size=14)
    return picture
