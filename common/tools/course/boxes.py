"""The boxes of the lessons: where an exercise stands, and what it asks for. ./workbook dev report writes them.

    <!-- exercise 02.scores -->

    > **Exercise 02.scores**: a warp's lanes share a dot product. About 20 minutes.
    > ..

    <!-- /exercise -->

An author writes the two comments; exercises.json and the source's marker say what stands between them. The box is the
one place that says where in its lesson an exercise stands.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from tools.course.exercises import Course, Exercise

_BOX = re.compile(r"^<!-- exercise (\S+) -->\n(.*?)^<!-- /exercise -->\n", re.DOTALL | re.MULTILINE)
_MARKER = re.compile(r"^<!-- (?:exercise\b.*?|/exercise) -->$", re.MULTILINE)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_LESSONS = "[0-9][0-9]_*/*.md"


@dataclass(frozen=True)
class Place:
    """Where the box of an exercise stands."""

    file: str
    line: int
    heading: str


def boxed(course: Course, exercise: Exercise, page: Path) -> str:
    """What stands between the comments on this page."""
    file = Path(exercise.file)
    link = f"[{file.name}]({file.name if file.parent == page.parent else f'../{file}'})"
    if exercise.kind == "code":
        what = f"In {link}, between `// exercise {exercise.name}` and `// end {exercise.name}`: " \
               f"{course.region(exercise).task}."
    elif exercise.kind == "debug":
        what = f"{link} has a mistake. Find it, and mend it."
    else:
        what = "You count, with a problem of your own."
    name = ' --student "Your Name"' if exercise.kind == "measure" else ""
    asks = "asks the question, and says" if exercise.kind == "measure" else "says"
    return "\n".join([f"> **Exercise {exercise.id}**: {exercise.title}. About {exercise.minutes} minutes.", ">",
                      f"> {what}", ">",
                      f"> `./workbook check {exercise.id}{name}` {asks} whether it is right, and `./workbook hint "
                      f"{exercise.id}` helps."])


def rewritten(course: Course, page: Path, text: str) -> tuple[str, list[tuple[int, str]]]:
    """(the text with its boxes as they should be, [(line, what is not as it should be)])"""
    differences: list[tuple[int, str]] = []
    known = {one.id: one for one in course.exercises}
    seen: set[str] = set()

    def box(found: "re.Match[str]") -> str:
        line, exercise = text.count("\n", 0, found.start()) + 1, known.get(found[1])
        if exercise is None:
            differences.append((line, f"there is no exercise {found[1]}"))
            return found[0]
        if found[1] in seen:
            differences.append((line, f"exercise {found[1]} has a second box"))
        seen.add(found[1])
        whole = f"<!-- exercise {found[1]} -->\n\n{boxed(course, exercise, page)}\n\n<!-- /exercise -->\n"
        if whole != found[0]:
            differences.append((line, f"the box of exercise {found[1]} is not what exercises.json says"))
        return whole

    after = _BOX.sub(box, text)
    if len(_MARKER.findall(text)) != 2 * len(_BOX.findall(text)):
        return text, [(1, "the comments around an exercise do not match: <!-- exercise ID --> and, on a line of its "
                          "own below, <!-- /exercise -->")]
    return after, differences


def check(course: Course) -> list[str]:
    """Each box that is not as it should be, with file and line."""
    return [f"{page}:{line}: {what}" for page, text in _pages(course)
            for line, what in rewritten(course, page, text)[1]]


def write(course: Course) -> list[str]:
    """Writes the boxes: the pages that have changed."""
    changed = []
    for page, text in _pages(course):
        after = rewritten(course, page, text)[0]
        if after != text:
            (course.root / page).write_text(after)
            changed.append(str(page))
    return changed


def places(course: Course) -> dict[str, Place]:
    """{exercise's id: where its box stands} of those that have one."""
    found = {}
    for page, text in _pages(course):
        for box in _BOX.finditer(text):
            headings = _HEADING.findall(text[: box.start()])
            line = text.count("\n", 0, box.start()) + 1
            found[box[1]] = Place(str(page), line, headings[-1] if headings else "")
    return found


def without_boxes(page: str, keep: set[str]) -> str:
    """The page without the boxes of other exercises than these."""
    return re.sub(_BOX.pattern + r"\n?", lambda found: found[0] if found[1] in keep else "", page,
                  flags=_BOX.flags)


def _pages(course: Course) -> list[tuple[Path, str]]:
    return [(path.relative_to(course.root), path.read_text()) for path in sorted(course.root.glob(_LESSONS))]
