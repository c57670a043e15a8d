"""these pages as a site with plots, walks and search, and as a PDF

Writes build/book/html, which opens from the disk and needs no network, and build/book/html/book.pdf where there is a
Chromium or Chrome. The generator is Sphinx; it is installed into build/book/venv, once.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tools.base import BUILD, ROOT, Failure, Progress, follow, output_of, pythons, say, shown, with_python_path
from tools.showing import book, book_check, book_pages, book_paper, book_plots, pictures

SITE = ROOT / "common" / "book" / "site"
HOME = BUILD / "book"
HTML = HOME / "html"
PDF = "book.pdf"
LOWEST_PYTHON = (3, 11)
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--address", metavar="URL", type=_address,
                        help="where the site will be, for links that others show: canonical addresses, pictures, a map")


def _address(text: str) -> str:
    if not re.fullmatch(r"https?://[^\s?#]+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no address: it begins with https:// or http://, and has no ? "
                                         "and no #")
    return text.rstrip("/") + "/"


def run(arguments: argparse.Namespace) -> int:
    lessons = book.Book(ROOT)
    pages = book_pages.Pages(lessons)
    _require("links of the lessons lead nowhere", [line for page in lessons.pages for line in lessons.broken(page)])
    python = pythons.with_packages(SITE / "requirements.txt", HOME / "venv", LOWEST_PYTHON)
    browser = find_browser()
    _record(lessons.walks)
    files = {name: (ROOT / name).read_bytes() for name in lessons.files}
    with Progress("Building the book") as progress:
        HTML.joinpath(PDF).unlink(missing_ok=True)
        if browser:
            book_pages.write({**pages.paper(), **files}, HOME / "paper")
            _sphinx(python, "singlehtml", HOME / "paper", HOME / "print", progress)
            _print(python, browser, progress)
        progress.show("drawing the plots")
        sources = pages.sources(book_plots.draw(lessons, python, HTML), PDF if browser else None)
        pictures.run_matplotlib(python, "share", pages.shared(book_plots.stairs()), HTML / "share")
        book_pages.write({**sources, **files}, HOME / "source")
        _drop_old(set(sources), {walk.file for walk in lessons.walks})
        _sphinx(python, "html", HOME / "source", HTML, progress, "-D", f"html_baseurl={arguments.address or ''}")
    known = book_check.pages(HTML)
    _require("the site is not whole", book_check.complaints(HTML, known))
    say(f"{shown(HTML / 'index.html')}: {len(known)} pages, {sum(page.formulas for page in known.values())} formulas, "
        f"{len(lessons.walks)} walks; opens in any browser")
    say(f"{shown(HTML / PDF)}: the lessons on paper" if browser else "No PDF: there is no Chromium or Chrome here.")
    return 0


def _require(what: str, complaints: list[str]) -> None:
    if complaints:
        more = f" (and {len(complaints) - 1} more)" if len(complaints) > 1 else ""
        raise Failure(f"{what}: {complaints[0]}{more}")


def _record(walks: list[book.Walk]) -> None:
    directory = HTML / "walks"
    directory.mkdir(parents=True, exist_ok=True)
    with open(HOME / "walks.log", "w") as log, Progress("Recording the walks") as progress:
        for walk in walks:
            lines = [""]

            def on_line(line: str) -> None:
                lines.append(line)
                progress.show(line)

            words = [sys.executable, ROOT / "workbook", "walk", *walk.words, "--no-browser", "--out",
                     directory / walk.file]
            status = follow(words, log, on_line)
            if status:
                raise Failure(f"{walk.command}: {lines[-1].removeprefix('workbook: ')}", status=status)


def _drop_old(sources: set[str], walks: set[str]) -> None:
    """Deletes pages whose source is gone: Sphinx keeps them."""
    for path in HTML.rglob("*.html"):
        page = path.relative_to(HTML).with_suffix(".md").as_posix()
        if path.name not in walks and page not in sources:
            path.unlink()


def _sphinx(python: Path, builder: str, source: Path, out: Path, progress: Progress, *flags: str) -> None:
    log_path, complaints = HOME / f"sphinx-{builder}.log", []
    with open(log_path, "w") as log:

        def on_line(line: str) -> None:
            progress.show(line)
            if "WARNING: " in line or "rror: " in line:
                complaints.append(line.replace(f"{source}/", ""))

        words = [python, "-m", "sphinx", "-b", builder, "-W", "--keep-going", "-j", "auto", "-c", SITE, *flags]
        if follow([*words, "-d", HOME / f"doctrees-{builder}", source, out], log, on_line,
                  environment={"NO_COLOR": "1"}):
            raise Failure(f"Sphinx: {complaints[0] if complaints else 'it failed'} (log: {shown(log_path)})")


def find_browser() -> "str | None":
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def headless(browser: str, profile: Path) -> list[str]:
    """The command that starts the browser without a window. Pictures that move stand still, as on paper."""
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium has none for root
    return [browser, "--headless", "--disable-gpu", "--force-prefers-reduced-motion", f"--user-data-dir={profile}",
            *sandbox]


def _print(python: Path, browser: str, progress: Progress) -> None:
    """Twice: the first PDF says on which pages the contents are to send its readers."""
    page, env = HOME / "print" / "book.html", with_python_path(ROOT / "common")
    plain = page.with_name("index.html").read_text()
    numbers: dict[str, int] = {}
    for time in ("once", "with the numbers of pages"):
        progress.show(f"printing {PDF}, {time}")
        page.write_text(book_paper.with_front(plain, numbers))
        words = [*headless(browser, HOME / "browser"), "--no-pdf-header-footer", "--disable-pdf-tagging",
                 f"--print-to-pdf={HTML / PDF}", page.as_uri()]
        if output_of(words, timeout=300) is None or not (HTML / PDF).exists():
            raise Failure(f"{browser} could not print {shown(page)}")
        numbers = json.loads(_paper(python, "pages", "", env))
    _paper(python, "finish", json.dumps({"title": book_pages.TITLE, "entries": book_paper.entries(plain)}), env)


def _paper(python: Path, what: str, asked: str, env: dict[str, str]) -> str:
    done = subprocess.run([python, "-B", "-m", "tools.showing.book_paper", what, HTML / PDF], input=asked, text=True,
                          capture_output=True, cwd=ROOT, env=env)
    if done.returncode:
        raise Failure(f"{shown(HTML / PDF)}: {(done.stderr.strip().splitlines() or ['no output'])[-1]}")
    return done.stdout
