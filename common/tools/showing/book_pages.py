"""The pages of the book as sources for Sphinx: the lessons as they stand, but for what a site needs.

    README.md of a folder     becomes index.md, so that the folder is its address
    a link to a folder        leads to that page, or to a page that lists the folder's files
    a link to source code     leads to a page with the code, its lines numbered
    a comment                 is left out: it is for ./workbook dev report

The first page of the site is made from the README: what stands there above its first code, its sections as doors, and a
card for each row of its table of chapters. The README itself is a page beside it. A chapter's first page begins with
links to its kernels, and each kernel's page has a link to what changed since the rung before. A lesson's neighbours are
lessons, those of code are code. For a recorded picture stands the plot that book_plots.py makes of the same data, and a
paragraph of a lesson that names `./workbook walk ..` is followed by that walk.
"""

import json
import os
import re
from collections.abc import Mapping
from functools import cached_property
from html import escape
from pathlib import Path
from posixpath import relpath

from tools.base import JsonObject
from tools.showing.book import COMMENT, LANGUAGES, LINK, Book, shielded, walks_in
from tools.showing.book_plots import Plot
from tools.showing.pictures import COLORS, color

TITLE = "The FlashAttention workbook"
FRONT, README = "index.md", "readme.md"  # the site's pages that README.md becomes
NOT_FOUND = """---
orphan: true
hide-toc: true
---
# No such page

There is no page at this address. It may have another name now: search for it, or begin at the
[front page](index.md).
"""
DOORS = ("Learn", "Teach", "Use")  # its sections that the front page leads to
CHAPTERS = "The chapters"  # the one with their table


class Pages:
    """Each of its public methods is {path of a Markdown file: its text}."""

    def __init__(self, book: Book):
        self.book = book

    def sources(self, plots: dict[str, Plot], pdf: "str | None") -> dict[str, str]:
        """{path of a Markdown file: its text}. plots: {path of a picture: plot}; pdf: its address, or None."""
        made = {_source(page): self._page(page, plots, paper=False) for page in self.book.pages}
        if self._has_front:
            made[README] = made[FRONT]
            made[FRONT] = self._front(made[README])
        if pdf:
            head, mark, rest = made[FRONT].partition("\n```")
            made[FRONT] = f'{head}\n<p><a href="{pdf}">All lessons as a PDF</a></p>\n{mark}{rest}'
        made.update({f"{path}.md": self._code_page(path) for path in self.book.code})
        for kernel in self._changed:
            made[f"{kernel}.diff.md"] = self._diff_page(kernel)
        made.update({f"{folder}/index.md": self._folder_page(folder) for folder in self.book.folders})
        made["404.md"] = NOT_FOUND
        return {path: self._with_neighbours(path, text) for path, text in made.items()}

    def paper(self) -> dict[str, str]:
        """The sources of the lessons alone, for print: without what only a screen has."""
        return {_source(page): self._page(page, {}, paper=True) for page in self.book.pages}

    def _page(self, page: str, plots: dict[str, Plot], paper: bool) -> str:
        blank, restore = shielded(self.book.text(page))

        def link(found: re.Match[str]) -> str:
            picture, text, target = found.groups()
            path, fragment = self.book.resolve(page, target), "".join(target.partition("#")[1:])
            if path == "README.md" and fragment and self._has_front and not paper:
                return f"[{text}]({_to(page, README)}{fragment})"
            if path is None:
                return text if target.startswith("../") else found[0]
            if paper and not picture and path not in self.book.pages:
                return text
            if picture and path in plots:
                return with_plot(text, page, plots[path])
            whole = f"{picture}[{text}]({_to(page, self._address(path))}{fragment})"
            return whole

        blank = LINK.sub(link, COMMENT.sub("", blank))
        chapter = os.path.dirname(page)
        if chapter not in self.book.chapters:
            if page == "README.md" and (paper or not self._has_front):
                return restore(blank) + self._contents([])
            return restore(blank)
        text = restore(blank) if paper else "\n\n".join(self._with_walks(page, restore(paragraph))
                                                        for paragraph in blank.split("\n\n"))
        if page != f"{chapter}/README.md":
            return text
        others = [("", f"/{other[:-3]}") for other in self.book.pages if os.path.dirname(other) == chapter
                  and other != page]
        if paper:
            return text + (_toctree(others) if others else "")
        head, mark, rest = text.partition("\n## ")
        below = _toctree([*others, *((Path(kernel).name, f"/{kernel}") for kernel in self.book.kernels(chapter))])
        return f"{head}\n{self._kernel_list(page)}\n{mark}{rest}{below}"

    def _address(self, path: str) -> str:
        if (self.book.root / path).is_dir():
            return f"{path}/index.md"
        return _source(path) if path.endswith(".md") else f"{path}.md" if path in self.book.code else path

    def _kernel_list(self, page: str) -> str:
        links = []
        for kernel in self.book.kernels(os.path.dirname(page)):
            changed = f" ([what changed]({_to(page, kernel)}.diff.md))" if self.book.differences(kernel) else ""
            links.append(f"[{Path(kernel).name}]({_to(page, kernel)}.md){changed}")
        return f"```{{container}} kernels\nThe code: {' · '.join(links)}\n```\n"

    def _with_walks(self, page: str, paragraph: str) -> str:
        """The paragraph, and each walk that it names."""
        for walk in walks_in(paragraph):
            place = _to(page, f"walks/{walk.file}")
            paragraph = (f'{paragraph.rstrip()}\n\n<iframe class="walk" loading="lazy" src="{place}#embed" '
                         f'title="{walk.command}"></iframe>\n'
                         f'<p class="walk-link"><a href="{place}">This walk on a page of its own</a></p>\n')
        return paragraph

    # --- The front page, and the way from page to page --------------------------------------------------------------

    @property
    def _has_front(self) -> bool:
        return all(f"\n## {name}\n" in self.book.text("README.md") for name in (*DOORS, CHAPTERS))

    def _front(self, readme: str) -> str:
        """`readme` is the README as a page of the site."""
        head, *rest = re.split(r"^## (.+)\n", readme, flags=re.MULTILINE)
        sections = dict(zip(rest[::2], rest[1::2]))
        doors = [f"**[{name}]({README}#{name.lower()})**\n\n{_first_paragraph(sections[name])}" for name in DOORS]
        cards = []
        for chapter in self.book.chapters:
            idea, gain = _row(sections[CHAPTERS], chapter)
            cards.append(f"**[{self._title(chapter)}]({chapter}/index.md)**\n\n{idea}\n\n{gain}")
        colors = "".join(f".chapter-{number:02} {{ --chapter: light-dark({on_light}, {on_dark}); }}\n"
                         for number, (on_light, on_dark) in enumerate(COLORS[:len(cards)], 1))
        more = "".join(f"## {name}\n{text}" for name, text in sections.items() if name not in (*DOORS, CHAPTERS))
        hero = head.partition("\n```")[0]
        return (f"{_head('hide-toc')}{hero}\n\n{_boxes('doors', 'door', doors)}\n## {CHAPTERS}\n\n<style>\n{colors}"
                f"</style>\n\n{_boxes('cards', 'card', cards)}\n{more}"
                + self._contents([("How to begin", f"/{README[:-3]}")]))

    def shared(self, stairs: dict[int, float]) -> dict[str, JsonObject]:
        """{name of a picture that stands beside links: what share.py draws}; stairs: {index of a chapter: its ms}."""
        steps = [[ms, color(index)[1]] for index, ms in stairs.items()]
        table = COMMENT.sub("", self.book.text("README.md"))
        first = table.split("\n\n")
        found: dict[str, JsonObject] = {"index": {"title": first[0].removeprefix("# "), "gain": "", "stairs": steps,
                                                  "words": _sentence(_plain(first[1])), "own": None,
                                                  "color": None}}
        for chapter in self.book.chapters:
            idea, gain = map(_plain, _row(table, chapter))
            index = int(chapter[:2]) - 1
            found[chapter] = {"title": self._title(chapter), "words": idea, "gain": gain, "stairs": steps,
                              "own": list(stairs).index(index) if index in stairs else len(steps),
                              "color": color(index)[1]}
        return found

    def _title(self, chapter: str) -> str:
        return self.book.text(f"{chapter}/README.md").partition("\n")[0].removeprefix("# ")

    @property
    def _changed(self) -> list[str]:
        return [kernel for kernel in self.book.ladder if self.book.differences(kernel)]

    @cached_property
    def _neighbours(self) -> dict[str, tuple[str, str]]:
        """{page: (the one before it, the one after it)}, without their suffix; "" where there is none."""
        found: dict[str, tuple[str, str]] = {}
        lessons = ["index", *(f"{chapter}/index" for chapter in self.book.chapters)]
        for way in (lessons, self.book.ladder, [f"{kernel}.diff" for kernel in self._changed]):
            for before, page, after in zip(["", *way], way, [*way[1:], ""]):
                found[page] = (before, after)
        for page in self.book.pages:
            lesson = f"{os.path.dirname(page)}/index"
            if lesson in lessons and page != f"{os.path.dirname(page)}/README.md":
                found[page.removesuffix(".md")] = (lesson, found[lesson][1])
        return found

    def _with_neighbours(self, path: str, text: str) -> str:
        if path.removesuffix(".md") not in self._neighbours:
            return text
        before, after = self._neighbours[path.removesuffix(".md")]
        return _with_head(text, previous=before, next=after)

    def _contents(self, first: list[tuple[str, str]]) -> str:
        """`first`: what comes first of all beside the ladder."""
        ladder = [("", f"/{chapter}/index") for chapter in self.book.chapters]
        others = [page for page in self.book.pages if page != "README.md"
                  and os.path.dirname(page) not in self.book.chapters]
        beside = first + [("", f"/{_source(page)[:-3]}") for page in others if page.startswith("common/book/")]
        rest = [("", f"/{_source(page)[:-3]}") for page in others if not page.startswith("common/book/")]
        return _toctree(ladder, "The ladder") + _toctree(beside, "Beside it") + _toctree(rest, "Behind it")

    # --- Code --------------------------------------------------------------------------------------------------------

    def _code_page(self, path: str) -> str:
        text = self.book.text(path)
        way, below = "[The lesson](index.md)" if os.path.dirname(path) in self.book.chapters else "", ""
        before = self.book.before(path) if path in self.book.ladder else None
        if before and self.book.differences(path):
            way += f" · [what changed since {self._short(path, before)}]({Path(path).name}.diff.md)"
            below = _toctree([("what changed", f"/{path}.diff")])
        head = _with_head(_head("hide-toc") if path in self.book.ladder else _head("orphan", "hide-toc"),
                          description=_description(text) or f"The source of {path}, with its lines numbered.")
        return f"{head}# {path}\n\n{way}\n\n{_fenced(text, LANGUAGES[Path(path).suffix], ':linenos:')}{below}"

    def _short(self, kernel: str, other: str) -> str:
        return Path(other).name if os.path.dirname(other) == os.path.dirname(kernel) else other

    def _diff_page(self, kernel: str) -> str:
        way = f"[The lesson](index.md) · [the whole file]({Path(kernel).name}.md)"
        head = _with_head(_head("hide-toc"), description=f"The lines that {kernel} adds to the kernel before it, and "
                                                         "the lines that it takes away.")
        parts = [f"{head}# {kernel}: what changed\n\n{way}\n"]
        for number, (other, lines) in enumerate(self.book.differences(kernel)):
            plus, minus = (sum(line.startswith(sign) for line in lines[2:]) for sign in "+-")
            kind = "Since the rung before" if number == 0 else "Since its nearest relative"
            parts.append(f"## {kind}, {self._short(kernel, other)}\n\n{plus} lines added, {minus} removed. "
                         f"The other file: [{other}]({_to(kernel, other)}.md)\n\n"
                         + _fenced("\n".join(lines) + "\n", "diff"))
        return "\n".join(parts)

    def _folder_page(self, folder: str) -> str:
        names = sorted(path.name for path in (self.book.root / folder).iterdir())
        listed = "".join(f"- `{name}`\n" for name in names)
        return f"{_head('orphan')}# {folder}\n\nThe files of this folder of the repository:\n\n{listed}"


def _source(page: str) -> str:
    return re.sub(r"README\.md$", "index.md", page)


def _to(page: str, path: str) -> str:
    return relpath(path, os.path.dirname(page) or ".")


def _head(*flags: str) -> str:
    return "---\n" + "".join(f"{flag}: true\n" for flag in flags) + "---\n"


def _with_head(text: str, **said: str) -> str:
    """What the page says of itself, which is not shown on it."""
    lines = "".join(f"{name}: {json.dumps(what)}\n" for name, what in said.items())
    return "---\n" + lines + (text[4:] if text.startswith("---\n") else f"---\n{text}")


def _first_paragraph(text: str) -> str:
    """As a sentence: what follows a colon is not there."""
    return text.strip().partition("\n\n")[0].rstrip(":") + ("." if text.strip().partition("\n\n")[0].endswith(":")
                                                             else "")


def _row(table: str, chapter: str) -> tuple[str, str]:
    """(idea, what it was worth) of a chapter, by the README's table."""
    row = re.search(rf"^\| \[[^]]*\]\({chapter}/(?:index\.md)?\) \| (.+) \| (.+) \|$", table, re.MULTILINE)
    if not row:
        return "", ""
    return row[1], row[2].strip() + (" as fast as the chapter before" if re.fullmatch(r"[\d.]+× *", row[2]) else "")


def _plain(text: str) -> str:
    return re.sub(r"[*`]", "", LINK.sub(r"\2", text)).strip()


def _sentence(text: str) -> str:
    """The first one."""
    words = " ".join(text.split())
    return words.partition(". ")[0] + "." * (". " in words)


def _boxes(name: str, each: str, texts: list[str]) -> str:
    inner = "".join(f"````{{container}} {each} chapter-{number:02}\n{text}\n````\n"
                    for number, text in enumerate(texts, 1))
    return f"`````{{container}} {name}\n{inner}`````\n"


def _description(code: str) -> str:
    """The first sentences of the comment that a file begins with."""
    comment = re.match(r'(?:(?://|#) ?[^\n]*\n)+|"""[^"]*"""', code)
    words = re.sub(r'^(?://|#(?!\w)) ?|"""', "", comment[0], flags=re.MULTILINE) if comment else ""
    return " ".join(words.split("\n\n")[0].split())


def _toctree(entries: list[tuple[str, str]], caption: str = "") -> str:
    lines = [f"{title} <{place}>" if title else place for title, place in entries]
    return "\n```{toctree}\n:hidden:\n" + (f":caption: {caption}\n" if caption
                                           else "") + "\n" + "\n".join(lines) + "\n```\n"


def _fenced(text: str, language: str, *options: str) -> str:
    fence = "`" * max(4, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}{{code-block}} {language}\n" + "".join(f"{option}\n"
                                                           for option in options) + f"\n{text.rstrip()}\n{fence}\n"


def with_plot(words: str, page: str, plot: Plot) -> str:
    """The picture, which a browser asks for when it comes into view, and what its points say."""
    (width, height), (narrow, high) = plot.sizes
    data = json.dumps(plot.points, separators=(",", ":")).replace("<", "\\u003c")
    script = f'<script type="application/json">{data}</script>' if plot.points else ""
    return (f'<div class="plot"><picture><source media="(max-width: 640px)" srcset="{_to(page, plot.narrow)}" '
            f'width="{narrow}" height="{high}"><img src="{_to(page, plot.wide)}" width="{width}" height="{height}" '
            f'loading="lazy" alt="{escape(words)}"></picture>{script}</div>')


def write(sources: "Mapping[str, str | bytes]", directory: Path) -> None:
    """Only what is new: Sphinx reads again what has changed."""
    for path in [path for path in directory.rglob("*") if path.is_file()]:
        if path.relative_to(directory).as_posix() not in sources:
            path.unlink()
    for name, text in sources.items():
        path = directory / name
        content = text if isinstance(text, bytes) else text.encode()
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
