"""12_variants: a window's tiles, where the rows of a head lie, a sink's share of a row, packed tiles in a list, and the
lists of a block mask."""

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


def packed() -> Drawing:
    """Three documents one behind the other, and the list of their tiles of two rows."""
    documents = [("A", 5, "blue"), ("B", 1, "orange"), ("C", 3, "green")]
    picture = Drawing(250, "Packed sequences and the list of their tiles", "Three documents of five, one and three "
                      "tokens lie one behind the other. In tiles of two rows they have three, one and two tiles. The "
                      "list has the three tiles of the longest document first, then the two of the second longest, "
                      "then the last one. One tile of each document is half empty.")
    left, size, row = 20.0, 38.0, 0
    picture.text(14, 26, "[total, H, D]: nine rows", bold=True)
    for name, length, color in documents:
        picture.text(left + row * size, 92, str(row), color="note")
        for token in range(length):
            picture.box(left + row * size, 40, size - 3, 34, color, f"{name}{token}", pale=True)
            row += 1
    picture.text(left + row * size - 6, 92, str(row), color="note")
    picture.text(380, 26, "below: cu_seqlens", color="note", at="end")
    picture.text(14, 132, "The list: tiles of two rows, longest document first", bold=True)
    place = 0
    for name, length, color in sorted(documents, key=lambda document: -document[1]):
        for first in range(0, length, 2):
            x = left + place * (size + 12)
            for token in (first, first + 1):
                there = token < length
                picture.box(x, 146 + (token - first) * 36, size - 3, 33, color if there else "empty",
                            f"{name}{token}" if there else "", pale=there)
            picture.text(x + (size - 3) / 2, 236, str(place), color="note", at="middle")
            place += 1
    return picture


def padding() -> Drawing:
    """The same documents in a tensor with a batch axis."""
    documents = [("A", 5, "blue"), ("B", 1, "orange"), ("C", 3, "green")]
    picture = Drawing(190, "What padding is", "Three documents of five, one and three tokens in a tensor of three "
                      "rows of five places. Six of the fifteen places are padding.")
    longest, left, size = max(length for _, length, _ in documents), 20.0, 46.0
    missing = sum(longest - length for _, length, _ in documents)
    picture.text(14, 26, f"[B, H, N, D]: {len(documents) * longest} places, {missing} of them padding", bold=True)
    for place, (name, length, color) in enumerate(documents):
        for token in range(longest):
            there = token < length
            picture.box(left + token * size, 40 + place * 48, size - 4, 40, color if there else "empty",
                        f"{name}{token}" if there else "", pale=there, dashed=not there)
        words = f"{length} of {longest}"
        picture.text(left + longest * size + 14, 40 + place * 48 + 25, words, color="note")
    return picture


def end_of_a_box() -> Drawing:
    """A whole box and one in which a sequence ends, in the first of two dimensions for the rows."""
    picture = Drawing(226, "Where a box ends", "The first of two dimensions for rows has four places, as many as a box "
                      "has rows. A whole box begins at place 0 and has four rows of the document. The last box has one "
                      "row of it and begins at place 3; its other three rows are outside and come as zeros.")
    rows, left, size = 4, 20.0, 50.0
    for y, title, begin, first in [(60, "a whole box begins at j = 0", 0, 0),
                                   (160, "one row is left: the box begins at j = 3", rows - 1, rows)]:
        picture.text(14, y - 26, title, bold=True)
        picture.line((left + rows * size - 2, y - 18), (left + rows * size - 2, y + 40), color="ink", width=2)
        for j in range(begin + rows):
            inside, boxed = j < rows, j >= begin
            words = "" if not boxed else f"A{first + j - begin}" if inside else "0"
            picture.box(left + j * size, y, size - 4, 34, "blue" if boxed and inside else "empty", words,
                        pale=boxed and inside, dashed=not inside)
            if inside:
                picture.text(left + (j + 0.5) * size - 2, y - 7, str(j), color="note", at="middle")
    picture.text(left + rows * size + 6, 84, "the dimension's end", color="note")
    picture.text(14, 220, "A4 is at j = 3 and i = 1, since 3 + 1 = 4.", color="note")
    return picture


_DOCUMENTS = (10, 3, 11)  # positions of the small block mask, in tiles of 4


def _block_kind(row: int, column: int) -> str:
    """Of a tile of documents, each seen up to a query itself: left out, cut, or seen as a whole."""
    document = [number for number, length in enumerate(_DOCUMENTS) for _ in range(length)]
    part = range(_TILE)
    seen = [document[row * _TILE + i] == document[column * _TILE + j] and column * _TILE + j <= row * _TILE + i
            for i in part for j in part]
    return "blue" if all(seen) else "orange-pale" if any(seen) else "empty"


def blocks() -> Drawing:
    """The tiles of three documents, and the list of each row."""
    tiles = sum(_DOCUMENTS) // _TILE
    kinds = [[_block_kind(row, column) for column in range(tiles)] for row in range(tiles)]
    listed = sum(kind != "empty" for row in kinds for kind in row)
    lengths = ", ".join(map(str, _DOCUMENTS))
    picture = Drawing(326, "A block mask and its lists", f"Documents of {lengths} tokens in tiles of four. A row's "
                      "list has the tiles in which a pair is seen: those from the beginning of its first document to "
                      f"the diagonal. {listed} of {tiles ** 2} tiles are listed. Tiles at the diagonal or at the edge "
                      "of a document are cut, and the list says so.")
    left, top, size = 20.0, 62.0, 32.0
    picture.text(14, 26, f"{listed} of {tiles ** 2} tiles are listed", size=15, bold=True)
    picture.text(left, 52, "keys →", color="note")
    picture.text(left + tiles * size + 24, 52, "each row's list", color="note")
    picture.cells(left, top, tiles, tiles, size, lambda column, row: kinds[row][column], gap=2)
    for row in range(tiles):
        words = ", ".join(str(column) for column in range(tiles) if kinds[row][column] != "empty")
        picture.text(left + tiles * size + 24, top + row * size + 21, words, bold=True)
    y = top + tiles * size + 24
    for x, color, words in [(14, "blue", "whole"), (98, "orange", "cut: has bits"), (232, "empty", "left out")]:
        picture.box(x, y - 12, 16, 16, color, pale=color == "orange")
        picture.text(x + 23, y + 1, words)
    picture.text(14, y + 32, f"Documents of {lengths} tokens, in tiles of {_TILE}.", color="note")
    return picture


def turns() -> Drawing:
    """The same tiles with their turns at adding to dQ, and the list of each column."""
    tiles = sum(_DOCUMENTS) // _TILE
    there = [[_block_kind(row, column) != "empty" for column in range(tiles)] for row in range(tiles)]
    picture = Drawing(312, "Whose turn it is", "The listed tiles, each with its place in the list of its row, from 0. "
                      "Below each column stand the rows of its list.")
    left, top, size = 20.0, 62.0, 40.0
    picture.text(14, 26, "each tile's place in its row", size=15, bold=True)
    picture.text(left, 52, "keys →", color="note")
    for row in range(tiles):
        for column in range(tiles):
            turn = sum(there[row][:column])
            last = there[row][column] and not any(there[row][column + 1:])
            picture.box(left + column * size, top + row * 32, size - 2, 30,
                        "purple" if last else "blue" if there[row][column] else "empty",
                        str(turn) if there[row][column] else "", pale=there[row][column])
    y = top + tiles * 32 + 22
    for column in range(tiles):
        rows = " ".join(str(row) for row in range(tiles) if there[row][column])
        picture.text(left + column * size + size / 2, y, rows, size=12.5, color="note", at="middle")
    picture.text(left + tiles * size + 10, y, "its rows", color="note")
    picture.text(14, y + 26, "Purple: nobody comes after it, and it writes dQ.", color="note")
    return picture


def bits() -> Drawing:
    """The bits of one cut tile, in a word for each query and once more in a word for each key."""
    document = [number for number, length in enumerate(_DOCUMENTS) for _ in range(length)]
    first = _DOCUMENTS[0] // _TILE * _TILE  # the tile on the diagonal in which a document ends
    seen = [[document[first + i] == document[first + j] and j <= i for j in range(_TILE)] for i in range(_TILE)]
    by_query = ["".join("01"[seen[i][j]] for j in range(_TILE)) for i in range(_TILE)]
    by_key = ["".join("01"[seen[i][j]] for i in range(_TILE)) for j in range(_TILE)]
    picture = Drawing(278, "The bits of a cut tile", "A tile of four queries and four keys in which one document ends. "
                      f"By queries its words are {', '.join(by_query)}; by keys {', '.join(by_key)}.")
    left, top, size = 20.0, 62.0, 38.0
    picture.text(14, 26, "one cut tile, and its bits twice", size=15, bold=True)
    picture.text(left, 52, "keys →", color="note")
    picture.cells(left, top, _TILE, _TILE, size, lambda column, row: "blue" if seen[row][column] else "empty", gap=2)
    for i, word in enumerate(by_query):
        picture.text(left + _TILE * size + 14, top + i * size + 22, word, bold=True)
    picture.text(left + _TILE * size + 14, 52, "a word a query: forward", color="note")
    for j, word in enumerate(by_key):
        picture.text(left + j * size + size / 2, top + _TILE * size + 20, word, size=12.5, bold=True, at="middle")
    picture.text(left + _TILE * size + 14, top + _TILE * size + 20, "a word a key: backward", color="note")
    picture.text(14, top + _TILE * size + 50, "0: the query does not see the key.", color="note")
    return picture
