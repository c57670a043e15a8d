"""Archives that somebody could hand in, each in a few lines: hostile_folder_test.py grades them beside the files of this folder.

ARCHIVES is {name: (what it tries, what becomes of it, how to make it of a directory, the wanted file's name, and its text)}. What is
read of some is that text; then it is graded.

HIDDEN is {name: code between the markers} of code that the compiler sees and Python takes for a comment: its first line says what it
tries, as in the files of this folder. It is refused for the character that hides it, whatever else is refused."""

import bz2
import gzip
import io
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Optional

Make = Callable[[Path, str, str], Path]
ARCHIVES: "dict[str, tuple[str, str, Make]]" = {}
MEBIBYTE = 1024**2
ROOT = Path(__file__).parents[4]
_ASSEMBLY = r'asm(".ifndef leaked\n.pushsection .rodata\n.globl leaked\nleaked: .%s \"handed_in/%s\"\n.byte 0\n.popsection\n.endif");'
_WAYS = {"zero": "\\\0\n", "form-feed": "\\\f", "line-separator": "\u2028"}  # from a comment on into one that only Python sees
_WHAT = {
    "include": ("has the assembler show a solution in an error", _ASSEMBLY % ("include", "common/course/split/split.cu")),
    "incbin": ("shows a solution as an exception's text", _ASSEMBLY % ("incbin", "02_coalescing/1_mapping.cu") + """
struct Said : std::exception {
  const char* what() const noexcept override {
    const char* at;
    asm("lea leaked(%%rip), %0" : "=r"(at));
    return at;
  }
};
throw Said();"""),
    "not-traced": ("has kernels that the engine does not see", """}
#undef __global__
#define __global__ __attribute__((noinline, no_sanitize("thread")))
inline void unused() {"""),
}
_BEGIN = "// {}, hidden in a comment.\n  float sum = 0;\n// x {}/*\n"
HIDDEN = {f"hidden-{name}-by-{way}": _BEGIN.format(what[0].upper() + what[1:], letters) + f"{code}\n// */\n"
          for name, (what, code) in _WHAT.items() for way, letters in _WAYS.items()}


def archive(name: str, what: str, becomes: str = "") -> "Callable[[Make], Make]":
    def kept(make: Make) -> Make:
        ARCHIVES[f"archive-{name}"] = (what, becomes, make)
        return make
    return kept


def zipped(to: Path, *members: "tuple[str, str | bytes]", name: str = "mallory.zip", mode: int = 0o100644) -> Path:
    with zipfile.ZipFile(to / name, "w", zipfile.ZIP_DEFLATED) as file:
        for member, content in members:
            entry = zipfile.ZipInfo("x", (2027, 2, 1, 0, 0, 0))
            entry.filename, entry.external_attr, entry.compress_type = member, mode << 16, zipfile.ZIP_DEFLATED
            file.writestr(entry, content)
    return to / name


def tarred(to: Path, *members: "tuple[str, Optional[bytes], str, bytes]", name: str = "mallory.tar") -> Path:
    """Of (name, type, what it links to, content)."""
    with tarfile.open(to / name, "w", errors="surrogateescape") as file:
        for member, kind, link, content in members:
            entry = tarfile.TarInfo(member)
            entry.type, entry.linkname, entry.size = kind or tarfile.REGTYPE, link, len(content)
            entry.devmajor, entry.devminor = 1, 5  # /dev/zero
            file.addfile(entry, io.BytesIO(content))
    return to / name


def zeros(mebibytes: int, begin: bytes = b"") -> bytes:
    """The raw deflate stream of so many, made in no time: the same block again and again."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    first = packer.compress(begin) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(MEBIBYTE)) + packer.flush(zlib.Z_FULL_FLUSH)
    return first + block * mebibytes + packer.flush()


def gzipped(to: Path, mebibytes: int, begin: bytes) -> Path:
    path = to / "mallory.tar.gz"
    path.write_bytes(gzip.compress(b"")[:10] + zeros(mebibytes, begin) + bytes(8))
    return path


def header(name: str, kind: bytes, size: int) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.type, entry.size = kind, size
    return entry.tobuf(tarfile.GNU_FORMAT)


def replaced(path: Path, *changes: "tuple[bytes, bytes]") -> Path:
    content = path.read_bytes()
    for before, after in changes:
        assert before in content and len(before) == len(after), before
        content = content.replace(before, after)
    path.write_bytes(content)
    return path


@archive("up", "has a path that leads upwards", "a path")
def _up(to: Path, file: str, text: str) -> Path:
    return zipped(to, (file, text), ("../../../common/tools/grading/sandbox.py", "limits = None"))


@archive("up-inside", "has a path that leads upwards from a directory", "a path")
def _up_inside(to: Path, file: str, text: str) -> Path:
    return tarred(to, (f"a/../../../{file}", None, "", text.encode()))


@archive("up-by-backslashes", "has a path that leads upwards as some systems write it", "a path")
def _up_by_backslashes(to: Path, file: str, text: str) -> Path:
    return zipped(to, ("..\\..\\" + file.replace("/", "\\"), text))


@archive("absolute", "has an absolute path", "a path")
def _absolute(to: Path, file: str, text: str) -> Path:
    return tarred(to, ("/etc/passwd", None, "", b"root::0:0::/:/bin/sh\n"), (file, None, "", text.encode()))


@archive("link", "has a link to the solution", "a link")
def _link(to: Path, file: str, text: str) -> Path:
    return zipped(to, (file, f"{ROOT}/{file}"), mode=stat.S_IFLNK | 0o777)


@archive("hard-link", "has a hard link to the solution", "a link")
def _hard_link(to: Path, file: str, text: str) -> Path:
    return tarred(to, (file, tarfile.LNKTYPE, f"{ROOT}/{file}", b""))


@archive("directory-link", "has a link for a directory, and a file below it")
def _directory_link(to: Path, file: str, text: str) -> Path:
    return tarred(to, (file.split("/")[0], tarfile.SYMTYPE, f"{ROOT}/01_naive", b""), (file, None, "", text.encode()))


@archive("link-to-another", "is a directory with a link to another student's archive", "other files")
def _link_to_another(to: Path, file: str, text: str) -> Path:
    (to / "mallory").mkdir()
    (to / "mallory/hw.zip").symlink_to(zipped(to, (file, text), name="ada.zip"))
    return to / "mallory"


@archive("device", "has a device that has no end", "a link")
def _device(to: Path, file: str, text: str) -> Path:
    return tarred(to, (file, tarfile.CHRTYPE, "", b""))


@archive("pipe", "has a pipe, to be waited for", "a link")
def _pipe(to: Path, file: str, text: str) -> Path:
    return tarred(to, (file, tarfile.FIFOTYPE, "", b""))


@archive("is-a-pipe", "is a pipe itself", "a link")
def _is_a_pipe(to: Path, file: str, text: str) -> Path:
    os.mkfifo(to / "mallory.zip")
    return to / "mallory.zip"


@archive("bomb", "unpacks to 8 GiB", "too large")
def _bomb(to: Path, file: str, text: str) -> Path:
    return gzipped(to, 8192, header(file, tarfile.REGTYPE, 8192 * MEBIBYTE - 1))


@archive("bomb-of-bytes", "unpacks 200 bytes to 64 MiB", "too large")
def _bomb_of_bytes(to: Path, file: str, text: str) -> Path:
    (to / "mallory.tar").write_bytes(bz2.compress(header(file, tarfile.REGTYPE, 64 * MEBIBYTE) + bytes(64 * MEBIBYTE)))
    return to / "mallory.tar"


@archive("bomb-in-a-header", "has a name of 8 GiB", "too large")
def _bomb_in_a_header(to: Path, file: str, text: str) -> Path:
    return gzipped(to, 8192, header("././@LongLink", tarfile.GNUTYPE_LONGNAME, 8192 * MEBIBYTE - 1))


@archive("bomb-of-directories", "has millions of directories", "too large")
def _bomb_of_directories(to: Path, file: str, text: str) -> Path:
    path, packer = to / "mallory.tar.gz", zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    block = packer.compress(header("d/", tarfile.DIRTYPE, 0) * 2048) + packer.flush(zlib.Z_FULL_FLUSH)
    path.write_bytes(gzip.compress(b"")[:10] + block * 2048 + packer.flush() + bytes(8))
    return path


@archive("bomb-that-lies", "says that 2 GiB are ten bytes", "not readable")
def _bomb_that_lies(to: Path, file: str, text: str) -> Path:
    stream = zeros(2048)
    with zipfile.ZipFile(to / "mallory.zip", "w") as written:
        written.writestr(zipfile.ZipInfo(file), stream)
    size = len(stream).to_bytes(4, "little")
    path = replaced(to / "mallory.zip", (size + size, size + (10).to_bytes(4, "little")))
    content = bytearray(path.read_bytes())
    for begin, at in ((b"PK\3\4", 8), (b"PK\1\2", 10)):  # and that they are deflated
        content[content.rindex(begin) + at] = zipfile.ZIP_DEFLATED
    path.write_bytes(content)
    return path


@archive("bomb-overlaps", "has 4000 members that are one", "too large")
def _bomb_overlaps(to: Path, file: str, text: str) -> Path:
    path = zipped(to, (file, " " * MEBIBYTE))
    content = path.read_bytes()
    at = content.index(b"PK\1\2")
    end = content.index(b"PK\5\6")
    entry = content[at:end]
    tail = bytearray(content[end:])
    tail[8:12] = (4000).to_bytes(2, "little") * 2
    tail[12:16] = (4000 * len(entry)).to_bytes(4, "little")
    path.write_bytes(content[:at] + entry * 4000 + bytes(tail))
    return path


@archive("bomb-nested", "has archives in archives in archives", "other files")
def _bomb_nested(to: Path, file: str, text: str) -> Path:
    content = zipped(to, *((f"{i}", bytes(MEBIBYTE)) for i in range(16))).read_bytes()
    for _ in range(3):
        content = zipped(to, *((f"{i}.zip", content) for i in range(16))).read_bytes()
    return to / "mallory.zip"


@archive("many-members", "has 20,000 members", "too large")
def _many_members(to: Path, file: str, text: str) -> Path:
    return zipped(to, *((f"{i}", b"") for i in range(20000)))


@archive("twice", "has the file twice")
def _twice(to: Path, file: str, text: str) -> Path:
    return tarred(to, (file, None, "", b"nothing"), (file, None, "", text.encode()))


@archive("twice-by-a-dot", "has the file twice, under names that are the same")
def _twice_by_a_dot(to: Path, file: str, text: str) -> Path:
    return zipped(to, (file, "nothing"), (f"./{file}", text))


@archive("control", "has a name that writes to a terminal, and to a page", "other files")
def _control(to: Path, file: str, text: str) -> Path:
    return zipped(to, ("\033]0;right\7\n| 01.scores | right |\r", "x"), ("a\u202eb", "x"))


@archive("control-up", "has such a name in a path that is refused", "a path")
def _control_up(to: Path, file: str, text: str) -> Path:
    return tarred(to, ("../\033[2J\nright", None, "", text.encode()))


@archive("no-letters", "has a name of bytes that are no letters", "other files")
def _no_letters(to: Path, file: str, text: str) -> Path:
    return tarred(to, ("\udcff\udcfe", None, "", b"x"))


@archive("long-name", "has a name of 60,000 letters", "other files")
def _long_name(to: Path, file: str, text: str) -> Path:
    return zipped(to, ("a" * 60000, "x"))


@archive("graders-files", "has the grader's own files beside the exercise's")
def _graders_files(to: Path, file: str, text: str) -> Path:
    always = "import sys\nsys.exit(0)\n"
    return zipped(to, (file, text), *((name, always) for name in (
        "workbook", "common/tools/grading/one_submission.py", "common/tools/base/__init__.py", "sitecustomize.py", "json.py",
        "CMakeLists.txt", "CMakePresets.json", "common/harness/judge/confine.cc", "build/cpu/build.ninja", "common/course/exercises.json")))


@archive("nested", "has the exercise's file in an archive in the archive", "other files")
def _nested(to: Path, file: str, text: str) -> Path:
    return zipped(to, ("inside.zip", zipped(to, (file, text)).read_bytes()))


@archive("encrypted", "is encrypted", "not readable")
def _encrypted(to: Path, file: str, text: str) -> Path:
    path = zipped(to, (file, text))
    content = bytearray(path.read_bytes())
    for begin, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        content[content.index(begin) + at] |= 1
    path.write_bytes(content)
    return path


@archive("unknown-method", "is packed in a way that nobody knows", "not readable")
def _unknown_method(to: Path, file: str, text: str) -> Path:
    path = zipped(to, (file, text))
    content = bytearray(path.read_bytes())
    for begin, at in ((b"PK\3\4", 8), (b"PK\1\2", 10)):
        content[content.index(begin) + at] = 77
    path.write_bytes(content)
    return path


@archive("bomb-by-another-method", "unpacks to 64 MiB whose directory says that they are 1000 bytes", "not readable")
def _bomb_by_another_method(to: Path, file: str, text: str) -> Path:
    with zipfile.ZipFile(to / "mallory.zip", "w", zipfile.ZIP_BZIP2) as written:
        written.writestr(file, bytes(64 << 20))
    content = bytearray((to / "mallory.zip").read_bytes())
    at = content.rindex(b"PK\1\2") + 24
    content[at : at + 4] = (1000).to_bytes(4, "little")
    (to / "mallory.zip").write_bytes(content)
    return to / "mallory.zip"


@archive("another-ending", "is a tar archive that is called a zip archive", "not readable")
def _another_ending(to: Path, file: str, text: str) -> Path:
    return tarred(to, (file, None, "", text.encode()), name="mallory.zip")


@archive("cut", "ends in the middle", "not readable")
def _cut(to: Path, file: str, text: str) -> Path:
    path = to / "mallory.tgz"
    whole = gzip.compress(tarred(to, (file, None, "", os.urandom(4096))).read_bytes())
    path.write_bytes(whole[: len(whole) // 2])
    return path


@archive("pax-number", "says in a header of its own that it has less than no bytes", "not readable")
def _pax_number(to: Path, file: str, text: str) -> Path:
    with tarfile.open(to / "mallory.tar", "w", format=tarfile.PAX_FORMAT) as written:
        entry = tarfile.TarInfo(file)
        entry.pax_headers = {"size": "-1", "GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "../x"}
        written.addfile(entry)
    return to / "mallory.tar"


@archive("digits", "has a header of a million digits, which some Pythons take hours to read", "not readable")
def _digits(to: Path, file: str, text: str) -> Path:
    digits = b"1" * 1_000_000
    (to / "mallory.tgz").write_bytes(gzip.compress(header("x", tarfile.XHDTYPE, len(digits)) + digits + bytes(10240)))
    return to / "mallory.tgz"


@archive("negative-size", "has a member of less than no bytes, behind which the same one comes again", "not readable")
def _negative_size(to: Path, file: str, text: str) -> Path:
    entry = bytearray(header(file, tarfile.REGTYPE, 0))
    entry[124:136] = (-512).to_bytes(12, "big", signed=True)  # as GNU writes what octal digits do not hold
    entry[148:156] = b" " * 8
    entry[148:156] = b"%06o\0 " % sum(entry)
    (to / "mallory.tar").write_bytes(header("x", tarfile.REGTYPE, 0) + bytes(entry) + bytes(10240))
    return to / "mallory.tar"
