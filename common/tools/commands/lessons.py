"""how long each lesson is: its words, pictures, numbers and formulas

common/tools/showing/lesson_measures.py says what a word is, and a number. With --check each bound that a lesson
does not keep is named, and the exit status is 1.
"""

import argparse

from tools.base import ROOT, Failure, chapters, say, table
from tools.showing import lesson_measures


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="number or name: 01 05 (default: all)")
    parser.add_argument("--check", action="store_true", help="name the bounds that do not hold")
    parser.add_argument("--numbers", action="store_true", help="print the numbers that are counted")


def run(arguments: argparse.Namespace) -> int:
    chosen = {chapter.name for chapter in chapters.select(arguments.chapters, chapters.all_chapters())}
    measured = [one for one in lesson_measures.all_measures(ROOT) if one.page.partition("/")[0] in chosen]
    rows: list[list[object]] = [["", "words", "folded", "pictures", "plots", "numbers", "formulas", "markers"]]
    rows += [[one.page.removesuffix("/README.md"), one.unfolded, one.folded, one.pictures, one.plots, one.numbers,
              one.formulas, f"{one.marker_percent:.1f}%"] for one in measured]
    say(table(rows))
    if arguments.numbers:
        for page in measured:
            say(f"\n{page.page}: {' '.join(lesson_measures.unfolded_numbers((ROOT / page.page).read_text()))}")
    beyond = [line for one in measured for line in one.beyond_bounds(one.page[:2])] if arguments.check else []
    if beyond:
        say("\n" + "\n".join(beyond))
        raise Failure(f"{len(beyond)} bounds do not hold")
    return 0
