"""Machine instructions without a GPU: what is read of nvdisasm's text, and how often each block of it runs."""

import json
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tools.base import GPUS
from tools.machine_code import code, executed, order
from tools.machine_code.linear_program import LinearProgram
from tools.showing import trace_report

HERE = Path(__file__).parent / "machine_code"

# for (int i = 0; i < n; ++i) sum += x[i], four at a time, and what remains one at a time.
UNROLLED = """
.text.f:
	//## File "a/mine.cu", line 3
        /*0000*/                   ISETP.GE.AND P0, PT, R0, 0x4, PT ;
        /*0010*/              @!P0 BRA `(.L_x_2) ;
.L_x_1:
	//## File "a/mine.cu", line 4
        /*0020*/                   LDG.E R2, desc[UR4][R4.64] ;
        /*0030*/                   LDG.E R3, desc[UR4][R4.64+0x4] ;
        /*0040*/                   LDG.E R6, desc[UR4][R4.64+0x8] ;
        /*0050*/                   LDG.E R7, desc[UR4][R4.64+0xc] ;
        /*0060*/                   FADD R8, R2, R3 ;
	//## File "a/mine.cu", line 3
        /*0070*/               @P1 BRA `(.L_x_1) ;
.L_x_2:
        /*0080*/              @!P2 BRA `(.L_x_4) ;
.L_x_3:
	//## File "a/load.h", line 9 inlined at "a/mine.cu", line 4
	//## File "a/mine.cu", line 4
        /*0090*/                   LDG.E R2, desc[UR4][R4.64] ;
        /*00a0*/                   FADD R8, R8, R2 ;
        /*00b0*/               @P3 BRA `(.L_x_3) ;
.L_x_4:
        /*00c0*/                   EXIT ;
        /*00d0*/                   BRA `(.L_x_4);
"""


# Exponentials of line 7 beside the second of two products: in the loop L_x_1, where a mask is a branch.
IN_ORDER = """
.text.f:
	//## File "a/mine.cu", line 5
        /*0000*/                   HGMMA.64x64x16.F32 R8, gdesc[UR8], !UPT, gsb0 ;
        /*0010*/                   WARPGROUP.DEPBAR.LE gsb0, 0x0 ;
	//## File "a/mine.cu", line 6
        /*0020*/                   MUFU.EX2 R8, R8 ;
.L_x_1:
	//## File "a/mine.cu", line 5
        /*0030*/                   HGMMA.64x64x16.F32 R8, gdesc[UR8], !UPT, gsb0 ;
        /*0040*/                   HGMMA.64x64x16.F32 R40, gdesc[UR16], gsb0 ;
        /*0050*/                   WARPGROUP.DEPBAR.LE gsb0, 0x1 ;
	//## File "a/math.h", line 9 inlined at "a/mine.cu", line 7
	//## File "a/mine.cu", line 7
        /*0060*/                   MUFU.EX2 R8, R8 ;
	//## File "a/mine.cu", line 8
        /*0070*/               @P0 BRA `(.L_x_2) ;
        /*0080*/                   FSEL R8, R8, RZ, P1 ;
.L_x_2:
	//## File "a/math.h", line 9 inlined at "a/mine.cu", line 7
	//## File "a/mine.cu", line 7
        /*0090*/                   MUFU.EX2 R9, R9 ;
	//## File "a/mine.cu", line 5
        /*00a0*/                   WARPGROUP.DEPBAR.LE gsb0, 0x0 ;
        /*00b0*/               @P2 BRA `(.L_x_1) ;
        /*00c0*/                   EXIT ;
"""


def graph(text: str) -> code.Graph:
    (lines,) = code.kernels(text).values()
    return code.graph_of(lines)


def launch(loads: int, warps: int = 6) -> dict:
    return {"grid": [warps // 2, 1, 1], "block": [64, 1, 1], "shuffles": 0, "barriers": 0, "matrix_flops": 0,
            "lines": [{"line": "a/mine.cu:4", "op": "global_load", "requests": loads, "lane_bytes": 4 * loads}]}


class Reading(unittest.TestCase):
    def test_blocks_loops_and_dominators(self):
        of = graph(UNROLLED)
        self.assertEqual([len(of.blocks[block]) for block in of.reached], [2, 6, 1, 3, 1])
        self.assertEqual([of.successors[block] for block in of.reached], [[2, 1], [1, 2], [4, 3], [3, 4], []])
        self.assertEqual(of.loops, {1: {1}, 3: {3}})
        self.assertEqual(of.dominator, {0: 0, 1: 0, 2: 0, 3: 2, 4: 2})

    def test_an_instruction_is_of_the_kernels_own_line(self):
        inlined = graph(UNROLLED).blocks[3][0]
        self.assertEqual((inlined.places, inlined.place), (("a/load.h:9", "a/mine.cu:4"), "a/mine.cu:4"))

    def test_names_of_the_engine_and_of_the_machine_code(self):
        for one, other in (("void tiling::_GLOBAL__N__b92_11_3_padded_cu_eb3::scores<__half>(attention::Problem, int)",
                            "tiling::scores<__half>"),
                           ("void f<g::Shape<64, 2> >(int*)", "f<g::Shape<64, 2> >"), ("f(float (*)[4])", "f")):
            self.assertEqual(executed.comparable(one), executed.comparable(other))

    def test_kinds(self):
        for name, kind in (("FFMA", "fp32"), ("FADD", "fp32"), ("F2FP", "conversion"), ("HADD2", "conversion"),
                           ("LDS", "memory"), ("LDC", "integer"), ("STG", "memory"), ("LDGSTS", "memory"),
                           ("HMMA", "tensor"), ("MUFU", "special"), ("BAR", "control"), ("LDGDEPBAR", "control"),
                           ("IMAD", "integer"), ("SHFL", "shuffle")):
            self.assertEqual(executed.kind_of(code.Instruction("", name, ("F32",), "", ())), kind, name)


class Order(unittest.TestCase):
    LINE = "a/mine.cu:7"
    LAST, WAIT = "        /*0090*/                   MUFU.EX2 R9, R9 ;\n", "WARPGROUP.DEPBAR.LE gsb0, 0x0 ;\n"

    def test_exponentials_between_a_product_and_the_wait_for_it(self):
        self.assertEqual(order.misplaced(IN_ORDER, [self.LINE]), [])

    def test_behind_the_wait(self):
        before, _, after = IN_ORDER.partition(self.LAST)
        moved = before + after.replace(self.WAIT, self.WAIT + "\t//## File \"a/mine.cu\", line 7\n" + self.LAST)
        self.assertEqual(order.misplaced(moved, [self.LINE]),
                         [f"{self.LINE}: in f 1 of 2 exponentials stand behind the wait for the product that they "
                          "should run beside"])

    def test_behind_a_wait_that_one_way_has(self):
        waits = IN_ORDER.replace("FSEL R8, R8, RZ, P1 ;\n", self.WAIT)
        self.assertIn("in f 1 of 2 exponentials", order.misplaced(waits, [self.LINE])[0])

    def test_before_any_product(self):
        self.assertIn("in f 1 of 1 exponentials", order.misplaced(IN_ORDER, ["a/mine.cu:6"])[0])

    def test_a_line_without_exponentials(self):
        self.assertEqual(order.misplaced(IN_ORDER, ["a/mine.cu:8"]),
                         ["a/mine.cu:8: the machine code has no exponential of this line"])
        self.assertEqual(order.misplaced(IN_ORDER, ["a/mine.h:8"]), [])  # other sources have it


class LinearPrograms(unittest.TestCase):
    def test_the_cheapest_solution(self):
        # x + y >= 4, x + 3 y >= 6: of 3 x + 5 y the least is at (3, 1).
        program = LinearProgram()
        program.add_equation({"x": 1, "y": 1, "over 1": -1}, 4, "missing 1")
        program.add_equation({"x": 1, "y": 3, "over 2": -1}, 6, "missing 2")
        for unknown, cost in (("x", 3), ("y", 5), ("missing 1", 100), ("missing 2", 100)):
            program.add_cost(unknown, cost)
        solution = program.solve()
        self.assertAlmostEqual(solution["x"], 3)
        self.assertAlmostEqual(solution["y"], 1)

    def test_a_negative_side(self):
        program = LinearProgram()
        program.add_equation({"x": -2}, -6, "missing", "over")
        program.add_cost("missing", 1)
        program.add_cost("over", 1)
        self.assertAlmostEqual(program.solve()["x"], 3)


class HowOften(unittest.TestCase):
    def times(self, loads_of_a_warp: int) -> list:
        of, counted = graph(UNROLLED), launch(6 * loads_of_a_warp)
        times = executed.Flow(of, executed._counted(of, counted), executed.warps_of(counted)).solve()
        return [round(times[block], 6) for block in of.reached]

    def test_the_unrolled_loop_first_and_then_what_remains(self):
        self.assertEqual(self.times(8), [1, 2, 1, 0, 1])
        self.assertEqual(self.times(10), [1, 2, 1, 2, 1])
        self.assertEqual(self.times(3), [1, 0, 1, 3, 1])  # too few for the unrolled loop

    def test_instructions_by_line_and_kind(self):
        found = executed.instructions_of(graph(UNROLLED), launch(6 * 10))
        self.assertEqual(found["kinds"], {"memory": 60, "fp32": 24, "control": 6 * (1 + 2 + 1 + 2 + 1), "integer": 6})
        self.assertEqual({line["line"]: line["executed"] for line in found["lines"]},
                         {"a/mine.cu:4": 60 + 24 + 6 * 3, "a/mine.cu:3": 6 * (2 + 2 + 1)})
        self.assertEqual(found["executed"], sum(found["kinds"].values()))

    def test_as_nsight_compute_counts(self):
        """The kernel scores of 02/mapping: its loop over d is there for 16 iterations at a time, and makes 2."""
        given = json.loads((HERE / "mapping.json").read_text())
        problem, profiled = given["profiled"]["problem"], given["profiled"]["instructions"]
        each = profiled / (problem["batch"] * problem["heads"] * problem["seq_q"] * problem["seq_k"])
        of = graph((HERE / "mapping.sass").read_text())
        counted = executed.instructions_of(of, given["launch"])["executed"] / 256**2
        self.assertLess(abs(counted / each - 1), 0.01)


class WhichFiles(unittest.TestCase):
    """A chapter whose loop stands in loop.h and is instantiated by 1_first.cu and, with another kernel, 2_second.cu."""

    TREE = {"loop.h": "template <class T> void loop(T* x) { *x = 1; }\ntemplate <int> void small() {}\n",
            "1_first.cu": '#include "loop.h"\ntemplate void loop<int>(int*);\n',
            "2_second.cu": '#include "loop.h"\ntemplate void loop<int>(int*);\ntemplate void small<3>();\n',
            "3_own.cu": "namespace { void loop() {} }\nvoid (*const of)() = loop;\n"}

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = Path(temporary.name)
        chapter, objects = self.root / "13_x", self.root / "build/13_x/CMakeFiles/13_x_traced_kernels.dir"
        for directory in (chapter, objects):
            directory.mkdir(parents=True)
        for name, text in self.TREE.items():
            (chapter / name).write_text(text)
            if name.endswith(".cu"):
                subprocess.run(["g++", "-xc++", "-c", chapter / name, "-o", objects / f"{name}.o"], check=True)
        for patch in (mock.patch.object(executed, "ROOT", self.root),
                      mock.patch.object(executed.build, "directory", lambda preset: self.root / "build")):
            patch.start()
            self.addCleanup(patch.stop)

    def launch(self, kernel: str, file: str) -> dict:
        return {**launch(6 * 10), "kernel": kernel,
                "lines": [{"line": f"{file}:4", "op": "global_load", "requests": 60, "lane_bytes": 240}]}

    def sources(self, *launches: tuple) -> list:
        return [path.name for path in executed.sources_of([self.launch(*each) for each in launches])]

    def test_those_whose_lines_are_named(self):
        self.assertEqual(self.sources(("loop", "13_x/3_own.cu"), ("loop", "13_x/gone.cu")), ["3_own.cu"])

    def test_of_kernels_in_a_header_those_that_have_them(self):
        loop, small = ("loop<int>", "13_x/loop.h"), ("small<3>", "13_x/loop.h")
        self.assertEqual(self.sources(loop), ["1_first.cu"])
        self.assertEqual(self.sources(loop, small), ["2_second.cu"])
        self.assertEqual(self.sources(("loop", "13_x/3_own.cu"), small), ["3_own.cu", "2_second.cu"])
        self.assertEqual(self.sources(loop, ("small<3>", "13_x/2_second.cu")), ["2_second.cu"])
        self.assertEqual(self.sources(("small<4>", "13_x/loop.h")), [])
        (self.root / "13_x/1_first.cu").unlink()  # its object is still there
        self.assertEqual(self.sources(loop), ["2_second.cu"])

    def test_a_kernel_in_a_header_has_instructions(self):
        text = {"1_first.cu": UNROLLED.replace("a/mine.cu", "13_x/loop.h").replace("text.f", "text._Z4loopIiEvPT_")}
        counted = self.launch("loop<int>", "13_x/loop.h")
        with mock.patch.object(executed, "find", return_value=("nvcc 13.0", "")), \
                mock.patch.object(executed, "machine_code", lambda tools, source, *_: text[source.name]):
            self.assertEqual(executed.add_instructions([[counted]], "sm_90a"), [executed.WORDS])
        self.assertEqual(counted["instructions"]["kinds"]["memory"], 60)


class OnSomeMultiprocessors(unittest.TestCase):
    launch = {"bytes": {what: dict.fromkeys(("warps", "blocks", "launch"), 0) for what in ("read", "written")},
              "totals": {"shared_load": {"wavefronts": 1000}}, "matrix_flops": 0}

    def least(self, blocks: int) -> float:
        return trace_report.seconds({**self.launch, "grid": [blocks, 1, 1]}, GPUS["h200"])["load unit"]

    def test_one_block_has_one_multiprocessor(self):
        self.assertAlmostEqual(self.least(1), 1000 / 1.98e9)
        self.assertAlmostEqual(self.least(132), 1000 / 1.98e9 / 132)
        self.assertAlmostEqual(self.least(133), 1000 / 1.98e9 * 2 / 133)  # one of them has two

    def test_it_is_said(self):
        said = [trace_report.grid_line({"grid": [blocks, 1, 1]}, GPUS["h200"])
                for blocks in (1, 131, 132, 133, 132 * 20)]
        self.assertEqual(said[0], "1 of 132 multiprocessors has work.")
        self.assertEqual(said[1], "131 of 132 multiprocessors have work.")
        self.assertIn("1 of these get 2, the others 1", said[3])
        self.assertEqual([said[2], said[4]], ["", ""])


if __name__ == "__main__":
    unittest.main()
