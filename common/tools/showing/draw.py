"""Draws the pictures of tools/showing/pictures.py with matplotlib, the only part of the workbook that needs it.

    python3 -m tools.showing.draw DIRECTORY [--site] < {"name": {"data": .., "fingerprint": ..}}

Each stands on a card of its own, whose colours follow the reader's light or dark page; every line is labelled where it
ends. The same data gives the same bytes. With --site each is drawn for a phone, too, as name.narrow.svg, and name.json
says how large both are, and where in them the points lie: {"wide": {"size": [width, height], "points":
[[panel, series, point, x, y], ..]}, "narrow": ..}, in pixels, and x and y as parts of the width and the height.
"""

import json
import math
import re
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import matplotlib

from tools.base import JsonObject

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.patches import Patch  # noqa: E402
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator  # noqa: E402

from tools.showing.lesson_pictures import canvas  # noqa: E402
from tools.showing.pictures import COLORS, GREYS, color  # noqa: E402

CARD, INK, NOTE, FAINT = "#fbfaf7", "#26241f", "#656056", "#e3dfd6"
# What is drawn in these is drawn in a variable, whose value on a dark page is the second one.
ON_DARK = dict([*canvas.INKS.values(), *(pair[:2] for pair in canvas.COLORS.values()), *COLORS, *GREYS,
                (FAINT, "#2f333a")])
MARKERS = "osD^vPX<>"
STYLES = {"solid": "-", "dashed": (0, (5, 2)), "dotted": (0, (1, 1.5)), "dashdot": (0, (5, 1.5, 1, 1.5))}
PIXELS = 96  # an inch
CROWD = 18  # a line of more points has no markers: they would hide it
SLOWER = 1.025  # times the step before: below it two measurements of one kernel may lie apart

plt.rcParams.update({
    "svg.fonttype": "none", "svg.hashsalt": "workbook", "font.family": "sans-serif",
    "font.sans-serif": ["Helvetica", "Arial", "DejaVu Sans"], "axes.edgecolor": INK, "axes.labelcolor": INK,
    "text.color": INK, "xtick.color": INK, "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False,
    "figure.facecolor": CARD, "axes.facecolor": CARD, "savefig.facecolor": CARD, "axes.grid": True,
    "axes.axisbelow": True, "grid.color": FAINT, "grid.linewidth": 0.6,
})


@dataclass
class Sheet:
    """A card: its size in inches, and that of its letters in points; what it has above its panels."""

    data: JsonObject
    narrow: bool

    @property
    def font(self) -> float:
        return 8.5 if self.narrow else 10

    def width(self, columns: int = 1) -> float:
        return 3.7 if self.narrow else 6.8 if columns == 1 else 8.8

    def words(self, words: str, bold: bool = False, size: "float | None" = None) -> float:
        """How long they are, about."""
        return canvas.width_of(words, size or self.font - 1, bold) / 72 * 0.95

    def head(self, width: float) -> tuple[list[str], list[str]]:
        """The lines of the title and of the note."""
        def wrapped(words: str, size: float) -> list[str]:
            return textwrap.wrap(words, int((width - 0.3) * 72 / (0.53 * size)))
        return wrapped(self.data["title"], self.font + 3), wrapped(self.data["note"], self.font - 1)

    def above(self, width: float) -> float:
        title, note = self.head(width)
        return 0.12 + ((self.font + 3) * len(title) + (self.font - 1) * len(note)) * 1.4 / 72

    def figure(self, rows: int, columns: int, heights: list[float], left: float, right: float, gap: float,
               more: float = 0) -> tuple[plt.Figure, list[plt.Axes]]:
        """Panels, row by row; heights: of each row, without what stands above and below it, which is `gap`. `more`
        goes between the head and the first panel."""
        width = self.width(columns)
        top, below = self.above(width) + more + 0.32, 0.5
        height = top + below + sum(heights) + gap * (rows - 1)
        figure = plt.figure(figsize=(width, height))
        wide, places, y = width / columns - left - right, [], height - top
        for each in heights:
            y -= each
            places += [figure.add_axes(((column * width / columns + left) / width, y / height, wide / width,
                                        each / height)) for column in range(columns)]
            y -= gap
        line = height - 0.12
        for lines, size, style in zip(self.head(width), (self.font + 3, self.font - 1), ("bold", "normal")):
            for text in lines:
                line -= size * 1.4 / 72
                figure.text(0.12 / width, (line + 0.06) / height, text, fontsize=size, weight=style,
                            color=INK if style == "bold" else NOTE)
        return figure, places


Drawn = tuple[plt.Figure, list[plt.Axes]]  # an axes for each panel that has points


def light(index: "int | str") -> str:
    return color(index)[0]


def marker(index: "int | str") -> str:
    return MARKERS[index % len(MARKERS)] if isinstance(index, int) else "o" if index in canvas.COLORS else ""


def plain(value: float) -> str:
    return f"{value:,.0f}".replace(",", " ") if value >= 10 else f"{value:g}"


def axes(panel: JsonObject, ax: plt.Axes, font: float) -> None:
    ax.set_title(panel["title"], fontsize=font, loc="left")
    ax.tick_params(labelsize=font - 0.5)
    for axis, what in ((ax.xaxis, panel["x"]), (ax.yaxis, panel["y"])):
        (ax.set_xscale if axis is ax.xaxis else ax.set_yscale)("log" if what["log"] else "linear")
        axis.set_label_text(what["label"], fontsize=font)
        if what.get("ticks"):
            axis.set_major_locator(FixedLocator([place for place, _ in what["ticks"]]))
            texts = dict(what["ticks"])
            axis.set_major_formatter(FuncFormatter(lambda value, _, texts=texts: texts.get(round(value), "")))
        else:
            axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())


def apart(places: list[float], least: float, floor: float = -math.inf) -> list[float]:
    """The places, in their order, moved so that neighbours are at least so far apart, and none is below the floor."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = [places[i] for i in order]
    for _ in range(200 if places else 0):
        moved[0] = max(moved[0], floor)
        for i in range(len(moved) - 1):
            overlap = least - (moved[i + 1] - moved[i])
            if overlap > 1e-9:
                moved[i] -= overlap / 2
                moved[i + 1] += overlap / 2
    result = [0.0] * len(places)
    for place, i in zip(moved, order):
        result[i] = place
    return result


def label_ends(ax: plt.Axes, series: list[JsonObject], font: float) -> None:
    """Each line's name where it ends, moved up or down where names would overlap."""
    ends = [ax.transData.transform((one["x"][-1], one["y"][-1])) for one in series]
    right = ax.transData.transform((max(one["x"][-1] for one in series), 1))[0] + 6
    for one, (x, y), place in zip(series, ends, apart([end[1] for end in ends], 1.3 * font, ax.bbox.y0)):
        ax.annotate(one["name"], xy=(x, y), xycoords="figure pixels", xytext=(right + 6, place),
                    textcoords="figure pixels", color=light(one["color"]), va="center", fontsize=font,
                    annotation_clip=False,
                    arrowprops={"arrowstyle": "-", "color": light(one["color"]), "linewidth": 0.6, "shrinkA": 1,
                                "shrinkB": 3, "relpos": (0, 0.5)})


def lines(sheet: Sheet) -> Drawn:
    panels = sheet.data["panels"]
    columns = 1 if len(panels) == 1 or sheet.narrow else 2
    rows = math.ceil(len(panels) / columns)
    named = [[one for one in panel["series"] if one["style"] != "point"] for panel in panels]
    longest = max(sheet.words(one["name"]) for series in named for one in series)
    high = 2.2 if sheet.narrow else 3.9 if rows == 1 and columns == 1 else 2.9
    high = max(high, max(map(len, named)) * 1.3 * (sheet.font - 1) / 72)
    left = 0.55 if sheet.narrow else 0.7
    left += max((sheet.words(text) - 0.3 for panel in panels for _, text in panel["y"].get("ticks", [])), default=0)
    figure, places = sheet.figure(rows, columns, [high] * rows, left, longest + 0.3, 0.85)
    for panel, ax in zip(panels, places):
        axes(panel, ax, sheet.font)
        ticks = panel["x"].get("ticks", [])
        room = ax.get_position().width * figure.get_size_inches()[0]
        if sum(sheet.words(text) + 0.15 for _, text in ticks) > room:
            ax.xaxis.set_major_locator(FixedLocator([place for place, _ in ticks][::2]))
        for one in panel["series"]:
            alone = one["style"] == "point"
            ax.plot(one["x"], one["y"], color=light(one["color"]), linestyle="" if alone else STYLES[one["style"]],
                    marker="o" if alone else marker(one["color"]) if len(one["x"]) <= CROWD else "",
                    markersize=6 if alone else 4.5, linewidth=1.7)
            if "from" in one:
                ax.fill_between(one["x"], one["from"], one["to"], color=light(one["color"]), alpha=0.25, linewidth=0)
        if not panel["y"]["log"]:
            ax.set_ylim(bottom=panel["y"].get("from", 0))
        for x, text in panel.get("marks", []):
            ax.axvline(x, color=light("roof"), linestyle=STYLES["dotted"], linewidth=0.9)
            ax.text(x, 1.01, text, transform=ax.get_xaxis_transform(), ha="right", va="bottom",
                    fontsize=sheet.font - 1, color=light("roof"))
    for ax in places[len(panels):]:
        ax.remove()
    figure.canvas.draw()
    for series, ax in zip(named, places):
        if series:
            label_ends(ax, series, sheet.font - 1)
    return figure, places


def roofline(sheet: Sheet) -> Drawn:
    (panel,) = sheet.data["panels"]
    figure, (ax,) = sheet.figure(1, 1, [3.0 if sheet.narrow else 4.3], 0.65 if sheet.narrow else 0.75, 0.2, 0)
    axes(panel, ax, sheet.font)
    points = [one for one in panel["series"] if one["style"] != "roof"]
    roofs = [one for one in panel["series"] if one["style"] == "roof"]
    xs, ys = [one["x"][0] for one in points], [one["y"][0] for one in points]
    left, right = min(xs) / 4, max(max(xs) * 15, 4000)
    bottom, top = min(ys) / 3, max([one["y"][-1] for one in roofs] + ys) * 2
    ax.set_xlim(left, right)
    ax.set_ylim(bottom, top)
    small = {"fontsize": sheet.font - 1.5, "color": light("roof")}
    for one in roofs:
        ax.plot(one["x"], one["y"], color=light("roof"), linewidth=1.4)
        name = one["name"].partition(" (")[0] if sheet.narrow else one["name"]
        if "slope" in one:  # the highest: above it there is nothing
            ax.text(right, one["y"][-1] * 1.08, name, ha="right", va="bottom",
                    bbox={"facecolor": CARD, "edgecolor": "none", "pad": 0}, **small)  # the grid may run there
        else:
            ax.text(max(one["x"][1], left) * 1.2, one["y"][-1] / 1.12, name, ha="left", va="top", **small)
    figure.canvas.draw()
    for one in roofs:
        if "slope" in one:
            low, knee = ax.transData.transform([(one["x"][0], one["y"][0]), (one["x"][1], one["y"][1])])
            angle = math.degrees(math.atan2(knee[1] - low[1], knee[0] - low[0]))
            x = max(left, bottom / (one["y"][1] / one["x"][1])) * 1.5
            ax.text(x, x * one["y"][1] / one["x"][1] * 1.15, one["slope"].partition(" (")[0] if sheet.narrow
                    else one["slope"], rotation=angle, rotation_mode="anchor", **small)
    for one in points:
        fill = CARD if one["style"] == "hollow" else light(one["color"])
        ax.plot(one["x"], one["y"], marker=marker(one["color"]), markersize=8 if not sheet.narrow else 6,
                color=light(one["color"]), markerfacecolor=fill, linestyle="")
    # Names apart from one another: of hollow points at the left, of the others at the right of all points nearby.
    for style, side in (("hollow", -1), ("point", 1)):
        ours = [one for one in points if one["style"] == style]
        pixels = [ax.transData.transform((one["x"][0], one["y"][0])) for one in ours]
        for one, (x, y), place in zip(ours, pixels, apart([pixel[1] for pixel in pixels], 1.3 * (sheet.font - 1))):
            edge = side * max(side * near for near, height in pixels if abs(near - x) < 60 and abs(height - y) < 60)
            name = re.sub(r"^(\d\d) (?!backward).*", r"\1", one["name"]) if sheet.narrow else one["name"]
            ax.annotate(name, xy=(x, y), xycoords="figure pixels", xytext=(edge + 14 * side, place),
                        textcoords="figure pixels", va="center", ha="left" if side > 0 else "right",
                        fontsize=sheet.font - 1, color=light(one["color"]),
                        arrowprops={"arrowstyle": "-", "color": light(one["color"]), "linewidth": 0.5, "shrinkA": 0,
                                    "shrinkB": 4, "relpos": (0 if side > 0 else 1, 0.5)})
    return figure, [ax]


def steps(sheet: Sheet) -> Drawn:
    """A staircase, downwards and, where a step is slower, back to the right; what it says in numbers in two columns."""
    (panel,) = sheet.data["panels"]
    series, font = panel["series"], sheet.font - 0.5
    times, gains = (max(sheet.words(one.get(key, ""), size=font) for one in series) for key in ("text", "gain"))
    figure, (ax,) = sheet.figure(1, 1, [(0.2 if sheet.narrow else 0.26) * len(series)],
                                 max(sheet.words(one["name"], size=font) for one in series) + 0.2,
                                 times + gains + 0.3, 0)
    axes(panel, ax, sheet.font)
    ax.tick_params(labelsize=font)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.grid(axis="y", visible=False)
    inch = ax.get_position().width * figure.get_size_inches()[0]
    own = [number for number, one in enumerate(series) if isinstance(one["color"], int)]
    for number in range(0, len(series), 2):  # a band for every other row leads the eye to its numbers
        ax.axhspan(number - 0.5, number + 0.5, xmax=1 + (times + gains + 0.3) / inch, color=FAINT, alpha=0.45,
                   linewidth=0, clip_on=False, zorder=0)
    for number, one in enumerate(series):
        paint, (x,) = light(one["color"]), one["x"]
        slower = x > SLOWER * one["before"]
        ax.plot([one["before"], x], [number, number], color=paint, linewidth=1.2 if slower else 2.4,
                linestyle=STYLES["dotted"] if slower else "-", solid_capstyle="butt")
        if number + 1 in own:
            ax.plot([x, x], [number, number + 1], color=NOTE, linewidth=0.8)
        ax.plot([x], [number], marker="o", markersize=6.5 if not sheet.narrow else 5, color=paint,
                markerfacecolor=CARD if slower else paint)
        for text, place in ((one["text"], times + 0.12), (one.get("gain", ""), times + gains + 0.27)):
            ax.text(1 + place / inch, number, text, transform=ax.get_yaxis_transform(), ha="right", va="center",
                    fontsize=font)
    for text, place in (("ms", times + 0.12), ("gain", times + gains + 0.27)):
        ax.text(1 + place / inch, -0.62, text, transform=ax.get_yaxis_transform(), ha="right", va="bottom",
                fontsize=font, color=NOTE)
    peer = next((one for one in series if one["color"] == "FLASH"), None)
    if peer:
        ax.axvline(peer["x"][0], color=light("FLASH"), linestyle=STYLES["dotted"], linewidth=1)
    ax.set_xlim(min(one["x"][0] for one in series) / 1.4, max(max(one["x"][0], one["before"]) for one in series) * 1.4)
    ax.set_ylim(len(series) - 0.4, -0.6)
    ax.yaxis.set_major_locator(FixedLocator(range(len(series))))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: series[round(value)]["name"]))
    for label, one in zip(ax.get_yticklabels(), series):
        label.set_color(light(one["color"]))
    return figure, [ax]


def spans(sheet: Sheet) -> Drawn:
    """On a phone a panel that says where it ends comes in two halves, one below the other."""
    parts: list[tuple[JsonObject, "tuple[float, float] | None", str]] = []
    for panel in sheet.data["panels"]:
        to = panel["x"].get("to")
        halves: "list[tuple[float, float] | None]" = [(0, to) if to else None]
        if to and sheet.narrow:
            halves = [(0, to / 2), (to / 2, to)]
        parts += [(panel, half, f"{panel['title']}, {'then' if half and half[0] else 'first'}" if len(halves) > 1
                   else panel["title"]) for half in halves]
    rows = [list(dict.fromkeys(one.get("row", one["name"]) for one in panel["series"])) for panel, _, _ in parts]
    kinds = {one["name"]: light(one["color"]) for panel, _, _ in parts for one in panel["series"] if "row" in one}
    legend = (0.2 * (math.ceil(len(kinds) / 2) if sheet.narrow else 1)) if kinds else 0
    row = 0.22 if sheet.narrow else 0.32
    figure, places = sheet.figure(len(parts), 1, [row * len(names) for names in rows],
                                  max(sheet.words(name, size=sheet.font) for names in rows for name in names) + 0.2,
                                  0.25, 0.8, legend)
    for (panel, half, title), names, ax in zip(parts, rows, places):
        axes({**panel, "title": title}, ax, sheet.font)
        ax.grid(axis="y", visible=False)
        for one in panel["series"]:
            number = names.index(one.get("row", one["name"]))
            ax.broken_barh([(begin, end - begin) for begin, end in zip(one["x"], one["y"])], (number - 0.38, 0.76),
                           facecolor=light(one["color"]), edgecolor=CARD, linewidth=0.5)
        ax.set_ylim(len(names) - 0.4, -0.6)
        if half:
            edge = 0.01 * (half[1] - half[0])
            ax.set_xlim(half[0] - edge, half[1] + edge)
            ax.xaxis.set_major_locator(FixedLocator([place for place, _ in panel["x"]["ticks"]
                                                     if half[0] <= place <= half[1]]))
        ax.yaxis.set_major_locator(FixedLocator(range(len(names))))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _, names=names: names[round(value)]))
    if kinds:
        width, height = figure.get_size_inches()
        figure.legend(handles=[Patch(facecolor=paint, label=name) for name, paint in kinds.items()], loc="upper left",
                      bbox_to_anchor=(0.05 / width, 1 - (sheet.above(width) - 0.02) / height),
                      ncols=2 if sheet.narrow else len(kinds), fontsize=sheet.font - 1, frameon=False, handlelength=1,
                      columnspacing=1.2, borderpad=0.2, labelspacing=0.3)
    return figure, []


def nothing(sheet: Sheet) -> Drawn:
    figure = plt.figure(figsize=(sheet.width(), 1.6))
    figure.text(0.5, 0.35, "not measured yet", ha="center", color=NOTE)
    return figure, []


def adapting(svg: str) -> str:
    """Each colour is a variable, which has another value on a dark page."""
    used = sorted(set(re.findall(r"#[0-9a-f]{6}\b", svg)))
    unknown = [paint for paint in used if paint not in ON_DARK]
    if unknown:
        raise ValueError(f"no colour for a dark page: {unknown[0]}")
    values = ["".join(f"--c{paint[1:]}:{paint if on_light else ON_DARK[paint]};" for paint in used)
              for on_light in (True, False)]
    style = f"<style>svg{{{values[0]}}}@media (prefers-color-scheme:dark){{svg{{{values[1]}}}}}</style>"
    head, mark, rest = re.sub(r"#([0-9a-f]{6})\b", r"var(--c\1)", svg).partition("<defs>")
    return head + style + "\n " + mark + rest


def points(data: JsonObject, figure: plt.Figure, places: list[plt.Axes]) -> JsonObject:
    width, height = figure.bbox.width, figure.bbox.height
    found = []
    for number, (panel, ax) in enumerate(zip(data["panels"], places)):
        for which, one in enumerate(panel["series"]):
            for place, (x, y) in enumerate(zip(one["x"], one["y"]) if one["style"] != "roof" else []):
                x, y = ax.transData.transform((x, which if data["kind"] == "steps" else y))
                found.append([number, which, place, round(x / width, 4), round(1 - y / height, 4)])
    return {"size": [round(PIXELS * inches) for inches in figure.get_size_inches()], "points": found}


def draw(data: JsonObject, mark: str, path: Path, narrow: bool) -> JsonObject:
    kinds: dict[str, Callable[[Sheet], Drawn]] = {"lines": lines, "roofline": roofline, "steps": steps, "spans": spans}
    empty = not any(panel["series"] for panel in data["panels"])
    figure, places = (nothing if empty else kinds[data["kind"]])(Sheet(data, narrow))
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    where = points(data, figure, places)
    plt.close(figure)
    text = "\n".join(line.rstrip() for line in path.read_text().splitlines())
    path.write_text(adapting(text).replace("</svg>", f"<!-- data {mark} -->\n</svg>") + "\n")
    return where


def main(words: list[str]) -> int:
    directory = Path(words[0])
    directory.mkdir(parents=True, exist_ok=True)
    for name, picture in json.load(sys.stdin).items():
        what = picture["data"], picture["fingerprint"]
        wide = draw(*what, directory / f"{name}.svg", narrow=False)
        if "--site" in words:
            narrow = draw(*what, directory / f"{name}.narrow.svg", narrow=True)
            (directory / f"{name}.json").write_text(json.dumps({"wide": wide, "narrow": narrow}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
