"""What a solution's lines are: those that say something of it."""

import re

from tools.course import planted
from tools.course.exercises import Course, Exercise

_LITTLE = 16  # characters besides blanks: a line that is shorter says nothing of a solution
# Lines that many kernels have.
_COMMON = re.compile(r"__sync(threads|warp)\(\);|#pragma unroll.*|"
                     r"(cp_async_(commit|wait<\d>)|bulk_(commit|wait_read<\d>))\(\);")


def lines_of(course: Course, exercise: Exercise) -> list[str]:
    """The solution's significant lines not in the stub, without comments. Needs a tree with solutions."""
    if exercise.kind == "code":
        stub = bare(course.handed_out(exercise) or "")
        lines = [line for line in course.written(exercise).splitlines() if bare(line) not in stub]
    elif exercise.kind == "debug":
        lines = [line for right, wrong in planted.read(course.root, exercise.id)
                 for line in right.splitlines() if line not in wrong.splitlines()]
    else:
        lines = []
    return [line.partition("//")[0].strip() for line in lines
            if len(bare(line)) >= _LITTLE and not _COMMON.fullmatch(bare(line))]


def bare(line: str) -> str:
    """The line without its comment and blanks."""
    return "".join(line.partition("//")[0].split())
