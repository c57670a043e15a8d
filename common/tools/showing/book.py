"""The book: the lessons as sources for Sphinx, as they stand but for what a site needs.

    README.md of a folder     becomes index.md, so that the folder is its address
    a link to a folder        leads to that page, or to a page that lists the folder's files
    a link to source code     leads to a page with the code, its lines numbered
    a comment                 is left out: it is for ./workbook report

A chapter's page begins with links to its kernels, and each kernel's page has a link to what changed since the rung before. A
recorded picture gets the plot that book_plots.py makes of the same data, and a paragraph of a lesson that names
`./workbook walk ..` is followed by that walk.
"""

import difflib
import json
import os
import re
from collections import deque
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from posixpath import normpath, relpath

from tools.showing.lessons import FENCED

LANGUAGES = {".cu": "cuda", ".cc": "cpp", ".h": "cpp", ".py": "python"}  # what gets a page of code; another file is handed out
CODE_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
HEADING = re.compile(r"^# (.+)$", re.MULTILINE)
SINCE = re.compile(r"^// What changed since (.*?)(?: is |:\s)", re.DOTALL | re.MULTILINE)
WALK = re.compile(r"`\./workbook walk ([^`\n]+)`")


def shielded(text: str) -> tuple:
    """(the text with code blanked out, a function that puts the code back)"""
    kept = []

    def keep(found) -> str:
        kept.append(found[0])
        return f"\0{len(kept) - 1}\0"

    blank = CODE_SPAN.sub(keep, FENCED.sub(keep, text))

    def restore(changed: str) -> str:
        while "\0" in changed:
            changed = re.sub("\0(\\d+)\0", lambda found: kept[int(found[1])], changed)
        return changed

    return blank, restore


def targets(text: str) -> list:
    """Where the links and pictures of a page lead, as they are written: [(line, target)]."""
    blank, _ = shielded(text)
    plain, start, found = COMMENT.sub(lambda comment: re.sub(r"[^\n]", " ", comment[0]), blank), 0, []
    for link in LINK.finditer(plain):
        start = plain[:link.start()]
        found.append((_lines(text, start), link[3]))
    return found


def _lines(text: str, before: str) -> int:
    """The line that a place in the shielded text has in the text: as many lines as `before` has, and those of the code in it."""
    kept = [code[0] for code in FENCED.finditer(text)]
    blocks = [int(number) for number in re.findall("\0(\\d+)\0", before)]
    return before.count("\n") + sum(kept[number].count("\n") for number in blocks if number < len(kept)) + 1


def anchor(heading: str) -> str:
    """As GitHub and MyST name it: "Why is it slow?" -> "why-is-it-slow"."""
    return re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", COMMENT.sub("", heading)).strip().lower()).replace(" ", "-")


def anchors(text: str) -> set:
    plain = FENCED.sub("", text)
    found = {}
    for heading in re.findall(r"^#{1,6} (.+)$", plain, re.MULTILINE):
        name = anchor(heading)
        found[name] = found.get(name, -1) + 1
    return {name if again == 0 else f"{name}-{again}" for name, most in found.items() for again in range(most + 1)}


@dataclass(frozen=True)
class Walk:
    """A page of ./workbook walk that a lesson names."""

    words: tuple  # ("05", "--seq-q", "128")

    @property
    def command(self) -> str:
        return f"./workbook walk {' '.join(self.words)}"

    @property
    def file(self) -> str:
        return re.sub(r"[^\w.]+", "-", "-".join(self.words)).strip("-") + ".html"


class Book:
    """Which pages there are, and what is in them."""

    def __init__(self, root: Path):
        self.root = root

    # --- Pages -------------------------------------------------------------------------------------------------------

    @cached_property
    def chapters(self) -> list:
        """The folders of the ladder, in its order."""
        return [path.parent.name for path in sorted(self.root.glob("[0-9][0-9]_*/README.md"))]

    @cached_property
    def _found(self) -> tuple:
        """(pages, code, folders, other files): all that can be reached from the first page and the lessons, by their paths."""
        first = ["README.md", *(f"{chapter}/README.md" for chapter in self.chapters)]
        first += [str(path.relative_to(self.root)) for path in sorted(self.root.glob("common/book/*.md"))]
        pages, rest, waiting = list(first), set(), deque(first)
        while waiting:
            page = waiting.popleft()
            for _, target in targets((self.root / page).read_text()):
                path = self.resolve(page, target)
                if path is None:
                    continue
                if path.endswith(".md"):
                    if path not in pages:
                        pages.append(path)
                        waiting.append(path)
                else:
                    rest.add(path)
        code = {path for path in rest if Path(path).suffix in LANGUAGES} | {kernel for one in self.chapters for kernel in self.kernels(one)}
        folders = {path for path in rest if (self.root / path).is_dir()}
        return pages, sorted(code), sorted(folders), sorted(rest - code - folders)

    @property
    def pages(self) -> list:
        return self._found[0]

    @property
    def code(self) -> list:
        return self._found[1]

    def resolve(self, page: str, target: str) -> "str | None":
        """What the link means: a page's, a file's or a folder's path from the root; None if it leads out of the repository, or
        stays on the page."""
        path = target.partition("#")[0]
        if re.match(r"[a-z]+:", target) or not path:
            return None
        path = normpath(os.path.join(os.path.dirname(page), path))
        if path.startswith(".."):  # a page of the repository's host
            return None
        return f"{path}/README.md" if (self.root / path / "README.md").exists() else path

    def broken(self, page: str) -> list:
        """["README.md:12: ..", ..]: links of a page to what is not there."""
        wrong = []
        text = (self.root / page).read_text()
        for line, target in targets(text):
            path, fragment = self.resolve(page, target), target.partition("#")[2]
            if path and not (self.root / path).exists():
                wrong.append(f"{page}:{line}: there is no {path}")
            elif fragment and not re.match(r"[a-z]+:", target) and (path or page).endswith(".md"):
                if fragment not in anchors((self.root / (path or page)).read_text()):
                    wrong.append(f"{page}:{line}: {path or page} has no heading #{fragment}")
        return wrong

    # --- Kernels -----------------------------------------------------------------------------------------------------

    def kernels(self, chapter: str) -> list:
        """The chapter's rungs; attention.cu where it has the kernels, and not only their list."""
        files = sorted(self.root.glob(f"{chapter}/[0-9]*_*.cu"), key=lambda path: (int(path.name.split("_")[0]), path.name))
        return [f"{chapter}/{path.name}" for path in files] or [f"{chapter}/attention.cu"]

    @cached_property
    def _ladder(self) -> list:
        return [kernel for chapter in self.chapters for kernel in self.kernels(chapter)]

    def before(self, kernel: str) -> "str | None":
        """The kernel that the header of this one says it comes from."""
        header = SINCE.search((self.root / kernel).read_text())
        if not header:
            return None
        words = header[1].replace("\n// ", " ")
        chapter = re.search(r"chapter (\d\d)|(\d\d)/", words)
        number = next(filter(None, chapter.groups())) if chapter else kernel[:2]
        named = re.search(r"\b(\d_\w+)", words)
        backward = kernel.endswith("_backward.cu")
        of_chapter = [one for one in self._ladder if one.startswith(number)]
        same = [one for one in of_chapter if one.endswith("_backward.cu") == backward] or of_chapter
        wanted = [one for one in of_chapter if named and Path(one).stem == named[1]] if named else same
        return wanted[-1] if wanted else None

    def nearest(self, kernel: str) -> "str | None":
        """The earlier kernel that has most lines in common with it."""
        own = set((self.root / kernel).read_text().splitlines())
        earlier = self._ladder[:self._ladder.index(kernel)]
        return max(earlier, key=lambda one: len(own & set((self.root / one).read_text().splitlines())), default=None)

    def differences(self, kernel: str) -> list:
        """[(kernel, lines of a unified diff)], of the rung before and, where that is another one, of the nearest relative."""
        own, found = (self.root / kernel).read_text().splitlines(), []
        for other in dict.fromkeys([self.before(kernel), self.nearest(kernel)] if self.before(kernel) else []):
            lines = list(difflib.unified_diff((self.root / other).read_text().splitlines(), own, other, kernel, lineterm=""))
            if not found or len(lines) < len(found[0][1]):
                found.append((other, lines))
        return found

    # --- Walks -------------------------------------------------------------------------------------------------------

    @cached_property
    def walks(self) -> list:
        """All that the lessons name."""
        return list(dict.fromkeys(Walk(tuple(words.split())) for chapter in self.chapters
                                  for words in WALK.findall((self.root / chapter / "README.md").read_text())))

    # --- Sources of the site -----------------------------------------------------------------------------------------

    def sources(self, plots: dict, pdf: "str | None") -> dict:
        """{path of a Markdown file: its text}; plots: {name of a picture: figure}; pdf: its address, if there is one."""
        pages, code, folders, _ = self._found
        made = {_source(page): self._page(page, plots, paper=False) for page in pages}
        if pdf:
            head, mark, rest = made["index.md"].partition("\n## ")
            made["index.md"] = f'{head}\n<p><a href="{pdf}">The lessons as a PDF</a></p>\n{mark}{rest}'
        made.update({f"{path}.md": self._code_page(path) for path in code})
        for kernel in self._ladder:
            if self.differences(kernel):
                made[f"{kernel}.diff.md"] = self._diff_page(kernel)
        made.update({f"{folder}/index.md": self._folder_page(folder) for folder in folders})
        return made

    def paper(self) -> dict:
        """The sources of the lessons alone, for print: without what only a screen has."""
        return {_source(page): self._page(page, {}, paper=True) for page in self.pages}

    @property
    def files(self) -> list:
        """Pictures, and other files that are handed out as they are."""
        return self._found[3]

    def _page(self, page: str, plots: dict, paper: bool) -> str:
        blank, restore = shielded((self.root / page).read_text())

        def link(found) -> str:
            picture, text, target = found.groups()
            path, fragment = self.resolve(page, target), "".join(target.partition("#")[1:])
            if path is None:
                return text if target.startswith("../") else found[0]
            if paper and not picture and path not in self.pages:
                return text
            plot = plots.get(Path(path).stem) if picture and "/pictures/" in path else None
            whole = f"{picture}[{text}]({_to(page, self._address(path))}{fragment})"
            return with_plot(whole, plot) if plot else whole

        blank = LINK.sub(link, COMMENT.sub("", blank))
        chapter = os.path.dirname(page)
        if chapter not in self.chapters:
            return restore(blank) + (self._contents() if page == "README.md" else "")
        if paper:
            return restore(blank)
        text = "\n\n".join(self._with_walks(page, restore(paragraph)) for paragraph in blank.split("\n\n"))
        head, mark, rest = text.partition("\n## ")
        return f"{head}\n{self._kernel_list(page)}\n{mark}{rest}{_toctree(self._kernel_entries(chapter))}"

    def _address(self, path: str) -> str:
        if (self.root / path).is_dir():
            return f"{path}/index.md"
        return _source(path) if path.endswith(".md") else f"{path}.md" if path in self.code else path

    def _kernel_entries(self, chapter: str) -> list:
        return [(Path(kernel).name, f"/{kernel}") for kernel in self.kernels(chapter)]

    def _kernel_list(self, page: str) -> str:
        links = []
        for kernel in self.kernels(os.path.dirname(page)):
            changed = f" ([what changed]({_to(page, kernel)}.diff.md))" if self.differences(kernel) else ""
            links.append(f"[{Path(kernel).name}]({_to(page, kernel)}.md){changed}")
        return f"```{{container}} kernels\nThe code: {' · '.join(links)}\n```\n"

    def _with_walks(self, page: str, paragraph: str) -> str:
        """The paragraph, and each walk that it names."""
        if re.match(r"[ |#]|```", paragraph):
            return paragraph
        for walk in [Walk(tuple(words.split())) for words in WALK.findall(paragraph)]:
            place = _to(page, f"walks/{walk.file}")
            paragraph = (f'{paragraph.rstrip()}\n\n<iframe class="walk" loading="lazy" src="{place}" title="{walk.command}"></iframe>\n'
                         f'<p class="walk-link"><a href="{place}">This walk on a page of its own</a></p>\n')
        return paragraph

    def _contents(self) -> str:
        ladder = [("", f"/{chapter}/index") for chapter in self.chapters]
        others = [page for page in self.pages if page != "README.md" and os.path.dirname(page) not in self.chapters]
        beside = [("", f"/{_source(page)[:-3]}") for page in others if page.startswith("common/book/")]
        rest = [("", f"/{_source(page)[:-3]}") for page in others if not page.startswith("common/book/")]
        return _toctree(ladder, "The ladder") + _toctree(beside, "Beside it") + _toctree(rest, "Behind it")

    def _code_page(self, path: str) -> str:
        text = (self.root / path).read_text()
        way, below = "[The lesson](index.md)" if os.path.dirname(path) in self.chapters else "", ""
        if path in self._ladder and self.differences(path):
            way += f" · [what changed since {self._short(path, self.before(path))}]({Path(path).name}.diff.md)"
            below = _toctree([("what changed", f"/{path}.diff")])
        head = _head("hide-toc") if path in self._ladder else _head("orphan", "hide-toc")
        return f"{head}# {path}\n\n{way}\n\n{_fenced(text, LANGUAGES[Path(path).suffix], ':linenos:')}{below}"

    def _short(self, kernel: str, other: str) -> str:
        return Path(other).name if os.path.dirname(other) == os.path.dirname(kernel) else other

    def _diff_page(self, kernel: str) -> str:
        parts = [_head("hide-toc") + f"# {kernel}: what changed\n\n[The lesson](index.md) · [the whole file]({Path(kernel).name}.md)\n"]
        for number, (other, lines) in enumerate(self.differences(kernel)):
            plus, minus = (sum(line.startswith(sign) for line in lines[2:]) for sign in "+-")
            kind = "Since the rung before" if number == 0 else "Since its nearest relative"
            parts.append(f"## {kind}, {self._short(kernel, other)}\n\n{plus} lines added, {minus} removed. "
                         f"The other file: [{other}]({_to(kernel, other)}.md)\n\n" + _fenced("\n".join(lines) + "\n", "diff"))
        return "\n".join(parts)

    def _folder_page(self, folder: str) -> str:
        names = sorted(path.name for path in (self.root / folder).iterdir())
        return f"{_head('orphan')}# {folder}\n\nThe files of this folder of the repository:\n\n" + "".join(f"- `{name}`\n" for name in names)


def _source(page: str) -> str:
    return re.sub(r"README\.md$", "index.md", page)


def _to(page: str, path: str) -> str:
    return relpath(path, os.path.dirname(page) or ".")


def _head(*flags: str) -> str:
    return "---\n" + "".join(f"{flag}: true\n" for flag in flags) + "---\n"


def _toctree(entries: list, caption: str = "") -> str:
    lines = [f"{title} <{place}>" if title else place for title, place in entries]
    return "\n```{toctree}\n:hidden:\n" + (f":caption: {caption}\n" if caption else "") + "\n" + "\n".join(lines) + "\n```\n"


def _fenced(text: str, language: str, *options: str) -> str:
    fence = "`" * max(4, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}{{code-block}} {language}\n" + "".join(f"{option}\n" for option in options) + f"\n{text.rstrip()}\n{fence}\n"


def with_plot(picture: str, figure: dict) -> str:
    """The picture stays for paper, and for readers without scripts."""
    data = json.dumps(figure, separators=(",", ":")).replace("<", "\\u003c")
    return f'<div class="plot">\n\n{picture}\n\n<script type="application/json">{data}</script></div>'


def write(sources: dict, directory: Path) -> None:
    """Only what is new: Sphinx reads again what has changed."""
    for path in [path for path in directory.rglob("*") if path.is_file() and path.relative_to(directory).as_posix() not in sources]:
        path.unlink()
    for name, text in sources.items():
        path = directory / name
        content = text if isinstance(text, bytes) else text.encode()
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
