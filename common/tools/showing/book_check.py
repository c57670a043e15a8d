"""Checks the finished site as a browser would read it: every link's target exists, every formula became one."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

POINTS = {"a": "href", "img": "src", "iframe": "src", "script": "src", "link": "href", "source": "src"}
VERBATIM = {"pre", "code", "script", "style"}
RAW_TEX = re.compile(r"\$\$|\\[A-Za-z]+[{_^ ]")


@dataclass
class Page(HTMLParser):
    """What a page offers and needs."""

    text: str
    anchors: set[str] = field(default_factory=set)
    needs: list[tuple[str, str]] = field(default_factory=list)  # [(tag, address)]
    formulas: int = 0
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self):
        super().__init__()
        self._verbatim = self._math = 0
        self.feed(self.text)

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.anchors.update(filter(None, [named.get("id"), tag == "a" and named.get("name")]))
        if named.get(POINTS.get(tag)) and named.get("rel") not in ("search", "canonical"):
            self.needs.append((tag, named[POINTS[tag]]))
        if tag == "img" and not named.get("alt"):
            self.wrong.append(f"a picture without words: {named.get('src')}")
        if {"problematic", "system-message"} & set((named.get("class") or "").split()) or tag == "merror":
            self.wrong.append(f"an error is shown, in <{tag}>")
        self._verbatim += tag in VERBATIM
        self._math += tag == "math"
        self.formulas += tag == "math"

    def handle_endtag(self, tag):
        self._verbatim -= tag in VERBATIM
        self._math -= tag == "math"

    def handle_data(self, data):
        if self._math and "\\" in data:
            self.wrong.append(f"a command of a formula was not understood: {data.strip()}")
        elif not self._verbatim and RAW_TEX.search(data):
            self.wrong.append(f"a formula was left as it is written: {data.strip()[:60]}")


def pages(directory: Path) -> dict[str, Page]:
    """{path below the directory: page}; the walks are whole programs, which ./workbook walk answers for."""
    return {path.relative_to(directory).as_posix(): Page(path.read_text())
            for path in sorted(directory.rglob("*.html")) if path.parent.name not in ("walks", "_static")}


def complaints(directory: Path, known: dict[str, Page]) -> list[str]:
    """["05_online_softmax/index.html: there is no ..", ..]"""
    found = []
    for name, page in known.items():
        found += [f"{name}: {what}" for what in page.wrong]
        for tag, address in dict.fromkeys(page.needs):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if tag != "a":
                    found.append(f"{name}: {address} needs a network")
                continue
            path = (directory / name).parent / unquote(parts.path) if parts.path else directory / name
            if not path.is_file():
                found.append(f"{name}: there is no {address}")
                continue
            target = known.get(path.resolve().relative_to(directory.resolve()).as_posix())
            if target and parts.fragment and unquote(parts.fragment) not in target.anchors:
                found.append(f"{name}: {address} has no such place")
    return found
