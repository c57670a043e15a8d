"""Draws what others show of a page beside a link to it, with matplotlib: 1200 × 630 pixels.

    python3 -m tools.showing.share DIRECTORY < {"name": {"title": .., "words": .., "gain": .., "color": ..,
                                                        "stairs": [[ms, color], ..], "own": number}}

All have the stairs of the ladder, from the first chapter down to the last one; `own` is the stair of the page's
chapter, whose colour is lit, or null where all are.
"""

import json
import math
import sys
import textwrap
from pathlib import Path

import matplotlib

from tools.base import JsonObject

matplotlib.use("agg")
import matplotlib.pyplot as plt  # noqa: E402

CARD, INK, NOTE, FAINT = "#16181c", "#ece9e2", "#a8adb5", "#59606b"  # dark, whoever shows it
WIDTH, HEIGHT, DPI = 1200, 630, 100
NAME = "The FlashAttention workbook"


def draw(page: JsonObject, path: Path) -> None:
    figure = plt.figure(figsize=(WIDTH / DPI, HEIGHT / DPI), dpi=DPI, facecolor=CARD)
    stairs, own = page["stairs"], page["own"]
    figure.text(0.06, 0.9, NAME if own is not None else "CUDA, one idea at a time", fontsize=21, color=NOTE, va="top")
    y = 0.79
    for line in textwrap.wrap(page["title"], 19):
        figure.text(0.06, y, line, fontsize=44, weight="bold", va="top", color=page["color"] or INK)
        y -= 0.125
    y -= 0.03
    for line in textwrap.wrap(page["words"], 40)[:5]:
        figure.text(0.06, y, line, fontsize=22, va="top", color=INK)
        y -= 0.072
    if page["gain"]:
        figure.text(0.06, 0.07, page["gain"], fontsize=27, weight="bold", va="bottom", color=INK)
    ax = figure.add_axes((0.68, 0.2, 0.27, 0.6))
    ax.axis("off")
    places = [math.log10(ms) for ms, _ in stairs]
    for number, (_, color) in enumerate(stairs):
        lit = own is None or own == number
        before = places[max(0, number - 1)]
        ax.plot([number, number], [before, places[number]], color=color if lit else FAINT, linewidth=7 if lit else 4,
                solid_capstyle="round")
        if number + 1 < len(stairs):
            ax.plot([number, number + 1], [places[number]] * 2, color=FAINT, linewidth=2)
        ax.plot([number], [places[number]], marker="o", markersize=19 if lit else 11, color=color if lit else FAINT)
    figure.savefig(path, facecolor=CARD, metadata={"Software": None})
    plt.close(figure)


def main(words: list[str]) -> int:
    directory = Path(words[0])
    directory.mkdir(parents=True, exist_ok=True)
    for name, page in json.load(sys.stdin).items():
        draw(page, directory / f"{name}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
