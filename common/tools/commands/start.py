"""make this clone yours: every exercise as it is at the beginning, and what to do first

A clone has the book's solutions. This takes them out: where an exercise is, a stub or a planted mistake stands then,
and everything else stays. With chapters or exercises named, only those. What was there is kept: ./workbook start --undo
puts all of it back, byte for byte, and keeps what you have written. An exercise that you have changed before stays as
it is, and so does one that you have started before: what you have written is never touched.

git sees these files as changed by you. If the course changes one of them, a plain git pull refuses; start --pull gets
the newest version, and your lines stand in it afterwards.
"""

import argparse
import subprocess
import sys

from tools.base import ROOT, Failure, build, say
from tools.course import LEARNER, Exercise, LearnersPath


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("exercises", nargs="*", metavar="EXERCISE", help="02, or 02.scores (default: all)")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--undo", action="store_true", help="put back all that was there before")
    instead.add_argument("--pull", action="store_true", help="git pull, around your lines")


def run(arguments: argparse.Namespace) -> int:
    path = LearnersPath()
    chosen = path.course.select(arguments.exercises)
    if arguments.exercises and (arguments.undo or arguments.pull):
        raise Failure(f"--{'undo' if arguments.undo else 'pull'} is for all exercises: name none", status=2)
    if path.learner.is_away():
        return _come_back(path)
    if arguments.undo:
        return _undo(path)
    if arguments.pull:
        say(path.learner.pull())
        # A process of its own has the newer version of these commands.
        return subprocess.run([sys.executable, ROOT / "workbook", "start", "--pull"]).returncode
    begun, changed = path.learner.start(chosen)
    for one in changed:
        say(f"{one.id} stays as it is, for you have changed it ({one.file}); ./workbook reset {one.id} begins it")
    if begun:
        files = len({one.file for one in begun})
        say(f"Started: {_exercises(begun)}, in {files} file{'s' if files > 1 else ''}. ./workbook start --undo puts "
            "the solutions back.")
    elif not changed:
        say("Started already; nothing was changed.")
    _say_next(path, chosen)
    if begun and not build.directory("cpu").exists():
        say("The first check builds the engine and the tests, a minute or two. Later ones take seconds.")
    return 0


def _say_next(path: LearnersPath, chosen: "list[Exercise] | None" = None) -> None:
    for line in path.lines(chosen if chosen and path.next(chosen) else None):
        say(line)


def _exercises(some: list[Exercise]) -> str:
    return f"{len(some)} exercises" if len(some) > 1 else some[0].id


def _undo(path: LearnersPath) -> int:
    if path.learner.was_handed_out:
        raise Failure("this tree was handed out: there are no solutions that could be put back", status=2)
    if not path.learner.has_started():
        raise Failure("nothing is started, so there is nothing to undo", status=2)
    kept, differ = path.learner.undo()
    say("All files are as they were before ./workbook start." if not differ
        else f"The solutions are back. In {', '.join(differ)} you have changed something else, too, which stays.")
    if kept:
        say(f"What you had written is in {LEARNER}/kept. After another start, ./workbook reset EXERCISE --mine gives "
            f"it back: {', '.join(one.id for one in kept)}")
    return 0


def _come_back(path: LearnersPath) -> int:
    for line in path.learner.come_back():
        say(line)
    again = LearnersPath()
    new = [one.id for one in again.course.exercises if not again.learner.started(one)]
    say("Your lines stand in the newest version." + (f" Not started: {', '.join(new)}" if new else ""))
    _say_next(again)
    return 0
