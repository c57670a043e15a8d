"""Questions whose answers are numbers that the tools can count, each about a problem drawn from the student's name, or
from one that the course has given to the student.

The answers are in answers.json at the top of the tree, next to the name that the problems are drawn from:

    {"student": "ada", "answers": {"01.sectors": 9.5, "02.bytes": null}, "predictions": {"01.sectors": 32}}

The right number is counted anew at every check. It is written down nowhere. A student predicts it first, from the
source, and counts then; what was predicted stays, and costs nothing.
"""

import hashlib
import json
import re
import unicodedata
from pathlib import Path
from typing import Any

from tools.base import DividesByZero, Failure, JsonObject, NotUnderstood, build, evaluate, shown
from tools.course import judging, stages, wrong
from tools.course.exercises import Course, Exercise
from tools.course.judging import HERE, KernelCounts, Verdict, Workshop

FILE = Path("answers.json")  # below the root of a tree
TOLERANCE = 0.005  # of the right number: three digits are enough
LARGEST = 1e18  # no count is as large
# Letters of Hangul that fill a place, and marks that are put on nothing: Unicode has them among what can be seen.
INVISIBLE = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u2800\u3164\uffa0" + \
    "".join(map(chr, range(0xfe00, 0xfe10)))
# A problem's other numbers belong to the question alone.
FLAGS = {"batch", "heads", "kv_heads", "seq_q", "seq_k", "head_dim", "dtype", "causal", *stages.EXTRAS}


class NotCounted(Failure):
    """The engine could not count, for example because the kernel is wrong."""


class Answers:
    """The student's file, which may not be there yet."""

    def __init__(self, root: Path):
        self.path = root / FILE
        self.student = ""
        self._answers: JsonObject = {}
        self._predictions: JsonObject = {}
        if self.path.exists():
            try:
                known = json.loads(self.path.read_text(encoding="utf-8-sig"))
                self.student, self._answers = known["student"], known["answers"]
                self._predictions = known.get("predictions", {})
                if not isinstance(self.student, str) or not isinstance(self._answers, dict) \
                        or not isinstance(self._predictions, dict):
                    raise TypeError
                self.student.encode()
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                line = getattr(error, "lineno", 1)
                raise Failure(f'{shown(self.path)}:{line}: it must be {{"student": "a name", "answers": {{"id": '
                              f'number}}}}', status=2) from None

    def begin(self, student: str, course: Course) -> None:
        """Writes the file for this student, with a place for every answer; answers that are there stay."""
        if not plain(student):
            raise Failure(f"--student is {ascii(student)}: a name has at least one letter or digit", status=2)
        if self.student and plain(student) != plain(self.student):
            raise Failure(
                f"{shown(self.path)} has the answers of {self.student}; the questions are drawn from the name",
                status=2)
        self.student = student
        for exercise in course.exercises:
            if exercise.kind == "measure":
                self._answers.setdefault(exercise.id, None)
        self._write()

    def _write(self) -> None:
        said = {"student": self.student, "answers": self._answers, "predictions": self._predictions}
        self.path.write_text(json.dumps(said, indent=2) + "\n")

    def predict(self, exercise: Exercise, number: float) -> None:
        """Notes what the student expects, before anything is counted."""
        self._require_a_student(exercise)
        if self.prediction(exercise) is not None:
            raise Failure(f"you predicted {in_digits(self.prediction(exercise))} for {exercise.id}, and a prediction "
                          "stays", status=2)
        self._predictions[exercise.id] = number
        self._write()

    def give(self, exercise: Exercise, number: float) -> None:
        """Notes the answer, in place of the one before."""
        self._require_a_student(exercise)
        if self.prediction(exercise) is None:
            raise Failure(f"{exercise.id} is predicted first: ./workbook check {exercise.id} --predict NUMBER",
                          status=2)
        self._answers[exercise.id] = number
        self._write()

    def _require_a_student(self, exercise: Exercise) -> None:
        if not plain(self.student):
            raise Failure(f"whose answer is it? ./workbook check {exercise.id} --student NAME asks the question first",
                          status=2)

    def prediction(self, exercise: Exercise) -> "float | None":
        """None if there is none that is a number."""
        number = self._predictions.get(exercise.id)
        return number if isinstance(number, (int, float)) and abs(number) < LARGEST else None

    def answer(self, exercise: Exercise) -> Any:
        """What the student has written; None if nothing."""
        return self._answers.get(exercise.id)

    def written(self, exercise: Exercise) -> str:
        return json.dumps([self.student, self.answer(exercise)])


def plain(name: str) -> str:
    """The words of a name, in small letters: the same however it is written. Empty if nothing of it can be seen."""
    letters = unicodedata.normalize("NFC", unicodedata.normalize("NFKD", name)).casefold()
    return " ".join(re.findall(rf"[^\W_{INVISIBLE}]+", letters))


def same_name(one: str, other: str) -> bool:
    return plain(one) == plain(other)


def student_of(answers: str) -> str:
    """The student named in this text of an answers.json; empty if there is none."""
    try:
        student = json.loads(answers)["student"]
        return plain(student) if isinstance(student, str) else ""
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""


def problem_of(exercise: Exercise, student: str) -> JsonObject:
    """The question's problem for this student: the same every time, and different for most other students."""
    def drawn(key: str, values: list[Any]) -> Any:
        digest = hashlib.sha256("\n".join([plain(student), exercise.id, key]).encode()).digest()
        return values[int.from_bytes(digest, "big") % len(values)]

    numbers = {key: drawn(key, values) for key, values in exercise.draw.items()}
    return {**{key: value.format(**numbers) if isinstance(value, str) else value
               for key, value in exercise.problem.items()}, **numbers}


def expected(exercise: Exercise, problem: JsonObject, workshop: Workshop = HERE) -> float:
    """The right number, from what the engine counts."""
    try:
        return float(evaluate(exercise.answer, _Counted(exercise, problem, workshop)))
    except DividesByZero as error:  # a kernel that does nothing yet
        raise NotCounted(f"{exercise.id} cannot be counted: {error}") from None
    except NotUnderstood as error:
        raise Failure(f"the answer of {exercise.id}: {error}", status=2) from None


class _Counted:
    """The names that an answer may use."""

    def __init__(self, exercise: Exercise, problem: JsonObject, workshop: Workshop):
        self._exercise, self._problem, self._workshop = exercise, problem, workshop
        self._launches: dict[tuple[object, ...], list[KernelCounts]] = {}

    def counted(self, what, kernel="", rung=None, **other):
        """The engine's count, over all kernels whose names contain `kernel`; of other rungs or flags if named."""
        launches = self._counts(rung or self._exercise.rung, {**self._problem, **other})
        number = judging.sum_of(launches, what, kernel)
        if number is None:
            raise NotUnderstood(f"the engine counts no {what} of {kernel or 'these kernels'}")
        return number

    def drawn(self, key):
        """A number of the problem."""
        return self._problem[key]

    def whole(self, number):
        """The number without its fraction."""
        return int(number)

    def _counts(self, rung: str, problem: JsonObject) -> list[KernelCounts]:
        flags = {key: value for key, value in problem.items() if key in FLAGS}
        key = (rung, *flags.items())
        if key not in self._launches:
            launches = judging.counts(self._exercise.place, rung, self._exercise.direction, flags, self._workshop)
            if isinstance(launches, str):
                raise NotCounted(f"{self._exercise.id} cannot be counted: {launches}")
            self._launches[key] = launches
        return self._launches[key]


def verdict_of_answer(exercise: Exercise, answers: Answers, workshop: Workshop = HERE) -> Verdict:
    """Judges the student's number, without ever showing the right one."""
    if not plain(answers.student):
        return Verdict("not answered",
                       [f"./workbook check {exercise.id} --student NAME writes {FILE} and asks the question"])
    problem, given = problem_of(exercise, answers.student), answers.answer(exercise)
    question = exercise.question.format(**problem)
    if given is None:
        return Verdict("not answered",
                       [question, f"write the number into {shown(answers.path)}, behind \"{exercise.id}\""])
    if not isinstance(given, (int, float)) or isinstance(given, bool) or not abs(given) < LARGEST:
        return Verdict("wrong", [question, f"{json.dumps(given)} is no number"])
    try:
        right = expected(exercise, problem, workshop)
    except build.DoesNotBuild as failure:
        return Verdict("does not compile", failure.errors[:1])
    except NotCounted as failure:
        return Verdict("not run", [str(failure)])
    if abs(given - right) <= TOLERANCE * abs(right):
        return Verdict("right")
    return Verdict("wrong", [question, f"it is not {in_digits(given)}",
                             *_of_a_known_mistake(exercise, answers, given, workshop)])


def _of_a_known_mistake(exercise: Exercise, answers: Answers, given: float, workshop: Workshop) -> list[str]:
    """What to ask whoever has this wrong number, if it is known how one comes to it."""
    if not workshop.explains:
        return []
    counted = _Counted(exercise, problem_of(exercise, answers.student), workshop)
    for expression, sentence in wrong.wrong_answers(answers.path.parent, exercise):
        try:
            number = float(evaluate(expression, counted))
        except (NotUnderstood, NotCounted, build.DoesNotBuild):
            continue
        if abs(given - number) <= TOLERANCE * abs(number):
            return [sentence]
    return [f"./workbook hint {exercise.id} asks what to look for"]


def verdict_with_prediction(exercise: Exercise, answers: Answers) -> Verdict:
    """The same for whoever predicts first: what is to be done next, and at the end the count beside the prediction."""
    if not plain(answers.student):
        return verdict_of_answer(exercise, answers)
    predicted, given = answers.prediction(exercise), answers.answer(exercise)
    question = exercise.question.format(**problem_of(exercise, answers.student))
    if predicted is None:
        return Verdict("not answered", [question, f"predict first, from the source: ./workbook check {exercise.id} "
                                                  "--predict NUMBER; a wrong prediction costs nothing"])
    if given is None:
        how = ([f"calculate, {calculating(exercise, answers)}"] if exercise.calculate
               else ["count", f"  {counting(exercise, answers)}"])
        return Verdict("not answered", [question, f"you predicted {in_digits(predicted)}; now {how[0]}", *how[1:],
                                        f"and say what it is: ./workbook check {exercise.id} --answer NUMBER"])
    verdict = verdict_of_answer(exercise, answers)
    if verdict.state != "right":
        return verdict
    return Verdict("right", [beside(predicted, given)])


def calculating(exercise: Exercise, answers: Answers) -> str:
    """From what this student's number is calculated; empty if it is counted."""
    return exercise.calculate.format(**problem_of(exercise, answers.student))


def counting(exercise: Exercise, answers: Answers) -> str:
    """The command that counts this student's problem."""
    problem = problem_of(exercise, answers.student)
    return judging.command_that_counts(exercise, {key: problem[key] for key in problem if key in FLAGS})


def beside(predicted: float, given: float) -> str:
    """The prediction beside the count."""
    both = f"predicted {in_digits(predicted)}, counted {in_digits(given)}"
    if abs(given - predicted) <= TOLERANCE * abs(given):
        return f"{both}: as you predicted"
    times = f"{given / predicted:.3g} times the prediction" if predicted else "not the prediction"
    return f"{both}: {times}. Which line of the kernel is the reason?"


def in_digits(number: "float | None") -> str:
    return "nothing" if number is None else f"{number:,.12g}"
