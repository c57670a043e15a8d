"""The book as the generator makes it. Needs what ./workbook dev book has installed."""

import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from tools.base import ROOT
from tools.commands import book as command
from tools.showing import book, book_check, book_pages
from tools.showing.lesson_numbers import FENCED

PYTHON = command.HOME / "venv" / "bin" / "python"
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


if __name__ == "__main__":
    unittest.main()
