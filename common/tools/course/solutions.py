"""Where else a solution's lines stand: what must not be in a student's tree."""

import re
from collections.abc import Iterator
from pathlib import Path

from tools.course import planted
from tools.course.exercises import Course, Exercise

_LITTLE = 16  # characters besides blanks: a line that is shorter says nothing of a solution
# Lines that many kernels have.
_COMMON = re.compile(r"__sync(threads|warp)\(\);|#pragma unroll.*|cp_async_(commit|wait<\d>)\(\);")


def lines_of(course: Course, exercise: Exercise) -> list[str]:
    """The solution's significant lines not in the stub, bare of comments and blanks. Needs a tree with solutions."""
    if exercise.kind == "code":
        stub = bare(course.handed_out(exercise) or "")
        lines = [line for line in course.written(exercise).splitlines() if bare(line) not in stub]
    elif exercise.kind == "debug":
        lines = [line for right, wrong in planted.read(course.root, exercise.id)
                 for line in right.splitlines() if line not in wrong.splitlines()]
    else:
        lines = []
    return [line for line in map(bare, lines) if len(line) >= _LITTLE and not _COMMON.fullmatch(line)]


def files_with(course: Course, exercise: Exercise) -> dict[str, float]:
    """{file: how much of the solution, 0 to 1, stands in it line by line} of the sources and pages in which any of
    it does, but for the exercise's own. (A debugging exercise that takes away a barrier has no lines that say
    something.)"""
    wanted = set(lines_of(course, exercise))
    found = {}
    for path in _candidates(course.root):
        file = str(path.relative_to(course.root))
        if file == exercise.file or not wanted:
            continue
        there = wanted & {bare(line) for line in path.read_text(errors="replace").splitlines()}
        if there:
            found[file] = len(there) / len(wanted)
    return found


def _candidates(root: Path) -> Iterator[Path]:
    for pattern in ("[0-9][0-9]_*/*", "common/**/*", "*.md"):
        yield from (path for path in sorted(root.glob(pattern)) if path.suffix in (".cu", ".cc", ".h", ".md"))


def bare(line: str) -> str:
    """The line without its comment and blanks."""
    return "".join(line.partition("//")[0].split())
