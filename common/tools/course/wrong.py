"""Wrong solutions of exercises, such as a student could write: ./workbook check must say of each that it is wrong.

common/course/wrong/ID.json has those of an exercise. Each is its solution with a change, or an answer to its question:

    [{"name": "l_not_corrected", "mistake": "O is corrected, l is not", "right": ["line", ".."], "wrong": ["line", ".."]}, ..]
    [{"name": "stores_too", "mistake": "stores count as well", "answer": "counted(..) + counted(..)"}, ..]

The text of `right` stands once in the solution (or in the right file, if a mistake was planted); that of `wrong` takes its place.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from tools.base import Failure
from tools.course.exercises import Course, Exercise

WRONG = Path("common/course/wrong")  # below the root of a tree with solutions
_OF_CODE, _OF_AN_ANSWER = {"name", "mistake", "right", "wrong"}, {"name", "mistake", "answer"}


@dataclass(frozen=True)
class Wrong:
    exercise: Exercise
    name: str
    mistake: str
    text: str = ""  # of the exercise's file
    answer: str = ""  # an expression, as the right one is

    @property
    def title(self) -> str:
        return f"{self.exercise.id} {self.name}"


def wrong_solutions(course: Course) -> list:
    """Those of all exercises. Of a tree with solutions."""
    return [one for exercise in course.exercises for one in _of(course, exercise)]


def _of(course: Course, exercise: Exercise) -> list:
    path = WRONG / f"{exercise.id}.json"
    keys = _OF_AN_ANSWER if exercise.kind == "measure" else _OF_CODE
    try:
        entries = json.loads((course.root / path).read_text())
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}", status=2)
    except ValueError as error:
        raise Failure(f"{path}:{getattr(error, 'lineno', 1)}: {error.args[0]}", status=2)
    if not isinstance(entries, list) or any(not isinstance(entry, dict) or set(entry) != keys for entry in entries):
        raise Failure(f"{path}:1: it must be a list of entries with {', '.join(sorted(keys))}", status=2)
    return [_one(course, exercise, path, entry) for entry in entries]


def _one(course: Course, exercise: Exercise, path: Path, entry: dict) -> Wrong:
    if exercise.kind == "measure":
        return Wrong(exercise, **entry)
    solution, right = course.written(exercise), "\n".join(entry["right"])
    if solution.count(right) != 1:
        raise Failure(f"{path}:1: {entry['name']}: what is called right stands {solution.count(right)} times in the solution, not once",
                      status=2)
    text = course.replaced(exercise, solution.replace(right, "\n".join(entry["wrong"])))
    return Wrong(exercise, entry["name"], entry["mistake"], text)
