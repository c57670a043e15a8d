"""Which chapters there are, and which of them the user means."""

import difflib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from tools.base.annotations import JsonObject
from tools.base.failure import Failure
from tools.base.paths import ROOT
from tools.base.processes import output_of

_OF_EXERCISES = Path("common/course")


@dataclass(frozen=True)
class Chapter:
    """Or a kernel that only an exercise is about: it has the same programs, and is no part of the ladder."""

    name: str  # the directory: "05_online_softmax", or of common/course "split"

    @property
    def number(self) -> str:
        return self.name.split("_")[0]

    @property
    def place(self) -> Path:
        """The directory, below the root and below a build directory."""
        return Path(self.name) if self.name[:1].isdigit() else _OF_EXERCISES / self.name

    def program(self, build_directory: Path) -> Path:
        return build_directory / self.place / self.name

    @property
    def traced(self) -> str:
        """The program, and the target, of the same kernels traced: it can count what they do, and looks for races."""
        return f"{self.name}_traced"

    def traced_program(self, build_directory: Path) -> Path:
        return build_directory / self.place / self.traced


@dataclass
class Description:
    """What a chapter's program says about itself (--describe)."""

    idea: str
    rungs: list[JsonObject] = field(default_factory=list)  # [{"name", "idea", "forward": bool, "backward": bool}]
    example: str = ""  # a forward that is no rung: to be looked at, not timed

    def rungs_with(self, direction: str) -> list[str]:
        return [rung["name"] for rung in self.rungs if rung[direction]]


def all_chapters(root: Path = ROOT) -> list[Chapter]:
    return [Chapter(path.parent.name) for path in sorted(root.glob("[0-9][0-9]_*/CMakeLists.txt"))]


def with_lessons(root: Path = ROOT) -> list[Chapter]:
    """All chapters, and those of which a student's tree has the lesson alone: the kernels would show a solution."""
    lessons = {Chapter(path.parent.name) for path in root.glob("[0-9][0-9]_*/README.md")}
    return sorted({*all_chapters(root), *lessons}, key=lambda chapter: chapter.name)


def of_exercises(root: Path = ROOT) -> list[Chapter]:
    """The kernels that only exercises are about: to be selected by name, beside the chapters."""
    return [Chapter(path.parent.name) for path in sorted((root / _OF_EXERCISES).glob("*/CMakeLists.txt"))]


def select(words: list[str], chapters: list[Chapter]) -> list[Chapter]:
    """The chapters that the user names, each by number (5, 05), name (online_softmax) or directory; all if none."""
    if not words:
        return chapters
    chosen = {_find(word, chapters) for word in words}
    return [chapter for chapter in chapters if chapter in chosen]


def is_named(chapter: Chapter, word: str) -> bool:
    wanted = word.rstrip("/")
    if wanted.isdecimal() and chapter.number.isdecimal():
        return int(wanted) == int(chapter.number)
    return wanted != "" and wanted in (chapter.name, chapter.name.partition("_")[2])


def _find(word: str, chapters: list[Chapter]) -> Chapter:
    for chapter in chapters:
        if is_named(chapter, word):
            return chapter
    wanted = word.rstrip("/")
    names = [chapter.name for chapter in chapters]
    close = difflib.get_close_matches(wanted, [name.partition("_")[2] for name in names] + names, n=1)
    perhaps = f"; did you mean {close[0]}?" if close else ""
    raise Failure(f"no chapter {word}{perhaps} (chapters: {', '.join(names)})", status=2)


def describe(chapter: Chapter, build_directories: list[Path]) -> "Description | None":
    """What the chapter's program says of itself, from the first build directory that has it; None if none answers."""
    for directory in build_directories:
        programs = [path for path in (chapter.program(directory), chapter.traced_program(directory)) if path.exists()]
        newest = max(programs, key=lambda path: path.stat().st_mtime, default=None)
        answer = output_of([newest, "--describe"]) if newest else None
        if answer:
            try:
                described = json.loads(answer)
                return Description(described["idea"], described["rungs"], described.get("example", ""))
            except (ValueError, KeyError, TypeError):
                continue
    return None


@dataclass(frozen=True)
class Passes:
    """What a chapter's sources say of one direction, before its program is built."""

    exist: bool
    largest_head_dim: "int | None"  # of the last rung; None if the sources do not say it in the usual way


def passes_in_sources(chapter: Chapter, direction: str, root: Path = ROOT) -> Passes:
    """Reads the rungs' files: each defines attention::Forward or .forward, and names its limit:
    head_dim_not_8_to_256, or not_for_hopper, which is 128 unless it says more. So do its chapter's own headers that it
    includes, and of several limits the largest counts."""
    kind = direction.capitalize()
    defines = re.compile(rf"\.{direction} =|attention::{kind} \w+ =|using attention::{kind};")
    sources = {path: path.read_text(errors="replace") for path in (root / chapter.place).glob("*.cu")}
    defining = [path for path, text in sources.items() if defines.search(text)]

    def number(path: Path) -> int:
        found = re.match(r"\d+", path.name)
        return int(found[0]) if found else -1

    last = sources[max(defining, key=number)] if defining else ""
    headers = [root / chapter.place / name for name in re.findall(r'#include "([^"]+)"', last)]

    texts = [last, *(path.read_text() for path in headers if path.exists())]
    bounds = [int(bound or 128)
              for text in texts for bound in re.findall(r"not_(?:8|for_hopper)(?:_to_(\d+)|\b)", text)]
    return Passes(bool(defining), max(bounds, default=None))


def names_a_rung(chapter: Chapter, rung: str, root: Path = ROOT) -> bool:
    """Whether the chapter's sources define a rung of this name."""
    return any(f'.name = "{rung}"' in path.read_text(errors="replace") for path in (root / chapter.place).glob("*.cu"))


def with_rung(rung: "str | None", among: list[Chapter], build_directories: list[Path]) -> list[Chapter]:
    """The chapters that have the rung. If none has it, all of them: their programs say which rungs there are."""
    described = [(chapter, describe(chapter, build_directories)) for chapter in among] if rung else []
    return [chapter for chapter, known in described if known and rung in [one["name"] for one in known.rungs]] or among


def title(chapter: Chapter, root: Path = ROOT) -> str:
    """The first heading of the chapter's README; empty if it has none."""
    readme = root / chapter.name / "README.md"
    lines = readme.read_text().splitlines() if readme.exists() else []
    return next((line.lstrip("# ") for line in lines if line.startswith("# ")), "")
