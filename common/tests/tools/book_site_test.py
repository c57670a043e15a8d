"""The book as the generator and a browser make it. Needs what ./workbook dev book has installed, a Chromium or
Chrome for the plots, and, for axe, what common/tests/trace/walk_browser_test.py needs."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from tools.base import RESULTS, ROOT, output_of
from tools.commands import book as command
from tools.record import THE_BOOKS, Record
from tools.showing import book, book_check, book_pages, book_plots
from tools.showing.lesson_numbers import FENCED

sys.path.insert(0, str(Path(os.environ["WORKBOOK_BUILD"]).parent / "browser"))
try:
    from axe_core_python.selenium import Axe
    from selenium import webdriver
except ImportError:
    Axe = None

PYTHON = command.HOME / "venv" / "bin" / "python"
BROWSER = command.find_browser()
DRIVER = shutil.which("chromedriver")
CODE = "05_online_softmax/example.cu"  # a short page of code
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
            pages = book_pages.Pages(lessons)
            code = {f"{CODE}.md": pages.sources({}, None)[f"{CODE}.md"]}
            book_pages.write({**pages.paper(), **code, **{name: (ROOT / name).read_bytes() for name in lessons.files}},
                             source)
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
            if Axe and BROWSER and DRIVER:
                self.everybody_can_read(out)
            else:
                print("NOT RUN: needs chromedriver and build/browser, to ask axe")

    def everybody_can_read(self, site: Path):
        options = webdriver.ChromeOptions()
        options.binary_location = BROWSER
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
            options.add_argument(flag)
        browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
        self.addCleanup(browser.quit)
        for page, scheme in [("05_online_softmax/index.html", "light"), (f"{CODE}.html", "dark")]:
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                    {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
            browser.get((site / page).as_uri())
            serious = [(each["id"], each["nodes"][0]["html"][:200]) for each in Axe().run(browser)["violations"]
                       if each["impact"] in ("serious", "critical")]
            self.assertEqual(serious, [], f"{page}, {scheme}")

    @unittest.skipUnless(BROWSER, "NOT RUN: needs a browser")
    def test_the_plots_are_drawn(self):
        plots = book_plots.all_plots(Record(RESULTS / THE_BOOKS))
        bundled = output_of([PYTHON, "-c",
                             "import pathlib, plotly; print(pathlib.Path(plotly.__file__).parent)"]).strip()
        scripts = [Path(bundled) / "package_data" / "plotly.min.js", command.SITE / "static" / "plots.js"]
        body = "".join(book_pages.with_plot('<img src="" alt="words">', figure) for figure in plots.values())
        with tempfile.TemporaryDirectory() as directory:
            page = Path(directory) / "page.html"
            page.write_text(f"<!doctype html><body data-theme='dark'>{body}" +
                            "".join(f"<script src='{script.as_uri()}'></script>" for script in scripts))
            drawn = output_of([*command.headless(BROWSER, Path(directory) / "browser"), "--dump-dom", page.as_uri()],
                              timeout=120)
        self.assertEqual(len(re.findall(r'<div class="plot drawn">', drawn)), len(plots))
        for name, figure in plots.items():
            for trace in figure["data"]:
                for line in trace["name"].split("<br>"):
                    self.assertIn(line, drawn, name)
        self.assertEqual(drawn.count('class="main-svg"'), 3 * len(plots))


if __name__ == "__main__":
    unittest.main()
