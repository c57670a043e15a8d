"""./workbook dev report: tables, numbers and pictures are what was measured; and what is not is noticed."""

import contextlib
import io
import tempfile
import unittest
from dataclasses import asdict
from pathlib import Path
from unittest import mock

from tests.tiers import at_length
from tools import cli
from tools.base import RESULTS, ROOT, NotUnderstood, evaluate, pythons
from tools.commands import report as command
from tools.record import (
    Counts,
    Missing,
    Problem,
    Quantities,
    Record,
    SecondMeasurement,
    repeated,
    repeated_times,
    result_files,
)
from tools.record.measurements import REPEATED_TIMES
from tools.showing import Tables, lesson_numbers, pictures
from tools.showing.lesson_tables import NOT_YET


def ladder_problem(n):
    return Problem(2, 16, 16, n, n, 64, "fp16", True)


def sweep_problem(n, head_dim, mask, dtype):
    return Problem(16384 // n, 2048 // head_dim, 2048 // head_dim, n, n, head_dim, dtype, mask == "causal")


def memory_problem(n):
    return Problem(1, 8, 8, n, n, 64, "fp16", True)


def flops(problem, direction):
    full = 4 * problem.batch * problem.heads * problem.seq_q * problem.seq_k * problem.head_dim
    return full * (0.5 if problem.causal else 1) * (2.5 if direction == "backward" else 1)


def run(step, problem, seconds, direction="fwd", peak=None):
    """What Google Benchmark says of it: two repetitions and their median."""
    label = f"B{problem.batch}_H{problem.heads}_N{problem.seq_q}_D{problem.head_dim}_{problem.dtype}_causal"
    name = f"{step}/{direction}/{label}/iterations:2/repeats:2/manual_time"
    times = [{"name": name, "run_type": "iteration", "real_time": seconds * 1e3 * factor, "time_unit": "ms"}
             for factor in (0.5, 1.5)]
    return [*times, {"name": name + "_median", "run_type": "aggregate", "aggregate_name": "median", "real_time": seconds * 1e3,
                     "time_unit": "ms", "FLOP/s": flops(problem, "forward") / seconds, "peak_bytes": peak}]


def point(problem, rope=False, direction="forward", **seconds):
    kinds = {name: "chapter" if name[0].isdigit() or name == "default" else "peer" for name in seconds}
    return {"problem": asdict(problem), "rope": rope, "direction": direction,
            "results": [{"name": name.replace("__", "/"), "kind": kinds[name],
                         **({"seconds": {"median": value, "p10": value}, "flop_rate": flops(problem, direction) / value}
                            if value else {"skipped": "slow"})} for name, value in seconds.items()]}


def write_measurement(directory: Path, times=1.0) -> None:
    """Chapters 02 (rung only) and 06 (mma, final); 06 final takes 1 ms at N = 512 and 8 ms at 4096; 02 ten times as long."""
    def piece(name, **content):
        machine = {"gpu": "G", "driver": 1, "cuda": "13.0", "sm_clock_max_mhz": 1980.0, "power_limit_w": 700.0}
        result_files.write(directory / f"{name}.json", {"context": {"commit": "abc", "machine": machine, "torch": "2"}, **content})

    def ladder(step, factor):
        return [one for n in (512, 4096) for one in run(step, ladder_problem(n), n / 512 * 1e-3 * factor * times)]

    piece("ladder-02_only", benchmarks=ladder("02_only/only", 10))
    piece("ladder-06_two", benchmarks=ladder("06_two/mma", 2) + ladder("06_two/final", 1))
    piece("memory", benchmarks=[one for n, size in ((2048, 1e6), (32768, 16e6))
                                for one in run("06_two/final", memory_problem(n), 1, peak=size)])
    piece("peers-ladder", ceilings={"matmul": {"flop_rate": 700e12}, "copy": {"byte_rate": 4e12}},
          points=[point(ladder_problem(4096), FLASH=12e-3, CUDNN=4e-3, **{"06_two__final": 8e-3 * times}, **{"02_only": None})])
    piece("sweep-fp16-forward", points=[point(sweep_problem(n, 64, "full", "fp16"), FLASH=2e-3, **{"06_two": 1e-3 / k})
                                        for n, k in ((512, 1), (1024, 4))])
    piece("profile-06_two", rungs=[{"chapter": "06_two", "rung": "final", "direction": "forward", "flops": 100.0, "dram_bytes": 50}])


def write_second_measurement(directory: Path, times: float) -> None:
    """Of what write_measurement writes, as ./workbook dev measure --again keeps it."""
    with tempfile.TemporaryDirectory() as scratch:
        write_measurement(Path(scratch), times)
        for path in Path(scratch).iterdir():
            if path.stem not in ("memory", "profile-06_two"):
                repeated_times.keep(directory, path.stem, result_files.read(path))


def write_experiments(directory: Path) -> None:
    """As ./workbook dev machine keeps them: two repetitions and their median; a latency that grows from 8 KiB to 1 GiB."""
    def runs(name, **counters):
        whole = f"{name}/iterations:1/repeats:2/manual_time"
        return [{"name": whole, "run_type": "iteration", "repetition_index": i, "real_time": 9.0, "time_unit": "ns"} for i in (0, 1)] + [
            {"name": f"{whole}_median", "run_type": "aggregate", "aggregate_name": "median", "real_time": 1.0, "time_unit": "ns", **counters},
            {"name": f"{whole}_cv", "run_type": "aggregate", "aggregate_name": "cv", "real_time": 0.01, "time_unit": "ns",
             **{name: 0.01 for name in counters}}]

    found = runs("latency/registers", ns=2.0, cycles=4.0) + runs("latency/shared", ns=15.0, cycles=30.0)
    for size, ns in ((8192, 19.0), (12288, 19.0), (16384, 20.0), (2 << 20, 200.0), (1 << 30, 600.0)):
        found += runs(f"latency/global/{size}", ns=ns, cycles=2 * ns, bytes=size)
    for level, rate in (("registers", 400e12), ("shared", 32e12), ("L2", 5e12), ("DRAM", 4e12)):  # L1 is missing
        found += runs(f"bandwidth/{level}", **{"bytes/s": rate})
    for way, ms in (("all_up", 0.5), ("by_lane", 1.0)):
        found += runs(f"branch/{way}", ms=ms)
    found += runs("sum/fp16/4096", error=0.25) + runs("sum/fp32/4096", error=1e-6) + runs("rate/fp16", **{"FLOP/s": 6e14})
    found += runs("split/queries", ms=1.0, shared_bytes=24576.0, **{"FLOP/s": 2e14})
    sizes = {"multiprocessors": "100", "registers_of_multiprocessor": "65536", "shared_bytes_of_multiprocessor": "233472",
             "l2_bytes": "52428800", "dram_bytes": "85899345920", "sm_clock_max_mhz": "2000"}
    result_files.write(directory / "machine.json", {"context": {"machine": {"gpu": "G"}, **sizes}, "benchmarks": found})


def write_counts(directory: Path) -> None:
    """Chapter 06, rungs mma (two kernels) and final; 07, a backward alone; 08, both."""
    load, store = {"grid": [4, 1, 1], "global_load sectors": 40, "global_load requests": 10}, {"global_store sectors": 2}
    result_files.write(directory / "06_two.json", {"mma: ns::first<__half, 64>, launch 1": load, "mma: ns::second, launch 2": load | store,
                                              "final: ns::only, launch 1": {"global_load sectors": 16}})
    result_files.write(directory / "07_back.json", {"atomic: ns::gradients, launch 1": store})
    result_files.write(directory / "08_both.json", {"a: ns::k, launch 1": load, "a, backward: ns::g, launch 1": store})


class Measured(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        self.directory = self.root / "common" / "results" / "g"
        write_measurement(self.directory)
        self.record = Record(self.directory)
        write_counts(self.root)

    def value(self, text):
        return evaluate(text, Quantities(self.record, Counts(self.root)))

    def rewritten(self, text):
        return lesson_numbers.rewritten(text, self.record)


class Numbers(Measured):
    def test_quantities(self):
        for text, expected in [
            ('ms("06", 512)', 1), ('ms("06/mma", 512)', 2), ('gain("02", "06", 4096)', 10), ('gain("06/mma", "06", 512) * 2', 4),
            ('peer_ms("FLASH", 4096)', 12), ('against("06", "FLASH", 4096)', 1.5), ('against("06", "CUDNN", 4096)', 0.5),
            ('mean_against("06")', 4), ('mean_against("06", "06/final")', 1), ('least_against("06")', 2), ('points_against("06")', 2),
            ('most_against("06", mask="full")', 8),
            ('device_bytes("06", 32768) / device_bytes("06", 2048)', 16), ('intensity("06")', 2), ('matmul_tflops()', 700),
            ('entry("memory.json", "commit", "context")', "abc"), ("-(1 + 2) * 3 / 2 - 0.5", -5),
        ]:
            found = self.value(text)
            self.assertEqual(found, expected) if isinstance(expected, str) else self.assertAlmostEqual(found, expected, msg=text)

    def test_what_the_engine_counts(self):
        for text, expected in [
            ('counted("06/mma", "global_load sectors")', 80), ('counted("06/mma", "global_load sectors", "first")', 40),
            ('counted("06/mma", "global_store sectors")', 2), ('counted("06", "global_load sectors")', 16),
            ('counted("06_two/mma", "global_load sectors") / counted("06/mma", "global_load requests")', 4),
            ('counted("07", "global_store sectors")', 2), ('counted("08", "global_load sectors")', 40),
            ('counted("08/a", "global_store sectors", direction="backward")', 2),
        ]:
            self.assertEqual(self.value(text), expected, text)
        for text, expected in [('counted("05", "barriers")', "05 has not been counted: ./workbook dev counts 05 does"),
                               ('counted("06/swizzle", "barriers")', "06/swizzle has not been counted"),
                               ('counted("06/mma", "grid")', r"06/mma counts no grid \(it counts global_load requests, global_l"),
                               ('counted("06/mma", "global_store sectors", "first")', "counts no global_store sectors in first")]:
            with self.assertRaisesRegex(Missing, expected, msg=text):
                self.value(text)

    def test_few_queries_and_many_keys(self):
        one, four, late = (Problem(1, 32, 8, queries, 8192, 128, "fp16", False) for queries in (1, 4, 16))
        copy = {"copy": {"byte_rate": 4e12}}  # 33.5 MB of K and V: 8.4 us
        result_files.write(self.directory / "decode-fp16.json", {"ceilings": copy, "points": [
            point(one, FLASH=2e-5, CUDNN=3e-5, **{"11_few__chosen": 1e-5}), point(four, FLASH=9e-5, CUDNN=8e-5, **{"11_few__chosen": 1e-5}),
            point(late, FLASH=2e-5, CUDNN=None, **{"11_few__chosen": 1e-5})]})
        result_files.write(self.directory / "decode-bf16.json", {"ceilings": copy, "points": [
            point(Problem(1, 32, 32, 1, 8192, 128, "bf16", False), FLASH=3e-5, CUDNN=2e-5, **{"11_few__chosen": 3.4e-5})]})
        self.record = Record(self.directory)
        for text, expected in [('decoding("points")', 3), ('decoding("ahead")', 2),  # one point has no second peer
                               ('decoding("mean", queries=4)', 8), ('decoding("least", "11/chosen")', 2 / 3.4),
                               ('decoding("at_the_floor")', 1), ('decoding("least_of_floor")', 0.8388608),
                               ('decoding("points", floor_from_us=10)', 1), ('decoding("points", floor_to_us=10)', 2)]:
            self.assertAlmostEqual(self.value(text), expected, msg=text)
        for text in ('decoding("points", "06")', 'decoding("mean", floor_from_us=1000)'):
            with self.assertRaises(Missing, msg=text):
                self.value(text)
        with self.assertRaises(NotUnderstood):
            self.value('decoding("median")')

    def test_where_nsight_compute_agrees(self):
        counters = {"global load sectors": {"verdict": "equal"}, "dram bytes": {"verdict": "beside"}}
        result_files.write(self.directory / "engine-and-ncu.json", {"launches": [{"chapter": "06_two", "counters": counters}] * 2})
        self.record = Record(self.directory)
        self.assertEqual([self.value(f'agreed("06", "{verdict}")') for verdict in ("equal", "beside", "different")], [2, 2, 0])
        with self.assertRaises(Missing):
            self.value('agreed("02", "equal")')

    def test_arithmetic(self):
        for text, expected in [("134217728 / 32", 4194304), ("sqrt(141e9 / 128)", 33189.8), ("floor(65536 / (256 * 56))", 4),
                               ("ceil(1000 / 128) * 2", 16), ("exp(log(5) - 1) * exp(1)", 5), ("min(3, 2) + max(1, 4, 2)", 6)]:
            self.assertAlmostEqual(self.value(text), expected, delta=0.1, msg=text)
        for text in ("1 / 0", "sqrt(-1)", "exp(1000)", "log(0)", "floor(1e999)", "sqrt('2')", "min()"):
            with self.assertRaises(NotUnderstood, msg=text):
                self.value(text)

    def test_what_is_not_there_is_said(self):
        for text, error in [('ms("06", 1024)', Missing), ('ms("07", 512)', Missing), ('ms("06/none", 512)', Missing),
                            ('entry("x.json", "a")', Missing)]:
            with self.assertRaises(error, msg=text):
                self.value(text)

    def test_nothing_else_is_evaluated(self):
        for text in ("open('x')", "_record", "ms.__class__", "().x", "ms('06', 512).real", "1 if 2 else 3", "2 ** 9", "ms()", "1 +",
                     "_row('a')", "[1]"):
            with self.assertRaises(NotUnderstood, msg=text):
                self.value(text)

    def test_a_right_number_stays(self):
        for text in ('takes 1.0 ms<!-- = ms("06", 512) -->.', 'takes 1 ms<!-- = ms("06", 512) -->, 10.00×<!-- = gain("02", "06", 512) -->',
                     'in all 16 000 000 bytes<!-- = device_bytes("06", 32768) -->', '**8.0**<!-- = ms("06", 4096) -->',
                     "67,108,864 bytes<!-- = 4 * 16777216 --> of 512,1024<!-- = 1024 -->", "1.6e-2<!-- = 2 / 128 -->, 1.6e-02<!-- = 2 / 128 -->",
                     "2e1<!-- = 20 -->", '– ms<!-- = ms("06", 1024) -->, 10–20<!-- = 20 -->'):
            self.assertEqual(self.rewritten(text), (text, []))

    def test_what_has_been_measured_since_is_written(self):
        text, (difference,) = self.rewritten('In – ms<!-- = ms("06", 4096) -->.')
        self.assertEqual((text, difference.what), ('In 8.00 ms<!-- = ms("06", 4096) -->.', '– should be 8.00: ms("06", 4096)'))
        for before, after in [('| 3 | –<!-- = ms("06", 4096) --> |', '| 3 | 8.00<!-- = ms("06", 4096) --> |'),
                              ('| 3 | –<!-- = ms("06", 1024) --> |', '| 3 | –<!-- = ms("06", 1024) --> |')]:
            self.assertEqual(self.rewritten(before)[0], after)  # the dash, and not the number in the cell before

    def test_a_number_is_mended_as_it_was_shown(self):
        text, differences = self.rewritten("1,000<!-- = 65536 -->, 1 000<!-- = 65536 -->, 5.0e-3<!-- = 0.25 -->, −1<!-- = -2 -->")
        self.assertEqual(text, "65,536<!-- = 65536 -->, 65 536<!-- = 65536 -->, 2.5e-1<!-- = 0.25 -->, −2<!-- = -2 -->")
        self.assertEqual(len(differences), 4)

    def test_a_wrong_number_is_found_and_mended(self):
        text, differences = self.rewritten('One\nis 1.5×<!-- = gain("06/mma", "06", 512) --> and 9 ms<!-- = ms("06", 4096) -->')
        self.assertEqual(text, 'One\nis 2.0×<!-- = gain("06/mma", "06", 512) --> and 8 ms<!-- = ms("06", 4096) -->')
        self.assertEqual([(one.line, one.what) for one in differences],
                         [(2, '1.5 should be 2.0: gain("06/mma", "06", 512)'), (2, '9 should be 8: ms("06", 4096)')])

    def test_what_cannot_be_compared_is_a_difference(self):
        for text, expected in [('5<!-- = ms("06", 1024) -->', "is not in ladder"), ("5<!-- = no() -->", "there is no no"),
                               ('fast<!-- = ms("06", 512) -->', "no number stands before"),
                               ('5<!-- = entry("memory.json", "commit", "context") -->', "is no number")]:
            same, (difference,) = self.rewritten(text)
            self.assertEqual(same, text)
            self.assertIn(expected, difference.what)

    def test_examples_in_code_are_left_alone(self):
        text = '```\n7<!-- = ms("06", 512) -->\n<!-- report: no() -->\n```\n'
        indented = '1. a\n\n   ```\n   7<!-- = ms("06", 512) -->\n   ```\n'
        for one in (text, indented):
            self.assertEqual(self.rewritten(one), (one, []))


class Names(Measured):
    """numbers.json beside a lesson."""

    FILE = '{\n "time": "ms(\'06\', 512)",\n "faster": "gain(\'02\', \'06\', 4096)"\n}\n'
    PAGE = "A\ntakes 1.0 ms<!-- time -->,\n10×<!-- faster --> or 10.0×<!-- faster --> as fast, 4<!-- = 2 * 2 -->\n"

    def said(self, page=PAGE, file=FILE):
        (self.root / "06_two").mkdir(exist_ok=True)
        self.page = self.root / "06_two" / "README.md"
        self.page.write_text(page)
        (self.root / "06_two" / "numbers.json").write_text(file)
        return [str(one) for one in lesson_numbers.check(self.root, self.record)]

    def test_a_number_is_what_its_entry_says(self):
        self.assertEqual(self.said(), [])
        self.assertEqual(self.said(page=self.PAGE.replace("10.0×", "11.0×")),
                         ["06_two/README.md:3: 11.0 should be 10.0: faster = gain('02', '06', 4096)"])
        changed, left = lesson_numbers.rewrite(self.root, self.record)
        self.assertEqual((changed, left, self.page.read_text()), ([self.page], [], self.PAGE))

    def test_what_has_been_measured_since_is_written(self):
        self.said(page=self.PAGE.replace("1.0 ms", "– ms"))
        lesson_numbers.rewrite(self.root, self.record)
        self.assertEqual(self.page.read_text(), self.PAGE.replace("1.0 ms", "1.00 ms"))

    def test_names_and_entries_belong_together(self):
        for page, file, expected in [
                (self.PAGE + "1<!-- tme -->", self.FILE, "README.md:4: tme is not in numbers.json"),
                (self.PAGE + "1<!-- two-words -->", self.FILE, "README.md:4: two-words is not in numbers.json"),
                (self.PAGE + "One<!-- time -->", self.FILE, "README.md:4: no number stands before <!-- time -->"),
                (self.PAGE.replace("<!-- time -->", ""), self.FILE,
                 "numbers.json:2: no page of this folder uses time")]:
            self.assertEqual(self.said(page, file), [f"06_two/{expected}"])
            left = lesson_numbers.rewrite(self.root, self.record)[1]
            self.assertEqual([str(one) for one in left], [f"06_two/{expected}"])

    def test_a_table_may_have_a_name(self):
        file = self.FILE.replace("\n}", ',\n "rungs": "times(\'forward\', \'06\')"\n}')
        page = self.PAGE + "\n<!-- report: rungs -->\n<!-- /report -->\n"
        self.assertEqual(self.said(page, file),
                         ["06_two/README.md:5: the table rungs is not what was measured"])
        self.assertEqual(lesson_numbers.rewrite(self.root, self.record)[1], [])
        self.assertIn("<!-- report: rungs -->\n\n| ms |", self.page.read_text())
        self.assertEqual(self.said(self.page.read_text(), file), [])
        self.assertEqual(self.said(page), ["06_two/README.md:5: rungs is not in numbers.json"])

    def test_what_is_wrong_in_the_file_is_named(self):
        def with_entry(name, expression='"2 * 2"'):
            return self.PAGE + f"4<!-- {name} -->", self.FILE.replace("\n}", f',\n "{name}": {expression}\n}}')

        self.assertEqual(self.said(*with_entry("n" * 40)), [])
        for (page, file), expected in [
                (with_entry("n" * 41), f"numbers.json:4: the name {'n' * 41} has 41 characters: 40 at most"),
                (with_entry("Four"),
                 "numbers.json:4: the name Four must be small letters, digits and _, and begin with a letter"),
                (with_entry("faster", '"3"'), "numbers.json:4: faster stands here twice"),
                (with_entry("again", '"ms(\'06\', 512)"'),
                 "numbers.json:4: again and time are the same number: one name is enough"),
                (with_entry("four", "4"), "numbers.json:4: four must be an expression in quotes")]:
            self.assertIn(f"06_two/{expected}", self.said(page, file))
        for file, expected in [(self.FILE.replace('",', '"'), "numbers.json:3: is no JSON: Expecting ',' delimiter"),
                               ("[]", "numbers.json:1: must be a JSON object, {name: expression}")]:
            self.assertIn(f"06_two/{expected}", self.said(file=file)[-1])
        (said,) = self.said(*with_entry("four", '"no()"'))
        self.assertEqual(said.partition(" (")[0], "06_two/README.md:4: there is no no")

    def test_the_pages_of_a_folder_share_their_names(self):
        self.said(page="1<!-- time -->")
        (self.root / "06_two" / "more.md").write_text("10<!-- faster -->")
        self.assertEqual(lesson_numbers.check(self.root, self.record), [])

    def test_a_second_measurement_is_compared_by_name(self):
        self.said()
        write_second_measurement(self.directory, times=1.25)
        found = lesson_numbers.repeated(self.root, self.record)
        self.assertEqual([(one.expression, round(one.apart)) for one in found],
                         [("ms('06', 512)", 25), ("gain('02', '06', 4096)", 0), ("gain('02', '06', 4096)", 0)])


ANSWERED = """# 05
1. Not a question.
## Questions

1. How many?
   And how?

   <details><summary>Answer</summary>

   Two<!-- nothing -->: {answer}.

   </details>
2. **Change the kernel.** What now?

   <details><summary>Answer</summary>

   ```
   ./workbook trace 05
   ```

   </details>

Try more.

## Next
3. Not a question either.
"""


class Answers(unittest.TestCase):
    def missing(self, text):
        return [str(one) for one in lesson_numbers.unanswered(text, Path("05/README.md"))]

    def test_an_answer_calculates_or_names_a_command(self):
        for answer in ("4<!-- = 2 * 2 -->", "`./workbook test 05` shows it", "`SIMT_ORDER=reverse build/cpu/05/05 --check`",
                       "``ncu --section SpeedOfLight build/cuda/01_naive/01_naive``"):
            self.assertEqual(self.missing(ANSWERED.format(answer=answer)), [], answer)
        for answer in ("obviously", "`x` and what the workbook says", "`Br` and then ./workbook test"):
            self.assertEqual(self.missing(ANSWERED.format(answer=answer)),
                             ["05/README.md:5: question 1 has an answer without a command or a calculation"], answer)

    def test_an_answer_is_folded_away_below_its_question(self):
        right = ANSWERED.format(answer="`./workbook test`")
        for wrong in (right.replace("   <details>", "<details>", 1), right.replace("Answer</summary>\n\n", "Answer</summary>\n", 1),
                      right.replace("   </details>\n2.", "2."), right.replace("Answer<", "Solution<", 1)):
            self.assertNotEqual(wrong, right)
            (said,) = self.missing(wrong)
            self.assertRegex(said, "^05/README.md:5: question 1 has no answer, folded away as ")
        self.assertEqual(len(self.missing("## Questions\n\n1. a\n2. b\n   c\n3. d")), 3)


class InTables(Measured):
    def test_the_ladder(self):
        lines = Tables(self.record).ladder("forward").split("\n")
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        self.assertEqual([row[0] for row in cells[2:]], ["`02_only`", "`06_two`", "FlashAttention-2", "cuDNN"])
        self.assertEqual(cells[2][1:], ["80.0", "", "", "–", "0.12%", "0.150×", "0.0500×"])  # too slow beside the peers: by the ladder
        self.assertEqual(cells[3][1:], ["8.00", "10.0×", "10.0×", "50 B", "1.2%", "1.50×", "0.500×"])
        self.assertEqual({len(row) for row in cells}, {8})

    def test_a_step_is_compared_with_the_one_before_that_has_no_rope(self):
        result_files.write(self.directory / "ladder-07_rotated.json", {"benchmarks": [
            {**one, "name": one["name"].replace("_causal/", "_causal_rope/")} for one in run("07_rotated/only", ladder_problem(4096), 9e-3)]})
        result_files.write(self.directory / "ladder-08_late.json", {"benchmarks": run("08_late/only", ladder_problem(4096), 4e-3)})
        gains = {line.split("|")[1].strip(): line.split("|")[3].strip() for line in Tables(Record(self.directory)).ladder("forward").split("\n")}
        self.assertEqual((gains["`07_rotated`, with RoPE"], gains["`08_late`"]), ("0.889×", "2.00×"))
        peers = result_files.read(self.directory / "peers-ladder.json")
        peers["points"] += [point(ladder_problem(4096), rope=True, **{"07_rotated": 9e-3})]
        peers["points"][0]["results"] += point(ladder_problem(4096), **{"08_late": 4e-3})["results"]
        result_files.write(self.directory / "peers-ladder.json", peers)
        (panel,) = pictures.all_pictures(Record(self.directory))["rope"]["panels"]
        self.assertEqual([(one["name"], one["x"], one["y"]) for one in panel["series"]], [("only", [4096], [1000.0])])  # over 06, not 08

    def test_what_warps_wait_for(self):
        stalled = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
        launch = {"gpu__time_duration.sum": 2e6, "smsp__inst_executed.sum": 3e9, stalled.format("barrier"): 1.5}
        result_files.write(self.directory / "profile-06_two.json", {"rungs": [
            {"rung": rung, "direction": "forward", "launches": [{"kernel": f"void n::{name}<__half>(T *)", **launch} for name in names]}
            for rung, names in (("mma", ["scores", "output"]), ("final", ["forward"]))]})
        lines = Tables(Record(self.directory)).waits("06/mma", "06", "07").splitlines()
        self.assertEqual(lines[2:], ["| `06/mma`, scores | 2.00 | 3.00 | – | – | – | – | – | 1.50 | – | – |",
                                     "| `06/mma`, output | 2.00 | 3.00 | – | – | – | – | – | 1.50 | – | – |",
                                     "| `06` | 2.00 | 3.00 | – | – | – | – | – | 1.50 | – | – |",
                                     "| `07` | – | – | – | – | – | – | – | – | – | – |"])
        for text, expected in [('profiled("06", "smsp__inst_executed.sum")', 3e9),
                               ('profiled("06/mma", "gpu__time_duration.sum", "output")', 2e6)]:
            self.assertEqual(evaluate(text, Quantities(Record(self.directory))), expected, text)
        for text, expected in [('profiled("06/mma", "gpu__time_duration.sum")', "^the profile of 06/mma has 2 kernels$"),
                               ('profiled("06", "dram__bytes_read.sum")', "^the profile of 06 has no dram__bytes_read.sum$")]:
            with self.assertRaisesRegex(Missing, expected, msg=text):
                evaluate(text, Quantities(Record(self.directory)))

    def test_each_mask_by_itself(self):
        piece = self.directory / "sweep-fp16-forward.json"
        content = result_files.read(piece)
        content["points"] += [point(sweep_problem(512, 64, "causal", "fp16"), FLASH=3e-3, **{"06_two": 1e-3, "06_two__mma": None})]
        result_files.write(piece, content)
        lines = Tables(Record(self.directory)).against("forward").split("\n")[2:]
        self.assertEqual(lines, ["| `06_two`, no mask | 4.00× (2.00–8.00) | – |",
                                 "| `06_two`, causal | 3.00× (3.00–3.00) | – |"])
        with self.assertRaisesRegex(Missing, "^FLASH, forward, seq_q=512 is 2 times in sweep-fp16-forward$"):
            Record(self.directory).row("sweep-fp16-forward", "FLASH", "forward", seq_q=512)
        content["points"] += [point(sweep_problem(1024, 64, "causal", "fp16"), FLASH=3e-3, **{"06_two": None})]
        result_files.write(piece, content)  # not at every point
        self.assertEqual(Tables(Record(self.directory)).against("forward").split("\n")[2:], lines[:1])
        content["points"][0]["results"][-1]["seconds"]["p10"] = 1e-4  # not steady: its other points count
        result_files.write(piece, content)
        self.assertEqual(Tables(Record(self.directory)).against("forward").split("\n")[2:], ["| `06_two`, no mask | 8.00× (8.00–8.00) | – |"])

    def test_rates_of_the_sweep(self):
        table = Tables(self.record).sweep("forward", "FLASH", "CUDNN", "06", mask="full", head_dim=64).split("\n")
        self.assertEqual(table[0], "|  | FlashAttention-2 | cuDNN | `final` | last against FlashAttention-2 |")
        self.assertEqual(table[2:4], ["| full, D = 64, N = 512 | 34.4 | – | 68.7 | 2.00× |", "| full, D = 64, N = 1024 | 68.7 | – | 550 | 8.00× |"])
        self.assertEqual(len(table), 2 + 6)
        self.assertEqual(Tables(self.record).sweep("forward", "FLASH", "CUDNN", "06/final", mask="full", head_dim=64).split("\n"), table)
        self.assertEqual(len(Tables(self.record).sweep("forward", "FLASH", "06").split("\n")), 2 + 24)
        self.assertEqual(len(Tables(self.record).sweep("forward", "FLASH", "06", longest=2048).split("\n")), 2 + 12)
        with self.assertRaises(Missing):
            Tables(self.record).sweep("forward", "FLASH", "06/other")

    def test_few_queries_and_many_keys_are_not_the_ladder(self):
        few = Problem(1, 32, 8, 1, 8192, 128, "fp16", False)
        result_files.write(self.directory / "ladder-11_few.json", {"benchmarks": [
            one for rung, seconds in (("whole", 3e-3), ("chosen", 1e-3)) for one in run(f"11_few/{rung}", ladder_problem(512), seconds)]})
        self.assertEqual(Record(self.directory).results("forward"), ["02_only/only", "06_two/final", "11_few/chosen"])
        result_files.write(self.directory / "decode-fp16.json", {"points": [point(few, FLASH=2e-5, **{"11_few": 1e-5, "11_few__whole": 3e-5})]})
        record = Record(self.directory)
        self.assertEqual(record.results("forward"), ["02_only/only", "06_two/final"])
        self.assertEqual(record.rungs("11", "forward", "decode-fp16"), ["11_few/chosen", "11_few/whole"])
        self.assertEqual(evaluate('ms("11", 512)', Quantities(record)), 1)
        self.assertEqual(record.row("decode-fp16", "11_few/chosen", "forward", seq_q=1).seconds, 1e-5)

    def test_more_peers_are_shown_where_they_were_there(self):
        self.assertNotIn("deterministic", Tables(self.record).ladder("forward"))
        piece = self.directory / "peers-ladder.json"
        content = result_files.read(piece)
        content["points"] += [point(ladder_problem(n), direction="backward", FLASH=4e-3, **{"FLASH-deterministic": 5e-3}, CUDNN=3e-3,
                                    FA4=2e-3, MATH=1.0, **{"FA4-deterministic": 2.5e-3, "06_two__mma": 1e-3})
                              for n in (512, 4096)]
        result_files.write(piece, content)
        ladder = result_files.read(self.directory / "ladder-06_two.json")
        ladder["benchmarks"] += run("06_two/mma", ladder_problem(4096), 1e-3, "bwd")
        result_files.write(self.directory / "ladder-06_two.json", ladder)
        record = Record(self.directory)
        lines = Tables(record).ladder("backward").split("\n")
        self.assertEqual([line.split("|")[1].strip() for line in lines[2:]],
                         ["`06_two`", "FlashAttention-2", "FlashAttention-2, deterministic", "cuDNN", "FlashAttention-4",
                          "FlashAttention-4, deterministic"])
        self.assertIn("| 5.00 |  | 0.200× |  |", lines[4])
        (panel,) = pictures.all_pictures(record)["time-backward"]["panels"]
        self.assertEqual([(one["name"], one["style"]) for one in panel["series"][1:]],
                         [("FlashAttention-2", "dashed"), ("FA-2, deterministic", "dashdot"), ("cuDNN", "dashed"),
                          ("FlashAttention-4", "dashed"), ("FA-4, deterministic", "dashdot")])
        self.assertEqual(Tables(record).ladder("forward"), Tables(self.record).ladder("forward"))

    def test_times_of_a_late_cpu_do_not_count(self):
        piece = self.directory / "peers-ladder.json"
        content = result_files.read(piece)
        content["points"][0]["results"][0]["seconds"]["p10"] = 9e-3  # of 12: FLASH
        result_files.write(piece, content)
        with self.assertRaises(Missing):
            evaluate('peer_ms("FLASH", 4096)', Quantities(Record(self.directory)))
        self.assertIn("| FlashAttention-2 | – |", Tables(Record(self.directory)).ladder("forward"))

    def test_every_table_can_be_made_of_nothing(self):
        empty = Tables(Record(self.root))
        for text in ("ladder('forward')", "times('forward')", "beside('06', 'forward')", "sweep('forward', 'FLASH', '06')", "against('forward')",
                     "memory('forward')", "repeated()", "machine()", "levels()", "latencies()", "branches()", "sums()", "divisions()", "training()"):
            self.assertEqual(evaluate(text, empty), NOT_YET, text)

    def test_a_broken_table_is_found_and_mended(self):
        right = f"a\n<!-- report: times(\"forward\") -->\n\n{Tables(self.record).times('forward')}\n\n<!-- /report -->\nb 1\n"
        self.assertEqual(self.rewritten(right), (right, []))
        for wrong in (right.replace("1.00", "1.01"), right.replace("| 10.0", ""), right.replace("`06_two`", "`06_one`")):
            self.assertNotEqual(wrong, right)
            mended, (difference,) = self.rewritten(wrong)
            self.assertEqual((mended, difference.line), (right, 2))

    def test_markers_that_do_not_match(self):
        for text in ("<!-- report: machine() -->\nno end", "<!-- /report -->\n", "<!-- report: machine() -->\n<!-- report: repeated() -->\n<!-- /report -->"):
            same, differences = self.rewritten(text)
            self.assertEqual(same, text)
            self.assertEqual(len(differences), 1)

    def test_two_measurements(self):
        write_second_measurement(self.directory, times=1.1)
        text = Tables(Record(self.directory)).repeated()
        self.assertIn("| `ladder` | 6 | 10.0% | 10.0% | 10.0% |", text)
        self.assertIn("| `peers-ladder` | 3 | 0.0% |", text)
        self.assertNotIn("memory", text)

    def test_the_second_measurement_has_times_alone(self):
        write_second_measurement(self.directory, times=1.1)
        again = Quantities(SecondMeasurement(Record(self.directory)))
        for text, expected in [('ms("06", 512)', 1.1), ('rate("06", 512)', 1 / 1.1 * self.value('rate("06", 512)')),
                               ('matmul_tflops()', 700), ('against("06", "FLASH", 4096)', 1.5 / 1.1),
                               ('mean_against("06")', 4)]:
            self.assertAlmostEqual(evaluate(text, again), expected, places=6, msg=text)
        for text in ('device_bytes("06", 2048)', 'dram_bytes("06")', 'entry("2026-11-23-x.json", "a")'):
            with self.assertRaises(Missing, msg=text):
                evaluate(text, again)
        text = 'entry("peers-ladder.json", "flop_rate", "points", 0, "results", name="06_two/final")'
        self.assertAlmostEqual(self.value(text) / self.value(text.replace("name", "again=True, name")), 1.1)

    def test_a_time_that_was_not_steady_the_second_time_counts_nowhere(self):
        piece = result_files.read(self.directory / "peers-ladder.json")
        piece["points"][0]["results"][0]["seconds"]["p10"] = 9e-3  # of 12: FLASH
        repeated_times.keep(self.directory, "peers-ladder", piece)
        self.assertEqual(len(repeated(self.record)["peers-ladder"]), 2)

    def test_only_what_both_measurements_have_is_compared(self):
        write_second_measurement(self.directory, times=1.1)
        (self.directory / "ladder-02_only.json").unlink()
        self.assertEqual(len(repeated(Record(self.directory))["ladder"]), 4)
        (self.directory / "sweep-fp16-forward.json").unlink()
        self.assertEqual(set(repeated(Record(self.directory))), {"ladder", "peers-ladder"})

    def test_of_a_piece_that_is_measured_a_third_time_the_last_times_are_kept(self):
        write_second_measurement(self.directory, times=1.1)
        before = (self.directory / REPEATED_TIMES).read_text()
        write_second_measurement(self.directory, times=1.2)
        self.assertAlmostEqual(Quantities(SecondMeasurement(self.record)).ms("06", 512), 1.2)
        write_second_measurement(self.directory, times=1.1)
        self.assertEqual((self.directory / REPEATED_TIMES).read_text(), before)


class InBothWays(Measured):
    """Launch by launch and back to back, on every GPU that has a record."""

    def setUp(self):
        super().setUp()
        other = self.directory.parent / "h"
        other.mkdir()
        self.pieces = [(self.directory, "models-forward", {"CUDNN": 1e-3, "FA4": 2e-3, "default": 0.5e-3}, {}),
                       (self.directory, "models-forward-b2b", {"CUDNN": 1e-3, "FA4": 0.8e-3, "default": 1e-3},
                        {"CUDNN": (1500, 700, 0.5, 1.2e-3), "default": (1400, 690, 0.4, 0.8e-3)}),
                       (other, "sweep-bf16-forward", {"CUDNN": 1e-3, "CUDNN-9.28": 0.75e-3, "10_x/y": 0.5e-3}, {})]
        for directory, name, seconds, states in self.pieces:
            one = point(Problem(1, 8, 2, 512, 4096, 64, "bf16", False), **seconds)
            for result in one["results"]:
                if result["name"] in states:
                    result.update(zip(("sm_clock_mhz", "power_w", "joules", "alone_seconds"), states[result["name"]]))
            machine = {"gpu": "NVIDIA H", "driver": 1, "cuda": "13.0"}
            result_files.write(directory / f"{name}.json", {"context": {"machine": machine}, "points": [one]})
        self.record = Record(self.directory)
        self.tables = Tables(self.record)

    def test_models(self):
        head, _, *rows = [line.strip("| ").split(" | ")
                          for line in self.tables.models_in_both_ways("forward").split("\n")]
        self.assertEqual(head, ["forward", "against the fastest peer", "against cuDNN", "against FlashAttention-4",
                                "against the fastest rung of ours", "MHz (cuDNN)", "W (cuDNN)", "joules, of cuDNN's"])
        equal, behind = "1.000× (1.00 at least, 1 points)", "0.800× (0.80 at least, behind at 1 of 1)"
        twice, faster = "2.000× (2.00 at least, 1 points)", "1.500× (1.50 at least, 1 points)"
        self.assertEqual(rows, [
            ["G, launch by launch", twice, twice, "4.000× (4.00 at least, 1 points)", *["–"] * 4],
            ["G, back to back", behind, equal, behind, *["–"] * 4],
            ["G, back to back, each alone", faster, faster, "–", "–", "1400 (1500)", "690 (700)", "0.800×"],
            ["H, launch by launch: not measured yet", *["–"] * 7],
            ["H, back to back: not measured yet", *["–"] * 7]])
        self.assertEqual(self.tables.models_in_both_ways("backward"), "*Not measured yet.*")

    def test_points(self):
        *_, row = self.tables.points_of_models("forward").split("\n")
        name, first, second, *more = row.strip("| ").split(" | ")
        self.assertEqual(name, "bf16, B = 1, 8 on 2 heads, D = 64, N = 512 × 4096, full")
        self.assertAlmostEqual(float(first) / float(second), 2.0, delta=0.02)
        self.assertEqual(more, ["2.00× (cuDNN)", "0.80× (FlashAttention-4)", "1400", "690", "400"])

    def test_the_sweep_and_another_cudnn(self):
        head, *_ = lines = self.tables.sweep_in_both_ways("forward").split("\n")
        self.assertTrue(head.startswith("| forward | against cuDNN | against cuDNN 9.28 | "), head)
        self.assertIn("| H, bf16, launch by launch | 2.000× (2.00 at least, 1 points) | "
                      "1.500× (1.50 at least, 1 points) |", "\n".join(lines))
        self.assertIn("| G, fp16, back to back: not measured yet |", "\n".join(lines))

    def test_numbers(self):
        quantities = Quantities(self.record)
        for words, expected in [(("mean", "forward"), 2.0), (("least", "forward", "peers", True), 0.8),
                                (("behind", "forward", "FA4", True), 1), (("points", "forward", "CUDNN"), 1)]:
            self.assertAlmostEqual(quantities.of_models(*words), expected)
        with self.assertRaisesRegex(Missing, "models-backward.json is not in g"):
            quantities.of_models("mean", "backward")
        with self.assertRaisesRegex(Missing, "the default beside own, forward, is not in"):
            quantities.of_models("mean", "forward", "own")
        with self.assertRaisesRegex(NotUnderstood, "there is no price"):
            quantities.of_models("price", "forward")
        for suffix, peer in (("", 4e-3), ("-b2b", 3e-3)):
            one = point(sweep_problem(512, 64, "full", "bf16"), FLASH=peer, default=2e-3, **{"06_two__final": 2e-3})
            one["results"] = [{**result, "alone_seconds": alone}
                              for result, alone in zip(one["results"], (5e-3, 2e-3, 2e-3), strict=True)]
            result_files.write(self.directory / f"sweep-bf16-forward{suffix}.json", {"context": {}, "points": [one]})
        quantities = Quantities(Record(self.directory))
        self.assertAlmostEqual(quantities.mean_against("06", "FLASH", "bf16"), 2)
        self.assertAlmostEqual(quantities.back_to_back("mean", "FLASH", "bf16", "forward"), 1.5)
        self.assertAlmostEqual(quantities.back_to_back("least", "FLASH", "bf16", "forward", alone=True), 2.5)
        with self.assertRaisesRegex(Missing, "the default beside FA4, forward, is not in the sweep back to back"):
            quantities.back_to_back("mean", "FA4", "bf16", "forward")


class OfDocuments(Measured):
    """Packed sequences and block masks: sixteen times as many FLOP/s back to back, three times without a mask."""

    def setUp(self):
        super().setUp()
        documents, masked = {"extras": "packed9_9"}, {"extras": "blocks_documents"}
        for suffix, unit in (("", 1e-3), ("-b2b", 1e-3 / 16)):
            for piece, of, own, of_own in (("packed", documents, 2, dict(FA4=3, FLEX=None)), ("blocks", masked, 1, dict(FLEX=5))):
                points = []
                for words, seconds in (({}, {"default": 4, "12_x__y": 3}), (of, {"default": own, **of_own})):
                    points.append({**point(Problem(1, 1, 1, 9, 9, 64, "bf16", True, **words),
                                           **{name: unit * value if value else None for name, value in seconds.items()}),
                                   "flops": 6e9, "share": 0.25})
                    for result in points[-1]["results"]:
                        if "seconds" in result:
                            result["seconds"]["p10"] /= 1 + ("extras" in words)  # a half where there are documents
                result_files.write(self.directory / f"{piece}{suffix}.json", {"context": {}, "points": points})
        masks = {"none": 8, "all": 10, "none, 12 x 1280": 1, "ten": 4, "documents": 6, "documents, no bits": 5}
        result_files.write(self.directory / "2026-11-29-12-block-parts.json", {"context": {}, "points": [
            {"mask": mask, "head_dim": 64, "forward_ms": ms, "share": 1.0 if mask == "all" else 0.5} for mask, ms in masks.items()]})
        self.record = Record(self.directory)
        self.tables = Tables(self.record)

    def test_numbers(self):
        """What is dense is the fastest of ours, and its median is not the fastest tenth."""
        of, at = Quantities(self.record), ("forward", 64)
        for got, expected in [(of.packed_tflops("default", *at), 3), (of.packed_tflops("dense", *at), 2),
                              (of.packed_tflops("dense", *at, True), 32), (of.packed_tflops("default", *at, time="p10"), 6),
                              (of.block_mask_ms("none", *at), 3), (of.of_listed_share("documents", *at), 4 / 3),
                              (of.of_listed_share("documents", *at, time="p10"), 2 / 3),
                              (of.block_part("all", *at), 1.25), (of.block_part("ten", *at), 1),
                              (of.block_part("short", *at), 1 / 8 / (12 * 1280**2 / 16384**2))]:
            self.assertAlmostEqual(got, expected)
        with self.assertRaisesRegex(Missing, "2026-11-29-12-block-parts.json: 0 entries with .*prefix"):
            of.block_part("prefix", *at)

    def rows(self, table):
        return {cells[0]: cells[1:] for cells in ([cell.strip() for cell in line.strip("|").split("|")]
                                                  for line in table.split("\n"))}

    def test_tables(self):
        packed, nothing = self.rows(self.tables.packed_in_both_ways()), "– (–)"
        self.assertEqual(packed["packed, forward, D = 64"], ["1.500 (1.500)", "1.500 (1.500)", *[nothing] * 4])
        self.assertEqual(packed["dense, backward, D = 64"], ["", *[nothing] * 5])
        blocks = self.rows(self.tables.blocks_in_both_ways())
        self.assertEqual(blocks["documents, D = 64"], ["1.333 (1.333)", "5.000 (5.000)", nothing, nothing])
        self.assertEqual(blocks["documents, D = 128"], [nothing] * 4)
        parts = self.rows(self.tables.block_parts())
        self.assertEqual(parts["documents"], ["–", "1.500", "–", "–"])
        self.assertEqual(parts["the list × short rows × bits"][1], f"{1.25 * 1.2 / 8 / (12 * 1280**2 / 16384**2):.3f}")
        self.assertEqual(parts["the list × bits"], ["–"] * 4)


class InEightBits(Measured):
    """At two points of the sweep: 200 and 400 TFLOP/s of the chapter, twice as many from e4m3 tensors, 300 of cuDNN's; a
    tenth less back to back, where a rung and cuDNN alone were timed."""

    def setUp(self):
        super().setUp()
        for suffix, slower, left_out in (("", 1, ()), ("-b2b", 0.9, ("13_x__first", "13_x__e4m3"))):
            points = []
            for head_dim, rate in ((64, 2e14), (128, 4e14)):
                rates = {"CUDNN__FP8": 3e14, "13_x__first": rate / 4, "13_x__last": rate, "13_x__e4m3": 2 * rate}
                made = point(Problem(1, 2, 2, 16384, 16384, head_dim, "bf16", False),
                             **{name: 1 / rate / slower for name, rate in rates.items() if name not in left_out})
                for result in made["results"]:
                    result.update(name=result["name"].replace("CUDNN/FP8", "CUDNN-FP8"), norm=0.0525,
                                  flop_rate=1 / result["seconds"]["median"])
                points.append(made)
            result_files.write(self.directory / f"fp8{suffix}.json", {
                "context": {}, "points": points, "ceilings": {"matmul_fp8": {"flop_rate": 1.3e15}}})

    def test_numbers(self):
        of = Quantities(Record(self.directory))
        for got, expected in [(of.tflops_in_eight_bits("13/last", 16384, 64), 200),
                              (of.tflops_in_eight_bits("CUDNN-FP8", 16384, 64, back_to_back=True), 270),
                              (of.error_in_eight_bits("13/e4m3", 16384, 128), 0.0525), (of.product_in_eight_bits(), 1300),
                              (of.against_in_eight_bits("13/last"), 8**0.5 / 3), (of.against_in_eight_bits("13/last", "least"), 2 / 3),
                              (of.against_in_eight_bits("13/last", "points", head_dim=128), 1),
                              (of.against_in_eight_bits("13/e4m3", peer="13/first"), 8)]:
            self.assertAlmostEqual(got, expected)
        with self.assertRaisesRegex(Missing, "13/last, N = 2048, D = 64, full, is not in fp8"):
            of.tflops_in_eight_bits("13/last", 2048, 64)
        with self.assertRaisesRegex(Missing, "13/none beside CUDNN-FP8 is not in"):
            of.against_in_eight_bits("13/none")
        with self.assertRaisesRegex(NotUnderstood, "there is no price"):
            of.against_in_eight_bits("13/last", "price")

    def test_tables(self):
        tables = Tables(Record(self.directory))
        self.assertEqual(tables.eight_bits_in_short().split("\n")[2:], [
            "| cuDNN, e4m3 | 300 (270) | – | 1.00 (1.00) | 1.00 (1.00) | 5.2% |",
            "| `first` | 100 | – | 0.24 | 0.17 | 5.2% |", "| `last` | 400 (360) | – | 0.94 (0.94) | 0.67 (0.67) | 5.2% |",
            "| from e4m3 | 800 | – | 1.89 | 1.33 | 5.2% |"])
        points = tables.points_in_eight_bits().split("\n")
        self.assertEqual(points[0], "| TFLOP/s | cuDNN, e4m3 | `first` | `last` | from e4m3 |")
        self.assertIn("| D = 64, full, N = 16384 | 300 (270) | 50 | 200 (180) | 400 |", points)
        self.assertEqual(len(points), 2 + 24)

    def test_nothing_is_measured(self):
        (self.directory / "fp8.json").unlink()
        tables = Tables(Record(self.directory))
        self.assertEqual([tables.eight_bits_in_short(), tables.points_in_eight_bits()], ["*Not measured yet.*"] * 2)


class TheMachine(Measured):
    def setUp(self):
        super().setUp()
        write_experiments(self.directory)
        self.tables = Tables(Record(self.directory))

    def test_numbers(self):
        for text, expected in [('latency("L2")', 200), ('latency("shared", "cycles")', 30), ('latency("DRAM") / latency("registers")', 300),
                               ('bandwidth("DRAM")', 4), ('experiment("branch/by_lane", "ms") / experiment("branch/all_up", "ms")', 2),
                               ('gpu("l2_bytes") / 1048576', 50)]:
            self.assertEqual(self.value(text), expected, text)
        for text, error, words in [('latency("L3")', NotUnderstood, "there is no level L3"), ('bandwidth("L1")', Missing, "bandwidth/L1 is no"),
                                   ('experiment("latency/shared", "ms")', Missing, "has no ms"), ('gpu("price")', Missing, "does not say price")]:
            with self.assertRaisesRegex(error, words, msg=text):
                self.value(text)

    def test_levels(self):
        lines = self.tables.levels().split("\n")[2:]
        self.assertEqual(lines, ["| registers (a multiply-add) | 100 × 256 KiB | 4.00 | 2.00 | 400 | 2000 |",
                                 "| shared memory | 100 × 228 KiB | 30.0 | 15.0 | 32.0 | 160 |",
                                 "| L1 | what shared memory leaves | 40.0 | 20.0 | – | – |",
                                 "| L2 | 50 MiB | 400 | 200 | 5.00 | 25.0 |", "| DRAM | 80 GiB | 1200 | 600 | 4.00 | 20.0 |"])

    def test_other_tables(self):
        self.assertEqual(self.tables.latencies().split("\n")[2:],
                         ["| 8.0 KiB | 38.0 | 19.0 |", "| 16 KiB | 40.0 | 20.0 |", "| 2.0 MiB | 400 | 200 |", "| 1.0 GiB | 1200 | 600 |"])
        self.assertIn("| every second lane | 1.00 | 2.00× |", self.tables.branches())
        self.assertIn("| every second warp | – | – |", self.tables.branches())
        self.assertEqual(self.tables.sums().split("\n")[2:], ["| relative error over 4 096 keys | 2.5e-01 | 1.0e-06 |", "| TFLOP/s | 600 | – |"])
        self.assertIn("| the queries | 24 KiB | 1.00 | 200 |", self.tables.divisions())

    def test_it_has_no_rows_and_a_picture(self):
        record = Record(self.directory)
        self.assertIn("machine", record.pieces)
        self.assertEqual({row.source for row in record.rows}, {row.source for row in self.record.rows})
        (panel,) = pictures.all_pictures(record)["latency"]["panels"]
        self.assertEqual(panel["series"][0]["y"], [19, 19, 20, 200, 600])
        self.assertEqual(panel["series"][1]["x"], [8192, 1 << 30])
        self.assertEqual([mark[0] for mark in panel["marks"]], [233472, 52428800, 1 << 30])


class ATrainedModel(Measured):
    """common/python/examples/gpt.py: runs with the same positions are compared with PyTorch's."""

    def setUp(self):
        super().setUp()

        def run(name, positions, attention, rate, losses):
            return {"name": name, "positions": positions, "attention": attention, "tokens_per_second": rate,
                    "validation": {"steps": [50 * (i + 1) for i in range(len(losses))], "losses": losses}}

        pytorchs = "scaled_dot_product_attention"
        result_files.write(self.directory / "2026-11-23-gpt.json", {
            "model": {"layers": 6, "width": 256, "length": 1024, "batch": 32},
            "runs": [run("06_two", "learned", {"chapter": "06_two"}, 1e6, [2.5, 1.5]), run("sdpa", "learned", pytorchs, 2e6, [2.25, 1.75, 1]),
                     run("sdpa_other_seed", "learned", pytorchs, 2e6, [2, 1.75, 1]), run("09_rope", "rope", {"chapter": "09_rope"}, 3e6, [2])]})
        self.record = Record(self.directory)

    def test_numbers(self):
        for text, expected in [('trained("06_two", "loss")', 1.5), ('trained("06_two", "most_apart")', 0.25), ('trained("06_two", "speed")', 0.5),
                               ('trained("sdpa_other_seed", "apart")', 0.25 / 3), ('trained("09_rope", "tokens_per_second")', 3e6)]:
            self.assertEqual(self.value(text), expected, text)
        for text, error, words in [('trained("07", "loss")', Missing, "^07 is no run of .*gpt.json .it has 06_two, sdpa, "),
                                   ('trained("09_rope", "apart")', Missing, "no run with PyTorch's attention to compare 09_rope"),
                                   ('trained("sdpa", "price")', NotUnderstood, "there is no price of a run")]:
            with self.assertRaisesRegex(error, words, msg=text):
                self.value(text)

    def test_table(self):
        self.assertEqual(Tables(self.record).training().split("\n")[2:],
                         ["| `06_two` | 1.5000 | 0.2500 | 0.2500 | 1.00 | 0.500× |", "| `sdpa` | 1.0000 |  |  | 2.00 |  |",
                          "| `sdpa_other_seed` | 1.0000 | 0.0833 | 0.2500 | 2.00 | 1.00× |", "| `09_rope` | 2.0000 | – | – | 3.00 | – |"])

    def test_picture(self):
        losses, rope, apart, nothing = pictures.all_pictures(self.record)["training"]["panels"]
        self.assertEqual([(one["name"], one["color"], one["style"]) for one in losses["series"]],
                         [("06 two", 5, "solid"), ("SDPA", "SDPA", "dashed"), ("SDPA, other seed", "SDPA, other seed", "dashdot")])
        self.assertEqual((losses["series"][1]["x"], losses["series"][1]["y"]), ([50, 100, 150], [2.25, 1.75, 1]))
        self.assertEqual([one["y"] for one in apart["series"]], [[0.25, -0.25], [0, 0, 0], [-0.25, 0, 0]])
        self.assertLess(apart["y"]["from"], -0.25)
        self.assertEqual((rope["title"], len(rope["series"])), ("RoPE", 1))
        self.assertEqual((nothing["title"], nothing["series"]), ("RoPE, minus SDPA's", []))


class OfFiles(Measured):
    def setUp(self):
        super().setUp()
        self.readme = self.root / "README.md"
        self.readme.write_text("1.5 ms<!-- = ms(\"06\", 512) -->\n<!-- report: machine() -->\n<!-- /report -->\n")

    def test_every_lesson_is_looked_at(self):
        (self.root / "06_two").mkdir()
        (self.root / "06_two" / "README.md").write_text("3<!-- = ms(\"06\", 512) -->")
        self.assertEqual([str(one) for one in lesson_numbers.check(self.root, self.record)],
                         ['README.md:1: 1.5 should be 1.0: ms("06", 512)', "README.md:2: the table machine() is not what was measured",
                          '06_two/README.md:1: 3 should be 1: ms("06", 512)'])
        changed, left = lesson_numbers.rewrite(self.root, self.record)
        self.assertEqual((len(changed), left), (2, []))
        self.assertEqual(lesson_numbers.check(self.root, self.record), [])

    def ending_of(self, *words):
        with mock.patch.multiple(command, ROOT=self.root, RESULTS=self.directory.parent, THE_BOOKS="g"), contextlib.redirect_stdout(
                io.StringIO()) as said, contextlib.redirect_stderr(said):
            return cli.main(["dev", "report", "--gpu=g", *words]), said.getvalue()

    def test_questions_without_an_answer_are_named(self):
        (self.root / "05_online").mkdir()
        (self.root / "05_online" / "README.md").write_text("## Questions\n\n1. Why?\n\n## Next\n")
        self.assertRegex(str(lesson_numbers.check(self.root, self.record)[-1]), "^05_online/README.md:3: question 1 has no answer, folded away")

    def test_the_command(self):
        status, said = self.ending_of("--check")
        self.assertEqual(status, 1)
        self.assertIn("should be 1.0", said)
        self.assertEqual(self.ending_of("--no-pictures")[0], 0)
        status, said = self.ending_of("--check")  # now only the pictures
        self.assertEqual((status, "should be" in said, "roofline.svg is not of these" in said), (1, False, True))
        with mock.patch.object(pythons, "with_module", return_value=None):
            status, said = self.ending_of()
        self.assertEqual(status, 1)
        self.assertRegex(said, "^workbook: the pictures need matplotlib: apt-get install python3-matplotlib.*\n$")

    def test_what_a_second_measurement_makes_of_the_numbers(self):
        self.assertIn("No number", self.ending_of("--again")[1])
        write_second_measurement(self.directory, times=1.25)
        self.readme.write_text('A\n1.0<!-- = ms("06", 512) --> 10<!-- = gain("02", "06", 512) --> 4.0<!-- = mean_against("06") --> 4<!-- = 2 * 2 -->')
        status, said = self.ending_of("--again")
        lines = [line.split() for line in said.splitlines()[1:]]
        self.assertEqual((status, len(lines)), (0, 3))
        self.assertEqual(lines[0][:5], ["README.md:2", "1.00", "1.25", "25.0%", 'ms("06",'])
        self.assertEqual([line[3] for line in lines[1:]], ["0.0%", "0.0%"])

    def test_pictures_are_of_the_data(self):
        directory = self.directory / "pictures"
        every = pictures.all_pictures(self.record)
        self.assertEqual(pictures.stale(self.record, directory), list(every))
        directory.mkdir()
        for name, data in every.items():
            (directory / f"{name}.svg").write_text(f"<svg>\n<!-- data {pictures.fingerprint(data)} -->\n</svg>\n")
        self.assertEqual(pictures.stale(self.record, directory), [])
        write_measurement(self.directory, times=1.001)
        self.assertIn("time-forward", pictures.stale(Record(self.directory), directory))
        self.assertNotIn("tflops-forward", pictures.stale(Record(self.directory), directory))

    @at_length
    def test_the_same_data_gives_the_same_bytes(self):
        write_experiments(self.directory)
        self.record = Record(self.directory)
        python = pythons.with_module("matplotlib")
        if python is None:
            self.skipTest("matplotlib is not here")
        drawn = []
        for _ in range(2):
            with contextlib.redirect_stdout(io.StringIO()):
                command.draw(self.record, self.directory / "pictures")
            drawn.append({path.name: path.read_bytes() for path in (self.directory / "pictures").glob("*.svg")})
        self.assertEqual(drawn[0], drawn[1])
        self.assertEqual(len(drawn[0]), len(pictures.all_pictures(self.record)))
        self.assertEqual(pictures.stale(self.record, self.directory / "pictures"), [])
        self.assertNotIn(str(ROOT).encode(), b"".join(drawn[0].values()))


class TheLessons(unittest.TestCase):
    """This repository's own."""

    record = Record(RESULTS / command.THE_BOOKS)

    def test_numbers_are_what_was_measured_and_questions_have_answers(self):
        self.assertEqual([str(difference) for difference in lesson_numbers.check(ROOT, self.record)], [], "./workbook dev report mends numbers")

    def test_pictures_are_of_what_was_measured(self):
        self.assertEqual(pictures.stale(self.record, self.record.directory / "pictures"), [], "./workbook dev report draws them")

    def test_pictures_that_are_shown_are_there(self):
        for path in lesson_numbers.lessons(ROOT):
            for picture in lesson_numbers.shown_pictures(path.read_text()):
                self.assertTrue((path.parent / picture).exists(), f"{path}: {picture}")


if __name__ == "__main__":
    unittest.main()
