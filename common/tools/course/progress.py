"""What a student has done so far, in .learner: the hints shown, and the result of each exercise's last check."""

import hashlib
import json
from pathlib import Path

from tools.base import ROOT
from tools.course.exercises import LEARNER, Exercise


class StudentProgress:
    @staticmethod
    def beside(root: Path) -> Path:
        """Its file in the tree with this root."""
        return root / LEARNER / "progress.json"

    def __init__(self, path: Path = ROOT / LEARNER / "progress.json"):
        self._path = path
        try:
            known = json.loads(path.read_text())
            self._hints, self._checked = dict(known["hints"]), dict(known["checked"])
        except (OSError, ValueError, KeyError, TypeError):  # nothing yet, or nothing that can be read
            self._hints, self._checked = {}, {}

    def _write(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps({"hints": self._hints, "checked": self._checked}, indent=1) + "\n")

    def next_hint(self, exercise: Exercise) -> "tuple[int, str] | None":
        """(its number, the hint), each time the next one; None when all have been shown."""
        shown = self._hints.get(exercise.id, 0)
        if shown >= len(exercise.hints):
            return None
        self._hints[exercise.id] = shown + 1
        self._write()
        return shown + 1, exercise.hints[shown]

    def checked(self, exercise: Exercise, judged: str, state: str) -> None:
        """Notes the result of the last check of this text (of the exercise's lines, of its file, or of the answer)."""
        self._checked[exercise.id] = [_digest(judged), state]
        self._write()

    def state(self, exercise: Exercise, judged: str, attempted: bool) -> str:
        """What is known without another check: the last result, if nothing has changed since."""
        if not attempted:
            return "not answered" if exercise.kind == "measure" else "not attempted"
        digest, state = self._checked.get(exercise.id, ("", ""))
        return state if digest == _digest(judged) else "not checked"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
