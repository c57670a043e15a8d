"""Wrong solutions of exercises, such as a student could write: ./workbook check must say of each that it is wrong.

common/course/wrong/ID.json has those of an exercise. Each is its solution with a change, or an answer to its question:

    [{"name": "l_not_corrected", "mistake": "O is corrected, l is not", "right": ["line", ".."], "wrong": ["line",
    ".."], "stage": "l", "seen": "^l\\\\[", "sentence": "Which sums are relative to the old maximum?"}, ..]
    [{"name": "stores_too", "mistake": "stores count as well", "answer": "counted(..) + counted(..)", "sentence":
    "Does the question ask for ..?"}, ..]

The text of `right` stands once in the solution (or in the right file, if a mistake was planted); that of `wrong` takes
its place. The other keys need not be there:

    stage     what the mistake makes wrong first, as check should name it: S, m, P, .., or a result; "engine" for what
              the engine sees, "count" for right results that cost too much
    seen      a regular expression by which a student's kernel with this mistake is recognised: it is found in what
              check says; source, one for the student's text as well, where kernels do the same
    sentence  what check then asks the student. It does not say what is wrong: it is the question that leads there. An
              answer is recognised by its value.

A student's tree does not have these files. The sentences and how their mistakes are recognised are in SENTENCES there.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from tools.base import Failure, JsonObject
from tools.course.exercises import HANDED_OUT, Course, Exercise

WRONG = Path("common/course/wrong")  # below the root of a tree with solutions
SENTENCES = HANDED_OUT / "sentences.json"  # of a student's tree
_OF_CODE, _OF_AN_ANSWER = {"name", "mistake", "right", "wrong"}, {"name", "mistake", "answer"}
_MAY = {True: {"stage", "seen", "source", "sentence"}, False: {"sentence"}}  # of code, of an answer
_HOW_RECOGNISED = ("seen", "source", "answer", "sentence")


@dataclass(frozen=True)
class Wrong:
    exercise: Exercise
    name: str
    mistake: str
    text: str = ""  # of the exercise's file
    answer: str = ""  # an expression, as the right one is
    stage: str = ""
    seen: str = ""
    source: str = ""
    sentence: str = ""

    @property
    def title(self) -> str:
        return f"{self.exercise.id} {self.name}"


def wrong_solutions(course: Course) -> list[Wrong]:
    """The wrong solutions of all exercises, in a tree that has the right ones."""
    return [one for exercise in course.exercises for one in _of(course, exercise)]


def _of(course: Course, exercise: Exercise) -> list[Wrong]:
    path = WRONG / f"{exercise.id}.json"
    is_code = exercise.kind != "measure"
    keys = _OF_CODE if is_code else _OF_AN_ANSWER
    try:
        entries = json.loads((course.root / path).read_text())
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}", status=2) from None
    except ValueError as error:
        raise Failure(f"{path}:{getattr(error, 'lineno', 1)}: {error.args[0]}", status=2) from None
    if not isinstance(entries, list) or any(not isinstance(entry, dict) or set(entry) - _MAY[is_code] != keys
                                            for entry in entries):
        raise Failure(f"{path}:1: it must be a list of entries with {', '.join(sorted(keys))}", status=2)
    return [_one(course, exercise, path, entry) for entry in entries]


def _one(course: Course, exercise: Exercise, path: Path, entry: JsonObject) -> Wrong:
    if exercise.kind == "measure":
        return Wrong(exercise, **entry)
    solution, right = course.written(exercise), "\n".join(entry["right"])
    if solution.count(right) != 1:
        raise Failure(f"{path}:1: {entry['name']}: what is called right stands {solution.count(right)} times in the "
                      "solution, not once",
                      status=2)
    text = course.replaced(exercise, solution.replace(right, "\n".join(entry["wrong"])))
    return Wrong(exercise, text=text, **{key: entry[key] for key in entry if key not in ("right", "wrong")})


# --- What is said of those that are recognised ------------------------------------------------------------------------


def sentences(root: Path, exercises: list[Exercise]) -> dict[str, list[dict[str, str]]]:
    """{exercise's id: [what SENTENCES has of each of its wrong solutions that has a sentence]}"""
    return {one.id: [{key: entry[key] for key in _HOW_RECOGNISED if key in entry}
                     for entry in _entries(root, one) if "sentence" in entry] for one in exercises}


def _entries(root: Path, exercise: Exercise) -> list[dict[str, str]]:
    """Of a tree with solutions, or of a student's; none if neither has any."""
    for path, of_exercise in ((SENTENCES, lambda read: read[exercise.id]),
                              (WRONG / f"{exercise.id}.json", lambda read: read)):
        try:
            return list(of_exercise(json.loads((root / path).read_text())))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return []


def sentence_of_code(course: Course, exercise: Exercise, lines: list[str]) -> "str | None":
    """The sentence of the first wrong solution that is recognised by these lines of check."""
    said, written = "\n".join(lines), course.written(exercise)
    return next((known["sentence"] for known in _entries(course.root, exercise) if "sentence" in known
                 and re.search(known.get("seen", "$^"), said, re.MULTILINE)
                 and re.search(known.get("source", ""), written, re.MULTILINE)), None)


def wrong_answers(root: Path, exercise: Exercise) -> list[tuple[str, str]]:
    """[(expression, sentence)] of the answers to its question that are known to be wrong."""
    return [(known["answer"], known["sentence"]) for known in _entries(root, exercise) if "sentence" in known]
