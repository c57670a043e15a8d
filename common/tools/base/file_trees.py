"""Trees of files as {path: bytes}. The same tree is always written as the same bytes."""

import os
import re
import subprocess
import zipfile
from pathlib import Path

from tools.base import chapters
from tools.base.failure import Failure
from tools.base.paths import shown

FileTree = dict[str, bytes]  # {path: what is in the file}

_NEVER = {"build", "__pycache__", ".git", ".carry", ".learner", "answers.json"}
# What the workbook has at its top, beside the chapters. Handouts, submissions and grades may lie there, too.
_AT_THE_TOP = re.compile(r"common|workbook|\.(ci|clang-format|clangd|devcontainer|github|gitignore)|CMakeLists\.txt|"
                         r"CMakePresets\.json|"
                         r"pyproject\.toml|(CHANGELOG|CONTRIBUTING|README)\.md|CITATION\.cff|LICENSE")
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the first date that a zip archive can say


def read(root: Path) -> FileTree:
    """The workbook as {path: bytes}: the files that git tracks or, without git, all but the build directories."""
    tops = {chapter.name for chapter in chapters.all_chapters(root)}
    return {file: (root / file).read_bytes() for file in _files(root)
            if (top := file.partition("/")[0]) in tops or _AT_THE_TOP.fullmatch(top)}


def _files(root: Path) -> list[str]:
    if (root / ".git").exists():
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, stdin=subprocess.DEVNULL, capture_output=True,
                                text=True)
        if listed.returncode == 0:
            return sorted(file for file in listed.stdout.split("\0") if file and (root / file).is_file())
    found = []
    for directory, names, files in os.walk(root):
        names[:] = sorted(set(names) - _NEVER)
        found += [str((Path(directory) / file).relative_to(root)) for file in files if file not in _NEVER]
    return sorted(found)


def is_program(content: bytes) -> bool:
    return content.startswith(b"#!")


def write(directory: Path, tree: FileTree) -> None:
    for file, content in sorted(tree.items()):
        path = directory / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755 if is_program(content) else 0o644)


def write_archive(path: Path, tree: FileTree) -> None:
    """Writes the tree as a zip archive, sorted and with one date for all files."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, content in sorted(tree.items()):
            entry = zipfile.ZipInfo(file, date_time=_LONG_AGO)
            entry.external_attr = (0o100755 if is_program(content) else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, whatever this machine is
            archive.writestr(entry, content)


def require_a_new(directory: Path) -> None:
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise Failure(f"{shown(directory)} is there already, and not empty", status=2)
