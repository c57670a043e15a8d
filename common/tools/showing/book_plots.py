"""The pictures of tools/showing/pictures.py on the site: for a wide page and for a phone, with words where one points.

Pointing at a point shows its problem, and of N, ms, TFLOP/s and the ratio to FlashAttention-2 what belongs to it.
static/plots.js, in common/book/site, shows them.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from tools.base import RESULTS, JsonObject, amount_of_memory, significant
from tools.record import THE_BOOKS, Record
from tools.showing import pictures
from tools.showing.book import Book

LADDER: JsonObject = {"batch": 2, "heads": 16, "head_dim": 64, "causal": True}  # as the pictures' notes say
TOKENS, WIDTH = 16384, 2048  # B N and H D of FlashAttention's sweep
FOLDER = "plots"  # of the site


@dataclass(frozen=True)
class Plot:
    """A picture as it is drawn for the site."""

    wide: str  # paths below the site's folder
    narrow: str
    sizes: tuple[tuple[int, int], tuple[int, int]]  # width and height of both, in pixels
    points: list[list[object]]  # [[x, y in the wide one, x, y in the narrow one, words], ..], as parts of its size


def draw(book: Book, python: "str | Path", site: Path) -> dict[str, Plot]:
    """{path of a picture: plot} of the recorded pictures that the pages show."""
    found: dict[str, Plot] = {}
    for gpu in sorted({path.parent.parent.name for path in map(Path, book.files) if _recorded(path)}):
        data = {name: one for name, one in pictures.all_pictures(Record(RESULTS / gpu)).items()
                if f"common/results/{gpu}/pictures/{name}.svg" in book.files}
        pictures.draw(python, data, site / FOLDER / gpu, "--site")
        for name, one in data.items():
            found[f"common/results/{gpu}/pictures/{name}.svg"] = _plot(f"{FOLDER}/{gpu}/{name}", name, one, site)
    return found


def stairs() -> dict[int, float]:
    """{index of a chapter: ms of its forward}, of the ladder."""
    (panel,) = pictures.all_pictures(Record(RESULTS / THE_BOOKS))["chapters-forward"]["panels"]
    return {one["color"]: one["x"][0] for one in panel["series"] if isinstance(one["color"], int)}


def _recorded(path: Path) -> bool:
    return path.parent.name == "pictures" and path.suffix == ".svg" and path.parts[:2] == ("common", "results")


def _plot(stem: str, name: str, data: JsonObject, site: Path) -> Plot:
    where = site / f"{stem}.json"
    both = json.loads(where.read_text())
    where.unlink()
    points: list[list[object]] = []
    for (number, which, place, *wide), (*_, x, y) in zip(both["wide"]["points"], both["narrow"]["points"]):
        panel = data["panels"][number]
        points.append([*wide, x, y, words(name, panel, panel["series"][which], place)])
    return Plot(f"{stem}.svg", f"{stem}.narrow.svg", (tuple(both["wide"]["size"]), tuple(both["narrow"]["size"])),
                points)


# --- What is shown where one points -----------------------------------------------------------------------------------


def flops(direction: str, batch: float, heads: int, head_dim: int, causal: bool, n: float) -> float:
    return 4 * batch * heads * n * n * head_dim * (0.5 if causal else 1) * (2.5 if direction == "backward" else 1)


def words(name: str, panel: JsonObject, one: JsonObject, place: int) -> str:
    """Of a point of a picture; the first line is whose it is."""
    x, y = one["x"][place], one["y"][place]
    what, _, direction = name.rpartition("-")
    lines = [one["name"]]
    if what == "time":
        lines += [f"N = {x}", *_speed(flops(direction, **LADDER, n=x), 1e-3 * y, _peer(panel, x), 1e-3)]
    elif what == "tflops":
        head_dim = int(panel["title"].rpartition("D = ")[2])
        work = flops(direction, TOKENS // x, WIDTH // head_dim, head_dim, "causal" in panel["title"], x)
        peer = _peer(panel, x)
        lines += [panel["title"], f"N = {x}", *_speed(work, work / (y * 1e12), peer and work / (peer * 1e12))]
    elif what in ("chapters", "steps"):
        peers = [each["x"][0] for each in panel["series"] if each["color"] == "FLASH"]
        lines += ["N = 4096", *_speed(flops(direction, **LADDER, n=4096), 1e-3 * x, peers[0] if peers else None, 1e-3)]
        lines += [f"{one['gain']} the step before"] if one.get("gain") else []
    elif name == "memory":
        first = dict(zip(panel["series"][0]["x"], panel["series"][0]["y"])).get(x)
        lines += [f"N = {x}", amount_of_memory(y)] + ([f"{significant(y / first)} of {panel['series'][0]['name']}"]
                                                      if first else [])
    elif name == "roofline":
        lines += [f"{significant(x)} FLOP for a byte of DRAM", f"{significant(y)} TFLOP/s"]
    else:
        where = panel["x"]["label"]
        at = amount_of_memory(x) + " in use" if where == "bytes in use" else f"{where} = {x}"
        lines += [panel["title"], at, f"{significant(y)} {panel['y']['label']}"]
    return "\n".join(line for line in lines if line)


def _peer(panel: JsonObject, x: float) -> "float | None":
    """FlashAttention-2's y at this x."""
    return next((dict(zip(one["x"], one["y"])).get(x) for one in panel["series"] if one["color"] == "FLASH"), None)


def _speed(work: float, seconds: float, peer: "float | None", unit: float = 1) -> list[str]:
    """The lines for time, speed, and the ratio to FlashAttention-2, which takes `peer` units."""
    ratio = [f"{significant(peer * unit / seconds)}× FlashAttention-2"] if peer else []
    return [f"{significant(1e3 * seconds)} ms", f"{significant(work / seconds * 1e-12)} TFLOP/s", *ratio]
