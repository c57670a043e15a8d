"""The mistakes of debugging exercises. common/course/debug/ID.json plants a mistake in a copy of the right file:

    [{"right": ["line", ".."], "planted": ["line", ".."]}, ..]

The lines of `right` stand in the file once, as they are, and those of `planted`, which take their place, nowhere: a
line more before and behind makes it so.
"""

import json
from pathlib import Path

from tools.base import Failure

DIRECTORY = Path("common/course/debug")  # below the root of a tree with solutions


def read(root: Path, exercise_id: str) -> list[tuple[str, str]]:
    path = DIRECTORY / f"{exercise_id}.json"
    try:
        changes = json.loads((root / path).read_text())
        if not changes or any(set(change) != {"right", "planted"} for change in changes):
            raise TypeError
        return [("".join(f"{line}\n" for line in change["right"]), "".join(f"{line}\n" for line in change["planted"]))
                for change in changes]
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}", status=2) from None
    except (ValueError, TypeError) as error:
        raise Failure(f"{path}:{getattr(error, 'lineno', 1)}: it must be [{{\"right\": [lines], \"planted\": "
                      f"[lines]}}, ..]", status=2) from None


def require_a_place(root: Path, exercise_id: str, file: str, text: str) -> None:
    """Requires that the right file lacks the mistake: else nobody could tell whether it has been mended."""
    for right, planted in read(root, exercise_id):
        if text.count(right) == 1 and planted in text:
            raise Failure(f"{DIRECTORY / exercise_id}.json:1: the planted lines stand in {file} as it is: give a line "
                          "more of the file",
                          status=2)


def in_text(text: str, changes: list[tuple[str, str]]) -> "str | None":
    """The text with the mistakes: planted in a right text, or already there. None if the text is neither."""
    for right, planted in changes:
        if text.count(right) == 1:
            text = text.replace(right, planted)
        elif text.count(planted) != 1:
            return None
    return text
