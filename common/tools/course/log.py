"""The page that a student hands in, begun: what was predicted and what was counted stand in it already.

The student adds the calculation and the explanation: common/course/log.md says what they are.
"""

from tools.base import Failure
from tools.course.exercises import Exercise
from tools.course.questions import Answers, beside, calculating, counting, in_digits, problem_of, verdict_of_answer

_OPEN = "…"


def log_page(exercises: list[Exercise], answers: Answers) -> str:
    """Of those of these questions that the student has predicted. A count stands in it if it is right."""
    predicted = [one for one in exercises if one.kind == "measure" and answers.prediction(one) is not None]
    if not predicted:
        raise Failure("--log: nothing is predicted yet; ./workbook check 01.sectors --predict NUMBER predicts",
                      status=2)
    lines = [f"# Log of {answers.student}", ""]
    for one in predicted:
        lines += _section(one, answers)
    return "\n".join(lines)


def _section(exercise: Exercise, answers: Answers) -> list[str]:
    predicted, given = answers.prediction(exercise), answers.answer(exercise)
    assert predicted is not None
    is_right = given is not None and verdict_of_answer(exercise, answers).state == "right"
    number = f"{in_digits(given)}." if is_right else _OPEN
    measured = (f"Calculated, {calculating(exercise, answers)}: {number}" if exercise.calculate
                else f"`{counting(exercise, answers)}` counted {number}")
    explained = beside(predicted, given).partition(": ")[2] if is_right else ""
    question = exercise.question.format(**problem_of(exercise, answers.student))
    return [f"## {exercise.id}: {exercise.title}", "",
            f"**Predict.** {question} I predicted {in_digits(predicted)}. My calculation: {_OPEN}", "",
            f"**Measure.** {measured}", "",
            f"**Explain.** {explained[:1].upper()}{explained[1:]} {_OPEN}".replace("  ", " "), ""]
