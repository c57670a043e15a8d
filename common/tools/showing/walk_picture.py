"""The picture that moves, of a run that was recorded: online softmax of one query, tile by tile.

It has the score matrix, whose tiles come as the thread blocks work on them, and of one query the scores, the weights,
m, l and O, each a number of the run.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

from tools.base import Failure, JsonObject
from tools.record import Problem, read_label
from tools.showing import walk
from tools.showing.lesson_pictures.film import FADE, Film

SHOWS = ("S", "P", "correction", "m", "l", "O")  # what a kernel has to show of each tile
MOST_TILES = 8  # of a query: more are too many to follow
CLEAR = 0.75  # a correction by this factor or less is seen
PATCHES = 8  # of the matrix along a tile, each as dark as its largest score
SHADES = (0.14, 0.32, 0.58, 0.9)  # of a quarter of the patches each
SCORES, SUMS, RISE, CORRECT, ADD, HIDDEN, END = 1.6, 2.0, 2.0, 2.3, 1.6, 2.1, 2.5  # seconds
M_RISES = 1.0  # so long after the tile has come


@dataclass
class _Tile:
    """Of a query, what the kernel shows when it is done with these keys."""

    keys: tuple[int, int]
    scores: dict[int, float]
    weights: dict[int, float]
    correction: float
    m: float
    l: float  # noqa: E741 the paper's name
    o: list[float]

    @property
    def hidden(self) -> bool:
        return not any(self.weights.values())


@dataclass
class _Row:
    query: int  # of all heads
    block: int
    tiles: list[_Tile] = field(default_factory=list)

    @property
    def seen(self) -> list[_Tile]:
        return [tile for tile in self.tiles if not tile.hidden]


def picture(recorded: JsonObject) -> str:
    """An SVG of what a chapter's program recorded of one step."""
    problem, _ = read_label(recorded["problem"])
    (rung,) = recorded["rungs"]
    step = f"{recorded['chapter'].partition('_')[0]}/{rung['rung']}"
    launch = next((one for one in rung["launches"] if _shows(one) >= set(SHOWS)), None)
    if launch is None:
        raise Failure(f"{step} does not show {', '.join(SHOWS[:-1])} and {SHOWS[-1]}, from which the picture is made: "
                      "take 05", status=2)
    walk.add_tiles(problem, launch)
    rows = _rows(launch)
    row = _to_follow(rows)
    if len(row.tiles) > MOST_TILES:
        keys = row.tiles[0].keys
        raise Failure(f"{problem.seq_k} keys are {len(row.tiles)} tiles: a picture has room for {MOST_TILES}, that is "
                      f"--seq-k={MOST_TILES * (keys[1] - keys[0] + 1)}", status=2)
    return _Scene(step, problem, launch, rows, row).film.svg()


def _shows(launch: JsonObject) -> set[str]:
    return {name for block in launch["blocks"] for step in block["steps"] for name in step.get("watched", {})}


def _rows(launch: JsonObject) -> dict[int, _Row]:
    rows: dict[int, _Row] = {}
    for number, block in enumerate(launch["blocks"]):
        now: dict[int, dict[str, dict[int, float]]] = {}  # of each row, since its O was shown last
        for step in block["steps"]:
            for name, runs in step.get("watched", {}).items():
                for row, column, values in runs:
                    elements = now.setdefault(row, {}).setdefault(name, {})
                    elements.update({column + at: float(value) for at, value in enumerate(values)})
            for row in [row for row, shown in now.items() if "O" in shown and "S" in shown]:
                shown = now.pop(row)
                rows.setdefault(row, _Row(row, number)).tiles.append(_Tile(
                    (min(shown["S"]), max(shown["S"])), shown["S"], shown["P"], shown["correction"][0],
                    shown["m"][0], shown["l"][0], [shown["O"][at] for at in sorted(shown["O"])]))
    return rows


def _to_follow(rows: dict[int, _Row]) -> _Row:
    """Of the queries with most to see, first the tile that is hidden and then corrections, the one whose largest
    correction is the gentlest: what it leaves can be seen."""
    def worth(row: _Row) -> tuple[bool, bool, int, int, float, int]:
        factors = [tile.correction for tile in row.seen[1:]]
        is_cut = bool(factors) and len(row.seen) < len(row.tiles)
        return (bool(row.seen), is_cut, sum(factor <= CLEAR for factor in factors), len(row.seen),
                min(factors, default=0.0), row.query)
    return max(rows.values(), key=worth)


# --- Drawn -----------------------------------------------------------------------------------------------------------

LEFT, TOP, SIZE = 14.0, 92.0, 168.0  # of the matrix
PANEL, WIDE = 204.0, 182.0  # where what belongs to the query begins
FLOOR, HIGH = 160.0, 68.0  # of its scores and weights
MIDDLE, HALF = 221.0, 39.0  # of O
DOTS, DOT = 6.0, 1.4  # from one to the next in a tile that is hidden, and how large


class _Scene:
    def __init__(self, step: str, problem: Problem, launch: JsonObject, rows: dict[int, _Row], row: _Row):
        self.problem, self.launch, self.rows, self.row = problem, launch, rows, row
        self.head = row.query // problem.seq_q
        self.query = row.query % problem.seq_q
        self.begins, self.still, seconds = self._times()
        words = [f"{_n(tile.correction)}" for tile in row.seen[1:] if tile.correction < 1]
        self.film = Film(316, f"Online softmax, as {step} ran",
                         f"Query {self.query} of {problem.seq_q}, whose keys come in {len(row.tiles)} tiles. m is "
                         f"{', then '.join(_n(tile.m) for tile in row.seen)}; whenever it rises, l and O are "
                         f"corrected, here by {' and '.join(words) or 'nothing'}. l is {_n(row.tiles[-1].l)} at the "
                         "end. Tiles that the mask hides are dotted.", seconds, self.still)
        scores = [score for tile in row.seen for score in tile.scores.values() if score > -math.inf]
        self.lowest, self.highest = min(0.0, *scores), max(0.0, *scores)
        self.largest = max(abs(value) for tile in row.tiles for value in tile.o) or 1.0
        self.film.text(LEFT, 25, f"Online softmax, as {step} ran", size=14.5, bold=True)
        self._matrix()
        self._query()
        self.film.text(LEFT, 306, f"All numbers are the run's. More: ./workbook walk {step}", size=12.3, color="note")

    def _times(self) -> tuple[list[float], float, float]:
        """(when each tile begins, the instant to be seen without motion, when all is over)"""
        now, still, begins = 0.0, SCORES + 1, []
        for number, tile in enumerate(self.row.tiles):
            begins.append(now)
            if tile.hidden:
                now += HIDDEN
            elif number == 0:
                now += SCORES + SUMS
            else:
                if tile.correction < 1 and tile is min(self.row.seen[1:], key=lambda one: one.correction):
                    still = now + RISE + CORRECT - 2 * FADE
                now += RISE + ADD + (CORRECT if tile.correction < 1 else 0)
        return begins, still, now + END

    # --- The matrix --------------------------------------------------------------------------------------------------

    def _matrix(self) -> None:
        film, problem = self.film, self.problem
        film.text(LEFT, TOP - 7, f"S, {problem.seq_q} × {problem.seq_k}, tile by tile", size=12.5)
        tiles: list[JsonObject] = [tile for block in self.launch["blocks"] for tile in
                                   [*block["tiles"], *({**skipped, "kind": "masked"} for skipped in block["skipped"])]
                                   if tile["head"] == self.head]
        for tile in tiles:
            self._frame(tile)
        self._scores_of_all([tile for tile in tiles if tile["kind"] != "masked"])
        rows = next(tile["queries"] for tile in tiles if tile["queries"][0] <= self.query <= tile["queries"][1])
        ends = [*self.begins[1:], film.seconds - END]
        for of_row, begin, end in zip(self.row.tiles, self.begins, ends):
            with film.shown(begin, end):
                film.box(*self._place(of_row.keys, rows), "none", edge="orange")
        y = TOP + SIZE / problem.seq_q * (self.query + 0.5)
        film.line((LEFT - 5, y), (LEFT + SIZE, y), color="orange", width=1.2)
        film.area((LEFT - 11, y - 5), (LEFT - 2, y), (LEFT - 11, y + 5), color="orange", pale=False)

    def _frame(self, tile: JsonObject) -> None:
        """Dotted from when the row comes to these keys, if the mask hides it."""
        x, y, width, height = self._place(tile["keys"], tile["queries"])
        self.film.box(x + 0.75, y + 0.75, width - 1.5, height - 1.5)
        if tile["kind"] != "masked":
            return
        across, down = (int(length / DOTS) for length in (width, height))
        with self.film.shown(self.begins[self._tile_of(tile["keys"][0])], self.film.seconds):
            self.film.boxes([(x + (column + 0.5) * width / across - DOT / 2, y + (row + 0.5) * height / down - DOT / 2,
                              DOT, DOT) for row in range(down) for column in range(across)], "grey")

    def _scores_of_all(self, tiles: list[JsonObject]) -> None:
        patches = list(self._patches(tiles))
        in_order = sorted(score for *_, score in patches)
        drawn: dict[tuple[int, int], list[tuple[float, float, float, float]]] = {}  # of a tile and a shade
        for x, y, width, height, score in patches:
            shade = len(SHADES) * in_order.index(score) // len(in_order)
            place = self._place((x, x + width - 1), (y, y + height - 1))
            drawn.setdefault((self._tile_of(x), shade), []).append(place)
        for (number, shade), some in sorted(drawn.items()):
            with self.film.shown(self.begins[number] + 0.2, self.film.seconds):
                self.film.boxes(some, "blue", strength=SHADES[shade])

    def _place(self, keys: Sequence[int], queries: Sequence[int]) -> tuple[float, float, float, float]:
        """(x, y, width, height) of scores, from the first to the last key and query."""
        across, down = SIZE / self.problem.seq_k, SIZE / self.problem.seq_q
        return (LEFT + across * keys[0], TOP + down * queries[0], across * (keys[1] - keys[0] + 1),
                down * (queries[1] - queries[0] + 1))

    def _patches(self, tiles: list[JsonObject]) -> Iterator[tuple[int, int, int, int, float]]:
        """(key, query, keys, queries, the largest of its scores) of each patch of which the mask leaves something."""
        scores = {row.query % self.problem.seq_q: {key: score for tile in row.tiles
                                                   for key, score in tile.scores.items()}
                  for row in self.rows.values() if row.query // self.problem.seq_q == self.head}
        for tile in tiles:
            (first, last), (top, bottom) = tile["keys"], tile["queries"]
            wide, high = (-(-(end - begin + 1) // PATCHES) for begin, end in (tile["keys"], tile["queries"]))
            for y in range(top, bottom + 1, high):
                for x in range(first, last + 1, wide):
                    width, height = min(wide, last + 1 - x), min(high, bottom + 1 - y)
                    score = max((scores[row].get(key, -math.inf) for row in range(y, y + height)
                                 for key in range(x, x + width)), default=-math.inf)
                    if score > -math.inf:
                        yield x, y, width, height, score

    def _tile_of(self, key: int) -> int:
        return next(number for number, tile in enumerate(self.row.tiles) if key <= tile.keys[1])

    # --- The query ---------------------------------------------------------------------------------------------------

    def _query(self) -> None:
        before: "_Tile | None" = None
        for tile, begin in zip(self.row.tiles, self.begins):
            if tile.hidden:
                self._hidden(begin)
            else:
                self._seen(tile, before, begin)
                before = tile
        assert before is not None
        self._end(before)
        ends = self.film.seconds - END
        for words, begin, end in [("O, not divided yet", 0, ends), ("O, divided by l", ends, self.film.seconds)]:
            self._title(words, begin, end, MIDDLE - HALF - 3)
        self.film.line((PANEL, FLOOR), (PANEL + WIDE, FLOOR))
        self.film.line((PANEL, MIDDLE), (PANEL + WIDE, MIDDLE))

    def _seen(self, tile: _Tile, before: "_Tile | None", begin: float) -> None:
        film = self.film
        rises = before is not None and tile.correction < 1
        weigh = begin + (SCORES if before is None else RISE)
        add = weigh + (CORRECT if rises else 0)
        done = add + (SUMS if before is None else ADD)
        if before is None:
            self._say(begin, weigh, f"A tile of K comes in: {len(tile.scores)} scores S = Q Kᵀ",
                      "for every query. The arrow marks one: follow it.")
            self._say(add, done, f"m is the largest, {_n(tile.m)}. Weights P = exp(S − m);",
                      "l is their sum, and O = P V.")
        elif rises:
            self._say(begin, weigh, "The next tile has a score above m:",
                      f"m rises from {_n(before.m)} to {_n(tile.m)}.")
            is_still = weigh <= film.still < add
            with film.never_still() if is_still else nullcontext():
                self._say(weigh, add, "l and O were made with the old m. Both are",
                          f"corrected: × exp({_n(before.m)} − {_n(tile.m)}) = {_n(tile.correction)}")
            if is_still:
                with film.only_still():
                    film.lines(LEFT, 47, [f"A score above m: m rises from {_n(before.m)} to {_n(tile.m)}. l",
                                          f"and O, made with the old m, are × {_n(tile.correction)}."], size=13.5)
            self._say(add, done, "Then the tile is added:", "l gets the sum of its weights, and O gets P V.")
        else:
            self._say(begin, weigh, "The next tile has no score above m:", "nothing has to be corrected.")
            self._say(add, done, "The tile is added:", "l gets the sum of its weights, and O gets P V.")

        self._scores(tile, before, begin, add)
        self._weights(tile, add, done)
        corrected = [value * tile.correction for value in before.o] if before else [0.0] * len(tile.o)
        if before:
            self._number("l", before.l, begin, weigh if rises else add)
            self._number("m", before.m, begin, begin + M_RISES if rises else done)
            with film.shown(begin, add):  # paler, what it was before
                film.boxes(self._bars(before.o), "blue", pale=True)
            with film.shown(begin, add), film.stretched(MIDDLE, [(weigh + FADE, 1), (weigh + 1.5, tile.correction)]
                                                        if rises else [(0, 1)]):
                film.boxes(self._bars(before.o), "blue")
            if rises:
                self._number("m", tile.m, begin + M_RISES, done, "orange")
                self._number("l", before.l * tile.correction, weigh, add)
                with film.shown(weigh, add):
                    self._cell(2, f"× {_n(tile.correction)}", "orange")
        else:
            self._number("m", tile.m, add, done, "orange")
        self._number("l", tile.l, add, done, "orange")
        with film.shown(add, done):
            film.boxes(self._bars(corrected), "blue")
            film.boxes(self._bars(tile.o, corrected), "orange")

    def _scores(self, tile: _Tile, before: "_Tile | None", begin: float, end: float) -> None:
        film = self.film
        each, zero = WIDE / len(tile.scores), self._height(0)
        bars = [(PANEL + each * (key - tile.keys[0]), zero, each * 0.75, self._height(score) - zero)
                for key, score in tile.scores.items() if score > -math.inf]
        self._title(f"S of query {self.query}, this tile", begin, end)
        with film.shown(begin, end):
            with film.stretched(zero, [(begin, 0), (begin + 0.9, 1)]):
                film.boxes(bars, "orange")
            if before:
                up = self._height(before.m) - self._height(tile.m)
                with film.lifted([(begin + M_RISES, 0), (begin + M_RISES + 0.5, up)] if up else [(0, 0)]):
                    y = self._height(before.m)
                    film.line((PANEL, y), (PANEL + WIDE, y), color="ink", dashed=True)
                    film.text(PANEL - 4, y + 4, "m", size=13, at="end", bold=True)

    def _weights(self, tile: _Tile, begin: float, end: float) -> None:
        film, each = self.film, WIDE / len(tile.weights)
        self._title("P = exp(S − m)", begin, end)
        with film.shown(begin, end), film.stretched(FLOOR, [(begin, 0), (begin + 0.7, 1)]):
            film.boxes([(PANEL + each * (key - tile.keys[0]), FLOOR, each * 0.75, -HIGH * weight)
                        for key, weight in tile.weights.items() if weight > 0.001], "orange")

    def _hidden(self, begin: float) -> None:
        end = begin + HIDDEN
        last = self.row.seen[-1]
        self._say(begin, end, "The mask hides this tile: all its weights are 0,",
                  "and from chapter 08 on it is skipped.")
        self._number("m", last.m, begin, end)
        self._number("l", last.l, begin, end)
        self._title("P is 0", begin, end)
        with self.film.shown(begin, end):
            self.film.boxes(self._bars(last.o), "blue")

    def _end(self, last: _Tile) -> None:
        film = self.film
        begin = film.seconds - END
        self._say(begin, film.seconds, "After the last tile: O / l is the result,",
                  "and S has never been in global memory.")
        self._number("m", last.m, begin, film.seconds)
        self._number("l", last.l, begin, film.seconds)
        with film.shown(begin, film.seconds):
            self._cell(2, f"÷ {_n(last.l)}", "blue")
            with film.stretched(MIDDLE, [(begin + 0.8, 1), (begin + 1.8, 1 / last.l)]):
                film.boxes(self._bars(last.o), "blue")

    # --- Parts -------------------------------------------------------------------------------------------------------

    def _say(self, begin: float, end: float, *lines: str) -> None:
        with self.film.shown(begin, end - FADE):  # two sentences at once could not be read
            self.film.lines(LEFT, 47, lines, size=13.5)

    def _title(self, words: str, begin: float, end: float, y: float = TOP - 7) -> None:
        with self.film.shown(begin, end - FADE):
            self.film.text(PANEL, y, words, size=12.5)

    def _number(self, name: str, value: float, begin: float, end: float, color: str = "ink") -> None:
        with self.film.shown(begin, end - FADE):
            self._cell("ml".index(name), f"{name} = {_n(value)}", color)

    def _cell(self, place: int, words: str, color: str) -> None:
        self.film.text(LEFT + 128 * place, 284, words, size=16, bold=True, color=color)

    def _height(self, score: float) -> float:
        return FLOOR - HIGH * (score - self.lowest) / (self.highest - self.lowest or 1)

    def _bars(self, values: list[float], start: "list[float] | None" = None) -> list[tuple[float, float, float, float]]:
        each, scale = WIDE / len(values), HALF / self.largest
        return [(PANEL + each * at, MIDDLE - scale * (start[at] if start else 0), each * 0.75,
                 -scale * (value - (start[at] if start else 0))) for at, value in enumerate(values)]


def _n(value: float) -> str:
    """Three digits."""
    digits = 2 - math.floor(math.log10(abs(value))) if value else 0
    return f"{value:.{max(digits, 0)}f}".replace("-", "−")
