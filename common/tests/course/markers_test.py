"""The two lines around a solution: what is between them, and what is said of those that are not as they have to be."""

import re
import unittest

from tools.base import Failure
from tools.course import markers

SOURCE = """before();
  // exercise rescale: correct the sum
  l *= correction;
  m = m_new;
  // end rescale | correction = 1; m = m_new;
between();
// exercise bounds: end the loop earlier
const int keys = visible;
// end bounds |
"""


class Regions(unittest.TestCase):
    def test_where_they_are_and_what_is_in_them(self):
        rescale, bounds = markers.regions("a.cu", SOURCE)
        self.assertEqual((rescale.name, rescale.task, rescale.first, rescale.last),
                         ("rescale", "correct the sum", 2, 5))
        self.assertEqual(markers.inside(SOURCE, rescale), "  l *= correction;\n  m = m_new;")
        self.assertEqual((rescale.stub, bounds.stub), ("correction = 1; m = m_new;", ""))

    def test_a_stub_takes_the_solutions_place_and_its_indentation(self):
        rescale, _ = markers.regions("a.cu", SOURCE)
        stubbed = markers.filled(SOURCE, rescale, markers.indented_stub(SOURCE, rescale))
        self.assertEqual(stubbed.splitlines()[1:4], [SOURCE.splitlines()[1], "  correction = 1; m = m_new;",
                                                     SOURCE.splitlines()[4]])

    def test_an_empty_stub_leaves_nothing_between_the_lines(self):
        _, bounds = markers.regions("a.cu", SOURCE)
        self.assertIn("earlier\n// end bounds", markers.filled(SOURCE, bounds, markers.indented_stub(SOURCE, bounds)))

    def test_a_students_file_has_no_bars(self):
        text = markers.without_bars(SOURCE)
        self.assertNotIn("|", text)
        self.assertEqual([region.stub for region in markers.regions("a.cu", text)], [None, None])

    def test_what_is_filled_in_comes_back(self):
        rescale, _ = markers.regions("a.cu", SOURCE)
        again = markers.filled(SOURCE, rescale, markers.inside(SOURCE, rescale))
        self.assertEqual(again, SOURCE)

    def test_a_compiler_names_the_lines_of_the_file_whatever_stands_in_a_region(self):
        text = markers.for_a_compiler("/a b/x.cu", SOURCE, {"rescale": "one();\ntwo();\nthree();"})
        lines, number = {}, 0
        for line in text.splitlines():
            said = re.fullmatch(r'#line (\d+) "/a b/x.cu"', line)
            if said:
                number = int(said[1])
            else:
                lines[line], number = number, number + 1
        rescale, _ = markers.regions("x.cu", SOURCE)
        self.assertNotIn("  m = m_new;", lines)
        for line in ("one();", "two();", "three();"):
            self.assertEqual(lines[line], rescale.first)
        for number, line in enumerate(SOURCE.splitlines(), 1):
            if line in lines:
                self.assertEqual(lines[line], number, line)

    def test_without_markers_the_code_alone_is_left(self):
        plain = "before();\n  l *= correction;\n  m = m_new;\nbetween();\nconst int keys = visible;\n"
        self.assertEqual(markers.without_markers(SOURCE), plain)
        self.assertIn("// exercise bounds", markers.without_markers(SOURCE, keep=("bounds",)))
        self.assertNotIn("rescale", markers.without_markers(SOURCE, keep=("bounds",)))


class Blanks(unittest.TestCase):
    def test_those_that_an_editor_adds_or_takes_away_do_not_matter(self):
        for text in ("//exercise a: x\n//end a\n", "  //  exercise  a :x \n\t// end  a  \n"):
            (region,) = markers.regions("x.cu", text)
            self.assertEqual((region.name, region.first, region.last, region.stub), ("a", 1, 2, None))


class Mistakes(unittest.TestCase):
    def test_one_line_that_names_the_file_and_the_line(self):
        for text, expected in [
            ("// exercise a: x\n// exercise b: x\n// end b |\n// end a |\n", "2: exercise b begins inside exercise a"),
            ("\n// exercise a: x\n", "2: exercise a has no end"),
            ("// end a |\n", "1: the end of exercise a, which has not begun"),
            ("// exercise a: x\n// end b |\n", "2: the end of exercise b, which has not begun; exercise a is open"),
            ("// exercise a: x\n// end a |\n// exercise a: y\n// end a |\n", "3: exercise a begins a second time"),
            ("// exercise a\n// end a |\n", "1: no marker of an exercise"),
            ("// exercise a:\n// end a |\n", "1: no marker of an exercise"),
            ("// exercise a: x\n// end a| y\n", "2: no marker of an exercise"),
        ]:
            with self.subTest(text=text), self.assertRaises(Failure) as caught:
                markers.regions("09/x.cu", text)
            self.assertIn("09/x.cu:" + expected, str(caught.exception))
            self.assertEqual(caught.exception.status, 2)
            self.assertNotIn("\n", str(caught.exception))

    def test_ordinary_comments_are_none(self):
        self.assertEqual(markers.regions("a.cu", "// end of the loop\n// exercise your patience\n// the end\n"), [])


if __name__ == "__main__":
    unittest.main()
