"""the path: chapters with their ideas, rungs and exercises, how far you are, and what this machine supports"""

import argparse

from tools.base import bold, chapters, cuda, good, packages, say, table
from tools.course import Exercise, LearnersPath, rungs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="number or name: 01 05 (default: all)")
    parser.add_argument("--exercises", action="store_true",
                        help="the exercises alone, with their points, and how far you are")


def run(arguments: argparse.Namespace) -> int:
    path, chosen = LearnersPath(), chapters.select(arguments.chapters, chapters.with_lessons())
    exercises = [one for one in path.course.exercises if one.id[:2] in {chapter.number for chapter in chosen}]
    if arguments.exercises:
        _say_exercises(path, exercises)
    else:
        _say_chapters(path, chosen)
    say()
    for line in path.lines():
        say(line)
    if not arguments.exercises and not arguments.chapters:
        say()
        _say_machine()
    return 0


def _say_chapters(path: LearnersPath, chosen: list[chapters.Chapter]) -> None:
    ladder = rungs.read(path.course.root, {})
    rows = []
    for chapter in chosen:
        rows.append([chapter.name, "", ladder.idea_of(chapter.name) or chapters.title(chapter)])
        listed = ladder.listed(chapter.name)
        if len(listed) > 1:
            rows += [[f"  {rung.name}", "", rung.idea] for rung in listed]
        rows += [[f"  {one.id}", _state(path, one), f"{one.title} ({one.minutes} minutes)"]
                 for one in path.course.exercises if one.id[:2] == chapter.number]
    lines = table(rows, left_columns=3).split("\n")
    for line, row in zip(lines, rows):
        say(bold(line) if not row[0].startswith(" ") else good(line) if row[1] == "right" else line)


def _state(path: LearnersPath, exercise: Exercise) -> str:
    """What a learner reads: an exercise of a clone that is not started has no state yet."""
    return path.state(exercise) if path.learner.has_started() else "exercise"


def _say_exercises(path: LearnersPath, exercises: list[Exercise]) -> None:
    rows: list[list[object]] = [["exercise", "", "", "minutes", "points", "difficulty"]]
    points: float = 0
    for one in exercises:
        state = path.state(one)
        points += one.points if state == "right" else 0
        rows.append([one.id, state, one.title + ("" if one.required else " (not required)"), one.minutes,
                     f"{one.points:g}", "*" * one.difficulty])
    say(table(rows, left_columns=3))
    say(f"\n{points:g} of {sum(one.points for one in exercises):g} points")


def _say_machine() -> None:
    choice = cuda.choose_preset(None)
    say(bold("here"))
    say(f"  preset {choice.preset}: {choice.why}")
    missing = packages.missing_packages(choice.preset)
    if missing:
        say(f"  missing packages, which run and test install: {' '.join(package.name for package in missing)}")
