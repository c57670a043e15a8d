"""What of a solution must not stand in a student's tree, and where it does.

The ladder repeats itself: much of a solution has been read in an earlier chapter, and much of it returns in a later
one. A line is a solution's own if no file before the exercise's has it, nor the rest of that file, nor common/device.
Wherever a line of a solution's own stands, the solution is shown.
"""

from functools import cache
from pathlib import Path

from tools.course import Course, Exercise, bare, lines_of, planted

Run = list[str]  # lines that stand one after the other


def own_lines(course: Course, exercise: Exercise, students: dict[str, str]) -> list[Run]:
    """Runs of lines, of which none may stand in a student's tree. `students` is {file: its text in that tree}."""
    if exercise.kind == "measure":
        return []
    if exercise.kind == "debug":
        changed = [list(_bare_lines(right)) for right, _ in planted.read(course.root, exercise.id)]
        runs = [run for run in changed if run]  # comments alone show nothing
    else:
        runs = [[line] for line in lines_of(course, exercise)]
    known = [students[exercise.file]]
    for path in [*sorted(course.root.glob("[0-9][0-9]_*/*.cu")), *sorted(course.root.glob("common/device/*.h"))]:
        file = str(path.relative_to(course.root))
        if file.startswith("common/") or _in_the_ladder(file) < _in_the_ladder(exercise.file):
            known.append(students[file] if file in students else _text(path, path.stat().st_mtime_ns))
    return [run for run in runs if not any(shows(text, [run]) for text in known)]


def _in_the_ladder(file: str) -> tuple[str, bool, int, str]:
    """By chapter and rung: 10_hopper/10_dynamic.cu comes after 10_hopper/9_persistent.cu."""
    chapter, _, name = file.partition("/")
    number = name.partition("_")[0]
    return chapter, not number.isdigit(), int(number) if number.isdigit() else 0, name


def shows(text: str, own: list[Run]) -> "int | None":
    """The number of the first line at which one of these runs begins; a run of one line may be part of a line."""
    whole = _bare_text(text)
    for run in own:
        if "\n".join(run) in whole:
            return next(number for number, line in enumerate(text.splitlines(), 1) if run[0] in bare(line))
    return None


@cache
def _text(path: Path, changed: int) -> str:
    """Many exercises are held against the same files."""
    return path.read_text()


@cache
def _bare_text(text: str) -> str:
    return "\n".join(_bare_lines(text))


@cache
def _bare_lines(text: str) -> tuple[str, ...]:
    """Without those that are empty."""
    return tuple(line for line in map(bare, text.splitlines()) if line)
