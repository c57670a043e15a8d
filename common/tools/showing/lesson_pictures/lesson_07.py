"""07_backward: what the softmax does to gradients, which product follows from which, who owns what, turns, and where
fp16 ends."""

import math

from tools.base import RESULTS
from tools.record import THE_BOOKS, Quantities, Record
from tools.showing.lesson_pictures.canvas import Drawing, Point

_P, _DP = (math.exp(1) / (math.exp(1) + math.exp(3)), math.exp(3) / (math.exp(1) + math.exp(3))), (10, 20)
_FIRST, _LAST = -24, 20  # powers of two of dO that were tried


def softmax_backward() -> Drawing:
    """The example's one query and two keys."""
    mean = sum(weight * gradient for weight, gradient in zip(_P, _DP))
    picture = Drawing(330, "The softmax, backwards", "Two bars, as wide as the weights 0.12 and 0.88 and as high as "
                      "dP, 10 and 20. The dashed line is their mean δ, 18.8. dS is the area between a bar's top and "
                      "the line: minus 1.05 for key 1 and plus 1.05 for key 2.")
    left, wide, base, high = 104.0, 270.0, 260.0, 10.0
    widths = [wide * weight for weight in _P]
    line = base - high * mean
    picture.text(14, 26, "A bar's width is P, its height dP", size=15, bold=True)
    picture.box(left, base - high * _DP[0], widths[0], high * _DP[0], "blue", pale=True)
    picture.box(left, line, widths[0], high * (mean - _DP[0]), "orange", pale=True, dashed=True)
    picture.box(left + widths[0], line, widths[1], high * mean, "blue", pale=True)
    picture.box(left + widths[0], base - high * _DP[1], widths[1], high * (_DP[1] - mean), "green")
    picture.line((left - 14, line), (left + wide + 14, line), color="ink", width=1.6, dashed=True)
    picture.text(left + widths[0] + widths[1] / 2, base - high * _DP[1] - 7, f"dS = +{_P[1] * (_DP[1] - mean):.2f}",
                 size=14, bold=True, color="green", at="middle")
    picture.lines(left - 10, line + 40, ["dS =", f"−{_P[0] * (mean - _DP[0]):.2f}"], size=14, color="orange", at="end")
    picture.text(left + widths[0] + widths[1] / 2, line + 20, f"δ = {mean:.1f}, the mean", size=13, at="middle")
    picture.text(left + widths[0] + widths[1] / 2, base - 60, f"dP = {_DP[1]}", size=14, at="middle")
    picture.text(left - 10, base - high * _DP[0] + 36, f"dP = {_DP[0]}", size=14, at="end")
    picture.line((left - 14, base), (left + wide + 14, base), color="ink")
    picture.text(left + widths[0] / 2, base + 18, "key 1", at="middle")
    picture.text(left + widths[0] / 2, base + 34, f"{_P[0]:.2f}", color="note", at="middle")
    picture.text(left + widths[0] + widths[1] / 2, base + 18, "key 2", at="middle")
    picture.text(left + widths[0] + widths[1] / 2, base + 34, f"{_P[1]:.2f}", color="note", at="middle")
    picture.text(left - 24, base + 34, "P =", color="note", at="end")
    picture.text(14, 318, "Both coloured areas are equally large.", color="note")
    return picture


def flow() -> Drawing:
    """The forward from left to right, and below it the backward from right to left."""
    picture = Drawing(352, "Forward, and backward below it", "Forward: Q and K make S, S makes P, P and V make O. "
                      "Backward: dO and V make dP; P and dP make dS; dS makes dQ and dK; P and dO make dV. S, P, dP "
                      "and dS are N by N.")
    high, thin, square = 58.0, 24.0, 58.0
    top, middle, bottom = 58.0, 142.0, 232.0

    def tall(x: float, y: float, name: str, color: str) -> None:
        picture.box(x, y, thin, high, color, name, pale=True, size=12.5, bold=True)

    def whole(x: float, y: float, name: str) -> None:
        picture.box(x, y, square, square, "orange", name, pale=True, size=15, bold=True)

    picture.text(14, 24, "forward", size=14, bold=True)
    picture.arrow((76, 19), (120, 19))
    for x, words in [(137, "Q Kᵀ"), (227, "softmax"), (364, "P V")]:
        picture.text(x, 50, words, size=12.5, color="note", at="middle")
    tall(16, top, "Q", "blue")
    tall(46, top, "K", "blue")
    picture.arrow((74, top + high / 2), (105, top + high / 2))
    whole(108, top, "S")
    picture.arrow((168, top + high / 2), (195, top + high / 2))
    whole(198, top, "P")
    tall(262, top, "V", "blue")
    picture.arrow((290, top + high / 2), (349, top + high / 2))
    tall(352, top, "O", "blue")

    tall(278, middle, "dV", "green")
    picture.arrow((244, top + square + 2), (244, middle + 34), (275, middle + 34))
    picture.arrow((364, bottom - 2), (364, middle + 34), (305, middle + 34))
    picture.text(312, middle + 22, "Pᵀ dO", size=12.5, color="note")

    tall(352, bottom, "dO", "blue")
    picture.arrow((349, bottom + high / 2), (259, bottom + high / 2))
    whole(198, bottom, "dP")
    picture.arrow((195, bottom + high / 2), (169, bottom + high / 2))
    whole(108, bottom, "dS")
    picture.arrow((210, top + square + 2), (210, middle + 34), (137, middle + 34), (137, bottom - 3))
    picture.arrow((105, bottom + high / 2), (73, bottom + high / 2))
    tall(46, bottom, "dK", "green")
    tall(16, bottom, "dQ", "green")
    for x, words in [(227, "dO Vᵀ"), (137, "P∘(dP−δ)"), (43, "dS K, dSᵀ Q")]:
        picture.text(x, bottom + high + 17, words, size=12.5, color="note", at="middle")
    picture.text(386, 336, "backward", size=14, bold=True, at="end")
    picture.arrow((310, 331), (266, 331))
    picture.text(14, 336, "Orange is N × N.", size=13, color="note")
    return picture


def owners() -> Drawing:
    """Two loops, or one."""
    picture = Drawing(474, "Who owns which sum", "Two loops: a block that owns keys walks along the queries and sums "
                      "dK and dV; a block that owns queries walks along the keys and sums dQ. One loop: blocks own "
                      "keys, and each adds its part of dQ to memory.")
    size, number = 30.0, 4
    wide = number * size

    def grid(x: float, y: float, color_of: "dict[tuple[int, int], str]") -> None:
        picture.cells(x, y, number, number, size, lambda column, row: color_of.get((column, row), "empty"), gap=2)

    column = {(1, row): "blue" for row in range(number)}
    picture.text(14, 26, "Two loops: seven products", size=15, bold=True)
    left, other = 74.0, 254.0
    for x in (left, other):
        picture.text(x, 50, "keys →", size=12.5, color="note")
    grid(left, 56, column)
    picture.arrow((left + 1.5 * size, 62), (left + 1.5 * size, 172), color="page", width=2)
    grid(other, 56, {(column, 2): "green" for column in range(number)})
    picture.arrow((other + 6, 56 + 2.5 * size), (other + wide - 4, 56 + 2.5 * size), color="page", width=2)
    picture.lines(left, 194, ["owns keys, sums", "dK and dV"], color="blue")
    picture.lines(other, 194, ["owns queries, sums", "dQ"], color="green")
    picture.text(left - 8, 74, "queries", size=12.5, color="note", at="end")
    picture.arrow((left - 24, 82), (left - 24, 114), color="note")

    picture.line((14, 230), (386, 230))
    picture.text(14, 256, "One loop: five products", size=15, bold=True)
    top = 284.0
    picture.text(left, 278, "keys →", size=12.5, color="note")
    picture.text(left - 8, 302, "queries", size=12.5, color="note", at="end")
    picture.arrow((left - 24, 310), (left - 24, 342), color="note")
    grid(left, top, {**{(one, row): "blue-pale" for one in range(number) for row in range(number)}, **column})
    picture.arrow((left + 1.5 * size, top + 6), (left + 1.5 * size, top + wide - 4), color="page", width=2)
    for row in range(number):
        y = top + (row + 0.5) * size
        picture.arrow((left + wide + 6, y), (262, y), color="green")
        picture.box(266, y - size / 2 + 1, 44, size - 2, "green", "dQ", pale=True, size=13)
    picture.text(230, 278, "parts", size=12.5, color="green", at="middle")
    picture.lines(318, top + 52, ["in memory,", "of all", "blocks"], color="green")
    picture.lines(14, 428, ["Each block of keys sums dK and dV for itself, and adds", "its part of dQ to what other "
                            "blocks have added."], color="note")
    return picture


def turns() -> Drawing:
    """An idealised run: all tiles take as long."""
    picture = Drawing(246, "Turns: who adds to which tile of dQ", "Four blocks of keys go through tiles 0 to 3 of the "
                      "queries. Block 1 waits until block 0 has added to tile 0, block 2 until block 1 has, and so on: "
                      "a staircase.")
    left, top, wide, high, blocks = 96.0, 54.0, 40.0, 34.0, 4
    picture.text(14, 26, "In order: the tile each block adds to", size=15, bold=True)
    for block in range(blocks):
        y = top + block * high
        picture.text(left - 10, y + 21, f"keys {block}", at="end")
        if block:
            picture.box(left + 1, y + 2, block * wide - 2, high - 4, "grey", "waits" if block > 1 else "", pale=True,
                        size=12.5)
        picture.cells(left + block * wide, y + 1, blocks, 1, (wide, high - 2), "blue",
                      lambda column, _: str(column), gap=2, font=14)
    for block in range(1, blocks):
        x = left + block * wide
        picture.arrow((x - 6, top + block * high - 5), (x + 10, top + block * high + 6), color="orange", width=2)
    picture.arrow((left, 204), (386, 204), color="note")
    picture.text(386, 222, "time", color="note", at="end")
    picture.text(14, 222, "Orange: tile 0 is passed on.", color="orange")
    return picture


def loss_scaling() -> Drawing:
    """As the record has it: the error of dQ against the power of two that dO was multiplied with."""
    of = Quantities(Record(RESULTS / THE_BOOKS))
    picture = Drawing(300, "The error of dQ, dO times a power of two", "In fp16 the relative error is 0.0003 from 2 to "
                      "the minus 6 up to 2 to the 12. Below it grows until dQ is zero, above dQ is infinite. In bf16 "
                      "it is 0.0024 everywhere.")
    left, right, top, bottom = 70.0, 380.0, 48.0, 232.0

    def at(exponent: float, error: float) -> Point:
        return (left + (exponent - _FIRST) / (_LAST - _FIRST) * (right - left),
                top + -math.log10(error) / 4 * (bottom - top))

    picture.text(14, 26, "Relative error of dQ", size=15, bold=True)
    for power, label in enumerate(("1", "0.1", "0.01", "0.001", "0.0001")):
        y = top + power / 4 * (bottom - top)
        picture.line((left, y), (right, y))
        picture.text(left - 8, y + 4.5, label, size=12.5, color="note", at="end")
    for exponent, label in ((-24, "2⁻²⁴"), (-12, "2⁻¹²"), (0, "1"), (12, "2¹²")):
        x = at(exponent, 1)[0]
        picture.line((x, bottom), (x, bottom + 5))
        picture.text(x, bottom + 20, label, size=13, color="note", at="middle")
    picture.text((left + right) / 2, bottom + 42, "dO multiplied by", color="note", at="middle")
    for dtype, color in (("bf16", "orange"), ("fp16", "blue")):
        errors = [(exponent, of.scaled_error("07", "dq", exponent, dtype)) for exponent in range(_FIRST, _LAST + 1, 2)]
        points = [at(exponent, error) for exponent, error in errors if math.isfinite(error)]
        picture.line(*points, color=color, width=2.4)
        lost = [exponent for exponent, error in errors if not math.isfinite(error)]
        if lost:
            x = at(min(lost), 1)[0]
            picture.box(x, top, right - x, bottom - top, color, pale=True, frame=False)
            picture.text((x + right) / 2, (top + bottom) / 2 + 6, "∞", size=20, color=color, at="middle")
    bf16 = at(-23, of.scaled_error("07", "dq", 0, "bf16"))
    picture.text(bf16[0], bf16[1] - 7, "bf16", size=14, bold=True, color="orange")
    fp16 = at(3, of.scaled_error("07", "dq", 0))
    picture.text(fp16[0], fp16[1] + 18, "fp16", size=14, bold=True, color="blue", at="middle")
    return picture
