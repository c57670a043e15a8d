"""The book in a real browser, without a window: pages of each kind, in Chromium, driven by Selenium, and asked by axe.

Needs what ./workbook dev book has installed, and what common/tests/trace/walk_browser_test.py needs."""

import functools
import http.server
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

from tools.base import ROOT
from tools.commands import book as command
from tools.showing import book, book_pages, book_plots, pictures

sys.path.insert(0, str(Path(os.environ["WORKBOOK_BUILD"]).parent / "browser"))
try:
    from axe_core_python.selenium import Axe
    from selenium import webdriver
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.wait import WebDriverWait
except ImportError:
    Axe = None

PYTHON = command.HOME / "venv" / "bin" / "python"
BROWSER, DRIVER = command.find_browser(), shutil.which("chromedriver")
ADDRESS = "https://example.org/book/"
LESSON, NEXT, KERNEL = "05_online_softmax/index", "06_flashattn2_fwd/index", "05_online_softmax/1_online.cu"
RESULTS, HEADER = "common/book/results", "common/device/swizzle.h"
KINDS = ["index", "readme", "404", LESSON, "05_online_softmax/in_depth", KERNEL, f"{KERNEL}.diff", RESULTS, "search"]
OTHERS = [NEXT, "04_fusion/3_unrolled.cu", "04_fusion/3_unrolled.cu.diff", "05_online_softmax/2_tiles.cu",
          "05_online_softmax/2_tiles.cu.diff", HEADER, "common/book/terms"]
WALK = "walks/05-example"  # as little of one as says what it is
WIDTHS = {1440: 900, 1024: 768, 390: 844}
LINES = """  // how many characters each line of prose has
  const found = [];
  for (const paragraph of document.querySelectorAll("article p, article li")) {
    if (paragraph.closest("table, .card, .door, nav, li p, details:not([open])")) continue;
    if (paragraph.querySelector("math, li")) continue;
    const walker = document.createTreeWalker(paragraph, NodeFilter.SHOW_TEXT), lines = new Map();
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (node.parentElement.closest("p, li, details") !== paragraph) continue;
      for (const word of node.textContent.matchAll(/\\S+\\s*/g)) {
        const range = document.createRange();
        range.setStart(node, word.index);
        range.setEnd(node, word.index + 1);
        const top = Math.round(range.getBoundingClientRect().bottom / 8);
        if (range.getBoundingClientRect().width) lines.set(top, (lines.get(top) || 0) + word[0].length);
      }
    }
    found.push(...lines.values());
  }
  return found;"""


class Handler(http.server.SimpleHTTPRequestHandler):
    """The site at /book/, as a host of pages offers it: what is not there is answered by 404.html."""

    def log_message(self, *_):
        pass

    def translate_path(self, path):
        return super().translate_path(path.removeprefix("/book"))

    def send_error(self, code, message=None, explain=None):
        if code != 404:
            return super().send_error(code, message, explain)
        body = (Path(self.directory) / "404.html").read_bytes()
        self.send_response(404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        return None


@unittest.skipUnless(PYTHON.exists(), "NOT RUN: needs ./workbook dev book's packages")
@unittest.skipUnless(Axe and BROWSER and DRIVER, "NOT RUN: needs chromium, chromedriver and build/browser")
class InBrowser(unittest.TestCase):
    """Has no tests itself: Quick and EveryPage are of it."""

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        source, cls.site = Path(temporary.name) / "source", Path(temporary.name) / "html"
        lessons = book.Book(ROOT)
        pages = book_pages.Pages(lessons)
        made = pages.sources(book_plots.draw(lessons, PYTHON, cls.site), "book.pdf")
        pictures.run_matplotlib(PYTHON, "share", pages.shared(book_plots.stairs()), cls.site / "share")
        some = {f"{page}.md" for page in [*KINDS, *OTHERS] if page != "search"}
        some |= {f"{chapter}/index.md" for chapter in lessons.chapters}

        def known(text: str) -> str:  # of the contents: what is not built is in none
            return re.sub(r"^(?:.* <)?/([\w./]+)>?\n", lambda line: line[0] if f"{line[1]}.md" in some else "", text,
                          flags=re.MULTILINE)

        book_pages.write({**{page: known(made[page]) for page in some},
                          **{name: (ROOT / name).read_bytes() for name in lessons.files}}, source)
        (cls.site / "walks").mkdir()
        (cls.site / f"{WALK}.html").write_text('<!DOCTYPE html>\n<html lang="en"><head><meta name="description" content="A run of it, '
                                               'replayed step by step with its numbers."><title>A walk</title></head></html>')
        done = subprocess.run([PYTHON, "-m", "sphinx", "-q", "-b", "html", "-j", "auto", "-c", command.SITE, "-D",
                               f"html_baseurl={ADDRESS}", source, cls.site], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(cls.site)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cls.addClassCleanup(server.server_close)
        cls.addClassCleanup(server.shutdown)
        cls.host = f"http://127.0.0.1:{server.server_port}/book"
        options = webdriver.ChromeOptions()
        options.binary_location = BROWSER
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
            options.add_argument(flag)
        cls.browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
        cls.addClassCleanup(cls.browser.quit)

    def setUp(self):
        self.show(1440, "light")

    def show(self, width: int, scheme: str) -> None:
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": WIDTHS[width], "deviceScaleFactor": 1, "mobile": width < 600})
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                     {"features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def open(self, page: str, query: str = "", from_disk: bool = False) -> None:
        address = (self.site / f"{page}.html").as_uri() if from_disk else f"{self.host}/{page}.html"
        self.browser.get("about:blank")
        self.browser.get(address + query)

    def js(self, code: str, *arguments):
        return self.browser.execute_script(code, *arguments)

    def until(self, code: str):
        return WebDriverWait(self.browser, 10, poll_frequency=0.05).until(lambda _: self.js(f"return {code}"))

    def pixel(self, x: float, y: float) -> list:
        """[red, green, blue] of what is shown there."""
        shot = self.browser.execute_cdp_cmd("Page.captureScreenshot", {
            "clip": {"x": x, "y": y, "width": 1, "height": 1, "scale": 1}})
        return self.browser.execute_async_script("""
            const [data, done] = arguments, image = new Image(), canvas = document.createElement("canvas");
            image.onload = () => {
              canvas.getContext("2d").drawImage(image, 0, 0);
              done([...canvas.getContext("2d").getImageData(0, 0, 1, 1).data].slice(0, 3));
            };
            image.src = `data:image/png;base64,${data}`;""", shot["data"])

    def everybody_can_read(self, page: str, scheme: str) -> None:
        self.show(1440, scheme)
        self.open(page, "?q=swizzle" if page == "search" else "")
        serious = [(each["id"], each["nodes"][0]["html"][:200]) for each in Axe().run(self.browser)["violations"]
                   if each["impact"] in ("serious", "critical")]
        self.assertEqual(serious, [], f"{page}, {scheme}")


class Quick(InBrowser):
    def test_the_front_page(self):
        self.open("index")
        weight = self.js("""return ["navigation", "resource"].flatMap((type) => performance.getEntriesByType(type))
            .reduce((sum, one) => sum + one.encodedBodySize, 0)""")
        self.assertGreater(weight, 50_000)
        self.assertLess(weight, 1_000_000)
        self.assertLess(self.js("return document.documentElement.scrollHeight"), 4000)
        self.assertEqual([one.text for one in self.browser.find_elements(By.CSS_SELECTOR, ".door p:first-child a")],
                         list(book_pages.DOORS))
        cards = self.js("return [...document.querySelectorAll('.card')].map((one) => [one.querySelector('a').pathname, "
                        "getComputedStyle(one).borderLeftColor])")
        chapters = book.Book(ROOT).chapters
        self.assertEqual([path for path, _ in cards], [f"/book/{chapter}/index.html" for chapter in chapters])
        self.assertEqual(len({color for _, color in cards}), len(chapters))
        gain = self.browser.find_elements(By.CSS_SELECTOR, ".card p:last-child")[4]
        self.js("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", gain)
        ActionChains(self.browser).click(gain).perform()  # all of a card leads to its lesson
        self.assertEqual(self.browser.current_url, f"{self.host}/{LESSON}.html")

    def test_search_finds_lessons_before_code_with_a_line(self):
        for from_disk in (False, True):
            self.open("search", "?q=swizzle", from_disk)
            self.until("document.querySelector('#search-results p')?.innerText.includes('found')")
            found = self.js("""return [...document.querySelectorAll("#search-results li")].map((one) =>
                [one.querySelector("a").getAttribute("href").replace(/\\.html.*/, ""),
                 one.querySelector(".context")?.innerText || "", one.querySelector("mark")?.innerText || ""])""")
            kinds = ["code" if re.search(r"\.(h|cu|diff)$", page)
                     else "lesson" if re.match(r"\d\d_\w+/index$", page) else "page" for page, _, _ in found]
            self.assertEqual(kinds, sorted(kinds, key=["lesson", "page", "code"].index))
            self.assertEqual({"lesson", "page", "code"}, set(kinds))
            self.assertEqual(found[0][0], NEXT)
            self.assertIn(HEADER, [page for page, _, _ in found])
            for page, line, mark in found[:2]:
                self.assertRegex(line.lower(), "swizzle", page)
                self.assertEqual(mark.lower(), "swizzle")
                self.assertLess(len(line), 260)
        self.open("search", "?q=online+softmax")
        self.until("document.querySelector('#search-results .context')")
        self.assertIn("online softmax", self.js("return document.querySelector('.context').innerText").lower())

    def test_what_a_point_says(self):
        for width, place in ((1440, 0), (390, 2)):
            self.show(width, "light")
            self.open("index")
            self.until("document.querySelector('.plot img').complete && document.querySelector('.plot-words')")
            image = self.browser.find_element(By.CSS_SELECTOR, ".plot img")
            self.assertEqual(self.js("return arguments[0].currentSrc", image).endswith(".narrow.svg"), width == 390)
            natural = self.js("return arguments[0].naturalWidth", image)  # its letters are not shrunk
            self.assertLess(natural, {1440: 700, 390: 391}[width])
            self.js("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", image)
            points = json.loads(self.js("return document.querySelector('.plot script').textContent"))
            words = self.browser.find_element(By.CSS_SELECTOR, ".plot-words")
            self.assertFalse(words.is_displayed())
            size = self.js("return [arguments[0].clientWidth, arguments[0].clientHeight]", image)
            for point in (points[0], points[4], points[-1]):
                offset = [round((part - 0.5) * length) for part, length in zip(point[place:place + 2], size)]
                ActionChains(self.browser).move_to_element_with_offset(image, *offset).perform()
                self.assertEqual(words.text, point[4])
                box = self.js("const {left, right} = arguments[0].getBoundingClientRect(); return [left, right]", words)
                self.assertTrue(box[0] >= 0 and box[1] <= width, box)
            corner = [-length // 2 + 3 for length in size]
            ActionChains(self.browser).move_to_element_with_offset(image, *corner).perform()
            self.assertFalse(words.is_displayed())

    def test_everybody_can_read_a_lesson_and_code(self):
        self.everybody_can_read(LESSON, "light")
        self.everybody_can_read(KERNEL, "dark")


class EveryPage(InBrowser):
    def test_everybody_can_read_every_kind_of_page(self):
        for page in KINDS:
            for scheme in ("light", "dark"):
                with self.subTest(page, scheme=scheme):
                    self.everybody_can_read(page, scheme)

    def test_no_page_moves_sideways(self):
        for width in WIDTHS:
            self.show(width, "light")
            for page in KINDS:
                with self.subTest(page, width=width):
                    self.open(page)
                    self.assertLessEqual(self.js("return document.documentElement.scrollWidth"), width)

    def test_lines_of_prose_have_at_most_75_characters(self):
        for page in (LESSON, "readme", RESULTS):
            self.open(page)
            lines = sorted(self.js(LINES))
            self.assertGreater(len(lines), 20)
            # By an average of letters: a line of narrow ones may have some more.
            self.assertLessEqual(lines[int(0.9 * len(lines))], 75, page)
            self.assertLessEqual(lines[-1], 88, page)

    def test_the_way_on(self):
        for page, before, after in [("index", None, "01_naive/index"), (LESSON, "04_fusion/index", NEXT),
                                    ("05_online_softmax/in_depth", LESSON, NEXT),
                                    (KERNEL, "04_fusion/3_unrolled.cu", "05_online_softmax/2_tiles.cu"),
                                    (f"{KERNEL}.diff", "04_fusion/3_unrolled.cu.diff",
                                     "05_online_softmax/2_tiles.cu.diff")]:
            self.open(page)
            found = self.js("""return [".prev-page", ".next-page"].map((one) =>
                document.querySelector(one)?.href || null)""")
            self.assertEqual(found, [one and f"{self.host}/{one}.html" for one in (before, after)], page)

    def test_what_others_show_of_a_page(self):
        said = {}
        for page in [*KINDS, WALK]:
            self.open(page)
            said[page] = self.js("""const tags = [...document.querySelectorAll("meta[name],meta[property]")];
                return Object.fromEntries(tags.map((one) => [one.getAttribute("property") || one.name, one.content]))""")
            self.assertGreater(len(said[page]["description"]), 40, page)
            self.assertLessEqual(len(said[page]["description"]), 200, page)
            self.assertEqual(said[page]["description"], said[page]["og:description"])
            picture = self.site / said[page]["og:image"].removeprefix(ADDRESS)
            self.assertEqual(struct.unpack(">II", picture.read_bytes()[16:24]), (1200, 630), page)
            if page != "404":
                self.assertEqual(self.js("return document.querySelector('link[rel=canonical]').href"),
                                 f"{ADDRESS}{page}.html")
            if page == WALK:  # has its own in it
                continue
            icon = self.js("return document.querySelector('link[rel~=icon]').href")
            self.assertTrue((self.site / icon.partition("/book/")[2].partition("?")[0]).is_file(), icon)
        descriptions = {one["description"] for one in said.values()}
        self.assertEqual(len(descriptions), len(said) - 1)  # the README's is the first page's
        for page in (LESSON, WALK):
            self.assertTrue(said[page]["og:image"].endswith("share/05_online_softmax.png"))
        places = re.findall("<loc>(.*)</loc>", (self.site / "sitemap.xml").read_text())
        self.assertLessEqual({f"{ADDRESS}{LESSON}.html", f"{ADDRESS}{WALK}.html"}, set(places))
        self.assertNotIn(f"{ADDRESS}404.html", places)

    def test_an_address_without_a_page(self):
        self.open("05_online_softmax/some/thing")
        self.assertEqual(self.browser.find_element(By.TAG_NAME, "h1").text.rstrip("¶"), "No such page")
        self.assertEqual(self.js("return getComputedStyle(document.querySelector('.sidebar-drawer')).display"), "flex")
        self.browser.find_element(By.LINK_TEXT, "front page").click()
        self.assertEqual(self.browser.current_url, f"{self.host}/index.html")

    def test_the_head_of_a_row_stays_while_its_table_moves(self):
        self.show(390, "light")
        self.open(RESULTS)
        found = self.js("""
            const tables = [...document.querySelectorAll(".table-wrapper")];
            const wrapper = tables.find((one) => one.querySelectorAll("th").length === 8);
            wrapper.scrollLeft = 200;
            const box = wrapper.querySelector("tbody td").getBoundingClientRect();
            const frame = wrapper.getBoundingClientRect();
            const heads = [...wrapper.querySelectorAll("tbody td:first-child")];
            return {moved: wrapper.scrollLeft, left: box.left - frame.left, part: box.width / frame.width,
                    lines: Math.max(...heads.map((one) => one.offsetHeight))}""")
        self.assertEqual(found["moved"], 200)
        self.assertLess(abs(found["left"]), 8)  # the frame's own edge
        self.assertLess(found["part"], 0.5)
        self.assertLess(found["lines"], 60)

    def test_plots_come_when_they_are_in_view(self):
        asked = "performance.getEntriesByType('resource').filter((one) => /\\/plots\\/.*svg$/.test(one.name)).length"
        self.open(RESULTS)
        every = self.js("return document.querySelectorAll('.plot img').length")
        self.assertLess(self.js(f"return {asked}"), every)
        for one in range(every):
            self.js(f"document.querySelectorAll('.plot img')[{one}].scrollIntoView({{behavior: 'instant'}})")
            self.until(f"document.querySelectorAll('.plot img')[{one}].complete")
        self.assertEqual(self.js(f"return {asked}"), every)
        # Nothing jumps when one comes.
        self.assertEqual(self.js("return document.querySelectorAll('.plot img:not([width])').length"), 0)

    def test_points_by_keyboard(self):
        self.open("index")
        self.until("document.querySelector('.plot-words')")
        image = self.browser.find_element(By.CSS_SELECTOR, ".plot img")
        points = json.loads(self.js("return document.querySelector('.plot script').textContent"))
        image.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        words = self.browser.find_element(By.CSS_SELECTOR, ".plot-words")
        self.assertEqual(words.text, points[1][4])
        image.send_keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
        self.assertEqual(words.text, points[-1][4])
        self.assertEqual(self.browser.current_url, f"{self.host}/index.html")  # the page was not turned
        image.send_keys(Keys.ESCAPE)
        self.assertFalse(words.is_displayed())

    def test_a_picture_follows_the_readers_colours_and_the_pages(self):
        for page, picture in (("index", ".plot img"), (LESSON, "article img")):
            for scheme, theme, dark in (("light", "auto", False), ("dark", "auto", True), ("light", "dark", True),
                                        ("dark", "light", False)):
                with self.subTest(page, scheme=scheme, theme=theme):
                    self.show(1440, scheme)
                    self.open(page)
                    self.js("document.body.dataset.theme = arguments[0]", theme)
                    image = self.browser.find_element(By.CSS_SELECTOR, picture)
                    self.js("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", image)
                    self.until(f"document.querySelector('{picture}').complete")
                    left, top = self.js("""const box = arguments[0].getBoundingClientRect();
                        return [box.left + scrollX, box.top + scrollY]""", image)
                    self.assertEqual(sum(self.pixel(left + 12, top + 12)) < 200, dark)


if __name__ == "__main__":
    unittest.main()
