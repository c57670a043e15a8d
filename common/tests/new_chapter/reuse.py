"""A compiler launcher for a copy of the tree: what has been compiled here, of the same source, is not compiled there.

    reuse.py ORIGINAL COPY COMPILER FLAGS... -o OBJECT -c SOURCE

ORIGINAL and COPY are the two trees, each with its build directories. If the source is the same in both, and the original has
the object, which is younger than all headers there, that is copied; else the compiler runs. ninja is told that a copied object
depends on all headers of the copy. The suite's object comes with the original's references, so that those of
the copy are not calculated again: they are named after what makes them, which is the same.
"""

import shutil
import subprocess
import sys
from pathlib import Path


def same(source: Path, copy: Path, made_of: Path, original: Path) -> bool:
    """Where CMake joins several files, it writes a source that includes them by their paths in either tree."""
    return source.read_bytes().replace(bytes(copy), bytes(original)) == made_of.read_bytes()


def headers(tree: Path) -> list:
    return sorted((tree / "common").rglob("*.h"))


def reused(original: Path, copy: Path, command: list) -> bool:
    if "-o" not in command or "-c" not in command:
        return False  # CMake, which tries the compiler
    target = Path.cwd() / command[command.index("-o") + 1]
    source = Path.cwd() / command[command.index("-c") + 1]
    if not (target.is_relative_to(copy) and source.is_relative_to(copy)):
        return False
    made, made_of = original / target.relative_to(copy), original / source.relative_to(copy)
    if not (made.exists() and made_of.exists() and same(source, copy, made_of, original)):
        return False
    if any(header.stat().st_mtime > made.stat().st_mtime for header in headers(original)):
        return False
    shutil.copy(made, target)
    if "-MF" in command:
        needs = " ".join(str(file).replace(" ", "\\ ") for file in [source, *headers(copy)])
        (Path.cwd() / command[command.index("-MF") + 1]).write_text(f"{command[command.index('-o') + 1]}: {needs}\n")
    return True


if __name__ == "__main__":
    original, copy, *command = sys.argv[1:]
    try:
        done = reused(Path(original), Path(copy), command)
    except PermissionError:  # another user compiles, who may not look into the original
        done = False
    if not done:
        sys.exit(subprocess.run(command).returncode)
