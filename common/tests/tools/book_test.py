"""The book: its sources from the lessons, its plots from the record, and what is noticed in a broken one. Needs no
generator."""

import contextlib
import difflib
import io
import json
import re
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tests.tiers import at_length
from tools import cli
from tools.base import RESULTS, ROOT, Failure, pythons
from tools.commands import book as command
from tools.record import LENGTHS, THE_BOOKS, Missing, Quantities, Record
from tools.showing import book, book_check, book_pages, book_paper, book_plots, pictures

README = """# A workbook

[One](01_one/), [its kernel](01_one/attention.cu#top), [a folder](common/things/), [data](common/things/a.json), [host](../../deployments/x).

![A picture](common/results/g/pictures/speed.svg) 5 ms<!-- = ms("01", 4096) -->

```
[no link](nowhere.md) <!-- stays -->
```

`[nor](here.md)` but <!-- [nor](there.md) --> [this one](#below).

## Below
"""
LESSON = """# 01 One

The first.

## Idea

**Bold** $$a = b$$ and `./workbook walk 01 --seq-q 64` shows it.

   - `./workbook walk 01` in a list does not.

2. `./workbook walk 01` in a question does not.
"""
KERNEL = "// What changed since {}: all.\nint {};\n"


def little(directory: str) -> book.Book:
    root = Path(directory)
    files = {"README.md": README, "01_one/README.md": LESSON, "01_one/attention.cu": "int one;\n",
             "02_two/README.md": "# 02 Two\n\nText.\n",
             "02_two/1_first.cu": KERNEL.format("chapter 01", "a") + "int one;\n",
             "02_two/2_last.cu": KERNEL.format("1_first", "b"),
             "02_two/10_more.cu": KERNEL.format("`last`, chapter 02's 2_last, which is here", "c"),
             "common/things/a.json": "{}", "common/results/g/pictures/speed.svg": "<svg/>"}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return book.Book(root)


class Little(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.book = little(temporary.name)
        self.pages = book_pages.Pages(self.book)

    def add(self, page: str, text: str) -> None:
        path = self.book.root / page
        path.write_text(path.read_text() + text)

    def test_a_whole_one_has_nothing_broken(self):
        self.assertEqual([line for page in self.book.pages for line in self.book.broken(page)], [])

    def test_a_broken_link_is_named_with_its_line(self):
        for text, expected in [("[x](gone.md)", "there is no gone.md"),
                               ("[x](01_one/gone.cu)", "there is no 01_one/gone.cu"),
                               ("[x](#above)", "README.md has no heading #above"),
                               ("![x](gone.svg)", "there is no gone.svg"),
                               ("[x](01_one/#gone)", "01_one/README.md has no heading #gone")]:
            with self.subTest(text), tempfile.TemporaryDirectory() as directory:
                self.book = little(directory)
                self.add("README.md", f"\nText {text}.\n")
                line = README.count("\n") + 2
                self.assertEqual(self.book.broken("README.md"), [f"README.md:{line}: {expected}"])

    def test_links(self):
        page = self.pages.sources({}, None)["index.md"]
        for link in ("[One](01_one/index.md)", "[its kernel](01_one/attention.cu.md#top)",
                     "[a folder](common/things/index.md)",
                     "[data](common/things/a.json)", "[this one](#below)",
                     "![A picture](common/results/g/pictures/speed.svg)", ", host."):
            self.assertIn(link, page)
        self.assertIn("common/things/index.md", self.pages.sources({}, None))
        self.assertIn("01_one/index\n02_two/index", page.replace("/0", "0"))

    def test_code_stays_and_comments_go(self):
        page = self.pages.sources({}, None)["index.md"]
        self.assertIn("```\n[no link](nowhere.md) <!-- stays -->\n```", page)
        self.assertIn("5 ms\n", page)
        self.assertIn("`[nor](here.md)` but  [this", page)

    def test_the_rung_before(self):
        self.assertEqual(self.book.kernels("02_two"), ["02_two/1_first.cu", "02_two/2_last.cu", "02_two/10_more.cu"])
        self.assertEqual([self.book.before(kernel) for kernel in ["01_one/attention.cu", *self.book.kernels("02_two")]],
                         [None, "01_one/attention.cu", "02_two/1_first.cu", "02_two/2_last.cu"])

    def test_code_and_what_changed(self):
        sources = self.pages.sources({}, None)
        self.assertIn("([what changed](1_first.cu.diff.md))", sources["02_two/index.md"])
        self.assertIn("[what changed since 01_one/attention.cu](1_first.cu.diff.md)", sources["02_two/1_first.cu.md"])
        self.assertIn("````{code-block} cuda\n:linenos:\n\n// What changed", sources["02_two/1_first.cu.md"])
        self.assertIn("+// What changed since chapter 01: all.", sources["02_two/1_first.cu.diff.md"])
        self.assertNotIn("01_one/attention.cu.diff.md", sources)

    def test_a_walk_follows_the_paragraph_that_names_it(self):
        self.assertIn('shows it.\n\n<iframe class="walk" loading="lazy" src="../walks/01-seq-q-64.html#embed"',
                      self.pages.sources({}, None)["01_one/index.md"])
        self.assertEqual(self.pages.sources({}, None)["01_one/index.md"].count("<iframe"), 1)
        self.assertEqual([walk.file for walk in self.book.walks], ["01-seq-q-64.html"])

    def test_a_picture_gets_its_plot(self):
        plot = book_plots.Plot("plots/g/speed.svg", "plots/g/speed.narrow.svg", ((600, 400), (300, 500)),
                               [[0.1, 0.2, 0.3, 0.4, "</script>"]])
        page = self.pages.sources({"common/results/g/pictures/speed.svg": plot}, None)["index.md"]
        self.assertIn('<div class="plot"><picture><source media="(max-width: 640px)" srcset="plots/g/speed.narrow.svg" '
                      'width="300" height="500"><img src="plots/g/speed.svg" width="600" height="400" loading="lazy" '
                      'alt="A picture"></picture><script type="application/json">[[0.1,0.2,0.3,0.4,"\\u003c/script>"]]'
                      "</script></div>", page)
        self.assertNotIn("![A picture]", page)

    def test_the_pdf_is_named_only_if_there_is_one(self):
        self.assertNotIn("book.pdf", self.pages.sources({}, None)["index.md"])
        self.assertIn('href="book.pdf"', self.pages.sources({}, "book.pdf")["index.md"])

    def test_a_second_page_of_a_chapter_stands_below_its_lesson_on_screen_and_on_paper(self):
        (self.book.root / "01_one/more.md").write_text("# More\n\nText.\n")
        self.add("01_one/README.md", "\n[More](more.md)\n")
        pages = book_pages.Pages(book.Book(self.book.root))
        for sources in (pages.sources({}, None), pages.paper()):
            self.assertIn("01_one/more.md", sources)
            self.assertRegex(sources["01_one/index.md"], r"(?s)\{toctree\}.*/01_one/more\n")

    def test_a_readme_with_doors_becomes_a_front_page_and_a_page_of_its_own(self):
        self.add("README.md", "\n## Learn\n\nRead [one](01_one/); `start` says:\n\n## Teach\n\nGrade.\n\n## Use\n\n[Up]"
                              "(#learn).\n\n## The chapters\n\n| c | i | w |\n|---|---|---|\n| [01_one](01_one/) | the idea | "
                              "2.5×<!-- = x() --> |\n| [02_two](02_two/) | more | 3 ms |\n\n## More\n\nEnd.\n")
        self.add("02_two/README.md", "\n[Learn](../README.md#learn), [all](../README.md)\n")
        sources = book_pages.Pages(book.Book(self.book.root)).sources({}, "book.pdf")
        front, readme = sources["index.md"], sources["readme.md"]
        self.assertIn("**[Learn](readme.md#learn)**\n\nRead [one](01_one/index.md); `start` says.\n", front)
        self.assertIn("**[01 One](01_one/index.md)**\n\nthe idea\n\n2.5× as fast as the chapter before\n", front)
        self.assertIn("more\n\n3 ms\n", front)
        self.assertIn("## More\n\nEnd.", front)
        self.assertIn('href="book.pdf"', front)
        self.assertIn(".chapter-02 { --chapter: light-dark(#be4a1b, #eb7a52); }", front)
        for absent in ("[no link]", "\n## Learn", "| c |"):
            self.assertNotIn(absent, front)
            self.assertIn(absent, readme)
        self.assertNotIn("toctree", readme)
        self.assertIn("[Learn](../readme.md#learn), [all](../index.md)", sources["02_two/index.md"])
        self.assertNotIn("readme.md", "".join(book_pages.Pages(book.Book(self.book.root)).paper().values()))

    def test_lessons_are_neighbours_of_lessons_and_code_of_code(self):
        sources = self.pages.sources({}, None)

        def neighbours(page: str) -> tuple:
            return tuple(re.search(rf'^{word}: "(.*)"$', sources[page], re.MULTILINE)[1]
                         for word in ("previous", "next"))

        for page, expected in [("index.md", ("", "01_one/index")), ("01_one/index.md", ("index", "02_two/index")),
                               ("02_two/index.md", ("01_one/index", "")),
                               ("02_two/1_first.cu.md", ("01_one/attention.cu", "02_two/2_last.cu")),
                               ("02_two/2_last.cu.diff.md", ("02_two/1_first.cu.diff", "02_two/10_more.cu.diff"))]:
            self.assertEqual(neighbours(page), expected, page)
            self.assertTrue(sources[page].startswith("---\n"))
        self.add("01_one/README.md", "\n[More](more.md)\n")
        (self.book.root / "01_one/more.md").write_text("# More\n\nText.\n")
        sources = book_pages.Pages(book.Book(self.book.root)).sources({}, None)
        self.assertEqual(neighbours("01_one/more.md"), ("01_one/index", "02_two/index"))

    def test_what_a_page_of_code_says_of_itself(self):
        sources = self.pages.sources({}, None)
        self.assertIn('description: "What changed since chapter 01: all."\n', sources["02_two/1_first.cu.md"])
        self.assertIn('description: "The source of 01_one/attention.cu, with', sources["01_one/attention.cu.md"])

    def test_what_stands_beside_a_link_to_a_page(self):
        self.add("README.md", "| [02_two](02_two/) | the *idea*, `x` | 3.1× |\n")
        shared = self.pages.shared({0: 5.0, 2: 1.0})
        self.assertEqual(list(shared), ["index", "01_one", "02_two"])
        self.assertEqual(shared["02_two"], {
            "title": "02 Two", "words": "the idea, x", "gain": "3.1× as fast as the chapter before", "own": 2,
            "color": "#eb7a52", "stairs": [[5.0, "#6fb6fe"], [1.0, "#0dcbc3"]]})
        self.assertEqual((shared["index"]["title"], shared["index"]["own"]), ("A workbook", None))
        self.assertEqual(shared["index"]["words"], "One, its kernel, a folder, data, host.")

    def test_there_is_a_page_for_addresses_without_one(self):
        self.assertIn("# No such page", self.pages.sources({}, None)["404.md"])

    def test_paper_has_no_code_pages(self):
        self.assertEqual(set(self.pages.paper()), {"index.md", "01_one/index.md", "02_two/index.md"})
        self.assertIn("[One](01_one/index.md), its kernel, a folder, data, host.", self.pages.paper()["index.md"])
        self.assertNotIn("iframe", self.pages.paper()["01_one/index.md"])

    def test_only_what_changed_is_written(self):
        with tempfile.TemporaryDirectory() as directory:
            out = Path(directory)
            book_pages.write({"a/one.md": "1", "two.md": "2"}, out)
            before = (out / "a/one.md").stat().st_mtime_ns
            book_pages.write({"a/one.md": "1", "three.svg": b"3"}, out)
            self.assertEqual((out / "a/one.md").stat().st_mtime_ns, before)
            self.assertEqual(sorted(path.name for path in out.rglob("*.*")), ["one.md", "three.svg"])


class Lessons(unittest.TestCase):
    """The real ones."""

    book = book.Book(ROOT)
    pages = book_pages.Pages(book)

    def test_every_link_leads_somewhere(self):
        self.assertEqual([line for page in self.book.pages for line in self.book.broken(page)], [])

    @at_length
    def test_every_lesson_and_every_rung_is_there(self):
        sources = self.pages.sources({}, None)
        for path in [*ROOT.glob("[0-9][0-9]_*/README.md"), *ROOT.glob("common/book/*.md")]:
            self.assertIn(str(path.relative_to(ROOT)).replace("README", "index"), sources)
        rungs = [str(path.relative_to(ROOT)) for path in ROOT.glob("[0-9][0-9]_*/[0-9]*_*.cu")]
        first = {"07_backward/1_materialised.cu"}  # the first backward: there is nothing before it
        self.assertEqual({rung for rung in rungs if f"{rung}.md" not in sources}, set())
        self.assertEqual({rung for rung in rungs if f"{rung}.diff.md" not in sources}, first)

    def test_the_rung_before_is_the_one_that_the_header_names(self):
        for kernel, expected in [("05_online_softmax/1_online.cu", "04_fusion/3_unrolled.cu"),
                                 ("06_flashattn2_fwd/1_mma.cu", "05_online_softmax/2_tiles.cu"),
                                 ("08_causal_earlystop/2_earlystop.cu", "06_flashattn2_fwd/11_final.cu"),
                                 ("08_causal_earlystop/2_earlystop_backward.cu", "07_backward/7_atomic.cu"),
                                 ("08_causal_earlystop/4_ordered_backward.cu",
                                  "08_causal_earlystop/3_balanced_backward.cu"),
                                 ("10_hopper/14_reversed_backward.cu", "10_hopper/13_turns_backward.cu"),
                                 ("09_rope_fused/3_prerotated_backward.cu",
                                  "08_causal_earlystop/4_ordered_backward.cu")]:
            self.assertEqual(self.book.before(kernel), expected)

    def test_most_rungs_are_a_small_step_from_an_earlier_kernel(self):
        def code(kernel: str) -> list:
            return [line for line in (text.partition("//")[0].strip() for text in self.book.text(kernel).splitlines())
                    if line]

        def apart(kernel: str, other: str) -> int:
            # after the names
            marks = [line[0] for line in difflib.unified_diff(code(other), code(kernel), n=0, lineterm="")][2:]
            return max(marks.count("+"), marks.count("-"))

        steps = [min(apart(kernel, other) for other, _ in self.book.differences(kernel))
                 for kernel in self.book.ladder if self.book.before(kernel)]
        self.assertGreater(sum(lines < 60 for lines in steps), len(steps) / 2, steps)

    def test_the_walks_of_05_to_08_and_of_10_are_discussed(self):
        self.assertLessEqual({"05", "06", "07", "08", "10"},
                             {walk.words[0].partition("/")[0] for walk in self.book.walks})


class Plots(unittest.TestCase):
    record = Record(RESULTS / THE_BOOKS)
    pictures = pictures.all_pictures(record)

    def words(self, name: str, series: str, x: float, panel: int = 0) -> str:
        shown = self.pictures[name]["panels"][panel]
        (one,) = [each for each in shown["series"] if each["name"] == series]
        return book_plots.words(name, shown, one, one["x"].index(x))

    def test_every_point_of_every_picture_has_words(self):
        for name, picture in self.pictures.items():
            for panel in picture["panels"]:
                for one in panel["series"]:
                    if picture["kind"] != "spans" and one["style"] != "roof":
                        for place in range(len(one["x"])):
                            lines = book_plots.words(name, panel, one, place).split("\n")
                            self.assertEqual(lines[0], one["name"])
                            self.assertGreater(len(lines), 1, (name, lines))

    def test_a_chapter_has_one_colour_which_no_other_has(self):
        colors: dict = {}
        for picture in self.pictures.values():
            for one in (one for panel in picture["panels"] for one in panel["series"]):
                if isinstance(one["color"], int):
                    colors.setdefault(pictures.color(one["color"]), set()).add(one["color"])
        self.assertGreater(len(colors), 8)
        self.assertEqual({len(chapters) for chapters in colors.values()}, {1})

    def test_a_stair_begins_where_the_one_above_it_ended(self):
        for name in ("chapters-forward", "steps-forward", "steps-backward"):
            stairs = [one for one in self.pictures[name]["panels"][0]["series"] if isinstance(one["color"], int)]
            self.assertEqual([one["before"] for one in stairs[1:]], [one["x"][0] for one in stairs[:-1]])
            for one in stairs[1:]:
                self.assertAlmostEqual(float(one["gain"][:-1]), one["before"] / one["x"][0], delta=0.006 * float(one["gain"][:-1]))

    def test_a_picture_names_its_gpu(self):
        for directory in (path for path in RESULTS.iterdir() if path.is_dir()):
            record = Record(directory)
            for name, picture in pictures.all_pictures(record).items():
                self.assertIn(picture["note"].partition("; ")[0], [record.gpu], name)
                for panel in picture["panels"]:
                    self.assertNotIn("H200" if "H100" in record.gpu else "H100", json.dumps(panel), name)

    def test_rates_that_cannot_be_told_from_zero_are_left_out_and_named(self):
        picture = self.pictures["tflops-forward"]
        names = {one["name"] for panel in picture["panels"] for one in panel["series"]}
        self.assertEqual({name[:2] for name in names if name[0].isdigit()}, {"06", "08", "10"})
        slowest = max(1e-12 * row.flop_rate for row in self.record.rows
                      if row.source == "sweep-fp16-forward" and row.direction == "forward" and row.step[:2] in ("02", "03", "04", "05")
                      and row.step in self.record.results("forward", "sweep-fp16-forward"))
        self.assertIn("left out: 02 to 05, at most", picture["note"])
        said = float(re.search(r"at most ([\d.]+) TFLOP/s", picture["note"])[1])
        self.assertAlmostEqual(said / slowest, 1, delta=0.006)

    def test_what_is_shown_is_what_was_measured(self):
        of = Quantities(self.record)
        for direction in ("forward", "backward"):
            compared = 0
            for step in self.record.results(direction):
                for n in LENGTHS:
                    try:
                        ms, rate = of.ms(step, n, direction), of.rate(step, n, direction)
                        ratio = of.peer_ms("FLASH", n, direction) / ms
                    except Missing:
                        continue
                    words = self.words(f"time-{direction}", step.split("/")[0].replace("_", " "), n)
                    found = [float(re.search(rf"([\d.]+){unit}", words)[1])
                             for unit in (" ms", " TFLOP/s", "× FlashAttention-2")]
                    for value, expected in zip(found, (ms, rate, ratio)):
                        self.assertAlmostEqual(value / expected, 1, delta=0.006, msg=words)
                    compared += 1
            self.assertGreater(compared, 10)

    def test_sweep(self):
        rate = Quantities(self.record).tflops("08", 2048, 128, "causal", "fp16", "forward")
        words = self.words("tflops-forward", "08 causal earlystop", 2048, panel=3)
        self.assertIn("causal, D = 128\nN = 2048\n", words)
        self.assertAlmostEqual(float(re.search(r"([\d.]+) TFLOP/s", words)[1]) / rate, 1, delta=0.006)
        ms = 4 * 8 * 16 * 2048**2 * 128 / 2 / rate * 1e-9
        self.assertAlmostEqual(float(re.search(r"([\d.]+) ms", words)[1]) / ms, 1, delta=0.006)


class Paper(unittest.TestCase):
    PAGE = ('<body><article role="main"><section id="top">\n<h1>A workbook<a class="headerlink" href="#top">¶</a></h1>\n'
            '<p>What it is.</p>\n<span id="document-01_one/index"></span><section id="one">\n<span id="x"></span><h3>01 '
            '<em>One</em><a class="headerlink" href="#one">¶</a></h3></section><span id="document-01_one/more"></span>'
            '<section id="more"><h3>More &amp; more<a class="headerlink" href="#more">¶</a></h3></section><span '
            'id="document-common/book/terms"></span><section id="terms"><h3>Terms<a class="headerlink" href="#terms">¶</a>'
            "</h3></section></article></body>")

    def test_contents(self):
        self.assertEqual([(one["part"], one["level"], one["name"], one["title"]) for one in book_paper.entries(self.PAGE)],
                         [("", 0, "top", "How to begin"), ("The ladder", 0, "document-01_one/index", "01 One"),
                          ("The ladder", 1, "document-01_one/more", "More & more"),
                          ("Beside it", 0, "document-common/book/terms", "Terms")])

    def test_title_page_and_numbers_stand_before_the_text(self):
        made = book_paper.with_front(self.PAGE, {"top": 3, "document-01_one/more": 12})
        self.assertIn('<article role="main"><div class="title-page"><p>A workbook</p><p>What it is.</p></div>', made)
        self.assertIn('<p class="level-1"><a href="#document-01_one/more"><span>More &amp; more</span><span>12</span></a></p>', made)
        self.assertIn("<span>Terms</span><span></span>", made)
        self.assertTrue(made.endswith(self.PAGE.partition("<article role=\"main\">")[2]))


class Command(unittest.TestCase):
    def test_an_address_that_is_none_is_refused_in_one_line(self):
        for address in ("example.org", "ftp://x.org", "https://x.org/?a", "https://x.org/#a", "https:// x"):
            with self.subTest(address), contextlib.redirect_stderr(io.StringIO()) as said:
                self.assertEqual(cli.main(["dev", "book", "--address", address]), 2)
            self.assertEqual(said.getvalue().count("\n"), 1)
            self.assertIn(f"{address!r} is no address: it begins with https:// or http://", said.getvalue())

    def test_an_address_ends_with_a_slash(self):
        self.assertEqual(command._address("https://x.org/book"), "https://x.org/book/")


class Check(unittest.TestCase):
    def complaints(self, body: str) -> list:
        with tempfile.TemporaryDirectory() as directory:
            (Path(directory) / "other.html").write_text("<p id='here'>x</p>")
            (Path(directory) / "page.html").write_text(body)
            return book_check.complaints(Path(directory), book_check.pages(Path(directory)))

    def test_what_is_whole(self):
        self.assertEqual(self.complaints('<a href="other.html#here">x</a><a href="#top" id="top">x</a><a '
                                         'href="https://x.org/">x</a>'
                                         "<pre>$$ \\frac{a} $$</pre><math><mi>a</mi></math>"), [])

    def test_what_is_not(self):
        for body, expected in [('<a href="gone.html">x</a>', "there is no gone.html"),
                               ('<img alt="x" src="gone.svg">', "there is no gone.svg"),
                               ('<iframe src="walks/05.html"></iframe>', "there is no walks/05.html"),
                               ('<a href="other.html#gone">x</a>', "other.html#gone has no such place"),
                               ('<a href="#gone">x</a>', "#gone has no"),
                               ('<script src="https://cdn.org/x.js"></script>', "https://cdn.org/x.js needs a network"),
                               ('<img src="https://x.org/x.svg" alt="x">', "needs a network"),
                               ('<img src="other.html">', "without words"),
                               ("<p>$$a = b$$</p>", "a formula was left"),
                               ("<p>so \\frac{a}{b}</p>", "a formula was left"),
                               ("<math><mi>\\foo</mi></math>", "was not understood"),
                               ("<math><merror>x</merror></math>", "an error is shown"),
                               ('<span class="problematic">x</span>', "an error is shown")]:
            with self.subTest(body):
                found = self.complaints(body)
                self.assertEqual(len(found), 1, found)
                self.assertIn(expected, found[0])


class Packages(unittest.TestCase):
    """What is said where one cannot be had, in one line."""

    def said(self, *pip: str, venv: int = 0) -> str:
        def follow(words, log, on_line, **_):
            if "venv" in words:
                return venv
            for line in pip:
                on_line(line)
            return 1

        with tempfile.TemporaryDirectory() as directory, mock.patch.object(pythons, "follow", follow), \
                mock.patch.object(pythons, "say"), self.assertRaises(Failure) as raised:
            requirements = Path(directory) / "requirements.txt"
            requirements.write_text("Sphinx==9.0.4\n")
            pythons.with_packages(requirements, Path(directory) / "book" / "venv", (3, 9))
        self.assertNotIn("\n", str(raised.exception))
        return str(raised.exception)

    def test_a_package_that_does_not_exist(self):
        self.assertIn("pip could not install furo==1: there is none for this Python (log:",
                      self.said("ERROR: Could not find a version that satisfies the requirement furo==1 (from "
                                "versions: none)",
                                "ERROR: No matching distribution found for furo==1"))

    def test_no_network(self):
        self.assertIn("pip could not install Sphinx==9.0.4: its index cannot be reached",
                      self.said("WARNING: Retrying (Retry(total=4)) after connection broken by "
                                "'NewConnectionError(..)': /simple/sphinx/",
                                "ERROR: No matching distribution found for Sphinx==9.0.4"))

    def test_another_reason(self):
        self.assertIn("pip could not install the packages: No space left", self.said("ERROR: No space left on device"))

    def test_no_venv(self):
        self.assertIn("run: sudo apt-get install python3-venv", self.said(venv=1))

    def test_an_old_python(self):
        with self.assertRaisesRegex(Failure, r"need Python 99\.1 or later; this is 3\."):
            pythons.with_packages(command.SITE / "requirements.txt", Path("/nowhere"), (99, 1))

    def test_once(self):
        with tempfile.TemporaryDirectory() as directory, mock.patch.object(pythons, "follow",
                                                                           side_effect=AssertionError("again")):
            home, requirements = Path(directory), command.SITE / "requirements.txt"
            (home / "bin").mkdir()
            (home / "bin" / "python").touch()
            (home / "installed.txt").write_text(requirements.read_text())
            self.assertEqual(pythons.with_packages(requirements, home, (3, 9)), home / "bin" / "python")

    def test_every_version_is_pinned(self):
        lines = (command.SITE / "requirements.txt").read_text().splitlines()
        self.assertEqual([line for line in lines if not re.fullmatch(r"#.*|[\w.-]+==[\w.]+", line)], [])

    def test_a_walk_that_cannot_be_recorded(self):
        with tempfile.TemporaryDirectory() as directory, mock.patch.multiple(command, HOME=Path(directory),
                                                                             HTML=Path(directory)), \
                self.assertRaisesRegex(Failure, r"^\./workbook walk 99: no chapter 99 \(chapters: .*\)$") as raised:
            command._record([book.Walk(("99",))])
        self.assertEqual(raised.exception.status, 2)

    def test_the_command_ends_with_that_line(self):
        said = io.StringIO()
        with mock.patch.object(pythons, "with_packages", side_effect=Failure("pip could not install x")), \
                contextlib.redirect_stderr(said):
            self.assertEqual(cli.main(["dev", "book"]), 1)
        self.assertEqual(said.getvalue(), "workbook: pip could not install x\n")


if __name__ == "__main__":
    unittest.main()
