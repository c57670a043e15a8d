"""Where things are, and where a command may write what the user asks for."""

import argparse
import contextlib
import errno
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


def in_words(error: OSError) -> str:
    """What the system refuses, in a line: "build: permission denied"."""
    what = (error.strerror or str(error)).lower()
    where = f"{shown(Path(os.fsdecode(error.filename)))}: " if isinstance(error.filename, (str, bytes, Path)) else ""
    read_only = error.errno in (errno.EACCES, errno.EROFS) and not os.access(ROOT, os.W_OK)
    return f"{where}{what}" + ("; you cannot write in this tree: work in a copy of it" if read_only else "")


def slug(name: str) -> str:
    """"NVIDIA H200" -> "nvidia-h200"."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def file_to_write(text: str) -> Path:
    """The type of --out: refuses a place that could not be written, before any work. write_whole makes directories."""
    path = Path(text)
    if path.exists() and not path.is_file():  # a directory, or a device, in whose place there would be a file
        raise argparse.ArgumentTypeError(f"{text or 'nothing'} is not the name of a file")
    above = next(one for one in path.absolute().parents if one.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise argparse.ArgumentTypeError(f"cannot write {text}: {above} is no directory that can be written")
    return path


def write_whole(path: Path, text: str) -> None:
    """Writes all of the text or nothing, and makes the directories it needs."""
    unfinished = path.with_name(path.name + ".unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(text)
        os.replace(unfinished, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise Failure(f"cannot write {path}: {error.strerror}; name another file with --out") from None
