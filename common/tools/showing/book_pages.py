"""The pages of the book as sources for Sphinx: the lessons as they stand, but for what a site needs.

    README.md of a folder     becomes index.md, so that the folder is its address
    a link to a folder        leads to that page, or to a page that lists the folder's files
    a link to source code     leads to a page with the code, its lines numbered
    a comment                 is left out: it is for ./workbook dev report

A chapter's first page begins with links to its kernels, and each kernel's page has a link to what changed since the
rung before. A recorded picture gets the plot that book_plots.py makes of the same data, and a paragraph of a lesson
that names `./workbook walk ..` is followed by that walk.
"""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from posixpath import relpath

from tools.base import JsonObject
from tools.showing.book import COMMENT, LANGUAGES, LINK, Book, shielded, walks_in


class Pages:
    """Each of its public methods is {path of a Markdown file: its text}."""

    def __init__(self, book: Book):
        self.book = book

    def sources(self, plots: dict[str, JsonObject], pdf: "str | None") -> dict[str, str]:
        """{path of a Markdown file: its text}. plots: {name of a picture: figure}; pdf: its address, or None."""
        made = {_source(page): self._page(page, plots, paper=False) for page in self.book.pages}
        if pdf:
            head, mark, rest = made["index.md"].partition("\n## ")
            made["index.md"] = f'{head}\n<p><a href="{pdf}">The lessons as a PDF</a></p>\n{mark}{rest}'
        made.update({f"{path}.md": self._code_page(path) for path in self.book.code})
        for kernel in self.book.ladder:
            if self.book.differences(kernel):
                made[f"{kernel}.diff.md"] = self._diff_page(kernel)
        made.update({f"{folder}/index.md": self._folder_page(folder) for folder in self.book.folders})
        return made

    def paper(self) -> dict[str, str]:
        """The sources of the lessons alone, for print: without what only a screen has."""
        return {_source(page): self._page(page, {}, paper=True) for page in self.book.pages}

    def _page(self, page: str, plots: dict[str, JsonObject], paper: bool) -> str:
        blank, restore = shielded(self.book.text(page))

        def link(found: re.Match[str]) -> str:
            picture, text, target = found.groups()
            path, fragment = self.book.resolve(page, target), "".join(target.partition("#")[1:])
            if path is None:
                return text if target.startswith("../") else found[0]
            if paper and not picture and path not in self.book.pages:
                return text
            plot = plots.get(Path(path).stem) if picture and path.startswith("common/results/") else None
            whole = f"{picture}[{text}]({_to(page, self._address(path))}{fragment})"
            if picture and os.path.dirname(os.path.dirname(path)) in self.book.chapters:
                whole += "{.adapts}"  # to dark pages, by itself
            return with_plot(whole, plot) if plot else whole

        blank = LINK.sub(link, COMMENT.sub("", blank))
        chapter = os.path.dirname(page)
        if chapter not in self.book.chapters:
            return restore(blank) + (self._contents() if page == "README.md" else "")
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

    def _contents(self) -> str:
        ladder = [("", f"/{chapter}/index") for chapter in self.book.chapters]
        others = [page for page in self.book.pages if page != "README.md"
                  and os.path.dirname(page) not in self.book.chapters]
        beside = [("", f"/{_source(page)[:-3]}") for page in others if page.startswith("common/book/")]
        rest = [("", f"/{_source(page)[:-3]}") for page in others if not page.startswith("common/book/")]
        return _toctree(ladder, "The ladder") + _toctree(beside, "Beside it") + _toctree(rest, "Behind it")

    def _code_page(self, path: str) -> str:
        text = self.book.text(path)
        way, below = "[The lesson](index.md)" if os.path.dirname(path) in self.book.chapters else "", ""
        before = self.book.before(path) if path in self.book.ladder else None
        if before and self.book.differences(path):
            way += f" · [what changed since {self._short(path, before)}]({Path(path).name}.diff.md)"
            below = _toctree([("what changed", f"/{path}.diff")])
        head = _head("hide-toc") if path in self.book.ladder else _head("orphan", "hide-toc")
        return f"{head}# {path}\n\n{way}\n\n{_fenced(text, LANGUAGES[Path(path).suffix], ':linenos:')}{below}"

    def _short(self, kernel: str, other: str) -> str:
        return Path(other).name if os.path.dirname(other) == os.path.dirname(kernel) else other

    def _diff_page(self, kernel: str) -> str:
        way = f"[The lesson](index.md) · [the whole file]({Path(kernel).name}.md)"
        parts = [f"{_head('hide-toc')}# {kernel}: what changed\n\n{way}\n"]
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


def _toctree(entries: list[tuple[str, str]], caption: str = "") -> str:
    lines = [f"{title} <{place}>" if title else place for title, place in entries]
    return "\n```{toctree}\n:hidden:\n" + (f":caption: {caption}\n" if caption
                                           else "") + "\n" + "\n".join(lines) + "\n```\n"


def _fenced(text: str, language: str, *options: str) -> str:
    fence = "`" * max(4, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}{{code-block}} {language}\n" + "".join(f"{option}\n"
                                                           for option in options) + f"\n{text.rstrip()}\n{fence}\n"


def with_plot(picture: str, figure: JsonObject) -> str:
    """The picture stays for paper, and for readers without scripts."""
    data = json.dumps(figure, separators=(",", ":")).replace("<", "\\u003c")
    return f'<div class="plot">\n\n{picture}\n\n<script type="application/json">{data}</script></div>'


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
