"""What is in the book: its pages, the kernels and what each comes from, the walks; and links that lead nowhere.

A page belongs to it if links lead there from the README, a lesson, or a page of common/book.
tools/showing/book_pages.py writes them.
"""

import difflib
import os
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from posixpath import normpath

from tools.showing.lesson_numbers import FENCED

# These get a page of code; other files are offered as they are.
LANGUAGES = {".cu": "cuda", ".cc": "cpp", ".h": "cpp", ".py": "python"}
CODE_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
SINCE = re.compile(r"^// What changed since (.*?)(?: is |:\s)", re.DOTALL | re.MULTILINE)
WALK = re.compile(r"`\./workbook walk ([^`\n]+)`")


def shielded(text: str) -> tuple[str, Callable[[str], str]]:
    """(the text with code blanked out, a function that puts the code back)"""
    kept = []

    def keep(found: re.Match[str]) -> str:
        kept.append(found[0])
        return f"\0{len(kept) - 1}\0"

    blank = CODE_SPAN.sub(keep, FENCED.sub(keep, text))

    def restore(changed: str) -> str:
        while "\0" in changed:
            changed = re.sub("\0(\\d+)\0", lambda found: kept[int(found[1])], changed)
        return changed

    return blank, restore


def targets(text: str) -> list[tuple[int, str]]:
    """Where the links and pictures of a page lead, as they are written: [(line, target)]."""

    def blank(found: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", found[0])

    plain = COMMENT.sub(blank, CODE_SPAN.sub(blank, FENCED.sub(blank, text)))
    return [(text.count("\n", 0, link.start()) + 1, link[3]) for link in LINK.finditer(plain)]


def anchor(heading: str) -> str:
    """As GitHub and MyST name it: "Why is it slow?" -> "why-is-it-slow"."""
    return re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", COMMENT.sub("", heading)).strip().lower()).replace(" ", "-")


def anchors(text: str) -> set[str]:
    plain = FENCED.sub("", text)
    found: dict[str, int] = {}
    for heading in re.findall(r"^#{1,6} (.+)$", plain, re.MULTILINE):
        name = anchor(heading)
        found[name] = found.get(name, -1) + 1
    return {name if again == 0 else f"{name}-{again}" for name, most in found.items() for again in range(most + 1)}


@dataclass(frozen=True)
class Walk:
    """A page of ./workbook walk that a lesson names."""

    words: tuple[str, ...]  # ("05", "--seq-q", "128")

    @property
    def command(self) -> str:
        return f"./workbook walk {' '.join(self.words)}"

    @property
    def file(self) -> str:
        return re.sub(r"[^\w.]+", "-", "-".join(self.words)).strip("-") + ".html"


def walks_in(paragraph: str) -> list[Walk]:
    """The walks that it names; what stands in a list, a table, a heading or code has no room for one."""
    if re.match(r"[ |#]|```|(?:[*-]|\d+\.) ", paragraph):
        return []
    return [Walk(tuple(words.split())) for words in WALK.findall(paragraph)]


class Book:
    """Which pages there are, and what is in them."""

    def __init__(self, root: Path):
        self.root = root

    # --- Pages -------------------------------------------------------------------------------------------------------

    @cached_property
    def chapters(self) -> list[str]:
        """The folders of the ladder, in its order."""
        return [path.parent.name for path in sorted(self.root.glob("[0-9][0-9]_*/README.md"))]

    @cached_property
    def _found(self) -> tuple[list[str], list[str], list[str], list[str]]:
        """(pages, code, folders, other files): paths that links from the first page and the lessons reach."""
        first = ["README.md", *(f"{chapter}/README.md" for chapter in self.chapters)]
        first += [str(path.relative_to(self.root)) for path in sorted(self.root.glob("common/book/*.md"))]
        pages, rest, waiting = list(first), set(), deque(first)
        while waiting:
            page = waiting.popleft()
            for _, target in targets(self.text(page)):
                path = self.resolve(page, target)
                if path is None:
                    continue
                if path.endswith(".md"):
                    if path not in pages:
                        pages.append(path)
                        waiting.append(path)
                else:
                    rest.add(path)
        code = {path for path in rest if Path(path).suffix in LANGUAGES} | set(self.ladder)
        folders = {path for path in rest if (self.root / path).is_dir()}
        return pages, sorted(code), sorted(folders), sorted(rest - code - folders)

    @property
    def pages(self) -> list[str]:
        return self._found[0]

    @property
    def code(self) -> list[str]:
        return self._found[1]

    @property
    def folders(self) -> list[str]:
        """Those without a page of their own."""
        return self._found[2]

    @property
    def files(self) -> list[str]:
        """Pictures, and other files that are handed out as they are."""
        return self._found[3]

    def text(self, path: str) -> str:
        return (self.root / path).read_text()

    def resolve(self, page: str, target: str) -> "str | None":
        """What the link means: a page's, a file's or a folder's path from the root; None if it leads out of the
        repository, or stays on the page."""
        path = target.partition("#")[0]
        if re.match(r"[a-z]+:", target) or not path:
            return None
        path = normpath(os.path.join(os.path.dirname(page), path))
        if path.startswith(".."):  # a page of the repository's host
            return None
        return f"{path}/README.md" if (self.root / path / "README.md").exists() else path

    def broken(self, page: str) -> list[str]:
        """["README.md:12: ..", ..]: links of a page to what is not there."""
        wrong = []
        text = self.text(page)
        for line, target in targets(text):
            path, fragment = self.resolve(page, target), target.partition("#")[2]
            if path and not (self.root / path).exists():
                wrong.append(f"{page}:{line}: there is no {path}")
            elif (fragment and not re.match(r"[a-z]+:", target) and (path or page).endswith(".md")
                  and fragment not in anchors(self.text(path or page))):
                wrong.append(f"{page}:{line}: {path or page} has no heading #{fragment}")
        return wrong

    # --- Kernels -----------------------------------------------------------------------------------------------------

    def kernels(self, chapter: str) -> list[str]:
        """The chapter's rungs; attention.cu where it has the kernels, and not only their list."""
        files = sorted(self.root.glob(f"{chapter}/[0-9]*_*.cu"),
                       key=lambda path: (int(path.name.split("_")[0]), path.name))
        return [f"{chapter}/{path.name}" for path in files] or [f"{chapter}/attention.cu"]

    @cached_property
    def ladder(self) -> list[str]:
        return [kernel for chapter in self.chapters for kernel in self.kernels(chapter)]

    def before(self, kernel: str) -> "str | None":
        """The kernel that the header of this one says it comes from."""
        header = SINCE.search(self.text(kernel))
        if not header:
            return None
        words = header[1].replace("\n// ", " ")
        chapter = re.search(r"chapter (\d\d)|(\d\d)/", words)
        number = next(filter(None, chapter.groups())) if chapter else kernel[:2]
        named = re.search(r"\b(\d+_\w+)", words)
        backward = kernel.endswith("_backward.cu")
        of_chapter = [one for one in self.ladder if one.startswith(number)]
        same = [one for one in of_chapter if one.endswith("_backward.cu") == backward] or of_chapter
        wanted = [one for one in of_chapter if Path(one).stem == named[1]] if named else same
        return wanted[-1] if wanted else None

    def nearest(self, kernel: str) -> "str | None":
        """The earlier kernel that has most lines in common with it."""
        own = set(self.text(kernel).splitlines())
        earlier = self.ladder[:self.ladder.index(kernel)]
        return max(earlier, key=lambda one: len(own & set(self.text(one).splitlines())), default=None)

    def differences(self, kernel: str) -> list[tuple[str, list[str]]]:
        """[(kernel, lines of a unified diff)] against the rung before and, if it differs, the nearest relative."""
        own = self.text(kernel).splitlines()
        found: list[tuple[str, list[str]]] = []
        before = self.before(kernel)
        for other in dict.fromkeys(filter(None, (before, self.nearest(kernel) if before else None))):
            lines = list(difflib.unified_diff(self.text(other).splitlines(), own, other, kernel, lineterm=""))
            if not found or len(lines) < len(found[0][1]):
                found.append((other, lines))
        return found

    # --- Walks -------------------------------------------------------------------------------------------------------

    @cached_property
    def walks(self) -> list[Walk]:
        """All that the lessons discuss."""
        found: dict[Walk, None] = {}
        for page in (page for page in self.pages if os.path.dirname(page) in self.chapters):
            blank, restore = shielded(self.text(page))
            found.update((walk, None) for paragraph in blank.split("\n\n") for walk in walks_in(restore(paragraph)))
        return list(found)
