"""The boxes of the lessons: each says what exercises.json and the source say, and stands where its exercise does."""

import unittest

from little import CODE, DEBUG, MEASURE, LittleTree

from tools import course
from tools.course import boxes

PAGE = "05_online/README.md"
EMPTY = "# 05\n\n## The idea\n\nwords\n\n<!-- exercise 05.rescale -->\n<!-- /exercise -->\n\nmore\n"


class Boxes(LittleTree):
    def checked(self, text: str) -> list:
        self.write(PAGE, text)
        return boxes.check(self.loaded())

    def test_one_is_written_and_is_right_then(self):
        self.assertEqual(self.checked(EMPTY), [f"{PAGE}:7: the box of exercise 05.rescale is not what exercises.json says"])
        self.assertEqual(boxes.write(self.loaded()), [PAGE])
        self.assertEqual((boxes.check(self.loaded()), boxes.write(self.loaded())), ([], []))
        text = self.read(PAGE)
        self.assertTrue(text.startswith(EMPTY.partition("<!-- /")[0]) and text.endswith("<!-- /exercise -->\n\nmore\n"))
        for words in ("**Exercise 05.rescale**: a title. About 10 minutes.",
                      "[1_online.cu](1_online.cu), between `// exercise rescale` and `// end rescale`: correct the sum.",
                      "`./workbook check 05.rescale`"):
            self.assertIn(words, text)

    def test_it_follows_what_the_exercise_says(self):
        self.checked(EMPTY)
        boxes.write(self.loaded())
        self.declare({**CODE, "minutes": 11}, DEBUG, MEASURE)
        self.assertEqual(len(boxes.check(self.loaded())), 1)
        boxes.write(self.loaded())
        self.assertIn("About 11 minutes", self.read(PAGE))

    def test_the_other_kinds(self):
        self.checked("<!-- exercise 06.barrier -->\n<!-- /exercise -->\n<!-- exercise 05.sectors -->\n<!-- /exercise -->\n")
        boxes.write(self.loaded())
        self.assertIn("[1_mma.cu](../06_flash/1_mma.cu) has a mistake.", self.read(PAGE))
        self.assertIn('`./workbook check 05.sectors --student "Your Name"` asks the question', self.read(PAGE))

    def test_line_of_what_is_wrong(self):
        box = EMPTY[EMPTY.index("<!--"):EMPTY.index("\nmore")]
        for text, expected in [(EMPTY.replace("rescale", "nothing"), ":7: there is no exercise 05.nothing"),
                               (EMPTY + box, ":11: exercise 05.rescale has a second box"),
                               (EMPTY.replace("<!-- /exercise -->\n", ""), ":1: the comments around an exercise do not match"),
                               (EMPTY + "<!-- exercise -->\n", ":1: the comments around an exercise do not match")]:
            self.assertIn(PAGE + expected, "\n".join(self.checked(text)))

    def test_where_it_stands(self):
        self.checked(EMPTY)
        self.assertEqual(boxes.places(self.loaded()), {"05.rescale": boxes.Place(PAGE, 7, "The idea")})

    def test_a_page_without_the_boxes_of_others(self):
        self.assertEqual(boxes.without_boxes(EMPTY, {"05.rescale"}), EMPTY)
        self.assertEqual(boxes.without_boxes(EMPTY, set()), "# 05\n\n## The idea\n\nwords\n\nmore\n")


class TheRealOnes(unittest.TestCase):
    def test_are_right_and_the_first_lesson_has_all_of_its_own(self):
        there = course.load()
        self.assertEqual(boxes.check(there), [])
        for one in there.select(["01"]):
            self.assertEqual(boxes.places(there)[one.id].file, "01_naive/README.md")


if __name__ == "__main__":
    unittest.main()
