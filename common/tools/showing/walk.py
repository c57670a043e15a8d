"""The page that replays a run step by step: which tiles of the score matrix each thread block works on, found from
the rows that it reads, and the page around them."""

import base64
import json
import re
import struct
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

from tools.base import ROOT, Failure, JsonObject
from tools.record import Problem, read_label
from tools.showing.walk_opening import opening

PARTS = Path(__file__).parent / "walk_page"
ICON = ROOT / "common" / "book" / "site" / "static" / "favicon.svg"
SCRIPTS = ("words", "drawing", "side", "story", "clock", "blocks", "scores", "matrices", "places", "parties", "bytes",
           "values", "owners", "now", "launch", "page")
LARGEST_PAGE = 2_000_000  # bytes
# Of the kernels' numbers, four bytes each in the page. The rest is for the script, the steps in their order and the
# tiles.
MOST_NUMBERS = 300_000
TILE, EXAMPLE_TILE = 64, 4
OF_PAIRS = {"S", "P", "dP", "dS"}  # of a query and a key each, as kernels show them
TILE_STEPS = 100

Span = tuple[int, int, int]  # (head, the first of its rows, the last)


class TooLarge(Failure):
    """Raised when a page would be, or turns out to be, too large."""


def require_small(problem: Problem, direction: str, walks: int = 1, with_numbers: bool = True,
                  tile: int = TILE) -> None:
    """Raises TooLarge before anything runs."""
    if walks * numbers(problem, direction, with_numbers, tile) <= MOST_NUMBERS:
        return
    fits = largest_length(problem, direction, walks, with_numbers, tile)
    ways = [f"--seq-q={fits} --seq-k={fits} is the largest that fits"] if fits else ["take fewer heads or a smaller "
                                                                                     "head dim"]
    if with_numbers and largest_length(problem, direction, walks, False, tile) > fits:
        ways.append("with --no-numbers longer ones do")
    raise TooLarge(f"{problem} is too large for a page: {'; '.join(ways)}", status=2)


def numbers(problem: Problem, direction: str, with_numbers: bool = True, tile: int = TILE) -> int:
    """That a kernel can show, with tiles of so many queries and keys or more. Forward: S and P, and O after every
    tile. Backward: P, dP and dS, dK and dV after every tile, and dQ's parts of twice as many keys or as many. And
    every result, as written and as expected. The steps of a tile take as much room as TILE_STEPS numbers."""
    total_q, total_k = problem.batch * problem.seq_q, problem.batch * problem.seq_k
    q_tiles, k_tiles = -(-problem.seq_q // tile), -(-problem.seq_k // tile)
    of_head = problem.batch * q_tiles
    if packed := problem.asked().get("packed"):
        total_q, total_k = min(total_q, packed[0]), min(total_k, packed[1])
        of_head = min(of_head, total_q // tile + problem.batch)
    rows, key_rows = problem.heads * total_q, problem.kv_heads * total_k
    forward = direction == "forward"
    steps = TILE_STEPS * problem.heads * of_head * k_tiles
    if not with_numbers:
        return steps
    of_queries = rows * ((2 if forward else 3) * problem.seq_k + problem.head_dim * (2 + k_tiles))
    of_keys = 0 if forward else 2 * key_rows * problem.head_dim * (2 + q_tiles * problem.heads // problem.kv_heads)
    return steps + of_queries + of_keys


def largest_length(problem: Problem, direction: str, walks: int = 1, with_numbers: bool = True,
                   tile: int = TILE) -> int:
    """Of queries and keys alike, with everything else as it is; 0 if nothing fits."""
    return next((n for n in range(2048, 0, -1)
                 if walks * numbers(replace(problem, seq_q=n, seq_k=n), direction, with_numbers,
                                    tile) <= MOST_NUMBERS), 0)


# --- Tiles -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Where:
    """What decides beside a causal mask which tiles there are: the program says it (print_walk in program.cc)."""

    sequences: tuple[tuple[int, int, int, int], ...] = ()  # packed ones: first query, queries, first key, keys
    # {(head, row of tiles, which of it): whether it is cut}, of a block mask with tiles of LISTED queries and keys
    listed: "dict[tuple[int, int, int], bool] | None" = None


LISTED = 128
NOWHERE = Where()


def _where(recorded: JsonObject) -> Where:
    listed = recorded.get("listed")
    return Where(tuple(map(tuple, recorded.get("sequences", []))),
                 None if listed is None else {(head, row, column): bool(cut) for head, row, column, cut in listed})


def visible_keys(problem: Problem, i: int) -> int:
    return min(max(i + problem.seq_k - problem.seq_q + 1, 0), problem.seq_k) if problem.causal else problem.seq_k


def kind(problem: Problem, queries: Sequence[int], keys: Sequence[int], head: int = 0, where: Where = NOWHERE) -> str:
    """What the mask leaves of a tile: all of it, some of it or nothing; "elsewhere" if keys are another sequence's."""
    if where.listed is not None:
        cuts = [where.listed.get((head, row, column)) for row in range(queries[0] // LISTED, queries[1] // LISTED + 1)
                for column in range(keys[0] // LISTED, keys[1] // LISTED + 1)]
        if not all(cut is False for cut in cuts):
            return "masked" if all(cut is None for cut in cuts) else "partly"
    for first_query, of_queries, first_key, of_keys in where.sequences:
        if first_query <= queries[0] < first_query + of_queries:
            if not first_key <= keys[0] <= keys[1] < first_key + of_keys:
                return "elsewhere"
            return kind(replace(problem, seq_q=of_queries, seq_k=of_keys), [i - first_query for i in queries],
                        [j - first_key for j in keys])
    first = max(min(visible_keys(problem, queries[0]) - keys[0], keys[1] - keys[0] + 1), 0)
    last = max(min(visible_keys(problem, queries[1]) - keys[0], keys[1] - keys[0] + 1), 0)
    return "masked" if last == 0 else "whole" if first == keys[1] - keys[0] + 1 else "partly"


def _spans(ranges: Iterable[Sequence[int]], length: int) -> list[Span]:
    """[(head, first row of it, last)] of rows counted over all heads."""
    spans: dict[int, tuple[int, int]] = {}
    for first, last in ranges:
        for head in range(first // length, last // length + 1):
            here = max(first - head * length, 0), min(last - head * length, length - 1)
            before = spans.get(head, here)
            spans[head] = min(before[0], here[0]), max(before[1], here[1])
    return [(head, *span) for head, span in sorted(spans.items())]


def _touched_by(blocks: list[JsonObject], names: tuple[str, ...]) -> "str | None":
    steps = [step for block in blocks for step in block["steps"]]
    return next((name for name in names if any(name in step.get(move, {}) for step in steps
                                               for move in ("read", "landed"))), None)


@dataclass
class _Party:
    """Warps that take steps together, and the rows that they have at hand while a block is followed."""

    queries: list[Span]
    keys: list[Span] = field(default_factory=list)
    landed: JsonObject = field(default_factory=dict)  # in the step before
    # {what a copy has brought to a place: rows that were read from there}
    used: dict[tuple[Any, ...], set[int]] = field(default_factory=dict)

    def new_rows(self, step: JsonObject, fills: Counter[int]) -> JsonObject:
        """{tensor: rows} that this step brings and no earlier one did; a copy may bring nothing but zeros."""
        new = {tensor: list(ranges) for tensor, ranges in step.get("read", {}).items()}
        if "after" not in step:  # A copy lands just before a barrier: only after that the block can work with it.
            for tensor, ranges in self.landed.items():
                new.setdefault(tensor, []).extend(ranges)
        self.landed = {} if "after" in step else step.get("landed", {})
        for place, tensor, ranges in step.get("uses", []):
            known = self.used.setdefault((place, fills[place], tensor), set())
            rows = {row for first, last in ranges for row in range(first, last + 1)} - known
            if rows or not known:
                new.setdefault(tensor, []).extend([row, row] for row in sorted(rows))
            known |= rows
        return new


def _visits(problem: Problem, block: JsonObject, of_queries: "str | None", of_keys: "str | None",
            where: Where) -> list[JsonObject]:
    """The tiles of a block in its order: from when its rows are both there until others take their place."""
    kv_heads = problem.heads // problem.kv_heads
    found: list[JsonObject] = []
    parties: dict[tuple[int, ...], _Party] = {}
    last: dict[tuple[int, ...], JsonObject] = {}  # tile of each party
    fills: Counter[int] = Counter()
    told = any(_multiplied(step, of_queries, of_keys) for step in block["steps"])
    for number, step in enumerate(block["steps"]):
        by = tuple(step.get("by", ()))
        party = parties.setdefault(by, _Party(_queries_written(problem, block, by) if of_queries is None else []))
        new = _multiplied(step, of_queries, of_keys) if told else party.new_rows(step, fills)
        fills.update({place for place, *_ in step.get("fills", [])})
        if of_queries and of_queries in new:
            party.queries = _spans(new[of_queries], problem.seq_q)
        if of_keys and of_keys in new:
            party.keys = _spans(new[of_keys], problem.seq_k)
        if of_queries not in new and of_keys not in new:
            continue
        for head, *rows in party.queries:
            for kv_head, *columns in party.keys:
                tile = {"head": head, "queries": rows, "keys": columns}
                if head // kv_heads == kv_head and tile != last.get(by):
                    last[by] = tile
                    found.append({**tile, "step": number, "kind": kind(problem, rows, columns, head, where)})
    return found


def _multiplied(step: JsonObject, of_queries: "str | None", of_keys: "str | None") -> JsonObject:
    """{tensor: rows} of the queries and keys that one product multiplies. (dQ's product needs the keys alone.)"""
    return next(({a: a_rows, b: b_rows} for a, a_rows, b, b_rows in step.get("products", [])
                 if {a, b} == {of_queries, of_keys}), {})


def _queries_written(problem: Problem, block: JsonObject, by: tuple[int, ...]) -> list[Span]:
    """What stands in for the queries of a kernel that reads none."""
    return _spans([rows for step in block["steps"] if tuple(step.get("by", ())) == by
                   for name in ("O", "dQ") for rows in step.get("written", {}).get(name, [])], problem.seq_q)


def _turns(block: JsonObject, name: str) -> int:
    """How often a party moves on to other queries, or to other keys."""
    of_party: dict[tuple[int, ...], list[list[int]]] = {}
    for tile in block["tiles"]:
        of_party.setdefault(tuple(block["steps"][tile["step"]].get("by", ())), []).append(tile[name])
    return sum(before != after for tiles in of_party.values() for before, after in zip(tiles, tiles[1:]))


def _cells(ranges: set[tuple[int, ...]]) -> list[tuple[int, int]]:
    """Ranges that may overlap, cut where any of them begins or ends."""
    cuts = sorted({first for first, _ in ranges} | {last + 1 for _, last in ranges})
    cells = [(a, b - 1) for a, b in zip(cuts, cuts[1:])]
    return [cell for cell in cells if any(first <= cell[0] and cell[1] <= last for first, last in ranges)]


def _skipped(problem: Problem, visits: list[JsonObject], every: list[JsonObject], along_keys: bool,
             where: Where) -> list[JsonObject]:
    """Tiles beside those of a block (of its rows; of its keys, if it is the keys that it stays with) that no block
    works on, because no query of them sees a key."""
    own, other = ("queries", "keys") if along_keys else ("keys", "queries")
    cells = _cells({tuple(visit[other]) for visit in every})
    skipped = []
    for head, strip in sorted({(visit["head"], tuple(visit[own])) for visit in visits}):
        worked_on = [visit[other] for visit in every
                     if visit["head"] == head and visit[own][0] <= strip[1] and strip[0] <= visit[own][1]]
        for cell in cells:
            tile = {"head": head, own: list(strip), other: list(cell)}
            if (not any(first <= cell[1] and cell[0] <= last for first, last in worked_on)
                    and kind(problem, tile["queries"], tile["keys"], head, where) == "masked"):
                skipped.append(tile)
    return skipped


def add_tiles(problem: Problem, launch: JsonObject, where: Where = NOWHERE) -> None:
    """Gives each block of a launch its tiles: those that it works on, in order, and those that it skips."""
    blocks = launch["blocks"]
    of_queries, of_keys = _touched_by(blocks, ("Q", "dO")), _touched_by(blocks, ("K", "V"))
    for block in blocks:
        block["tiles"] = _visits(problem, block, of_queries, of_keys, where)
    every = [tile for block in blocks for tile in block["tiles"]]

    along_keys = sum(_turns(block, "keys") for block in blocks) >= sum(_turns(block, "queries") for block in blocks)
    for block in blocks:
        block["skipped"] = _skipped(problem, block["tiles"], every, along_keys, where)


# --- Owners ----------------------------------------------------------------------------------------------------------


def add_owners(launch: JsonObject) -> None:
    """Of the first scores that are shown: [first row, rows, first column, columns, threads as 16 bits in base64]."""
    runs = launch.pop("owners", [])
    if not runs or len({(column, len(threads)) for _, column, threads in runs}) > 1:
        return
    (row, column, threads), every = runs[0], [thread for *_, threads in runs for thread in threads]
    packed = base64.b64encode(struct.pack(f"<{len(every)}H", *every)).decode()
    launch["owners"] = [row, len(runs), column, len(threads), packed]


# --- Names -----------------------------------------------------------------------------------------------------------


def add_names(launch: JsonObject, root: Path = ROOT) -> None:
    """To the mbarriers, from the lines that make them: k_full[0], k_full[1]; and to the places in shared memory,
    from what fills them first: k[0], k[1]."""
    launch["mbarriers"] = _numbered([_made(line, root) for line in launch.get("mbarriers", [])])
    filled: dict[int, str] = {}
    for block in launch["blocks"]:
        for step in block["steps"]:
            for place, tensor, *_ in step.get("fills", []):
                filled.setdefault(place, tensor.lower())
    places = launch.get("places", [])
    in_order = sorted(range(len(places)), key=places.__getitem__)
    names = dict(zip(in_order, _numbered([filled.get(place, "zeros") for place in in_order])))
    launch["places"] = [[*at, names[place]] for place, at in enumerate(places)]


SHOWS = re.compile(r"^ *(?:for \(.*\) )?watch\w*\(.*\);")  # the reader has what it shows
MARKER = re.compile(r"^ *watch_step\(")
MOST_LINES = 60  # of the source of a step: then it is cut


def add_sources(launch: JsonObject, root: Path = ROOT) -> None:
    """To the names of steps: the lines of the kernel from where it names one to where it names the next."""
    launch["names"] = [{"name": name, "line": line, "source": source}
                       for name, of in launch.get("names", []) for line, source in [_source(name, of, root)]]


def _source(name: str, line: str, root: Path) -> tuple[str, list[str]]:
    """(line, the lines behind it). Of a function that the kernel calls, the engine knows the line of the call."""
    path, _, number = line.rpartition(":")
    files = _files(path, root)
    headers = [header for folder in ("common/device", "*/wide") for header in sorted(root.glob(f"{folder}/*.h"))]
    for file, at in [*((file, int(number or 0) - 1) for file in files), *((header, None) for header in headers)]:
        try:
            lines = file.read_text().splitlines()
        except OSError:  # a kernel from elsewhere
            continue
        marks = [i for i, text in enumerate(lines) if f'watch_step("{name}")' in text and at in (None, i)]
        if marks:
            return f"{file.relative_to(root)}:{marks[0] + 1}", _behind(lines[marks[0] + 1:])
    return line, []


def _files(path: str, root: Path) -> list[Path]:
    """Which may be meant: the engine names a file by its folder and its name, and wide/ and lanes/ are in folders."""
    return [root / path, *sorted(file for folder in ("*", "common/*") for file in root.glob(f"{folder}/{path}"))]


def _behind(lines: list[str]) -> list[str]:
    found: list[str] = []
    for text in lines:
        is_code = text.strip() not in ("", "else") and not text.startswith("#")
        outside = found and is_code and _indent(text) < _indent(found[0])  # what stands around the step goes on
        is_marker = MARKER.match(text)
        if is_marker and not found:  # the same step of other warps: `else`, and their name of it
            continue
        if is_marker or outside or len(found) == MOST_LINES:
            break
        if not SHOWS.match(text) and (found or is_code):
            found.append(text)
    while found and (not found[-1].strip() or re.match(r" *(for|if) \(.*\)$", found[-1])):  # of what it shows
        found.pop()
    return [text if text.startswith("#") else text[_indent(found[0]):] for text in found]


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _made(line: str, root: Path) -> str:
    """`mbarrier_init(&smem.k_full[i], 1);` makes a k_full."""
    path, _, number = line.rpartition(":")
    for file in _files(path, root):
        try:
            text = file.read_text().splitlines()[int(number) - 1]
        except (OSError, ValueError, IndexError):  # a kernel from elsewhere, or changed since it was built
            continue
        found = re.search(r"mbarrier_init\(&?(?:\w+(?:\.|->))*(\w+)", text)
        if found:
            return found[1]
    return "mbarrier"


def _numbered(names: list[str]) -> list[str]:
    """With an index, those that several have."""
    so_far: Counter[str] = Counter()
    every = Counter(names)
    numbered = []
    for name in names:
        numbered.append(f"{name}[{so_far[name]}]" if every[name] > 1 else name)
        so_far[name] += 1
    return numbered


# --- Page ------------------------------------------------------------------------------------------------------------


def base64_of(values: Sequence[float]) -> str:
    """The upper three bytes of fp32, rounded: four bytes in the page each, and more digits than it shows."""
    bits = struct.unpack(f"<{len(values)}I", struct.pack(f"<{len(values)}f", *map(float, values)))
    is_finite = 0x7F800000
    upper = ((each + 0x80 if each & is_finite != is_finite else each) >> 8 for each in bits)
    return base64.b64encode(b"".join(each.to_bytes(3, "little") for each in upper)).decode()


def rectangles(runs: list[list[Any]]) -> list[list[Any]]:
    """[[row, column, values], ..], ascending -> [[first row, rows, first column, columns, base64_of()], ..]."""
    made: list[list[Any]] = []
    for row, column, values in runs:
        if made and made[-1][0] + made[-1][1] == row and made[-1][2:4] == [column, len(values)]:
            made[-1][1] += 1
            made[-1][4] += values
        else:
            made.append([row, 1, column, len(values), list(values)])
    return [[*place, base64_of(values)] for *place, values in made]


def _in_one_matrix(problem: Problem, where: Where, launches: list[JsonObject]) -> Problem:
    """Packed sequences as a problem of all their rows. A kernel counts the keys of its scores within a sequence."""
    if not where.sequences:
        return problem
    for step in (step for launch in launches for block in launch["blocks"] for step in block["steps"]):
        for name in OF_PAIRS & step.get("watched", {}).keys():
            step["watched"][name] = [[row, column + _first_key(where, row), values]
                                     for row, column, values in step["watched"][name]]
    total_q, total_k = problem.asked()["packed"]
    return replace(problem, batch=1, seq_q=total_q, seq_k=total_k)


def _first_key(where: Where, row: int) -> int:
    return next(first_key for first, queries, first_key, _ in where.sequences if first <= row < first + queries)


def walk_of(recorded: JsonObject, naive: "JsonObject | None" = None, with_numbers: bool = True, note: str = "",
            start: "int | None" = None) -> JsonObject:
    """What the page is told of one step: what its chapter's program recorded, with tiles; and of chapter 01's, only
    the work. `start` is the block that it opens with, where not the one in which most is to be seen."""
    problem, rope = read_label(recorded["problem"])
    (rung,) = recorded["rungs"]
    where, words = _where(recorded), str(problem)
    problem = _in_one_matrix(problem, where, rung["launches"])
    for launch in rung["launches"]:
        add_tiles(problem, launch, where)
        add_names(launch)
        add_sources(launch)
    opens = opening(problem, recorded["direction"], rung["launches"], start)
    for launch in rung["launches"]:
        add_owners(launch)
        for block in launch["blocks"]:
            for step in block["steps"]:
                watched = step.pop("watched", {})
                if watched and with_numbers:
                    step["watched"] = {name: rectangles(runs) for name, runs in watched.items()}
    return {
        "step": f"{recorded['chapter']}/{rung['rung']}", "direction": recorded["direction"], "problem": {
            **vars(problem), "sequences": where.sequences or None, "listed": recorded.get("listed")},
        "rope": rope,
        "words": words, "tensors": rung["tensors"], "launches": rung["launches"],
        "naive": work(naive) if naive else None, "numbers": with_numbers, "note": note,
        "opening": opens.as_json() if opens else {"block": start or 0},
        "results": {name: {way: base64_of(values) for way, values in result.items()}
                    for name, result in rung["results"].items() if with_numbers},
    }


def work(recorded: JsonObject) -> list[int]:
    """Of all launches together, as a step has it."""
    (rung,) = recorded["rungs"]
    every = [step["work"] for launch in rung["launches"] for block in launch["blocks"] for step in block["steps"]]
    return [sum(numbers) for numbers in zip(*every)]


def page(walks: list[JsonObject]) -> str:
    """One or two of them, as HTML that needs nothing else."""
    title = " and ".join(f"{walk['step']}, {walk['direction']}" for walk in walks)
    data = json.dumps({"walks": walks}, separators=(",", ":")).replace("<", "\\u003c")
    html = (PARTS / "page.html").read_text()
    said = next((walk["opening"]["watch"] for walk in walks if walk["opening"].get("watch")), "")
    said = textwrap.shorten(f"A run of {title}, replayed step by step with its numbers. {said}", 200, placeholder=" …")
    for name, text in [("TITLE", title), ("HEADING", re.sub("([/_])", r"\1<wbr>", title)),
                       ("DESCRIPTION", escape(said)), ("ICON", base64.b64encode(ICON.read_bytes()).decode()),
                       ("STYLE", (PARTS / "page.css").read_text()), ("SCRIPT", script()), ("WALKS", data)]:
        html = html.replace(f"{{{{{name}}}}}", text)
    if len(html.encode()) > LARGEST_PAGE:
        raise TooLarge(f"the page would have {len(html.encode()):,} bytes, more than {LARGEST_PAGE:,}: take a shorter "
                       "N or fewer heads",
                       status=2)
    return html


def script() -> str:
    return "\n".join((PARTS / f"{name}.js").read_text() for name in SCRIPTS)
