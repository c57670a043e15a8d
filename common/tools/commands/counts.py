"""record what the kernels count: the numbers that the tests expect from now on

For a chapter that is new, or whose kernels were meant to change: its requests, sectors, wavefronts and bytes on the
counting engine go into common/tests/trace. Look at the difference before you commit it: the lessons are about these
numbers. The word `patterns` stands for the access patterns that the engine's own tests count.
"""

import argparse
import json

from tools.base import Failure, build, chapters, output_of, say
from tools.course import Learner, load

PATTERNS = "patterns"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="of these, or `patterns` (default: all)")


def run(arguments: argparse.Namespace) -> int:
    named = [word for word in arguments.chapters if word != PATTERNS]
    selected = chapters.select(named, chapters.all_chapters()) if named or not arguments.chapters else []
    Learner(load()).require_none_started("recording counts")
    tests = [f"{chapter.name}.trace.counts" for chapter in selected]
    targets = [chapter.traced for chapter in selected]
    if PATTERNS in arguments.chapters or not arguments.chapters:
        tests.append("trace.patterns")
        targets.append("trace_patterns")
    directory = build.ensure_built("cpu", targets)
    answer = output_of(["ctest", "--test-dir", directory, "--show-only=json-v1"])
    commands = {test["name"]: test.get("command", []) for test in json.loads(answer)["tests"]} if answer else {}
    for test in [name for name in commands for test in tests if name == test or name.startswith(f"{test}.")]:
        python, flag, script, path, *program = commands[test]  # what the test runs: see common/tests/trace
        written = output_of([python, flag, script, "--write", path, *program], timeout=600)
        if written is None:
            raise Failure(f"could not count {test.partition('.')[0]}: ./workbook trace shows why")
        say(written.strip())
    return 0
