"""Where things are, and where a command may write what the user asks for."""

import argparse
import contextlib
import os
import re
from pathlib import Path

from tools.base.failure import Failure

ROOT = Path(__file__).resolve().parents[3]
BUILD = ROOT / "build"
RESULTS = ROOT / "common" / "results"
COUNTS = ROOT / "common" / "tests" / "trace"


def shown(path: Path) -> str:
    """The path as the user would type it."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("../..") else relative


def slug(name: str) -> str:
    """"NVIDIA H200" -> "nvidia-h200"."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def file_to_write(text: str) -> Path:
    """For --out: refuses before anything takes time what could not be written afterwards. write_whole makes directories."""
    path = Path(text)
    if path.exists() and not path.is_file():  # a directory, or a device, in whose place there would be a file
        raise argparse.ArgumentTypeError(f"{text or 'nothing'} is not the name of a file")
    above = next(one for one in path.absolute().parents if one.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise argparse.ArgumentTypeError(f"cannot write {text}: {above} is no directory that can be written")
    return path


def write_whole(path: Path, text: str) -> None:
    """All of it, or nothing; with the directories that it needs."""
    unfinished = path.with_name(path.name + ".unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(text)
        os.replace(unfinished, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise Failure(f"cannot write {path}: {error.strerror}; name another file with --out") from None
