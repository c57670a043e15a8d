"""Whose solutions are nearly the same. The Python package copydetect compares them (its fingerprints are those of
winnowing). It is installed into build/alike/venv, once; where that cannot be done, a line says so."""

import json
import os
import subprocess

from tools.base import BUILD, ROOT, Failure, pythons
from tools.course import Course

REQUIREMENTS = ROOT / "common/course/requirements.txt"
HOME = BUILD / "alike"
LOWEST_PYTHON = (3, 9)
_SHARE = 0.8  # of both
TOO_SHORT = 150  # characters: there is one way to write it
_FINGERPRINT = 15, 8  # characters that one has, and how many neighbours choose one
_SECONDS = 300  # of thirty students: some
_OURS = ""  # the workbook, among the students
Alike = tuple[str, str, str, float]  # (one student, the other, exercise's id, share)
# What copydetect's Python runs: of {exercise's id: {student: text}} the pairs, each with the share of the one that less
# is the same of.
_COMPARE = """
import io, itertools, json, sys
import copydetect
told, *fingerprint = json.load(sys.stdin)
shares = {}
for exercise, texts in told.items():
    prints = {name: copydetect.CodeFingerprint("solution.cc", *fingerprint, fp=io.StringIO(text))
              for name, text in texts.items()}
    shares[exercise] = [[one, other, float(min(copydetect.compare_files(prints[one], prints[other])[1]))]
                        for one, other in itertools.combinations(sorted(prints), 2)]
print(json.dumps(shares))
"""


def alike(written: dict[str, dict[str, str]], course: Course) -> tuple[list[Alike], str]:
    """([(one, other, exercise's id, share)], or why nobody was compared) of {student: {exercise's id: what was
    written}}. What is nearly the workbook's own solution is alike for that reason, and is not named."""
    texts = {}
    for exercise in course.exercises:
        ours = course.written(exercise) if exercise.kind == "code" else ""
        own = {name: of_student[exercise.id] for name, of_student in written.items() if exercise.id in of_student}
        # The lexer takes a second for some thousands of blanks.
        own = {name: _with_few_blanks(text) for name, text in own.items()
               if len("".join(text.split())) >= TOO_SHORT and text.split() != ours.split()}
        if len(own) > 1:
            texts[exercise.id] = {**own, _OURS: _with_few_blanks(ours)}
    try:
        shares = _compared(texts) if texts else {}
    except Failure as failure:
        return [], f"Not compared: {failure}."
    found = []
    for id, pairs in shares.items():
        of_ours = {other: share for one, other, share in pairs if one == _OURS}
        found += [(one, other, id, share) for one, other, share in pairs
                  if one != _OURS and share >= _SHARE and of_ours[one] < share]
    return sorted(found, key=lambda pair: (-pair[3], pair)), ""


def _with_few_blanks(text: str) -> str:
    """The same to a compiler, for whom a comment ends with its line."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return "\n".join(line for line in lines if line)


def groups(pairs: list[Alike]) -> list[tuple[list[str], list[str], float]]:
    """[(students, exercises, the smallest share of a pair)]: who is alike with somebody of a group belongs to it."""
    found: list[set[str]] = []
    for one, other, _, _ in pairs:
        joined = [group for group in found if one in group or other in group]
        found = [group for group in found if group not in joined] + [{one, other}.union(*joined)]
    told = []
    for group in found:
        within = [(id, share) for one, other, id, share in pairs if one in group]
        told.append((sorted(group), sorted({id for id, _ in within}), min(share for _, share in within)))
    return sorted(told, key=lambda group: (-len(group[0]), group[0]))


def _compared(texts: dict[str, dict[str, str]]) -> dict[str, list[tuple[str, str, float]]]:
    """{exercise's id: [[one, other, share], ..]}"""
    python = pythons.with_packages(REQUIREMENTS, HOME / "venv", LOWEST_PYTHON)
    try:
        done = subprocess.run([python, "-c", _COMPARE], input=json.dumps([texts, *_FINGERPRINT]), capture_output=True,
                              text=True, timeout=_SECONDS,
                              # copydetect uses Python's hash(): a fixed seed gives the same shares every time
                              env={**os.environ, "PYTHONHASHSEED": "0"})
    except subprocess.TimeoutExpired:
        raise Failure(f"copydetect has not ended after {_SECONDS} s") from None
    if done.returncode != 0:
        raise Failure(f"copydetect failed: {(done.stderr.strip().splitlines() or ['it says nothing'])[-1]}")
    return json.loads(done.stdout)
