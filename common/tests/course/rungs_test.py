"""Taking rungs out of chapters: the list of rungs becomes shorter, and what needs a rung that is gone goes too."""

import unittest

from tools.course.rungs import Ladder


def rung(name: str, kind: str = "Rung", more: str = "") -> str:
    return (f"{more}extern const attention::{kind} {name};\nconstinit const attention::{kind} {name} = {{.name = "
            f"\"{name}\"}};\n")


def a_list(namespace: str, rungs: str, declared: str, more: str = "", first: str = "") -> str:
    return (f"{first}namespace {namespace} {{\n\nextern const attention::Rung {declared};\n\nextern const "
            "attention::Chapter chapter;\n"
            f"const attention::Chapter chapter = {{.name = \"one, two\", .rungs = {{{rungs}}}{more}}};\n}}\n")


SOURCES = {
    "01_one/1_a.cu": rung("a"), "01_one/2_b.cu": rung("b"), "01_one/2_b_backward.cu": rung("b_backward", "Backward"),
    "01_one/attention.cu": a_list("one", "a, both(b, b_backward)", "a, b",
                                  ",\n    .starts_from = &b,\n    .example = &b"),
    "02_two/1_c.cu": rung("c", more="namespace one {\nextern const attention::Rung b;\n}\nint x() { return "
                                    "one::b.run(); }\n"),
    "02_two/attention.cu": a_list("two", "{.name = \"literal\", .forward = one::a.forward}, c", "c",
                                  first="namespace one {\nextern const attention::Rung a;\n}\n\n"),
}


class Rungs(unittest.TestCase):
    def test_nothing_is_taken_out_of_a_whole_ladder(self):
        self.assertEqual(Ladder(SOURCES).without(set()).sources, SOURCES)

    def test_a_rung_its_backward_and_who_needs_it(self):
        less = Ladder(SOURCES).without({"01_one/2_b.cu"})
        self.assertEqual(less.gone, {"01_one/2_b.cu", "01_one/2_b_backward.cu", "02_two/1_c.cu"})
        self.assertEqual(less.rungs_of("01_one"), ["a"])
        self.assertIn("extern const attention::Rung a;\n", less.sources["01_one/attention.cu"])
        for field in ("starts_from", "example"):
            self.assertNotIn(field, less.sources["01_one/attention.cu"])
        self.assertEqual(less.rungs_of("02_two"), ['{.name = "literal", .forward = one::a.forward}'])

    def test_a_rung_may_lose_its_backward_alone(self):
        less = Ladder(SOURCES).without({"01_one/2_b_backward.cu"})
        self.assertEqual((less.gone, less.rungs_of("01_one")), ({"01_one/2_b_backward.cu"}, ["a", "b"]))

    def test_an_example_that_is_gone_is_not_mentioned(self):
        sources = {**SOURCES, "01_one/example.cu": rung("example"),
                   "01_one/attention.cu": a_list("one", "a", "a, example", ",\n    .example = &example")}
        self.assertIn(".example = &example", Ladder(sources).without(set()).sources["01_one/attention.cu"])
        self.assertNotIn("example", Ladder(sources).without({"01_one/example.cu"}).sources["01_one/attention.cu"])

    def test_a_chapter_without_rungs_is_gone(self):
        less = Ladder(SOURCES).without({"01_one/1_a.cu", "02_two/1_c.cu"})
        self.assertEqual(less.chapters(), ["01_one"])
        self.assertNotIn("02_two/attention.cu", less.sources)

    def test_the_ladder_itself_stays(self):
        ladder = Ladder(SOURCES)
        ladder.without({"01_one/1_a.cu"})
        self.assertEqual(ladder.sources, SOURCES)


if __name__ == "__main__":
    unittest.main()
