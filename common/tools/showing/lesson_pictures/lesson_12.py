"""12_variants: a window's tiles, where the rows of a head lie, and a sink's share of a row."""

import math

from tools.showing.lesson_pictures.canvas import Drawing

_TILE = 4  # rows and keys of the small example
_TILES = 8
_LEFT = 8  # keys before the query's own that it sees


def band() -> Drawing:
    """A window under the diagonal, in tiles of 4 by 4."""
    picture = Drawing(384, "The tiles of a window", "Eight tiles of queries against eight tiles of keys, with a window "
                      "of eight keys before the query's own. The tiles that are computed are a band along the "
                      "diagonal, three wide: the outer two are masked, the middle one is not.")

    def kind(column: int, row: int) -> str:
        first, last = row * _TILE, row * _TILE + _TILE - 1  # queries
        begin, end = column * _TILE, column * _TILE + _TILE - 1  # keys
        if begin > last or end < first - _LEFT:
            return "empty"
        return "orange-pale" if end > first or begin < last - _LEFT else "blue"

    left, top, size = 84.0, 60.0, 32.0
    kinds = [[kind(column, row) for column in range(_TILES)] for row in range(_TILES)]
    computed = sum(name != "empty" for row in kinds for name in row)
    picture.text(14, 26, f"{computed} of {_TILES ** 2} tiles are computed", size=15, bold=True)
    picture.text(left, 50, "keys →", color="note")
    picture.cells(left, top, _TILES, _TILES, size, kind, gap=2)
    for row in range(_TILES):
        picture.text(left - 10, top + row * size + 21, f"block {row}", at="end")
        inner = sum(name != "empty" for name in kinds[row])
        picture.text(left + _TILES * size + 18, top + row * size + 21, str(inner), bold=True)
    # What one query sees: row 22, keys 14 to 22.
    query, unit = 22, size / _TILE
    y = top + (query + 0.5) * unit
    picture.line((left + (query - _LEFT) * unit, y), (left + (query + 1) * unit, y), color="ink", width=3)
    y = top + _TILES * size + 24
    for x, color, words in [(14, "blue", "no mask"), (112, "orange", "masked in part"), (262, "empty", "left out")]:
        picture.box(x, y - 12, 16, 16, color, pale=color == "orange")
        picture.text(x + 23, y + 1, words)
    picture.text(14, y + 30, f"The black line: the {_LEFT + 1} keys that query {query} sees.", color="note")
    return picture


def rows_of_a_head() -> Drawing:
    """Three positions and two heads, in both layouts."""
    picture = Drawing(262, "Where the rows of a head lie", "Six rows of Q in memory. In the layout of the other "
                      "chapters the three rows of head 0 come first. In a model's layout every other row is one of "
                      "head 0.")
    left, size = 20.0, 60.0
    for y, title, order in [(56, "[B, H, N, D]: the other chapters", [(h, i) for h in range(2) for i in range(3)]),
                            (166, "[B, N, H, D]: a model's projection", [(h, i) for i in range(3) for h in range(2)])]:
        picture.text(14, y - 16, title, bold=True)
        for place, (head, position) in enumerate(order):
            picture.box(left + place * size, y, size - 3, 34, "blue" if head == 0 else "grey", f"q{position}",
                        pale=head == 1)
        steps = [place for place, (head, _) in enumerate(order) if head == 0]
        for before, after in zip(steps, steps[1:]):
            a, b = left + (before + 0.5) * size - 1, left + (after + 0.5) * size - 1
            picture.arrow((a, y + 38), (a, y + 50), (b, y + 50), (b, y + 38))
        words = "D elements from row to row" if steps[1] == 1 else "H · D elements from row to row"
        picture.text(left, y + 68, words, color="note")
    picture.text(380, 26, "blue: head 0", color="note", at="end")
    return picture


def sink() -> Drawing:
    """The weights of the example of chapter 05, without and with a sink of 5."""
    scores, sink_score = [1.0, 3.0, 4.0, 2.0], 5.0
    picture = Drawing(250, "A sink takes its share", "Weights of four keys. Without a sink they are 0.03, 0.24, 0.64 "
                      "and 0.09 and add up to 1. With a sink of 5 they are 0.01, 0.09, 0.23 and 0.03, and the sink has "
                      "0.64.")
    high, wide = 150.0, 34.0
    for left, title, terms in [(20.0, "without", scores), (200.0, "with a sink of 5", [*scores, sink_score])]:
        total = sum(math.exp(s) for s in terms)
        picture.text(left, 26, title, bold=True)
        for place, score in enumerate(terms):
            weight = math.exp(score) / total
            x = left + place * wide
            picture.box(x, 200 - high * weight, wide - 6, high * weight, "blue" if place < len(scores) else "purple")
            picture.text(x + (wide - 6) / 2, 194 - high * weight, f"{weight:.2f}", size=12.5, at="middle")
            picture.text(x + (wide - 6) / 2, 216, "sink" if place == len(scores) else f"{score:.0f}", size=12.5,
                         color="note", at="middle")
    picture.text(20, 240, "Below each bar its score. Both rows add up to 1.", color="note")
    return picture
