"""The mistakes of debugging exercises. The right file is the master; common/course/debug/ID.json lays a mistake over a copy:

    [{"right": ["line", ".."], "planted": ["line", ".."]}, ..]

The lines of `right` stand in the file once, as they are, and those of `planted`, which take their place, nowhere: a line more
before and behind makes it so.
"""

import json
from pathlib import Path

from tools.base import Failure

DIRECTORY = Path("common/course/debug")  # below the root of a tree with solutions


def read(root: Path, exercise_id: str) -> list:
    path = DIRECTORY / f"{exercise_id}.json"
    try:
        changes = json.loads((root / path).read_text())
        if not changes or any(set(change) != {"right", "planted"} for change in changes):
            raise TypeError
        return [("".join(f"{line}\n" for line in change["right"]), "".join(f"{line}\n" for line in change["planted"]))
                for change in changes]
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}", status=2)
    except (ValueError, TypeError) as error:
        raise Failure(f"{path}:{getattr(error, 'lineno', 1)}: it must be [{{\"right\": [lines], \"planted\": [lines]}}, ..]", status=2)


def require_a_place(root: Path, exercise_id: str, file: str, text: str) -> None:
    """In the right file the mistake must be absent, or nobody could see whether it has been mended."""
    for right, planted in read(root, exercise_id):
        if text.count(right) == 1 and planted in text:
            raise Failure(f"{DIRECTORY / exercise_id}.json:1: the planted lines stand in {file} as it is: give a line more of the file",
                          status=2)


def in_text(text: str, changes: list) -> "str | None":
    """The text with the mistakes in it: it is right now, or has them already. None if it is neither."""
    for right, planted in changes:
        if text.count(right) == 1:
            text = text.replace(right, planted)
        elif text.count(planted) != 1:
            return None
    return text
