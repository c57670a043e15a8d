"""What a book on paper has before its text: a title page, and contents with the numbers of pages.

A browser knows on which page a heading is only when it has printed. So the book is printed twice: the first time with
contents that name no page. Reading and finishing the PDF needs pypdf:

    python3 -m tools.showing.book_paper pages FILE                    prints {name of a place: page}
    python3 -m tools.showing.book_paper finish FILE < {title, entries}  gives it its title and an outline
"""

import json
import re
import sys
from html import escape, unescape
from pathlib import Path

from tools.base import JsonObject

DOCUMENT = re.compile(r'<span id="document-([^"]+)"></span>\s*<section.*?<h\d>(.*?)<a class="headerlink"',
                      re.DOTALL)
ARTICLE = re.compile(r"<article[^>]*>")
TITLE = re.compile(r'<section[^>]* id="([^"]+)">\s*<h1>(.*?)<a class="headerlink"[^>]*>.*?</a></h1>\s*<p>(.*?)</p>',
                   re.DOTALL)
BEGIN = "How to begin"  # what the first page is called, whose own title is the book's
PARTS = [("The ladder", r"\d\d_"), ("Beside it", "common/book/"), ("Behind it", "")]


def entries(text: str) -> list[JsonObject]:
    """[{part, level, name, title}] of the contents, from a page with all lessons; level 1 is below one of 0."""
    first = TITLE.search(text)
    found: list[JsonObject] = [{"part": "", "level": 0, "name": first[1], "title": BEGIN}] if first else []
    for path, title in DOCUMENT.findall(text):
        part = next(part for part, begin in PARTS if re.match(begin, path))
        below = part == PARTS[0][0] and not path.endswith("/index")
        found.append({"part": part, "level": int(below), "name": f"document-{path}",
                      "title": unescape(re.sub("<.*?>", "", title))})
    return found


def with_front(text: str, numbers: dict[str, int]) -> str:
    """The page with title page and contents; numbers: {name: page}."""
    title = TITLE.search(text)
    if not title:
        raise ValueError("the page has no title")
    lines, part = [], ""
    for one in entries(text):
        if one["part"] != part:
            part = one["part"]
            lines.append(f"<h2>{escape(part)}</h2>")
        lines.append(f'<p class="level-{one["level"]}"><a href="#{one["name"]}"><span>{escape(one["title"])}</span>'
                     f'<span>{numbers.get(one["name"], "")}</span></a></p>')
    front = (f'<div class="title-page"><p>{title[2]}</p><p>{title[3]}</p></div>\n'
             '<nav class="book-contents"><h1>Contents</h1>\n' + "\n".join(lines) + "</nav>\n")
    begin = ARTICLE.search(text)
    return text[:begin.end()] + front + text[begin.end():] if begin else text


def _pages(path: Path) -> dict[str, int]:
    from pypdf import PdfReader

    reader = PdfReader(path)
    return {name.removeprefix("/"): reader.get_destination_page_number(place) + 1
            for name, place in reader.named_destinations.items()}


def _finish(path: Path, title: str, wanted: list[JsonObject]) -> None:
    from pypdf import PdfReader, PdfWriter

    numbers = _pages(path)
    writer = PdfWriter(clone_from=PdfReader(path))
    writer.add_metadata({"/Title": title})
    above = None
    for one in wanted:
        item = writer.add_outline_item(one["title"], numbers[one["name"]] - 1, above if one["level"] else None)
        above = above if one["level"] else item
    writer.write(path)


if __name__ == "__main__":
    if sys.argv[1] == "pages":
        print(json.dumps(_pages(Path(sys.argv[2]))))
    else:
        asked = json.load(sys.stdin)
        _finish(Path(sys.argv[2]), asked["title"], asked["entries"])
