"""Which chapters the user means."""

import unittest

from tools.base import Failure
from tools.base.chapters import Chapter, select

CHAPTERS = [Chapter("01_naive"), Chapter("02_coalescing"), Chapter("05_online_softmax")]


class Selection(unittest.TestCase):
    def names(self, *words):
        return [chapter.name for chapter in select(list(words), CHAPTERS)]

    def test_all_if_none_is_named(self):
        self.assertEqual(self.names(), [chapter.name for chapter in CHAPTERS])

    def test_by_number_name_and_directory(self):
        for word in ("5", "05", "online_softmax", "05_online_softmax", "05_online_softmax/"):
            self.assertEqual(self.names(word), ["05_online_softmax"], word)

    def test_in_the_order_of_the_book_and_each_once(self):
        self.assertEqual(self.names("05", "01", "naive"), ["01_naive", "05_online_softmax"])

    def test_an_unknown_one_lists_those_there_are(self):
        for word in ("09", "tiling", ""):
            with self.assertRaises(Failure) as raised:
                self.names(word)
            self.assertEqual(raised.exception.status, 2)
            self.assertIn("01_naive, 02_coalescing, 05_online_softmax", str(raised.exception))
            self.assertNotIn("\n", str(raised.exception))

    def test_a_misspelt_one_is_recognised(self):
        with self.assertRaisesRegex(Failure, "did you mean coalescing"):
            self.names("coalesing")
