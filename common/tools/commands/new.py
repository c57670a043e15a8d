"""make a chapter of your own that starts as another one

The new chapter has the kernels of the one that --from names, in a namespace of its own, an empty lesson to write, and
the recorded counts of its kernels. It builds, passes the suite, and is in every command. Then change its kernels:
`./workbook test 14` says what is still right, and `./workbook dev counts 14` records what its kernels count from now
on.
"""

import argparse
import os
import re
import shutil
import subprocess
from pathlib import Path

from tools.base import ROOT, Failure, chapters, say, shown
from tools.course import without_markers

LESSON = """# {name}

What limits `{origin}`: one problem, and one number that shows it.

## The idea

The smallest example that can be followed with a calculator, and a picture of it.

## The code

`./workbook compare {origin} {name} --diff` shows the difference of the kernels.

## Predict

One number, and a reason of three sentences, before the kernel is measured.

## Measured

## Why it is still slow

## Try it

## Questions

## Next
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NN_NAME",
                        help="its directory: two digits, an underscore and a name, as 14_mine")
    parser.add_argument("--from", dest="origin", metavar="CHAPTER", required=True, help="the chapter that it starts as")


def run(arguments: argparse.Namespace) -> int:
    existing = chapters.all_chapters()
    origin = chapters.select([arguments.origin], existing)[0]
    _require_a_free_name(arguments.name, existing)
    written = make(arguments.name, origin.name)
    say(f"Made {arguments.name} from {origin.name}: " + ", ".join(shown(path) for path in written))
    number = arguments.name.partition("_")[0]
    say(f"Next: change its kernels and write its README; ./workbook test {number} checks it, ./workbook run "
        f"{origin.number} {number} compares the two")
    return 0


def _require_a_free_name(name: str, existing: list[chapters.Chapter]) -> None:
    if not re.fullmatch(r"\d\d_[a-z][a-z0-9_]*", name):
        raise Failure(f"the name is {name}: it must be two digits, an underscore and small letters, as 14_mine",
                      status=2)
    number, _, namespace = name.partition("_")
    taken = {chapter.number: chapter.name for chapter in existing}
    free = ", ".join(f"{i:02}" for i in range(1, 100) if f"{i:02}" not in taken)[:10]
    if (ROOT / name).exists():
        raise Failure(f"{name} exists already (the next numbers that are free: {free})", status=2)
    if counts_of(name).exists():
        raise Failure(f"{shown(counts_of(name))} is left of a chapter that is gone: remove it", status=2)
    if number in taken:
        raise Failure(f"the number {number} is taken by {taken[number]} (the next ones that are free: {free})",
                      status=2)
    namespaces = {chapter.name.partition("_")[2] for chapter in existing} | _namespaces_of_common() | {"std"}
    if namespace in namespaces or not _compiles(f"namespace {namespace} {{}}"):
        raise Failure(f"the name is {name}: its kernels would be in the namespace {namespace}, which C++, CUDA or the "
                      "workbook uses for something else", status=2)


def _compiles(text: str) -> bool:
    """Whether the namespace compiles after what a kernel includes; true if there is no compiler to ask."""
    headers = sorted((ROOT / "common" / "device").glob("*.h"))
    source = '#include "attention/chapter.h"\n' + "".join(f'#include "device/{path.name}"\n' for path in headers) + text
    command = [os.environ.get("CXX") or "g++", "-std=c++20", "-DWORKBOOK_SIMT", f"-I{ROOT / 'common'}", "-w",
               "-fsyntax-only", "-xc++", "-"]
    try:
        return subprocess.run(command, input=source, capture_output=True, text=True).returncode == 0
    except OSError:
        return True


def _namespaces_of_common() -> set[str]:
    headers = (ROOT / "common").rglob("*.h")
    return {found for path in headers for found in re.findall(r"^namespace (\w+)", path.read_text(), re.M)}


def counts_of(chapter: str) -> Path:
    return ROOT / "common" / "tests" / "trace" / f"{chapter}.json"


def make(name: str, origin: str) -> list[Path]:
    """Writes all files of the new chapter or none; returns their paths."""
    was, now = origin.partition("_")[2], name.partition("_")[2]

    def renamed(text: str) -> str:
        text = text.replace(origin, name)
        text = re.sub(rf"\bnamespace {was}\b", f"namespace {now}", text)
        return re.sub(rf"\b{was}::", f"{now}::", text)

    directory, counts = ROOT / name, counts_of(name)
    try:
        directory.mkdir()
    except OSError as error:
        raise Failure(f"cannot make {shown(directory)}: {error}") from None
    try:
        for path in [*sorted((ROOT / origin).iterdir()), *sorted((ROOT / origin).glob("wide/*.cu"))]:
            if path.suffix in (".cu", ".h") or path.name == "CMakeLists.txt":
                copy = directory / path.relative_to(ROOT / origin)
                copy.parent.mkdir(exist_ok=True)
                # The new chapter has no exercises.
                copy.write_text(renamed(without_markers(path.read_text())))
        (directory / "README.md").write_text(LESSON.format(name=name, origin=origin))
        if counts_of(origin).exists():
            counts.write_text(renamed(counts_of(origin).read_text()))
    except OSError as error:
        shutil.rmtree(directory, ignore_errors=True)
        counts.unlink(missing_ok=True)
        raise Failure(f"cannot write {shown(directory)}: {error}") from None
    return [path for path in (directory, counts) if path.exists()]
