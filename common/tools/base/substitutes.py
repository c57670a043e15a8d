"""Programs with other texts in place of some sources, built beside those that CMake builds: no source is touched.

For these programs CMake's build.ninja is said once more, with other sources and other places for what is made of them.
All else, libraries and other objects, is shared with the usual build.
"""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from tools.base.build import alone, build_targets, configure, directory
from tools.base.packages import require_packages
from tools.base.paths import ROOT

_REST = r"[^\n]*\n(?:  [^\n]*\n)*"  # of a statement: the rest of its line, and its variables
_PLACES = ("DEP_FILE", "TARGET_FILE", "TARGET_PDB")  # of the variables: where something is written


def built_beside(preset: str, targets: list[str], texts: dict[str, str], name: str,
                 traced_flags: Sequence[str] = ()) -> Path:
    """Builds these programs with these texts {source below the root: text}, and where kernels are traced with more
    flags. Returns the directory, called `name`, in which they stand as in the build directory; DoesNotBuild if they
    cannot be built."""
    require_packages(preset)
    built = directory(preset)
    built.mkdir(parents=True, exist_ok=True)
    beside = Path("beside") / name  # below the build directory
    with alone(preset):
        configure(preset, built)
        build_targets(preset, built, ["build.ninja"], quietly=True)  # which the next step reads
        for file, text in texts.items():
            _write(built / beside / file, text)
        statements, programs = _statements((built / "build.ninja").read_text(), targets, list(texts), built / beside,
                                           " ".join(traced_flags))
        _write(built / f"{beside}.ninja", statements)
        build_targets(preset, built, programs, quietly=True, rules=f"{beside}.ninja")
    return built / beside


def _write(path: Path, text: str) -> None:
    """If it is new: what has been made of it stays newer, else."""
    if not path.is_file() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _statements(ninja: str, targets: list[str], files: list[str], beside: Path,
                traced_flags: str) -> tuple[str, list[str]]:
    """(what builds these targets with the files below `beside`, the paths of the targets)"""
    inside = beside.relative_to(beside.parent.parent)
    moved: dict[str, str] = {}
    said, programs = ["include build.ninja"], []
    for file in files:
        source = re.escape(_escaped(ROOT / file))
        for block in re.findall(rf"^build \S+: \S+ {source}(?= |$){_REST}", ninja, re.M):
            place = block.split(": ")[0].removeprefix("build ")
            moved[place] = f"{_escaped(inside)}/{place}"
            block = block.replace(_escaped(ROOT / file), _escaped(beside / file), 1)
            includes = shlex.quote(str((ROOT / file).parent)).replace("$", "$$")
            block = re.sub(r"(?m)^  INCLUDES = .*", lambda found: f"{found[0]} -I{includes}", block)
            if "_traced_kernels.dir/" in place and traced_flags:
                block = re.sub(r"(?m)^  FLAGS = .*", lambda found: f"{found[0]} {traced_flags}", block)
            said.append(_elsewhere(block, place, moved[place]))
    for target in targets:
        (block,) = re.findall(rf"^build (?:\S*/)?{target}(?= |:)[^\n]*: \w+_EXECUTABLE{_REST}", ninja, re.M)
        first, variables = block.split("\n", 1)
        outputs, inputs = first.removeprefix("build ").split(": ", 1)
        place = outputs.split(" ")[0]
        needed, _, _ = inputs.partition(" || ")  # behind it, whole libraries, with what others take the place of
        inputs = " ".join(moved.get(word, word) for word in needed.split(" "))
        programs.append(f"{inside}/{place}")
        variables = re.sub(r"(?m)^  POST_BUILD = .*", "  POST_BUILD = :", variables)
        said.append(_elsewhere(f"build {place}: {inputs}\n{variables}", place, f"{_escaped(inside)}/{place}"))
    return "\n".join(said), programs


def _elsewhere(block: str, place: str, new: str) -> str:
    """The statement that makes `new` where it made `place`."""
    block = block.replace(f"build {place}:", f"build {new}:", 1)
    return re.sub(rf"(?m)^(  (?:{'|'.join(_PLACES)}) = ){re.escape(place)}", lambda found: found[1] + new, block)


def _escaped(path: Path) -> str:
    return re.sub(r"[$ :]", lambda found: f"${found[0]}", str(path))
