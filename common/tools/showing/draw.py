"""Draws the pictures of tools/showing/pictures.py with matplotlib, the only part of the workbook that needs it.

    python3 -m tools.showing.draw DIRECTORY < {"name": {"data": .., "fingerprint": ..}}

Each stands on a card of its own, so that it can be read on a white and on a black page; every line is labelled where it
ends. The same data gives the same bytes.
"""

import json
import math
import sys
from pathlib import Path

import matplotlib

from tools.base import JsonObject

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.patches import Patch  # noqa: E402
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator  # noqa: E402

from tools.showing.pictures import color  # noqa: E402

CARD, INK, FAINT = "#fbfaf7", "#1f1f1f", "#d9d6cf"
MARKERS = "osD^vPX<>"
STYLES = {"solid": "-", "dashed": (0, (5, 2)), "dotted": (0, (1, 1.5)), "dashdot": (0, (5, 1.5, 1, 1.5))}

plt.rcParams.update({
    "svg.fonttype": "none", "svg.hashsalt": "workbook", "font.family": "sans-serif",
    "font.sans-serif": ["Helvetica", "Arial", "DejaVu Sans"], "font.size": 10, "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK, "xtick.color": INK, "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False,
    "figure.facecolor": CARD, "axes.facecolor": CARD, "savefig.facecolor": CARD, "axes.grid": True,
    "axes.axisbelow": True, "grid.color": FAINT, "grid.linewidth": 0.6,
})


def marker(index: "int | str") -> str:
    return "" if isinstance(index, str) else MARKERS[index % len(MARKERS)]


def plain(value: float) -> str:
    return f"{value:,.0f}".replace(",", " ") if value >= 10 else f"{value:g}"


def axes(panel: JsonObject, ax: plt.Axes) -> None:
    ax.set_title(panel["title"], fontsize=10, loc="left")
    for axis, what in ((ax.xaxis, panel["x"]), (ax.yaxis, panel["y"])):
        (ax.set_xscale if axis is ax.xaxis else ax.set_yscale)("log" if what["log"] else "linear")
        axis.set_label_text(what["label"])
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


def label_ends(ax: plt.Axes, series: list[JsonObject]) -> None:
    """Each line's name where it ends, moved up or down where names would overlap."""
    ends = [ax.transData.transform((one["x"][-1], one["y"][-1])) for one in series]
    right = ax.transData.transform((max(one["x"][-1] for one in series), 1))[0] + 8
    for one, (x, y), place in zip(series, ends, apart([end[1] for end in ends], 13, ax.bbox.y0)):
        ax.annotate(one["name"], xy=(x, y), xycoords="figure pixels", xytext=(right + 8, place),
                    textcoords="figure pixels",
                    color=color(one["color"]), va="center", fontsize=9, annotation_clip=False,
                    arrowprops={"arrowstyle": "-", "color": color(one["color"]), "linewidth": 0.6, "shrinkA": 1,
                                "shrinkB": 3, "relpos": (0, 0.5)})


def lines(data: JsonObject) -> plt.Figure:
    panels = data["panels"]
    columns = 1 if len(panels) == 1 else 2
    rows = math.ceil(len(panels) / columns)
    size = (8.2 if columns == 1 else 10.6, 4.9 if rows == 1 else 7.6)
    figure, grid = plt.subplots(rows, columns, figsize=size, squeeze=False)
    # Room at the right of each panel for the names, at the top for the title.
    top = 0.89 if rows > 1 else 0.86 if columns == 1 else 0.8
    figure.subplots_adjust(left=0.09, right=0.72 if columns == 1 else 0.83, top=top, bottom=0.12 if rows == 1 else 0.07,
                           wspace=0.75, hspace=0.28)
    for panel, ax in zip(panels, grid.flat):
        axes(panel, ax)
        for one in panel["series"]:
            ax.plot(one["x"], one["y"], color=color(one["color"]), linestyle=STYLES[one["style"]],
                    marker=marker(one["color"]), markersize=4.5, linewidth=1.7)
            if "from" in one:
                ax.fill_between(one["x"], one["from"], one["to"], color=color(one["color"]), alpha=0.25, linewidth=0)
        if not panel["y"]["log"]:
            ax.set_ylim(bottom=panel["y"].get("from", 0))
        for x, text in panel.get("marks", []):
            ax.axvline(x, color=color("roof"), linestyle=STYLES["dotted"], linewidth=0.9)
            ax.text(x, 1.01, text, transform=ax.get_xaxis_transform(), ha="right", va="bottom", fontsize=9,
                    color=color("roof"))
    figure.canvas.draw()
    for panel, ax in zip(panels, grid.flat):
        if panel["series"]:
            label_ends(ax, panel["series"])
    return figure


def roofline(data: JsonObject) -> plt.Figure:
    (panel,) = data["panels"]
    figure, ax = plt.subplots(figsize=(8.2, 5.2))
    figure.subplots_adjust(left=0.09, right=0.97, top=0.87, bottom=0.11)
    axes(panel, ax)
    points = [one for one in panel["series"] if one["style"] != "roof"]
    roofs = [one for one in panel["series"] if one["style"] == "roof"]
    xs, ys = [one["x"][0] for one in points], [one["y"][0] for one in points]
    left, right = min(xs) / 4, max(max(xs) * 15, 4000)
    bottom, top = min(ys) / 3, max([one["y"][-1] for one in roofs] + ys) * 2
    ax.set_xlim(left, right)
    ax.set_ylim(bottom, top)
    for one in roofs:
        ax.plot(one["x"], one["y"], color=color("roof"), linewidth=1.4)
        if "slope" in one:  # the highest: above it there is nothing
            ax.text(right, one["y"][-1] * 1.08, one["name"], ha="right", va="bottom", fontsize=8.5, color=color("roof"),
                    bbox={"facecolor": CARD, "edgecolor": "none", "pad": 0})  # a line of the grid may run there
        else:
            ax.text(max(one["x"][1], left) * 1.2, one["y"][-1] / 1.12, one["name"], ha="left", va="top", fontsize=8.5,
                    color=color("roof"))
    figure.canvas.draw()
    for one in roofs:
        if "slope" in one:
            low, knee = ax.transData.transform([(one["x"][0], one["y"][0]), (one["x"][1], one["y"][1])])
            angle = math.degrees(math.atan2(knee[1] - low[1], knee[0] - low[0]))
            x = max(left, bottom / (one["y"][1] / one["x"][1])) * 1.5
            ax.text(x, x * one["y"][1] / one["x"][1] * 1.15, one["slope"], rotation=angle, rotation_mode="anchor",
                    fontsize=8.5, color=color("roof"))
    for one in points:
        fill = CARD if one["style"] == "hollow" else color(one["color"])
        ax.plot(one["x"], one["y"], marker=marker(one["color"]), markersize=8, color=color(one["color"]),
                markerfacecolor=fill, linestyle="")
    # Names apart from one another: of hollow points at the left, of the others at the right of all points nearby.
    for style, side in (("hollow", -1), ("point", 1)):
        ours = [one for one in points if one["style"] == style]
        pixels = [ax.transData.transform((one["x"][0], one["y"][0])) for one in ours]
        for one, (x, y), place in zip(ours, pixels, apart([pixel[1] for pixel in pixels], 13)):
            edge = side * max(side * near for near, height in pixels if abs(near - x) < 60 and abs(height - y) < 60)
            ax.annotate(one["name"], xy=(x, y), xycoords="figure pixels", xytext=(edge + 14 * side, place),
                        textcoords="figure pixels", va="center", ha="left" if side > 0 else "right", fontsize=9,
                        color=color(one["color"]),
                        arrowprops={"arrowstyle": "-", "color": color(one["color"]), "linewidth": 0.5, "shrinkA": 0,
                                    "shrinkB": 4, "relpos": (0 if side > 0 else 1, 0.5)})
    return figure


def bars(data: JsonObject) -> plt.Figure:
    (panel,) = data["panels"]
    series = panel["series"]
    figure, ax = plt.subplots(figsize=(8.2, 1.3 + 0.3 * len(series)))
    height = figure.get_size_inches()[1]
    figure.subplots_adjust(left=0.21, right=0.95, top=1 - 0.7 / height, bottom=0.5 / height)
    axes(panel, ax)
    ax.grid(axis="y", visible=False)
    least = min(one["x"][0] for one in series) / 2
    for number, one in enumerate(series):
        ax.barh(number, one["x"][0] - least, left=least, color=color(one["color"]), height=0.68)
        ax.annotate(one["text"], xy=(one["x"][0], number), xytext=(5, 0), textcoords="offset points", va="center",
                    fontsize=9)
    ax.set_xlim(least, max(one["x"][0] for one in series) * 6)
    ax.set_ylim(len(series) - 0.4, -0.6)
    ax.yaxis.set_major_locator(FixedLocator(range(len(series))))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: series[round(value)]["name"]))
    return figure


def spans(data: JsonObject) -> plt.Figure:
    panels = data["panels"]
    rows = [list(dict.fromkeys(one.get("row", one["name"]) for one in panel["series"])) for panel in panels]
    figure, grid = plt.subplots(len(panels), 1, figsize=(8.2, 0.9 + sum(0.75 + 0.32 * len(names) for names in rows)),
                                squeeze=False)
    height = figure.get_size_inches()[1]
    figure.subplots_adjust(left=0.16, right=0.97, top=1 - 0.85 / height, bottom=0.5 / height, hspace=0.55)
    for panel, names, ax in zip(panels, rows, grid.flat):
        axes(panel, ax)
        ax.grid(axis="y", visible=False)
        for one in panel["series"]:
            number = names.index(one.get("row", one["name"]))
            ax.broken_barh([(begin, end - begin) for begin, end in zip(one["x"], one["y"])], (number - 0.34, 0.68),
                           facecolor=color(one["color"]), edgecolor=CARD, linewidth=0.8)
        ax.set_ylim(len(names) - 0.4, -0.6)
        if "to" in panel["x"]:
            ax.set_xlim(-0.02 * panel["x"]["to"], 1.02 * panel["x"]["to"])
        ax.yaxis.set_major_locator(FixedLocator(range(len(names))))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _, names=names: names[round(value)]))
    kinds = {one["name"]: color(one["color"]) for panel in panels for one in panel["series"] if "row" in one}
    if kinds:
        figure.legend(handles=[Patch(facecolor=paint, label=name) for name, paint in kinds.items()], loc="upper right",
                      bbox_to_anchor=(0.98, 1 - 0.08 / height), ncols=len(kinds), fontsize=9, frameon=False,
                      handlelength=1, columnspacing=1.2)
    return figure


def nothing(_: JsonObject) -> plt.Figure:
    figure = plt.figure(figsize=(8.2, 1.6))
    figure.text(0.5, 0.35, "not measured yet", ha="center", color="#6b6b6b")
    return figure


def draw(data: JsonObject, mark: str, path: Path) -> None:
    empty = not any(panel["series"] for panel in data["panels"])
    figure = (nothing if empty else {"lines": lines, "roofline": roofline, "bars": bars,
                                     "spans": spans}[data["kind"]])(data)
    height = figure.get_size_inches()[1]
    figure.text(0.02, 1 - 0.26 / height, data["title"], fontsize=13, weight="bold")
    figure.text(0.02, 1 - 0.47 / height, data["note"], fontsize=9, color="#555555")
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
    text = "\n".join(line.rstrip() for line in path.read_text().splitlines())
    path.write_text(text.replace("</svg>", f"<!-- data {mark} -->\n</svg>") + "\n")


def main(words: list[str]) -> int:
    directory = Path(words[0])
    directory.mkdir(parents=True, exist_ok=True)
    for name, picture in json.load(sys.stdin).items():
        draw(picture["data"], picture["fingerprint"], directory / f"{name}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
