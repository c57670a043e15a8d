"""What a student hands in: a directory, a zip or a tar archive, of which a few files matter. Nothing of it is trusted.

Only the files that exercises are about, and answers.json, are read, from the top or from the one directory there is.
Nothing is unpacked onto the disk. Whatever Python's libraries make of an archive, they do it in a process whose time
and memory have limits.
"""

import bz2
import codecs
import hashlib
import io
import json
import lzma
import multiprocessing
import os
import resource
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path, PurePosixPath
from typing import IO, Any, NoReturn

from tools.base import amount_of_memory
from tools.course import HANDED_OUT
from tools.grading.kernels import as_line

MOST_BYTES = 20 * 1024 * 1024  # of an archive, and of what it unpacks to
MOST_BYTES_OF_A_FILE = 1024 * 1024
MOST_FILES = 5000
_LONGEST_TAR = MOST_BYTES + 2 * 1024 * MOST_FILES  # with what stands before each file
_TO_UNPACK = 128 * 1024**2  # of memory
_TO_READ, _SECONDS = 512 * 1024**2, 20  # of memory, and of processor time: a right one takes less than one
_OF_FINDER = ("__MACOSX", ".DS_Store")  # what a Mac puts beside the one directory of an archive
_LONGEST_NAME = 200  # bytes
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2")

_METADATA = "submission_metadata.json"  # Gradescope's, beside the directory of the submission

Files = dict[str, Callable[[], bytes]]  # {path: a function that reads it}


@dataclass
class Submission:
    name: str
    texts: dict[str, str] = field(default_factory=dict)  # {file: text} of those that are wanted and that can be read
    wrong: dict[str, tuple[str, str]] = field(default_factory=dict)  # {file: (verdict, why)} of those that cannot
    refused: "tuple[str, str] | None" = None  # (verdict, why) if nothing of it can be graded


class _Refused(Exception):
    def __init__(self, verdict: str, why: str):
        super().__init__(why)
        self.verdict, self.why = verdict, why


def is_submission(path: Path) -> bool:
    return path.is_dir() or _ending(path) != ""


def _ending(path: Path) -> str:
    """Of an archive's name, as it stands there; empty of anything else."""
    return next((path.name[-len(ending):] for ending in ARCHIVES if path.name.lower().endswith(ending)), "")


def name_of(path: Path, ending: str = "") -> str:
    """The submission's name, also for files about it: without the ending, on one line, and not too long."""
    name = os.fsencode(path.name).decode(errors="replace")
    name = "".join(letter if letter.isprintable() else "?" for letter in name.removesuffix(ending))
    if len(name.encode()) > _LONGEST_NAME:
        name = f"{name[:40]}-{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:12]}"
    return name


def metadata_of(submission: Path) -> Any:
    """What Gradescope says of it; None if nobody does. Among a class's archives a file of this name is a student's."""
    try:
        return json.loads((submission.parent / _METADATA).read_text()) if submission.name == "submission" else None
    except (OSError, ValueError, RecursionError):
        return None


def read_submission(path: Path, wanted: list[str]) -> Submission:
    """Reads the submission; never raises for its contents."""
    forks = multiprocessing.get_context("fork")
    ours, theirs = forks.Pipe(duplex=False)
    reader = forks.Process(target=_read_for, args=(theirs, path, wanted), daemon=True)
    reader.start()
    theirs.close()
    try:
        read: Submission = ours.recv()
    except EOFError:  # it has been stopped
        read = Submission(name_of(path, "" if path.is_dir() else _ending(path)), refused=("not readable", (
            f"it cannot be read in {_SECONDS} s and {amount_of_memory(_TO_READ)}")))
    reader.join()
    return read


def _read_for(other: Connection, path: Path, wanted: list[str]) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    resource.setrlimit(resource.RLIMIT_DATA, (_TO_READ, _TO_READ))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    other.send(read_here(path, wanted))


def read_here(path: Path, wanted: list[str]) -> Submission:
    ending = "" if path.is_dir() else _ending(path)
    submission = Submission(name_of(path, ending))
    try:
        if path.is_symlink():
            raise _Refused("a link", "it is a link to somewhere else")
        files = _directory(path, wanted) if path.is_dir() else _archive(path)
        inner = [path / file for file, read in files.items()
                 if "/" not in file and _ending(Path(file)) and read is not _link]
        if path.is_dir() and len(inner) == 1 and not any(_place_of(file, files, wanted) for file in wanted):
            files = _archive(inner[0])  # as Moodle has it: a directory of each student's, with what was handed in
        if not files:
            raise _Refused("empty", "there is no file in it")
        _take(submission, files, wanted)
    except _Refused as refused:
        submission.refused = (refused.verdict, as_line(refused.why))
    except Exception as error:
        submission.refused = _not_readable("it", error)
    return submission


def _not_readable(what: str, error: Exception) -> tuple[str, str]:
    """What the libraries raise for a damaged archive is not written down anywhere."""
    why = " ".join(str(error).split()) or type(error).__name__
    return "not readable", as_line(f"{what} cannot be read: {why}")


def _take(submission: Submission, files: Files, wanted: list[str]) -> None:
    files = {file: read for file, read in files.items() if PurePosixPath(file).parts[0] not in _OF_FINDER
             and f"/{HANDED_OUT}/" not in f"/{file}"}  # who hands in the whole tree hands in the stubs, too
    for file in wanted:
        read = files.get(_place_of(file, files, wanted))
        if read is None:
            continue
        try:
            # Of a kernel's file the lines between the markers count, not how a comment elsewhere is written.
            submission.texts[file] = _decoded(read(), "replace" if file.endswith(".cu") else "strict")
        except UnicodeDecodeError as error:
            submission.wrong[file] = ("not UTF-8",
                                      f"{file} is not UTF-8: byte {error.start} is {error.object[error.start]:#04x}")
        except _Refused as refused:
            submission.wrong[file] = (refused.verdict, f"{file}: {refused.why}")
        except Exception as error:
            submission.wrong[file] = _not_readable(file, error)
    if not submission.texts and not submission.wrong:
        there = ", ".join(sorted(files)[:3]) + (", .." if len(files) > 3 else "")
        raise _Refused("other files", f"it has none of {', '.join(wanted)}: it has {there}")


def _decoded(content: bytes, errors: str) -> str:
    """UTF-8, with or without a mark at the beginning, or what an editor of Windows calls Unicode; with one end of lines
    for all that read it: the compiler knows none of an old Mac."""
    utf_16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = content.decode("utf-16" if utf_16 else "utf-8-sig", errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _place_of(wanted: str, files: Files, all_wanted: list[str]) -> str:
    """Where the file is: at the top, below directories, or without its own one; if there is only one such place."""
    if wanted in files:
        return wanted
    below = [file for file in files if file.endswith(f"/{wanted}")]
    if len(below) == 1:
        return below[0]
    name = PurePosixPath(wanted).name
    alone = [file for file in files if PurePosixPath(file).name == name]
    names = [PurePosixPath(file).name for file in all_wanted]
    return alone[0] if len(alone) == 1 and names.count(name) == 1 and not below else ""


def _too_large(what: str, size: int, most: int) -> _Refused:
    return _Refused("too large", f"{what} has {size:,} bytes: {most:,} are allowed")


def _link(*_: object) -> NoReturn:
    raise _Refused("a link", "it is a link, a pipe or a device")


def _limited(open_file: IO[bytes]) -> bytes:
    with open_file as file:
        content = file.read(MOST_BYTES_OF_A_FILE + 1)
    if len(content) > MOST_BYTES_OF_A_FILE:
        raise _Refused("too large", f"the file has more than {MOST_BYTES_OF_A_FILE:,} bytes")
    return content


def _opened(how: Callable[[], IO[bytes]]) -> bytes:
    return _limited(how())


def _plain_file(path: Path) -> bytes:
    return _limited(os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb"))


def _directory(path: Path, wanted: list[str]) -> Files:
    """{file: a function that reads it}; links are not followed."""
    found: Files = {}
    size = 0
    for directory, names, files in os.walk(path):
        names[:] = sorted(name for name in names if name not in ("build", ".git"))
        for name in [name for name in names if (Path(directory) / name).is_symlink()]:
            found[(Path(directory) / name).relative_to(path).as_posix()] = _link
        for name in files:
            place = Path(directory) / name
            status = place.lstat()
            size += status.st_size
            file = place.relative_to(path).as_posix()
            found[file] = partial(_plain_file, place) if stat.S_ISREG(status.st_mode) else _link
            _require_size(len(found), size)
    for link in [file for file, read in found.items() if read is _link]:
        found.update(dict.fromkeys(_behind(link, wanted), _link))
    return found


def _behind(link: str, wanted: list[str]) -> list[str]:
    """The names that wanted files would have if a directory of theirs is this link. Nobody looks where it leads."""
    return [f"{link}/{'/'.join(parts[at + 1:])}" for file in wanted for parts in [PurePosixPath(file).parts]
            for at, part in enumerate(parts[:-1]) if part == PurePosixPath(link).name]


def _require_size(files: int, size: int) -> None:
    if files > MOST_FILES:
        raise _Refused("too large", f"it has more than {MOST_FILES} files")
    if size > MOST_BYTES:
        raise _too_large("it", size, MOST_BYTES)


def _unpacked(content: bytes) -> bytes:
    """A tar archive as it was before it was compressed, of which no more is unpacked than is allowed."""
    ways: dict[bytes, Callable[[], Any]] = {
        b"\x1f\x8b": partial(zlib.decompressobj, 16 + zlib.MAX_WBITS), b"BZh": bz2.BZ2Decompressor,
        b"\xfd7zXZ": partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, _TO_UNPACK)}
    way = next((way for begin, way in ways.items() if content.startswith(begin)), None)
    if way is None:
        return content
    unpacking = way()
    unpacked: bytes = unpacking.decompress(content, _LONGEST_TAR + 1)
    if len(unpacked) > _LONGEST_TAR:
        raise _Refused("too large", f"it has more than {amount_of_memory(MOST_BYTES)}")
    if not unpacking.eof:
        raise EOFError("it ends before its end")
    return unpacked


def _member(zipped: zipfile.ZipFile, entry: zipfile.ZipInfo) -> IO[bytes]:
    """Of what is compressed in another way zipfile unpacks everything, however little is asked for."""
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise _Refused("not readable", "it is compressed in a way that is not read here: only deflate is")
    return zipped.open(entry)


def _archive(path: Path) -> Files:
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):  # nobody waits for what a pipe has to say
        _link()
    if status.st_size > MOST_BYTES:
        raise _too_large("the archive", status.st_size, MOST_BYTES)
    # (name, size, whether it is no plain file, how to open it)
    entries: list[tuple[str, int, bool, Callable[[], Any]]] = []
    if path.name.lower().endswith(".zip"):
        zipped = zipfile.ZipFile(path)
        entries = [(entry.filename, entry.file_size, stat.S_ISLNK(entry.external_attr >> 16),
                    partial(_member, zipped, entry))
                   for entry in zipped.infolist() if not entry.is_dir()]
    else:
        tarred = tarfile.open(fileobj=io.BytesIO(_unpacked(path.read_bytes())), mode="r:")
        for read, entry in enumerate(tarred, 1):
            if entry.size < 0:  # from which tarfile goes back, to read the same again
                raise _Refused("not readable", f"{entry.name} in it says that it has {entry.size} bytes")
            _require_size(read, 0)  # while it is read: an archive may have members without end
            if not entry.isdir():
                entries.append((entry.name, entry.size, not entry.isreg(), partial(tarred.extractfile, entry)))
    _require_size(len(entries), sum(size for _, size, _, _ in entries))
    found: Files = {}
    for name, _, is_link, opened in entries:
        file = PurePosixPath(name.replace("\\", "/"))
        if not file.parts:
            continue
        if file.is_absolute() or ".." in file.parts:
            raise _Refused("a path", f"{name} leads out of the archive")
        found[str(file)] = _link if is_link else partial(_opened, opened)
    return found
