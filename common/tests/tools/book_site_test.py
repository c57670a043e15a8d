"""The book as the generator makes it. Needs what ./workbook dev book has installed, and a browser for paper."""

import json
import re
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tools.base import ROOT
from tools.commands import book as command
from tools.showing import book, book_check, book_pages
from tools.showing.lesson_numbers import FENCED

PYTHON = command.HOME / "venv" / "bin" / "python"
BROWSER = command.find_browser()
FORMULA = re.compile(r"\$\$.+?\$\$|(?<![\w$`])\$[^$\n`]+\$(?![\w$])", re.DOTALL)


@unittest.skipUnless(PYTHON.exists(), "NOT RUN: needs ./workbook dev book's packages")
class Packages(unittest.TestCase):
    def test_every_one_accepts_the_oldest_python_that_the_command_accepts(self):
        oldest = ".".join(map(str, (*command.LOWEST_PYTHON, 0)))
        code = ("from importlib.metadata import distributions; from packaging.specifiers import SpecifierSet\n"
                "for one in distributions():\n"
                f"    if {oldest!r} not in SpecifierSet(one.metadata.get('Requires-Python') or ''):\n"
                "        print(one.metadata['Name'], one.version, one.metadata['Requires-Python'])")
        done = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)


@unittest.skipUnless(PYTHON.exists(), "NOT RUN: needs ./workbook dev book's packages")
class Site(unittest.TestCase):
    def test_the_lessons_are_whole(self):
        """Every link, anchor, picture and formula of the lessons; ./workbook dev book asks the same of the pages of
        code."""
        lessons = book.Book(ROOT)
        with tempfile.TemporaryDirectory() as directory:
            source, out = Path(directory) / "source", Path(directory) / "out"
            files = {name: (ROOT / name).read_bytes() for name in lessons.files}
            book_pages.write({**book_pages.Pages(lessons).paper(), **files}, source)
            done = subprocess.run([PYTHON, "-m", "sphinx", "-q", "-W", "-b", "html", "-j", "auto", "-c", command.SITE,
                                   source, out],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr[-2000:])
            pages = book_check.pages(out)
            self.assertEqual(book_check.complaints(out, pages), [])
            self.assertTrue((out / "searchindex.js").exists())
            for page in lessons.pages:
                written = re.sub(r"(`+).+?\1", "", FENCED.sub("", (ROOT / page).read_text()), flags=re.DOTALL)
                made = pages[page.replace("README", "index").replace(".md", ".html")]
                with self.subTest(page):
                    self.assertEqual(made.formulas, len(FORMULA.findall(written)))
                    self.assertEqual(made.text.count("<details>"), written.count("<details>"))


@unittest.skipUnless(PYTHON.exists() and BROWSER, "NOT RUN: needs ./workbook dev book's packages and a browser")
class Paper(unittest.TestCase):
    def test_the_contents_name_the_pages(self):
        chapters = {f"0{number}_x/index": f"0{number} Chapter" for number in (1, 2, 3)}
        style = (command.SITE / "static" / "book.css").as_uri()
        with tempfile.TemporaryDirectory() as directory, mock.patch.multiple(command, HOME=Path(directory),
                                                                             HTML=Path(directory)):
            (Path(directory) / "print").mkdir()
            (Path(directory) / "print" / "index.html").write_text(
                f'<link rel="stylesheet" href="{style}"><article role="main"><section id="top">\n<h1>A workbook<a '
                'class="headerlink" href="#top"></a></h1>\n<p>What it is.</p>\n<div class="toctree-wrapper">'
                + "".join(f'<span id="document-{path}"></span><section id="x{path[:2]}"><h3>{title}<a class="headerlink" '
                          f'href="#x{path[:2]}"></a></h3>{"<p>Text.</p>" * (60 if title[1] == "1" else 1)}</section>'
                          for path, title in chapters.items())
                + "<p>Text.</p>" * 30 + f'<table class="docutils"><tbody>{"".join(f"<tr><td>row {row} of 24</td></tr>" for row in range(24))}</tbody></table>'
                + f'<table class="docutils"><thead><tr>{"".join(f"<th>a_long_column_{n}</th>" for n in range(17))}</tr></thead><tbody><tr>'
                + f'{"".join(f"<td>{n}.{n}</td>" for n in range(17))}</tr></tbody></table>'
                + f'<img src="{(ROOT / "common" / "book" / "walk.svg").as_uri()}"></div></section></article>')
            command._print(PYTHON, BROWSER, mock.MagicMock())
            found = json.loads(subprocess.run([PYTHON, "-c", """
import json, sys, pypdf
pdf = pypdf.PdfReader(sys.argv[1])
wide = []
def visit(text, cm, tm, *_):
    if "16.16" in text:
        wide.append(tm[4] * cm[0] + tm[5] * cm[2] + cm[4])
for page in pdf.pages:
    page.extract_text(visitor_text=visit)
print(json.dumps({"wide": wide, "width": float(pdf.pages[-1].mediabox.width), "pages": [page.extract_text() for page in pdf.pages], "title": pdf.metadata.title,
                  "outline": [[one.title, pdf.get_destination_page_number(one) + 1] for one in pdf.outline]}))""",
                                               Path(directory) / command.PDF], capture_output=True, text=True).stdout)
        pages = found["pages"]
        starts = {title: next(number for number, text in enumerate(pages, 1) if number > 2 and title in text)
                  for title in chapters.values()}
        self.assertEqual(starts["02 Chapter"] - starts["01 Chapter"], 2)
        self.assertEqual(found["outline"][1:], [list(one) for one in starts.items()])
        self.assertEqual(found["title"], book_pages.TITLE)
        self.assertNotRegex(pages[0], r"\d")  # the title page has no number
        for title, number in starts.items():
            self.assertRegex(" ".join(pages[1].split()), rf"{title} {number}\b")
            self.assertIn(str(number), pages[number - 1].split())
        (whole,) = [text for text in pages if " of 24" in text]  # a table that fits on a page is not torn
        self.assertEqual(whole.count(" of 24"), 24)
        self.assertTrue(found["wide"] and max(found["wide"]) < found["width"] - 50, found["wide"])  # no column is cut off
        self.assertIn("A score above m", pages[-1])  # the still of a picture that moves


if __name__ == "__main__":
    unittest.main()
