"""pictures, tables and numbers of these pages, from the measurements in common/results

Needs no GPU. It also writes the boxes of the exercises into the lessons, from exercises.json, and the pictures that
explain, from the constants of the kernels. Pictures of measurements need matplotlib; nothing else does. With --check
nothing is written: what stands in a README and is not what was measured is named, and the exit status is 1.

The READMEs tell of one GPU. For another one's measurements (--gpu) pictures are drawn beside them and the tables
printed. So it is for a ladder that ./workbook run --save NAME kept, whose picture shows it beside the recorded one.
"""

import argparse
from pathlib import Path

from tools.base import (
    RESULTS,
    ROOT,
    Failure,
    JsonObject,
    bold,
    pythons,
    say,
    shown,
    significant,
    table,
)
from tools.course import boxes, load
from tools.record import THE_BOOKS, Record, own
from tools.showing import Tables, lesson_numbers, lesson_pictures, pictures


def add_arguments(parser: argparse.ArgumentParser) -> None:
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--check", action="store_true", help="compare only; exit with status 1 if anything differs")
    only.add_argument("--again", action="store_true",
                      help="what the numbers of the READMEs would be by the second measurement, the least steady first")
    only.add_argument("--no-pictures", action="store_true", help="tables and numbers only")
    parser.add_argument("--gpu", metavar="NAME", default=THE_BOOKS,
                        help=f"a directory of common/results (default: {THE_BOOKS})")


def run(arguments: argparse.Namespace) -> int:
    directory = next((place / arguments.gpu for place in (RESULTS, own.OWN) if (place / arguments.gpu).is_dir()), None)
    if not directory:
        there = sorted(path.name for path in RESULTS.iterdir() if path.is_dir())
        there += [one.directory.name for one in own.records()]
        raise Failure(f"--gpu is {arguments.gpu}: there are measurements of {', '.join(there)}", status=2)
    if directory.parent == own.OWN:
        return _own(Record(directory), arguments.no_pictures)
    record = Record(directory)
    if arguments.again:
        rows = [["", "first", "second", "apart", "what"]]
        rows += [[one.where, significant(one.first), significant(one.second), f"{one.apart:.1f}%", f" {one.expression}"]
                 for one in lesson_numbers.repeated(ROOT, record)]
        say(table(rows) if len(rows) > 1
            else "No number of the READMEs has been measured twice (./workbook dev measure --again).")
        return 0
    if arguments.check:
        return check(record, directory / "pictures")
    if arguments.gpu == THE_BOOKS:
        changed, left = lesson_numbers.rewrite(ROOT, record)
        for path in [*changed, *(ROOT / page for page in boxes.write(load())), *lesson_pictures.write(ROOT)]:
            say(f"Rewritten: {shown(path)}")
        for difference in left:
            say(str(difference))
        if left:
            raise Failure(f"{len(left)} places could not be mended: they name what is not in {shown(directory)}")
    else:
        tables = Tables(record)
        for name, text in [("ladder, forward", tables.ladder("forward")),
                           ("ladder, backward", tables.ladder("backward")),
                           ("against peers", tables.against("forward")),
                           *((f"the sweep in both ways, {one}", tables.sweep_in_both_ways(one))
                             for one in ("forward", "backward")),
                           *((f"the sweep of models, {one}", tables.models_in_both_ways(one))
                             for one in ("forward", "backward")),
                           ("machine", tables.machine())]:
            say(f"{bold(name)}\n\n{text}\n")
    if not arguments.no_pictures:
        draw(record, directory / "pictures")
    return 0


def _own(record: Record, no_pictures: bool) -> int:
    """A ladder of the user's own GPU, which has nothing but times."""
    for direction in ("forward", "backward"):
        if record.steps(direction):
            say(f"{bold(f'ladder, {direction}')}\n\n{Tables(record).ladder(direction)}\n")
    if not no_pictures:
        _draw(pictures.own_pictures(record, Record(RESULTS / THE_BOOKS)), record.directory / "pictures")
    return 0


def check(record: Record, directory: Path) -> int:
    differences = [str(difference) for difference in lesson_numbers.check(ROOT, record)] + boxes.check(load())
    differences += [f"{shown(directory)}/{name}.svg is not of these measurements"
                    for name in pictures.stale(record, directory)] + lesson_pictures.stale(ROOT)
    for line in differences:
        say(line)
    if differences:
        raise Failure(f"{len(differences)} differences; ./workbook dev report mends numbers, tables, boxes, pictures")
    say("Tables and numbers are what was measured, and the pictures were drawn from it. The boxes are right.")
    return 0


def draw(record: Record, directory: Path) -> None:
    _draw(pictures.all_pictures(record), directory)


def _draw(data_of: dict[str, JsonObject], directory: Path) -> None:
    python = pythons.with_module("matplotlib")
    if python is None:
        raise Failure("the pictures need matplotlib: apt-get install python3-matplotlib, or pip install matplotlib, or "
                      "name a Python that has it in WORKBOOK_PYTHON (--no-pictures does without)")
    pictures.draw(python, data_of, directory)
    say(f"{len(data_of)} pictures in {shown(directory)}")
