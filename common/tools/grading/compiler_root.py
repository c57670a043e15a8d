"""A root directory for a compiler: of the system's files it has those that compiling takes, and no others.

Whatever a text has its compiler read, by #include, .incbin or a way that nobody has thought of, is read from there: no
solution, no other student's work, nobody's home. Files of the system are hard links, or copies where these cannot be.
"""

import contextlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tools.grading.sandbox import CHROOT

_ALSO = ("true", CHROOT, "/bin/sh")  # to try whether it works; to become another user; it starts nvcc's parts
_PARTS = ("cc1plus", "as", "ld", "collect2")


class CompilerRoot:
    """The directory, which may have other files already."""

    def __init__(self, root: Path):
        self.root = root
        for name in _ALSO:
            self.add_program(name)

    def add(self, path: Path) -> None:
        """A file, or all below a directory, at the same place; with the links on the way."""
        here = Path("/")
        parts = list(path.parts[1:])
        while parts:
            part = parts.pop(0)
            if part == "..":
                here = here.parent
                continue
            here /= part
            there = self.root / here.relative_to("/")
            if here.is_symlink():
                target = os.readlink(here)
                if not there.is_symlink():
                    there.symlink_to(target)
                parts = [*Path(target).parts, *parts]
                if os.path.isabs(target):
                    parts = parts[1:]
                    here = Path("/")
                else:
                    here = here.parent
            elif here.is_dir():
                there.mkdir(exist_ok=True)
            elif here.is_file() and not there.exists():
                _linked(here, there)
        if here.is_dir():
            for below in sorted(here.iterdir()):
                self.add(below)

    def add_program(self, name: str) -> None:
        """With the libraries that it loads."""
        path = shutil.which(name)
        if not path:
            return
        self.add(Path(path))
        told = subprocess.run(["ldd", path], capture_output=True, text=True)
        for library in re.findall(r"(/\S+) \(0x", told.stdout):
            self.add(Path(library))

    def add_compiler(self, compiler: str, flags: "list[str]") -> None:
        """All that it starts and reads, to compile and to link with these flags, but for sources and headers."""
        self.add_program(compiler)
        for part in _PARTS:
            self.add_program(_told([compiler, f"-print-prog-name={part}"]).strip())
        if home := _toolkit_of(compiler):
            for folder in ("bin", "nvvm", "include/crt"):
                self.add(home / folder)
            for program in [*(home / "bin").iterdir(), *(home / "nvvm/bin").iterdir()]:
                if program.is_file():
                    self.add_program(str(program))
            self.add_headers(map(str, (home / "include").glob("*.h*")))  # files that it writes include them
            for host in _host_compilers(compiler):
                self.add_compiler(host, flags)
            return
        for line in _told([compiler, *flags, "-x", "c++", "-", "-###"]).splitlines():
            with contextlib.suppress(ValueError):  # a line that is no command
                words = [word for one in shlex.split(line) for word in (one, one.partition("=")[2])]
                places = [word[2:] for word in words if word.startswith("-L/")]
                libraries = [f"{place}/lib{word[2:]}.{ending}" for word in words if word.startswith("-l")
                             for place in places for ending in ("a", "so")]
                for file in [word for word in words if word.startswith("/")] + libraries:
                    if os.path.isfile(file):
                        self._add_part(Path(file), places)

    def _add_part(self, file: Path, places: "list[str]") -> None:
        if os.access(file, os.X_OK):
            return self.add_program(str(file))
        self.add(file)
        with open(file, "rb") as opened:
            script = opened.read(4096)
        if b"GNU ld script" in script:  # which names others, with or without their places
            for other in re.findall(r"[\w./+-]+\.(?:so|a)[.\w]*", script.decode(errors="replace")):
                for path in [Path(place) / other for place in places]:  # of one with a place, that
                    if path.is_file() and path != file:
                        self._add_part(path, places)

    def add_headers(self, files: Iterable[str]) -> None:
        for file in files:
            self.add(Path(file))


def _toolkit_of(compiler: str) -> "Path | None":
    """Where nvcc's toolkit is, as nvcc says itself: what a shell finds may be a script that starts another."""
    told = _told([compiler, "--dryrun", "-x", "cu", "/dev/null", "-o", "/dev/null"])
    here = re.search(r"^#\$ _HERE_=(.+)$", told, re.M)
    return Path(here.group(1)).resolve().parent if here else None


def _host_compilers(nvcc: str) -> "list[str]":
    """Those that it starts by their names alone: gcc for a file, g++ for a program."""
    told = _told([nvcc, "--dryrun", "-x", "cu", "/dev/null", "-o", "/dev/null"])
    started = re.findall(r"^#\$ ([\w+.-]+) ", told, re.M)
    return sorted({name for name in started if re.fullmatch(r"(.*-)?(gcc|cc|[gc]\+\+|clang(\+\+)?)[-\d.]*", name)})


def headers_of(build: Path) -> "list[str]":
    """Of the system, all that has been read by what is built there."""
    told = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True).stdout
    files = {line.strip() for line in told.splitlines() if line.startswith(" ")}
    return sorted(file for file in files if os.path.isabs(file))


def _linked(file: Path, to: Path) -> None:
    with contextlib.suppress(OSError):
        return os.link(file, to)
    shutil.copy(file, to)


def _told(command: "list[str]") -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd="/",
                          env={**os.environ, "LC_ALL": "C"})
    return done.stdout + done.stderr
