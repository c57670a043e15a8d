"""./workbook dev lessons, and the bounds that it shows; and the pictures that explain."""

import contextlib
import io
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from tools import cli
from tools.base import RESULTS, ROOT
from tools.record import THE_BOOKS
from tools.showing import lesson_measures, lesson_pictures
from tools.showing.lesson_pictures.canvas import Drawing
from tools.showing.lesson_pictures.constants import constant

# Those that have been measured: one that somebody is writing need not be short yet.
CHAPTERS = sorted(path.stem.partition("-")[2] for path in (RESULTS / THE_BOOKS).glob("ladder-*.json"))

PAGE = """# 05 Online softmax

In chapter 04, and in 01 to 03, fp16 takes **57,056<!-- longest_row --> keys** of an H200 (on 2 of 132), 1.20×<!-- gain -->.

![A tile](pictures/tile.svg)
![Times](../common/results/nvidia-h200/pictures/times.svg)

$$c = e^{3 - 14}$$

| a | 77 |
|---|--:|
| b<!-- = ms("05", 4096) --> | 88 |

<!-- exercise 05.rescale -->

> **Exercise 05.rescale**: 40 minutes.

<!-- /exercise -->

```cpp
int x = 99;
```

1. How many of `Bc = 64` are 12?

   <details><summary>Answer</summary>

   There are 66 words here.

   </details>
"""


class Measures(unittest.TestCase):
    def test_what_counts(self):
        self.assertEqual(lesson_measures.unfolded_numbers(PAGE), ["57,056", "132", "1.20", "12"])
        found = lesson_measures.measure("05_x/README.md", PAGE)
        self.assertEqual((found.pictures, found.plots, found.formulas, found.numbers), (1, 1, 1, 4))
        self.assertEqual(found.longest_marker, '<!-- = ms("05", 4096) -->')
        self.assertEqual(found.folded, 6)  # with "Answer"
        self.assertEqual(lesson_measures.measure("", "Two *words*, `a b` | and\n\n| a | b |\n").unfolded, 4)

    def test_small_integers_and_names_are_no_numbers(self):
        for words, expected in [("9 of 10", ["10"]), ("1.5 and 0.5", ["1.5", "0.5"]), ("bf16, L2, m16n8k16, sm_90", []),
                                ("chapters 10 and 11, 03 to 10", []), ("Dao (2022)", []), ("64 × 64", ["64", "64"]),
                                ("12 ms, 40% and 10¹²", ["12", "40", "10"]), ("12ms 48× 1e-3", ["12", "48", "1e-3"]),
                                ("9. nine\n10. ten", []), ("on 2026-11-21", [])]:
            self.assertEqual(lesson_measures.numbers_in(words), expected, words)

    def test_every_bound_is_named(self):
        right = lesson_measures.Measures("p", 2200, 2200, 3, 0, 80, 0, 5.9, "x" * 50)
        self.assertEqual(right.beyond_bounds("05"), [])
        wrong = lesson_measures.Measures("p", 2201, 2202, 2, 9, 81, 0, 6.0, "x" * 51)
        self.assertEqual(len(wrong.beyond_bounds("05")), 6)
        self.assertEqual(lesson_measures.Measures("p", 3000, 0, 3, 0, 0, 0, 0, "").beyond_bounds("06"), [])
        self.assertEqual(lesson_measures.Measures("p", 3001, 0, 3, 0, 0, 0, 0, "").beyond_bounds("10"),
                         ["p has 3001 words unfolded: 3000 at most"])

    def test_the_command_prints_a_line_for_each_lesson(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.assertEqual(cli.main(["dev", "lessons"]), 0)
        for page in lesson_measures.lesson_pages(ROOT):
            self.assertIn(page.parent.name, said.getvalue())


class Bounds(unittest.TestCase):
    def test_every_lesson_keeps_them(self):
        self.assertGreaterEqual(len(CHAPTERS), 11)
        for measured in (one for one in lesson_measures.all_measures(ROOT) if one.page.partition("/")[0] in CHAPTERS):
            with self.subTest(page=measured.page):
                self.assertEqual(measured.beyond_bounds(measured.page[:2]), [])

    def test_the_first_page_is_short(self):
        self.assertLessEqual(len((ROOT / "README.md").read_text().split()), 1200)

    def test_each_has_its_page_in_depth_with_short_markers(self):
        for chapter in CHAPTERS:
            page = ROOT / chapter / "in_depth.md"
            self.assertIn("(in_depth.md", (ROOT / chapter / "README.md").read_text(), chapter)
            self.assertEqual([marker for marker in lesson_measures.markers(page.read_text())
                              if len(marker) > lesson_measures.MARKER_CHARACTERS], [], chapter)


class Pictures(unittest.TestCase):
    def test_they_are_what_is_drawn(self):
        self.assertEqual(lesson_pictures.stale(ROOT), [], "./workbook dev report writes them")

    def test_a_changed_and_a_strange_picture_are_named(self):
        with tempfile.TemporaryDirectory() as directory:
            chapter = Path(directory) / "02_two"
            chapter.mkdir()
            (chapter / "README.md").write_text("# 02\n")
            written = lesson_pictures.write(Path(directory))
            self.assertTrue(written)
            self.assertEqual(lesson_pictures.stale(Path(directory)), [])
            written[0].write_text(written[0].read_text().replace("</svg>", "<g/></svg>"))
            (chapter / "pictures" / "strange.svg").write_text("<svg/>")
            self.assertEqual(len(lesson_pictures.stale(Path(directory))), 2)
            lesson_pictures.write(Path(directory))
            self.assertEqual(lesson_pictures.stale(Path(directory)), [])

    def test_they_are_well_formed_described_and_the_same_each_time(self):
        first, second = lesson_pictures.all_pictures(ROOT), lesson_pictures.all_pictures(ROOT)
        self.assertEqual(first, second)
        for path, text in first.items():
            with self.subTest(picture=str(path.relative_to(ROOT))):
                drawn = ElementTree.fromstring(text)
                names = {child.tag.partition("}")[2]: child.text for child in drawn}
                self.assertTrue(names["title"] and names["desc"])
                self.assertIn("prefers-color-scheme:dark", text)
                self.assertLessEqual(len(text.encode()), 40_000)

    def test_every_picture_is_shown_with_words_for_who_cannot_see_it(self):
        for path in lesson_pictures.all_pictures(ROOT):
            pages = "".join(page.read_text() for page in path.parent.parent.glob("*.md"))
            self.assertRegex(pages, rf"!\[[^\]]{{40,}}\]\(pictures/{path.name}\)")

    def test_text_too_small_or_outside_is_refused(self):
        drawing = Drawing(100, "t", "d")
        drawing.text(10, 50, "words")
        for words in [{"size": 12}, {"at": "end"}]:
            with self.assertRaisesRegex(ValueError, "can be read on a phone|leaves the picture"):
                drawing.text(10, 50, "words", **words)
        with self.assertRaisesRegex(ValueError, "there is no colour red"):
            drawing.box(0, 0, 10, 10, "red")

    def test_constants_of_the_kernels(self):
        self.assertEqual([constant("03_tiling/3_padded.cu", name) for name in ("tile", "depth", "rows", "cols", "pad")],
                         [64, 32, 8, 4, 4])
        self.assertEqual(constant("01_naive/attention.cu", "threads"), 32 * 32)
        for name in ("nothing", "softmax_warp"):
            with self.assertRaisesRegex(LookupError, "not at all"):
                constant("03_tiling/3_padded.cu", name)
        with tempfile.TemporaryDirectory() as directory:
            (Path(directory) / "x.cu").write_text("constexpr int a = 2, b = 3 * a;  // c\nstatic constexpr int c = 1;\n"
                                                  "static constexpr int c = 2;\nconstexpr size_t d = 4 * sizeof(int);")
            self.assertEqual(constant("x.cu", "b", Path(directory)), 6)
            for name in ("c", "d"):
                with self.assertRaises(LookupError):
                    constant("x.cu", name, Path(directory))


if __name__ == "__main__":
    unittest.main()
