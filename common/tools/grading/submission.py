"""What a student hands in: a directory, a zip or a tar archive, of which a few files matter. Nothing of it is trusted.

Only the files that exercises are about, and answers.json, are read, from the top or from the one directory there is. Nothing is
unpacked onto the disk.
"""

import hashlib
import os
import stat
import tarfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from tools.base import amount_of_memory

MOST_BYTES = 20 * 1024 * 1024  # of an archive, and of what it unpacks to
MOST_BYTES_OF_A_FILE = 1024 * 1024
MOST_FILES = 5000
_OF_FINDER = ("__MACOSX", ".DS_Store")  # what a Mac puts beside the one directory of an archive
_LONGEST_NAME = 200  # bytes
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")


@dataclass
class Submission:
    name: str
    texts: dict = field(default_factory=dict)  # {file: text} of those that are wanted and that can be read
    wrong: dict = field(default_factory=dict)  # {file: (verdict, why)} of those that cannot
    refused: "tuple | None" = None  # (verdict, why) if nothing of it can be graded


class _Refused(Exception):
    def __init__(self, verdict: str, why: str):
        super().__init__(why)
        self.verdict, self.why = verdict, why


def is_submission(path: Path) -> bool:
    return path.is_dir() or path.name.endswith(ARCHIVES)


def name_of(path: Path, ending: str = "") -> str:
    """Of the submission, and of the files about it: without this ending, one line, and not too long for a file."""
    name = os.fsencode(path.name).decode(errors="replace")
    name = "".join(letter if letter.isprintable() else "?" for letter in name.removesuffix(ending))
    if len(name.encode()) > _LONGEST_NAME:
        name = f"{name[:40]}-{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:12]}"
    return name


def read_submission(path: Path, wanted: list) -> Submission:
    """Never raises for what is in it."""
    ending = next((ending for ending in ARCHIVES if path.name.endswith(ending)), "")
    submission = Submission(name_of(path, ending))
    try:
        if path.is_symlink():
            raise _Refused("a link", "it is a link to somewhere else")
        files = _directory(path) if path.is_dir() else _archive(path)
        if not files:
            raise _Refused("empty", "there is no file in it")
        _take(submission, files, wanted)
    except _Refused as refused:
        submission.refused = (refused.verdict, refused.why)
    except Exception as error:  # what the libraries raise for a damaged archive is not written down anywhere
        submission.refused = ("not readable", f"it cannot be read: {' '.join(str(error).split()) or type(error).__name__}")
    return submission


def _take(submission: Submission, files: dict, wanted: list) -> None:
    files = {file: read for file, read in files.items() if PurePosixPath(file).parts[0] not in _OF_FINDER}
    tops = {PurePosixPath(file).parts[0] for file in files}
    prefix = f"{next(iter(tops))}/" if len(tops) == 1 and not any(file in files for file in wanted) else ""
    for file in wanted:
        read = files.get(prefix + file)
        if read is None:
            continue
        try:
            submission.texts[file] = read().decode()
        except UnicodeDecodeError as error:
            submission.wrong[file] = ("not UTF-8", f"{file} is not UTF-8: byte {error.start} is {error.object[error.start]:#04x}")
        except _Refused as refused:
            submission.wrong[file] = (refused.verdict, f"{file}: {refused.why}")
    if not submission.texts and not submission.wrong:
        there = ", ".join(sorted(files)[:3]) + (", .." if len(files) > 3 else "")
        raise _Refused("other files", f"it has none of {', '.join(wanted)}: it has {there}")


def _too_large(what: str, size: int, most: int) -> _Refused:
    return _Refused("too large", f"{what} has {amount_of_memory(size)}: {amount_of_memory(most)} are allowed")


def _link(*_):
    raise _Refused("a link", "it is a link to somewhere else")


def _limited(open_file) -> bytes:
    with open_file as file:
        content = file.read(MOST_BYTES_OF_A_FILE + 1)
    if len(content) > MOST_BYTES_OF_A_FILE:
        raise _too_large("the file", len(content), MOST_BYTES_OF_A_FILE)
    return content


def _directory(path: Path) -> dict:
    """{file: a function that reads it}; links are not followed."""
    found, size = {}, 0
    for directory, names, files in os.walk(path):
        names[:] = sorted(name for name in names if name not in ("build", ".git"))
        for name in [name for name in names if (Path(directory) / name).is_symlink()]:
            found[(Path(directory) / name).relative_to(path).as_posix()] = _link
        for name in files:
            place = Path(directory) / name
            status = place.lstat()
            size += status.st_size
            file = place.relative_to(path).as_posix()
            found[file] = (lambda place=place: _limited(os.fdopen(os.open(place, os.O_RDONLY | os.O_NOFOLLOW), "rb"))) \
                if stat.S_ISREG(status.st_mode) else _link
            _require_size(len(found), size)
    for link in [file for file, read in found.items() if read is _link]:
        found.update({file: _link for file in _below(path, link)})
    return found


def _below(path: Path, link: str) -> list:
    """What a wanted file would be called if a directory on its way is a link."""
    return [f"{link}/{file.relative_to(path / link).as_posix()}" for file in (path / link).glob("*")] if (path / link).is_dir() else []


def _require_size(files: int, size: int) -> None:
    if files > MOST_FILES:
        raise _Refused("too large", f"it has more than {MOST_FILES} files")
    if size > MOST_BYTES:
        raise _too_large("it", size, MOST_BYTES)


def _archive(path: Path) -> dict:
    if path.stat().st_size > MOST_BYTES:
        raise _too_large("the archive", path.stat().st_size, MOST_BYTES)
    if path.name.endswith(".zip"):
        archive = zipfile.ZipFile(path)
        entries = [(entry.filename, entry.file_size, stat.S_ISLNK(entry.external_attr >> 16),
                    lambda entry=entry: archive.open(entry)) for entry in archive.infolist() if not entry.is_dir()]
    else:
        archive = tarfile.open(path)
        entries = []
        for entry in archive:  # it goes on to the next one by unpacking this one: how large that is must be known before
            if not entry.isdir():
                entries.append((entry.name, entry.size, not entry.isreg(), lambda entry=entry: archive.extractfile(entry)))
            _require_size(len(entries), sum(size for _, size, _, _ in entries) + (entry.size if entry.isdir() else 0))
    _require_size(len(entries), sum(size for _, size, _, _ in entries))
    found = {}
    for name, _, is_link, opened in entries:
        file = PurePosixPath(name.replace("\\", "/"))
        if not file.parts:
            continue
        if file.is_absolute() or ".." in file.parts:
            raise _Refused("a path", f"{name} leads out of the archive")
        found[str(file)] = _link if is_link else (lambda opened=opened: _limited(opened()))
    return found
