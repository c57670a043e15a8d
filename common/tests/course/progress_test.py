"""Hints, one after the other, and what the last check has said."""

import unittest

from little import LittleTree

from tools import course


class Progress(LittleTree):
    def progress(self) -> course.StudentProgress:
        """A new one each time, as every command has."""
        return course.StudentProgress(self.root / "build" / "progress.json")

    def test_each_hint_once(self):
        rescale = self.exercise("05.rescale")
        self.assertEqual([self.progress().next_hint(rescale) for _ in range(3)], [(1, "first"), (2, "second"), None])

    def test_the_last_check_counts_as_long_as_nothing_changes(self):
        rescale = self.exercise("05.rescale")
        self.assertEqual(self.progress().state(rescale, "text", True), "not checked")
        self.progress().checked(rescale, "text", "right")
        self.assertEqual(self.progress().state(rescale, "text", True), "right")
        self.assertEqual(self.progress().state(rescale, "other", True), "not checked")
        self.assertEqual(self.progress().state(rescale, "text", False), "not attempted")
        self.assertEqual(self.progress().state(self.exercise("05.sectors"), "text", False), "not answered")

    def test_a_file_that_cannot_be_read_is_none(self):
        self.write("build/progress.json", "{")
        self.assertEqual(self.progress().next_hint(self.exercise("05.rescale")), (1, "first"))


if __name__ == "__main__":
    unittest.main()
