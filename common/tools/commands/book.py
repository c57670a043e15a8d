"""the lessons as a site: one address for everything, with search, plots, walks and the code beside them

Writes build/book/html, which opens from the disk and needs no network, and build/book/html/book.pdf where there is a Chromium. The
generator is Sphinx; it is installed into build/book/venv, once.
"""

from pathlib import Path

from tools.machine import BUILD, ROOT, Failure, Progress, follow, python_with_packages, say, shown
from tools.showing import book

SITE = ROOT / "common" / "book" / "site"
HOME = BUILD / "book"
LOWEST_PYTHON = (3, 11)


def add_arguments(parser) -> None:
    pass


def run(arguments) -> int:
    lessons = book.Book(ROOT)
    broken = [line for page in lessons.pages for line in lessons.broken(page)]
    if broken:
        raise Failure("\n  ".join(["links that lead nowhere:", *broken]))
    python = python_with_packages(SITE / "requirements.txt", HOME / "venv", LOWEST_PYTHON)
    sources = lessons.sources({})
    sources.update({name: (ROOT / name).read_bytes() for name in lessons.files})
    book.write(sources, HOME / "source")
    _build(python)
    say(f"{shown(HOME / 'html' / 'index.html')}: {len(lessons.pages)} pages, {len(lessons.code)} files of code")
    return 0


def _build(python: Path) -> None:
    log_path = HOME / "sphinx.log"
    complaints = []
    with open(log_path, "w") as log, Progress("Building the book") as progress:

        def on_line(line: str) -> None:
            progress.show(line)
            if "WARNING:" in line or "ERROR:" in line or "error:" in line:
                complaints.append(line)

        sphinx = [python, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-j", "auto", "-c", SITE, "-d", HOME / "doctrees",
                  HOME / "source", HOME / "html"]
        if follow(sphinx, log, on_line, environment={"NO_COLOR": "1"}):
            first = complaints[0] if complaints else "it says why"
            raise Failure(f"Sphinx: {first} (log: {shown(log_path)})")
