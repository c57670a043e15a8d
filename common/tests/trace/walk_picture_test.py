"""The picture that moves on the first page: a run, and in the tree as it is made now."""

import re
import unittest
from xml.etree import ElementTree

from tools.base import ROOT, Failure
from tools.commands import walk as command
from tools.showing import walk_picture
from tools.showing.lesson_pictures.film import FADE, Film
from walk_test import recorded

FILE = ROOT / "common" / "book" / "walk.svg"
LARGEST = 300_000  # bytes


def of_step(chapter: str, rung: str, *flags: str) -> dict:
    (n,) = command.PICTURED["seq_q"]
    return recorded(chapter, f"--rung={rung}", "--batch=1", "--heads=1", *(flags or [f"--seq-q={n}"]))


def three_digits(value: float) -> str:
    return f"{value:.3g}" if value < 1 else f"{value:.2f}"


class OnTheFirstPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = walk_picture.picture(of_step("05_online_softmax", "tiles"))

    def test_the_file_is_what_the_command_makes(self):
        self.assertEqual(FILE.read_text(), self.made, "./workbook walk 05 --out common/book/walk.svg makes it again")
        self.assertRegex((ROOT / "README.md").read_text(), r"!\[[^\]]{40,}\]\(common/book/walk\.svg\)")

    def test_a_page_can_show_it_as_a_picture(self):
        self.assertLess(len(self.made.encode()), LARGEST)
        tags = {element.tag.partition("}")[2] for element in ElementTree.fromstring(self.made).iter()}
        self.assertEqual(tags, {"svg", "title", "desc", "style", "g", "rect", "path", "text"})
        for strange in ("href", "url(", "@import", "@font-face"):
            self.assertNotIn(strange, self.made)
        self.assertIn("prefers-color-scheme:dark", self.made)

    def test_it_takes_twenty_seconds(self):
        self.assertEqual(set(re.findall(r"animation:k\d+ (\S+)s ", self.made)), {"20"})

    def test_nothing_moves_where_no_motion_is_wanted(self):
        still, _, moving = self.made.partition("@media (prefers-reduced-motion:no-preference){")
        self.assertTrue(moving)
        self.assertNotIn("animation", still)
        self.assertLess(moving.index("animation"), moving.index("</style>"))

    def test_tiles_that_the_mask_hides_are_dotted(self):
        """Six of sixteen, with seven by seven dots each; nothing has a dashed frame."""
        dots = [way for way in re.findall(r'<path d="(M[^"]*)" fill="var\(--grey\)"', self.made) if "h1.4v1.4" in way]
        self.assertEqual([way.count("M") for way in dots], [49] * 6)
        self.assertNotRegex(self.made, "<rect[^>]*dasharray")

    def test_its_numbers_are_those_of_the_run(self):
        """Of query 177: its m, l and corrections as chapter 05 shows them, and m is the largest of its own scores."""
        query, lines = 177, re.findall(r">([^<>]*)</text>", self.made)
        (launch,) = of_step("05_online_softmax", "tiles")["rungs"][0]["launches"]
        tiles, largest = [], float("-inf")
        for step in launch["blocks"][query // 64]["steps"]:
            of_row = {name: float(values[0]) for name, runs in step.get("watched", {}).items()
                      for row, column, values in runs if row == query and column % 64 == 0 and name in ("m", "l", "correction")}
            if "m" in of_row:
                tiles.append(of_row)
                largest = max(largest, *(float(score) for row, _, values in step["watched"]["S"] if row == query
                                         for score in values))
                self.assertAlmostEqual(of_row["m"], largest, places=4)
        self.assertEqual(len(tiles), 4)
        self.assertEqual(tiles[2]["l"], tiles[3]["l"])  # hidden, all of it
        for before, now in zip(tiles, tiles[1:3]):
            self.assertIn(f"m rises from {three_digits(before['m'])} to {three_digits(now['m'])}.", lines)
            self.assertIn(f"× {three_digits(now['correction'])}", lines)
            self.assertIn(f"l = {three_digits(before['l'] * now['correction'])}", lines)
            self.assertIn(f"l = {three_digits(now['l'])}", lines)


class OfOtherSteps(unittest.TestCase):
    def test_without_a_mask_without_a_correction_and_with_a_hidden_row(self):
        for rung, flags in [("tiles", ["--no-causal", "--seq-q=128"]), ("tiles", ["--seq-q=1"]), ("online", []),
                            ("tiles", ["--seq-q=200", "--seq-k=70"])]:
            with self.subTest(rung=rung, flags=flags):
                ElementTree.fromstring(walk_picture.picture(of_step("05_online_softmax", rung, *flags)))

    def test_what_cannot_be_drawn_is_refused(self):
        with self.assertRaisesRegex(Failure, "^06/mma does not show S, P, correction, m, l and O, .*: take 05$"):
            walk_picture.picture(of_step("06_flashattn2_fwd", "mma"))
        with self.assertRaisesRegex(Failure, "^600 keys are 10 tiles: .* --seq-k=512$"):
            walk_picture.picture(of_step("05_online_softmax", "tiles", "--seq-q=64", "--seq-k=600"))


class Films(unittest.TestCase):
    def test_parts_come_and_go_at_their_times_and_rest_at_the_still(self):
        film = Film(100, "t", "d", seconds=10, still=5)
        with film.shown(2, 6):
            film.box(0, 0, 9, 9, "blue")
        with film.shown(6, 10), film.stretched(50, [(4, 1), (6, 0.5)]), film.lifted([(0, 0), (10, 20)]):
            film.box(0, 0, 9, 9, "blue")
        rest, _, moving = film.style().partition("@media (prefers-reduced-motion")
        for words in (".k0{opacity:1}", ".k1{opacity:0}", ".k2{transform-origin:0 50px;transform:scaleY(0.75)}",
                      ".k3{transform:translateY(-10px)}"):
            self.assertIn(words, rest)
        self.assertIn(f"@keyframes k0{{0%{{opacity:0}}20%{{opacity:0}}{20 + 10 * FADE:g}%{{opacity:1}}60%{{opacity:1}}", moving)
        self.assertIn("100%{transform:translateY(-20px)}", moving)

    def test_what_is_seen_only_in_motion_and_only_without(self):
        film = Film(100, "t", "d", seconds=10, still=5)
        with film.only_still():
            film.box(0, 0, 9, 9, "blue")
        with film.never_still():
            film.box(0, 0, 9, 9, "blue")
        style = film.style()
        self.assertIn(".k0{opacity:1}.k1{opacity:0}", style)
        self.assertIn("@keyframes k0{0%{opacity:0}100%{opacity:0}}", style)
        self.assertIn("@keyframes k1{0%{opacity:1}100%{opacity:1}}", style)


if __name__ == "__main__":
    unittest.main()
