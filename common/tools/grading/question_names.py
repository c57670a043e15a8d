"""The names that questions are drawn from, and who may have which.

Where nothing else is said a question's numbers are drawn from the student's name, which everybody can choose. With a
`secret` in the course file each person of the roster has a name that nobody else can guess, `1001-k7f3q2tzwb`: the id,
and behind it what the secret makes of it. The secret is not in the students' tree. The instructor sends each student
their name.

Whose a submission is, the roster says by the submission's name, or Gradescope by its `users`.
"""

import base64
import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tools.course import Verdict, plain, same_name, student_of
from tools.grading.kernels import as_line
from tools.grading.one_submission import ANSWERS, Grade
from tools.grading.roster import Person
from tools.grading.speed import Graded
from tools.grading.submission import Submission, metadata_of
from tools.grading.tables import as_csv

_LETTERS = 10  # 50 bits


def name_for(person: Person, secret: str) -> str:
    digest = hmac.digest(secret.encode(), plain(person.id).encode(), hashlib.sha256)
    return f"{person.id}-{base64.b32encode(digest).decode().lower()[:_LETTERS]}"


def names_for(people: Sequence[Person], secret: str) -> str:
    """A table for who sends them."""
    return as_csv([["id", "name", "e-mail", "student"],
                   *([one.id, one.name, one.mail, name_for(one, secret)] for one in people)])


def users_of(submission: Path) -> "list[Person] | None":
    """Who has handed it in, as Gradescope knows them; None if there is nothing that says it."""
    try:
        users = metadata_of(submission)["users"]
        return [Person(str(one.get("id", "")), str(one.get("name", "")), str(one.get("email", ""))) for one in users]
    except (KeyError, TypeError, AttributeError):
        return None


def in_the_roster(users: Sequence[Person], people: Sequence[Person]) -> list[Person]:
    """The users as the roster has them, by their e-mail addresses; all others are nobody."""
    return [one for one in people if one.mail and any(plain(one.mail) == plain(user.mail) for user in users)]


def bound(result: Grade, submission: Submission, people: Sequence[Person], secret: str,
          exercises: Sequence[Graded]) -> Grade:
    """Without points for questions that were asked of somebody else than one of these people."""
    student = student_of(submission.texts.get(ANSWERS, ""))
    questions = [one.id for one in exercises if one.kind == "measure"
                 and result.verdicts[one.id].state not in ("not handed in", "not answered")]
    if not questions or not student or any(_is_called(student, one, secret) for one in people):
        return result
    there = ", ".join(f"{one.name} ({one.id})" for one in people) or "nobody of this e-mail address"
    should = "the name must be the one that you were given" if secret else "the name must be yours"
    why = Verdict("another's questions", [as_line(f"{ANSWERS} names {student}, and the roster has {there}: {should}")])
    return replace(result, verdicts={**result.verdicts, **dict.fromkeys(questions, why)},
                   points={**result.points, **dict.fromkeys(questions, 0)})


def _is_called(student: str, person: Person, secret: str) -> bool:
    return same_name(student, name_for(person, secret)) if secret else person.is_called(student)
