"""Is it noticed where the exponentials of a kernel do not stand beside products, as nvcc compiles it here? While the
chapters are compiled for a GPU this is looked at (common/cmake/refuse_serialised.sh)."""

import subprocess
import tempfile
import unittest
from pathlib import Path

from tools.base import ROOT
from tools.machine_code import code, order
from tools.machine_code.compiling import find, machine_code
from tools.machine_code.executed import by_name

ARCHITECTURE = "sm_90a"  # the only one that has wgmma
AHEAD = ROOT / "10_hopper" / "17_ahead.cu"
AHEAD_BACKWARD = ROOT / "10_hopper" / "17_ahead_backward.cu"
LATE = ROOT / "10_hopper" / "24_late.cu"  # polynomial's kernel, too
WAIT = "    mbarrier_wait(&smem.v_full[ring.place], ring.parity);  // no result depends on it\n"


class Changed(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.tools, why = find()
        if not cls.tools:
            raise unittest.SkipTest(f"NOT RUN: needs nvcc and nvdisasm: {why}")

    def misplaced(self, source: Path) -> list:
        return order.misplaced(machine_code(self.tools, source, ARCHITECTURE), order.marked(source))

    def changed(self, source: Path, old: str, new: str) -> list:
        """What is wrong with the source after one change of a line."""
        text = source.read_text()
        self.assertEqual(text.count(old), 1, source)
        with tempfile.TemporaryDirectory() as directory:
            copy = Path(directory) / source.parent.name / source.name
            copy.parent.mkdir()
            copy.write_text(text.replace(old, new))
            return self.misplaced(copy)


class Launcher(unittest.TestCase):
    def test_machine_code_without_lines_is_not_looked_at(self) -> None:
        """An installed library's: the build would fail for want of what it has no use for."""
        with tempfile.TemporaryDirectory() as directory:
            compiler, made = Path(directory) / "nvcc", Path(directory) / "made.o"
            compiler.write_text(f"#!/bin/sh\necho > {made}\n")
            compiler.chmod(0o755)
            command = [ROOT / "common/cmake/refuse_serialised.sh", compiler, "-c", AHEAD, "-o", made]
            for flags, looked_at in (([], False), (["-lineinfo"], True)):  # and nothing found, in a file of no code
                done = subprocess.run(command + flags, capture_output=True, text=True)
                self.assertEqual((done.returncode, "is not checked" in done.stderr), (0, looked_at), flags)


class Forward(Changed):
    def test_the_chapters_say_where_it_matters(self) -> None:
        """And a build of each of these for a GPU looks whether it is so."""
        marked = {path.name for path in ROOT.glob("10_hopper/*.cu") if order.MARK in path.read_text()}
        self.assertEqual(marked, {"17_ahead.cu", "17_ahead_backward.cu", "18_fetched_backward.cu", "20_fitted.cu",
                                  "21_shared_backward.cu", "24_late.cu", "27_clusters.cu", "27_clusters_backward.cu",
                                  "28_deferred_backward.cu", "29_columns_backward.cu"})
        self.assertEqual(len(order.marked(ROOT / "12_variants" / "hopper_views.cu")), 2)  # in its two headers

    def test_a_forward_without_the_branch_between(self) -> None:
        wrong = self.changed(AHEAD, WAIT, "")
        self.assertEqual(len(wrong), 4)  # two dtypes, two head dims
        self.assertRegex(wrong[0], r"17_ahead\.cu:\d+: in hopper::forward<.*> \d+ of \d+ exponentials stand behind")


class Others(Changed):
    def test_a_wait_that_does_not_need_the_sums(self) -> None:
        """The branch does not do for the polynomial: ptxas moves some exponentials behind it."""
        wrong = self.changed(LATE, "ring.parity ^ unsigned(never)", "ring.parity")
        self.assertEqual(len(wrong), 2)  # two dtypes
        self.assertRegex(wrong[0], r"24_late\.cu:\d+: in hopper::forward<true,.*> \d+ of 56 exponentials stand behind")

    def test_the_exp_unit_has_an_eighth_less_to_do(self) -> None:
        place, = order.marked(LATE)
        exponentials = {kernel: sum(one.name == "MUFU" and "EX2" in one.modifiers and place in one.places
                                    for block in graph.reached for one in graph.blocks[block])
                        for kernel, lines in by_name(machine_code(self.tools, LATE, ARCHITECTURE)).items()
                        for graph in [code.graph_of(lines)]}
        self.assertEqual({kernel: count for kernel, count in exponentials.items() if "forward" in kernel},
                         {f"hopper::forward<{polynomial},{dtype},64>": 56 if polynomial == "true" else 64
                          for polynomial in ("true", "false") for dtype in ("__half", "__nv_bfloat16")})

    def test_a_backward_with_the_mask_before_the_exponentials(self) -> None:
        self.assertEqual(len(self.changed(AHEAD_BACKWARD, "make_p_ahead<Br>", "make_p<Br>")), 2)


if __name__ == "__main__":
    unittest.main()
