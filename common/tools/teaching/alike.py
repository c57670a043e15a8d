"""Whose solutions are nearly the same. The Python package copydetect compares them (its fingerprints are those of winnowing);
without it, a line says so."""

import importlib
import io
import itertools

from tools.course import Course

_SHARE = 0.8  # of both
_TOO_SHORT = 150  # characters: there is one way to write it
_FINGERPRINT = 15, 8  # characters that one has, and how many neighbours choose one
WITHOUT = "Not compared: the Python package copydetect is not installed (pip install copydetect)."


def alike(written: dict, course: Course) -> tuple:
    """([(one, other, exercise's id, share)], or why nobody was compared) of {student: {exercise's id: what was written}}. What is
    nearly the workbook's own solution is alike for that reason, and is not named."""
    try:
        copydetect = importlib.import_module("copydetect")
    except ImportError:
        return [], WITHOUT
    def fingerprint(text: str):
        return copydetect.CodeFingerprint("solution.cc", *_FINGERPRINT, fp=io.StringIO(text))

    found = []
    for exercise in course.exercises:
        texts = {name: texts[exercise.id] for name, texts in written.items() if exercise.id in texts}
        prints = {name: fingerprint(text) for name, text in texts.items() if len("".join(text.split())) >= _TOO_SHORT}
        ours = fingerprint(course.written(exercise)) if prints else None
        for one, other in itertools.combinations(sorted(prints), 2):
            share = _overlap(copydetect, prints[one], prints[other])
            if share >= _SHARE and _overlap(copydetect, prints[one], ours) < share:
                found.append((one, other, exercise.id, share))
    return sorted(found, key=lambda pair: (-pair[3], pair)), ""


def _overlap(copydetect, one, other) -> float:
    """Of the one that less is the same of."""
    _, shares, _ = copydetect.compare_files(one, other)
    return float(min(shares))
