"""A problem's name: what the chapters' programs write is what is read here. WORKBOOK_BUILD says where they are
built."""

import argparse
import itertools
import os
import tempfile
import unittest
from pathlib import Path

from tools.base import Failure, answer_of, chapters
from tools.measuring import engine_counts, problem_flags
from tools.record import Problem, read_label

DIRECTORY = Path(os.environ.get("WORKBOOK_BUILD", "/nowhere"))
BUILT = [chapter for chapter in chapters.all_chapters() if chapter.program(DIRECTORY).exists()]


class Labels(unittest.TestCase):
    def test_reading(self):
        self.assertEqual(read_label("B2_H16_N512_D64_fp16_causal"), (Problem(2, 16, 16, 512, 512, 64, "fp16", True),
                                                                     False))
        self.assertEqual(read_label("B1_H8_Hkv2_Nq7_Nk9_D128_bf16_full_rope"),
                         (Problem(1, 8, 2, 7, 9, 128, "bf16", False), True))
        packed = "B8_H2_N300_D64_fp16_causal_window64_0_sink_packed633_466"
        self.assertEqual(read_label(packed)[0].flags()[-3:], ["--window=64,0", "--sink", "--packed"])
        self.assertEqual(read_label(packed)[0].asked()["packed"], (633, 466))
        blocks = read_label("B1_H2_N300_D64_fp16_full_sink_blocks_documents")[0]
        self.assertEqual(blocks.flags()[-2:], ["--sink", "--block-mask=documents"])
        self.assertEqual((blocks.asked()["sink"], blocks.asked()["blocks"]), (True, "documents"))
        problem, _ = read_label("B1_H8_N7_D192_bf16_full_window5_-1_sink_views_dv128")
        self.assertEqual(problem.flags()[-4:], ["--window=5,-1", "--sink", "--views", "--head-dim-v=128"])
        self.assertEqual({"window": (5, -1), "sink": True, "views": True, "head_dim_v": 128}.items()
                         - problem.asked().items(), set())
        for wrong in ("", "B2_H16_N512_D64_fp16", "B2_H16_N512_D64_fp32_causal", "B2_H16_Nq512_D64_fp16_causal"):
            with self.assertRaises(ValueError):
                read_label(wrong)


class Broken(unittest.TestCase):
    def test_what_a_program_prints_that_is_not_what_it_should_be(self):
        with tempfile.TemporaryDirectory() as directory:
            program = Path(directory) / "05_broken"
            for printed, said in [("{", "05_broken printed no JSON that can be read: "),
                                  ("", "05_broken printed no JSON"),
                                  ("[]", "05_broken --describe does not say its problem"),
                                  ('{"problem": "B2", "flops": {}}', "05_broken --describe does not say its problem")]:
                program.write_text(f"#!/bin/sh\necho '{printed}'\n")
                program.chmod(0o755)
                with self.assertRaisesRegex(Failure, f"^{said}"):
                    problem_flags.resolved(program, [])
            program.write_text("#!/bin/sh\nkill -SEGV $$\n")
            with self.assertRaisesRegex(Failure, "^05_broken was killed by SIGSEGV$"):
                engine_counts.counts_of(program)


    def test_a_result_that_is_wrong_is_counted_and_named(self):
        with tempfile.TemporaryDirectory() as directory:
            program = Path(directory) / "05_broken"
            for printed, wrong in [('{"chapter": "05", "rungs": [{"rung": "a"}, {"rung": "b", "wrong": "o is 1"}]}',
                                    [("05", "b", "not right: o is 1")]),
                                   ('{"chapter": "05", "rungs": [{"rung": "a"}]}', None), ("", None)]:
                program.write_text(f"#!/bin/sh\necho '{printed}'\necho FAIL >&2\nexit 1\n")
                program.chmod(0o755)
                if wrong is None:
                    with self.assertRaisesRegex(Failure, "^FAIL$"):
                        engine_counts.counts_of(program)
                else:
                    self.assertEqual(engine_counts.wrong_rungs(engine_counts.counts_of(program)), wrong)


@unittest.skipUnless("WORKBOOK_BUILD" in os.environ, "WORKBOOK_BUILD does not say where the chapters' programs are")
class Programs(unittest.TestCase):
    problems = [Problem(3, 4, 2, 50, 70, 128, "bf16", True), Problem(2, 6, 6, 9, 9, 64, "fp16", False)]
    own_v = Problem(2, 4, 2, 50, 70, 192, "fp16", True, "window9_-1_views_dv128")

    def test_what_is_refused_before_the_build_the_program_refuses_in_the_same_words(self):
        for chapter in BUILT:
            for words in itertools.product(["--direction=forward", "--direction=backward", ""],
                                           ["--head-dim=7", "--head-dim=264", ""]):
                words = [word for word in words if word]
                parser = argparse.ArgumentParser()
                problem_flags.add_arguments(parser, several=False)
                why = problem_flags.refusal(chapter, parser.parse_args(words))
                with self.subTest(chapter=chapter.name, words=words):
                    if any("head-dim" in word for word in words):
                        self.assertTrue(why)
                    if why:
                        said = answer_of([chapter.program(DIRECTORY), "--check", "--seq-q=8", *words])[2]
                        self.assertEqual(f"{chapter.name}: {why}", said)

    def test_there_are_some(self):
        self.assertTrue(BUILT, f"no chapter is built in {DIRECTORY}")

    def test_they_write_what_is_read(self):
        for chapter in BUILT:
            for problem in self.problems:
                read, flops = problem_flags.resolved(chapter.program(DIRECTORY), problem.flags())
                self.assertEqual(read, problem, chapter.name)
                self.assertEqual(flops["backward"], 2.5 * flops["forward"])

    def test_a_v_with_its_own_head_dim(self):
        for chapter in BUILT:
            if chapter.name.startswith("12_"):
                program = chapter.program(DIRECTORY)
                self.assertEqual(problem_flags.resolved(program, self.own_v.flags())[0], self.own_v)
                self.assertIn("PASS", answer_of([program, "--check", *self.own_v.flags()])[1])

    def test_they_solve_one_problem_where_nobody_names_one(self):
        defaults = {problem_flags.resolved(chapter.program(DIRECTORY), [])[0] for chapter in BUILT}
        self.assertEqual(len(defaults), 1)
        self.assertEqual(str(*defaults).partition(" ")[2].split()[2:], ["D=64", "fp16", "causal"])

    def test_what_they_refuse_is_one_line(self):
        with self.assertRaisesRegex(Failure,
                                    "^heads is 2 and kv-heads is 3: heads must be a multiple of kv-heads$") as raised:
            problem_flags.resolved(BUILT[0].program(DIRECTORY), ["--kv-heads=3", "--heads=2"])
        self.assertEqual(raised.exception.status, 2)


if __name__ == "__main__":
    unittest.main()
