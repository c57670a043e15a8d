"""What a student is told of what the tests have said."""

import json
import unittest
from pathlib import Path
from unittest import mock

import little
from little import CODE, DEBUG, MEASURE, LittleTree

from tools import course
from tools.base import build, substitutes
from tools.course import judging, stages


def failure(words: str) -> str:
    """GoogleTest's output of a kind of test that has these words against the rung."""
    return f"""[ RUN      ] All/Rungs.Pass/inputs
/a/chapter_test.cc:47: Failure
Expected equality of these values:
  GetParam().against(pass, the_chapter().rope)
    Which is: "{words}"
  ""
online forward
[  FAILED  ] All/Rungs.Pass/inputs, where GetParam() = maxima that rise (12 ms)
"""


PASSED = "[  PASSED  ] 1 test.\n"
ELEMENT = "B1_H2_Hkv1_Nq150_Nk170_D64_fp16_causal_growing: o[b=0, h=1, i=70, d=3] is nan, expected 0.25"
RACE = ("/there/05_online/1_online.cu:9: cudaErrorLaunchFailure: kernel online::forward, block (0, 0, 0), thread (3, 0, 0), "
        "at 05_online/1_online.cu:4: race on shared memory")


WRONG_L = {"name": "l", "how": "differs", "b": 0, "h": 1, "row": 3, "keys": [64, 127], "got": "inf", "want": 2.5, "kernel": "forward",
           "block": "(1, 0, 0)", "thread": "(3, 0, 0)", "line": "05_online/1_online.cu:9"}


def where_to_look(flags: str = "") -> list:
    return ["what is the cause? Look what the kernel does:", f"  ./workbook trace 06 --rung=mma{flags}  (checks every access)",
            f"  ./workbook walk 06/mma{flags}  (shows every step)"]


def diagnosis(wrong: "dict | None") -> str:
    """What a program prints that finds this wrong first."""
    found = {"right": ["S", "m"], **({"wrong": wrong} if wrong else {})}
    if wrong and wrong["name"] == "S":
        found["right"] = []
    return json.dumps({"chapter": "05", "rungs": [{"rung": "online", "diagnosis": found}]})


class Judging(LittleTree):
    def setUp(self):
        super().setUp()
        self.ran = []
        built = mock.patch.object(judging._ThisTree, "has_built", return_value=True)
        built.start()
        self.addCleanup(built.stop)

    def judged(self, outputs: dict, exercise: str = "05.rescale", **options) -> judging.Verdict:
        """With programs that print this, {kernels: output}; others pass."""
        def answer(command, environment):
            kernels = "gpu" if "cuda" in Path(command[0]).parts else "stages" if "--diagnose" in command \
                else "traced" if "_traced" in str(command[0]) else "plain"
            self.ran.append((kernels, *command[1:], environment.get("WORKBOOK_PASS")))
            output = outputs.get(kernels, PASSED)
            if isinstance(output, Exception):
                raise output
            return output if isinstance(output, tuple) else (0 if output == PASSED else 1, output)

        with mock.patch.object(build, "ensure_built", side_effect=lambda preset, *_, **__: Path("build") / preset), \
                mock.patch.object(judging, "_answer", side_effect=answer):
            return judging.judge(self.loaded(), self.exercise(exercise), **options)

    def test_right(self):
        self.assertEqual(self.judged({}), judging.Verdict("right"))
        self.assertEqual(self.ran, [("plain", "--gtest_filter=All/Rungs.Pass/inputs", "--gtest_fail_fast", "online forward")])

    def test_the_first_wrong_element_its_tile_and_its_problem(self):
        self.write("05_online/1_online.cu", "constexpr int warps = 4, threads = 32 * warps;\nconstexpr int Br = 16 * warps;  // rows\n"
                   + little.ONLINE)
        self.declare({**CODE, "tile": {"o": "Br"}}, DEBUG, MEASURE)
        verdict = self.judged({"plain": failure(ELEMENT)})
        self.assertEqual(verdict.state, "wrong")
        self.assertEqual(verdict.lines, [
            "o[b=0, h=1, row 70, column 3]: got nan, want 0.25 (in the tile of rows 64 to 127, row 6 of it)",
            "in the problem B=1 H=2 (kv 1) Nq=150 Nk=170 D=64 fp16, causal mask, inputs `growing`",
            "found by the test `inputs`: maxima that rise"])

    def test_a_scale_that_is_not_the_usual_one_is_said(self):
        words = "B1_H1_Hkv1_Nq9_Nk9_D64_bf16_none_spike_last_scale0.3: lse[b=0, h=0, i=8] is inf, expected 2"
        self.assertEqual(self.judged({"plain": failure(words)}).lines[1],
                         "in the problem B=1 H=1 N=9 D=64 bf16, no mask, inputs `spike_last`, scale 0.3")

    def test_an_lse_has_no_column_and_the_tiles_of_o(self):
        self.declare({**CODE, "tile": {"o": 8}}, DEBUG, MEASURE)
        words = "B1_H1_Hkv1_Nq9_Nk9_D64_bf16_none_spread: lse[b=0, h=0, i=8] is inf, expected 2"
        self.assertEqual(self.judged({"plain": failure(words)}).lines[0],
                         "lse[b=0, h=0, row 8]: got inf, want 2 (in the tile of rows 8 to 15, row 0 of it)")

    def test_what_the_engine_saw_comes_before_wrong_numbers(self):
        verdict = self.judged({"plain": failure(ELEMENT), "traced": failure(RACE)})
        self.assertEqual(verdict.lines[0], "kernel online::forward, block (0, 0, 0), thread (3, 0, 0), at 05_online/1_online.cu:4: "
                                           "race on shared memory")
        self.assertEqual(verdict.lines[1], "found by the test `inputs`: maxima that rise")

    def test_what_the_engine_saw_is_said_with_its_problem(self):
        verdict = self.judged({"plain": failure(ELEMENT), "traced": failure(ELEMENT.partition(":")[0] + ": " + RACE)})
        self.assertEqual((verdict.stage, verdict.lines[1:]), (judging.ENGINE, [
            "in the problem B=1 H=2 (kv 1) Nq=150 Nk=170 D=64 fp16, causal mask, inputs `growing`",
            "found by the test `inputs`: maxima that rise"]))
        self.assertEqual([kernels for kernels, *_ in self.ran], ["plain", "traced"])

    def test_wrong_numbers_if_the_engine_saw_nothing(self):
        self.assertIn("got nan", self.judged({"plain": failure(ELEMENT)}).lines[0])
        self.assertEqual([kernels for kernels, *_ in self.ran], ["plain", "traced", "stages"])

    def test_where_it_goes_wrong_first_comes_before_the_result(self):
        verdict = self.judged({"plain": failure(ELEMENT), "stages": (0, diagnosis(WRONG_L))})
        self.assertEqual(verdict.lines, [
            "l[3] of b=0, h=1 is inf and should be 2.5; everything before it is right (S, m, the tiles before)",
            "in the tile of keys 64 to 127, shown by thread (3, 0, 0) of block (1, 0, 0) at 05_online/1_online.cu:9",
            "in the problem B=1 H=2 (kv 1) Nq=150 Nk=170 D=64 fp16, causal mask, inputs `growing`",
            "found by the test `inputs`: maxima that rise"])
        self.assertEqual(self.ran[-1][:-1], (
            "stages", "--diagnose", "--batch=1", "--heads=2", "--kv-heads=1", "--seq-q=150", "--seq-k=170", "--head-dim=64",
            "--dtype=fp16", "--causal", "--inputs=growing", "--rung=online", "--direction=forward"))

    def test_a_problem_has_the_scale_that_its_name_says(self):
        for scale, flags in (("", {}), ("_scale0.3", {"scale": 0.3}), ("_rope_scale2.5", {"scale": 2.5})):
            problem = stages.problem_of_case(f"B1_H2_Hkv1_Nq70_Nk1_D64_fp16_none_loud{scale}: o[b=0] is 1, expected 2")
            self.assertEqual(problem, {"batch": "1", "heads": "2", "kv_heads": "1", "seq_q": "70", "seq_k": "1", "head_dim": "64",
                                       "dtype": "fp16", "causal": False, "inputs": "loud", **flags})

    def test_a_problems_extras_are_said_and_nothing_is_compared_that_has_none(self):
        case = "B1_H2_Hkv2_Nq70_Nk70_D64_fp16_none_spread_window_all_0_softcap3.5_sink_views"
        verdict = self.judged({"plain": failure(f"{case}: o[b=0, h=1, i=7, d=3] is nan, expected 0.25")})
        self.assertEqual(verdict.lines[1], "in the problem B=1 H=2 N=70 D=64 fp16, no mask, inputs `spread`, window -1,0, softcap 3.5, "
                                           "sink, views")
        self.assertEqual([kernels for kernels, *_ in self.ran], ["plain", "traced"])
        self.assertEqual(judging._flags(stages.problem_of_case(case))[7:], [
            "--no-causal", "--inputs=spread", "--window=-1,0", "--sink", "--views", "--softcap=3.5"])
        self.assertEqual(stages.problem_of_case("B1_H2_Hkv2_Nq70_Nk70_D64_bf16_causal_sink: o is 1")["inputs"], "sink")

    def test_a_mistake_that_is_known_gets_its_question(self):
        known = [{"name": "a", "mistake": "m", "right": [], "wrong": [], "seen": r"^l\[3\].* is 7"},
                 {"name": "b", "mistake": "m", "right": [], "wrong": [], "seen": r"^m\[", "sentence": "not m?"},
                 {"name": "c", "mistake": "m", "right": [], "wrong": [], "seen": r"^l\[3\]", "source": "never", "sentence": "not here?"},
                 {"name": "d", "mistake": "m", "right": [], "wrong": [], "seen": r"^l\[3\]", "source": r"^ *l = ", "sentence": "l?"}]
        self.write("common/course/wrong/05.rescale.json", json.dumps(known))
        outputs = {"plain": failure(ELEMENT), "stages": (0, diagnosis(WRONG_L))}
        self.assertEqual(self.judged(outputs).lines[-1], "l?")
        self.assertEqual(self.judged(outputs).stage, "l")
        self.assertIn("found by", self.judged({"plain": failure(ELEMENT)}).lines[-1])
        with mock.patch.object(judging._ThisTree, "explains", False):
            self.assertNotIn("l?", self.judged(outputs).lines)

    def test_what_else_can_be_wrong_first(self):
        for wrong, said in [
                ({"name": "S", "how": "differs", "column": 5, "keys": [0, 63], "got": 0.3}, "S[3, 5] of b=0, h=1 is 0.3 and should be 2.5; the kernel shows nothing before S: look at how S is made"),
                ({"name": "P", "how": "hidden", "column": 5, "got": 0.3}, "P[3, 5] of b=0, h=1 is 0.3 and should be 0: row 3 does not see key 5; "),
                ({"name": "correction", "how": "grows"}, "correction[3] of b=0, h=1 is inf, and a correction is at most 1; "),
                ({"name": "S", "how": "missing", "column": 5, "line": ""}, "no thread block makes S[3, 5] of b=0, h=1, and row 3 sees key 5; what they make is right (")]:
            verdict = self.judged({"plain": failure(ELEMENT), "stages": (0, diagnosis({**WRONG_L, **wrong}))})
            self.assertTrue(verdict.lines[0].startswith(said), verdict.lines[0])

    def test_only_the_result_is_wrong(self):
        verdict = self.judged({"plain": failure(ELEMENT), "stages": (0, diagnosis(None))})
        self.assertIn("got nan", verdict.lines[0])
        self.assertEqual(verdict.lines[1], "S, m: all right, as the kernel shows them; what is made of them is not")

    def test_a_program_that_cannot_say_where(self):
        for answer in ["broken", '{"chapter": ', '{"chapter": "05", "rungs": [{"diagnosis": null}]}', '{"chapter": "05", "rungs": [7]}',
                       diagnosis({"name": "Z"}), judging.DoesNotEnd()]:
            verdict = self.judged({"plain": failure(ELEMENT), "stages": answer if isinstance(answer, Exception) else (0, answer)})
            self.assertIn("got nan", verdict.lines[0])
            self.assertEqual(len(verdict.lines), 3)

    def test_a_workshop_may_not_look_for_it(self):
        with mock.patch.object(judging._ThisTree, "explains", False):
            self.judged({"plain": failure(ELEMENT)})
        self.assertEqual([kernels for kernels, *_ in self.ran], ["plain", "traced"])

    def test_the_engine_that_looks_closer_is_not_built_for_that_alone(self):
        with mock.patch.object(judging._ThisTree, "has_built", return_value=False):
            self.assertIn("got nan", self.judged({"plain": failure(ELEMENT), "traced": failure(RACE)}).lines[0])
            self.assertEqual([kernels for kernels, *_ in self.ran], ["plain", "stages"])
            self.declare({**CODE, "tests": ["inputs", "trace"]}, DEBUG, MEASURE)
            self.assertIn("race", self.judged({"plain": failure(ELEMENT), "traced": failure(RACE)}).lines[0])

    def test_another_exercise_of_the_same_kernel_may_be_the_reason(self):
        lse = {**CODE, "id": "05.lse"}
        self.write("05_online/1_online.cu", little.ONLINE + "// exercise lse: write it\nlse = m + log(l);\n// end lse | lse = 0;\n")
        self.declare(CODE, lse, DEBUG, MEASURE)
        said = ("05.lse, in the same file, is not attempted yet, and the tests judge both together: write it, and check this "
                "one again")
        self.assertNotIn(said, self.judged({"plain": failure(ELEMENT)}).lines)
        course.Learner(self.loaded()).reset(self.exercise("05.lse"))
        self.assertEqual(self.judged({"plain": failure(ELEMENT)}).lines[-1], said)
        self.assertEqual(self.judged({}), judging.Verdict("right"))

    def test_with_the_books_text_of_another_exercise(self):
        workshop = judging.Beside("05.rescale", ["05.lse"], {"05_online/1_online.cu": "text"}, {})
        with mock.patch.object(substitutes, "built_beside", return_value=Path("beside")) as built:
            verdict = self.judged({"plain": failure(ELEMENT)}, workshop=workshop)
            self.assertEqual(verdict.lines[-1], "05.lse, in the same kernels, was judged with the book's text: yours is still open")
            self.assertEqual(self.judged({}, workshop=workshop), judging.Verdict("right"))
        self.assertEqual([call.args for call in built.call_args_list][0],
                         ("cpu", ["05_online_tests"], {"05_online/1_online.cu": "text"}, "05.rescale"))

    def test_traced_kernels_are_compiled_as_grading_does_so_that_both_say_the_same(self):
        mine = {"05_online/1_online.cu": "mine"}
        with mock.patch.object(substitutes, "built_beside", return_value=Path("beside")) as built:
            self.judged({"plain": failure(ELEMENT)}, workshop=judging.Beside("05.rescale", [], {}, {}, mine))
        self.assertEqual([call.args for call in built.call_args_list], [
            ("cpu", [program], mine, "05.rescale", judging.AS_GRADED) for program in ("05_online_traced_tests", "05_online_traced")])

    def test_what_does_not_compile_elsewhere_is_the_books_too(self):
        other, mine = "05_online/2_tiles.cu", "05_online/1_online.cu"
        for broken, calls in ((other, 2), (mine, 1)):
            failed = build.DoesNotBuild("the build failed", [f"{broken}:3: error: x"])
            workshop = judging.Beside("05.rescale", ["05.lse"], {mine: "text"}, {other: "book", "06_flash/1_mma.cu": "book"})
            with mock.patch.object(substitutes, "built_beside", side_effect=[failed, Path("beside")]) as built:
                verdict = self.judged({}, workshop=workshop)
            self.assertEqual(verdict.state, "right" if broken == other else "does not compile")
            self.assertEqual(len(built.call_args_list), calls)
            self.assertEqual(built.call_args.args[2], {mine: "text", **({other: "book"} if broken == other else {})})

    def test_a_kernel_that_no_chapter_has_is_named_in_the_commands_and_compared_with_none(self):
        self.write("common/course/rows/rows.cu", little.MMA)
        self.declare(CODE, {**DEBUG, "file": "common/course/rows/rows.cu", "rung": "rows"}, MEASURE)
        lines = judging._symptom(self.loaded(), self.exercise("06.barrier"), judging.Objection(["wrong"], "o")).lines
        self.assertEqual([line.split("  ")[1] for line in lines[2:]], ["./workbook trace rows --rung=rows", "./workbook walk rows/rows"])

    def test_the_nearest_rung_without_an_open_exercise_is_proposed_to_compare_with(self):
        names = ("first", "open", "mma", "backward", "last")
        self.write("06_flash/attention.cu", "const attention::Chapter chapter = {.rungs = {" + ", ".join(names) + "}};\n")
        for name in names:
            text = f"constinit const attention::Rung {name} = {{.name = \"{name}\", .{'backward' if name == 'backward' else 'forward'} = x}};\n"
            self.write(f"06_flash/{'1_mma' if name == 'mma' else name}.cu", (little.MMA if name == "mma" else "") + text)
        self.write("06_flash/open.cu", self.read("06_flash/open.cu") + little.ONLINE)
        other = {**CODE, "id": "06.rescale", "file": "06_flash/open.cu", "rung": "open"}

        def proposed(**keys) -> list:
            self.declare(CODE, {**DEBUG, **keys}, MEASURE, other)
            lines = judging._symptom(self.loaded(), self.exercise("06.barrier"), judging.Objection(["wrong"], "o")).lines
            return [line for line in lines if "compare" in line]

        self.assertEqual(proposed(), ["  ./workbook compare 06/mma 06/open --diff  (with one that is right: what differs)"])
        course.Learner(self.loaded()).reset(self.exercise("06.rescale"))
        self.assertEqual(proposed(), ["  ./workbook compare 06/mma 06/last --diff  (with one that is right: what differs)"])
        self.assertEqual(proposed(direction="backward"), [])  # there is one such rung, and it is not this one

    def test_nothing_is_explained_to_who_does_not_ask(self):
        self.assertEqual(self.judged({"plain": failure(ELEMENT)}, explain=False).state, "wrong")
        self.assertEqual([kernels for kernels, *_ in self.ran], ["plain"])
        self.assertEqual(self.judged({"traced": failure(RACE)}, "06.barrier", explain=False).state, "wrong")

    def test_an_exercise_about_races_is_always_traced(self):
        self.assertEqual(self.judged({"traced": failure(RACE)}, "06.barrier").state, "wrong")

    def test_not_attempted_builds_nothing(self):
        self.hand_out()
        self.assertEqual(self.judged({}), judging.Verdict("not attempted", ["05_online/1_online.cu:2: correct the sum"]))
        self.assertEqual(self.judged({}, "06.barrier", explain=False).lines, ["06_flash/1_mma.cu has a mistake somewhere"])
        self.assertEqual(self.ran, [])

    def test_what_a_planted_mistake_does_is_shown_before_it_is_mended(self):
        self.hand_out()
        verdict = self.judged({"traced": failure(RACE)}, "06.barrier")
        self.assertEqual((verdict.state, verdict.lines), ("not attempted", [
            "06_flash/1_mma.cu has a mistake somewhere", RACE.partition("cudaErrorLaunchFailure: ")[2],
            "found by the test `inputs`: maxima that rise", *where_to_look()]))

    def test_where_the_planted_mistake_only_costs_time_what_the_engine_sees_is_said(self):
        limit = {"problem": {}, "kernel": "", "counts": {"global_load sectors": 1}}
        self.declare(CODE, {**DEBUG, "tests": ["inputs", "trace"], "limits": [limit]}, MEASURE)
        self.write("06_flash/1_mma.cu", little.MMA + "more();\n")
        self.assertIn("race on shared memory", self.judged({"traced": failure(RACE)}, "06.barrier").lines[0])

    def test_of_a_mistake_that_is_to_be_found_no_stage_is_named(self):
        self.declare(CODE, {**DEBUG, "tests": ["inputs", "trace"]}, MEASURE)
        self.write("06_flash/1_mma.cu", little.MMA + "more();\n")
        verdict = self.judged({"plain": failure(ELEMENT), "traced": failure(RACE)}, "06.barrier")
        self.assertIn("got nan", verdict.lines[0])
        flags = " --batch=1 --heads=2 --kv-heads=1 --seq-q=150 --seq-k=170 --head-dim=64 --dtype=fp16 --causal"
        self.assertEqual(verdict.lines[-4:], [*where_to_look(flags), "  (Both have the usual inputs, not `growing`: with "
                                              "these the results may be right.)"])
        self.assertEqual([kernels for kernels, *_ in self.ran], ["plain"])

    def test_a_file_that_does_not_compile(self):
        with mock.patch.object(build, "ensure_built", side_effect=build.DoesNotBuild("the build failed", ["a.cu:1: error: x", "more"])):
            verdict = judging.judge(self.loaded(), self.exercise("05.rescale"))
        self.assertEqual(verdict, judging.Verdict("does not compile", ["a.cu:1: error: x"]))

    def test_a_program_that_does_not_end_or_breaks_down(self):
        verdict = self.judged({"plain": judging.DoesNotEnd()})
        self.assertEqual((verdict.state, len(self.ran)), ("wrong", 1))
        self.assertIn("it has not ended after", verdict.lines[0])
        verdict = self.judged({"plain": (-11, "[ RUN      ] a test\n")})
        self.assertEqual((verdict.state, verdict.lines), ("wrong", ["the tests inputs was killed by SIGSEGV: [ RUN      ] a test"]))

    def test_fewer_tests_than_asked_for_are_no_pass(self):
        self.assertEqual(self.judged({"plain": "[  PASSED  ] 0 tests.\n"}).state, "wrong")

    def test_a_gpu_is_needed_and_not_asked_for(self):
        self.declare({**CODE, "needs_gpu": True}, DEBUG, MEASURE)
        self.assertEqual(self.judged({}).state, "not run")
        self.assertEqual(self.judged({}, gpu=True).state, "right")
        self.assertEqual([kernels for kernels, *_ in self.ran], ["plain", "gpu"])

    def test_right_results_that_cost_too_much(self):
        limit = {"problem": {"seq_q": 70, "causal": False}, "kernel": "scores", "counts": {"global_load sectors": [2, 1000], "shuffles": 5, "others": 0}}
        self.declare({**CODE, "limits": [limit]}, DEBUG, MEASURE)
        counted = '{"chapter": "05", "rungs": [{"rung": "online", "launches": [{"kernel": "a::%s", "totals": {%s}, "shuffles": 5}]}]}'
        for kernel, totals, expected in [("scores", '"global_load": {"sectors": 1000}', None),
                                         ("scores", '"global_load": {"sectors": 1001}', "1,001 where 1,000 are enough"),
                                         ("scores", "", "global_load sectors of the kernel scores: 0 where it takes 2: the work is done in another way"),
                                         ("scores", '"global_load": {"sectors": 2}, "shared_load": {"wavefronts": 7}',
                                          "shared_load wavefronts of the kernel scores: 7 where 0 are enough"),
                                         ("output", '"global_load": {"sectors": 2}', "the engine has seen no launch of the kernel scores")]:
            with mock.patch.object(judging, "_of_the_suite", return_value=[]), mock.patch.object(build, "ensure_built", return_value=Path()), \
                    mock.patch.object(judging, "_answer", return_value=(0, counted % (kernel, totals))):
                verdict = judging.judge(self.loaded(), self.exercise("05.rescale"))
            self.assertEqual(verdict.state, "wrong" if expected else "right")
            if expected:
                self.assertIn(expected, verdict.lines[0])
                self.assertIn("./workbook trace 05 --rung=online --seq-q=70 --no-causal", verdict.lines[1])

    def test_atomic_functions_load_and_store(self):
        launches = [("a::scores", {"global_load sectors": 1, "global_load requests": 1, "global_atomic sectors": 40, "shared_atomic sectors": 7}),
                    ("a::scores", {"global_atomic sectors": 2}), ("a::output", {"global_atomic sectors": 100})]
        for count, number in [("global_load sectors", 43), ("global_store sectors", 42), ("global_load requests", 1),
                              ("shared_load sectors", 7), ("global_atomic sectors", 42), ("bulk_load sectors", None)]:
            with self.subTest(count=count):
                self.assertEqual(judging.sum_of(launches, count, "scores"), number)


if __name__ == "__main__":
    unittest.main()
