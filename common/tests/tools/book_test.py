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

from tools import cli
from tools.base import RESULTS, ROOT, Failure, pythons
from tools.commands import book as command
from tools.record import LENGTHS, THE_BOOKS, Missing, Quantities, Record
from tools.showing import book, book_check, book_pages, book_plots, pictures

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
        page = self.pages.sources({"speed": {"title": "</script>"}}, None)["index.md"]
        self.assertIn('<div class="plot">\n\n![A picture](common/results/g/pictures/speed.svg)\n\n'
                      '<script type="application/json">{"title":"\\u003c/script>"}</script></div>', page)

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
    plots = book_plots.all_plots(record)

    def test_each_picture_of_the_lessons_has_one_with_the_same_numbers(self):
        for name, picture in pictures.all_pictures(self.record).items():
            if picture["kind"] == "spans":  # bars of time, whose ends say what there is to say
                self.assertNotIn(name, self.plots)
                continue
            series = [one for panel in picture["panels"] for one in panel["series"]]
            self.assertEqual([(trace["name"], trace["x"]) for trace in self.plots[name]["data"]],
                             [("<br>".join(filter(None, [one.get("slope"), one["name"]])), one["x"]) for one in series])
            json.dumps(self.plots[name], allow_nan=False)

    def test_peers_are_told_apart_without_their_greys(self):
        for name in ("time-forward", "time-backward", "tflops-forward", "tflops-backward"):
            peers = {trace["name"]: (trace["mode"], trace["line"]["dash"], trace["marker"]["symbol"])
                     for trace in self.plots[name]["data"] if not trace["name"][0].isdigit()}
            self.assertGreater(len(peers), 2)
            self.assertEqual(len(set(peers.values())), len(peers), peers)
            self.assertEqual({mode for mode, _, _ in peers.values()}, {"lines+markers"})

    def test_what_is_shown_is_what_was_measured(self):
        of = Quantities(self.record)
        for direction in ("forward", "backward"):
            shown = {(trace["name"], x): words for trace in self.plots[f"time-{direction}"]["data"]
                     for x, words in zip(trace["x"], trace["customdata"])}
            compared = 0
            for step in self.record.results(direction):
                for n in LENGTHS:
                    try:
                        ms, rate = of.ms(step, n, direction), of.rate(step, n, direction)
                        ratio = of.peer_ms("FLASH", n, direction) / ms
                    except Missing:
                        continue
                    words = shown[step.split("/")[0].replace("_", " "), n]
                    found = [float(re.search(rf"([\d.]+){unit}", words)[1])
                             for unit in (" ms", " TFLOP/s", "× FlashAttention-2")]
                    for value, expected in zip(found, (ms, rate, ratio)):
                        self.assertAlmostEqual(value / expected, 1, delta=0.006, msg=words)
                    compared += 1
            self.assertGreater(compared, 10)

    def test_sweep(self):
        of = Quantities(self.record)
        trace = next(one for one in self.plots["tflops-forward"]["data"] if one["name"].startswith("08")
                     and one["xaxis"] == "x4")
        words = trace["customdata"][trace["x"].index(2048)]
        rate = of.tflops("08", 2048, 128, "causal", "fp16", "forward")
        self.assertIn("causal, D = 128<br>N = 2048<br>", words)
        self.assertAlmostEqual(float(re.search(r"([\d.]+) TFLOP/s", words)[1]) / rate, 1, delta=0.006)
        ms = 4 * 8 * 16 * 2048**2 * 128 / 2 / rate * 1e-9
        self.assertAlmostEqual(float(re.search(r"([\d.]+) ms", words)[1]) / ms, 1, delta=0.006)


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
